/* Decoders of a tokenizer.json: each changes the list of a text's tokens, which are joined in the end. Bytes that make no character stay
 * as they are, where the library writes U+FFFD: so a text comes back byte for byte, and one that is cut goes on. */
#include <string.h>

#include "byte_spelling.h"
#include "steps.h"
#include "unicode.h"

/* --- lists of strings ------------------------------------------------------------------------------ */

static bool add(step_strings *list, const char *s, size_t n) {
    if (list->n == list->cap && !ggl_grow(&list->item, &list->cap, list->n + 1, sizeof *list->item))
        return false;
    list->item[list->n++] = (ggl_str){s, n};
    return true;
}

/* Joins all strings, with `between` between them. */
static bool join_all(step_strings *list, const char *between) {
    const size_t gap = strlen(between);
    size_t n = list->n > 0 ? gap * (list->n - 1) : 0, used = 0;
    for (size_t i = 0; i < list->n; i++)
        n += list->item[i].n;
    char *all = ggl_arena_alloc(&list->arena, n + 1, 1);
    if (!all)
        return false;
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0)
            memcpy(all + used, between, gap);
        used += i > 0 ? gap : 0;
        if (list->item[i].n > 0)
            memcpy(all + used, list->item[i].s, list->item[i].n);
        used += list->item[i].n;
    }
    list->n = 0;
    return add(list, all, used);
}

static bool starts_with(ggl_str s, ggl_str with) {
    return s.n >= with.n && (with.n == 0 || memcmp(s.s, with.s, with.n) == 0);
}

/* Replaces each `what`, which is not empty, by `by`. */
static bool replace_all(ggl_arena *arena, ggl_str *s, ggl_str what, ggl_str by) {
    size_t n_found = 0;
    for (size_t i = 0; what.n > 0 && i + what.n <= s->n;) {
        const bool here = memcmp(s->s + i, what.s, what.n) == 0;
        n_found += here;
        i += here ? what.n : 1;
    }
    if (n_found == 0)
        return true;
    char *out = ggl_arena_alloc(arena, s->n - n_found * what.n + n_found * by.n + 1, 1);
    size_t n = 0;
    for (size_t i = 0; out && i < s->n;) {
        const bool here = i + what.n <= s->n && memcmp(s->s + i, what.s, what.n) == 0;
        if (here && by.n > 0)
            memcpy(out + n, by.s, by.n);
        else if (!here)
            out[n] = s->s[i];
        n += here ? by.n : 1;
        i += here ? what.n : 1;
    }
    *s = (ggl_str){out, n};
    return out != NULL;
}

/* --- decoders -------------------------------------------------------------------------------------- */

static ggl_status run_fuse(const step *s, pretok_finder *finder, step_strings *list,
                           ggl_error *err) {
    (void)s;
    (void)finder;
    return join_all(list, "") ? GGL_OK : llm_step_no_memory(err);
}

static ggl_status run_bpe(const step *s, pretok_finder *finder, step_strings *list,
                          ggl_error *err) {
    (void)finder;
    for (size_t i = 0; i < list->n; i++)
        if (!replace_all(&list->arena, &list->item[i], s->text, (ggl_str){" ", i + 1 < list->n}))
            return llm_step_no_memory(err);
    return GGL_OK;
}

/* Writes the bytes that a string spells; false: it spells none. */
static bool spelled(ggl_str s, char *out, size_t *n) {
    size_t used = 0;
    for (ggl_str left = s; left.n > 0;) {
        const uint32_t c = llm_take_char(&left);
        unsigned b = c;
        if (c >= 0x100 && c <= 0x143)
            b = c - 0x100 <= 0x20 ? c - 0x100 : c - 0x121 + 0x7f <= 0xa0 ? c - 0x121 + 0x7f : 0xad;
        else if (c > 0xff || !llm_byte_is_printable(c))
            return false;
        out[used++] = (char)b;
    }
    *n = used;
    return true;
}

static ggl_status run_byte_level(const step *s, pretok_finder *finder, step_strings *list,
                                 ggl_error *err) {
    (void)s;
    (void)finder;
    for (size_t i = 0; i < list->n; i++) {
        ggl_str *x = &list->item[i];
        size_t n;
        char *bytes = ggl_arena_alloc(&list->arena, x->n + 1, 1);
        if (!bytes)
            return llm_step_no_memory(err);
        if (spelled(*x, bytes, &n))
            *x = (ggl_str){bytes, n};
    }
    return join_all(list, "") ? GGL_OK : llm_step_no_memory(err);
}

/* What a tokenizer puts between words and signs that English writes without a space. */
static bool clean_up(ggl_arena *arena, ggl_str *s) {
    static const char *const pairs[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                           {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                           {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                           {" 've", "'ve"}, {" 're", "'re"}};
    bool ok = true;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && ok; i++)
        ok = replace_all(arena, s, (ggl_str){pairs[i][0], strlen(pairs[i][0])},
                         (ggl_str){pairs[i][1], strlen(pairs[i][1])});
    return ok;
}

static ggl_status run_wordpiece(const step *s, pretok_finder *finder, step_strings *list,
                                ggl_error *err) {
    (void)finder;
    for (size_t i = 0; i < list->n; i++) {
        ggl_str *x = &list->item[i];
        if (i > 0 && starts_with(*x, s->text))
            *x = (ggl_str){x->s + s->text.n, x->n - s->text.n};
        else if (i > 0)
            *x = llm_step_joined(&list->arena, (ggl_str){" ", 1}, *x);
        if (!x->s || (s->flag[0] && !clean_up(&list->arena, x)))
            return llm_step_no_memory(err);
    }
    return GGL_OK;
}

static ggl_status run_metaspace(const step *s, pretok_finder *finder, step_strings *list,
                                ggl_error *err) {
    char mark[4];
    const size_t n = llm_unicode_encode(s->c, mark);
    (void)finder;
    for (size_t i = 0; i < list->n; i++)
        if (!replace_all(&list->arena, &list->item[i], (ggl_str){mark, n},
                         (ggl_str){" ", i > 0 || !s->flag[0]}))
            return llm_step_no_memory(err);
    return GGL_OK;
}

static ggl_status run_ctc(const step *s, pretok_finder *finder, step_strings *list,
                          ggl_error *err) {
    size_t n = 0;
    ggl_str before = {NULL, 0};
    (void)finder;
    for (size_t i = 0; i < list->n; i++) {
        ggl_str x = list->item[i];
        const bool again = before.s && before.n == x.n && starts_with(x, before);
        before = x;
        if (again)
            continue;
        if (!replace_all(&list->arena, &x, s->text, (ggl_str){"", 0}) ||
            (s->flag[0] && (!clean_up(&list->arena, &x) ||
                            !replace_all(&list->arena, &x, s->by, (ggl_str){" ", 1}))))
            return llm_step_no_memory(err);
        list->item[n] = x;
        n += x.n > 0;
    }
    list->n = n;
    return GGL_OK;
}

/* Drops characters at the ends of a string, which are all the same. */
static ggl_status run_strip(const step *s, pretok_finder *finder, step_strings *list,
                            ggl_error *err) {
    char c[4];
    const size_t n = llm_unicode_encode(s->c, c);
    (void)finder;
    (void)err;
    for (size_t i = 0; i < list->n; i++) {
        ggl_str *x = &list->item[i];
        for (size_t k = 0; k < s->length[0] && starts_with(*x, (ggl_str){c, n}); k++)
            *x = (ggl_str){x->s + n, x->n - n};
        for (size_t k = 0; k < s->length[1] && x->n >= n && memcmp(x->s + x->n - n, c, n) == 0; k++)
            x->n -= n;
    }
    return GGL_OK;
}

static ggl_status run_byte_fallback(const step *s, pretok_finder *finder, step_strings *list,
                                    ggl_error *err) {
    (void)s;
    (void)finder;
    for (size_t i = 0; i < list->n; i++) {
        const ggl_str x = list->item[i];
        const bool is_byte =
            x.n == 6 && memcmp(x.s, "<0x", 3) == 0 && x.s[5] == '>' && llm_hex_byte(x.s + 3) >= 0;
        const char byte = is_byte ? (char)llm_hex_byte(x.s + 3) : 0;
        if (is_byte)
            list->item[i] = (ggl_str){ggl_arena_strndup(&list->arena, &byte, 1), 1};
        if (!list->item[i].s)
            return llm_step_no_memory(err);
    }
    return GGL_OK;
}

/* A string in which matches are replaced. */
typedef struct replacer {
    ggl_arena *arena;
    ggl_str from, by;
    char *out;
    size_t n, cap, at;
    size_t left; /* so many bytes more may be written */
} replacer;

static bool put(replacer *x, const char *s, size_t n) {
    if (n > x->left)
        return false;
    x->left -= n;
    if (!ggl_grow(&x->out, &x->cap, x->n + n + 1, 1))
        return false;
    if (n > 0)
        memcpy(x->out + x->n, s, n);
    x->n += n;
    return true;
}

static ggl_status replace(void *context, size_t from, size_t to) {
    replacer *x = context;
    const bool ok = put(x, x->from.s + x->at, from - x->at) && put(x, x->by.s, x->by.n);
    x->at = to;
    return ok ? GGL_OK : GGL_NOMEM;
}

static ggl_status run_replace(const step *s, pretok_finder *finder, step_strings *list,
                              ggl_error *err) {
    replacer x = {.by = s->by, .left = list->most};
    ggl_status status = GGL_OK;
    for (size_t i = 0; i < list->n && status == GGL_OK; i++) {
        x.from = list->item[i];
        x.n = x.at = 0;
        status = x.from.n > 0
                     ? llm_pretok_find(finder, s->pattern, x.from.s, x.from.n, replace, &x, err)
                     : GGL_OK;
        if (status == GGL_OK && (!put(&x, x.from.s + x.at, x.from.n - x.at) ||
                                 !(list->item[i].s = ggl_arena_strndup(&list->arena, x.out, x.n))))
            status = GGL_NOMEM;
        list->item[i].n = x.n;
    }
    ggl_free(x.out);
    return status == GGL_NOMEM ? llm_step_no_memory(err) : status;
}

/* --- members --------------------------------------------------------------------------------------- */

static ggl_status read_bpe(step_reader *r, const json_value *v, step *out) {
    return llm_step_string(r, v, "suffix", &out->text);
}

static ggl_status read_wordpiece(step_reader *r, const json_value *v, step *out) {
    const ggl_status s = llm_step_string(r, v, "prefix", &out->text);
    return s == GGL_OK ? llm_step_flag(r, v, "cleanup", NULL, &out->flag[0]) : s;
}

static ggl_status read_metaspace(step_reader *r, const json_value *v, step *out) {
    const bool yes = true;
    const ggl_status s = llm_step_char(r, v, "replacement", &out->c);
    if (s != GGL_OK)
        return s;
    if (llm_json_is(llm_json_get(v, "prepend_scheme"), "never"))
        return GGL_OK;
    return llm_step_flag(r, v, "add_prefix_space", &yes,
                         &out->flag[0]); /* the first token loses its marks */
}

static ggl_status read_ctc(step_reader *r, const json_value *v, step *out) {
    ggl_status s = llm_step_string(r, v, "pad_token", &out->text);
    if (s == GGL_OK)
        s = llm_step_string(r, v, "word_delimiter_token", &out->by);
    return s == GGL_OK ? llm_step_flag(r, v, "cleanup", NULL, &out->flag[0]) : s;
}

static ggl_status read_strip(step_reader *r, const json_value *v, step *out) {
    ggl_status s = llm_step_char(r, v, "content", &out->c);
    if (s == GGL_OK)
        s = llm_step_length(r, v, "start", &out->length[0]);
    return s == GGL_OK ? llm_step_length(r, v, "stop", &out->length[1]) : s;
}

static ggl_status read_replace(step_reader *r, const json_value *v, step *out) {
    const ggl_status s = llm_step_pattern(r, v, false, out);
    return s == GGL_OK ? llm_step_string(r, v, "content", &out->by) : s;
}

static const struct step_kind kinds[] = {
    {"BPEDecoder", read_bpe, .decode = run_bpe},
    {"ByteLevel", NULL, .decode = run_byte_level},
    {"WordPiece", read_wordpiece, .decode = run_wordpiece},
    {"Metaspace", read_metaspace, .decode = run_metaspace},
    {"CTC", read_ctc, .decode = run_ctc},
    {"Replace", read_replace, .decode = run_replace},
    {"Fuse", NULL, .decode = run_fuse},
    {"Strip", read_strip, .decode = run_strip},
    {"ByteFallback", NULL, .decode = run_byte_fallback},
};

ggl_status llm_steps_read_decoder(step_list *out, step_reader *r, const json_value *v) {
    r->where = "decoder";
    return llm_steps_read(out, r, v, "decoders", kinds, sizeof kinds / sizeof *kinds);
}

ggl_status llm_steps_decode(const step_list *list, step_memory *m, bool has_decoder,
                            step_strings *strings, ggl_error *err) {
    ggl_status s = GGL_OK;
    size_t n = 0;
    for (size_t i = 0; i < strings->n; i++)
        n += strings->item[i].n;
    strings->most = llm_step_most(n) -
                    STEP_ROOM; /* no more room: each token is decoded when a file is opened */
    for (size_t i = 0; i < list->n && s == GGL_OK; i++) {
        const step *x = &list->item[i];
        pretok_finder *finder = x->pattern ? llm_step_finder(m, i) : NULL;
        s = x->pattern && !finder ? llm_step_no_memory(err)
                                  : x->kind->decode(x, finder, strings, err);
    }
    if (s == GGL_OK && !join_all(strings, has_decoder ? "" : " "))
        s = llm_step_no_memory(err);
    return s;
}

ggl_status llm_steps_decode_words(step_strings *strings, ggl_error *err) {
    static const step words = {.text = {"##", 2}, .flag = {true}};
    const ggl_status s = run_wordpiece(&words, NULL, strings, err);
    return s == GGL_OK && !join_all(strings, "") ? llm_step_no_memory(err) : s;
}

bool llm_steps_drop_space(const step_list *list, bool has_decoder) {
    bool drops = !has_decoder;
    for (size_t i = 0; i < list->n; i++) {
        const step *x = &list->item[i];
        drops = drops || x->kind->decode == run_wordpiece ||
                (x->kind->decode == run_metaspace && x->flag[0]) ||
                (x->kind->decode == run_strip && x->c == ' ' && x->length[0] > 0);
    }
    return drops;
}

bool llm_step_strings_add(step_strings *list, ggl_str s) {
    return add(list, s.s, s.n);
}

ggl_status llm_step_strings_take(const step_strings *list, char **text, size_t *size,
                                 ggl_error *err) {
    const ggl_str x = list->n > 0 ? list->item[0] : (ggl_str){"", 0};
    *size = x.n;
    *text = ggl_calloc(x.n + 1, 1);
    if (*text && x.n > 0)
        memcpy(*text, x.s, x.n);
    return *text ? GGL_OK : llm_step_no_memory(err);
}

void llm_step_strings_clear(step_strings *list) {
    ggl_arena_fini(&list->arena);
    list->n = 0;
}

void llm_step_strings_fini(step_strings *list) {
    llm_step_strings_clear(list);
    ggl_free(list->item);
    *list = (step_strings){0};
}
