#include "charsmap.h"

#include <string.h>

#include "common/little_endian.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/steps.h"
#include "ggl/internal/show.h"

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

ggl_status llm_charsmap_parse(charsmap *m, ggl_arena *arena, const char *name, const void *data,
                              size_t n, ggl_error *err) {
    const unsigned char *bytes = data;
    const size_t n_trie = n >= 4 ? (size_t)llm_little_endian(bytes, 4) : 0;
    *m = (charsmap){.name = name};
    if (n < 5 || n_trie > n - 5 || n_trie % 4 != 0 || bytes[n - 1] != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s has %zu bytes, which do not hold a trie of %zu bytes, a multiple of 4, "
                        "and replacements that end with a NUL",
                        name, n, n_trie);
    m->unit = ggl_arena_alloc(arena, n_trie / 4 + 1, sizeof *m->unit);
    if (!m->unit)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
    for (; m->n_unit < n_trie / 4; m->n_unit++)
        m->unit[m->n_unit] = (uint32_t)llm_little_endian(bytes + 4 + 4 * m->n_unit, 4);
    m->text = (const char *)bytes + 4 + n_trie;
    m->n_text = n - 4 - n_trie;
    return GGL_OK;
}

ggl_status llm_charsmap_read(charsmap *m, ggl_arena *arena, const ggl_gguf *file, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(file, KEY);
    *m = (charsmap){0};
    if (!v || (v->is_array && v->n == 0))
        return GGL_OK;
    unsigned char *bytes;
    const ggl_status s = read_bytes(&bytes, arena, v, err);
    if (s != GGL_OK)
        return s;
    return llm_charsmap_parse(m, arena, KEY, bytes, (size_t)v->n, err);
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
    return (ggl_str){m->text + place, strlen(m->text + place)}; /* the last byte is a NUL */
}

static ggl_status check_lengths(const charsmap *m, size_t n_string, size_t n_replacement,
                                ggl_error *err) {
    if (n_string > CHARSMAP_LONGEST)
        return ggl_fail(err, GGL_FORMAT, "%s has a string of more than %d bytes", m->name,
                        CHARSMAP_LONGEST);
    if (n_replacement > n_string * CHARSMAP_RATIO)
        return ggl_fail(err, GGL_FORMAT,
                        "%s replaces %zu bytes by %zu, at most %d times as many are supported",
                        m->name, n_string, n_replacement, CHARSMAP_RATIO);
    return GGL_OK;
}

/* Moves *base, from which a string's next unit is found, on by a byte. Returns the unit that the byte
 * leads to, or SIZE_MAX if no string goes on with it. */
static size_t step(const charsmap *m, size_t *base, unsigned char byte) {
    const size_t at = *base ^ byte;
    if (byte == 0 || at >= m->n_unit || (m->unit[at] & (1u << 31 | 0xff)) != byte)
        return SIZE_MAX;
    *base = at ^ offset_of(m->unit[at]);
    return at;
}

static size_t first_base(const charsmap *m) {
    return m->n_unit > 0 ? offset_of(m->unit[0]) : 0;
}

/* True if a string ends at the unit. */
static bool ends(const charsmap *m, size_t unit) {
    return m->unit[unit] >> 8 & 1;
}

ggl_status llm_charsmap_find(const charsmap *m, const char *s, size_t n, size_t *length,
                             ggl_str *replacement, ggl_error *err) {
    size_t base = first_base(m), i = 0;
    *length = 0;
    *replacement = (ggl_str){"", 0};
    for (; i < n && i <= CHARSMAP_LONGEST; i++) {
        GGL_STEPS(1);
        const size_t unit = step(m, &base, (unsigned char)s[i]);
        if (unit == SIZE_MAX)
            break;
        const ggl_str found = ends(m, unit) ? replacement_at(m, base) : (ggl_str){NULL, 0};
        if (!found.s)
            continue;
        *length = i + 1;
        *replacement = found;
    }
    return check_lengths(m, i > CHARSMAP_LONGEST ? i : *length, replacement->n, err);
}

bool llm_charsmap_find_shortest(const charsmap *m, const char *s, size_t n, ggl_str *replacement) {
    size_t base = first_base(m);
    for (size_t i = 0; i < n; i++) {
        const size_t unit = step(m, &base, (unsigned char)s[i]);
        GGL_STEPS(1);
        if (unit == SIZE_MAX)
            return false;
        *replacement = ends(m, unit) ? replacement_at(m, base) : (ggl_str){NULL, 0};
        if (replacement->s)
            return true;
    }
    return false;
}

/* One byte of the string that a walk is at. */
typedef struct place {
    size_t base;
    int next; /* the next byte to try here */
} place;

ggl_status llm_charsmap_check(const charsmap *m, size_t *growth, ggl_error *err) {
    enum { MOST_STEPS = 1 << 22 }; /* NFKC needs less than a tenth */
    place at[CHARSMAP_LONGEST + 2] = {{first_base(m), 1}};
    size_t n = 0, most = 1; /* n: bytes of the current string */
    ggl_status s = GGL_OK;
    for (int n_step = 0; s == GGL_OK && (n > 0 || at[0].next < 256);) {
        if (at[n].next == 256) {
            n--;
            continue;
        }
        at[n + 1] = (place){at[n].base, 1};
        const size_t unit = step(m, &at[n + 1].base, (unsigned char)at[n].next++);
        if (unit == SIZE_MAX)
            continue;
        n++;
        const ggl_str to = ends(m, unit) ? replacement_at(m, at[n].base) : (ggl_str){"", 0};
        if (++n_step == MOST_STEPS)
            s = ggl_fail(err, GGL_LIMIT, "%s has too many strings", m->name);
        else if (!to.s)
            s = ggl_fail(err, GGL_FORMAT, "%s has a string of %zu bytes without a replacement",
                         m->name, n);
        else if (!ggl_utf8_is_valid(to.s, to.n))
            s = ggl_fail(err, GGL_FORMAT, "%s has a replacement that is not UTF-8", m->name);
        else
            s = check_lengths(m, n, to.n, err);
        most = (to.n + n - 1) / n > most ? (to.n + n - 1) / n : most;
    }
    if (growth)
        *growth = most;
    return s;
}
