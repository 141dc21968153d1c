/* Statuses and errors. A function that can fail returns a ggl_status and, if the caller passed a
 * ggl_error, leaves a sentence in it that names the thing, the value found and the value allowed.
 *
 *     ggl_error err = {0};
 *     if (ggl_gguf_open(&file, path, NULL, &err) != GGL_OK)
 *         fprintf(stderr, "error: %s\n", err.msg);
 *
 * Threads: the functions have no state; an error belongs to the thread that passes it.
 *
 * Tier: stable (docs/library.md says what that promises). */
#ifndef GGL_STATUS_H
#define GGL_STATUS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define GGL_API __attribute__((visibility("default")))
/* Of private headers: what libllm-train.so calls (docs/library.md). */
#define GGL_INTERNAL_API GGL_API
#define GGL_NODISCARD    __attribute__((warn_unused_result))
#if defined(__MINGW32__) && !defined(__clang__) /* C11's, not those of the system's own library */
#define GGL_PRINTF(fmt, args) __attribute__((format(gnu_printf, fmt, args)))
#else
#define GGL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#endif
#else
#define GGL_API
#define GGL_INTERNAL_API
#define GGL_NODISCARD
#define GGL_PRINTF(fmt, args)
#endif

typedef enum ggl_status {
#define STATUS(NAME, text) GGL_##NAME,
#include "ggl/status.def"
#undef STATUS
    GGL_STATUS_COUNT
} ggl_status;

/* A status with its sentence: no newline at the end; descriptor errors have several lines. */
typedef struct ggl_error {
    ggl_status status;
    char msg[2048];
} ggl_error;

/* The status's short text; never NULL. */
GGL_API const char *ggl_status_text(ggl_status s);

/* Sets *err (which may be NULL) and returns s, for `return ggl_fail(err, GGL_IO, "..")`. Arguments
 * for %s are escaped (a byte that cannot be printed appears as "\x1b"), because they may come from a
 * file. */
GGL_API ggl_status ggl_fail(ggl_error *err, ggl_status s, const char *fmt, ...) GGL_PRINTF(3, 4);
GGL_API ggl_status ggl_failv(ggl_error *err, ggl_status s, const char *fmt, va_list args);

/* Puts "where: " before the message that is already in *err; returns s. `where` is formatted as by
 * ggl_fail. */
GGL_API ggl_status ggl_within(ggl_error *err, ggl_status s, const char *fmt, ...) GGL_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
