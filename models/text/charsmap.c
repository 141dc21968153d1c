#include "charsmap.h"

#include <string.h>

#include "common/little_endian.h"
#include "ggl/steps.h"

static const char KEY[] = "tokenizer.ggml.precompiled_charsmap";

static ggl_status read_bytes(unsigned char **out, ggl_arena *arena, const ggl_gguf_value *v,
                             ggl_error *err) {
    unsigned char *bytes = *out = ggl_arena_alloc(arena, (size_t)v->n + 1, 1);
    if (!bytes)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    for (uint64_t i = 0; i < v->n; i++) {
        int64_t byte;
        if (!v->is_array || !ggl_gguf_integer(v, i, &byte) || byte < -128 || byte > 255)
            return ggl_fail(err, GGL_FORMAT, "%s is %s%s, not an array of bytes", KEY,
                            v->is_array ? "an array of " : "", ggl_gguf_type_name(v->type));
        bytes[i] = (unsigned char)byte;
    }
    return GGL_OK;
}

ggl_status llm_charsmap_check(const char *name, const void *data, size_t n, size_t *n_trie,
                              ggl_error *err) {
    const unsigned char *bytes = data;
    *n_trie = n >= 4 ? (size_t)llm_little_endian(bytes, 4) : 0;
    if (n < 5 || *n_trie > n - 5 || *n_trie % 4 != 0 || bytes[n - 1] != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s has %zu bytes, which do not hold a trie of %zu bytes, a multiple of 4, "
                        "and replacements that end with a NUL",
                        name, n, *n_trie);
    return GGL_OK;
}

ggl_status llm_charsmap_read(charsmap *m, ggl_arena *arena, const ggl_gguf *file, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(file, KEY);
    *m = (charsmap){0};
    if (!v || (v->is_array && v->n == 0))
        return GGL_OK;
    unsigned char *bytes;
    ggl_status s = read_bytes(&bytes, arena, v, err);
    if (s != GGL_OK)
        return s;
    const size_t n = (size_t)v->n;
    size_t n_trie;
    s = llm_charsmap_check(KEY, bytes, n, &n_trie, err);
    if (s != GGL_OK)
        return s;
    m->n_unit = n_trie / 4;
    m->unit = ggl_arena_alloc(arena, m->n_unit + 1, sizeof *m->unit);
    if (!m->unit)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    for (size_t i = 0; i < m->n_unit; i++)
        m->unit[i] = (uint32_t)llm_little_endian(bytes + 4 + 4 * i, 4);
    m->text = (char *)bytes + 4 + n_trie;
    m->n_text = n - 4 - n_trie;
    return GGL_OK;
}

/* Returns a unit's offset, in the format of darts-clone. */
static uint32_t offset_of(uint32_t unit) {
    return (unit >> 10) << (unit & 1u << 9 ? 8 : 0);
}

/* Returns the replacement of a string that ends at unit `at`; s NULL: none. */
static ggl_str replacement_at(const charsmap *m, size_t at) {
    const size_t place = at < m->n_unit ? m->unit[at] & ~(1u << 31) : m->n_text;
    if (place >= m->n_text || !(m->unit[at] >> 31))
        return (ggl_str){NULL, 0};
    return (ggl_str){m->text + place, strnlen(m->text + place, m->n_text - place)};
}

static ggl_status check_lengths(size_t n_string, size_t n_replacement, ggl_error *err) {
    if (n_string > CHARSMAP_LONGEST)
        return ggl_fail(err, GGL_FORMAT, "%s has a string of more than %d bytes", KEY,
                        CHARSMAP_LONGEST);
    if (n_replacement > n_string * CHARSMAP_RATIO)
        return ggl_fail(err, GGL_FORMAT,
                        "%s replaces %zu bytes by %zu, at most %d times as many are supported", KEY,
                        n_string, n_replacement, CHARSMAP_RATIO);
    return GGL_OK;
}

ggl_status llm_charsmap_find(const charsmap *m, const char *s, size_t n, size_t *length,
                             ggl_str *replacement, ggl_error *err) {
    size_t at = m->n_unit > 0 ? offset_of(m->unit[0]) : 0, i = 0;
    *length = 0;
    *replacement = (ggl_str){"", 0};
    for (; i < n && i <= CHARSMAP_LONGEST; i++) {
        const unsigned char byte = (unsigned char)s[i];
        at ^= byte;
        GGL_STEPS(1);
        if (byte == 0 || at >= m->n_unit || (m->unit[at] & (1u << 31 | 0xff)) != byte)
            break;
        const uint32_t unit = m->unit[at];
        at ^= offset_of(unit);
        const ggl_str found = unit >> 8 & 1 ? replacement_at(m, at) : (ggl_str){NULL, 0};
        if (!found.s)
            continue;
        *length = i + 1;
        *replacement = found;
    }
    return check_lengths(i > CHARSMAP_LONGEST ? i : *length, replacement->n, err);
}
