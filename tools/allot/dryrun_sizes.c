/* SPDX-License-Identifier: MIT */
#include "dryrun_sizes.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "dryrun_put.h"
#include "dryrun_words.h"

bool dryrun_read_workspaces(const char *text, allot_workspaces *out)
{
    *out = (allot_workspaces){.struct_size = sizeof *out};
    if (text == NULL) {
        return true;
    }
    const allot_status status = strchr(text, '=') != NULL && access(text, R_OK) != 0
                                    ? allot_workspaces_parse(text, out)
                                    : allot_workspaces_read(text, out);
    if (status != ALLOT_STATUS_OK) {
        cli_usage("--workspace: %s", allot_error_detail());
    }
    return status == ALLOT_STATUS_OK;
}

uint64_t dryrun_sizes_spread(const dryrun_result *result)
{
    uint64_t spread = 0;
    for (uint32_t i = 0; i < result->size_count; i++) {
        const dryrun_size *const size = &result->sizes[i];
        if (size->most > size->largest) {
            spread += size->most - size->largest;
        }
    }
    return spread;
}

/* ---- text ---- */

static void print_size(const dryrun_size *size)
{
    static const char *const origins[] = {"as real hardware", "from --workspace",
                                          "from the installed cuDNN", "", "not known"};
    printf("    %s: ", size->name);
    if (size->basis != DRYRUN_BASIS_UNKNOWN) {
        printf("%s%s", size->is_taken || size->calls == 1 ? "" : "up to ",
               dryrun_size_text(size->largest));
        if (size->most > size->largest) {
            printf(", %s at most", dryrun_size_text(size->most));
        }
        printf(", ");
    }
    printf("%s (%s)\n", size->basis == DRYRUN_BASIS_RULE ? size->source : origins[size->basis],
           dryrun_times_text(size->calls));
}

/** What is exact, or by its rule nothing, is not. */
static bool is_worth_a_line(const dryrun_size *size)
{
    return size->basis != DRYRUN_BASIS_EXACT &&
           (size->basis != DRYRUN_BASIS_RULE || size->most != 0);
}

static void print_cudnn(const dryrun_cudnn *cudnn)
{
    if (cudnn->problem[0] != '\0') {
        printf("  cuDNN (%s) was no help: %s\n", cudnn->library, cudnn->problem);
    }
    if (cudnn->version != 0 && cudnn->queries != 0) {
        printf("  cuDNN %" PRIu64 ".%" PRIu64 ".%" PRIu64 " was asked %" PRIu64
               " times; NVIDIA's licence limits its use on machines without NVIDIA GPUs\n",
               cudnn->version / 10000, cudnn->version / 100 % 100, cudnn->version % 100,
               cudnn->queries);
    }
}

void dryrun_print_sizes(const dryrun_result *result)
{
    bool has_title = false;
    for (uint32_t i = 0; i < result->size_count; i++) {
        if (is_worth_a_line(&result->sizes[i])) {
            if (!has_title) {
                printf("  sizes that real hardware would tell:\n");
                has_title = true;
            }
            print_size(&result->sizes[i]);
        }
    }
    print_cudnn(&result->cudnn);
}

static bool is_missing(const dryrun_result *result, const char *workspace)
{
    for (uint32_t i = 0; i < result->size_count; i++) {
        if (result->sizes[i].basis == DRYRUN_BASIS_UNKNOWN &&
            strcmp(result->sizes[i].workspace, workspace) == 0) {
            return true;
        }
    }
    return false;
}

/** Whether a graph is among what is not known: cuDNN's older routines do not answer without a GPU.
 */
static bool can_cudnn_help(const dryrun_result *result)
{
    bool can_help = false;
    for (uint32_t i = 0; i < result->size_count && result->cudnn.library[0] == '\0'; i++) {
        can_help = can_help || (result->sizes[i].basis == DRYRUN_BASIS_UNKNOWN &&
                                strcmp(result->sizes[i].name, "cuDNN workspaces") == 0);
    }
    return can_help;
}

void dryrun_print_ways_out(const dryrun_result *result)
{
    const char *separator = "  to assume sizes: --workspace ";
    for (unsigned i = 0; i < ALLOT_WORKSPACE_COUNT; i++) {
        const char *const name = allot_workspace_name((allot_workspace)i);
        if (is_missing(result, name)) {
            printf("%s%s=SIZE", separator, name);
            separator = ",";
        }
    }
    if (separator[0] != ',') {
        return;
    }
    printf("\n");
    if (can_cudnn_help(result)) {
        printf("  to ask an installed cuDNN, 9.8 or newer: --cudnn\n");
    }
    if (result->has_peaks && !is_missing(result, "cudnn_reserve")) {
        printf(
            "  the peak below is without them; each lives for one call, so that it fits if none is "
            "larger than the headroom\n");
    } else if (result->has_peaks) {
        printf("  the peak below is without them\n");
    }
}

/* ---- JSON ---- */

static void put_cudnn(yajl_gen json, const dryrun_cudnn *cudnn)
{
    if (cudnn->library[0] == '\0') {
        dryrun_put_null(json, "cudnn");
        return;
    }
    dryrun_put_key(json, "cudnn");
    yajl_gen_map_open(json);
    dryrun_put_text(json, "library", cudnn->library);
    dryrun_put_text(json, "problem", cudnn->problem);
    dryrun_put_number(json, "version", cudnn->version);
    dryrun_put_number(json, "queries", cudnn->queries);
    yajl_gen_map_close(json);
}

static void put_size(yajl_gen json, const dryrun_size *size)
{
    static const char *const texts[] = {DRYRUN_BASIS_TEXTS};
    yajl_gen_map_open(json);
    dryrun_put_text(json, "name", size->name);
    dryrun_put_text(json, "basis", texts[size->basis]);
    dryrun_put_text(json, "workspace", size->workspace);
    dryrun_put_text(json, "source", size->source);
    dryrun_put_bool(json, "taken", size->is_taken);
    dryrun_put_number(json, "calls", size->calls);
    dryrun_put_number(json, "largest", size->largest);
    dryrun_put_number(json, "most", size->most);
    yajl_gen_map_close(json);
}

void dryrun_put_sizes(yajl_gen json, const dryrun_result *result)
{
    dryrun_put_key(json, "workspaces");
    yajl_gen_array_open(json);
    for (uint32_t i = 0; i < result->size_count; i++) {
        put_size(json, &result->sizes[i]);
    }
    yajl_gen_array_close(json);
    put_cudnn(json, &result->cudnn);
}
