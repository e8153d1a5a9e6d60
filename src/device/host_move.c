/* SPDX-License-Identifier: MIT */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the C library's name */
#define _GNU_SOURCE /* mremap */
#include "device/host_move.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/size_math.h"
#include "device/host_pages.h"

/* The kernel's interface, for headers that are older than the kernel: UFFDIO_MOVE(2const),
 * userfaultfd(2), mremap(2). */
struct uffd_move {
    uint64_t dst;
    uint64_t src;
    uint64_t len;
    uint64_t mode;
    int64_t move; /**< Bytes moved, or a negative errno. */
};
#define UFFD_IOCTL_MOVE _IOWR(UFFDIO, 0x05, struct uffd_move)
#define UFFD_IOCTL_NEW _IO(0xAA, 0x00) /* of /dev/userfaultfd, Linux 6.1 */
enum {
    UFFD_MOVE_ALLOW_SRC_HOLES = 2,
    UFFD_OPEN_USER_MODE_ONLY = 1,
    MREMAP_KEEP_SOURCE = 4, /* MREMAP_DONTUNMAP; without a fixed address, the one given is a hint */
};

/** Tries of a move that something else of the process got in the way of. */
enum { TRIES_MAX = 8 };

static const struct {
    const char *spelling;
    const char *text;
} WAYS[HOST_WAY_COUNT] = {
#define WAY_NAMES(name, spelling, text) {spelling, text},
    HOST_WAY_LIST(WAY_NAMES)
#undef WAY_NAMES
};

const char *alloti_host_way_spelling(host_way way)
{
    return WAYS[way].spelling;
}

const char *alloti_host_way_text(host_way way)
{
    return WAYS[way].text;
}

static void count(_Atomic uint64_t *counter, uint64_t size)
{
    atomic_fetch_add_explicit(counter, size, memory_order_relaxed);
}

static void copy_bytes(uint64_t dst, uint64_t src, uint64_t size)
{
    memcpy(alloti_host_pointer(dst), alloti_host_pointer(src), (size_t)size);
}

/**
 * The file that pages are moved through; -1 with errno. Only faults of user mode could be reported
 * to it, which is all that an ordinary user may ask for; none are, as nothing is ever
 * write-protected. Where a filter of system calls forbids the call, as in many containers, there
 * may be a device file that grants it.
 */
static int open_uffd_file(void)
{
    const int flags = O_CLOEXEC | UFFD_OPEN_USER_MODE_ONLY;
    const int file = (int)syscall(SYS_userfaultfd, flags);
    const int error = errno;
    const int door = file >= 0 ? -1 : open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (door < 0) {
        errno = error;
        return file;
    }
    const int granted = ioctl(door, UFFD_IOCTL_NEW, flags);
    (void)close(door);
    errno = error;
    return granted;
}

/** Open that file and the scratch place. */
static allot_status open_uffd(host_mover *mover)
{
    const int file = open_uffd_file();
    if (file < 0) {
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "userfaultfd: %s", strerror(errno));
    }
    struct uffdio_api api = {.api = UFFD_API};
    if (ioctl(file, UFFDIO_API, &api) != 0) {
        const int error = errno;
        (void)close(file);
        return alloti_fail(ALLOT_STATUS_UNSUPPORTED, "UFFDIO_API: %s", strerror(error));
    }
    mover->uffd = file;
    const host_mapping mapping = {
        .size = HOST_HUGE_PAGE, .align = HOST_HUGE_PAGE, .is_huge = true, .is_reserved = true};
    mover->scratch = alloti_host_pages_map(&mapping);
    if (mover->scratch == 0) {
        (void)close(file);
        return alloti_fail_memory(mapping.size);
    }
    alloti_host_mover_adopt(mover, mover->scratch, mapping.size);
    return ALLOT_STATUS_OK;
}

allot_status alloti_host_mover_init(host_mover *mover, host_way way)
{
    *mover = (host_mover){.way = way, .uffd = -1, .page = alloti_host_page()};
    const allot_status status = way == HOST_WAY_UFFD ? open_uffd(mover) : ALLOT_STATUS_OK;
    if (status == ALLOT_STATUS_OK) {
        pthread_mutex_init(&mover->scratch_lock, NULL);
    }
    return status;
}

void alloti_host_mover_fini(host_mover *mover, bool is_forked)
{
    if (mover->uffd >= 0) {
        (void)alloti_host_pages_unmap(mover->scratch, HOST_HUGE_PAGE);
        (void)close(mover->uffd);
    }
    if (!is_forked) { /* where a thread that is gone may hold it */
        pthread_mutex_destroy(&mover->scratch_lock);
    }
}

void alloti_host_mover_adopt(const host_mover *mover, uint64_t address, uint64_t size)
{
    if (mover->uffd < 0) {
        return;
    }
    /* Registered for write protection, which nothing asks for: missing pages, which this process
     * would have to bring itself in the other mode, stay the kernel's business. */
    struct uffdio_register request = {.range = {.start = address, .len = size},
                                      .mode = UFFDIO_REGISTER_MODE_WP};
    (void)ioctl(mover->uffd, UFFDIO_REGISTER, &request);
}

/** Move pages to addresses without memory; returns how many bytes went before the kernel refused.
 */
static uint64_t move_by_uffd(const host_mover *mover, uint64_t dst, uint64_t src, uint64_t size)
{
    uint64_t done = 0;
    for (int tries = 0; done < size && tries < TRIES_MAX;) {
        struct uffd_move request = {.dst = dst + done,
                                    .src = src + done,
                                    .len = size - done,
                                    .mode = UFFD_MOVE_ALLOW_SRC_HOLES};
        const int result = ioctl(mover->uffd, UFFD_IOCTL_MOVE, &request);
        if (request.move > 0) {
            done += (uint64_t)request.move;
        } else if (result != 0 && errno != EAGAIN) {
            break;
        } else {
            tries++;
        }
    }
    return done;
}

/** Addresses where nothing is mapped just now, as far into a huge page as `like`; NULL: none. */
static void *find_gap(uint64_t like, uint64_t size)
{
    const size_t span = (size_t)(size + HOST_HUGE_PAGE);
    void *const gap =
        mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (gap == MAP_FAILED || munmap(gap, span) != 0) {
        return NULL;
    }
    const uint64_t begin = (uint64_t)(uintptr_t)gap;
    return alloti_host_pointer(begin + ((like - begin) & (HOST_HUGE_PAGE - 1)));
}

/**
 * Move a mapping, by way of free addresses: mremap() unmaps what is at its destination before it
 * looks whether it can move the source, and a failure would leave a hole for other threads to map
 * something in. To free addresses it fails harmlessly, and what it brought there is one mapping,
 * which moves on. Should that fail too, for want of page tables, it is copied.
 */
static bool move_by_mremap(uint64_t dst, uint64_t src, uint64_t size)
{
    const size_t length = (size_t)size;
    void *const gap = find_gap(src, size);
    void *const aside =
        mremap(alloti_host_pointer(src), length, length, MREMAP_MAYMOVE | MREMAP_KEEP_SOURCE, gap);
    if (aside == MAP_FAILED) {
        return false;
    }
    void *const target = alloti_host_pointer(dst);
    if (mremap(aside, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, target) != target) {
        (void)mmap(target, length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        memcpy(target, aside, length);
        (void)munmap(aside, length);
    }
    return true;
}

/** Bytes from `address` to the next huge page, at most `size`. */
static uint64_t to_huge_page(uint64_t address, uint64_t size)
{
    const uint64_t rest = HOST_HUGE_PAGE - (address & (HOST_HUGE_PAGE - 1));
    return rest < size ? rest : size;
}

/** Copy pages that could not be moved, which may be few of them, and go on after a huge page. */
static uint64_t copy_piece(host_mover *mover, uint64_t dst, uint64_t src, uint64_t size)
{
    const uint64_t piece = to_huge_page(dst, size);
    copy_bytes(dst, src, piece);
    count(&mover->size_copied, piece);
    return piece;
}

void alloti_host_relocate(host_mover *mover, uint64_t dst, uint64_t src, uint64_t size)
{
    if (mover->way == HOST_WAY_MREMAP && move_by_mremap(dst, src, size)) {
        count(&mover->size_moved, size);
        return;
    }
    alloti_host_pages_discard(dst, size);
    for (uint64_t done = 0; done < size;) {
        if (mover->way == HOST_WAY_UFFD) {
            const uint64_t moved = move_by_uffd(mover, dst + done, src + done, size - done);
            count(&mover->size_moved, moved);
            done += moved;
        }
        if (done < size) {
            const uint64_t piece = copy_piece(mover, dst + done, src + done, size - done);
            alloti_host_pages_discard(src + done, piece);
            done += piece;
        }
    }
}

/**
 * Exchange the pages of two places within a huge page each: a discarded page would cost as much as
 * a copied one when its address is used again.
 */
static void exchange(host_mover *mover, uint64_t dst, uint64_t src, uint64_t size)
{
    pthread_mutex_lock(&mover->scratch_lock);
    const uint64_t aside = mover->scratch + (dst & (HOST_HUGE_PAGE - 1));
    if (move_by_uffd(mover, aside, dst, size) != size) {
        alloti_host_pages_discard(dst, size);
    }
    const uint64_t moved = move_by_uffd(mover, dst, src, size);
    count(&mover->size_moved, moved);
    if (moved != size) {
        (void)copy_piece(mover, dst + moved, src + moved, size - moved);
    }
    if (moved != size || move_by_uffd(mover, src, aside, size) != size) {
        alloti_host_pages_discard(aside, size);
    }
    pthread_mutex_unlock(&mover->scratch_lock);
}

/** Pages in a row, of which none need be whole huge pages. */
static void move_row(host_mover *mover, uint64_t dst, uint64_t src, uint64_t size)
{
    if (size < mover->page_min) {
        copy_bytes(dst, src, size);
        return;
    }
    for (uint64_t done = 0; done < size;) {
        const uint64_t piece = to_huge_page(dst + done, size - done);
        exchange(mover, dst + done, src + done, piece);
        done += piece;
    }
}

/** Whole pages by UFFDIO_MOVE: huge ones whole, what is before and after them if it is worth it. */
static void move_pages_by_uffd(host_mover *mover, uint64_t dst, uint64_t src, uint64_t size)
{
    const bool is_aligned = ((dst ^ src) & (HOST_HUGE_PAGE - 1)) == 0;
    const uint64_t head = to_huge_page(dst, size) % HOST_HUGE_PAGE;
    const uint64_t middle = alloti_align_down(size - head, HOST_HUGE_PAGE);
    if (!is_aligned || !mover->is_huge_cheap || middle == 0) {
        move_row(mover, dst, src, size);
        return;
    }
    if (head != 0) {
        move_row(mover, dst, src, head);
    }
    for (uint64_t done = head; done < head + middle; done += HOST_HUGE_PAGE) {
        exchange(mover, dst + done, src + done, HOST_HUGE_PAGE);
    }
    if (head + middle < size) {
        move_row(mover, dst + head + middle, src + head + middle, size - head - middle);
    }
}

/** Whole pages by mremap: all at once, as each call cuts a mapping up. */
static void move_pages_by_mremap(host_mover *mover, uint64_t dst, uint64_t src, uint64_t size)
{
    const bool has_huge = mover->is_huge_cheap && ((dst ^ src) & (HOST_HUGE_PAGE - 1)) == 0 &&
                          size >= to_huge_page(dst, size) % HOST_HUGE_PAGE + HOST_HUGE_PAGE;
    if ((has_huge || size >= mover->page_min) && move_by_mremap(dst, src, size)) {
        count(&mover->size_moved, size);
    } else {
        copy_bytes(dst, src, size);
    }
}

void alloti_host_move(host_mover *mover, uint64_t dst, uint64_t src, uint64_t size)
{
    const uint64_t head = (mover->page - (dst & (mover->page - 1))) & (mover->page - 1);
    const bool is_congruent = ((dst ^ src) & (mover->page - 1)) == 0;
    if (mover->way == HOST_WAY_COPY || !is_congruent || size < head + mover->page) {
        copy_bytes(dst, src, size);
        return;
    }
    const uint64_t middle = alloti_align_down(size - head, mover->page);
    const uint64_t end = head + middle;
    copy_bytes(dst, src, head);
    if (mover->way == HOST_WAY_UFFD) {
        move_pages_by_uffd(mover, dst + head, src + head, middle);
    } else {
        move_pages_by_mremap(mover, dst + head, src + head, middle);
    }
    copy_bytes(dst + end, src + end, size - end);
}
