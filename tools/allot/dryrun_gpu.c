/* SPDX-License-Identifier: MIT */
/* The card of a dry run: a built-in profile, one of the user's folder, or a file. */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dryrun.h"

static bool profile_folder(char *out, size_t size)
{
    const char *const config = getenv("XDG_CONFIG_HOME");
    const char *const home = getenv("HOME");
    if (config != NULL && config[0] == '/') {
        return snprintf(out, size, "%s/allot/gpus", config) < (int)size;
    }
    return home != NULL && snprintf(out, size, "%s/.config/allot/gpus", home) < (int)size;
}

bool dryrun_make_profile_path(const char *id, char *out, size_t size)
{
    char folder[DRYRUN_PATH_MAX];
    if (strchr(id, '/') != NULL || id[0] == '.' || !profile_folder(folder, sizeof folder)) {
        return false;
    }
    for (char *at = strchr(folder + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(folder, 0777);
        *at = '/';
    }
    (void)mkdir(folder, 0777);
    return snprintf(out, size, "%s/%s.json", folder, id) < (int)size;
}

/** File of a name: an imported profile, or the name itself if it is a file; "" for neither. */
static void profile_file(const char *name, char *out, size_t size)
{
    char folder[DRYRUN_PATH_MAX];
    out[0] = '\0';
    if (strchr(name, '/') == NULL && profile_folder(folder, sizeof folder) &&
        snprintf(out, size, "%s/%s.json", folder, name) < (int)size && access(out, R_OK) == 0) {
        return;
    }
    if (snprintf(out, size, "%s", name) >= (int)size || access(out, R_OK) != 0) {
        out[0] = '\0';
    }
}

allot_status dryrun_find_gpu(const char *name, allot_gpu *out)
{
    char path[DRYRUN_PATH_MAX];
    profile_file(name, path, sizeof path);
    return path[0] != '\0' ? allot_gpu_read(path, out) : allot_gpu_find(name, out);
}

bool dryrun_profile_file(const char *name, char *out)
{
    char path[DRYRUN_PATH_MAX];
    char real[PATH_MAX];
    profile_file(name, path, sizeof path);
    out[0] = '\0';
    if (path[0] == '\0') {
        return true;
    }
    if (realpath(path, real) == NULL || strpbrk(real, ",:") != NULL) {
        fprintf(stderr, "allot: %s: the path of a profile has no comma and no colon\n", name);
        return false;
    }
    snprintf(out, DRYRUN_PATH_MAX, "%.*s", DRYRUN_PATH_MAX - 1, real);
    return true;
}

static int is_profile(const struct dirent *entry)
{
    const char *const end = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && end != NULL && strcmp(end, ".json") == 0;
}

/** The profile of a file, with the file's name for its id. */
static bool read_imported(const char *folder, const char *file, allot_gpu *out)
{
    char path[DRYRUN_PATH_MAX];
    const int length = (int)(strlen(file) - strlen(".json"));
    if (length >= (int)sizeof out->id ||
        snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path) {
        return false;
    }
    if (allot_gpu_read(path, out) != ALLOT_STATUS_OK) {
        fprintf(stderr, "allot: %s\n", allot_error_detail());
        return false;
    }
    snprintf(out->id, sizeof out->id, "%.*s", length, file);
    return true;
}

cli_exit dryrun_each_imported(dryrun_gpu_fn visit, void *context)
{
    char folder[DRYRUN_PATH_MAX];
    struct dirent **files = NULL;
    cli_exit code = CLI_OK;
    if (!profile_folder(folder, sizeof folder)) {
        return CLI_OK;
    }
    const int count = scandir(folder, &files, is_profile, alphasort);
    for (int i = 0; i < count; i++) {
        allot_gpu gpu;
        if (code == CLI_OK && read_imported(folder, files[i]->d_name, &gpu)) {
            code = visit(context, &gpu);
        }
        free(files[i]);
    }
    free(files);
    return code;
}
