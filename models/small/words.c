/* Writes a tokenizer as tables that need no index in memory: strings and merges in order, and the programs of its regular expressions. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "program.h"
#include "text/bert_words.h"
#include "text/charsmap.h"
#include "text/merge_queue.h"
#include "text/pretok_impl.h"
#include "text/tokenizer_dna.h"

/* The bits of small/small.h. */
enum { SILENT = 1, END = 2, SPECIAL = 4, USER = 8, LEFT = 16, RIGHT = 32 };

/* A string by which a text becomes a token. */
typedef struct key {
    ggl_str s;
    int32_t token, string; /* string: its number in the plan */
} key;

typedef struct keys {
    key *k;
    size_t n;
} keys;

typedef struct words {
    FILE *f;
    const llm_tokenizer *t;
    llm_tokenizer_tables x;
    keys pieces, starts, special;
    ggl_str *other; /* strings that no token has as its text, and their tokens */
    int32_t *other_token;
    size_t n_other, growth; /* growth: charsmap.h */
    ggl_arena arena;
    llm_small_words *out;
    ggl_error *err;
} words;

const char *llm_small_number(double x, char buf[64]) {
    static const char hex[] = "0123456789abcdefxp+-";
    char text[64], *to = buf;
    if (isnan(x) || isinf(x)) {
        snprintf(buf, 64, isnan(x) ? "(0.0/0.0)" : x < 0 ? "(-1.0/0.0)" : "(1.0/0.0)");
        return buf;
    }
    snprintf(text, sizeof text, "%a", x);
    for (const char *c = text; *c;
         c++) /* the caller's locale may have another point, of several bytes */
        if (strchr(hex, *c))
            *to++ = *c;
        else if (to > buf && to[-1] != '.')
            *to++ = '.';
    *to = 0;
    return buf;
}

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
}

static bool is_special(const llm_tokenizer *t, int32_t id) {
    return t->type[id] == TOKEN_CONTROL || t->type[id] == TOKEN_USER_DEFINED ||
           t->type[id] == TOKEN_UNKNOWN;
}

static unsigned flags_of(const llm_tokenizer *t, int32_t id) {
    const bool silent = t->type[id] == TOKEN_CONTROL || t->type[id] == TOKEN_UNKNOWN,
               special = is_special(t, id) && t->piece[id].n > 0;
    return (silent ? SILENT : 0u) | (t->eog[id] ? END : 0u) | (special ? SPECIAL : 0u) |
           (special && t->type[id] == TOKEN_USER_DEFINED ? USER : 0u) |
           (t->strip[id] & STRIP_LEFT ? LEFT : 0u) | (t->strip[id] & STRIP_RIGHT ? RIGHT : 0u);
}

/* --- keys ------------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b) {
    const key *x = a, *y = b;
    const size_t n = x->s.n < y->s.n ? x->s.n : y->s.n;
    const int order = n > 0 ? memcmp(x->s.s, y->s.s, n) : 0;
    return order              ? order
           : x->s.n != y->s.n ? (x->s.n < y->s.n ? -1 : 1)
                              : (x->token < y->token ? -1 : x->token > y->token);
}

static bool is_same(ggl_str a, ggl_str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

/* Sorts keys; of equal ones the first token stays. */
static void sort_keys(keys *k) {
    size_t n = 0;
    if (k->n > 0)
        qsort(k->k, k->n, sizeof *k->k, by_bytes);
    for (size_t i = 0; i < k->n; i++)
        if (n == 0 || !is_same(k->k[i].s, k->k[n - 1].s))
            k->k[n++] = k->k[i];
    k->n = n;
}

/* Puts spaces for U+2581. False: there is a space, so that no text has this key. */
static bool put_spaces(char *s, size_t *n) {
    size_t used = 0;
    if (*n > 0 && memchr(s, ' ', *n))
        return false;
    for (size_t i = 0; i < *n;) {
        const bool mark = *n - i >= 3 && memcmp(s + i, llm_space, 3) == 0;
        s[used++] = mark ? ' ' : s[i];
        i += mark ? 3 : 1;
    }
    *n = used;
    return true;
}

/* Finds the string of a key: the token's text, without its first space if `unspaced`, or a string of its own. */
static void find_string(words *w, key *k, bool unspaced) {
    ggl_str text = w->t->text[k->token];
    k->string = k->token;
    if (unspaced && text.n > 0 && *text.s == ' ')
        text = (ggl_str){text.s + 1, text.n - 1};
    if (is_same(text, k->s))
        return;
    k->string = w->t->n_vocab + (int32_t)w->n_other;
    w->other[w->n_other] = k->s;
    w->other_token[w->n_other++] = k->token;
}

static ggl_status collect_keys(words *w, keys *out, bool begins) {
    const llm_tokenizer *t = w->t;
    out->k = ggl_arena_alloc(&w->arena, (size_t)t->n_vocab, sizeof *out->k);
    if (!out->k)
        return no_memory(w->err);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        char *s = ggl_arena_alloc(&w->arena, t->piece[id].n + 1, 1);
        size_t n = 0;
        if (!s)
            return no_memory(w->err);
        if (w->x.key(t, id, begins, s, &n) && n > 0 && (!w->x.spaced || put_spaces(s, &n)))
            out->k[out->n++] = (key){.s = {s, n}, .token = id};
    }
    sort_keys(out);
    for (size_t i = 0; i < out->n; i++)
        find_string(w, &out->k[i], begins && !w->x.dna);
    return GGL_OK;
}

static ggl_status collect_all_keys(words *w) {
    const llm_tokenizer *t = w->t;
    const size_t most = 2 * (size_t)t->n_vocab;
    w->other = ggl_arena_alloc(&w->arena, most, sizeof *w->other);
    w->other_token = ggl_arena_alloc(&w->arena, most, sizeof *w->other_token);
    w->special.k = ggl_arena_alloc(&w->arena, (size_t)t->n_vocab, sizeof *w->special.k);
    if (!w->other || !w->other_token || !w->special.k)
        return no_memory(w->err);
    for (int32_t id = 0; id < t->n_vocab; id++)
        if (flags_of(t, id) & SPECIAL)
            w->special.k[w->special.n++] = (key){.s = t->piece[id], .token = id, .string = id};
    sort_keys(&w->special);
    ggl_status st = w->x.key ? collect_keys(w, &w->pieces, false) : GGL_OK;
    if (st == GGL_OK && w->x.has_starts)
        st = collect_keys(w, &w->starts, true);
    return st;
}

/* --- order ------------------------------------------------------------------------------------ */

static int by_pair(const void *a, const void *b) {
    const llm_merge *x = a, *y = b;
    return x->left != y->left     ? (x->left < y->left ? -1 : 1)
           : x->right != y->right ? (x->right < y->right ? -1 : 1)
                                  : 0;
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* An array of numbers that is being written, each in as few bytes as the largest needs. */
typedef struct numbers {
    FILE *f;
    unsigned width;
    size_t n;
} numbers;

static unsigned width_of(size_t largest) {
    return largest < 1u << 8 ? 1 : largest < 1u << 16 ? 2 : largest < 1u << 24 ? 3 : 4;
}

static numbers begin_numbers(FILE *f, const char *name, size_t largest) {
    fprintf(f, "static const uint8_t %s[] = {", name);
    return (numbers){f, width_of(largest), 0};
}

static void put_number(numbers *x, size_t u) {
    fputs(x->n++ % 12 ? "" : "\n", x->f);
    for (unsigned k = 0; k < x->width; k++)
        fprintf(x->f, "%u,", (unsigned)(u >> 8 * k & 0xff));
}

static size_t end_numbers(const numbers *x) {
    fprintf(x->f, "%s};\n", x->n ? "" : "0");
    return x->n * x->width;
}

/* --- merges ----------------------------------------------------------------------------------- */

/* True if the ranks of merges have the order of their results, as in most files, and need not be written. */
static bool ranks_are_ids(const llm_tokenizer_tables *x) {
    bool are = true;
    for (size_t i = 1; i < x->n_merges; i++)
        are = are && x->merge[i - 1].id < x->merge[i].id;
    return are;
}

static size_t largest_in_merges(const llm_tokenizer_tables *x) {
    int32_t most = 0;
    for (size_t i = 0; i < x->n_merges; i++) {
        const llm_merge *m = &x->merge[i];
        const int32_t all[] = {m->left, m->right, m->id, m->rank};
        for (int k = 0; k < 4; k++)
            most = all[k] > most ? all[k] : most;
    }
    return (size_t)most;
}

static ggl_status put_merges(FILE *f, const llm_tokenizer_tables *x, size_t *size, ggl_error *err) {
    llm_merge *all = ggl_calloc(x->n_merges + 1, sizeof *all);
    const bool ranks = !ranks_are_ids(x);
    if (!all)
        return no_memory(err);
    if (x->n_merges > 0)
        memcpy(all, x->merge, x->n_merges * sizeof *all);
    qsort(all, x->n_merges, sizeof *all, by_pair);
    numbers out = begin_numbers(f, "merges", largest_in_merges(x));
    for (size_t i = 0; i < x->n_merges; i++) {
        put_number(&out, (size_t)all[i].left);
        put_number(&out, (size_t)all[i].right);
        put_number(&out, (size_t)all[i].id);
        if (ranks)
            put_number(&out, (size_t)all[i].rank);
    }
    *size += end_numbers(&out);
    ggl_free(all);
    return GGL_OK;
}

/* --- regular expressions ---------------------------------------------------------------------- */

/* Writes program k, in the structs of text/pretok_impl.h. */
static size_t put_program(FILE *f, int k, const pretok_program *p) {
    size_t size = (size_t)p->n_code * sizeof *p->code + (size_t)p->n_set * sizeof *p->sets;
    for (int i = 0; i < p->n_set; i++) {
        fprintf(f, "static const range ranges%d_%d[] = {", k, i);
        for (int j = 0; j < p->sets[i].n_range; j++)
            fprintf(f, "{%" PRIu32 ",%" PRIu32 "},", p->sets[i].ranges[j].first,
                    p->sets[i].ranges[j].last);
        fprintf(f, "{0,0}};\n");
        size += (size_t)p->sets[i].n_range * sizeof(range);
    }
    fprintf(f, "static const set sets%d[] = {\n", k);
    for (int i = 0; i < p->n_set; i++) {
        const set *s = &p->sets[i];
        fprintf(f,
                "{{0x%" PRIx64 "u,0x%" PRIx64
                "u},%u,{%u,%u,%u,%u},%u,%d,%d,(range *)ranges%d_%d},\n",
                s->ascii[0], s->ascii[1], s->with, s->without[0], s->without[1], s->without[2],
                s->without[3], s->except, s->negated, s->n_range, k, i);
    }
    fprintf(f, "{{0,0},0,{0,0,0,0},0,0,0,0}};\nstatic const instruction code%d[] = {\n", k);
    for (int i = 0; i < p->n_code; i++) {
        const instruction *c = &p->code[i];
        fprintf(f, "{%d,%d,%d,%d,%d,%" PRIu32 "u,%" PRIu32 "u},\n", c->op, c->no, c->i_reach,
                (int)c->a, (int)c->b, c->min, c->max);
    }
    fprintf(f,
            "};\nstatic const pretok_program program%d = {(instruction *)code%d, (set *)sets%d, "
            "%d, %d, %d, %d, %d};\n",
            k, k, k, p->n_code, p->n_set, p->n_reach, p->n_run, p->n_split);
    return size;
}

static size_t put_programs(FILE *f, const llm_tokenizer_tables *x) {
    size_t size = 0;
    for (int k = 0; k < x->n_split; k++)
        size += put_program(f, k, x->split[k]);
    fprintf(f, "static const pretok_program *const splits[] = {");
    for (int k = 0; k < x->n_split; k++)
        fprintf(f, "&program%d, ", k);
    fprintf(f, "0};\n");
    return size;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Bytes of the runtime's structs on a machine with pointers of 64 bits, where they are largest. */
enum { BLOCK = 32, REACH = 32, RUN = 28, RETRY = 20, STEP = 16 };

/* An array that cannot grow where it is leaves smaller copies of itself behind, each of two thirds of the next: all copies together have
 * less than 4.5 times what is needed. */
enum { WITH_COPIES = 5 };
/* An array that grows in place may be half as large again as it has to be, and other arrays come after it. So twice its size is counted. */
enum { SPARE = 2 };

/* Adds what pretok.c takes: the characters with their properties, lookaheads with loops, and places to go back to. Of the latter there is
 * one for each instruction that makes one, and with loops for each character again. */
static void add_split(const llm_tokenizer_tables *x, llm_small_words *out) {
    size_t deepest = 0, deepest_loop = 0;
    out->work_each += 6;
    out->work += 5 * BLOCK;
    for (int k = 0; k < x->n_split; k++) {
        const pretok_program *p = x->split[k];
        size_t n = 0;
        bool loops = false;
        for (int i = 0; i < p->n_code; i++) {
            const instruction *c = &p->code[i];
            if (c->op == OP_LOOKAHEAD && c->i_reach) { /* computed without going back */
                i += c->a;
                continue;
            }
            n += c->op == OP_SPLIT || c->op == OP_RUN;
            loops = loops || ((c->op == OP_SPLIT || c->op == OP_JUMP) && (c->a < 0 || c->b < 0));
        }
        deepest = n > deepest ? n : deepest;
        deepest_loop = loops && n > deepest_loop ? n : deepest_loop;
        out->work_each += WITH_COPIES * (size_t)p->n_reach;
        out->work += (size_t)p->n_reach * (REACH + WITH_COPIES + BLOCK) + (size_t)p->n_run * RUN;
    }
    out->work_each += WITH_COPIES * RETRY * deepest_loop;
    out->work += WITH_COPIES * RETRY * (deepest + 8) + 8 * BLOCK;
}

/* Sets the bytes of memory that small_encode needs at most: work_each for each byte of text, and work besides. */
static void measure_work(const words *w) {
    const llm_tokenizer_tables *x = &w->x;
    llm_small_words *out = w->out;
    /* symbols, and joins: one for each pair at first, and each that is done can add one */
    const size_t joins = sizeof(symbol) + 2 * sizeof(join), fold = x->strip || x->lower;
    out->work_each = 0;
    out->work = BLOCK;
    if (strcmp(x->encode, "scores") == 0) {
        out->work_each = 1 + joins;
        out->work += 1 + joins + 3 * BLOCK;
    } else if (x->split) {
        out->work_each = joins + (x->spaced ? 1 : 0);
        out->work += 4 * FOLD_MOST_PARTS + 3 * BLOCK;
        add_split(x, out);
        if (fold) /* the text that is folded, and all that each of its bytes takes */
            out->work_each = FOLD_RATIO * (SPARE + out->work_each);
    } else if (strcmp(x->encode, "wordpiece") == 0) {
        out->work += sizeof(bert_words) + BLOCK;
    } else if (strcmp(x->encode, "best") == 0) {
        const size_t ratio = fold ? FOLD_RATIO : 1, growth = w->growth < 3 ? 3 : w->growth;
        out->work_each = (fold ? SPARE * ratio : 0) + ratio * growth * (SPARE + STEP);
        out->work += 4 * FOLD_MOST_PARTS + 1 + 3 * STEP + 4 * BLOCK;
    } else if (strcmp(x->encode, "best_back") == 0) {
        out->work_each = STEP;
        out->work += STEP + BLOCK;
    }
    out->work = (out->work + 15) / 16 * 16;
}

/* --- tables ----------------------------------------------------------------------------------- */

static int32_t number_of_strings(const words *w) {
    return w->t->n_vocab + (int32_t)w->n_other;
}

static ggl_str string_at(const words *w, int32_t i) {
    return i < w->t->n_vocab ? w->t->text[i] : w->other[i - w->t->n_vocab];
}

static size_t size_of_text(const words *w) {
    size_t n = 0;
    for (int32_t i = 0; i < number_of_strings(w); i++)
        n += string_at(w, i).n;
    return n;
}

/* Writes the texts of all tokens and the other strings, where they begin, and what tokens are. */
static void put_strings(const words *w) {
    const llm_tokenizer *t = w->t;
    size_t at = 0, n = 0;
    fprintf(w->f, "static const unsigned char text[] = {");
    for (int32_t i = 0; i < number_of_strings(w); i++) {
        const ggl_str s = string_at(w, i);
        for (size_t k = 0; k < s.n; k++)
            fprintf(w->f, "%s%u,", n++ % 32 ? "" : "\n", (unsigned)(unsigned char)s.s[k]);
    }
    fprintf(w->f, "0};\n");
    numbers out = begin_numbers(w->f, "text_at", n);
    for (int32_t i = 0; i <= number_of_strings(w); i++) {
        put_number(&out, at);
        at += i < number_of_strings(w) ? string_at(w, i).n : 0;
    }
    w->out->size += end_numbers(&out) + at + 4 * w->n_other + (size_t)t->n_vocab;
    fprintf(w->f, "static const int32_t other[] = {");
    for (size_t i = 0; i < w->n_other; i++)
        fprintf(w->f, "%s%d,", i % 20 ? "" : "\n", (int)w->other_token[i]);
    fprintf(w->f, "0};\nstatic const uint8_t flags[] = {");
    for (int32_t id = 0; id < t->n_vocab; id++)
        fprintf(w->f, "%s%u,", id % 40 ? "" : "\n", flags_of(t, id));
    fprintf(w->f, "};\n");
}

static void put_keys(const words *w, const char *name, const keys *k) {
    if (k->n == 0)
        return;
    numbers out = begin_numbers(w->f, name, (size_t)number_of_strings(w));
    for (size_t i = 0; i < k->n; i++)
        put_number(&out, (size_t)k->k[i].string);
    w->out->size += end_numbers(&out);
}

static void put_scores(const words *w) {
    char number[64];
    fprintf(w->f, "static const float score[] = {");
    for (int32_t id = 0; id < w->t->n_vocab; id++)
        fprintf(w->f, "%s%s,", id % 16 ? "" : "\n", llm_small_number(w->x.score(w->t, id), number));
    fprintf(w->f, "};\n");
    w->out->size += 4 * (size_t)w->t->n_vocab;
}

static void put_map(const words *w) {
    const charsmap *m = w->x.map;
    fprintf(w->f, "static const uint32_t units[] = {");
    for (size_t i = 0; i < m->n_unit; i++)
        fprintf(w->f, "%s0x%" PRIx32 ",", i % 16 ? "" : "\n", m->unit[i]);
    fprintf(w->f, "};\nstatic const unsigned char replacements[] = {");
    for (size_t i = 0; i < m->n_text; i++)
        fprintf(w->f, "%s%u,", i % 32 ? "" : "\n", (unsigned)(unsigned char)m->text[i]);
    fprintf(w->f,
            "};\nstatic const struct charsmap map = {0, (uint32_t *)units, %zu, %zu, (const char "
            "*)replacements};\n",
            m->n_unit, m->n_text);
    w->out->size += 4 * m->n_unit + m->n_text;
}

/* Writes the tables, without what names them. */
static ggl_status put_tables(const words *w) {
    const llm_tokenizer_tables *x = &w->x;
    if (x->split)
        fprintf(w->f, "#include \"text/pretok_impl.h\"\n");
    if (x->map)
        fprintf(w->f, "#include \"text/charsmap.h\"\n");
    put_strings(w);
    put_keys(w, "pieces", &w->pieces);
    put_keys(w, "starts", &w->starts);
    put_keys(w, "special", &w->special);
    if (x->byte) {
        fprintf(w->f, "static const int32_t byte_token[] = {");
        for (int b = 0; b < 256; b++)
            fprintf(w->f, "%s%d,", b % 16 ? "" : "\n", (int)x->byte[b]);
        fprintf(w->f, "};\n");
        w->out->size += 1024;
    }
    if (x->score)
        put_scores(w);
    if (x->map)
        put_map(w);
    if (!x->split)
        return GGL_OK;
    w->out->size += put_programs(w->f, x);
    return put_merges(w->f, x, &w->out->size, w->err);
}

static void put_keys_member(const words *w, const char *name, const keys *k, bool unspaced) {
    if (k->n > 0)
        fprintf(w->f, "    .%s = {{%s, %u}, %zu, %d},\n", name, name,
                width_of((size_t)number_of_strings(w)), k->n, unspaced);
}

/* Writes the struct. Members that are absent are 0. */
static void put_words(const words *w) {
    const llm_tokenizer *t = w->t;
    const llm_tokenizer_tables *x = &w->x;
    char number[64];
    fprintf(w->f, "bool small_encode_%s(struct small_encoder *, const char *, size_t);\n",
            x->encode);
    if (x->strip)
        fprintf(w->f, "int llm_fold_strip(uint32_t, uint32_t *);\n");
    if (x->lower)
        fprintf(w->f, "uint32_t llm_unicode_lower(uint32_t, uint32_t *);\n");
    fprintf(
        w->f,
        "static const small_words words = {\n    .encode = small_encode_%s, .text = (const char "
        "*)text, .at = {text_at, %u}, .other = other, .flags = flags,\n",
        x->encode, width_of(size_of_text(w)));
    put_keys_member(w, "pieces", &w->pieces, false);
    put_keys_member(w, "starts", &w->starts, !x->dna);
    put_keys_member(w, "special", &w->special, false);
    fprintf(w->f, "%s%s%s%s%s", x->byte ? "    .byte = byte_token,\n" : "",
            x->score ? "    .score = score,\n" : "", x->map ? "    .map = &map,\n" : "",
            x->strip ? "    .strip = llm_fold_strip,\n" : "",
            x->lower ? "    .lower = llm_unicode_lower,\n" : "");
    if (x->split)
        fprintf(w->f,
                "    .merge = {merges, %u}, .n_merges = %zu, .ranks = %d, .split = splits, "
                ".n_split = %d,\n",
                width_of(largest_in_merges(x)), x->n_merges, !ranks_are_ids(x), x->n_split);
    if (x->dna)
        fprintf(w->f, "    .dna = {%d, %d, %d},\n", (int)x->dna->open, (int)x->dna->close,
                (int)x->dna->other);
    fprintf(w->f,
            "    .unknown_score = %s, .n_vocab = %d, .bos = %d, .eos = %d, .unknown = %d,\n"
            "    .add_bos = %d, .add_eos = %d, .add_space = %d, .merge_spaces = %d, .spaced = %d,\n"
            "    .raw = %d, .whole = %d, .newlines = %d, .drop_white = %d};\n",
            llm_small_number(x->unknown_score, number), (int)t->n_vocab, (int)t->bos, (int)t->eos,
            (int)t->unknown, t->add_bos, t->add_eos, x->add_space, x->merge_spaces, x->spaced,
            x->raw, x->whole, x->newlines, x->drop_white);
}

/* Sets out->why, if the runtime cannot have this tokenizer. */
static void check(words *w) {
    ggl_error err = {0};
    const char *why = w->t->composes ? "it puts texts into NFC (tokenizer.ggml.normalizer.nfc)"
                                     : w->t->kind->tables(w->t, &w->x);
    w->growth = 1;
    if (!why && w->x.map && llm_charsmap_check(w->x.map, &w->growth, &err) != GGL_OK)
        why = err.msg;
    snprintf(w->out->why, sizeof w->out->why, "%.255s", why ? why : "");
}

ggl_status llm_small_put_words(FILE *f, const llm_tokenizer *t, llm_small_words *out,
                               ggl_error *err) {
    words w = {.f = f, .t = t, .out = out, .err = err};
    *out = (llm_small_words){0};
    check(&w);
    if (*out->why)
        return GGL_OK;
    ggl_status st = collect_all_keys(&w);
    if (st == GGL_OK)
        st = put_tables(&w);
    if (st == GGL_OK) {
        put_words(&w);
        measure_work(&w);
    }
    ggl_arena_fini(&w.arena);
    return st;
}
