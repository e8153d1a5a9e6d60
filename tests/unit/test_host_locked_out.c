/* SPDX-License-Identifier: MIT */
/*
 * The host device where the kernel does not let it, and where a process forks while one thread
 * looks what it may do. Both are looked at once per process, so each test is a process. The linker
 * brings syscall() and open() of the library here.
 */
#include <allot/device.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

static bool is_call_forbidden;
static bool is_file_forbidden;
/** The next userfaultfd() says so and waits. */
static bool is_held;
static sem_t is_measuring;
static sem_t may_go_on;

/* The names that the linker's --wrap gives. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
long __wrap_syscall(long number, long flags);
long __real_syscall(long number, long flags);
int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);

long __wrap_syscall(long number, long flags)
{
    if (number == SYS_userfaultfd && is_held) {
        CHECK_EQ(sem_post(&is_measuring), 0);
        CHECK_EQ(sem_wait(&may_go_on), 0);
    }
    if (number == SYS_userfaultfd && is_call_forbidden) {
        errno = EPERM;
        return -1;
    }
    return __real_syscall(number, flags);
}

int __wrap_open(const char *path, int flags, ...)
{
    if (is_file_forbidden && strcmp(path, "/dev/userfaultfd") == 0) {
        errno = EACCES;
        return -1;
    }
    va_list more;
    va_start(more, flags);
    const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    return __real_open(path, flags, mode);
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

/** Run in a process of its own, which ends after a while in any case. */
static void run_apart(void (*run)(void))
{
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        run();
        _exit(check_failures() == 0 ? 0 : 1);
    }
    int ended = -1;
    CHECK_EQ(waitpid(pid, &ended, 0), pid);
    CHECK(WIFEXITED(ended));
    CHECK_EQ(WEXITSTATUS(ended), 0);
}

/** Bytes arrive by whatever way the device has found. */
static void check_moves(allot_device *device)
{
    const uint64_t size = UINT64_C(8) << 20;
    allot_devptr ptr = {0};
    uint8_t last = 0;
    CHECK_OK(allot_device_alloc(device, 2 * size, &ptr));
    const allot_devptr dst = {ptr.address + size};
    CHECK_OK(allot_device_fill(device, (allot_stream){0}, ptr, 7, size));
    CHECK_OK(allot_device_move(device, (allot_stream){0}, dst, ptr, size));
    CHECK_OK(allot_device_read(device, (allot_stream){0}, &last,
                               (allot_devptr){dst.address + size - 1}, 1));
    CHECK_EQ(last, 7);
}

static void open_without_the_call(void)
{
    allot_device *device = NULL;
    is_call_forbidden = true;
    CHECK_OK(allot_device_open("host,memory:256MiB,move:uffd", &device));
    if (device != NULL) {
        check_moves(device);
    }
    allot_device_destroy(device);
}

static void the_device_file_serves_where_the_call_is_forbidden(void)
{
    const int file = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    allot_device *device = NULL;
    if (file >= 0) {
        (void)close(file);
    }
    if (file < 0 || allot_device_open("host,memory:256MiB,move:uffd", &device) != 0) {
        check_skip("there is no /dev/userfaultfd, or no UFFDIO_MOVE");
        return;
    }
    allot_device_destroy(device);
    run_apart(open_without_the_call);
}

static void open_without_either(void)
{
    allot_device *device = NULL;
    is_call_forbidden = true;
    is_file_forbidden = true;
    CHECK_EQ(allot_device_open("host,memory:256MiB,move:uffd", &device), ALLOT_STATUS_UNSUPPORTED);
    CHECK_CONTAINS(allot_error_detail(), "userfaultfd: Operation not permitted");
    CHECK(device == NULL);
    CHECK_OK(allot_device_open("host,memory:256MiB", &device));
    if (device != NULL) {
        check_moves(device);
    }
    allot_device_destroy(device);
}

static void pages_go_another_way_where_both_are_forbidden(void)
{
    run_apart(open_without_either);
}

static void *open_and_close(void *unused)
{
    (void)unused;
    allot_device *device = NULL;
    CHECK_OK(allot_device_open("host,memory:256MiB", &device));
    allot_device_destroy(device);
    return NULL;
}

static void open_in_a_child(void)
{
    (void)open_and_close(NULL);
}

static void fork_while_a_thread_measures(void)
{
    pthread_t thread;
    is_held = true;
    CHECK_EQ(sem_init(&is_measuring, 0, 0), 0);
    CHECK_EQ(sem_init(&may_go_on, 0, 0), 0);
    CHECK_EQ(pthread_create(&thread, NULL, open_and_close, NULL), 0);
    CHECK_EQ(sem_wait(&is_measuring), 0);
    is_held = false;
    run_apart(open_in_a_child);
    CHECK_EQ(sem_post(&may_go_on), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void a_child_forked_while_a_thread_measures_opens_a_device(void)
{
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    check_skip("the thread sanitizer has a pthread_once() of its own, which hangs after fork()");
    return;
#endif
#endif
    run_apart(fork_while_a_thread_measures);
}

static const check_test TESTS[] = {
    {"a_child_forked_while_a_thread_measures_opens_a_device",
     a_child_forked_while_a_thread_measures_opens_a_device},
    {"pages_go_another_way_where_both_are_forbidden",
     pages_go_another_way_where_both_are_forbidden},
    {"the_device_file_serves_where_the_call_is_forbidden",
     the_device_file_serves_where_the_call_is_forbidden},
};

CHECK_MAIN(TESTS)
