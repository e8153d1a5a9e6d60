/* SPDX-License-Identifier: MIT */
/* The card of a dry run: a built-in profile, one of the user's folder, or a file. */
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
