/* SPDX-License-Identifier: MIT */
/* allot doctor: what of this machine allot can use, and why not the rest. */
#include <sys/mman.h>

#include "doctor.h"
#include "dryrun_run.h"
#include "verbs.h"

static int wants_json;
static const char *device;

static const struct poptOption OPTIONS[] = {
    {"json", '\0', POPT_ARG_NONE, &wants_json, 0, "Print JSON (docs/json.md)", NULL},
    {"device", 'd', POPT_ARG_STRING, &device, 0,
     "Open one device, as a program would (cuda:1; simulated,gpu:rtx4090), and show that alone",
     "DEVICE"},
    POPT_TABLEEND};

static cli_exit print(const doctor_findings *findings)
{
    cli_exit code = CLI_OK;
    if (wants_json != 0) {
        code = doctor_print_json(findings);
    } else {
        doctor_print_text(findings);
    }
    const cli_exit written = cli_close_output(NULL, stdout);
    return code == CLI_OK ? written : code;
}

/** One device; a text that is wrong is wrong usage, a device that is not there a failure. */
static cli_exit look_at_device(doctor_findings *findings)
{
    doctor_device *const found = &findings->devices[0];
    findings->is_one_device = true;
    findings->device_count = 1;
    found->given = device;
    doctor_ask_device(device, found);
    if (found->status != ALLOT_STATUS_OK) {
        const cli_exit code = cli_fail(found->status);
        return code == CLI_USAGE ? code : CLI_FAILED;
    }
    return print(findings);
}

static cli_exit look_at_all(doctor_findings *findings)
{
    doctor_find_devices(findings);
    doctor_find_facts(findings);
    if (!dryrun_find_standin(findings->standin, sizeof findings->standin)) {
        findings->standin[0] = '\0';
    }
    return print(findings);
}

static cli_exit run(const char *const *files, size_t count)
{
    (void)files;
    if (count != 0) {
        return cli_usage("no arguments are expected");
    }
    doctor_findings *const findings =
        mmap(NULL, sizeof *findings, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (findings == MAP_FAILED) {
        fprintf(stderr, "allot: out of memory\n");
        return CLI_FAILED;
    }
    const cli_exit code = device != NULL ? look_at_device(findings) : look_at_all(findings);
    (void)munmap(findings, sizeof *findings);
    return code;
}

const cli_verb cli_verb_doctor = {.name = "doctor",
                                  .arguments = "",
                                  .summary = "What of this machine allot can use, and why not more",
                                  .options = OPTIONS,
                                  .run = run};
