#include "data_matches.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data_members.h"
#include "data_text.h"
#include "ggl/internal/show.h"

/* --- items ------------------------------------------------------------------------------------ */

/* Appends what an item has more than the model reads. */
static ggl_status end_item(train_draft *s, ggl_error *err) {
    const ggl_status st = llm_tokens_append(&s->tokens, s->tokens.id[s->tokens.n - 1], err);
    return st == GGL_OK ? llm_train_draft_count(s, 0, s->tokens.n, 1, err) : st;
}

/* Makes a text's item. What is too long is cut, but a token that ends texts stays. */
static ggl_status draft_text(const train_data *d, train_draft *s, ggl_str prompt, ggl_str text,
                             ggl_error *err) {
    llm_tokens *t = &s->tokens;
    const size_t most = (size_t)d->p.n_ctx;
    char *both = ggl_calloc(prompt.n + text.n + 1, 1);
    if (!both)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a text");
    if (prompt.n > 0)
        memcpy(both, prompt.s, prompt.n);
    memcpy(both + prompt.n, text.s, text.n);
    const ggl_status st =
        llm_tokenize(d->p.tokenizer, both, prompt.n + text.n, LLM_TOKENIZE_BOS, t, err);
    ggl_free(both);
    if (st != GGL_OK || t->n == 0)
        return st;
    s->is_cut = t->n > most;
    if (s->is_cut) {
        const int32_t last = t->id[t->n - 1];
        t->n = most;
        if (llm_tokenizer_is_control(d->p.tokenizer, last))
            t->id[most - 1] = last;
    }
    return end_item(s, err);
}

/* Makes the item of two texts, as a model reads them that scores. */
static ggl_status draft_both(const train_data *d, train_draft *s, ggl_str query, ggl_str text,
                             ggl_error *err) {
    const size_t most = (size_t)d->p.n_ctx;
    ggl_status st = llm_tokenize_pair(d->p.tokenizer, query, text, &s->tokens, &s->types, err);
    s->is_cut = s->tokens.n > most;
    if (st == GGL_OK && s->is_cut)
        st = llm_cut_pair(d->p.tokenizer, query, &s->tokens, &s->types, most, err);
    return st == GGL_OK && s->tokens.n > 0 ? end_item(s, err) : st;
}

/* --- groups ----------------------------------------------------------------------------------- */

/* The items of a group that is being made. */
typedef struct group {
    train_draft *item;
    size_t n, cap;
} group;

static void group_fini(group *g) {
    for (size_t i = 0; i < g->n; i++)
        llm_train_draft_fini(&g->item[i]);
    ggl_free(g->item);
    *g = (group){0};
}

/* Adds a text that is compared with the query, or the query itself. One without tokens is left out. */
static ggl_status group_add(const train_data *d, group *g, ggl_str query, ggl_str text,
                            bool is_query, ggl_error *err) {
    if (!ggl_grow(&g->item, &g->cap, g->n + 1, sizeof *g->item))
        return ggl_fail(err, GGL_NOMEM, "out of memory for texts");
    train_draft *s = &g->item[g->n];
    *s = (train_draft){0};
    const ggl_status st =
        d->p.scores
            ? draft_both(d, s, query, text, err)
            : draft_text(d, s, is_query ? d->p.query_prompt : d->p.document_prompt, text, err);
    if (st != GGL_OK || s->tokens.n == 0)
        llm_train_draft_fini(s);
    else
        g->n++;
    return st;
}

/* --- members ---------------------------------------------------------------------------------- */

/* How many texts a member has: one, or a list of them. */
static uint32_t n_texts(const json_value *v) {
    return v->kind == JSON_ARRAY ? v->n : 1;
}

static ggl_status text_at(const json_value *v, uint32_t i, ggl_str name, ggl_str *out,
                          ggl_error *err) {
    const json_value *one = v->kind == JSON_ARRAY ? &v->item[i] : v;
    *out = (ggl_str){"", 0};
    if (one->kind != JSON_STRING)
        return ggl_fail(err, GGL_FORMAT, "\"%.*s\" must be a string or a list of strings, not %s%s",
                        (int)ggl_utf8_cut(name.s, name.n, 60), name.s,
                        v->kind == JSON_ARRAY ? "a list with " : "",
                        llm_json_kind_text((json_kind)one->kind));
    *out = json_str(one);
    return GGL_OK;
}

/* True for "neg", "negative", "negatives", "hard_negatives", and these with "_" and a number; not for "neg_scores" and other columns. */
static bool is_negative(ggl_str name) {
    static const char *const names[] = {"neg", "negs", "negative", "negatives", "hard_negatives"};
    const size_t n = name.n;
    while (name.n > 0 && name.s[name.n - 1] >= '0' && name.s[name.n - 1] <= '9')
        name.n--;
    name.n -= name.n < n && name.n > 0 && name.s[name.n - 1] == '_';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ggl_str_is(name, names[i]))
            return true;
    return false;
}

/* Adds the texts that do not belong to the query. */
static ggl_status add_negatives(const train_data *d, group *g, const json_value *o, ggl_str query,
                                ggl_error *err) {
    ggl_status st = GGL_OK;
    for (uint32_t k = 0; k < o->n && st == GGL_OK; k++) {
        const ggl_str name = json_name(o, k);
        const json_value *v = &o->item[k];
        if (!is_negative(name) || v->kind == JSON_NULL)
            continue;
        for (uint32_t i = 0; i < n_texts(v) && st == GGL_OK; i++) {
            ggl_str text;
            st = text_at(v, i, name, &text, err);
            if (st == GGL_OK && !llm_train_is_blank(text))
                st = group_add(d, g, query, text, false, err);
        }
    }
    return st;
}

/* A group has the negatives of its object, which has a group for each positive: no object may become too many items. */
static ggl_status check_size(const json_value *o, uint32_t n_positives, ggl_error *err) {
    enum { MOST = 1 << 16 };
    uint64_t n = 2;
    for (uint32_t k = 0; k < o->n; k++)
        n += is_negative(json_name(o, k)) ? n_texts(&o->item[k]) : 0;
    if (n * n_positives <= MOST)
        return GGL_OK;
    return ggl_fail(err, GGL_LIMIT,
                    "%" PRIu32 " texts that belong to the query, each with %" PRIu64
                    " that do not, are more than %d: write them as several objects",
                    n_positives, n - 2, MOST);
}

/* Adds the group of the query with one text that belongs to it: common has the query, if it is an item by itself, and the negatives. */
static ggl_status add_match(train_data *d, const group *common, ggl_str query, ggl_str positive,
                            ggl_error *err) {
    const size_t at = d->p.scores ? 0 : 1; /* of the positive */
    group one = {0};
    ggl_status st =
        llm_train_is_blank(positive) ? GGL_OK : group_add(d, &one, query, positive, false, err);
    if (st != GGL_OK || one.n == 0) {
        d->stats.n_empty += st == GGL_OK;
        group_fini(&one);
        return st;
    }
    train_draft *all = ggl_calloc(common->n + 1, sizeof *all);
    bool is_long = one.item[0].is_cut;
    for (size_t i = 0, k = 0; all && i <= common->n; i++) {
        all[i] = i == at ? one.item[0] : common->item[k++];
        is_long |= all[i].is_cut;
    }
    if (!all)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for texts");
    else if (d->p.drop_long && is_long)
        d->stats.n_long++;
    else if (d->p.scores && common->n == 0)
        d->stats.n_alone++;
    else
        st = llm_train_add_group(d, all, common->n + 1, 0, err);
    ggl_free(all);
    group_fini(&one);
    return st;
}

ggl_status llm_train_match(train_data *d, const json_value *o, ggl_error *err) {
    const char *anchor = llm_train_member(o, "query") ? "query" : "anchor",
               *name = llm_train_member(o, "positive") ? "positive" : "pos";
    const json_value *v = llm_train_member(o, name);
    ggl_str query;
    ggl_status st = llm_train_set_kind(d, TRAIN_MATCHES, err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, anchor, false, &query, err);
    if (st == GGL_OK)
        st = check_size(o, n_texts(v), err);
    group common = {0};
    const bool is_empty = st == GGL_OK && (llm_train_is_blank(query) || n_texts(v) == 0);
    d->stats.n_empty += is_empty;
    if (st == GGL_OK && !is_empty && !d->p.scores)
        st = group_add(d, &common, query, query, true, err);
    const bool has_query = d->p.scores || common.n == 1;
    if (st == GGL_OK && !is_empty && has_query)
        st = add_negatives(d, &common, o, query, err);
    d->stats.n_empty += st == GGL_OK && !is_empty && !has_query;
    for (uint32_t i = 0; st == GGL_OK && !is_empty && has_query && i < n_texts(v); i++) {
        ggl_str positive;
        st = text_at(v, i, (ggl_str){name, strlen(name)}, &positive, err);
        if (st == GGL_OK)
            st = add_match(d, &common, query, positive, err);
    }
    group_fini(&common);
    return st;
}

/* --- scores ----------------------------------------------------------------------------------- */

static ggl_status score_of(const train_data *d, const json_value *o, double *out, ggl_error *err) {
    const char *name = llm_train_member(o, "score") ? "score" : "label";
    const json_value *v = llm_train_member(o, name);
    if (!v || v->kind != JSON_NUMBER || !isfinite(v->number))
        return ggl_fail(err, GGL_FORMAT,
                        "\"sentence1\" and \"sentence2\" need a number \"score\" (or \"label\"), "
                        "which says how much they belong together, not %s",
                        v ? llm_json_kind_text((json_kind)v->kind) : "nothing");
    if (d->p.scores && !(v->number >= 0 && v->number <= 1))
        return ggl_fail(err, GGL_FORMAT,
                        "\"%s\" is %g; a model that scores learns probabilities, from 0 to 1", name,
                        v->number);
    *out = v->number;
    return GGL_OK;
}

ggl_status llm_train_scored(train_data *d, const json_value *o, ggl_error *err) {
    ggl_str text[2];
    train_draft s[2] = {0};
    double score = 0;
    ggl_status st = llm_train_set_kind(d, TRAIN_SCORED, err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, "sentence1", false, &text[0], err);
    if (st == GGL_OK)
        st = llm_train_text_of(o, "sentence2", false, &text[1], err);
    if (st == GGL_OK)
        st = score_of(d, o, &score, err);
    if (st != GGL_OK)
        return st;
    if (llm_train_is_blank(text[0]) || llm_train_is_blank(text[1])) {
        d->stats.n_empty++;
        return GGL_OK;
    }
    const size_t n = d->p.scores ? 1 : 2;
    if (d->p.scores)
        st = draft_both(d, &s[0], text[0], text[1], err);
    for (size_t i = 0; i < n && !d->p.scores && st == GGL_OK; i++)
        st = draft_text(d, &s[i], d->p.text_prompt, text[i], err);
    if (st == GGL_OK && (s[0].tokens.n == 0 || s[n - 1].tokens.n == 0))
        d->stats.n_empty++;
    else if (st == GGL_OK && d->p.drop_long && (s[0].is_cut || s[n - 1].is_cut))
        d->stats.n_long++;
    else if (st == GGL_OK)
        st = llm_train_add_group(d, s, n, score, err);
    llm_train_draft_fini(&s[0]);
    llm_train_draft_fini(&s[1]);
    return st;
}
