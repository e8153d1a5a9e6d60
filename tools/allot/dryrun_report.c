/* SPDX-License-Identifier: MIT */
/* Reads what a dry run left: the report of the Python side and that of the stand-in. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include "dryrun_run.h"

enum { REPORT_SIZE_MAX = 16 << 20 };

/** Parse a JSON file; NULL if it is not there or is not JSON. */
static yajl_val read_json(const char *path)
{
    struct stat info;
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    yajl_val root = NULL;
    char *text = NULL;
    if (fstat(fileno(file), &info) == 0 && info.st_size < REPORT_SIZE_MAX &&
        (text = malloc((size_t)info.st_size + 1)) != NULL) {
        const size_t size = fread(text, 1, (size_t)info.st_size, file);
        text[size] = '\0';
        root = yajl_tree_parse(text, NULL, 0);
    }
    free(text);
    fclose(file);
    return root;
}

static yajl_val member(yajl_val object, const char *key)
{
    const char *path[] = {key, NULL};
    return YAJL_IS_OBJECT(object) ? yajl_tree_get(object, path, yajl_t_any) : NULL;
}

static uint64_t number(yajl_val object, const char *key)
{
    yajl_val value = member(object, key);
    return YAJL_IS_INTEGER(value) && YAJL_GET_INTEGER(value) > 0 ? (uint64_t)YAJL_GET_INTEGER(value)
                                                                 : 0;
}

static void text(yajl_val object, const char *key, char *out, size_t size)
{
    yajl_val value = member(object, key);
    const char *const found = YAJL_GET_STRING(value);
    snprintf(out, size, "%s", found == NULL ? "" : found);
}

static bool is_true(yajl_val object, const char *key)
{
    return YAJL_IS_TRUE(member(object, key));
}

static size_t length(yajl_val array)
{
    return YAJL_IS_ARRAY(array) ? YAJL_GET_ARRAY(array)->len : 0;
}

static void add(dryrun_count *list, uint32_t *count, const char *name, uint64_t times)
{
    if (*count < DRYRUN_LIST_MAX) {
        snprintf(list[*count].name, sizeof list[*count].name, "%s", name);
        list[(*count)++].count = times;
    }
}

/** An object of names and numbers. */
static void read_counts(yajl_val object, dryrun_count *list, uint32_t *count)
{
    for (size_t i = 0; YAJL_IS_OBJECT(object) && i < YAJL_GET_OBJECT(object)->len; i++) {
        const char *const name = YAJL_GET_OBJECT(object)->keys[i];
        add(list, count, name, number(object, name));
    }
}

/* ---- the Python side ---- */

static void read_ooms(yajl_val array, dryrun_result *out)
{
    for (size_t i = 0; i < length(array) && out->oom_count < DRYRUN_OOM_MAX; i++) {
        yajl_val from = YAJL_GET_ARRAY(array)->values[i];
        dryrun_oom *const to = &out->oom[out->oom_count++];
        to->device = (uint32_t)number(from, "device");
        to->size = number(from, "size");
        to->free = number(from, "free");
        to->allocated = number(from, "allocated");
        to->reserved = number(from, "reserved");
        to->step = number(from, "step");
        text(from, "line", to->line, sizeof to->line);
    }
}

/** A GPU that the program allocated on. */
static void add_use(yajl_val from, dryrun_result *out)
{
    const uint64_t reserved = number(from, "reserved_peak");
    if (reserved != 0 && out->use_count < DRYRUN_DEVICES_MAX) {
        out->uses[out->use_count++] = (dryrun_use){.device = (uint32_t)number(from, "device"),
                                                   .allocated_peak = number(from, "allocated_peak"),
                                                   .reserved_peak = reserved};
    }
}

/** The device that held most stands for all: they have the same memory. */
static void read_peaks(yajl_val array, dryrun_result *out)
{
    for (size_t i = 0; i < length(array); i++) {
        yajl_val from = YAJL_GET_ARRAY(array)->values[i];
        out->has_peaks = true;
        add_use(from, out);
        out->retries += number(from, "retries");
        if (number(from, "reserved_peak") >= out->reserved_peak) {
            out->device = (uint32_t)number(from, "device");
            out->reserved_peak = number(from, "reserved_peak");
            out->allocated_peak = number(from, "allocated_peak");
            out->requested_peak = number(from, "requested_peak");
        }
    }
}

static void read_exception(yajl_val object, dryrun_result *out)
{
    char type[256];
    char words[DRYRUN_TEXT_MAX];
    if (!YAJL_IS_OBJECT(object)) {
        return;
    }
    text(object, "type", type, sizeof type);
    text(object, "text", words, sizeof words);
    snprintf(out->exception, sizeof out->exception, "%.200s%s%.800s", type,
             words[0] == '\0' ? "" : ": ", words);
    text(object, "line", out->exception_line, sizeof out->exception_line);
    out->failed_at = number(object, "time");
}

static void read_process(yajl_val root, dryrun_result *out)
{
    out->has_process = true;
    out->is_finished = is_true(root, "finished");
    text(root, "torch", out->torch, sizeof out->torch);
    text(root, "cuda", out->cuda, sizeof out->cuda);
    text(root, "hip", out->hip, sizeof out->hip);
    text(root, "python", out->python, sizeof out->python);
    text(root, "conf", out->conf, sizeof out->conf);
    out->steps = number(root, "steps");
    if (YAJL_IS_INTEGER(member(root, "rank"))) {
        out->rank = (int64_t)number(root, "rank");
    }
    read_ooms(member(root, "oom"), out);
    read_peaks(member(root, "devices"), out);
    read_exception(member(root, "exception"), out);
    read_counts(member(root, "assumptions"), out->assumptions, &out->assumption_count);
    yajl_val problems = member(root, "problems");
    for (size_t i = 0; i < length(problems); i++) {
        const char *const problem = YAJL_GET_STRING(YAJL_GET_ARRAY(problems)->values[i]);
        add(out->problems, &out->problem_count, problem == NULL ? "" : problem, 1);
    }
}

/* ---- the stand-in ---- */

static void read_guesses(yajl_val object, dryrun_result *out)
{
    for (size_t i = 0; YAJL_IS_OBJECT(object) && i < YAJL_GET_OBJECT(object)->len; i++) {
        out->guess_calls += number(object, YAJL_GET_OBJECT(object)->keys[i]);
    }
}

/** A word that is not one of them, from a newer stand-in, is as good as no knowledge. */
static dryrun_basis basis_of(const char *word)
{
    static const char *const words[] = {DRYRUN_BASIS_TEXTS};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i], word) == 0) {
            return (dryrun_basis)i;
        }
    }
    return DRYRUN_BASIS_UNKNOWN;
}

static void read_size(yajl_val from, dryrun_result *out)
{
    char word[32];
    dryrun_size size = {.calls = number(from, "calls"),
                        .largest = number(from, "largest"),
                        .most = number(from, "most"),
                        .is_taken = is_true(from, "taken")};
    text(from, "name", size.name, sizeof size.name);
    text(from, "workspace", size.workspace, sizeof size.workspace);
    text(from, "source", size.source, sizeof size.source);
    text(from, "basis", word, sizeof word);
    size.basis = basis_of(word);
    if (size.basis == DRYRUN_BASIS_UNKNOWN) {
        add(out->unknown, &out->unknown_count, size.name, size.calls);
    }
    if (out->size_count < DRYRUN_LIST_MAX) {
        out->sizes[out->size_count++] = size;
    }
}

static void read_cudnn(yajl_val from, dryrun_cudnn *out)
{
    text(from, "library", out->library, sizeof out->library);
    text(from, "problem", out->problem, sizeof out->problem);
    out->version = number(from, "version");
    out->queries = number(from, "queries");
}

static void read_standin(yajl_val root, dryrun_result *out)
{
    out->has_standin = true;
    yajl_val devices = member(root, "devices");
    for (size_t i = 0; i < length(devices); i++) {
        yajl_val device = YAJL_GET_ARRAY(devices)->values[i];
        out->device_total = number(device, "total");
        if (out->device_count < DRYRUN_DEVICES_MAX) {
            out->devices[out->device_count++] = (dryrun_device){
                .number = (uint32_t)number(device, "number"), .peak = number(device, "peak")};
        }
        if (number(device, "peak") > out->device_peak) {
            out->device_peak = number(device, "peak");
            out->context = number(device, "context");
        }
        out->refused_size = out->refusals == 0 ? number(device, "refused_size") : out->refused_size;
        out->refusals += number(device, "refusals");
    }
    text(member(root, "nccl"), "fault", out->fault, sizeof out->fault);
    out->pinned_peak = number(root, "pinned_peak");
    yajl_val reads = member(root, "reads");
    out->reads = number(reads, "small");
    out->is_stopped = is_true(reads, "stopped");
    text(reads, "last_question", out->last_question, sizeof out->last_question);
    read_counts(member(reads, "booleans"), out->boolean_lines, &out->boolean_line_count);
    read_counts(member(reads, "rules"), out->rules, &out->rule_count);
    read_counts(member(reads, "sizes"), out->size_lines, &out->size_line_count);
    read_counts(member(reads, "values"), out->value_lines, &out->value_line_count);
    out->is_python = is_true(root, "is_python");
    yajl_val own = member(root, "own_runtimes");
    for (size_t i = 0; i < length(own); i++) {
        const char *const name = YAJL_GET_STRING(YAJL_GET_ARRAY(own)->values[i]);
        add(out->own_runtimes, &out->own_runtime_count, name == NULL ? "" : name, 1);
    }
    read_guesses(member(root, "guessed"), out);
    yajl_val sizes = member(root, "sizes");
    for (size_t i = 0; i < length(sizes); i++) {
        read_size(YAJL_GET_ARRAY(sizes)->values[i], out);
    }
    read_cudnn(member(root, "cudnn"), &out->cudnn);
    yajl_val missing = member(root, "missing");
    for (size_t i = 0; i < length(missing); i++) {
        const char *const name = YAJL_GET_STRING(YAJL_GET_ARRAY(missing)->values[i]);
        add(out->missing, &out->missing_count, name == NULL ? "" : name, 1);
    }
}

/* ---- what a signal left ---- */

/** First line of a file, "" if there is none. */
static void read_line(const char *path, char *out, size_t size)
{
    FILE *const file = fopen(path, "r");
    out[0] = '\0';
    if (file != NULL && fgets(out, (int)size, file) != NULL) {
        out[strcspn(out, "\n")] = '\0';
    }
    if (file != NULL) {
        fclose(file);
    }
}

/** "train.py:7" of Python's '  File "train.py", line 7 in step'; false for other lines. */
static bool parse_frame(const char *line, char *out, size_t size)
{
    static const char before[] = "  File \"";
    static const char between[] = "\", line ";
    const char *const name = line + sizeof before - 1;
    const char *const end =
        strncmp(line, before, sizeof before - 1) == 0 ? strstr(name, between) : NULL;
    if (end == NULL) {
        return false;
    }
    snprintf(out, size, "%.*s:%lu", (int)(end - name), name,
             strtoul(end + sizeof between - 1, NULL, 10));
    return true;
}

/** Show the stacks of Python and keep the innermost line that is the program's own. */
static void read_stacks(const char *path, dryrun_result *out)
{
    char line[DRYRUN_TEXT_MAX];
    FILE *const file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        fputs(line, stderr);
        if (out->fault_line[0] == '\0' && strstr(line, "-packages/") == NULL &&
            strstr(line, "/lib/python") == NULL && strstr(line, "/allot_dryrun") == NULL) {
            (void)parse_frame(line, out->fault_line, sizeof out->fault_line);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* ---- a process ---- */

static yajl_val read_report(const char *folder, const char *before, long pid, const char *after)
{
    char path[DRYRUN_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s%ld%s", folder, before, pid, after);
    return read_json(path);
}

void dryrun_read_process(const char *folder, long pid, dryrun_result *out)
{
    char path[DRYRUN_PATH_MAX + 64];
    out->process = pid;
    out->rank = -1;
    yajl_val root = read_report(folder, "", pid, ".json");
    if (root != NULL) {
        read_process(root, out);
        yajl_tree_free(root);
    }
    root = read_report(folder, "standin.", pid, "");
    if (root != NULL) {
        read_standin(root, out);
        yajl_tree_free(root);
    }
    if (!out->has_process && out->has_standin && !out->is_python) {
        out->has_peaks = true;
        out->reserved_peak = out->device_peak - out->context;
        out->allocated_peak = out->reserved_peak;
        out->requested_peak = out->reserved_peak;
    }
    snprintf(path, sizeof path, "%s/standin.%ld.fault", folder, pid);
    read_line(path, out->touched, sizeof out->touched);
    snprintf(path, sizeof path, "%s/%ld.fault", folder, pid);
    read_stacks(path, out);
    snprintf(path, sizeof path, "%s/%ld.pickle", folder, pid);
    if (access(path, R_OK) == 0) {
        snprintf(out->snapshot, sizeof out->snapshot, "%.4000s", path);
    }
}
