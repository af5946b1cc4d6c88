/* Moves the wall clock of one program: preloaded with LD_PRELOAD, it adds to every reading of the real time a number of
 * microseconds, the first in the file that LOCKSTEP_CLOCK_FILE names. The second, if it is not 0, stands for the real
 * time: then the clock stands still. The file is mapped, so a test can step the clock while the program runs (see
 * clock_file.hpp). Monotonic clocks are left alone: on a real machine they do not jump.
 *
 * Valkey 9.1 reads the wall clock at most once a millisecond, and in between adds what the processor's own counter says: a
 * step would come late, and a clock that was stopped would go on. It does so only where /proc/cpuinfo says that the counter
 * is steady, so the program doesn't get to read that file: then it reads the clock every time, as all older servers do.
 *
 * The time comes from the system call itself and not from the C library's own functions: looking those up calls the
 * allocator, which in redis-server reads the clock while it starts, and round it goes until the stack ends.
 *
 * Build it as a plain shared object, without sanitizers: cc -shared -fPIC -O2 -o libclock_shim.so clock_shim.c
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t const nothing[2] = {0, 0};
static int64_t const* numbers = nothing;

__attribute__((constructor)) static void map_offset(void) {
    char const* name = getenv("LOCKSTEP_CLOCK_FILE");
    if (name == NULL) return;
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void* mapped = mmap(NULL, sizeof nothing, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) numbers = mapped;
}

static int is_wall_clock(clockid_t clock) { return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE; }

int clock_gettime(clockid_t clock, struct timespec* now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result != 0 || !is_wall_clock(clock)) return result;
    int64_t stopped = __atomic_load_n(numbers + 1, __ATOMIC_RELAXED);
    if (stopped != 0) now->tv_sec = stopped / 1000000, now->tv_nsec = stopped % 1000000 * 1000;
    int64_t us = __atomic_load_n(numbers, __ATOMIC_RELAXED);
    now->tv_sec += us / 1000000;
    now->tv_nsec += us % 1000000 * 1000;
    if (now->tv_nsec >= 1000000000) now->tv_sec += 1, now->tv_nsec -= 1000000000;
    if (now->tv_nsec < 0) now->tv_sec -= 1, now->tv_nsec += 1000000000;
    return 0;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
    (void)zone;
    struct timespec precise;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t* into) {
    struct timespec precise;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return (time_t)-1;
    if (into != NULL) *into = precise.tv_sec;
    return precise.tv_sec;
}

static FILE* open_unless_hidden(char const* function, char const* path, char const* mode) {
    if (strcmp(path, "/proc/cpuinfo") == 0) {
        errno = ENOENT;
        return NULL;
    }
    FILE* (*original)(char const*, char const*);
    *(void**)&original = dlsym(RTLD_NEXT, function);
    return original(path, mode);
}

FILE* fopen(char const* path, char const* mode) { return open_unless_hidden("fopen", path, mode); }

FILE* fopen64(char const* path, char const* mode) { return open_unless_hidden("fopen64", path, mode); }
