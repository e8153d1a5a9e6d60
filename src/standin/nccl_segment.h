/* SPDX-License-Identifier: MIT */
/**
 * Where the ranks of a communicator meet: a file that each of them maps.
 *
 *   | head: size, fault | rank 0 | rank 1 | ... | ring 0->0 | ring 0->1 | ... | ring n->n |
 *
 * Zeros are a valid beginning, so whoever comes first makes the file and nobody has to be first.
 * Each pair of ranks has a ring of bytes that one of them writes and the other reads, with a count
 * of bytes written and one of bytes read, and no lock. Once all have come the file loses its name:
 * it is gone with the last process that maps it, however that one ends.
 *
 * Processes of one machine and one user. A rank that died is told by its process: number and start.
 *
 * Thread-safe when each rank's segment is used by one thread at a time.
 */
#ifndef ALLOTI_STANDIN_NCCL_SEGMENT_H
#define ALLOTI_STANDIN_NCCL_SEGMENT_H

#include <allot/base.h>

enum { SEGMENT_RANKS_MAX = 256, SEGMENT_PATH_MAX = 4096, SEGMENT_TEXT_MAX = 512 };

typedef enum segment_state {
    SEGMENT_ABSENT, /**< Has not come yet. */
    SEGMENT_JOINED,
    SEGMENT_LEFT, /**< Destroyed its communicator: nothing more will come from it. */
} segment_state;

typedef struct nccl_segment nccl_segment;

/** Make an empty file to meet at; its path, of at most `size` bytes, is the invitation. */
ALLOT_NODISCARD allot_status segment_invite(const char *folder, char *path, size_t size);

/**
 * Enter as `rank` of `size`. `may_create`: the file need not exist yet.
 *
 * @return ALLOT_STATUS_INVALID if others said another size or this rank is taken;
 *         ALLOT_STATUS_NOT_FOUND if there is no such file; ALLOT_STATUS_BACKEND from the system.
 * The caller owns the result and releases it with segment_leave().
 */
ALLOT_NODISCARD allot_status segment_join(const char *path, bool may_create, unsigned size,
                                          unsigned rank, unsigned device, nccl_segment **out);

/** Say that nothing more will come from this rank, and let go. NULL is allowed. */
void segment_leave(nccl_segment *segment);

/** Whether all ranks have come; the file's name is removed then. */
bool segment_is_complete(nccl_segment *segment);

/** Remove the file's name in any case: a meeting that failed. */
void segment_unlink(const nccl_segment *segment);

const char *segment_path(const nccl_segment *segment);
segment_state segment_state_of(const nccl_segment *segment, unsigned rank);
unsigned segment_device_of(const nccl_segment *segment, unsigned rank);
long segment_process_of(const nccl_segment *segment, unsigned rank);

/** Whether the process of a rank that joined has ended. */
bool segment_is_dead(const nccl_segment *segment, unsigned rank);

/** For others to see: how many calls this rank has made. */
void segment_set_calls(nccl_segment *segment, uint64_t calls);
uint64_t segment_calls_of(const nccl_segment *segment, unsigned rank);

/** Write to, read from another rank's ring: as many bytes as fit or are there, which may be 0. */
uint64_t segment_write(nccl_segment *segment, unsigned to, const void *bytes, uint64_t size);
uint64_t segment_read(nccl_segment *segment, unsigned from, void *bytes, uint64_t size);

/** Bytes that can be written, read without waiting. */
uint64_t segment_room(const nccl_segment *segment, unsigned to);
uint64_t segment_ready(const nccl_segment *segment, unsigned from);

/** Tell all ranks why nothing goes on; the first text stays. true if this was the first. */
bool segment_break(nccl_segment *segment, const char *text);

/** That text; NULL while all is well. Borrowed: valid as long as the segment. */
const char *segment_fault(const nccl_segment *segment);

#endif /* ALLOTI_STANDIN_NCCL_SEGMENT_H */
