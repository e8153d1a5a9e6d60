/* SPDX-License-Identifier: MIT */
#include "core/status.h"
#include "trace/reader.h"
static bool detect(const uint8_t *head, size_t size)
{
    return size >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}
static allot_status read_pickle(alloti_source *source, const alloti_progress *progress,
                                alloti_builder *builder)
{
    (void)source, (void)progress, (void)builder;
    return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "byte 0: pickle");
}
const alloti_reader alloti_reader_torch_pickle = {
    .format = ALLOT_TRACE_FORMAT_TORCH_PICKLE, .detect = detect, .read = read_pickle};
