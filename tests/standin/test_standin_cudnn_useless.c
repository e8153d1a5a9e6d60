/* SPDX-License-Identifier: MIT */
/* Where the named cuDNN is of no use the program goes on, and the report says why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cudnn_convolution.h"
#include "support/standin.h"

/** In a process of its own: a convolution with this cuDNN; the report's text. */
static void report_with(const char *library, char *report, size_t size)
{
    char folder[] = "/tmp/allot-useless-XXXXXX";
    char settings[4096];
    char path[128];
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(settings, sizeof settings, "report:%s/report,oracle:%s", folder, library);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        standin_load(settings);
        const convolution_result result = convolve(4);
        exit(result.count == 1 && result.workspace[0] == 0 ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    snprintf(path, sizeof path, "%s/report.%ld", folder, (long)child);
    FILE *const file = fopen(path, "r");
    REQUIRE(file != NULL);
    report[fread(report, 1, size - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    rmdir(folder);
}

static void check_problem(const char *library, const char *problem)
{
    char report[1 << 16] = "";
    report_with(library, report, sizeof report);
    CHECK_CONTAINS(report, problem);
    CHECK_CONTAINS(report, "\"name\":\"cuDNN workspaces\",\"basis\":\"unknown\"");
}

static void it_is_not_there(void)
{
    check_problem("/no/such/libcudnn.so.9", "it cannot be loaded: /no/such/libcudnn.so.9");
}

static void it_is_too_old(void)
{
    check_problem(CUDNN_DOUBLES "old/libcudnn.so.9",
                  "it is version 9.7, and only 9.8 and newer answer without a GPU");
}

static void it_is_another_library(void)
{
    check_problem(CUDNN_DOUBLES "none/libcudnn.so.9", "it has no cudnn");
}

static const check_test TESTS[] = {
    {"it_is_another_library", it_is_another_library},
    {"it_is_not_there", it_is_not_there},
    {"it_is_too_old", it_is_too_old},
};
CHECK_MAIN(TESTS)
