#include "charsmap.h"

#include <string.h>

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

static uint32_t little(const unsigned char *b) {
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
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
    size_t n = (size_t)v->n, n_trie = n >= 4 ? little(bytes) : 0;
    if (n < 5 || n_trie > n - 5 || n_trie % 4 != 0 || bytes[n - 1] != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s has %zu bytes, which do not hold a trie of %zu bytes, a multiple of 4, "
                        "and replacements that end with a NUL",
                        KEY, n, n_trie);
    m->n_unit = n_trie / 4;
    m->unit = ggl_arena_alloc(arena, m->n_unit + 1, sizeof *m->unit);
    if (!m->unit)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    for (size_t i = 0; i < m->n_unit; i++)
        m->unit[i] = little(bytes + 4 + 4 * i);
    m->text = (char *)bytes + 4 + n_trie;
    m->n_text = n - 4 - n_trie;
    for (size_t at = 0, len; at < m->n_text; at += len + 1) {
        len = strlen(m->text + at);
        if (len > CHARSMAP_LONGEST)
            return ggl_fail(err, GGL_LIMIT,
                            "%s: the replacement at byte %zu has %zu bytes, at most %d are "
                            "supported",
                            KEY, at, len, CHARSMAP_LONGEST);
    }
    return GGL_OK;
}

static uint32_t offset_of(uint32_t unit) {
    return (unit >> 10) << (unit & 1u << 9 ? 8 : 0);
}

size_t llm_charsmap_find(const charsmap *m, const char *s, size_t n, ggl_str *replacement) {
    size_t longest = 0, at = m->n_unit > 0 ? offset_of(m->unit[0]) : 0;
    for (size_t i = 0; i < n && i < CHARSMAP_LONGEST; i++) {
        const unsigned char byte = (unsigned char)s[i];
        at ^= byte;
        GGL_STEPS(1);
        if (byte == 0 || at >= m->n_unit || (m->unit[at] & (1u << 31 | 0xff)) != byte)
            break;
        const uint32_t unit = m->unit[at];
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1) || at >= m->n_unit || !(m->unit[at] >> 31))
            continue;
        size_t place = m->unit[at] & ~(1u << 31);
        if (place >= m->n_text)
            continue;
        longest = i + 1;
        *replacement = (ggl_str){m->text + place, strlen(m->text + place)};
    }
    return longest;
}
