/* SPDX-License-Identifier: MIT */
/** What a dry run is asked for and what comes of it: shared by the parts of `allot dryrun`. */
#ifndef CLI_DRYRUN_H
#define CLI_DRYRUN_H

#include "cli.h"

enum { DRYRUN_PATH_MAX = 4096, DRYRUN_TEXT_MAX = 1024, DRYRUN_OOM_MAX = 16, DRYRUN_LIST_MAX = 32 };
enum { DRYRUN_RANKS_MAX = 256, DRYRUN_DEVICES_MAX = 64 };

/** One of four, never "fits" on partial knowledge. */
typedef enum dryrun_verdict {
    DRYRUN_FITS,
    DRYRUN_OUT_OF_MEMORY,
    DRYRUN_FAILED,     /**< For another reason. */
    DRYRUN_INCOMPLETE, /**< Something is not known that memory depends on. */
} dryrun_verdict;

/** What the user asked for. */
typedef struct dryrun_request {
    allot_gpu gpu;
    char profile[DRYRUN_PATH_MAX]; /**< Of the GPU if it came from a file, else "". */
    uint64_t limit;                /**< 0: the card's memory. */
    unsigned gpus;
    const char *events; /**< "instant", "sync" or "lag". */
    unsigned world;     /**< Ranks of the job of which one runs alone; 0: no such job. */
    unsigned rank;
    uint64_t steps; /**< 0: all. */
    bool is_strict;
    allot_workspaces workspaces;
    const char *cudnn;     /**< libcudnn.so.9 to ask, "" to find one; NULL: none. */
    const char *settings;  /**< Further ones of the stand-in; NULL: none. */
    char *const *booleans; /**< Rules, see --booleans; ends with NULL, or is NULL. */
    const char *conf;      /**< Of PyTorch's allocator, "": none; NULL: as in the environment. */
    allot_group_by by;     /**< Who holds the memory at the peak. */
    bool keeps_stdout;     /**< It is for the result: the program's goes to standard error. */
    bool is_quiet;         /**< The program's output goes to dryrun_result.output. */
    char *const *command;  /**< Ends with NULL. */
} dryrun_request;

typedef struct dryrun_oom {
    uint32_t device; /**< Of the program's. */
    uint64_t size;
    uint64_t free;
    uint64_t allocated;
    uint64_t reserved;
    uint64_t step;
    char line[DRYRUN_TEXT_MAX];
} dryrun_oom;

/** A name and how often. */
typedef struct dryrun_count {
    char name[256];
    uint64_t count;
} dryrun_count;

/** How a size came about; the stand-in's report has these words. */
#define DRYRUN_BASIS_TEXTS "exact", "table", "library", "rule", "unknown"
typedef enum dryrun_basis {
    DRYRUN_BASIS_EXACT,
    DRYRUN_BASIS_TABLE,   /**< The user said so. */
    DRYRUN_BASIS_LIBRARY, /**< The real library said so. */
    DRYRUN_BASIS_RULE,
    DRYRUN_BASIS_UNKNOWN,
} dryrun_basis;

/** A kind of size that real hardware would tell. */
typedef struct dryrun_size {
    char name[128];
    char workspace[32]; /**< Entry of the table that would set it, "" for none. */
    char source[160];   /**< Of a rule. */
    dryrun_basis basis;
    bool is_taken; /**< Of the device, not told to the program. */
    uint64_t calls;
    uint64_t largest; /**< Bytes that were answered. */
    uint64_t most;    /**< Bytes it can be by the rule. */
} dryrun_size;

/** The installed cuDNN that was asked. */
typedef struct dryrun_cudnn {
    char library[DRYRUN_PATH_MAX]; /**< "" for none. */
    char problem[DRYRUN_TEXT_MAX]; /**< "" for none. */
    uint64_t version;              /**< 92801: 9.28.1; 0: it never answered. */
    uint64_t queries;
} dryrun_cudnn;

/** A GPU as one process used it. */
typedef struct dryrun_device {
    uint32_t number; /**< Of those that are installed. */
    uint64_t peak;
} dryrun_device;

/** A GPU as the program numbers it, and what PyTorch's allocator took of it. */
typedef struct dryrun_use {
    uint32_t device;
    uint64_t allocated_peak;
    uint64_t reserved_peak;
} dryrun_use;

/** One of several processes that use GPUs. */
typedef struct dryrun_rank {
    long process;
    int64_t number; /**< -1: it did not say. */
    dryrun_verdict verdict;
    bool is_finished;
    bool has_snapshot;
    bool has_oom; /**< Caught or not. */
    uint64_t steps;
    uint64_t allocated_peak;
    uint64_t reserved_peak;
    uint64_t device_peak;
} dryrun_rank;

/** What came of it. With several ranks, the figures are those of the one that is worst off. */
typedef struct dryrun_result {
    int exit_code;    /**< Of the command; 128 + signal where one ended it. */
    long process;     /**< Whose figures these are. */
    int64_t rank;     /**< -1: it did not say. */
    bool has_process; /**< The Python side wrote its report. */
    bool is_finished; /**< And the program came to its end in order. */
    bool has_standin; /**< The stand-in wrote its report: CUDA was used. */
    bool is_python;   /**< CUDA was used from Python. */
    char python[256]; /**< The interpreter, "" if it is not known. */
    char torch[64];   /**< Version, "" if it was not imported. */
    char cuda[64];    /**< "" where torch is not a CUDA build. */
    char hip[64];     /**< "" where torch is not a ROCm build. */
    char conf[256];   /**< Settings in the environment when CUDA was first used. */
    uint64_t steps;
    uint64_t device_total;
    uint64_t device_peak; /**< Taken of the device, the context included. */
    uint64_t context;
    uint64_t refusals;     /**< Requests to the driver that the device had no room for. */
    uint64_t refused_size; /**< Bytes of the first. */
    bool has_peaks;
    uint32_t device; /**< Of the program's, the one whose peaks these are. */
    uint64_t allocated_peak;
    uint64_t requested_peak; /**< Before rounding. */
    uint64_t reserved_peak;
    uint64_t retries;
    uint32_t oom_count;
    dryrun_oom oom[DRYRUN_OOM_MAX];
    char exception[DRYRUN_TEXT_MAX]; /**< Type and text, "" for none. */
    char exception_line[DRYRUN_TEXT_MAX];
    uint64_t failed_at;          /**< Microseconds, to compare with other processes. */
    char fault[DRYRUN_TEXT_MAX]; /**< Why ranks could not go on together; "" for none. */
    uint32_t use_count;          /**< GPUs on which it allocated. */
    dryrun_use uses[DRYRUN_DEVICES_MAX];
    uint32_t device_count;
    dryrun_device devices[DRYRUN_DEVICES_MAX];
    uint32_t rank_count;                 /**< Processes that used CUDA. */
    dryrun_rank ranks[DRYRUN_RANKS_MAX]; /**< By number. */
    bool is_stopped;                     /**< The guard ended an endless loop. */
    uint64_t reads;                      /**< Values read from the device. */
    uint64_t pinned_peak;
    char last_question[DRYRUN_TEXT_MAX]; /**< Line of the last boolean, "" for none. */
    uint32_t boolean_line_count;         /**< Lines that read booleans: answered by rule. */
    dryrun_count boolean_lines[DRYRUN_LIST_MAX];
    uint32_t rule_count; /**< Rules of --booleans for a line, and how often they were used. */
    dryrun_count rules[DRYRUN_LIST_MAX];
    uint32_t size_line_count; /**< Lines that read how much was selected, or lengths. */
    dryrun_count size_lines[DRYRUN_LIST_MAX];
    uint32_t value_line_count; /**< Lines that read anything else: zero. */
    dryrun_count value_lines[DRYRUN_LIST_MAX];
    uint32_t assumption_count; /**< What was done to end what only values end. */
    dryrun_count assumptions[DRYRUN_LIST_MAX];
    uint32_t missing_count;
    dryrun_count missing[DRYRUN_LIST_MAX];
    uint32_t size_count;
    dryrun_size sizes[DRYRUN_LIST_MAX];
    dryrun_cudnn cudnn;
    uint32_t unknown_count; /**< Sizes that are not known. */
    dryrun_count unknown[DRYRUN_LIST_MAX];
    uint64_t guess_calls;       /**< Calls that were answered by guess, without effect on memory. */
    uint32_t own_runtime_count; /**< Files with a CUDA runtime built in, which is not reached. */
    dryrun_count own_runtimes[DRYRUN_LIST_MAX];
    char touched[256];                /**< Device memory that host code touched, "" for none. */
    char fault_line[DRYRUN_TEXT_MAX]; /**< Where in Python a signal ended it; "": not known. */
    uint32_t problem_count;
    dryrun_count problems[DRYRUN_LIST_MAX];
    char snapshot[DRYRUN_PATH_MAX]; /**< "" for none. */
    char output[DRYRUN_PATH_MAX];   /**< What a quiet program printed; "" for none. */
    char folder[DRYRUN_PATH_MAX];   /**< Where everything lies; removed by dryrun_clean(). */
} dryrun_result;

/** A built-in profile, an imported one, or a file; ALLOT_STATUS_NOT_FOUND with similar names. */
ALLOT_NODISCARD allot_status dryrun_find_gpu(const char *name, allot_gpu *out);

/** The file that such a name stands for, made absolute, or ""; false after a message. */
bool dryrun_profile_file(const char *name, char *out);

/** Told of one imported profile, under the name it is known by. CLI_OK to go on. */
typedef cli_exit (*dryrun_gpu_fn)(void *context, const allot_gpu *gpu);

/** Visit the imported profiles by name; of those that cannot be read a message is printed. */
cli_exit dryrun_each_imported(dryrun_gpu_fn visit, void *context);

/** Where the profile `id` is kept, its folders made; false if the id cannot be a file's name. */
bool dryrun_make_profile_path(const char *id, char *out, size_t size);

#endif /* CLI_DRYRUN_H */
