/* SPDX-License-Identifier: MIT */
/* Every recorded trace, written in each lossless way and read back, says the same. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"
#include "support/trace_equal.h"

static void check_file(const char *path, const char *name, allot_trace_format format)
{
    allot_trace *trace = NULL;
    if (!CHECK_OK(allot_trace_read(path, NULL, &trace))) {
        return;
    }
    const allot_trace_format from = allot_trace_get_format(trace);
    if (format == ALLOT_TRACE_FORMAT_ALLOT || from == ALLOT_TRACE_FORMAT_TORCH_PICKLE) {
        allot_trace *const back = trace_round_trip(trace, format);
        if (back == NULL || !trace_equal(trace, back)) {
            printf("  in %s\n", name);
        }
        allot_trace_destroy(back);
    }
    allot_trace_destroy(trace);
}

static void check_folder(const char *folder, allot_trace_format format)
{
    const char *const found = check_data(folder);
    if (found == NULL) {
        check_skip("the shared data is not there");
        return;
    }
    char root[3072];
    snprintf(root, sizeof root, "%s", found);
    DIR *const list = opendir(root);
    REQUIRE(list != NULL);
    for (const struct dirent *entry = readdir(list); entry != NULL; entry = readdir(list)) {
        const char *const name = entry->d_name;
        if (name[0] == '.' || strstr(name, ".md") != NULL || strstr(name, ".py") != NULL) {
            continue;
        }
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", root, name);
        check_file(path, name, format);
    }
    closedir(list);
}

static void snapshots_survive_allots_own_format(void)
{
    check_folder("snapshots", ALLOT_TRACE_FORMAT_ALLOT);
    check_folder("oracle", ALLOT_TRACE_FORMAT_ALLOT);
}

static void snapshots_survive_pytorchs_format(void)
{
    check_folder("snapshots", ALLOT_TRACE_FORMAT_TORCH_PICKLE);
    check_folder("oracle", ALLOT_TRACE_FORMAT_TORCH_PICKLE);
}

static const check_test TESTS[] = {
    {"snapshots_survive_allots_own_format", snapshots_survive_allots_own_format},
    {"snapshots_survive_pytorchs_format", snapshots_survive_pytorchs_format},
};
CHECK_MAIN(TESTS)
