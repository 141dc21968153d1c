/* Lets libllm.so run with glibc 2.17 and later, though a newer one is linked (GGL_OLD_GLIBC): the linker gives each call of these functions
 * to its __wrap_ here, which calls the function in the version that the first glibc of the processor had. glibc keeps all versions. Where
 * a later version replaced one, only errno in corner cases differs, which nobody reads here, and where the function is defined.
 * cmake/old_glibc.cmake reads the names from this file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRST        "GLIBC_2.2.5"
#define SINCE_CLOCKS "GLIBC_2.3.3"
#define SINCE_AT     "GLIBC_2.4"
#define SINCE_C99    "GLIBC_2.7"
#define STAT_VERSION 1
#elif defined(__aarch64__)
#define FIRST        "GLIBC_2.17"
#define SINCE_CLOCKS FIRST
#define SINCE_AT     FIRST
#define SINCE_C99    FIRST
#define STAT_VERSION 0
#else
#error "GGL_OLD_GLIBC knows the versions of x86-64 and aarch64 only"
#endif

#define WRAP_OF(type, name, old, version, parameters, arguments)                                   \
    __asm__(".symver old_" #name "," #old "@" version);                                            \
    type old_##name parameters;                                                                    \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters {                                                                \
        return old_##name arguments;                                                               \
    }
#define WRAP_AS(type, name, old, parameters, arguments)                                            \
    WRAP_OF(type, name, old, FIRST, parameters, arguments)
#define WRAP(type, name, parameters, arguments) WRAP_AS(type, name, name, parameters, arguments)

/* Begins the definition of a function that takes the calls. */
#define WRAP_BY(type, name, parameters)                                                            \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters

WRAP(double, exp, (double x), (x))
WRAP(double, exp2, (double x), (x))
WRAP(double, fmod, (double x, double y), (x, y))
WRAP(double, log, (double x), (x))
WRAP(double, log2, (double x), (x))
WRAP(double, pow, (double x, double y), (x, y))
WRAP(int, dladdr, (const void *address, Dl_info *info), (address, info))
WRAP(int, dlclose, (void *object), (object))
WRAP(char *, dlerror, (void), ())
WRAP(void *, dlopen, (const char *file, int mode), (file, mode))
WRAP(void *, dlsym, (void *object, const char *name), (object, name))
WRAP(int, pthread_attr_setstacksize, (pthread_attr_t * a, size_t size), (a, size))
WRAP(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *arg),
     (t, a, run, arg))
WRAP(int, pthread_join, (pthread_t t, void **result), (t, result))
WRAP(int, pthread_mutex_trylock, (pthread_mutex_t * m), (m))
WRAP(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old))
WRAP_OF(int, pthread_condattr_setclock, pthread_condattr_setclock, SINCE_CLOCKS,
        (pthread_condattr_t * a, clockid_t clock), (a, clock))

/* These were inline functions of the headers, which called others. */
#define WRAP_STAT(type, name, old, parameter)                                                      \
    __asm__(".symver old_" #name "," #old "@" FIRST);                                              \
    type old_##name(int version, parameter file, struct stat *st);                                 \
    type __wrap_##name(parameter file, struct stat *st);                                           \
    type __wrap_##name(parameter file, struct stat *st) {                                          \
        return old_##name(STAT_VERSION, file, st);                                                 \
    }

WRAP_STAT(int, fstat, __fxstat, int)
WRAP_STAT(int, lstat, __lxstat, const char *)
WRAP_STAT(int, stat, __xstat, const char *)

__asm__(".symver old_fstatat,__fxstatat@" SINCE_AT);
int old_fstatat(int version, int folder, const char *file, struct stat *st, int flags);
WRAP_BY(int, fstatat, (int folder, const char *file, struct stat *st, int flags)) {
    return old_fstatat(STAT_VERSION, folder, file, st, flags);
}

/* In later headers, these stand for those that read numbers. They also know binary ones, which nothing here reads by them. */
WRAP_AS(long, __isoc23_strtol, strtol, (const char *s, char **end, int base), (s, end, base))
WRAP_AS(long long, __isoc23_strtoll, strtoll, (const char *s, char **end, int base), (s, end, base))
WRAP_AS(unsigned long, __isoc23_strtoul, strtoul, (const char *s, char **end, int base),
        (s, end, base))
WRAP_AS(unsigned long long, __isoc23_strtoull, strtoull, (const char *s, char **end, int base),
        (s, end, base))

#define WRAP_SCAN(type, name, old)                                                                 \
    __asm__(".symver old_" #name "," #old "@" SINCE_C99);                                          \
    type old_##name(const char *s, const char *format, va_list list);                              \
    type __wrap_##name(const char *s, const char *format, ...);                                    \
    type __wrap_##name(const char *s, const char *format, ...) {                                   \
        va_list list;                                                                              \
        va_start(list, format);                                                                    \
        type n = old_##name(s, format, list);                                                      \
        va_end(list);                                                                              \
        return n;                                                                                  \
    }
WRAP_SCAN(int, __isoc23_sscanf, __isoc99_vsscanf)

/* --- functions that were not there ------------------------------------------------------------- */

/* The system's call is one of Linux 3.17; what the file gives was there before. */
WRAP_BY(int, getentropy, (void *to, size_t n)) {
    if (syscall(SYS_getrandom, to, n, 0) == (long)n)
        return 0;
    const int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool ok = file >= 0 && read(file, to, n) == (ssize_t)n;
    if (file >= 0)
        close(file);
    return ok ? 0 : -1;
}

#if __GLIBC_PREREQ(2, 33)
/* Its numbers were int: they are those of sizes modulo 2^32. */
__asm__(".symver old_mallinfo,mallinfo@" FIRST);
struct mallinfo old_mallinfo(void);
WRAP_BY(struct mallinfo2, mallinfo2, (void)) {
    const struct mallinfo m = old_mallinfo();
    return (struct mallinfo2){.uordblks = (unsigned)m.uordblks, .hblkhd = (unsigned)m.hblkhd};
}
#endif
