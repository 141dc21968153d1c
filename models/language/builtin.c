/* Opens descriptors: built-in ones, and files. */
#include <errno.h>
#include <string.h>

#include "common/text_file.h"
#include "ggl/internal/os_fs.h"
#include "language.h"

extern const unsigned char llm_other_kinds_text[];
extern const size_t llm_other_kinds_text_size;

/* Returns GGL_OK if the descriptor is for the family, else GGL_NOT_FOUND. Copies the nearest
 * family name seen so far to nearest[2 * ARCH_MAX_NAME]. */
static ggl_status is_for(const llm_arch *header, const char *family, ggl_nearest *near,
                         char *nearest) {
    const char *f;
    for (int i = 0; (f = llm_arch_family(header, i)); i++) {
        if (strcmp(f, family) == 0)
            return GGL_OK;
        size_t before = near->distance;
        ggl_nearest_try(near, f, SIZE_MAX);
        if (near->distance < before && strlen(f) < 2 * ARCH_MAX_NAME)
            strcpy(nearest, f);
    }
    return GGL_NOT_FOUND;
}

/* Finds what a model of this architecture is in other_kinds.txt: "an encoder, ..". False: it is not there. */
static bool is_other_kind(const char *family, ggl_str *what) {
    const char *s = (const char *)llm_other_kinds_text, *end = s + llm_other_kinds_text_size;
    const size_t n = strlen(family);
    for (const char *next; s < end; s = next) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        stop = stop ? stop : end;
        next = stop + 1;
        const char *colon = *s == '#' ? NULL : memchr(s, ':', (size_t)(stop - s));
        for (const char *w = s; colon && w < colon; w++) {
            const char *from = w;
            while (w < colon && *w != ' ')
                w++;
            if ((size_t)(w - from) == n && memcmp(from, family, n) == 0) {
                *what = (ggl_str){colon + 2, (size_t)(stop - colon - 2)};
                return true;
            }
        }
    }
    return false;
}

/* Parses the built-in descriptor for the family. GGL_NOT_FOUND, without a message: there is none; copies the nearest family name
 * to nearest[2 * ARCH_MAX_NAME]. */
static ggl_status open_family(llm_arch **out, const char *family, ggl_nearest *near, char *nearest,
                              ggl_error *err) {
    const char *name, *text;
    size_t n;
    *out = NULL;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
        llm_arch *header;
        ggl_status s = llm_arch_parse_header(&header, text, n, name, err);
        if (s != GGL_OK)
            return s;
        s = is_for(header, family, near, nearest);
        llm_arch_free(header);
        if (s == GGL_OK)
            return llm_arch_parse(out, text, n, name, err);
    }
    return GGL_NOT_FOUND;
}

/* Fails because there is neither a built-in descriptor of the name nor one for a family of it. */
static ggl_status refuse_name(const char *given, ggl_nearest *near, const char *nearest,
                              ggl_error *err) {
    enum { SUFFIX = sizeof ".arch" - 1 };
    const size_t before = near->distance;
    const char *file, *text;
    size_t n;
    for (int k = 0; llm_arch_builtin(k, &file, &text, &n); k++)
        ggl_nearest_try(near, file, strlen(file) - SUFFIX);
    const char *meant = near->distance < before ? near->best : nearest;
    n = near->distance < before ? strlen(meant) - SUFFIX : strlen(meant);
    return ggl_fail(err, GGL_NOT_FOUND,
                    "%s: there is no such file, and no built-in descriptor of that name "
                    "('llm-arch list' prints them)%s%.*s%s",
                    given, n ? "; did you mean '" : "", (int)n, meant, n ? "'?" : "");
}

ggl_status llm_arch_open_given(llm_arch **out, const char *given, bool *builtin, ggl_error *err) {
    const char *file, *text;
    char *own;
    size_t n;
    char nearest[2 * ARCH_MAX_NAME] = "";
    const bool absent =
        !ggl_os_exists(given) && errno == ENOENT && !ggl_os_has_separator(given, strlen(given));
    *out = NULL;
    if (builtin)
        *builtin = absent;
    if (absent && llm_arch_builtin_named(given, &file, &text, &n))
        return llm_arch_parse(out, text, n, file, err);
    if (absent) {
        ggl_nearest near = ggl_nearest_to(given);
        const ggl_status st = open_family(out, given, &near, nearest, err);
        return st == GGL_NOT_FOUND ? refuse_name(given, &near, nearest, err) : st;
    }
    ggl_status s = llm_read_text_file(given, ARCH_MAX_TEXT, &own, &n, err);
    if (s != GGL_OK)
        return s;
    s = llm_arch_parse(out, own, n, given, err);
    ggl_free(own);
    return s;
}

ggl_status llm_arch_open(llm_arch **out, const char *family, ggl_error *err) {
    char nearest[2 * ARCH_MAX_NAME] = "";
    ggl_nearest near = ggl_nearest_to(family);
    const ggl_status st = open_family(out, family, &near, nearest, err);
    if (st != GGL_NOT_FOUND)
        return st;
    ggl_str what;
    if (is_other_kind(family, &what))
        return ggl_fail(err, GGL_NOT_FOUND,
                        "the architecture '%s' is %.*s: this engine runs models of text only "
                        "(docs/architectures.md)",
                        family, (int)what.n, what.s);
    return ggl_fail(
        err, GGL_NOT_FOUND,
        "there is no built-in descriptor for the architecture '%s'%s%s%s; 'llm-arch list' prints "
        "all; to use another descriptor: --arch FILE (docs/architectures.md)",
        family, nearest[0] ? " (did you mean '" : "", nearest, nearest[0] ? "'?)" : "");
}
