/* SPDX-License-Identifier: MIT */
/**
 * A scene: a heap over a failing device, with streams, pools and blocks, and the calls that play
 * in it. Each step is one call of the heap, so that a test can let it fail, compare what was before
 * with what is after, and call again.
 */
#ifndef HEAP_SCENE_H
#define HEAP_SCENE_H

#include <allot/heap.h>

enum { SCENE_STREAMS = 3, SCENE_HELD_MAX = 128 };

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

/** Blocks that steps name. */
typedef enum scene_name {
    SCENE_A,
    SCENE_B,
    SCENE_C,
    SCENE_D,
    SCENE_E,
    SCENE_F,
    SCENE_G,
    SCENE_H,
    SCENE_I,
    SCENE_J,
    SCENE_NAME_COUNT
} scene_name;

typedef struct scene_block {
    allot_handle handle; /**< 0: there is none. */
    allot_devptr ptr;    /**< Of a pointer; 0: a handle. */
    uint64_t size;
    uint32_t stream;
    uint32_t flags;
    uint8_t pattern;
} scene_block;

typedef struct scene {
    allot_device *inner;
    allot_device *device; /**< Fails on request. */
    allot_heap *heap;
    allot_device_info info;
    allot_stream streams[SCENE_STREAMS]; /**< [0]: the default stream. */
    allot_heap_pool pool;                /**< 0: not there. */
    scene_block blocks[SCENE_NAME_COUNT];
} scene;

/** How a scene is played. */
typedef struct scene_setting {
    const char *device;
    allot_heap_options options;
    uint32_t event_delay;
    uint64_t seed;
} scene_setting;

/** What a step may leave behind when it fails. */
typedef enum scene_leaves {
    SCENE_AS_BEFORE, /**< Nothing. */
    SCENE_LESS_HELD, /**< Less free memory. */
    SCENE_PROGRESS,  /**< Less free memory, fewer blocks that can be dropped: part of its work. */
} scene_leaves;

typedef struct scene_step {
    const char *name;
    allot_status (*run)(scene *s);
    scene_leaves leaves;
} scene_step;

extern const scene_step SCENE_STEPS[];
extern const size_t SCENE_STEP_COUNT;

bool scene_begin(scene *s, const scene_setting *setting);
/** Destroy the heap and see that the device has everything back. */
void scene_end(scene *s);

/** What a heap is at a moment. */
typedef struct scene_snapshot {
    allot_block_info blocks[SCENE_HELD_MAX]; /**< Live ones. */
    uint32_t block_count;
    uint32_t pending_count;
    allot_heap_stats stats;
    uint64_t segments; /**< Hash of addresses, sizes and granules of all segments. */
    uint64_t limit;
    allot_device_counts device;
} scene_snapshot;

void scene_take(const scene *s, scene_snapshot *out);

/** Check that a failed step left behind no more than it may. */
void scene_compare(const scene_snapshot *before, const scene_snapshot *after, scene_leaves leaves);

/** Check the invariants and the bytes of all blocks; nothing may be armed. */
void scene_verify(scene *s);

/** Play steps [first, end); false, and a check has failed, at the first that does not succeed. */
bool scene_play(scene *s, size_t first, size_t end);

/** What fails: the n-th chance from arming on. */
typedef struct scene_fault {
    void (*arm)(scene *s, const struct scene_fault *fault, uint64_t nth);
    /** Whether it took place. */
    bool (*disarm)(scene *s, const struct scene_fault *fault);
    uint64_t call_mask; /**< Of the failing device. */
    allot_status status;
    uint32_t event_delay;
    uint64_t seed;
} scene_fault;

/** Play the scene with every chance of each step to fail taken in turn, and check that the heap is
 * as before each time, and that the step succeeds when it is tried again. Returns how many times a
 * step failed. */
uint64_t scene_fail_each_step(const scene_setting *setting, const scene_fault *fault);

#endif /* HEAP_SCENE_H */
