/* A disk that takes so many bytes a second, for one process: preloaded before the C library.
 *
 * Stands for a volume whose throughput is used up and whose page cache may hold no more dirty
 * pages: there, too, write() blocks until bytes have gone out. It needs neither root nor a block
 * device of its own. Only record logs of the folder SLOW_DISK_UNDER are slowed; SLOW_DISK_RATE is
 * in bytes a second.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double free_at = 0;

static double now(void) {
    struct timespec clock;
    clock_gettime(CLOCK_MONOTONIC, &clock);
    return (double)clock.tv_sec + (double)clock.tv_nsec / 1e9;
}

static int is_slow(int fd) {
    const char *under = getenv("SLOW_DISK_UNDER");
    char link[64], path[4096];
    if (under == NULL) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 4) return 0;
    path[length] = 0;
    return strncmp(path, under, strlen(under)) == 0 && strcmp(path + length - 4, ".log") == 0
        && strstr(path, "__cluster_metadata") == NULL;
}

/* Waits for this write's turn: one after the other, each as long as its bytes take. */
static void take(int fd, ssize_t bytes) {
    const char *rate = getenv("SLOW_DISK_RATE");
    if (bytes <= 0 || rate == NULL || !is_slow(fd)) return;
    pthread_mutex_lock(&lock);
    double begin = now();
    if (free_at < begin) free_at = begin;
    free_at += (double)bytes / atof(rate);
    double wait = free_at - begin;
    pthread_mutex_unlock(&lock);
    struct timespec pause = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
    nanosleep(&pause, NULL);
}

ssize_t write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (real == NULL) real = dlsym(RTLD_NEXT, "write");
    ssize_t written = real(fd, data, size);
    take(fd, written);
    return written;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (real == NULL) real = dlsym(RTLD_NEXT, "pwrite64");
    ssize_t written = real(fd, data, size, offset);
    take(fd, written);
    return written;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    static ssize_t (*real)(int, const struct iovec *, int);
    if (real == NULL) real = dlsym(RTLD_NEXT, "writev");
    ssize_t written = real(fd, parts, count);
    take(fd, written);
    return written;
}
