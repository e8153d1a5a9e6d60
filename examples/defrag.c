/* SPDX-License-Identifier: MIT */
/* Fragment a heap, compact it, go on: what did not fit before fits then. usage: defrag [DEVICE] */
#include <allot/compact.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB (UINT64_C(1) << 20)

enum { COUNT = 64 };

static allot_status check(allot_status status)
{
    if (status != ALLOT_STATUS_OK && status != ALLOT_STATUS_FRAGMENTED) {
        fprintf(stderr, "%s\n", allot_error_detail());
        exit(1);
    }
    return status;
}

int main(int argc, char **argv)
{
    const allot_heap_options options = {.struct_size = sizeof options,
                                        .mode = ALLOT_HEAP_MODE_SEGMENTS,
                                        .segment_size = COUNT * MIB,
                                        .limit = COUNT * MIB};
    const allot_request small = {.struct_size = sizeof small, .size = MIB};
    const allot_request large = {.struct_size = sizeof large, .size = 24 * MIB};
    allot_device *device = NULL;
    allot_heap *heap = NULL;
    allot_handle blocks[COUNT];
    allot_handle block;
    allot_compact_forecast gain;
    allot_compact_plan *plan = NULL;
    allot_compact_report done;
    check(allot_device_open(argc > 1 ? argv[1] : "host", &device));
    check(allot_heap_create(device, &options, &heap));
    for (int i = 0; i < COUNT; i++) {
        check(allot_heap_alloc(heap, &small, &blocks[i]));
    }
    for (int i = 0; i < COUNT; i += 2) {
        check(allot_heap_free(heap, blocks[i])); /* 32 MiB are free, in 32 places */
    }
    if (check(allot_heap_alloc(heap, &large, &block)) == ALLOT_STATUS_FRAGMENTED) {
        printf("24 MiB do not fit\n");
    }
    check(allot_compact_estimate(heap, NULL, &gain)); /* nothing moves yet */
    printf("largest free range %" PRIu64 " MiB, %" PRIu64 " MiB after %" PRIu64 " moves\n",
           gain.largest_before / MIB, gain.largest_after / MIB, gain.moves);
    check(allot_compact_plan_create(heap, NULL, &plan));
    check(allot_compact_plan_run(heap, plan, NULL, &done));
    printf("moved %" PRIu64 " MiB\n", done.bytes / MIB);
    if (check(allot_heap_alloc(heap, &large, &block)) == ALLOT_STATUS_OK) {
        printf("24 MiB fit\n");
    }
    allot_compact_plan_destroy(plan);
    allot_heap_destroy(heap);
    allot_device_destroy(device);
    return 0;
}
