/* SPDX-License-Identifier: MIT */
/** A heap with bytes, on a device that can be made to fail, and the blocks in it. */
#ifndef SUPPORT_COMPACT_SCENE_H
#define SUPPORT_COMPACT_SCENE_H

#include <allot/heap.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define SEGMENT (4 * MIB)

enum { BLOCKS_MAX = 400 };

typedef struct held {
    allot_handle handle;
    uint64_t size;
    uint8_t pattern;
} held;

typedef struct scene {
    allot_device *device;
    allot_device *failing; /**< Over `device`; the heap's. */
    allot_heap *heap;
    held blocks[BLOCKS_MAX];
    uint32_t count;
    uint64_t random;
} scene;

/** A heap on 64 MiB of the host. Failed checks are told; false then. */
bool scene_open(scene *s, const allot_heap_options *options);

/** All blocks have the bytes that were written to them; the heap is destroyed and left nothing. */
void scene_close(scene *s);

/** Options: at most six segments of 4 MiB. */
allot_heap_options scene_segments(void);

/** Four segments of 16 blocks each, of which every fourth stays. */
bool scene_open_quarters(scene *s);

/** Get a block and write to it; false if there is no room. */
bool scene_get(scene *s, uint64_t size);

void scene_drop(scene *s, uint32_t index);

/** The first and the last bytes of a block are what was written. */
void scene_check_bytes(scene *s, const held *b);

#endif /* SUPPORT_COMPACT_SCENE_H */
