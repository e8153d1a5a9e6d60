/* SPDX-License-Identifier: MIT */
/* allot bench: what allot's strategies, heaps and devices do on this machine. */
#include "bench.h"
#include "verbs.h"

static int wants_json;
static int is_quick;
static const char *device_text = "host";

static const struct poptOption OPTIONS[] = {
    {"device", 'd', POPT_ARG_STRING, &device_text, 0,
     "Device that heaps and copies run on; allot doctor lists them (default: host)", "DEVICE"},
    {"quick", 'q', POPT_ARG_NONE, &is_quick, 0, "A few seconds, and rougher figures", NULL},
    {"json", '\0', POPT_ARG_NONE, &wants_json, 0, "Print JSON (docs/json.md)", NULL},
    POPT_TABLEEND};

static cli_exit print(const bench_results *results)
{
    cli_exit code = CLI_OK;
    if (wants_json != 0) {
        code = bench_print_json(results);
    } else {
        bench_print_text(results);
    }
    const cli_exit written = cli_close_output(NULL, stdout);
    return code == CLI_OK ? written : code;
}

static cli_exit run(const char *const *files, size_t count)
{
    (void)files;
    if (count != 0) {
        return cli_usage("no arguments are expected");
    }
    allot_device *device = NULL;
    bench_results results = {.device = device_text, .is_quick = is_quick != 0};
    allot_status status = allot_device_open(device_text, &device);
    if (status == ALLOT_STATUS_OK) {
        status = bench_run(device, &results);
    }
    allot_device_destroy(device);
    if (status != ALLOT_STATUS_OK) {
        const cli_exit code = cli_fail(status);
        return code == CLI_USAGE ? code : CLI_FAILED;
    }
    return print(&results);
}

const cli_verb cli_verb_bench = {.name = "bench",
                                 .arguments = "",
                                 .summary = "What strategies, heaps and devices do on this machine",
                                 .options = OPTIONS,
                                 .run = run};
