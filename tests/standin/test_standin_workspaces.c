/* SPDX-License-Identifier: MIT */
/* Sizes that real hardware would tell: the table answers, rules answer, the report says which. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cudnn_convolution.h"
#include "support/standin.h"

static char folder[] = "/tmp/allot-sizes-XXXXXX";

static void load(void)
{
    static char settings[512];
    if (settings[0] == '\0') {
        CHECK(mkdtemp(folder) != NULL);
        snprintf(settings, sizeof settings,
                 "gpu:a100-80,cuda:13,devices:2,report:%s/report,workspace:cusolver=1000,"
                 "workspace:cudnn=3MiB,workspace:cublas=8MiB,workspace:context=100MiB",
                 folder);
    }
    standin_load(settings);
}

/** A function of the stand-in by name. */
#define FIND(name, result, parameters)                                                             \
    result(*name) parameters = NULL; /* NOLINT(bugprone-macro-parentheses) */                      \
    *(void **)&(name) = standin_symbol("libcuda.so.1", #name);                                     \
    REQUIRE((name) != NULL)

static void older_functions_of_cusolver_count_elements(void)
{
    load();
    FIND(cusolverDnSgetrf_bufferSize, int, (void *, int, int, void *, int, int *));
    FIND(cusolverDnZgetrf_bufferSize, int, (void *, int, int, void *, int, int *));
    int count = -1;
    CHECK_EQ(cusolverDnSgetrf_bufferSize(NULL, 5, 5, NULL, 5, &count), 0);
    CHECK_EQ(count, 250);
    CHECK_EQ(cusolverDnZgetrf_bufferSize(NULL, 5, 5, NULL, 5, &count), 0);
    CHECK_EQ(count, 63); /* rounded up */
}

static void newer_functions_of_cusolver_count_bytes_of_the_device(void)
{
    load();
    FIND(cusolverDnXgetrf_bufferSize, int,
         (void *, void *, int64_t, int64_t, int, void *, int64_t, int, size_t *, size_t *));
    size_t device = 7;
    size_t host = 7;
    CHECK_EQ(cusolverDnXgetrf_bufferSize(NULL, NULL, 5, 5, 0, NULL, 5, 0, &device, &host), 0);
    CHECK_EQ(device, 1000);
    CHECK_EQ(host, 0);
}

static void plans_of_cudnn_take_the_tables_workspace(void)
{
    load();
    const convolution_result result = convolve(4);
    CHECK_EQ(result.count, 1);
    CHECK_EQ(result.note_count[0], 0);
    CHECK_EQ(result.workspace[0], STANDIN_MIB(3));
    CHECK_EQ(result.execute_status, 0);
}

static void batch_normalisation_needs_nothing_but_in_persistent_kernels(void)
{
    enum { SPATIAL = 1, PERSISTENT = 2 };
    load();
    FIND(cudnnCreateTensorDescriptor, int, (void **));
    FIND(cudnnDestroyTensorDescriptor, int, (void *));
    FIND(cudnnSetTensorNdDescriptor, int, (void *, int, int, const int *, const int *));
    FIND(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, int,
         (void *, int, int, void *, void *, void *, void *, void *, size_t *));
    static const int sizes[] = {2, 8, 4, 4};
    static const int planes[] = {128, 16, 4, 1};
    static const int channels_last[] = {128, 1, 32, 8};
    void *tensor = NULL;
    size_t size = 7;
    REQUIRE(cudnnCreateTensorDescriptor(&tensor) == 0);
    CHECK_EQ(cudnnSetTensorNdDescriptor(tensor, 2, 4, sizes, planes), 0);
    CHECK_EQ(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                 NULL, SPATIAL, 0, tensor, NULL, NULL, NULL, NULL, &size),
             0);
    CHECK_EQ(size, 0);
    CHECK_EQ(cudnnSetTensorNdDescriptor(tensor, 2, 4, sizes, channels_last), 0);
    CHECK_EQ(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
                 NULL, PERSISTENT, 0, tensor, NULL, NULL, NULL, NULL, &size),
             0);
    CHECK_EQ(size, STANDIN_MIB(3));
    cudnnDestroyTensorDescriptor(tensor);
}

static void work_areas_of_cufft_follow_the_documented_rule(void)
{
    enum { COMPLEX_FLOAT = 4, COMPLEX_DOUBLE = 5 };
    load();
    FIND(cufftXtMakePlanMany, int,
         (int, int, long long *, long long *, long long, long long, int, long long *, long long,
          long long, int, long long, size_t *, int));
    long long lengths[] = {64, 32};
    size_t size = 0;
    CHECK_EQ(cufftXtMakePlanMany(1, 2, lengths, NULL, 1, 1, COMPLEX_FLOAT, NULL, 1, 1,
                                 COMPLEX_FLOAT, 10, &size, COMPLEX_FLOAT),
             0);
    CHECK_EQ(size, 64 * 32 * 10 * 8);
    CHECK_EQ(cufftXtMakePlanMany(1, 2, lengths, NULL, 1, 1, COMPLEX_DOUBLE, NULL, 1, 1,
                                 COMPLEX_DOUBLE, 10, &size, COMPLEX_DOUBLE),
             0);
    CHECK_EQ(size, 64 * 32 * 10 * 16);
    CHECK_EQ(lengths[0], 64);
}

static void handles_of_cublas_take_memory_and_give_it_back(void)
{
    load();
    void *handle = NULL;
    const size_t before = standin_used();
    CHECK_EQ(before, STANDIN_MIB(100)); /* the context */
    CHECK_EQ(cuda.cublasCreate_v2(&handle), 0);
    CHECK_EQ(standin_used(), before + STANDIN_MIB(8));
    CHECK_EQ(cuda.cublasDestroy_v2(handle), 0);
    CHECK_EQ(standin_used(), before);
}

/* On a whole card: with a limit, all of which is for the program, nothing would be taken. */
static void communicators_take_a_buffer_for_each_channel(void)
{
    load();
    FIND(ncclCommInitAll, int, (void **, int, const int *));
    FIND(ncclCommDestroy, int, (void *));
    void *alone = NULL;
    const size_t before = standin_used();
    CHECK_EQ(ncclCommInitAll(&alone, 1, NULL), 0);
    CHECK_EQ(standin_used(), before);
    CHECK_EQ(ncclCommDestroy(alone), 0);
    void *both[2] = {NULL, NULL};
    REQUIRE(ncclCommInitAll(both, 2, NULL) == 0);
    CHECK_EQ(standin_used(), before + 32 * STANDIN_MIB(4));
    CHECK_EQ(ncclCommDestroy(both[0]), 0);
    CHECK_EQ(ncclCommDestroy(both[1]), 0);
    CHECK_EQ(standin_used(), before);
}

static void the_report_says_how_sizes_came_about(void)
{
    load();
    FIND(cusparseSpMV_bufferSize, int,
         (void *, int, void *, void *, void *, void *, void *, int, int, size_t *));
    FIND(allot_standin_write_report, void, (void));
    size_t size = 7;
    CHECK_EQ(cusparseSpMV_bufferSize(NULL, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, &size), 0);
    CHECK_EQ(size, 0);
    allot_standin_write_report();
    char path[128];
    static char report[1 << 16];
    snprintf(path, sizeof path, "%s/report.%ld", folder, (long)getpid());
    FILE *const file = fopen(path, "r");
    REQUIRE(file != NULL);
    report[fread(report, 1, sizeof report - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    rmdir(folder);
    CHECK_CONTAINS(report, "{\"name\":\"cusparseSpMV_bufferSize\",\"basis\":\"unknown\","
                           "\"workspace\":\"cusparse\",\"taken\":false,\"calls\":1");
    CHECK_CONTAINS(report, "{\"name\":\"cuDNN workspaces\",\"basis\":\"table\",\"workspace\":"
                           "\"cudnn\",\"taken\":false,\"calls\":1,\"largest\":3145728");
    CHECK_CONTAINS(report, "{\"name\":\"cufftXtMakePlanMany\",\"basis\":\"rule\"");
    CHECK_CONTAINS(report, "\"largest\":327680,\"most\":2621440");
    CHECK_CONTAINS(report, "{\"name\":\"buffers of an NCCL communicator\",\"basis\":\"rule\"");
    CHECK(strstr(report, "\"cudnn\":{") == NULL); /* no real one was named */
}

static const check_test TESTS[] = {
    {"older_functions_of_cusolver_count_elements", older_functions_of_cusolver_count_elements},
    {"newer_functions_of_cusolver_count_bytes_of_the_device",
     newer_functions_of_cusolver_count_bytes_of_the_device},
    {"plans_of_cudnn_take_the_tables_workspace", plans_of_cudnn_take_the_tables_workspace},
    {"batch_normalisation_needs_nothing_but_in_persistent_kernels",
     batch_normalisation_needs_nothing_but_in_persistent_kernels},
    {"work_areas_of_cufft_follow_the_documented_rule",
     work_areas_of_cufft_follow_the_documented_rule},
    {"handles_of_cublas_take_memory_and_give_it_back",
     handles_of_cublas_take_memory_and_give_it_back},
    {"communicators_take_a_buffer_for_each_channel", communicators_take_a_buffer_for_each_channel},
    {"the_report_says_how_sizes_came_about", the_report_says_how_sizes_came_about},
};
CHECK_MAIN(TESTS)
