/* SPDX-License-Identifier: MIT */
#include "dryrun_words.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

const char *dryrun_size_text(uint64_t size)
{
    static char texts[8][ALLOT_SIZE_TEXT_MAX];
    static unsigned next;
    next = (next + 1) % 8;
    return allot_size_format(size, texts[next]);
}

const char *dryrun_card_text(const dryrun_request *request, char *buffer, size_t size)
{
    if (request->limit == 0) {
        snprintf(buffer, size, "%s (%s)", request->gpu.name,
                 dryrun_size_text(request->gpu.memory_total));
    } else {
        snprintf(buffer, size, "%s with %s", request->gpu.name, dryrun_size_text(request->limit));
    }
    return buffer;
}

const char *dryrun_verdict_text(dryrun_verdict verdict)
{
    static const char *const texts[] = {"fits", "out of memory", "failed", "incomplete"};
    return texts[verdict];
}

const char *dryrun_smallest_text(const dryrun_smallest *smallest, char *buffer, size_t size)
{
    char imported[64] = "";
    if (smallest->imported != 0) {
        snprintf(imported, sizeof imported, " and %zu imported", smallest->imported);
    }
    snprintf(buffer, size, "of the %zu listed%s%s", allot_gpu_count(), imported,
             smallest->is_used     ? ": the one of this run"
             : smallest->is_listed ? ", by its memory alone: --fit runs on it"
                                   : ", by its memory alone");
    return buffer;
}

const char *dryrun_fits_remark(const dryrun_result *result, char *buffer, size_t size)
{
    const bool is_approximate = dryrun_is_approximate(result);
    if (result->oom_count != 0) {
        snprintf(buffer, size, " (%" PRIu32 "%s out-of-memory caught%s)", result->oom_count,
                 result->oom_count == DRYRUN_OOM_MAX ? " or more" : "",
                 is_approximate ? ", approximate" : "");
    } else {
        snprintf(buffer, size, "%s", is_approximate ? " (approximate)" : "");
    }
    return buffer;
}

const char *dryrun_exact_text(uint64_t size)
{
    static char texts[4][64];
    static unsigned next;
    next = (next + 1) % 4;
    snprintf(texts[next], sizeof texts[next], "%llu MiB", (unsigned long long)(size >> 20));
    return texts[next];
}

const char *dryrun_conf_text(const char *conf)
{
    return conf[0] == '\0' ? "default" : conf;
}

const char *dryrun_times_text(uint64_t count)
{
    static char texts[4][32];
    static unsigned next;
    next = (next + 1) % 4;
    snprintf(texts[next], sizeof texts[next], count == 1 ? "once" : "%" PRIu64 " times", count);
    return texts[next];
}

const char *dryrun_context_source(const dryrun_request *request, const dryrun_result *result,
                                  const char **reference)
{
    const allot_gpu_field field = strncmp(result->cuda, "12", 2) == 0
                                      ? ALLOT_GPU_FIELD_memory_context_12
                                      : ALLOT_GPU_FIELD_memory_context;
    const bool is_given = request->workspaces.is_set[ALLOT_WORKSPACE_context];
    const allot_gpu_source source = (allot_gpu_source)request->gpu.source[field];
    if (reference != NULL) {
        *reference = is_given ? "" : request->gpu.reference[field];
    }
    if (is_given) {
        return "from --workspace";
    }
    return source == ALLOT_GPU_SOURCE_UNKNOWN ? "an assumption" : allot_gpu_source_text(source);
}

const char *dryrun_short_line(const char *line)
{
    const char *const slash = strrchr(line, '/');
    return slash == NULL ? line : slash + 1;
}

const char *dryrun_near_line(const char *line)
{
    char folder[DRYRUN_PATH_MAX];
    const size_t length = getcwd(folder, sizeof folder) == NULL ? 0 : strlen(folder);
    const bool is_near = length > 1 && strncmp(line, folder, length) == 0 && line[length] == '/';
    return is_near ? line + length + 1 : line;
}
