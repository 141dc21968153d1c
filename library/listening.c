/* Sounds in texts: read whole, as many samples as fit into the context, made into a spectrogram as the ear's descriptor says, and run through its stages window
 * by window. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "context.h"
#include "ggl/alloc.h"
#include "ggl/internal/alloc.h"
#include "llm/steps.h"
#include "noticing.h"
#include "sound_rows.h"

enum {
    PIECE = 3000,          /* rows that are measured at once: half a minute */
    PART = 1 << 16,        /* samples that are read at once */
    MOST_SECONDS = 7200,   /* of a sound, which is in memory as a whole */
    MOST_WINDOWS = 1 << 14 /* which a mark that somebody has made may ask for */
};

typedef struct heard {
    uint8_t id[LLM_MEDIA_ID];
    float *sample; /* [n_filled] */
    int64_t n, n_windows;
    /* n and, where windows are sounds of their own, the silence that fills the last one if its rows are read */
    int64_t n_filled;
    size_t cap;
    double largest; /* if is_measured */
    double *mean;   /* [n_mel], then as many deviations, where bands have them */
    bool is_measured;
    float *rows; /* [n_window][n_mel]: of one window */
} heard;

static void heard_free(heard *h) {
    ggl_free(h->sample);
    ggl_free(h->rows);
    ggl_free(h->mean);
    *h = (heard){0};
}

static const llm_arch_sound *rule_of(const llm_eye *e) {
    return &e->rows[e->input].sound;
}

static ggl_status check_wanted(const llm_eye *e, ggl_error *err) {
    return e->cancelled && e->cancelled(e->cancelled_ctx)
               ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
               : GGL_OK;
}

static const char *name_of(const llm_audio *a) {
    return a->path ? a->path : a->name ? a->name : "the sound";
}

/* --- in a text -------------------------------------------------------------------------------- */

static int64_t n_windows(const uint8_t id[LLM_MEDIA_ID]) {
    uint32_t n = 0;
    for (int k = 0; k < 4; k++)
        n |= (uint32_t)id[LLM_MEDIA_ID - 4 + k] << (8 * k);
    n &= MOST_WINDOWS * 2 - 1;                 /* without the bit of sounds */
    return n > 0 && n <= MOST_WINDOWS ? n : 1; /* of a mark that nobody has made, none is there */
}

void llm_ear_set_windows(uint8_t id[LLM_MEDIA_ID], int64_t n) {
    for (int k = 0; k < 4; k++)
        id[LLM_MEDIA_ID - 4 + k] = (uint8_t)(n >> (8 * k));
    llm_eye_set_sound(id);
}

/* Appends the rows with which a sound begins that are added to the tokens of a text; the first one to the token before, if that begins texts. */
static ggl_status append_added(const llm_eye *e, const llm_tokenizer *t,
                               const uint8_t id[LLM_MEDIA_ID], llm_tokens *ids, ggl_error *err) {
    int32_t first;
    int64_t n;
    if (ids->n == 1 && ids->id[0] == llm_tokenizer_bos(t))
        ids->n = 0;
    if (ids->n > 0)
        return ggl_fail(err, GGL_USAGE,
                        "a sound begins the text, as its rows are added to the text's tokens from "
                        "the first one on, but %zu tokens are before it",
                        ids->n);
    ggl_status st = llm_eye_find_part(e, id, 0, &first, &n, err);
    if (st != GGL_OK)
        return st;
    for (int64_t i = 0; i < n && i < rule_of(e)->added && st == GGL_OK; i++)
        st = llm_tokens_append(ids, (int32_t)(first - i), err);
    llm_media_release(e->media, first);
    return st;
}

static ggl_status append_sound(const llm_eye *e, const llm_tokenizer *t,
                               const uint8_t id[LLM_MEDIA_ID], llm_tokens *ids, ggl_error *err) {
    const llm_arch_sound *s = rule_of(e);
    const int64_t n = n_windows(id);
    if (s->added > 0)
        return append_added(e, t, id, ids, err);
    ggl_status st = llm_eye_append_text(t, s->begin, 0, 0, 0, ids, err);
    for (int64_t k = 0; k < n && st == GGL_OK; k++)
        st = llm_eye_append_part(e, id, k, ids, err);
    return st == GGL_OK ? llm_eye_append_text(t, s->end, 0, 0, 0, ids, err) : st;
}

/* --- windows ---------------------------------------------------------------------------------- */

/* Returns how many rows so many samples have: row r if there are r * step + needs of them. */
static int64_t rows_in(const llm_arch_sound *s, int64_t n) {
    return n < s->needs ? 0 : (n - s->needs) / s->step + 1;
}

/* The samples that window k is made of, and the row of these with which it begins: of those of the whole sound, or of its own. *n: those without what fills the window. */
static llm_mel_piece window_of(const llm_eye *e, const heard *h, int64_t k, int64_t *at,
                               int64_t *n) {
    const int64_t most = e->n_most * rule_of(e)->step, first = k * most, rest = h->n - first,
                  filled = h->n_filled - first;
    *at = k * e->n_most;
    *n = h->n;
    if (!rule_of(e)->apart)
        return (llm_mel_piece){.sample = h->sample, .n = h->n_filled, .is_last = true};
    *at = 0;
    *n = rest < most ? rest : most;
    return (llm_mel_piece){
        .sample = h->sample + first, .n = filled < most ? filled : most, .is_last = true};
}

/* Returns how many rows a window has, which begins at row `at` of n: at least those that the stages make a row of. */
static int64_t window_rows(const llm_eye *e, int64_t n, int64_t at) {
    const int64_t most = e->n_most, least = llm_eye_origin(e, 0, e->n_most) + 1;
    const int64_t rest = n - at > least ? n - at : least;
    return rule_of(e)->whole || rest > most ? most : rest;
}

/* Returns of how many rows of the spectrogram, less than those of a window, so many rows can be made. */
static int64_t rows_for(const llm_eye *e, int64_t n_made) {
    int64_t least = 0, most = e->n_most - 1;
    while (least < most) {
        const int64_t middle = (least + most + 1) / 2;
        if (llm_eye_rows_made(e, middle) <= n_made)
            least = middle;
        else
            most = middle - 1;
    }
    return least;
}

/* Returns how many samples may become so many rows, with the silence around them: the last window may be cut unless the ear hears
 * whole ones, and there are no more than memory is meant for. */
static int64_t samples_for(const llm_eye *e, int64_t n_rows) {
    const int64_t n_window = e->n_most, step = rule_of(e)->step,
                  n_made = llm_eye_rows_made(e, n_window),
                  rest = rule_of(e)->whole ? 0 : rows_for(e, n_rows % n_made),
                  n = (n_rows / n_made * n_window + rest) * step,
                  most = MOST_SECONDS * rule_of(e)->rate, windows = MOST_WINDOWS * n_window * step,
                  least = n < most ? n : most;
    return least < windows ? least : windows;
}

int64_t llm_ear_most_samples(const llm_eye *e, int64_t n_rows) {
    const llm_arch_sound *s = rule_of(e);
    const int64_t n = (samples_for(e, n_rows) - s->trail) / s->unit * s->unit - s->lead;
    return n > 0 ? n : 0;
}

int64_t llm_ear_filled(const llm_eye *e, int64_t n) {
    const llm_arch_sound *s = rule_of(e);
    const int64_t all = s->lead + n > s->shortest ? s->lead + n : s->shortest;
    return (all + s->unit - 1) / s->unit * s->unit + s->trail;
}

int64_t llm_ear_rows_in(const llm_eye *e, int64_t n) {
    return window_rows(e, rows_in(rule_of(e), n), 0);
}

int64_t llm_ear_least_rows(const llm_eye *e) {
    return llm_eye_rows_made(e, llm_ear_rows_in(e, llm_ear_filled(e, 1)));
}

/* Adds the numbers of n rows, and their squares, to the sums of their bands. */
static void add_bands(double *sum, const float *row, int64_t n, int64_t n_mel) {
    for (int64_t i = 0; i < n * n_mel; i++) {
        const double v = (double)row[i];
        sum[i % n_mel] += v;
        sum[n_mel + i % n_mel] += v * v;
    }
}

/* Makes means and deviations of n rows' sums; the deviation of one row alone is 0. */
static void make_means(double *sum, int64_t n, int64_t n_mel) {
    for (int64_t b = 0; b < n_mel; b++) {
        const double mean = sum[b] / (double)n, left = sum[n_mel + b] - (double)n * mean * mean;
        sum[b] = mean;
        sum[n_mel + b] = n > 1 && left > 0 ? sqrt(left / (double)(n - 1)) : 0;
    }
}

/* Finds the bands' means and deviations in the whole steps of n samples. */
static ggl_status measure_bands(const llm_eye *e, heard *h, const llm_mel_piece *all,
                                int64_t n_samples, ggl_error *err) {
    const int64_t n = llm_mel_n_rows(e->mel, n_samples), n_mel = e->n_input;
    float *row = ggl_calloc((size_t)(PIECE * n_mel), sizeof *row);
    ggl_status st = GGL_OK;
    ggl_free(h->mean);
    h->mean = ggl_calloc((size_t)(2 * n_mel), sizeof *h->mean);
    if (!row || !h->mean)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a sound");
    for (int64_t at = 0; at < n && st == GGL_OK; at += PIECE) {
        const int64_t some = n - at < PIECE ? n - at : PIECE;
        st = check_wanted(e, err);
        if (st == GGL_OK)
            st = llm_mel_rows(e->mel, all, at, some, 0, row, err);
        if (st == GGL_OK)
            add_bands(h->mean, row, some, n_mel);
    }
    if (st == GGL_OK && n > 0)
        make_means(h->mean, n, n_mel);
    ggl_free(row);
    return st;
}

static ggl_status find_largest(const llm_eye *e, heard *h, const llm_mel_piece *all,
                               int64_t n_samples, ggl_error *err) {
    const int64_t n = llm_mel_n_heard(e->mel, n_samples);
    ggl_status st = GGL_OK;
    h->largest = llm_mel_silence(e->mel);
    if (!isnan(rule_of(e)->largest)) {
        h->largest = rule_of(e)->largest;
        return GGL_OK;
    }
    for (int64_t at = 0; at < n && st == GGL_OK; at += PIECE) {
        const int64_t rest = n - at;
        st = check_wanted(e, err);
        if (st == GGL_OK)
            st = llm_mel_largest(e->mel, all, at, rest < PIECE ? rest : PIECE, &h->largest, err);
    }
    return st;
}

/* Finds what the spectrogram of the first n samples is scaled by, piece by piece. */
static ggl_status measure(const llm_eye *e, heard *h, const llm_mel_piece *all, int64_t n,
                          ggl_error *err) {
    const llm_arch_sound_level level = rule_of(e)->level;
    const ggl_status st = level == LLM_LEVEL_BANDS     ? measure_bands(e, h, all, n, err)
                          : level == LLM_LEVEL_LARGEST ? find_largest(e, h, all, n, err)
                                                       : GGL_OK;
    h->is_measured = st == GGL_OK && !rule_of(e)->apart;
    return st;
}

/* Scales n rows from row `at` on by their bands' means and deviations. Behind the whole steps of the n_samples samples they are 0. */
static void scale_bands(const llm_eye *e, const heard *h, int64_t n_samples, int64_t at,
                        int64_t n) {
    const int64_t n_mel = e->n_input, n_whole = llm_mel_n_rows(e->mel, n_samples);
    for (int64_t i = 0; i < n * n_mel; i++) {
        const int64_t b = i % n_mel;
        h->rows[i] = at + i / n_mel < n_whole
                         ? (float)(((double)h->rows[i] - h->mean[b]) / (h->mean[n_mel + b] + 1e-5))
                         : 0;
    }
}

/* Copies the samples of a piece, from row `at` on, into n rows; where the piece ends, zeros follow. */
static void copy_samples(const llm_eye *e, const llm_mel_piece *piece, int64_t at, int64_t n,
                         float *row) {
    const int64_t first = at * e->n_input, rest = piece->n - first, all = n * e->n_input;
    memset(row, 0, (size_t)all * sizeof *row);
    if (rest > 0)
        memcpy(row, piece->sample + first, (size_t)(rest < all ? rest : all) * sizeof *row);
}

/* Sets h->rows to those of window k, and *n to how many it has, without those that follow a sound. */
static ggl_status make_window(const llm_eye *e, heard *h, int64_t k, int64_t *n, ggl_error *err) {
    int64_t at, n_own;
    const llm_mel_piece piece = window_of(e, h, k, &at, &n_own);
    *n = window_rows(e, rows_in(rule_of(e), n_own), at);
    const int64_t n_all = llm_rows_with_after(&e->rows[e->input], *n);
    if (!h->rows)
        h->rows = ggl_calloc((size_t)(e->n_most * e->n_input), sizeof *h->rows);
    if (!h->rows)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a sound");
    if (rule_of(e)->is_samples) {
        copy_samples(e, &piece, at, n_all, h->rows);
        return GGL_OK;
    }
    ggl_status st = h->is_measured ? GGL_OK : measure(e, h, &piece, n_own, err);
    if (st == GGL_OK)
        st = llm_mel_rows(e->mel, &piece, at, n_all, h->largest, h->rows, err);
    if (st == GGL_OK && h->mean)
        scale_bands(e, h, n_own, at, n_all);
    return st;
}

static ggl_status hear_window(llm_eye *e, heard *h, int64_t k, const float **row, int64_t *n,
                              ggl_error *err) {
    int64_t n_in;
    const llm_row_places places = {.window = k};
    ggl_status st = make_window(e, h, k, &n_in, err);
    if (st != GGL_OK)
        return st;
    llm_stages_place(e->stages, &places);
    st = llm_stages_run(e->stages, h->rows, n_in, row, n, err);
    llm_stages_place(e->stages, NULL);
    return st;
}

/* --- reading ---------------------------------------------------------------------------------- */

static ggl_status read_part(const llm_eye *e, heard *h, llm_sound *from, int64_t *got,
                            ggl_error *err) {
    ggl_status st = check_wanted(e, err);
    if (st != GGL_OK)
        return st;
    if (!ggl_grow(&h->sample, &h->cap, (size_t)h->n + PART, sizeof *h->sample))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a sound");
    st = llm_sound_read(from, h->sample + h->n, PART, got, err);
    h->n += st == GGL_OK ? *got : 0;
    return st;
}

/* Adds zeros behind the samples until there are n or more. */
static ggl_status fill_sound(heard *h, int64_t n, ggl_error *err) {
    h->n_filled = h->n;
    if (n <= h->n)
        return GGL_OK;
    if (!ggl_grow(&h->sample, &h->cap, (size_t)n, sizeof *h->sample))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a sound");
    memset(h->sample + h->n, 0, (size_t)(n - h->n) * sizeof *h->sample);
    h->n_filled = n;
    return GGL_OK;
}

static ggl_status read_all(const llm_eye *e, heard *h, llm_sound *from, const char *name,
                           ggl_error *err) {
    const llm_arch_sound *s = rule_of(e);
    const int64_t most = s->lead + llm_ear_most_samples(e, e->n_ctx);
    int64_t got = 1;
    if (most <= s->lead)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: the shortest sound takes %" PRId64 " tokens, and the context has "
                        "%" PRId64 ": open the model with more (n_ctx, or -c)",
                        name, llm_ear_least_rows(e), e->n_ctx);
    ggl_status st = fill_sound(h, s->lead, err);
    h->n = s->lead;
    while (st == GGL_OK && got > 0 && h->n <= most)
        st = read_part(e, h, from, &got, err);
    if (st == GGL_OK && h->n > most)
        return ggl_fail(
            err, GGL_LIMIT,
            "%s: the sound has more than %.2f seconds, the most that fit into a context "
            "of %" PRId64 " tokens and into two hours",
            name, (double)(most - s->lead) / (double)s->rate, e->n_ctx);
    if (st == GGL_OK && *llm_sound_damage(from))
        return ggl_fail(err, GGL_FORMAT, "%s: the sound is damaged: %s", name,
                        llm_sound_damage(from));
    return st == GGL_OK && h->n == s->lead
               ? ggl_fail(err, GGL_FORMAT, "%s: the sound has no samples", name)
               : st;
}

/* The id follows from the samples, and has the number of windows in its last four bytes. */
static void identify(const llm_eye *e, heard *h) {
    char hex[SHA256_HEX];
    sha256 sum;
    llm_sha256_begin(&sum);
    llm_sha256_add(&sum, &e->digest, sizeof e->digest);
    llm_sha256_add(&sum, h->sample, (size_t)h->n * sizeof *h->sample);
    llm_sha256_end(&sum, hex);
    (void)llm_eye_digest(hex, h->id);
    llm_ear_set_windows(h->id,
                        rule_of(e)->added > 0 ? 1 : h->n_windows); /* whose rows are one part */
}

/* Reads a sound. *h is to be freed in any case. */
static ggl_status listen(heard *h, const llm_eye *e, const llm_audio *audio, ggl_error *err) {
    const int64_t n_window = e->n_most;
    llm_sound *from = NULL;
    if (!audio->path == !audio->data)
        return ggl_fail(err, GGL_USAGE, "llm_audio needs a path or data, one of the two");
    ggl_status st = llm_sound_rows_open(&from, audio, name_of(audio), (int)rule_of(e)->rate, false,
                                        e->cancelled, e->cancelled_ctx, err);
    if (st == GGL_OK)
        st = read_all(e, h, from, name_of(audio), err);
    llm_sound_close(from);
    if (st != GGL_OK)
        return st;
    st = fill_sound(h, llm_ear_filled(e, h->n - rule_of(e)->lead), err);
    if (st != GGL_OK)
        return st;
    h->n = h->n_filled;
    const int64_t n = rule_of(e)->apart ? (h->n + rule_of(e)->step - 1) / rule_of(e)->step
                                        : rows_in(rule_of(e), h->n);
    h->n_windows = n > 0 ? (n + n_window - 1) / n_window : 1;
    identify(e, h);
    const bool fills = rule_of(e)->whole || (rule_of(e)->apart && rule_of(e)->after > 0);
    return fills ? fill_sound(h, h->n_windows * n_window * rule_of(e)->step, err) : GGL_OK;
}

/* --- without stages --------------------------------------------------------------------------- */

static ggl_status start_ear(llm_eye *e, ggl_error *err) {
    return rule_of(e)->is_samples ? GGL_OK
                                  : llm_sound_rows_mel(&e->mel, rule_of(e), e->n_input, err);
}

static ggl_status notice_sound(const llm_eye *e, const llm_noticed_file *f, llm_noticed *out,
                               ggl_error *err) {
    const llm_audio audio = {.path = f->path, .data = f->data, .n = f->n};
    heard *h = ggl_calloc(1, sizeof *h);
    *out = (llm_noticed){.name = name_of(&audio), .of = h};
    if (!h)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a sound");
    const ggl_status st = listen(h, e, &audio, err);
    memcpy(out->id, h->id, sizeof out->id);
    out->n_parts = h->n_windows;
    return st;
}

static ggl_status part_of_sound(const llm_eye *e, llm_noticed *x, int64_t k, llm_noticed_part *out,
                                ggl_error *err) {
    heard *h = x->of;
    int64_t n;
    *out = (llm_noticed_part){.row = NULL};
    const ggl_status st = make_window(e, h, k, &n, err);
    if (st != GGL_OK)
        return st;
    out->n = n;
    out->n_made = out->n_pos = llm_eye_rows_made(e, n);
    out->places.window = k;
    out->row = out->own[0] = h->rows; /* the next window gets others */
    h->rows = NULL;
    return GGL_OK;
}

static void forget_sound(llm_noticed *x) {
    if (x->of)
        heard_free(x->of);
    ggl_free(x->of);
    x->of = NULL;
}

const llm_eye_kind llm_eye_sounds = {.organ = "ear",
                                     .senses = "hears",
                                     .what = "sound",
                                     .n_parts = n_windows,
                                     .append = append_sound,
                                     .start = start_ear,
                                     .notice = notice_sound,
                                     .part = part_of_sound,
                                     .forget = forget_sound};

/* --- calls ------------------------------------------------------------------------------------ */

/* The rows of windows k to `end` - 1: those of the spectrogram, or those that the ear makes of them. */
static ggl_status rows_of(llm_eye *e, heard *h, int64_t k, int64_t end, bool mel, float **row,
                          size_t *n, ggl_error *err) {
    const size_t n_row = (size_t)(mel ? llm_stages_n_input : llm_stages_n_row)(e->stages);
    ggl_status st = GGL_OK;
    size_t cap = 0;
    for (*n = 0; st == GGL_OK && k < end; k++) {
        const float *got = NULL;
        int64_t n_got = 0;
        st = mel ? make_window(e, h, k, &n_got, err) : hear_window(e, h, k, &got, &n_got, err);
        if (st == GGL_OK && !ggl_grow(row, &cap, (*n + (size_t)n_got) * n_row, sizeof **row))
            st = ggl_fail(err, GGL_NOMEM, "out of memory for the rows of a sound");
        if (st == GGL_OK)
            memcpy(*row + *n * n_row, mel ? h->rows : got, (size_t)n_got * n_row * sizeof **row);
        *n += st == GGL_OK ? (size_t)n_got : 0;
    }
    return st;
}

static ggl_status hear_and_keep(llm_eye *e, void *ctx, int64_t k, const uint8_t id[LLM_MEDIA_ID],
                                ggl_error *err) {
    heard *h = ctx;
    llm_media_rows rows = {.n_row = llm_stages_n_row(e->stages)};
    float *row = NULL;
    int32_t first;
    size_t n;
    ggl_status st =
        rows_of(e, h, k, rule_of(e)->added > 0 ? h->n_windows : k + 1, false, &row, &n, err);
    rows.row = row;
    rows.n = rows.n_pos = (int64_t)n;
    st = st == GGL_OK ? llm_media_add(e->media, id, &rows, &first, err) : st;
    ggl_free(row);
    return st;
}

ggl_status llm_eye_listen(llm_context *c, const llm_audio *audio, char mark[LLM_IMAGE_MARK],
                          ggl_error *err) {
    heard h = {0};
    llm_eye *e;
    *mark = 0;
    ggl_status st = llm_eye_need(c, &llm_eye_sounds, &e, err);
    if (st == GGL_OK)
        st = listen(&h, e, audio, err);
    if (st == GGL_OK)
        st = llm_eye_keep(e, h.id, hear_and_keep, &h, mark, err);
    heard_free(&h);
    return st;
}

ggl_status llm_listen(llm_context *c, const llm_audio *audio, char mark[LLM_IMAGE_MARK],
                      ggl_error *err) {
    llm_context_start_beside(c);
    return llm_context_end_beside(c, llm_eye_listen(c, audio, mark, err));
}

/* The rows of all windows. */
static ggl_status all_rows(llm_context *c, const llm_audio *audio, bool mel, float **row, size_t *n,
                           size_t *n_row, ggl_error *err) {
    heard h = {0};
    llm_eye *e;
    *row = NULL;
    *n = *n_row = 0;
    llm_context_start_beside(c);
    ggl_status st = llm_eye_need(c, &llm_eye_sounds, &e, err);
    if (st == GGL_OK)
        st = listen(&h, e, audio, err);
    if (st == GGL_OK) {
        *n_row = (size_t)(mel ? llm_stages_n_input : llm_stages_n_row)(e->stages);
        st = rows_of(e, &h, 0, h.n_windows, mel, row, n, err);
    }
    heard_free(&h);
    if (st != GGL_OK) {
        ggl_free(*row);
        *row = NULL;
    }
    return llm_context_end_beside(c, st);
}

ggl_status llm_audio_mel(llm_context *c, const llm_audio *audio, float **row, size_t *n,
                         size_t *n_row, ggl_error *err) {
    return all_rows(c, audio, true, row, n, n_row, err);
}

ggl_status llm_audio_rows(llm_context *c, const llm_audio *audio, float **row, size_t *n,
                          size_t *n_row, ggl_error *err) {
    return all_rows(c, audio, false, row, n, n_row, err);
}
