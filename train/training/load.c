/* Items as batches of the trainer. */
#include <string.h>

#include "ggl/internal/alloc.h"
#include "llm/internal/media.h"
#include "training.h"

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for batches");
}

/* Makes room for what tokens read. */
static bool init_reads(train_load *l, size_t n) {
    l->read = ggl_calloc(n, sizeof *l->read);
    l->place = ggl_calloc(n, sizeof *l->place);
    l->seen = ggl_calloc(n, sizeof *l->seen);
    bool ok = l->read && l->place && l->seen;
    for (int k = 0; k < LLM_N_PLACES; k++)
        ok = (l->pos[k] = ggl_calloc(n, sizeof *l->pos[k])) && ok;
    return ok;
}

ggl_status llm_train_load_init(llm_training *t, ggl_error *err) {
    train_load *l = &t->load;
    const size_t n = (size_t)t->p.n_ubatch;
    l->cap = t->p.n_ubatch;
    l->token = ggl_calloc(n, sizeof *l->token);
    l->type = ggl_calloc(n, sizeof *l->type);
    l->target = ggl_calloc(n, sizeof *l->target);
    l->weight = ggl_calloc(n, sizeof *l->weight);
    l->length = ggl_calloc(n, sizeof *l->length);
    l->item = ggl_calloc(n, sizeof *l->item);
    if (llm_train_is_contrast(t->kind))
        l->row = ggl_calloc(n, (size_t)llm_trainer_output(t->trainer).rows.n * sizeof *l->row);
    if (t->of.teach || t->p.draft)
        l->share = ggl_calloc(n, (size_t)llm_trainer_n_vocab(t->trainer) * sizeof *l->share);
    return l->token && l->type && l->target && l->weight && l->length && l->item &&
                   (l->share || !(t->of.teach || t->p.draft)) &&
                   (l->row || !llm_train_is_contrast(t->kind)) && (!t->reads || init_reads(l, n))
               ? GGL_OK
               : no_memory(err);
}

static void forget_reads(train_load *l) {
    while (l->n_readings > 0)
        llm_noticed_part_fini(&l->part[--l->n_readings]);
}

void llm_train_load_fini(train_load *l) {
    forget_reads(l);
    ggl_free(l->read);
    ggl_free(l->place);
    ggl_free(l->seen);
    for (int k = 0; k < LLM_N_PLACES; k++)
        ggl_free(l->pos[k]);
    ggl_free(l->reading);
    ggl_free(l->part);
    ggl_free(l->number);
    ggl_free(l->first_row);
    ggl_free(l->token);
    ggl_free(l->type);
    ggl_free(l->target);
    ggl_free(l->weight);
    ggl_free(l->length);
    ggl_free(l->item);
    ggl_free(l->share);
    ggl_free(l->row);
    *l = (train_load){0};
}

static void load_clear(train_load *l) {
    l->n = l->n_seq = 0;
    forget_reads(l);
}

static bool load_add(train_load *l, const train_data *d, int64_t k, double weight) {
    const int64_t n = llm_train_data_length(d, k);
    if (l->n + n > l->cap || l->n_seq == l->cap_seq)
        return false;
    llm_train_data_get(d, k, l->token + l->n, l->target + l->n, l->weight + l->n);
    llm_train_data_get_types(d, k, l->type + l->n);
    for (int64_t i = 0; i < n; i++)
        l->weight[l->n + i] *= (float)weight;
    l->item[l->n_seq] = k;
    l->length[l->n_seq++] = n;
    l->n += n;
    return true;
}

int64_t llm_train_load_fill(train_load *l, const train_data *d, const int64_t *item, int64_t n,
                            const double *weight, double one) {
    int64_t i = 0;
    load_clear(l);
    while (i < n && load_add(l, d, item[i], weight ? weight[i] : one))
        i++;
    return i;
}

llm_train_batch llm_train_load_batch(const train_load *l) {
    return (llm_train_batch){.token = l->token,
                             .type = l->type,
                             .target = l->target,
                             .weight = l->weight,
                             .length = l->length,
                             .n_seq = l->n_seq,
                             .input = l->share ? (const void *const *)&l->share : NULL,
                             .reading = l->reading,
                             .n_readings = l->n_readings,
                             .read = l->read,
                             .place = l->place,
                             .pos = l->read ? (const int32_t *const *)l->pos : NULL,
                             .seen = l->seen};
}

/* --- what is read ----------------------------------------------------------------------------- */

/* The file that was read last: its parts are mostly asked for one after the other. */
typedef struct last_file {
    llm_noticed x;
    int64_t file;
} last_file;

/* Sets *out to the text of an encoder. */
static ggl_status read_text(const train_data *d, int64_t r, llm_noticed_part *out, ggl_error *err) {
    const int64_t n = llm_train_data_reading_length(d, r);
    int32_t *token = ggl_calloc((size_t)n, sizeof *token);
    *out = (llm_noticed_part){.n = n, .own = {token}};
    if (!token)
        return no_memory(err);
    llm_train_data_get_text(d, r, token);
    return GGL_OK;
}

/* Reads what items name, unless the batch has it. Returns its place in the batch, -1: that failed. */
static int64_t need(llm_training *t, const train_data *d, int64_t r, last_file *last,
                    ggl_status *st, ggl_error *err) {
    train_load *l = &t->load;
    const bool is_text = llm_trainer_reader(t->trainer).of_text;
    int64_t k = l->n_readings;
    while (k > 0 && l->number[k - 1] != r)
        k--;
    if (k > 0)
        return k - 1;
    const size_t n = (size_t)l->n_readings + 1;
    if (!ggl_grow(&l->reading, &l->cap_readings[0], n, sizeof *l->reading) ||
        !ggl_grow(&l->part, &l->cap_readings[1], n, sizeof *l->part) ||
        !ggl_grow(&l->number, &l->cap_readings[2], n, sizeof *l->number) ||
        !ggl_grow(&l->first_row, &l->cap_readings[3], n, sizeof *l->first_row)) {
        *st = no_memory(err);
        return -1;
    }
    llm_noticed_part *p = &l->part[l->n_readings];
    *st = is_text ? read_text(d, r, p, err)
                  : llm_train_data_read_part(d, r, &last->x, &last->file, p, err);
    k = l->n_readings++;
    l->number[k] = r;
    l->first_row[k] =
        k > 0 ? l->first_row[k - 1] + llm_trainer_n_rows(t->trainer, l->part[k - 1].n) : 0;
    l->reading[k] =
        (llm_train_reading){.row = p->row, .token = is_text ? p->own[0] : NULL, .n = p->n};
    return *st == GGL_OK ? k : -1;
}

/* Sets what each token of a sequence is: a token, or a row, and where it stands, as models/run/session_inputs.c does. */
static ggl_status place_rows(llm_training *t, const train_data *d, int64_t at, int64_t n,
                             last_file *last, ggl_error *err) {
    train_load *l = &t->load;
    ggl_status st = GGL_OK;
    llm_places places = {0};
    for (int64_t i = 0; i < n && st == GGL_OK; i++) {
        llm_media_row row = {.n = 1, .n_pos = 1};
        int32_t place[LLM_N_PLACES];
        l->place[at + i] = -1;
        if (l->token[at + i] < 0) {
            const int64_t k =
                need(t, d, llm_train_data_row(d, l->token[at + i], &row.i), last, &st, err);
            if (st != GGL_OK)
                return st;
            const llm_noticed_part *p = &l->part[k];
            row.n = p->n_made;
            row.n_pos = p->n_pos;
            row.first = (int32_t)(-1 - k);
            row.has_place = p->place != NULL;
            for (int c = 0; c < 3 && p->place; c++)
                row.place[c] = p->place[3 * row.i + c];
            l->place[at + i] = (int32_t)(l->first_row[k] + row.i);
            l->token[at + i] = 0;
        }
        llm_places_next(&places, i, &row, place);
        for (int c = 0; c < LLM_N_PLACES; c++)
            l->pos[c][at + i] = place[c];
        const int64_t seen = i - row.i + row.n; /* a picture may be cut with its text */
        l->seen[at + i] = (int32_t)(seen < n ? seen : n);
        if (l->target[at + i] < 0)
            l->target[at + i] = 0;
    }
    return st;
}

ggl_status llm_train_load_read(llm_training *t, const train_data *d, ggl_error *err) {
    train_load *l = &t->load;
    last_file last = {.file = -1};
    ggl_status st = GGL_OK;
    if (!t->reads)
        return GGL_OK;
    for (int64_t i = 0, at = 0; i < l->n_seq && st == GGL_OK; at += l->length[i++]) {
        const int64_t r = llm_train_data_reading(d, l->item[i]);
        if (r >= 0)
            l->read[i] = (int32_t)need(t, d, r, &last, &st, err);
        else
            st = place_rows(t, d, at, l->length[i], &last, err);
    }
    for (int64_t k = 0; k < l->n_readings; k++) /* where they stay */
        l->reading[k].places = &l->part[k].places;
    if (t->of.senses->forget)
        t->of.senses->forget(t->of.senses->ctx, &last.x);
    return st;
}
