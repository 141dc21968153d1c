/* Pre-tokenizers of a tokenizer.json. Each cuts a piece into smaller ones, which it hands to the next. Steps that write a text have a buffer
 * each, as the pieces of one are alive while later steps work on them. */
#include <string.h>

#include "byte_spelling.h"
#include "ggl/internal/steps.h"
#include "steps.h"
#include "unicode.h"

/* Hands s[from..to) of a piece to the steps behind `at`; nothing, if it is empty. */
static ggl_status hand_on(step_cutter *c, size_t at, const step_piece *p, size_t from, size_t to) {
    if (from >= to)
        return GGL_OK;
    const step_piece part = {.s = p->s + from,
                             .n = to - from,
                             .at_zero = p->at_zero && from < p->zero,
                             .zero = from < p->zero ? (p->zero < to ? p->zero : to) - from : 0,
                             .begins = p->begins && from == 0};
    return llm_steps_cut(c, at + 1, &part);
}

ggl_status llm_steps_cut(step_cutter *c, size_t at, const step_piece *p) {
    return at < c->list->n ? c->list->item[at].kind->cut(c, at, p)
                           : c->piece(c->context, p->s, p->n);
}

/* --- matches and what is between them -------------------------------------------------------------- */

/* A piece that is cut at matches, as the behavior says. */
typedef struct splitter {
    step_cutter *c;
    size_t at;
    const step_piece *p;
    step_behavior behavior;
    bool invert;
    size_t done;     /* matches and gaps up to here were seen */
    size_t from, to; /* a part that waits, as the next one may belong to it */
    bool waits, was_match, any;
} splitter;

static ggl_status give(splitter *x) {
    const bool waits = x->waits;
    x->waits = false;
    return waits ? hand_on(x->c, x->at, x->p, x->from, x->to) : GGL_OK;
}

/* Takes the next part, which is a match or not. */
static ggl_status take_part(splitter *x, size_t from, size_t to, bool is_match) {
    is_match = is_match != x->invert;
    bool joins = false;
    if (x->behavior == STEP_CONTIGUOUS)
        joins = is_match == x->was_match;
    else if (x->behavior == STEP_MERGED_WITH_PREVIOUS)
        joins = is_match && !x->was_match;
    else if (x->behavior == STEP_MERGED_WITH_NEXT)
        joins = !is_match &&
                x->was_match; /* the part before is a delimiter, to which this one belongs */
    ggl_status s = GGL_OK;
    if (joins && x->waits) {
        x->to = to;
    } else {
        s = give(x);
        x->waits = x->behavior != STEP_REMOVED || !is_match;
        x->from = from;
        x->to = to;
    }
    x->was_match = is_match;
    return s;
}

static ggl_status found(void *context, size_t from, size_t to) {
    splitter *x = context;
    ggl_status s = from > x->done ? take_part(x, x->done, from, false) : GGL_OK;
    if (s == GGL_OK)
        s = take_part(x, from, to, true);
    x->done = to;
    return s;
}

static ggl_status end_split(splitter *x) {
    const ggl_status s = x->done < x->p->n ? take_part(x, x->done, x->p->n, false) : GGL_OK;
    return s == GGL_OK ? give(x) : s;
}

/* Cuts a piece at each character that `holds` says. */
static ggl_status cut_at(step_cutter *c, size_t at, const step_piece *p, step_behavior behavior,
                         bool (*holds)(uint32_t c, uint32_t wanted), uint32_t wanted) {
    splitter x = {.c = c, .at = at, .p = p, .behavior = behavior};
    ggl_status s = GGL_OK;
    for (ggl_str left = {p->s, p->n}; left.n > 0 && s == GGL_OK;) {
        const size_t from = p->n - left.n;
        GGL_STEPS(1);
        if (holds(llm_take_char(&left), wanted))
            s = found(&x, from, p->n - left.n);
    }
    return s == GGL_OK ? end_split(&x) : s;
}

static bool is_white(uint32_t c, uint32_t wanted) {
    (void)wanted;
    return c < 128 ? c == ' ' || (c >= 9 && c <= 13)
                   : c < 0x110000 && (llm_unicode_properties(c) & UNICODE_WHITE);
}

static bool has_bit(uint32_t c, uint32_t wanted) {
    return c < 0x110000 && (llm_unicode_step(c) & wanted);
}

static bool is_character(uint32_t c, uint32_t wanted) {
    return c == wanted;
}

static ggl_status cut_white(step_cutter *c, size_t at, const step_piece *p) {
    return cut_at(c, at, p, STEP_REMOVED, is_white, 0);
}

static ggl_status cut_punctuation(step_cutter *c, size_t at, const step_piece *p) {
    return cut_at(c, at, p, c->list->item[at].behavior, has_bit, STEP_PUNCTUATION);
}

static ggl_status cut_digits(step_cutter *c, size_t at, const step_piece *p) {
    return cut_at(c, at, p, c->list->item[at].flag[0] ? STEP_ISOLATED : STEP_CONTIGUOUS, has_bit,
                  STEP_NUMBER);
}

static ggl_status cut_delimiter(step_cutter *c, size_t at, const step_piece *p) {
    return cut_at(c, at, p, STEP_REMOVED, is_character, c->list->item[at].c);
}

/* BERT's: words between white space, and each punctuation mark. */
static ggl_status cut_bert(step_cutter *c, size_t at, const step_piece *p) {
    ggl_status s = GGL_OK;
    size_t word = 0;
    for (ggl_str left = {p->s, p->n}; left.n > 0 && s == GGL_OK;) {
        const size_t from = p->n - left.n;
        const uint32_t x = llm_take_char(&left);
        const bool white = is_white(x, 0), mark = !white && has_bit(x, STEP_PUNCTUATION);
        GGL_STEPS(1);
        if (!white && !mark)
            continue;
        s = hand_on(c, at, p, word, from);
        if (s == GGL_OK && mark)
            s = hand_on(c, at, p, from, p->n - left.n);
        word = p->n - left.n;
    }
    return s == GGL_OK ? hand_on(c, at, p, word, p->n) : s;
}

/* Runs of word characters, and of others but white space. */
static ggl_status cut_words(step_cutter *c, size_t at, const step_piece *p) {
    ggl_status s = GGL_OK;
    size_t from = 0;
    int before = 0;
    for (ggl_str left = {p->s, p->n}; left.n > 0 && s == GGL_OK;) {
        const size_t here = p->n - left.n;
        const uint32_t x = llm_take_char(&left);
        const int kind = is_white(x, 0) ? 0 : has_bit(x, STEP_WORD) ? 1 : 2;
        GGL_STEPS(1);
        if (kind == before)
            continue;
        if (before != 0)
            s = hand_on(c, at, p, from, here);
        from = here;
        before = kind;
    }
    return s == GGL_OK && before != 0 ? hand_on(c, at, p, from, p->n) : s;
}

static ggl_status cut_split(step_cutter *c, size_t at, const step_piece *p) {
    const step *own = &c->list->item[at];
    splitter x = {.c = c, .at = at, .p = p, .behavior = own->behavior, .invert = own->flag[0]};
    pretok_finder *finder = llm_step_finder(c->memory, at);
    if (!finder)
        return llm_step_no_memory(c->err);
    const ggl_status s = llm_pretok_find(finder, own->pattern, p->s, p->n, found, &x, c->err);
    return s == GGL_OK ? end_split(&x) : s;
}

/* --- other cuts ------------------------------------------------------------------------------------ */

static ggl_status cut_length(step_cutter *c, size_t at, const step_piece *p) {
    const size_t length = c->list->item[at].length[0];
    ggl_status s = GGL_OK;
    size_t from = 0, n = 0;
    for (ggl_str left = {p->s, p->n}; left.n > 0 && s == GGL_OK;) {
        (void)llm_take_char(&left);
        if (++n < length && left.n > 0)
            continue;
        s = hand_on(c, at, p, from, p->n - left.n);
        from = p->n - left.n;
        n = 0;
    }
    return s;
}

/* As the library: characters in front of the first one that has a script are dropped. */
static ggl_status cut_scripts(step_cutter *c, size_t at, const step_piece *p) {
    ggl_status s = GGL_OK;
    unsigned last = 0; /* none */
    size_t from = p->n;
    for (ggl_str left = {p->s, p->n}; left.n > 0 && s == GGL_OK;) {
        const size_t here = p->n - left.n;
        const uint32_t x = llm_take_char(&left);
        const unsigned script = x < 0x110000 ? llm_unicode_script(x) : 0;
        GGL_STEPS(1);
        if (script == 0 || script == last)
            continue;
        s = hand_on(c, at, p, from, here);
        from = here;
        last = script;
    }
    return s == GGL_OK ? hand_on(c, at, p, from, p->n) : s;
}

/* --- steps that write ------------------------------------------------------------------------------ */

enum { ALWAYS, FIRST, NEVER }; /* a text gets a mark in front: length[0] */

static bool starts_with(const step_piece *p, const char *s, size_t n) {
    return p->n >= n && memcmp(p->s, s, n) == 0;
}

/* Makes a piece of what a step has written. */
static step_piece written(const step_text *t, const step_piece *p) {
    return (step_piece){
        .s = t->s, .n = t->n, .zero = t->zero, .at_zero = p->at_zero, .begins = p->begins};
}

static ggl_status cut_metaspace(step_cutter *c, size_t at, const step_piece *p) {
    const step *own = &c->list->item[at];
    step_text *t = &c->text[at];
    char mark[4];
    const size_t n_mark = llm_unicode_encode(own->c, mark), scheme = own->length[0];
    const bool has_mark = starts_with(p, mark, n_mark) || starts_with(p, " ", 1),
               wanted =
                   !p->begins && !has_mark && (scheme == ALWAYS || (scheme == FIRST && p->at_zero));
    t->n = t->zero = 0;
    bool ok = !wanted || llm_step_put(t, mark, n_mark, p->zero > 0);
    for (size_t i = 0; i < p->n && ok;) {
        const char *space = memchr(p->s + i, ' ', p->n - i);
        const size_t to = space ? (size_t)(space - p->s) : p->n, zero = p->zero < i    ? i
                                                                        : p->zero > to ? to
                                                                                       : p->zero;
        ok = llm_step_put(t, p->s + i, zero - i, true) &&
             llm_step_put(t, p->s + zero, to - zero, false) &&
             (!space || llm_step_put(t, mark, n_mark, to < p->zero));
        i = to + (space != NULL);
    }
    if (!ok)
        return llm_step_no_memory(c->err);
    const step_piece all = written(t, p);
    if (!own->flag[0])
        return llm_steps_cut(c, at + 1, &all);
    return cut_at(c, at, &all, STEP_MERGED_WITH_NEXT, is_character, own->c);
}

static const char GPT2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* A word that ByteLevel spells byte by byte. */
typedef struct speller {
    step_cutter *c;
    size_t at;
    const step_piece *p;
} speller;

static ggl_status spell(const speller *x, size_t from, size_t to) {
    step_text *t = &x->c->text[x->at];
    const step_piece *p = x->p;
    const size_t before = t->n;
    if (from >= to)
        return GGL_OK;
    if (2 * (to - from) > t->most - t->n || !ggl_grow(&t->s, &t->cap, t->n + 2 * (to - from), 1))
        return llm_step_no_memory(x->c->err);
    size_t zero = 0;
    for (size_t i = from; i < to; i++) {
        t->n += llm_spell_byte((unsigned char)p->s[i], t->s + t->n);
        zero = i < p->zero ? t->n - before : zero;
    }
    GGL_STEPS(to - from);
    const step_piece word = {.s = t->s + before,
                             .n = t->n - before,
                             .zero = zero,
                             .at_zero =
                                 p->at_zero && (from < p->zero || !x->c->list->item[x->at].pattern),
                             .begins = p->begins && from == 0};
    const ggl_status s = llm_steps_cut(x->c, x->at + 1, &word);
    t->n = before;
    return s;
}

/* What spell_found has seen of a text. */
typedef struct speller_run {
    speller of;
    size_t done;
} speller_run;

static ggl_status spell_found(void *context, size_t from, size_t to) {
    speller_run *x = context;
    ggl_status s = spell(&x->of, x->done, from);
    x->done = to;
    return s == GGL_OK ? spell(&x->of, from, to) : s;
}

static ggl_status cut_bytes(step_cutter *c, size_t at, const step_piece *p) {
    const step *own = &c->list->item[at];
    step_text *t = &c->text[at];
    step_piece all = *p;
    t->n = t->zero = 0;
    if (own->flag[0] && !p->begins && !starts_with(p, " ", 1)) {
        if (!llm_step_put(t, " ", 1, p->zero > 0) || !llm_step_put(t, p->s, p->zero, true) ||
            !llm_step_put(t, p->s + p->zero, p->n - p->zero, false))
            return llm_step_no_memory(c->err);
        /* room for the words, so that the text stays where it is */
        if (!ggl_grow(&t->s, &t->cap, 3 * t->n, 1))
            return llm_step_no_memory(c->err);
        all = written(t, p);
    }
    speller_run x = {{c, at, &all}, 0};
    ggl_status s = GGL_OK;
    if (own->pattern) {
        pretok_finder *finder = llm_step_finder(c->memory, at);
        s = finder ? llm_pretok_find(finder, own->pattern, all.s, all.n, spell_found, &x, c->err)
                   : llm_step_no_memory(c->err);
    }
    return s == GGL_OK ? spell(&x.of, x.done, all.n) : s;
}

/* --- members --------------------------------------------------------------------------------------- */

static const bool
    yes = true,
    no = false; /* what is taken for members that are missing; the library asks for most of them */

static ggl_status read_behavior(step_reader *r, const json_value *v, step *out) {
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    const json_value *x = llm_json_get(v, "behavior");
    out->behavior = STEP_ISOLATED;
    if (!x)
        return GGL_OK;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (llm_json_is(x, names[i])) {
            out->behavior = (step_behavior)i;
            return GGL_OK;
        }
    return ggl_fail(r->err, GGL_FORMAT,
                    "%s: 'behavior' of a step is none of Removed, Isolated, MergedWithPrevious, "
                    "MergedWithNext and Contiguous",
                    r->where);
}

static ggl_status read_punctuation(step_reader *r, const json_value *v, step *out) {
    return read_behavior(r, v, out);
}

static ggl_status read_split(step_reader *r, const json_value *v, step *out) {
    ggl_status s = llm_step_pattern(r, v, true, out);
    if (s == GGL_OK)
        s = read_behavior(r, v, out);
    return s == GGL_OK ? llm_step_flag(r, v, "invert", &no, &out->flag[0]) : s;
}

static ggl_status read_digits(step_reader *r, const json_value *v, step *out) {
    return llm_step_flag(r, v, "individual_digits", NULL, &out->flag[0]);
}

static ggl_status read_delimiter(step_reader *r, const json_value *v, step *out) {
    return llm_step_char(r, v, "delimiter", &out->c);
}

static ggl_status read_length(step_reader *r, const json_value *v, step *out) {
    out->length[0] = 5;
    const ggl_status s =
        llm_json_get(v, "length") ? llm_step_length(r, v, "length", &out->length[0]) : GGL_OK;
    return s == GGL_OK && out->length[0] == 0
               ? ggl_fail(r->err, GGL_FORMAT, "%s: 'length' of a step is 0", r->where)
               : s;
}

static ggl_status read_metaspace(step_reader *r, const json_value *v, step *out) {
    static const char *const names[] = {"always", "first", "never"};
    const json_value *scheme = llm_json_get(v, "prepend_scheme");
    bool prefix = true, known = !scheme;
    for (size_t i = 0; scheme && i < sizeof names / sizeof *names; i++)
        if (llm_json_is(scheme, names[i])) {
            out->length[0] = i;
            known = true;
        }
    if (!known)
        return ggl_fail(r->err, GGL_FORMAT,
                        "%s: 'prepend_scheme' of Metaspace is none of always, first and never",
                        r->where);
    ggl_status s = llm_step_char(r, v, "replacement", &out->c);
    if (s == GGL_OK)
        s = llm_step_flag(r, v, "split", &yes, &out->flag[0]);
    if (s == GGL_OK)
        s = llm_step_flag(r, v, "add_prefix_space", &yes, &prefix);
    if (s == GGL_OK && !prefix && scheme && out->length[0] != NEVER)
        return ggl_fail(
            r->err, GGL_FORMAT,
            "%s: 'add_prefix_space' of Metaspace is false, but 'prepend_scheme' is not never",
            r->where);
    if (!prefix)
        out->length[0] = NEVER;
    return s;
}

static ggl_status read_bytes(step_reader *r, const json_value *v, step *out) {
    bool own_words = true;
    ggl_status s = llm_step_flag(r, v, "add_prefix_space", &no, &out->flag[0]);
    if (s == GGL_OK)
        s = llm_step_flag(r, v, "use_regex", &yes, &own_words);
    return s == GGL_OK && own_words ? llm_pretok_compile(&out->pattern, r->arena,
                                                         (ggl_str){GPT2, sizeof GPT2 - 1}, r->err)
                                    : s;
}

static const struct step_kind kinds[] = {
    {"BertPreTokenizer", NULL, .cut = cut_bert},
    {"ByteLevel", read_bytes, .cut = cut_bytes},
    {"CharDelimiterSplit", read_delimiter, .cut = cut_delimiter},
    {"Metaspace", read_metaspace, .cut = cut_metaspace},
    {"Whitespace", NULL, .cut = cut_words},
    {"WhitespaceSplit", NULL, .cut = cut_white},
    {"Split", read_split, .cut = cut_split},
    {"Punctuation", read_punctuation, .cut = cut_punctuation},
    {"Digits", read_digits, .cut = cut_digits},
    {"UnicodeScripts", NULL, .cut = cut_scripts},
    {"FixedLength", read_length, .cut = cut_length},
};

ggl_status llm_steps_read_cutter(step_list *out, step_reader *r, const json_value *v) {
    r->where = "pre_tokenizer";
    return llm_steps_read(out, r, v, "pretokenizers", kinds, sizeof kinds / sizeof *kinds);
}
