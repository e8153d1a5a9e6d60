/* SPDX-License-Identifier: MIT */
/*
 * Buffers of a communicator: the user's table says how much, else one buffer for each channel is
 * assumed. How many channels a communicator really has depends on the links between the GPUs, which
 * a profile does not know. With a limit, all of which is for the program, nothing is taken.
 */
#include "standin/nccl_buffers.h"

#include <stdlib.h>
#include <string.h>

#include "core/number_text.h"
#include "standin/report.h"
#include "standin/state.h"

/* NCCL's user guide: NCCL_BUFFSIZE is 4 MiB unless set; its source: up to 32 channels unless set.
 */
enum { BUFFER_SIZE = 4 << 20, CHANNELS = 32, CHANNELS_MAX = 64 };

/** Value of a variable of the environment, `otherwise` unless it is a number up to `most`. */
static uint64_t variable(const char *name, uint64_t otherwise, uint64_t most)
{
    const char *const text = getenv(name);
    uint64_t value = 0;
    const bool is_set = text != NULL && alloti_number_u64(text, strlen(text), &value);
    return is_set && value != 0 && value <= most ? value : otherwise;
}

static uint64_t assumed_size(void)
{
    return variable("NCCL_BUFFSIZE", BUFFER_SIZE, UINT32_MAX) *
           variable("NCCL_MAX_NCHANNELS", CHANNELS, CHANNELS_MAX);
}

cuda_status nccl_buffers_take(unsigned device, int ranks, uint64_t *size)
{
    static report_size asked = {.name = "buffers of an NCCL communicator",
                                .source = "an assumption: NCCL_BUFFSIZE (4 MiB) for each of up to "
                                          "NCCL_MAX_NCHANNELS (32) channels",
                                .workspace = ALLOT_WORKSPACE_nccl,
                                .is_taken = true};
    const standin_config *const config = standin_settings();
    *size = 0;
    if (ranks < 2 || (!config->is_whole && !config->workspaces.is_set[ALLOT_WORKSPACE_nccl])) {
        return CUDA_OK;
    }
    uint64_t bytes = assumed_size();
    (void)report_size_by_table(&asked, REPORT_RULE, &bytes, bytes);
    standin *const state = standin_open();
    const cuda_status status = memory_charge(state, device, bytes);
    standin_close(state);
    if (status == CUDA_OK) {
        *size = bytes;
    }
    return status;
}

void nccl_buffers_give_back(unsigned device, uint64_t size)
{
    if (size == 0) {
        return;
    }
    standin *const state = standin_open();
    memory_refund(state, device, size);
    standin_close(state);
}
