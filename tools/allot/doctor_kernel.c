/* SPDX-License-Identifier: MIT */
/* What the kernel allows, asked by trying or read from /proc and /sys, and what each answer means.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"

static doctor_fact *add(doctor_findings *out, const char *name, const char *value,
                        const char *meaning)
{
    doctor_fact *const fact = &out->facts[out->fact_count++];
    fact->name = name;
    fact->meaning = meaning;
    snprintf(fact->value, sizeof fact->value, "%s", value);
    return fact;
}

/** First line of a file, without its end; false if it cannot be read. */
static bool read_line(const char *path, char *out, size_t size)
{
    FILE *const file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    const bool is_read = fgets(out, (int)size, file) != NULL;
    fclose(file);
    if (is_read) {
        out[strcspn(out, "\n")] = '\0';
    }
    return is_read;
}

/** A userfaultfd as the host device opens it: by the system call, or by the device file that a
 * container may be given; -1 with errno. */
static int open_userfaultfd(void)
{
    enum { NEW = 0xaa00 };       /* USERFAULTFD_IOC_NEW, _IO(0xAA, 0x00) */
    enum { USER_MODE_ONLY = 1 }; /* UFFD_USER_MODE_ONLY */
    const int flags = O_CLOEXEC | USER_MODE_ONLY;
    int file = (int)syscall(SYS_userfaultfd, flags);
    if (file < 0) {
        const int error = errno;
        const int door = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
        file = door < 0 ? -1 : ioctl(door, NEW, flags);
        if (door >= 0) {
            close(door);
        }
        errno = error;
    }
    return file;
}

static void find_userfaultfd(doctor_findings *out)
{
    static const uint64_t CAN_MOVE = UINT64_C(1) << 16; /* UFFD_FEATURE_MOVE, Linux 6.8 */
    const int file = open_userfaultfd();
    if (file < 0) {
        const bool is_absent = errno == ENOSYS;
        add(out, "userfaultfd", is_absent ? "absent" : "not permitted",
            is_absent ? "pages are moved by mremap or copied"
                      : "pages are moved by mremap or copied; something forbids the call, as "
                        "filters of containers do: access to /dev/userfaultfd would do too");
        return;
    }
    struct uffdio_api api = {.api = UFFD_API};
    const bool can_move = ioctl(file, UFFDIO_API, &api) == 0 && (api.features & CAN_MOVE) != 0;
    close(file);
    add(out, "userfaultfd", can_move ? "moves pages" : "without moves",
        can_move ? "the host device moves pages without copying and without splitting mappings"
                 : "pages are moved by mremap or copied: moving needs Linux 6.8");
}

static void find_huge_pages(doctor_findings *out)
{
    char line[64] = "";
    const char *value = "absent";
    const char *meaning = "all pages are small: touching and moving memory costs more";
    if (read_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line)) {
        /* "always [madvise] never" */
        char *const chosen = strchr(line, '[');
        value = chosen == NULL ? line : chosen + 1;
        line[strcspn(line, "]")] = '\0';
    }
    if (strcmp(value, "always") == 0) {
        meaning = "large ranges lie on huge pages: 2 MiB move as one page";
    } else if (strcmp(value, "madvise") == 0) {
        meaning = "ranges that ask for huge pages get them, as those of the host device do";
    }
    add(out, "huge_pages", value, meaning);
}

static void find_overcommit(doctor_findings *out)
{
    char value[16] = "unknown";
    const char *meaning = "what the kernel promises cannot be read here";
    (void)read_line("/proc/sys/vm/overcommit_memory", value, sizeof value);
    if (strcmp(value, "0") == 0) {
        meaning = "a single allocation that is plainly too large fails; in sum more is promised "
                  "than there is";
    } else if (strcmp(value, "1") == 0) {
        meaning = "any allocation succeeds: where memory runs out the kernel ends a process";
    } else if (strcmp(value, "2") == 0) {
        meaning = "allocations fail at the commit limit, also of memory that is never touched";
    }
    add(out, "overcommit_memory", value, meaning);
}

static void find_map_count(doctor_findings *out)
{
    char value[32] = "unknown";
    (void)read_line("/proc/sys/vm/max_map_count", value, sizeof value);
    add(out, "max_map_count", value,
        "mappings that a process may have: mremap takes one for each range that it moves apart");
}

static void find_memlock(doctor_findings *out)
{
    struct rlimit limit = {0};
    char value[ALLOT_SIZE_TEXT_MAX] = "unknown";
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
        if (limit.rlim_cur == RLIM_INFINITY) {
            snprintf(value, sizeof value, "unlimited");
        } else {
            (void)allot_size_format(limit.rlim_cur, value);
        }
    }
    add(out, "memlock", value, "memory that a process without privileges may lock in place");
}

void doctor_find_facts(doctor_findings *out)
{
    struct utsname name;
    if (uname(&name) == 0) {
        snprintf(out->kernel, sizeof out->kernel, "%.60s %.60s", name.sysname, name.release);
    }
    find_userfaultfd(out);
    find_huge_pages(out);
    find_overcommit(out);
    find_map_count(out);
    find_memlock(out);
}
