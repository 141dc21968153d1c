/* Normalizers of a tokenizer.json. */
#include <stdlib.h>
#include <string.h>

#include "byte_spelling.h"
#include "cluster.h"
#include "forms.h"
#include "common/base64.h"
#include "ggl/internal/steps.h"
#include "steps.h"
#include "unicode.h"

/* A walk over the characters of a text. */
typedef struct walk {
    const step_line *in;
    ggl_str left;
    size_t at;  /* where the character begins */
    uint32_t c; /* from 0x110000 on: a byte that is no character */
    bool zero;  /* it stands for the first character of the whole text */
} walk;

static walk begin(const step_line *in) {
    return (walk){.in = in, .left = {in->s, in->n}};
}

static bool next(walk *w) {
    if (w->left.n == 0)
        return false;
    w->at = w->in->n - w->left.n;
    w->zero = w->at < w->in->zero;
    w->c = llm_take_char(&w->left);
    return true;
}

static bool is_ascii(const step_line *in) {
    size_t i = 0;
    while (i < in->n && (unsigned char)in->s[i] < 0x80)
        i++;
    GGL_STEPS(i);
    return i == in->n;
}

/* --- forms of Unicode ---------------------------------------------------------------------------- */

static bool put_formed(void *out, uint32_t c, bool zero) {
    return llm_step_put_char(out, c, zero);
}

static ggl_status form(bool compatible, bool composes, const step_line *in, step_text *out,
                       bool *same, ggl_error *err) {
    unicode_former f = {
        .compatible = compatible, .composes = composes, .put = put_formed, .ctx = out};
    *same = is_ascii(in);
    bool ok = true;
    for (walk w = begin(in); !*same && ok && next(&w);)
        ok = llm_form_add(&f, w.c, w.zero);
    ok = llm_form_end(&f) && ok;
    return ok ? GGL_OK : llm_step_no_memory(err);
}

#define FORM(name, compatible, composes)                                                           \
    static ggl_status name(const step *s, pretok_finder *finder, const step_line *in,              \
                           step_text *out, bool *same, ggl_error *err) {                           \
        (void)s;                                                                                   \
        (void)finder;                                                                              \
        return form(compatible, composes, in, out, same, err);                                     \
    }
FORM(run_nfd, false, false)
FORM(run_nfkd, true, false)
FORM(run_nfc, false, true)
FORM(run_nfkc, true, true)

/* --- character by character ----------------------------------------------------------------------- */

static ggl_status run_lowercase(const step *s, pretok_finder *finder, const step_line *in,
                                step_text *out, bool *same, ggl_error *err) {
    (void)s;
    (void)finder;
    (void)same;
    bool ok = true;
    for (walk w = begin(in); next(&w);) {
        uint32_t mark = 0;
        const uint32_t lower = w.c < 0x110000 ? llm_unicode_lower(w.c, &mark) : w.c;
        ok = ok && llm_step_put_char(out, lower, w.zero) &&
             (!mark || llm_step_put_char(out, mark, w.zero));
    }
    return ok ? GGL_OK : llm_step_no_memory(err);
}

static ggl_status run_strip_accents(const step *s, pretok_finder *finder, const step_line *in,
                                    step_text *out, bool *same, ggl_error *err) {
    (void)s;
    (void)finder;
    bool ok = true;
    *same = is_ascii(in);
    if (*same)
        return GGL_OK;
    for (walk w = begin(in); next(&w);)
        if (w.c < 0x300 || w.c >= 0x110000 || !(llm_unicode_step(w.c) & STEP_MARK))
            ok = ok && llm_step_put_char(out, w.c, w.zero);
    return ok ? GGL_OK : llm_step_no_memory(err);
}

static bool is_white(uint32_t c) {
    return c < 0x110000 && (llm_unicode_properties(c) & UNICODE_WHITE);
}

static ggl_status run_strip(const step *s, pretok_finder *finder, const step_line *in,
                            step_text *out, bool *same, ggl_error *err) {
    (void)finder;
    (void)same;
    size_t from = 0, to = 0; /* of what stays */
    bool begun = false;
    for (walk w = begin(in); next(&w);) {
        if (!is_white(w.c)) {
            from = begun ? from : w.at;
            to = in->n - w.left.n;
            begun = true;
        }
    }
    from = s->flag[0] ? (begun ? from : in->n) : 0;
    to = s->flag[1] ? (begun ? to : from) : in->n;
    const size_t zero = from < in->zero ? in->zero - from : 0;
    return to <= from ||
                   (llm_step_put(out, in->s + from, zero < to - from ? zero : to - from, true) &&
                    (zero >= to - from ||
                     llm_step_put(out, in->s + from + zero, to - from - zero, false)))
               ? GGL_OK
               : llm_step_no_memory(err);
}

static ggl_status read_strip(step_reader *r, const json_value *v, step *out) {
    ggl_status s = llm_step_flag(r, v, "strip_left", NULL, &out->flag[0]);
    return s == GGL_OK ? llm_step_flag(r, v, "strip_right", NULL, &out->flag[1]) : s;
}

/* What SentencePiece's rules "nmt" drop, and what they take for a space. */
static ggl_status run_nmt(const step *s, pretok_finder *finder, const step_line *in, step_text *out,
                          bool *same, ggl_error *err) {
    static const uint32_t dropped[][2] = {{0x01, 0x08}, {0x0b, 0x0b}, {0x0e, 0x1f},
                                          {0x7f, 0x7f}, {0x8f, 0x8f}, {0x9f, 0x9f}},
                          spaces[][2] = {{0x09, 0x0a},     {0x0c, 0x0d},     {0x1680, 0x1680},
                                         {0x200b, 0x200f}, {0x2028, 0x2029}, {0x2581, 0x2581},
                                         {0xfeff, 0xfeff}, {0xfffd, 0xfffd}};
    (void)s;
    (void)finder;
    (void)same;
    bool ok = true;
    for (walk w = begin(in); next(&w);) {
        bool drops = false, is_space = false;
        for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
            drops = drops || (w.c >= dropped[i][0] && w.c <= dropped[i][1]);
        for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
            is_space = is_space || (w.c >= spaces[i][0] && w.c <= spaces[i][1]);
        ok = ok && (drops || llm_step_put_char(out, is_space ? ' ' : w.c, w.zero));
    }
    return ok ? GGL_OK : llm_step_no_memory(err);
}

static ggl_status run_byte_level(const step *s, pretok_finder *finder, const step_line *in,
                                 step_text *out, bool *same, ggl_error *err) {
    (void)s;
    (void)finder;
    (void)same;
    for (size_t i = 0; i < in->n; i++) {
        char spelled[2];
        const size_t n = llm_spell_byte((unsigned char)in->s[i], spelled);
        if (!llm_step_put(out, spelled, n, i < in->zero))
            return llm_step_no_memory(err);
    }
    return GGL_OK;
}

/* --- BERT ----------------------------------------------------------------------------------------- */

/* The blocks of BERT's own code, which leaves out U+2B820 to U+2B91F. */
static bool is_chinese(uint32_t c) {
    static const uint32_t blocks[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                         {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                         {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    for (size_t i = 0; c >= 0x3400 && i < sizeof blocks / sizeof *blocks; i++)
        if (c >= blocks[i][0] && c <= blocks[i][1])
            return true;
    return false;
}

enum { CLEAN, CHINESE, STRIP, LOWER };

/* Cleans a text and puts spaces around Chinese characters. */
static bool bert_clean(const step *s, const step_line *in, step_text *out) {
    bool ok = true;
    for (walk w = begin(in); next(&w);) {
        const uint32_t c = w.c;
        const bool other =
                       c >= 0x110000 || c == 0 || c == 0xfffd || (llm_unicode_step(c) & STEP_OTHER),
                   drops = s->flag[CLEAN] && other && c != '\t' && c != '\n' && c != '\r';
        const uint32_t x = s->flag[CLEAN] && is_white(c) ? ' ' : c;
        const bool alone = s->flag[CHINESE] && is_chinese(x);
        ok = ok && (drops || ((!alone || llm_step_put_char(out, ' ', w.zero)) &&
                              llm_step_put_char(out, x, w.zero) &&
                              (!alone || llm_step_put_char(out, ' ', w.zero))));
    }
    return ok;
}

static ggl_status run_bert(const step *s, pretok_finder *finder, const step_line *in,
                           step_text *out, bool *same, ggl_error *err) {
    step_text other = {0};
    const step_line *now = in;
    step_line line = *in;
    bool ok = bert_clean(s, now, out), plain = false;
    ggl_status status = ok ? GGL_OK : llm_step_no_memory(err);
    line = (step_line){out->s, out->n, out->zero, false};
    if (status == GGL_OK && s->flag[STRIP] && !is_ascii(&line)) {
        status = form(false, false, &line, &other, &plain, err);
        line = (step_line){other.s, other.n, other.zero, false};
        out->n = out->zero = 0;
        if (status == GGL_OK) {
            for (walk w = begin(&line); next(&w);)
                if (w.c < 0x300 || w.c >= 0x110000 || !(llm_unicode_step(w.c) & STEP_NO_SPACE))
                    ok = ok && llm_step_put_char(out, w.c, w.zero);
        }
    }
    if (status == GGL_OK && ok && s->flag[LOWER]) {
        other.n = other.zero = 0;
        line = (step_line){out->s, out->n, out->zero, false};
        status = run_lowercase(s, finder, &line, &other, same, err);
        const step_text swapped = *out;
        *out = other;
        other = swapped;
    }
    ggl_free(other.s);
    return status != GGL_OK || ok ? status : llm_step_no_memory(err);
}

static ggl_status read_bert(step_reader *r, const json_value *v, step *out) {
    static const bool yes = true;
    ggl_status s = llm_step_flag(r, v, "clean_text", &yes, &out->flag[CLEAN]);
    if (s == GGL_OK)
        s = llm_step_flag(r, v, "handle_chinese_chars", &yes, &out->flag[CHINESE]);
    if (s == GGL_OK)
        s = llm_step_flag(r, v, "lowercase", &yes, &out->flag[LOWER]);
    return s == GGL_OK ? llm_step_flag(r, v, "strip_accents", &out->flag[LOWER], &out->flag[STRIP])
                       : s;
}

/* --- strings -------------------------------------------------------------------------------------- */

static ggl_status read_prepend(step_reader *r, const json_value *v, step *out) {
    return llm_step_string(r, v, "prepend", &out->text);
}

static ggl_status run_prepend(const step *s, pretok_finder *finder, const step_line *in,
                              step_text *out, bool *same, ggl_error *err) {
    (void)finder;
    *same = in->n == 0 || in->no_prefix;
    return *same || (llm_step_put(out, s->text.s, s->text.n, in->zero > 0) &&
                     llm_step_put(out, in->s, in->zero, true) &&
                     llm_step_put(out, in->s + in->zero, in->n - in->zero, false))
               ? GGL_OK
               : llm_step_no_memory(err);
}

static ggl_status read_replace(step_reader *r, const json_value *v, step *out) {
    const ggl_status s = llm_step_pattern(r, v, false, out);
    return s == GGL_OK ? llm_step_string(r, v, "content", &out->by) : s;
}

/* A text in which matches are replaced. */
typedef struct replacer {
    const step *s;
    const step_line *in;
    step_text *out;
    size_t at; /* so much is done */
    bool any;
    ggl_error *err;
} replacer;

static bool copy_to(replacer *x, size_t to) {
    const size_t zero = x->in->zero < x->at ? x->at : x->in->zero > to ? to : x->in->zero;
    const bool ok = llm_step_put(x->out, x->in->s + x->at, zero - x->at, true) &&
                    llm_step_put(x->out, x->in->s + zero, to - zero, false);
    x->at = to;
    return ok;
}

static ggl_status replace(void *context, size_t from, size_t to) {
    replacer *x = context;
    x->any = true;
    const bool ok = copy_to(x, from);
    x->at = to;
    /* what takes its place stands for its last character */
    return ok && llm_step_put(x->out, x->s->by.s, x->s->by.n, to <= x->in->zero)
               ? GGL_OK
               : llm_step_no_memory(x->err);
}

static ggl_status run_replace(const step *s, pretok_finder *finder, const step_line *in,
                              step_text *out, bool *same, ggl_error *err) {
    replacer x = {.s = s, .in = in, .out = out, .err = err};
    const ggl_status status = llm_pretok_find(finder, s->pattern, in->s, in->n, replace, &x, err);
    *same = !x.any;
    return status == GGL_OK && x.any && !copy_to(&x, in->n) ? llm_step_no_memory(err) : status;
}

/* --- Precompiled ----------------------------------------------------------------------------------- */

static ggl_status read_precompiled(step_reader *r, const json_value *v, step *out) {
    const json_value *map = llm_json_get(v, "precompiled_charsmap");
    if (!map || map->kind == JSON_NULL || (map->kind == JSON_STRING && map->n == 0))
        return GGL_OK;
    if (map->kind != JSON_STRING)
        return ggl_fail(r->err, GGL_FORMAT, "%s: precompiled_charsmap is %s, not a string",
                        r->where, llm_json_kind_text(map->kind));
    unsigned char *bytes = ggl_arena_alloc(r->arena, llm_base64_room(map->n) + 1, 1);
    size_t n = 0, at;
    if (!bytes)
        return llm_step_no_memory(r->err);
    if (!llm_base64_decode(bytes, &n, json_str(map), &at))
        return ggl_fail(r->err, GGL_FORMAT, "%s: precompiled_charsmap is not base64 at %zu",
                        r->where, at);
    return llm_charsmap_parse(&out->map, r->arena, "precompiled_charsmap", bytes, n, r->err);
}

enum { MOST_CLUSTER = 6 }; /* the library looks up clusters of fewer bytes as a whole */

/* Counts characters, so that the zero of a text can be found again after some are gone. */
static size_t count(const char *s, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; count++)
        i += llm_utf8_length(s + i, n - i);
    return count;
}

/* Where the library thinks it is in the text: it does not notice what became nothing before anything else was written. */
typedef struct place {
    size_t at, zero; /* characters */
} place;

/* Writes what a string became: character by character in the place of its own, and what is longer in the place of the last one. */
static bool put_at(step_text *out, place *p, ggl_str old, ggl_str new) {
    const size_t n_old = count(old.s, old.n);
    bool ok = true;
    for (size_t i = 0, k = 0, len; i < new.n &&ok; i += len, k++) {
        len = llm_utf8_length(new.s + i, new.n - i);
        ok = llm_step_put(out, new.s + i, len, p->at + (k < n_old ? k : n_old - 1) < p->zero);
    }
    p->at += out->n > 0 ? n_old : 0;
    return ok;
}

/* The library replaces a cluster by what the shortest string at its beginning becomes, as a whole; longer ones character by character. */
static ggl_status run_precompiled(const step *s, pretok_finder *finder, const step_line *in,
                                  step_text *out, bool *same, ggl_error *err) {
    (void)finder;
    const charsmap *m = &s->map;
    place p = {0, count(in->s, in->zero)};
    bool ok = true, any = false;
    if (m->n_unit == 0) {
        *same = true;
        return GGL_OK;
    }
    for (size_t i = 0, n; i < in->n && ok; i += n) {
        ggl_str by;
        n = llm_cluster_length(in->s + i, in->n - i);
        if (n < MOST_CLUSTER && llm_charsmap_find_shortest(m, in->s + i, n, &by)) {
            ok = put_at(out, &p, (ggl_str){in->s + i, n}, by);
            any = true;
            continue;
        }
        for (size_t k = 0, len; k < n && ok; k += len) {
            len = llm_utf8_length(in->s + i + k, n - k);
            const ggl_str old = {in->s + i + k, len};
            const bool found = llm_charsmap_find_shortest(m, old.s, len, &by);
            ok = put_at(out, &p, old, found ? by : old);
            any = any || found;
        }
    }
    *same = ok && !any;
    if (*same)
        out->n = out->zero = 0;
    return ok ? GGL_OK : llm_step_no_memory(err);
}

/* --- the list -------------------------------------------------------------------------------------- */

static const struct step_kind kinds[] = {
    {"BertNormalizer", read_bert, .normalize = run_bert},
    {"Strip", read_strip, .normalize = run_strip},
    {"StripAccents", NULL, .normalize = run_strip_accents},
    {"NFC", NULL, .normalize = run_nfc},
    {"NFD", NULL, .normalize = run_nfd},
    {"NFKC", NULL, .normalize = run_nfkc},
    {"NFKD", NULL, .normalize = run_nfkd},
    {"Lowercase", NULL, .normalize = run_lowercase},
    {"Nmt", NULL, .normalize = run_nmt},
    {"Precompiled", read_precompiled, .normalize = run_precompiled},
    {"Replace", read_replace, .normalize = run_replace},
    {"Prepend", read_prepend, .normalize = run_prepend},
    {"ByteLevel", NULL, .normalize = run_byte_level},
};

ggl_status llm_steps_read_normalizer(step_list *out, step_reader *r, const json_value *v) {
    r->where = "normalizer";
    return llm_steps_read(out, r, v, "normalizers", kinds, sizeof kinds / sizeof *kinds);
}

ggl_status llm_steps_normalize(const step_list *list, step_memory *m, const step_line *in,
                               step_text text[2], step_line *out, ggl_error *err) {
    int next = 0;
    *out = *in;
    for (size_t i = 0; i < list->n; i++) {
        const step *x = &list->item[i];
        step_text *to = &text[next];
        bool same = false;
        pretok_finder *finder = x->pattern ? llm_step_finder(m, i) : NULL;
        if (x->pattern && !finder)
            return llm_step_no_memory(err);
        to->n = to->zero = 0;
        to->most = llm_step_most(in->n);
        const ggl_status s = x->kind->normalize(x, finder, out, to, &same, err);
        if (s != GGL_OK)
            return s;
        if (same)
            continue;
        *out = (step_line){to->s, to->n, to->zero, in->no_prefix};
        next = 1 - next;
    }
    return GGL_OK;
}
