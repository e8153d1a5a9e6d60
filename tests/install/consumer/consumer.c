/* SPDX-License-Identifier: MIT */
/* Valid C and C++: asks the library for something that fails and shows what it says. */
#include <allot/allot.h>
#include <stdio.h>

int main(void)
{
    allot_trace *trace = NULL;
    const allot_status status = allot_trace_read_memory("", 0, "nothing", NULL, &trace);
    printf("%s %s: %s\n", allot_version(), allot_status_name(status), allot_error_detail());
    return 0;
}
