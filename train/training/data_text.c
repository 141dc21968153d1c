#include "data_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/user_text.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"

bool llm_train_is_blank(ggl_str text) {
    size_t i = 0;
    while (i < text.n && memchr(" \t\r\n\v\f", text.s[i], 6))
        i++;
    return i == text.n;
}

/* --- tokens ----------------------------------------------------------------------------------- */

static unsigned flags_of(const train_data *d) {
    return d->p.plain ? 0 : LLM_TOKENIZE_SPECIAL;
}

/* Appends the beginning of a text: without the end that some tokenizers put there, and without a second begin token if the text spells it. */
static ggl_status begin_text(const train_data *d, ggl_str text, llm_tokens *t, ggl_error *err) {
    const llm_tokenizer *of = d->p.tokenizer;
    const int32_t bos = llm_tokenizer_bos(of), eos = llm_tokenizer_eos(of);
    const ggl_status st =
        llm_tokenize(of, text.s ? text.s : "", text.n, flags_of(d) | LLM_TOKENIZE_BOS, t, err);
    if (st != GGL_OK)
        return st;
    if (t->n > 1 && t->id[t->n - 1] == eos)
        t->n--;
    if (t->n > 1 && bos >= 0 && t->id[0] == bos && t->id[1] == bos) {
        t->n--;
        memmove(t->id, t->id + 1, t->n * sizeof *t->id);
    }
    return GGL_OK;
}

/* Appends the token that ends a text, unless it is there. */
static ggl_status end_text(train_data *d, llm_tokens *t, ggl_error *err) {
    const int32_t eos = llm_tokenizer_eos(d->p.tokenizer);
    if (eos < 0 && !d->told_no_end && d->p.note) {
        d->told_no_end = true;
        d->p.note(d->p.user, "the tokenizer has no token that ends texts: the model does not learn "
                             "when to stop (llm-tokenize train --eos makes one)");
    }
    if (eos < 0 || (t->n > 0 && llm_tokenizer_is_eog(d->p.tokenizer, t->id[t->n - 1])))
        return GGL_OK;
    return llm_tokens_append(t, eos, err);
}

ggl_status llm_train_text(train_data *d, ggl_str text, ggl_error *err) {
    llm_tokens t = {0};
    ggl_status st = llm_train_set_kind(d, TRAIN_TEXT, err);
    const bool is_blank = llm_train_is_blank(text);
    if (st == GGL_OK && !is_blank)
        st = begin_text(d, text, &t, err);
    if (st == GGL_OK && !is_blank)
        st = end_text(d, &t, err);
    if (st == GGL_OK && t.n < 2) /* a first token is no target */
        d->stats.n_empty++;
    else if (st == GGL_OK)
        st = llm_train_add_document(d, t.id, t.n, err);
    llm_tokens_fini(&t);
    return st;
}

ggl_status llm_train_text_draft(train_data *d, train_draft *s, ggl_str prompt, ggl_str answer,
                                bool all, ggl_error *err) {
    llm_tokens *t = &s->tokens;
    if (llm_train_is_blank(answer))
        return GGL_OK;
    ggl_status st = begin_text(d, prompt, t, err);
    const size_t first = t->n;
    if (st == GGL_OK)
        st = llm_tokenize(d->p.tokenizer, answer.s, answer.n, flags_of(d) | LLM_TOKENIZE_GOES_ON, t,
                          err);
    if (st == GGL_OK)
        st = end_text(d, t, err);
    return st == GGL_OK ? llm_train_draft_count(s, all ? 0 : first, t->n, 1, err) : st;
}

/* --- files of texts --------------------------------------------------------------------------- */

/* Takes the next document of *rest, and what separates it from the next one. A line break beside the separator is not part of a
 * document, and neither is the last one of the file. */
static ggl_str take_document(const train_data *d, ggl_str *rest) {
    const char *mark = d->p.separator;
    const size_t n_mark = mark ? strlen(mark) : 0;
    const char *end = mark ? ggl_find_bytes(rest->s, rest->n, mark, n_mark) : NULL;
    ggl_str one = {rest->s, end ? (size_t)(end - rest->s) : rest->n};
    size_t used = one.n + (end ? n_mark : 0);
    if (one.n > 0 && one.s[one.n - 1] == '\n')
        one.n -= one.n > 1 && one.s[one.n - 2] == '\r' ? 2 : 1;
    if (end && used + 1 < rest->n && memcmp(rest->s + used, "\r\n", 2) == 0)
        used += 2;
    else
        used += end && used < rest->n && rest->s[used] == '\n';
    *rest = (ggl_str){rest->s + used, rest->n - used};
    return one;
}

/* Fails if the text is not UTF-8, or has bytes that no text has. */
static ggl_status check_text(const char *name, ggl_str text, ggl_error *err) {
    const char *zero = text.n > 0 ? memchr(text.s, 0, text.n) : NULL;
    const char *wide = llm_text_wide(text);
    const ggl_str good = {text.s, zero ? (size_t)(zero - text.s) : text.n};
    if (!zero && ggl_utf8_is_valid(good.s, good.n))
        return GGL_OK;
    int64_t line = 1;
    size_t i = 0;
    for (size_t len; i < good.n && (len = ggl_utf8_length(good.s + i, good.n - i)) > 0; i += len)
        line += good.s[i] == '\n';
    if (wide)
        return ggl_fail(err, GGL_FORMAT, "%s:%" PRId64 ": the byte 0x%02x: %s", name, line,
                        (unsigned char)text.s[i], wide);
    return ggl_fail(err, GGL_FORMAT,
                    i == good.n ? "%s:%" PRId64 ": a byte 0x%02x: this is no text"
                                : "%s:%" PRId64 ": the byte 0x%02x is not UTF-8; convert the file, "
                                  "such as with: iconv -f latin1 -t utf-8",
                    name, line, (unsigned char)text.s[i]);
}

/* Lets lines that end with CR LF, as texts of Windows have it, end with LF, in a copy: *own, which the caller frees; NULL: there is none. */
static ggl_status end_lines(const train_data *d, const char *name, ggl_str *text, char **own,
                            ggl_error *err) {
    char line[700];
    *own = NULL;
    const bool is_meant = d->p.separator && strchr(d->p.separator, '\r');
    if (is_meant || !ggl_find_bytes(text->s, text->n, "\r\n", 2))
        return GGL_OK;
    *own = ggl_calloc(text->n, 1);
    if (!*own)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory for the text", name);
    *text = (ggl_str){*own, llm_text_end_lines(text->s, text->n, *own)};
    snprintf(line, sizeof line, "%.500s: " LLM_TEXT_LINES_ENDED, name);
    if (d->p.note)
        d->p.note(d->p.user, line);
    return GGL_OK;
}

static ggl_status add_documents(train_data *d, const char *name, ggl_str text, ggl_error *err) {
    ggl_str rest = text;
    ggl_status st = GGL_OK;
    while (st == GGL_OK && rest.n > 0) {
        const ggl_str one = take_document(d, &rest);
        /* nothing after the last separator is no document */
        if (one.n > 0 || rest.n > 0)
            st = llm_train_text(d, one, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "%s", name);
        st = llm_train_progress(d, text.n - rest.n, text.n, err);
    }
    return st;
}

ggl_status llm_train_documents(train_data *d, const char *name, ggl_str text, ggl_error *err) {
    char *own = NULL;
    if (llm_file_senses_read_whole(d->p.senses))
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "%s: this is a text, but the model %s: it learns from lines of JSON with both", name,
            d->p.senses->text ? "reads a text and writes another one"
                              : "writes down the speech of a sound");
    ggl_status st = check_text(name, text, err);
    if (st == GGL_OK)
        st = end_lines(d, name, &text, &own, err);
    if (st == GGL_OK)
        st = add_documents(d, name, text, err);
    ggl_free(own);
    return st;
}
