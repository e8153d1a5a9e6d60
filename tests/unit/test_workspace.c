/* SPDX-License-Identifier: MIT */
/* The table of workspaces: from texts and from files, and what is refused. */
#include <allot/workspace.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

static allot_workspaces empty(void)
{
    return (allot_workspaces){.struct_size = sizeof(allot_workspaces)};
}

static void entries_have_names_and_texts(void)
{
    for (unsigned i = 0; i < ALLOT_WORKSPACE_COUNT; i++) {
        CHECK(allot_workspace_name((allot_workspace)i)[0] != '\0');
        CHECK(strlen(allot_workspace_text((allot_workspace)i)) > 10);
    }
    CHECK_STR(allot_workspace_name(ALLOT_WORKSPACE_cudnn), "cudnn");
    CHECK_STR(allot_workspace_name(ALLOT_WORKSPACE_COUNT), "");
}

static void a_text_sets_what_it_names(void)
{
    allot_workspaces table = empty();
    REQUIRE_OK(allot_workspaces_parse("cudnn=64MiB,nccl=0", &table));
    CHECK_EQ(table.size[ALLOT_WORKSPACE_cudnn], 64 << 20);
    CHECK(table.is_set[ALLOT_WORKSPACE_nccl]);
    CHECK_EQ(table.size[ALLOT_WORKSPACE_nccl], 0);
    CHECK(!table.is_set[ALLOT_WORKSPACE_cufft]);
    REQUIRE_OK(allot_workspaces_parse("cudnn=1", &table));
    CHECK_EQ(table.size[ALLOT_WORKSPACE_cudnn], 1);
    CHECK(table.is_set[ALLOT_WORKSPACE_nccl]);
}

static void a_wrong_text_changes_nothing(void)
{
    static const struct {
        const char *text;
        const char *message;
    } wrong[] = {
        {"cudnn=1,cudn=2", "\"cudn\"; there are context, cudnn, "},
        {"cudnn=1,nccl", "\"nccl\": expected NAME=SIZE"},
        {"cudnn=1,nccl=much", "workspace nccl: "},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        allot_workspaces table = empty();
        CHECK_EQ(allot_workspaces_parse(wrong[i].text, &table), ALLOT_STATUS_INVALID);
        CHECK_CONTAINS(allot_error_detail(), wrong[i].message);
        CHECK(!table.is_set[ALLOT_WORKSPACE_cudnn]);
    }
}

/** Read a table from a file with this content. */
static allot_status read_file(const char *content, allot_workspaces *out)
{
    char path[] = "/tmp/allot-workspace-XXXXXX";
    const int descriptor = mkstemp(path);
    FILE *const file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!CHECK(file != NULL)) {
        return ALLOT_STATUS_IO;
    }
    fputs(content, file);
    fclose(file);
    const allot_status status = allot_workspaces_read(path, out);
    unlink(path);
    return status;
}

static void a_file_takes_numbers_and_texts(void)
{
    allot_workspaces table = empty();
    REQUIRE_OK(read_file("{\"schema\": \"allot-workspaces/1\", \"cudnn\": \"1.5MiB\","
                         " \"nccl\": 209715200}",
                         &table));
    CHECK_EQ(table.size[ALLOT_WORKSPACE_cudnn], 3 << 19);
    CHECK_EQ(table.size[ALLOT_WORKSPACE_nccl], 200 << 20);
}

static void a_wrong_file_changes_nothing(void)
{
    static const struct {
        const char *content;
        allot_status status;
        const char *message;
    } wrong[] = {
        {"{\"cudnn\": 1}", ALLOT_STATUS_VERSION, "\"schema\": expected allot-workspaces/1"},
        {"[]", ALLOT_STATUS_VERSION, "\"schema\""},
        {"{", ALLOT_STATUS_FORMAT, "not JSON"},
        {"{\"schema\": \"allot-workspaces/1\", \"cudnn\": 1, \"cublast\": 1}", ALLOT_STATUS_FORMAT,
         "\"cublast\""},
        {"{\"schema\": \"allot-workspaces/1\", \"cudnn\": 1, \"nccl\": [1]}", ALLOT_STATUS_FORMAT,
         "\"nccl\": expected a size"},
        {"{\"schema\": \"allot-workspaces/1\", \"cudnn\": 1, \"nccl\": -5}", ALLOT_STATUS_FORMAT,
         "nccl"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        allot_workspaces table = empty();
        CHECK_EQ(read_file(wrong[i].content, &table), wrong[i].status);
        CHECK_CONTAINS(allot_error_detail(), wrong[i].message);
        CHECK(!table.is_set[ALLOT_WORKSPACE_cudnn]);
    }
    allot_workspaces table = empty();
    CHECK_EQ(allot_workspaces_read("/no/such/file", &table), ALLOT_STATUS_IO);
}

static const check_test TESTS[] = {
    {"a_file_takes_numbers_and_texts", a_file_takes_numbers_and_texts},
    {"a_text_sets_what_it_names", a_text_sets_what_it_names},
    {"a_wrong_file_changes_nothing", a_wrong_file_changes_nothing},
    {"a_wrong_text_changes_nothing", a_wrong_text_changes_nothing},
    {"entries_have_names_and_texts", entries_have_names_and_texts},
};
CHECK_MAIN(TESTS)
