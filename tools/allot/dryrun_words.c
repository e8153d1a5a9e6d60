/* SPDX-License-Identifier: MIT */
#include "dryrun_words.h"

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
