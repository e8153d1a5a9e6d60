/* SPDX-License-Identifier: MIT */
/* A heap over a device: a block that may move, used while it is pinned. usage: heap [DEVICE [leak]]
 */
#include <allot/compact.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void must(allot_status status)
{
    if (status != ALLOT_STATUS_OK) {
        fprintf(stderr, "%s\n", allot_error_detail());
        exit(1);
    }
}

static void tell_leak(void *context, const allot_block_info *block)
{
    (void)context;
    printf("left behind: %" PRIu64 " bytes, tag %" PRIu32 "\n", block->size_requested, block->tag);
}

int main(int argc, char **argv)
{
    const allot_heap_options options = {
        .struct_size = sizeof options, .limit = UINT64_C(256) << 20, .leak = tell_leak};
    const allot_request request = {.struct_size = sizeof request, .size = 1000000, .tag = 7};
    allot_device *device = NULL;
    allot_heap *heap = NULL;
    allot_handle block;
    allot_devptr at;
    allot_heap_stats stats;
    must(allot_device_open(argc > 1 ? argv[1] : "host", &device));
    must(allot_heap_create(device, &options, &heap));
    must(allot_compact_attach(heap, NULL)); /* rather than refuse, it moves blocks */
    must(allot_heap_alloc(heap, &request, &block));
    must(allot_heap_pin(heap, block, &at)); /* its address, which holds until it is unpinned */
    must(allot_device_fill(device, request.stream, at, 0xFF, request.size));
    must(allot_heap_unpin(heap, block));
    must(allot_heap_get_stats(heap, &stats));
    printf("allocated %" PRIu64 " of %" PRIu64 " bytes\n", stats.allocated_bytes.current,
           stats.reserved_bytes.current);
    if (argc <= 2) {
        must(allot_heap_free(heap, block)); /* in the order of its stream: nobody waits */
    }
    allot_heap_destroy(heap); /* tells of what was not freed */
    allot_device_destroy(device);
    return 0;
}
