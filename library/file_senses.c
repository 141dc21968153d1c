#include "file_senses.h"

#include <stdio.h>
#include <string.h>

#include "context.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "hearing.h"
#include "loading.h"
#include "noticing.h"
#include "senses.h"

typedef struct file_senses {
    llm_file_senses is;
    llm_context *c;
    llm_eye *eye;
    llm_arch_rows_of rows[LLM_ARCH_MAX_SOURCES]; /* of a model that writes down speech, */
    hearing_input input;
    speech_tokens tokens;
} file_senses;

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for what a model reads");
}

/* --- pictures and sounds in texts ------------------------------------------------------------- */

/* Adds the places of a part to those that texts can name. */
static ggl_status add_part(llm_eye *e, const llm_noticed *x, int64_t k, const llm_noticed_part *p,
                           int32_t *first, ggl_error *err) {
    uint8_t id[LLM_MEDIA_ID];
    llm_eye_part_id(x->id, k, id);
    if (e->rows[e->input].picture.pairs > 0) {
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: lines of rows stand in pairs with this eye, with which nothing is "
                        "trained",
                        x->name);
    }
    const llm_media_rows rows = {.n = p->n_made, .place = p->place, .n_pos = p->n_pos};
    return llm_media_add(e->media, id, &rows, first, err);
}

static void let_go(void *ctx, const llm_shown_file *shown) {
    const file_senses *s = ctx;
    for (int64_t k = 0; s->eye && k < shown->n_parts; k++)
        llm_media_release(s->eye->media, shown->part[k].first);
}

static ggl_status show_in_text(file_senses *s, const llm_noticed_file *f, llm_shown_file *out,
                               ggl_error *err) {
    llm_eye *e = s->eye;
    llm_noticed x;
    ggl_status st = e->kind->notice(e, f, &x, err);
    if (st == GGL_OK && !(out->part = ggl_calloc((size_t)x.n_parts, sizeof *out->part)))
        st = no_memory(err);
    for (int64_t k = 0; st == GGL_OK && k < x.n_parts; k++) {
        llm_noticed_part p;
        llm_shown_part *to = &out->part[k];
        st = e->kind->part(e, &x, k, &p, err);
        to->n = p.n;
        to->n_made = p.n_made;
        if (st == GGL_OK && p.n_made < 1)
            st = ggl_fail(err, GGL_FORMAT, "%s: it is so small that nothing of it is %s", x.name,
                          s->is.pictures ? "seen" : "heard");
        if (st == GGL_OK)
            st = add_part(e, &x, k, &p, &to->first, err);
        out->n_parts += st == GGL_OK;
        llm_noticed_part_fini(&p);
    }
    memcpy(out->id, x.id, sizeof out->id);
    llm_eye_mark(x.id, out->mark);
    if (st != GGL_OK)
        let_go(s, out);
    e->kind->forget(&x);
    return st;
}

/* --- speech ----------------------------------------------------------------------------------- */

/* Computes the window that the seconds of the file are. *until: the row behind them. */
static ggl_status hear(file_senses *s, hearing *h, const llm_noticed_file *f, int64_t *until,
                       ggl_error *err) {
    const llm_transcribe_params p = {.size = sizeof p, .data = f->data, .n_data = f->n};
    int64_t n = 0;
    ggl_status st = llm_hearing_open_as(h, s->c, &s->input, f->path, &p, err);
    if (st != GGL_OK)
        return st;
    const int64_t at = llm_hearing_rows_in(h, f->offset);
    *until = f->duration > 0 ? at + llm_hearing_rows_in(h, f->duration) : INT64_MAX;
    st = llm_hearing_window(h, at, *until, &n, err);
    return st == GGL_OK && n <= 0
               ? ggl_fail(err, GGL_FORMAT, "%s: there is no sound after %g seconds", h->name,
                          f->offset)
               : st;
}

/* Hears the rest of the seconds, of which there may be none. */
static ggl_status check_rest(hearing *h, const llm_noticed_file *f, int64_t until, ggl_error *err) {
    const int64_t first = llm_hearing_rows_in(h, f->offset);
    int64_t n = h->n_window, end = first;
    ggl_status st = GGL_OK;
    for (int64_t at = first + n; st == GGL_OK && n == h->n_window && at < until; at += n) {
        st = llm_hearing_window(h, at, until, &n, err);
        end = at + (n > 0 ? n : 0);
    }
    if (st == GGL_OK && *llm_sound_damage(h->sound))
        return ggl_fail(err, GGL_FORMAT, "%s: the sound is damaged: %s", h->name,
                        llm_sound_damage(h->sound));
    return st == GGL_OK && end - first > h->n_window
               ? ggl_fail(err, GGL_LIMIT,
                          "%s: the sound has %.1f seconds, but a window of the model has %.1f: "
                          "give parts of it, by \"offset\" and \"duration\" in seconds",
                          h->name, llm_hearing_seconds(h, end - first),
                          llm_hearing_seconds(h, h->n_window))
               : st;
}

static void identify(const hearing *h, uint8_t id[LLM_MEDIA_ID]) {
    char hex[SHA256_HEX];
    sha256 sum;
    llm_sha256_begin(&sum);
    llm_sha256_add(&sum, h->rows, (size_t)(h->n_window * h->n_mel) * sizeof *h->rows);
    llm_sha256_end(&sum, hex);
    (void)llm_eye_digest(hex, id);
}

static void forget_speech(llm_noticed *x) {
    if (x->of)
        llm_hearing_close(x->of);
    ggl_free(x->of);
    x->of = NULL;
}

static ggl_status read_speech(file_senses *s, const llm_noticed_file *f, bool is_checked,
                              llm_noticed *out, ggl_error *err) {
    hearing *h = ggl_calloc(1, sizeof *h);
    int64_t until = INT64_MAX;
    *out = (llm_noticed){.of = h, .n_parts = 1};
    if (!h)
        return no_memory(err);
    const ggl_status st = hear(s, h, f, &until, err);
    out->name = h->name;
    if (st == GGL_OK)
        identify(h, out->id);
    return st == GGL_OK && !is_checked ? check_rest(h, f, until, err) : st;
}

static ggl_status show_speech(file_senses *s, const llm_noticed_file *f, llm_shown_file *out,
                              ggl_error *err) {
    llm_noticed x;
    ggl_status st = read_speech(s, f, false, &x, err);
    if (st == GGL_OK && !(out->part = ggl_calloc(1, sizeof *out->part)))
        st = no_memory(err);
    if (st == GGL_OK) {
        out->n_parts = 1;
        out->part[0].n = s->input.n_window;
        memcpy(out->id, x.id, sizeof out->id);
    }
    forget_speech(&x);
    return st;
}

/* --- files ------------------------------------------------------------------------------------ */

static ggl_status show(void *ctx, const llm_noticed_file *f, llm_shown_file *out, ggl_error *err) {
    file_senses *s = ctx;
    *out = (llm_shown_file){.n_parts = 0};
    return s->eye ? show_in_text(s, f, out, err) : show_speech(s, f, out, err);
}

static ggl_status read_again(void *ctx, const llm_noticed_file *f, llm_noticed *out,
                             ggl_error *err) {
    file_senses *s = ctx;
    return s->eye ? s->eye->kind->notice(s->eye, f, out, err) : read_speech(s, f, true, out, err);
}

static ggl_status part_of(void *ctx, llm_noticed *x, int64_t k, llm_noticed_part *out,
                          ggl_error *err) {
    file_senses *s = ctx;
    if (s->eye)
        return s->eye->kind->part(s->eye, x, k, out, err);
    hearing *h = x->of;
    *out = (llm_noticed_part){.row = h->rows, .n = h->n_window, .own = {h->rows}};
    h->rows = NULL;
    return GGL_OK;
}

static void forget(void *ctx, llm_noticed *x) {
    const file_senses *s = ctx;
    if (s->eye)
        s->eye->kind->forget(x);
    else
        forget_speech(x);
}

/* --- opening ---------------------------------------------------------------------------------- */

static ggl_status open_eye(file_senses *s, const char *mmproj, const llm_loading *of, int64_t n_ctx,
                           ggl_error *err) {
    llm_model *m = s->c->model;
    llm_loading l = *of;
    l.path = mmproj;
    l.eye = true; /* of a folder */
    l.type = NULL;
    l.model.arch_path = NULL;
    if (llm_arch_reads_text(llm_model_arch(m)))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model reads a text or a sound by itself, and has no use for mmproj");
    ggl_status st = llm_eye_open(&s->eye, &l, err);
    if (st != GGL_OK)
        return st;
    /* of what a line has shown, nothing is kept for the next one */
    llm_media_free(s->eye->media);
    st = llm_media_new(&s->eye->media, 0, err);
    if (st == GGL_OK)
        st = llm_eye_start_reading(s->eye, n_ctx, err);
    if (st == GGL_OK)
        llm_eye_choose_texts(s->eye, s->c->tokenizer);
    if (st == GGL_OK)
        st = llm_eye_begin_text(s->eye, false, s->c->tokenizer, err);
    if (st != GGL_OK)
        return st;
    llm_eye_note_other(s->eye, m, s->c->tokenizer, of->note, of->ctx);
    llm_eye_set_marks(s->eye, llm_model_max_images(m));
    llm_model_set_marks(m, llm_eye_marks(s->eye));
    s->is.eye = s->eye->model;
    s->is.marks = llm_eye_marks(s->eye);
    s->is.pictures = s->eye->kind == &llm_eye_pictures;
    s->is.sounds = s->eye->kind == &llm_eye_sounds;
    return GGL_OK;
}

static ggl_status open_speech(file_senses *s, ggl_error *err) {
    const llm_model *m = s->c->model;
    const ggl_graph_params of = ggl_graph_default();
    const llm_arch_params params = {
        .size = sizeof params, .n_ctx = llm_model_n_ctx(m), .ignore = llm_model_ignore(m)};
    const llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    llm_arch_result built = {0};
    speech_keys keys = {0};
    int n = 0, k = 0;
    ggl_status st = llm_model_rows(m, s->rows, &n, err);
    while (st == GGL_OK && k < n && !(s->rows[k].is_input && s->rows[k].sound.rate > 0))
        k++;
    if (st == GGL_OK && (k == n || s->rows[k].most < 1))
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "the model reads rows of an input that is no sound of a known length");
    ggl_graph *g = st == GGL_OK ? ggl_graph_new(&of) : NULL;
    if (st == GGL_OK && !g)
        st = no_memory(err);
    if (st == GGL_OK)
        st = llm_arch_build(llm_model_arch(m), &source, &params, g, &built, err);
    if (st == GGL_OK)
        st = llm_speech_keys_read(&keys, llm_model_file(m), built.family, err);
    if (st == GGL_OK)
        st = llm_speech_tokens_init(&s->tokens, s->c->tokenizer, (int32_t)built.n_vocab, NULL,
                                    &keys, err);
    if (st == GGL_OK) {
        s->input =
            (hearing_input){&s->rows[k].sound, ggl_extents(s->rows[k].ne, 0, s->rows[k].n_dims, 1),
                            s->rows[k].most};
        s->is.speech = &s->tokens;
    }
    llm_speech_keys_fini(&keys);
    llm_arch_result_fini(&built);
    ggl_graph_free(g);
    return st;
}

/* The token with which answers begin. */
static ggl_status find_start(file_senses *s, ggl_error *err) {
    const ggl_gguf *file = llm_model_file(s->c->model);
    ggl_str family = {0};
    char name[160];
    if (ggl_gguf_get_string(file, "general.architecture", &family, err) < 0)
        return GGL_FORMAT;
    snprintf(name, sizeof name, "%.*s", (int)(family.n < 128 ? family.n : 128), family.s);
    s->is.text = true;
    return llm_model_start_token(s->c->model, name, llm_tokenizer_n_vocab(s->c->tokenizer),
                                 &s->is.start, err);
}

ggl_status llm_file_senses_open(const llm_file_senses **out, llm_context *c, const char *mmproj,
                                const llm_loading *of, int64_t n_ctx, ggl_error *err) {
    const llm_arch *arch = llm_model_arch(c->model);
    *out = NULL;
    if (!mmproj && !llm_arch_reads_text(arch))
        return GGL_OK;
    file_senses *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return no_memory(err);
    s->c = c;
    s->is = (llm_file_senses){.show = show,
                              .let_go = let_go,
                              .read = read_again,
                              .part = part_of,
                              .forget = forget,
                              .ctx = s};
    const ggl_status st = mmproj                      ? open_eye(s, mmproj, of, n_ctx, err)
                          : llm_arch_reads_rows(arch) ? open_speech(s, err)
                                                      : find_start(s, err);
    if (st == GGL_OK)
        *out = &s->is;
    else
        llm_file_senses_close(&s->is);
    return st;
}

void llm_file_senses_close(const llm_file_senses *is) {
    file_senses *s = is ? is->ctx : NULL;
    if (!s)
        return;
    if (s->eye)
        llm_model_set_marks(s->c->model, NULL);
    llm_eye_close(s->eye);
    llm_speech_tokens_fini(&s->tokens);
    ggl_free(s);
}
