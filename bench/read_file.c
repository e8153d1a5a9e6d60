/* SPDX-License-Identifier: MIT */
/* read_file FILE: reads a trace and prints what it holds; bench/read.py measures the process. */
#include <allot/trace.h>
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: read_file FILE\n", stderr);
        return 2;
    }
    allot_trace *trace = NULL;
    if (allot_trace_read(argv[1], NULL, &trace) != ALLOT_STATUS_OK) {
        fprintf(stderr, "%s\n", allot_error_detail());
        return 3;
    }
    uint64_t event_count = 0;
    for (uint32_t i = 0; i < allot_trace_device_count(trace); i++) {
        allot_events events;
        allot_trace_get_events(trace, i, &events);
        event_count += events.count;
    }
    printf("%" PRIu64 " events, %" PRIu32 " stacks, %" PRIu32 " frames, %" PRIu32 " strings\n",
           event_count, allot_trace_stack_count(trace), allot_trace_frame_count(trace),
           allot_trace_string_count(trace));
    allot_trace_destroy(trace);
    return 0;
}
