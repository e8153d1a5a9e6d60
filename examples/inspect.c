/* SPDX-License-Identifier: MIT */
/* What each device of a trace held at its peak, and the lines of code that held most of it. */
#include <allot/allot.h>
#include <stdio.h>

enum { TOP = 3 };

static allot_status print_device(const allot_trace *trace, uint32_t device,
                                 const allot_lines *lines)
{
    char size[ALLOT_SIZE_TEXT_MAX];
    allot_moment *moment = NULL;
    allot_groups groups = {0};
    allot_history *history = NULL;
    allot_status status = allot_history_create(trace, device, NULL, &history);
    if (status == ALLOT_STATUS_OK) {
        const allot_peak peak = allot_history_peak(history, ALLOT_MEASURE_ALLOCATED);
        printf("device %u: peak %s\n", allot_trace_get_device(trace, device)->index,
               allot_size_format(peak.size, size));
        status = allot_history_at(history, peak.event, &moment);
    }
    if (status == ALLOT_STATUS_OK) {
        status = allot_groups_init(moment, ALLOT_GROUP_LINE, lines, NULL, &groups);
    }
    for (uint32_t i = 0; i < groups.count && i < TOP; i++) {
        printf("%10s  %s\n", allot_size_format(groups.items[i].size, size),
               allot_lines_text(lines, groups.items[i].key));
    }
    allot_groups_fini(&groups);
    allot_moment_destroy(moment);
    allot_history_destroy(history);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s TRACE\n", argv[0]);
        return 2;
    }
    allot_trace *trace = NULL;
    allot_lines *lines = NULL;
    allot_status status = allot_trace_read(argv[1], NULL, &trace);
    if (status == ALLOT_STATUS_OK) {
        status = allot_lines_create(trace, NULL, &lines);
    }
    for (uint32_t d = 0; status == ALLOT_STATUS_OK && d < allot_trace_device_count(trace); d++) {
        status = print_device(trace, d, lines);
    }
    if (status != ALLOT_STATUS_OK) {
        fprintf(stderr, "%s\n", allot_error_detail());
    }
    allot_lines_destroy(lines);
    allot_trace_destroy(trace);
    return status == ALLOT_STATUS_OK ? 0 : 1;
}
