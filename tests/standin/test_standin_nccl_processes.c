/* SPDX-License-Identifier: MIT */
/*
 * NCCL between processes. The test runs itself once per rank, with the rank's part in its first
 * argument; rank 0 leaves the unique id in a file for the others. The parent never loads the
 * stand-in.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/standin.h"

enum { PROCESSES = 3, INT64 = 4, FLOAT = 7, SUM = 0, SEEN_WRONG = 9, LEFT_ON_PURPOSE = 5 };

static char folder[] = "/tmp/allot-nccl-test-XXXXXX";

/* ---- a rank ---- */

static standin_nccl_id meet(int rank)
{
    char path[256];
    standin_nccl_id id;
    snprintf(path, sizeof path, "%s/id", getenv("NCCL_TEST_FOLDER"));
    if (rank == 0) {
        char partial[300];
        snprintf(partial, sizeof partial, "%s.part", path);
        FILE *const file = cuda.ncclGetUniqueId(&id) == 0 ? fopen(partial, "wb") : NULL;
        if (file == NULL || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file) != 0 ||
            rename(partial, path) != 0) {
            exit(SEEN_WRONG);
        }
        return id;
    }
    for (;;) {
        FILE *const file = fopen(path, "rb");
        if (file != NULL) {
            const bool is_read = fread(&id, sizeof id, 1, file) == 1;
            fclose(file);
            if (is_read) {
                return id;
            }
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void *join(int rank)
{
    void *comm = NULL;
    standin_load("devices:3,wait:60");
    cuda.cudaSetDevice(rank);
    if (cuda.ncclCommInitRank(&comm, PROCESSES, meet(rank), rank) != 0) {
        exit(SEEN_WRONG);
    }
    return comm;
}

static bool exchanges(int rank)
{
    void *const comm = join(rank);
    const int64_t own = 1000 + rank;
    int64_t got[PROCESSES] = {0};
    void *from = NULL;
    void *to = NULL;
    bool is_right = cuda.cudaMalloc(&from, sizeof own) == 0 && cuda.cudaMalloc(&to, 64) == 0 &&
                    cuda.cudaMemcpy(from, &own, sizeof own, 1) == 0 &&
                    cuda.ncclAllGather(from, to, 1, INT64, comm, NULL) == 0 &&
                    cuda.cudaMemcpy(got, to, sizeof got, 2) == 0;
    for (int i = 0; i < PROCESSES; i++) {
        is_right = is_right && got[i] == 1000 + i;
    }
    return is_right && cuda.ncclCommDestroy(comm) == 0;
}

/** Rank 1 dies after the first of two calls; the others must not wait for ever. */
static bool loses_one(int rank)
{
    void *const comm = join(rank);
    void *at = NULL;
    if (cuda.cudaMalloc(&at, 4096) != 0 ||
        cuda.ncclAllReduce(at, at, 16, FLOAT, SUM, comm, NULL) != 0 ||
        cuda.cudaDeviceSynchronize() != 0) {
        return false;
    }
    if (rank == 1) {
        _exit(LEFT_ON_PURPOSE);
    }
    if (cuda.ncclAllReduce(at, at, 16, FLOAT, SUM, comm, NULL) == 0 &&
        cuda.cudaDeviceSynchronize() == 0) {
        return false;
    }
    const char *const text = cuda.ncclGetLastError(comm);
    return strstr(text, "rank 1 (process ") != NULL && strstr(text, "ended after 1 calls") != NULL;
}

/** Nobody but this rank comes. */
static bool waits_in_vain(int rank)
{
    void *comm = NULL;
    standin_load("devices:3,wait:1");
    return cuda.ncclCommInitRank(&comm, PROCESSES, meet(rank), rank) != 0 &&
           strstr(cuda.ncclGetLastError(NULL), "waited 1 s for rank 1, 2 to make") != NULL;
}

static const struct {
    const char *name;
    bool (*run)(int rank);
} PARTS[] = {{"exchanges", exchanges}, {"loses_one", loses_one}, {"waits_in_vain", waits_in_vain}};

static int run_part(const char *name, int rank)
{
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        if (strcmp(PARTS[i].name, name) == 0) {
            return PARTS[i].run(rank) ? 0 : SEEN_WRONG;
        }
    }
    return SEEN_WRONG;
}

/* ---- the parent ---- */

static pid_t start(const char *part, int rank)
{
    char rank_text[16];
    snprintf(rank_text, sizeof rank_text, "%d", rank);
    const pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "rank", "--part", part, rank_text, (char *)NULL);
        _exit(SEEN_WRONG);
    }
    return child;
}

/** Run a part as so many processes; their exit codes. */
static void run_processes(const char *part, int count, int *codes)
{
    char path[256];
    pid_t children[PROCESSES];
    snprintf(path, sizeof path, "%s/id", folder);
    (void)unlink(path);
    for (int i = 0; i < count; i++) {
        children[i] = start(part, i);
    }
    for (int i = 0; i < count; i++) {
        int status = 0;
        CHECK(children[i] > 0 && waitpid(children[i], &status, 0) == children[i]);
        codes[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    (void)unlink(path);
}

static bool folder_is_empty(void)
{
    return rmdir(folder) == 0 && mkdir(folder, 0700) == 0;
}

static void processes_exchange_values(void)
{
    int codes[PROCESSES];
    run_processes("exchanges", PROCESSES, codes);
    for (int i = 0; i < PROCESSES; i++) {
        CHECK_EQ(codes[i], 0);
    }
    CHECK(folder_is_empty());
}

static void a_process_that_died_is_named(void)
{
    int codes[PROCESSES];
    run_processes("loses_one", PROCESSES, codes);
    CHECK_EQ(codes[0], 0);
    CHECK_EQ(codes[1], LEFT_ON_PURPOSE);
    CHECK_EQ(codes[2], 0);
    CHECK(folder_is_empty());
}

static void ranks_that_never_come_are_named(void)
{
    int codes[PROCESSES];
    run_processes("waits_in_vain", 1, codes);
    CHECK_EQ(codes[0], 0);
    CHECK(folder_is_empty());
}

static const check_test TESTS[] = {
    {"processes_exchange_values", processes_exchange_values},
    {"a_process_that_died_is_named", a_process_that_died_is_named},
    {"ranks_that_never_come_are_named", ranks_that_never_come_are_named},
};

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--part") == 0) {
        return run_part(argv[2], (int)strtol(argv[3], NULL, 10));
    }
    if (mkdtemp(folder) == NULL || setenv("NCCL_TEST_FOLDER", folder, 1) != 0 ||
        setenv("TMPDIR", folder, 1) != 0) {
        return 1;
    }
    const int code = check_main(argc, argv, TESTS, sizeof TESTS / sizeof TESTS[0]);
    (void)rmdir(folder);
    return code;
}
