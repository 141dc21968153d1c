/* Items: tokens in a pool, and which of them count. */
#include <string.h>

#include "data_impl.h"
#include "data_reads.h"

enum { BLOCK = 1 << 16 }; /* tokens of a piece of the pool */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the data to learn from");
}

void llm_train_items_fini(train_data *d) {
    for (size_t i = 0; i < d->n_blocks; i++)
        ggl_free(d->block[i]);
    ggl_free(d->block);
    ggl_free(d->entry);
    ggl_free(d->run);
    ggl_free(d->score);
    llm_train_reads_fini(d);
}

/* --- the pool --------------------------------------------------------------------------------- */

static int32_t token_at(const train_data *d, uint64_t i) {
    const void *block = d->block[i / BLOCK];
    return d->wide ? ((const int32_t *)block)[i % BLOCK] : ((const uint16_t *)block)[i % BLOCK];
}

static ggl_status put_tokens(train_data *d, const int32_t *id, size_t n, ggl_error *err) {
    for (size_t i = 0; i < n; i++, d->n_pool++) {
        const int32_t x = id[i] < 0 ? llm_train_row_in_pool(d, id[i]) : id[i];
        if (id[i] < 0 && x >= 0)
            return ggl_fail(err, GGL_FORMAT,
                            "the text names a picture or a sound that it does not show");
        const size_t block = d->n_pool / BLOCK, at = d->n_pool % BLOCK;
        if (block == d->n_blocks) {
            if (!ggl_grow(&d->block, &d->cap_blocks, block + 1, sizeof *d->block) ||
                !(d->block[block] = ggl_calloc(BLOCK, d->wide ? 4 : 2)))
                return no_memory(err);
            d->n_blocks++;
        }
        if (d->wide)
            ((int32_t *)d->block[block])[at] = x;
        else
            ((uint16_t *)d->block[block])[at] = (uint16_t)x;
    }
    return GGL_OK;
}

/* True if the items are two texts side by side: the types of its tokens are in the pool behind them. */
static bool has_types(const train_data *d) {
    return d->p.scores && d->kind >= TRAIN_MATCHES;
}

static int32_t type_at(const train_data *d, const train_entry *e, uint64_t i) {
    return has_types(d) ? token_at(d, e->at + e->n + 1 + i) : 0;
}

/* Adds an item whose tokens are in the pool, and whose runs are the last n_runs of d->run. */
static ggl_status put_entry(train_data *d, train_entry e, size_t n_runs, ggl_error *err) {
    if (!ggl_grow(&d->entry, &d->cap, d->n + 1, sizeof *d->entry))
        return no_memory(err);
    d->entry[d->n++] = e;
    train_digest_number(d, e.n | (uint64_t)e.begins << 63);
    if (e.reading > 0)
        train_digest_number(d, e.reading);
    for (uint64_t i = 0; i <= e.n; i++)
        train_digest_number(d, (uint64_t)token_at(d, e.at + i));
    for (uint64_t i = 0; i < e.n; i++)
        if (type_at(d, &e, i) != 0)
            train_digest_number(d, i << 32 | (uint64_t)type_at(d, &e, i));
    for (size_t i = 0; i < n_runs; i++) {
        const train_run *run = &d->run[e.run + i];
        train_digest_number(d, run->first | (uint64_t)run->end << 32);
        if (run->weight != 1)
            train_digest_float(d, run->weight);
    }
    d->stats.n_items++;
    d->stats.n_records += e.begins;
    d->stats.n_tokens += e.n;
    d->stats.n_counted += e.n_counted;
    return GGL_OK;
}

/* --- kinds ------------------------------------------------------------------------------------ */

ggl_status llm_train_set_kind(train_data *d, train_kind kind, ggl_error *err) {
    static const char *const name[] = {
        [TRAIN_TEXT] = "a text",
        [TRAIN_ANSWERS] = "an answer",
        [TRAIN_PAIRS] = "a pair of a chosen and a rejected answer",
        [TRAIN_MATCHES] = "a text with one that belongs to it",
        [TRAIN_SCORED] = "two texts with a score",
    };
    const bool alone = kind >= TRAIN_PAIRS || d->kind >= TRAIN_PAIRS;
    if (d->kind != TRAIN_NOTHING && alone && kind != d->kind)
        return ggl_fail(err, GGL_FORMAT,
                        "this is %s, and what comes before is %s: a model learns from these in "
                        "runs of their own",
                        name[kind], name[d->kind]);
    if (kind > d->kind) {
        d->kind = kind;
        train_digest_number(d, kind);
    }
    return GGL_OK;
}

ggl_status llm_train_progress(train_data *d, size_t done, size_t total, ggl_error *err) {
    const size_t step = d->p.senses ? 1 : 1 << 16; /* files take their time */
    if (!d->p.progress || (done < total && done - d->told < step))
        return GGL_OK;
    d->told = done;
    return d->p.progress(d->p.user, done, total) ? GGL_OK
                                                 : ggl_fail(err, GGL_CANCELLED, "cancelled");
}

/* --- documents -------------------------------------------------------------------------------- */

ggl_status llm_train_add_document(train_data *d, const int32_t *id, size_t n, ggl_error *err) {
    const uint64_t at = d->n_pool;
    ggl_status st = put_tokens(d, id, n, err);
    for (size_t i = 0; i + 1 < n && st == GGL_OK;) {
        const size_t left = n - 1 - i, most = (size_t)d->p.n_ctx;
        const uint32_t used = (uint32_t)(left < most ? left : most);
        const train_entry e = {
            .at = at + i, .run = d->n_runs, .n = used, .begins = i == 0, .n_counted = used};
        st = put_entry(d, e, 0, err);
        i += used;
    }
    return st;
}

/* --- texts that are read ---------------------------------------------------------------------- */

ggl_status llm_train_add_read(train_data *d, llm_tokens *text, uint32_t *reading, bool *is_cut,
                              ggl_error *err) {
    train_read_table *r = &d->reads;
    const size_t most = (size_t)d->p.n_ctx;
    const uint64_t at = d->n_pool;
    *is_cut = text->n > most;
    if (*is_cut) {
        const int32_t last = text->id[text->n - 1];
        text->n = most;
        if (llm_tokenizer_is_control(d->p.tokenizer, last))
            text->id[most - 1] = last;
    }
    if (r->n >= INT32_MAX || !ggl_grow(&r->reading, &r->cap, r->n + 1, sizeof *r->reading))
        return no_memory(err);
    const ggl_status st = put_tokens(d, text->id, text->n, err);
    if (st != GGL_OK)
        return st;
    for (size_t i = 0; i < text->n; i++)
        train_digest_number(d, (uint64_t)text->id[i]);
    *reading = (uint32_t)r->n;
    r->reading[r->n++] = (train_reading){.at = at, .n = (int64_t)text->n};
    return GGL_OK;
}

/* --- drafts ----------------------------------------------------------------------------------- */

void llm_train_draft_fini(train_draft *s) {
    llm_tokens_fini(&s->tokens);
    llm_tokens_fini(&s->types);
    ggl_free(s->run);
    *s = (train_draft){0};
}

void llm_train_draft_clear(train_draft *s) {
    s->tokens.n = s->types.n = s->n_runs = 0;
    s->is_cut = false;
    s->reading = 0;
}

ggl_status llm_train_draft_count(train_draft *s, size_t first, size_t end, float weight,
                                 ggl_error *err) {
    for (size_t i = first, to; i < end; i = to) {
        while (i < end && s->tokens.id[i] < 0)
            i++;
        for (to = i; to < end && s->tokens.id[to] >= 0;)
            to++;
        if (to > i && !ggl_grow(&s->run, &s->cap_runs, s->n_runs + 1, sizeof *s->run))
            return no_memory(err);
        if (to > i)
            s->run[s->n_runs++] = (train_run){(uint32_t)i, (uint32_t)to, weight};
    }
    return GGL_OK;
}

/* The first token of an item is no target. */
static uint32_t counted_in(const train_run *run) {
    return run->end - (run->first > 0 ? run->first : 1);
}

/* Cuts a draft that is too long. False: nothing of what counts is left, or it is not to be cut. */
static bool fit(const train_data *d, train_draft *s) {
    const size_t most = (size_t)d->p.n_ctx + 1;
    if (s->tokens.n <= most)
        return true;
    if (d->p.drop_long)
        return false;
    s->tokens.n = most;
    s->is_cut = true;
    while (s->n_runs > 0 && s->run[s->n_runs - 1].first >= most)
        s->n_runs--;
    if (s->n_runs > 0 && s->run[s->n_runs - 1].end > most)
        s->run[s->n_runs - 1].end = (uint32_t)most;
    return s->n_runs > 0;
}

static bool counts_any(const train_draft *s) {
    uint32_t n = 0;
    for (size_t i = 0; i < s->n_runs && n == 0; i++)
        n += counted_in(&s->run[i]);
    return n > 0;
}

static ggl_status put_draft(train_data *d, const train_draft *s, bool begins, ggl_error *err) {
    train_entry e = {
        .at = d->n_pool, .run = d->n_runs, .n = (uint32_t)(s->tokens.n - 1) & INT32_MAX};
    e.begins = begins;
    e.reading = s->reading;
    if (!ggl_grow(&d->run, &d->cap_runs, d->n_runs + s->n_runs, sizeof *d->run))
        return no_memory(err);
    for (size_t i = 0; i < s->n_runs; i++)
        e.n_counted += counted_in(&s->run[i]);
    bool alike = e.n_counted == e.n;
    for (size_t i = 0; i < s->n_runs && alike; i++)
        alike = s->run[i].weight == 1;
    const size_t n_runs = alike ? 0 : s->n_runs;
    if (n_runs > 0)
        memcpy(d->run + d->n_runs, s->run, n_runs * sizeof *d->run);
    d->n_runs += n_runs;
    d->stats.n_cut += s->is_cut;
    ggl_status st = put_tokens(d, s->tokens.id, s->tokens.n, err);
    if (st == GGL_OK && has_types(d))
        st = put_tokens(d, s->types.id, e.n, err);
    return st == GGL_OK ? put_entry(d, e, n_runs, err) : st;
}

ggl_status llm_train_add(train_data *d, train_draft *s, bool begins, bool *added, ggl_error *err) {
    *added = false;
    if (!counts_any(s)) {
        d->stats.n_empty++;
        return GGL_OK;
    }
    if (!fit(d, s) || !counts_any(s)) {
        d->stats.n_long++;
        return GGL_OK;
    }
    *added = true;
    return put_draft(d, s, begins, err);
}

static bool same(const train_draft *a, const train_draft *b) {
    return a->tokens.n == b->tokens.n &&
           memcmp(a->tokens.id, b->tokens.id, a->tokens.n * sizeof *a->tokens.id) == 0;
}

ggl_status llm_train_add_group(train_data *d, const train_draft *s, size_t n, double score,
                               ggl_error *err) {
    ggl_status st = GGL_OK;
    if (d->kind == TRAIN_SCORED) {
        const size_t at = (size_t)d->stats.n_records;
        if (!ggl_grow(&d->score, &d->cap_scores, at + 1, sizeof *d->score))
            return no_memory(err);
        train_digest_float(d, score);
        d->score[at] = score;
    }
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        st = put_draft(d, &s[i], i == 0, err);
    return st;
}

ggl_status llm_train_add_pair(train_data *d, train_draft side[2], ggl_error *err) {
    for (int k = 0; k < 2; k++) /* the loss compares probabilities, which have no weights */
        for (size_t i = 0; i < side[k].n_runs; i++)
            side[k].run[i].weight = 1;
    train_draft *chosen = &side[0], *rejected = &side[1];
    int64_t *why = !counts_any(chosen) || !counts_any(rejected) ? &d->stats.n_empty
                   : same(chosen, rejected)                     ? &d->stats.n_same
                   : !fit(d, chosen) || !fit(d, rejected) || !counts_any(chosen) ||
                           !counts_any(rejected) || same(chosen, rejected)
                       ? &d->stats.n_long
                       : NULL;
    if (why) {
        ++*why;
        return GGL_OK;
    }
    return llm_train_add_group(d, side, 2, 0, err);
}

/* --- what is read ----------------------------------------------------------------------------- */

train_kind llm_train_data_kind(const train_data *d) {
    return d->kind;
}

int64_t llm_train_data_n(const train_data *d) {
    return (int64_t)d->n;
}

int64_t llm_train_data_length(const train_data *d, int64_t k) {
    return d->entry[k].n;
}

int64_t llm_train_data_counted(const train_data *d, int64_t k) {
    return d->entry[k].n_counted;
}

/* Where the runs of item k end. */
static size_t end_of_runs(const train_data *d, int64_t k) {
    return (size_t)k + 1 < d->n ? d->entry[k + 1].run : d->n_runs;
}

double llm_train_data_weight(const train_data *d, int64_t k) {
    const size_t first = d->entry[k].run, end = end_of_runs(d, k);
    double sum = first == end ? d->entry[k].n_counted : 0;
    for (size_t r = first; r < end; r++)
        sum += (double)d->run[r].weight * counted_in(&d->run[r]);
    return sum;
}

int64_t llm_train_data_group(const train_data *d, int64_t k) {
    int64_t n = 1;
    while (d->kind >= TRAIN_PAIRS && (size_t)(k + n) < d->n && !d->entry[k + n].begins)
        n++;
    return n;
}

int64_t llm_train_data_n_groups(const train_data *d, const int64_t *item, int64_t n) {
    int64_t n_groups = 0;
    for (int64_t i = 0; i < n; i++)
        n_groups += llm_train_data_begins(d, item[i]);
    return n_groups;
}

double llm_train_data_score(const train_data *d, int64_t k) {
    return d->score[d->p.scores ? k : k / 2];
}

bool llm_train_data_begins(const train_data *d, int64_t k) {
    return d->entry[k].begins;
}

int64_t llm_train_data_n_readings(const train_data *d) {
    return (int64_t)d->reads.n;
}

int64_t llm_train_data_reading_length(const train_data *d, int64_t r) {
    return d->reads.reading[r].n;
}

int64_t llm_train_data_reading(const train_data *d, int64_t k) {
    return (int64_t)d->entry[k].reading - 1;
}

int64_t llm_train_data_row(const train_data *d, int32_t token, int64_t *row) {
    const uint64_t at = (uint64_t)(-1 - (int64_t)token);
    size_t low = 0, high = d->reads.n; /* the last one that begins at it or before */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (d->reads.reading[middle].at <= at)
            low = middle;
        else
            high = middle;
    }
    *row = (int64_t)(at - d->reads.reading[low].at);
    return (int64_t)low;
}

void llm_train_data_get_text(const train_data *d, int64_t r, int32_t *token) {
    const train_reading *x = &d->reads.reading[r];
    for (int64_t i = 0; i < x->n; i++)
        token[i] = token_at(d, x->at + (uint64_t)i);
}

void llm_train_data_get_types(const train_data *d, int64_t k, int32_t *type) {
    for (uint64_t i = 0; i < d->entry[k].n; i++)
        type[i] = type_at(d, &d->entry[k], i);
}

void llm_train_data_get(const train_data *d, int64_t k, int32_t *token, int32_t *target,
                        float *weight) {
    const train_entry *e = &d->entry[k];
    const size_t end = end_of_runs(d, k);
    for (uint32_t i = 0; i < e->n; i++) {
        token[i] = token_at(d, e->at + i);
        if (target)
            target[i] = token_at(d, e->at + i + 1);
        if (weight)
            weight[i] = e->run == end;
    }
    for (size_t r = e->run; weight && r < end; r++)
        for (uint32_t i = d->run[r].first; i < d->run[r].end; i++)
            if (i > 0)
                weight[i - 1] = d->run[r].weight;
}

uint64_t llm_train_data_digest(const train_data *d) {
    return ggl_xxh64_end(&d->digest);
}

train_data_stats llm_train_data_stats(const train_data *d) {
    return d->stats;
}
