/* SPDX-License-Identifier: MIT */
/* Bytes as settings, limits and calls of the allocator model: no call may break an invariant. */
#include "torchsim/sim.h"

#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)

enum { LIVE_MAX = 64, CONF_MAX = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static uint8_t next_byte(input *in)
{
    if (in->size == 0) {
        return 0;
    }
    in->size--;
    return *in->data++;
}

static uint64_t next_size(input *in)
{
    const uint64_t value = (uint64_t)next_byte(in) << 8 | next_byte(in);
    return value << (next_byte(in) % 20);
}

/** Settings up to the first line end, taken as they are if they can be read. */
static void read_conf(input *in, allot_torch_conf *conf)
{
    char text[CONF_MAX + 1];
    size_t length = 0;
    while (in->size > 0 && length < CONF_MAX) {
        const char c = (char)next_byte(in);
        if (c == '\n' || c == '\0') {
            break;
        }
        text[length++] = c;
    }
    text[length] = '\0';
    allot_torch_notes notes = {.count = 0};
    allot_torch_conf_init(conf);
    if (allot_torch_conf_parse(text, conf, &notes) == ALLOT_STATUS_OK) {
        char written[ALLOT_TORCH_CONF_TEXT_MAX];
        allot_torch_conf_format(conf, written);
        allot_torch_conf_review(conf, (length & 1) != 0, 0.5, &notes);
    }
    conf->backend = ALLOT_TORCH_BACKEND_NATIVE;
}

typedef struct live_blocks {
    uint32_t names[LIVE_MAX];
    uint32_t count;
} live_blocks;

static void call(allot_torchsim *sim, input *in, live_blocks *live)
{
    const uint8_t what = next_byte(in);
    const uint32_t any = live->count > 0 ? live->names[what / 8 % live->count] : what;
    allot_status status = ALLOT_STATUS_OK;
    switch (what % 8) {
    case 0:
    case 1:
    case 2: {
        const uint32_t pool = what / 8 % 4;
        uint32_t block = ALLOT_NONE;
        status = allot_torchsim_alloc(sim, next_size(in), next_byte(in) % 3,
                                      pool == 3   ? 0
                                      : pool == 2 ? 1
                                                  : ALLOT_NONE,
                                      &block);
        if (status == ALLOT_STATUS_OK && live->count < LIVE_MAX) {
            live->names[live->count++] = block;
        }
        break;
    }
    case 3:
    case 4:
        status = allot_torchsim_free(sim, any);
        if (live->count > 0) {
            live->names[what / 8 % live->count] = live->names[live->count - 1];
            live->count--;
        }
        break;
    case 5:
        status = allot_torchsim_record_stream(sim, any, next_byte(in));
        break;
    case 6:
        status = (what & 8) != 0 ? allot_torchsim_empty_cache(sim)
                                 : allot_torchsim_complete(sim, next_byte(in));
        break;
    default:
        status = (what & 8) != 0    ? allot_torchsim_pool_begin(sim, what / 16 % 2)
                 : (what & 16) != 0 ? allot_torchsim_pool_end(sim, what / 32 % 2)
                                    : allot_torchsim_pool_release(sim, what / 32 % 2);
        break;
    }
    (void)status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    allot_torch_conf conf;
    read_conf(&in, &conf);
    const uint8_t how = next_byte(&in);
    allot_torchsim_options options = {.struct_size = sizeof(options),
                                      .conf = &conf,
                                      .limit = (uint64_t)(next_byte(&in) + 1) * 8 * MIB,
                                      .fraction = (how & 1) != 0 ? 0.7 : 0,
                                      .version = (how & 2) != 0 ? 204 : 0,
                                      .completion = (how & 4) != 0 ? ALLOT_TORCH_COMPLETE_ON_CALL
                                                                   : ALLOT_TORCH_COMPLETE_AT_ONCE};
    allot_torchsim *sim = NULL;
    if (allot_torchsim_create(&options, &sim) != ALLOT_STATUS_OK) {
        return 0;
    }
    live_blocks live = {.count = 0};
    const allot_torch_pool_options offered = {
        .struct_size = sizeof(offered), .use_on_oom = true, .no_split = (how & 8) != 0};
    bool ok = allot_torchsim_pool_create(sim, NULL, NULL) == ALLOT_STATUS_OK &&
              allot_torchsim_pool_create(sim, &offered, NULL) == ALLOT_STATUS_OK;
    while (ok && in.size > 0) {
        call(sim, &in, &live);
        if (!alloti_torchsim_check(sim)) {
            abort();
        }
    }
    allot_torchsim_destroy(sim);
    return 0;
}
