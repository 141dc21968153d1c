/* Writes a tokenizer as tables that need no index in memory: tokens and merges in order, and the programs of its regular expressions. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "program.h"
#include "text/byte_spelling.h"
#include "text/pretok_impl.h"
#include "text/tokenizer_impl.h"

/* The bits of small/small.h. */
enum { SILENT = 1, END = 2, SPECIAL = 4, USER = 8 };

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
           (special && t->type[id] == TOKEN_USER_DEFINED ? USER : 0u);
}

/* True if a text may become this token, and does so where its bytes are those of the token's text: a piece with a space in it never
 * results from scores, where spaces are U+2581, nor from merges one that spells no bytes. */
static bool is_found(const llm_tokenizer *t, const llm_tokenizer_tables *x, int32_t id) {
    const ggl_str text = t->text[id], piece = t->piece[id];
    if (t->type[id] == TOKEN_CONTROL || t->type[id] == TOKEN_UNKNOWN || piece.n == 0)
        return false;
    if (x->score)
        return t->type[id] != TOKEN_BYTE && !memchr(piece.s, ' ', piece.n);
    size_t at = 0;
    for (size_t i = 0; i < text.n; i++) {
        char spelled[2];
        const size_t n = llm_spell_byte((unsigned char)text.s[i], spelled);
        if (at + n > piece.n || memcmp(piece.s + at, spelled, n) != 0)
            return false;
        at += n;
    }
    return at == piece.n;
}

/* --- order ------------------------------------------------------------------------------------ */

/* A token with its text, as they are sorted. */
typedef struct token {
    ggl_str text;
    int32_t id;
} token;

static int by_text(const void *a, const void *b) {
    const token *x = a, *y = b;
    const size_t n = x->text.n < y->text.n ? x->text.n : y->text.n;
    const int order = n > 0 ? memcmp(x->text.s, y->text.s, n) : 0;
    return order                    ? order
           : x->text.n != y->text.n ? (x->text.n < y->text.n ? -1 : 1)
                                    : (x->id < y->id ? -1 : x->id > y->id);
}

static int by_pair(const void *a, const void *b) {
    const llm_merge *x = a, *y = b;
    return x->left != y->left     ? (x->left < y->left ? -1 : 1)
           : x->right != y->right ? (x->right < y->right ? -1 : 1)
                                  : 0;
}

/* Writes the tokens that text may become, by their bytes; of equal ones the first. */
static ggl_status put_sorted(FILE *f, const llm_tokenizer *t, const llm_tokenizer_tables *x,
                             size_t *n_out, ggl_error *err) {
    token *all = ggl_calloc((size_t)t->n_vocab + 1, sizeof *all);
    size_t n = 0;
    *n_out = 0;
    if (!all)
        return no_memory(err);
    for (int32_t id = 0; id < t->n_vocab; id++)
        if (is_found(t, x, id)) {
            /* a special token's text is its piece */
            all[n].text = t->text[id];
            all[n++].id = id;
        }
    qsort(all, n, sizeof *all, by_text);
    fprintf(f, "static const int32_t sorted[] = {");
    for (size_t i = 0; i < n; i++)
        if (i == 0 || all[i].text.n != all[i - 1].text.n ||
            memcmp(all[i].text.s, all[i - 1].text.s, all[i].text.n) != 0)
            fprintf(f, "%s%d,", (*n_out)++ % 20 ? "" : "\n", (int)all[i].id);
    fprintf(f, "%s};\n", *n_out ? "" : "0");
    ggl_free(all);
    return GGL_OK;
}

static ggl_status put_merges(FILE *f, const llm_tokenizer_tables *x, ggl_error *err) {
    llm_merge *all = ggl_calloc(x->n_merges + 1, sizeof *all);
    if (!all)
        return no_memory(err);
    memcpy(all, x->merge, x->n_merges * sizeof *all);
    qsort(all, x->n_merges, sizeof *all, by_pair);
    fprintf(f, "static const small_merge merges[] = {");
    for (size_t i = 0; i < x->n_merges; i++)
        fprintf(f, "%s{%d,%d,%d,%d},", i % 8 ? "" : "\n", (int)all[i].left, (int)all[i].right,
                (int)all[i].rank, (int)all[i].id);
    fprintf(f, "{0}};\n");
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
            "%d, %d, %d, %d};\n",
            k, k, k, p->n_code, p->n_set, p->n_reach, p->n_run);
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

/* --- tokens ----------------------------------------------------------------------------------- */

/* Writes the texts of all tokens, where they begin, and what they are; returns their bytes. */
static size_t put_tokens(FILE *f, const llm_tokenizer *t, size_t *n_special) {
    size_t at = 0, n = 0;
    fprintf(f, "static const unsigned char text[] = {");
    for (int32_t id = 0; id < t->n_vocab; id++)
        for (size_t i = 0; i < t->text[id].n; i++)
            fprintf(f, "%s%u,", n++ % 32 ? "" : "\n", (unsigned)(unsigned char)t->text[id].s[i]);
    fprintf(f, "0};\nstatic const uint32_t text_at[] = {");
    for (int32_t id = 0; id <= t->n_vocab; id++) {
        fprintf(f, "%s%zu,", id % 20 ? "" : "\n", at);
        at += id < t->n_vocab ? t->text[id].n : 0;
    }
    fprintf(f, "};\nstatic const uint8_t flags[] = {");
    for (int32_t id = 0; id < t->n_vocab; id++)
        fprintf(f, "%s%u,", id % 40 ? "" : "\n", flags_of(t, id));
    fprintf(f, "};\nstatic const int32_t special[] = {");
    *n_special = 0;
    for (int32_t id = 0; id < t->n_vocab; id++)
        if (flags_of(t, id) & SPECIAL) {
            fprintf(f, "%d,", (int)id);
            ++*n_special;
        }
    fprintf(f, "%s};\n", *n_special ? "" : "0");
    return at + (size_t)t->n_vocab * 5 + 4 * *n_special;
}

/* White space beside some special tokens belongs to them, which the runtime does not know. */
static bool strips(const llm_tokenizer *t) {
    for (int32_t id = 0; id < t->n_vocab; id++)
        if (t->strip[id])
            return true;
    return false;
}

ggl_status llm_small_put_words(FILE *f, const llm_tokenizer *t, bool *is_known, size_t *size,
                               ggl_error *err) {
    llm_tokenizer_tables x;
    size_t n_special, n_sorted;
    *is_known = t->kind->tables && t->kind->tables(t, &x) && !strips(t);
    if (!*is_known)
        return GGL_OK;
    if (!x.score)
        fprintf(f, "#include \"text/pretok_impl.h\"\n");
    *size += put_tokens(f, t, &n_special);
    ggl_status st = put_sorted(f, t, &x, &n_sorted, err);
    fprintf(f, "static const int32_t byte_token[] = {");
    for (int b = 0; b < 256; b++)
        fprintf(f, "%s%d,", b % 16 ? "" : "\n", (int)x.byte[b]);
    fprintf(f, "};\n");
    *size += 1024 + 4 * n_sorted;
    if (x.score) {
        char number[64];
        fprintf(f, "static const float score[] = {");
        for (int32_t id = 0; id < t->n_vocab; id++)
            fprintf(f, "%s%s,", id % 16 ? "" : "\n", llm_small_number((double)x.score[id], number));
        fprintf(f, "};\n");
        *size += 4 * (size_t)t->n_vocab;
    } else if (st == GGL_OK) {
        st = put_merges(f, &x, err);
        *size += 16 * x.n_merges + put_programs(f, &x);
    }
    fprintf(f, "bool small_encode_%s(struct small_encoder *, const char *, size_t, bool);\n",
            x.score ? "scores" : "merges");
    fprintf(f,
            "static const small_words words = {small_encode_%s, (const char *)text, text_at, "
            "flags, sorted, %zu, special, %zu, byte_token, %s, %s, %zu, %s, %d, %d, %d, %d, %d, "
            "%d, %d, %d, %d, %d, %d, %d};\n",
            x.score ? "scores" : "merges", n_sorted, n_special, x.score ? "score" : "0",
            x.score ? "0" : "merges", x.n_merges, x.score ? "0" : "splits", x.n_split,
            (int)t->n_vocab, (int)t->bos, (int)t->eos, (int)t->unknown, t->add_bos, t->add_eos,
            x.add_space, x.merge_spaces, x.whole, x.newlines, x.drop_white);
    return st;
}
