/* Opens eyes and ears. */
#include "senses.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "context.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/sched.h"
#include "ggl/internal/pass.h"
#include "llm/internal/adapter.h"
#include "llm/internal/convert.h"
#include "llm/internal/load.h"

/* Rows that nobody holds are kept as long as they are fewer bytes than this. */
#define KEPT_BYTES ((size_t)256 << 20)

static ggl_status find_input(llm_eye *e, ggl_error *err) {
    ggl_status st = llm_model_rows(e->model, e->rows, &e->n_rows, err);
    while (st == GGL_OK && e->input < e->n_rows && !e->rows[e->input].is_input)
        e->input++;
    const llm_arch *arch = llm_model_arch(e->model);
    if (st == GGL_OK && e->input < e->n_rows)
        e->kind = e->rows[e->input].picture.patch > 0 ? &llm_eye_pictures
                  : e->rows[e->input].sound.rate > 0  ? &llm_eye_sounds
                                                      : NULL;
    e->n_most = st == GGL_OK && e->input < e->n_rows ? e->rows[e->input].most : 0;
    e->n_input = st == GGL_OK && e->input < e->n_rows
                     ? ggl_extents(e->rows[e->input].ne, 0, e->rows[e->input].n_dims, 1)
                     : 0;
    const bool notices = e->kind && !llm_arch_reads_text(arch) && llm_arch_has_output(arch, "rows");
    return st == GGL_OK && !notices
               ? ggl_fail(err, GGL_UNSUPPORTED,
                          "%s makes no rows of pictures or sounds for a text model (%s): the file "
                          "beside a model's that does is mostly named mmproj-*.gguf",
                          ggl_gguf_name(llm_model_file(e->model)), llm_arch_name(arch))
               : st;
}

/* Returns text k of those that stand beside its rows; NULL: there are no more. */
static const char *text_beside(const llm_eye *e, size_t k) {
    const llm_arch_picture *p = &e->rows[e->input].picture;
    const llm_arch_sound *s = &e->rows[e->input].sound;
    const llm_arch_tiles *t = &p->tiles;
    const char *const of_picture[] = {p->begin,  p->end,       p->line,     t->begin, t->end,
                                      t->tile,   t->next,      t->tile_end, t->line,  t->whole,
                                      t->beside, t->whole_end, t->line_end},
                      *const of_sound[] = {s->begin, s->end};
    if (e->kind == &llm_eye_pictures)
        return k < sizeof of_picture / sizeof *of_picture ? of_picture[k] : NULL;
    return k < sizeof of_sound / sizeof *of_sound ? of_sound[k] : NULL;
}

/* Returns how many tokens n bytes of a text are for the model, special ones included; below 0: that failed. */
static int64_t count_tokens(const llm_tokenizer *t, const char *text, size_t n) {
    ggl_error none = {0};
    llm_tokens ids = {0};
    const bool done = llm_tokenize(t, text, n, LLM_TOKENIZE_SPECIAL, &ids, &none) == GGL_OK;
    const int64_t count = done ? (int64_t)ids.n : -1;
    llm_tokens_fini(&ids);
    return count;
}

/* True if the special token with which the text begins, "<token>", is one of the model's. */
static bool begins_known(const char *text, const llm_tokenizer *t) {
    const size_t n = strcspn(text, ">");
    return *text == '<' && text[n] && count_tokens(t, text, n + 1) == 1;
}

void llm_eye_choose_texts(llm_eye *e, const llm_tokenizer *t) {
    llm_arch_picture *p = &e->rows[e->input].picture;
    if (e->kind != &llm_eye_pictures || !*p->or_begin || begins_known(p->begin, t) ||
        !begins_known(p->or_begin, t))
        return;
    memcpy(p->begin, p->or_begin, sizeof p->begin);
    memcpy(p->end, p->or_end, sizeof p->end);
}

/* Returns a special token that stands beside its rows, which the tokenizer of the text model lacks; NULL: it has it, the descriptor names none, or
 * memory is out. */
static const char *unknown_token(const llm_eye *e, const llm_tokenizer *t) {
    const char *text;
    size_t k = 0;
    /* "<token>" or "[TOKEN]" alone */
    while ((text = text_beside(e, k)) &&
           ((*text != '<' && *text != '[') || strpbrk(text + 1, "<[{")))
        k++;
    if (!text)
        return NULL;
    const int64_t n = count_tokens(t, text, strlen(text));
    return n >= 0 && n != 1 ? text : NULL;
}

void llm_eye_note_other(const llm_eye *e, const llm_model *model, const llm_tokenizer *t,
                        void (*note)(void *ctx, const char *text), void *ctx) {
    const char *token = unknown_token(e, t);
    if (!token && e->other) {
        e = e->other;
        token = unknown_token(e, t);
    }
    char text[512];
    if (!token || !note)
        return;
    snprintf(text, sizeof text,
             "the %s is one of %s, whose texts have the token %s, and the model, of the family "
             "%s, has no such token: it may %s wrongly",
             e->kind->organ, llm_model_family(e->model), token, llm_model_family(model),
             e->kind == &llm_eye_sounds ? "hear" : "see");
    note(ctx, text);
}

ggl_status llm_eye_begin_text(llm_eye *e, bool adds, const llm_tokenizer *t, ggl_error *err) {
    const llm_eye *ear = e->other ? e->other : e;
    const llm_arch_sound *s = &ear->rows[ear->input].sound;
    llm_tokens ids = {0};
    if ((ear->kind == &llm_eye_sounds && s->added > 0) != adds)
        return ggl_fail(
            err, GGL_UNSUPPORTED, "%s: its rows %s tokens, and those that the model takes %s",
            ggl_gguf_name(llm_model_file(ear->model)), adds ? "stand in place of" : "are added to",
            adds ? "are added to them" : "stand in their place");
    if (!adds)
        return GGL_OK;
    ggl_status st = llm_tokenize(t, s->begin, strlen(s->begin), LLM_TOKENIZE_SPECIAL, &ids, err);
    if (st == GGL_OK && (ids.n != 1 || llm_tokenizer_bos(t) < 0))
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "the model's tokenizer lacks %s, to which the rows of a sound are added",
                      ids.n != 1 ? s->begin : "a token that begins texts");
    if (st == GGL_OK)
        llm_media_add_to(e->media, llm_tokenizer_bos(t), ids.id[0]);
    llm_tokens_fini(&ids);
    return st;
}

/* Opens one of a file's senses, without a place for its rows. */
static ggl_status open_one(llm_eye *e, const llm_loading *l, ggl_error *err) {
    ggl_status st = llm_load_named(&e->model, l, err);
    if (st == GGL_OK)
        st = find_input(e, err);
    if (st == GGL_OK)
        e->digest = ggl_gguf_digest(llm_model_file(e->model));
    return st;
}

/* True if the file says that it has this tower ("audio", "vision"): by its kind, or, of a kind that is both, by a key for it. */
static bool says_tower(const ggl_gguf *f, const char *family, const char *tower) {
    const size_t n = strcspn(family, ":");
    const int n_name = n < 100 ? (int)n : 100;
    char key[160];
    bool says = false;
    snprintf(key, sizeof key, "%.*s.%s.projector_type", n_name, family, tower);
    if (ggl_gguf_find(f, key))
        return true;
    snprintf(key, sizeof key, "%.*s.has_%s_encoder", n_name, family, tower);
    return ggl_gguf_get_bool(f, key, &says, NULL) == 1 && says;
}

/* True if the file or folder of an eye has an ear, too. */
static bool has_ear(const llm_eye *e, const llm_loading *l) {
    const char *family = llm_arch_family(llm_model_arch(e->model), 0);
    return e->kind == &llm_eye_pictures &&
           (says_tower(llm_model_file(e->model), family, "audio") ||
            (llm_load_converts(l->path) && llm_convert_finds_ear(l->path)));
}

/* True if the file says that it has an ear, and not that it has an eye. */
static bool is_ear_file(const char *path) {
    ggl_error unread;
    ggl_gguf *f;
    ggl_str family = {0};
    char name[128] = "";
    if (ggl_gguf_open(&f, path, NULL, &unread) != GGL_OK)
        return false;
    if (ggl_gguf_get_string(f, "general.architecture", &family, &unread) == 1)
        snprintf(name, sizeof name, "%.*s", (int)(family.n < 100 ? family.n : 100), family.s);
    const bool is_ear = says_tower(f, name, "audio") && !says_tower(f, name, "vision");
    ggl_gguf_close(f);
    return is_ear;
}

const char *llm_eye_lack(const llm_eye *e, const char *mmproj) {
    const bool hears = e                           ? llm_eye_hears(e)
                       : llm_load_converts(mmproj) ? llm_convert_finds_ear_alone(mmproj)
                                                   : is_ear_file(mmproj);
    return !hears            ? "sees no pictures"
           : llm_eye_sees(e) ? "sees no pictures, and hears no sounds"
                             : "hears no sounds";
}

/* Keeps the first line of why the other half of the file is not open. */
static void keep_why(llm_eye *e, const ggl_error *why) {
    e->why_not = *why;
    e->why_not.msg[strcspn(e->why_not.msg, "\n")] = '\0';
}

/* Opens the ear beside an eye. One whose kind is not known is left out. */
static ggl_status open_ear(llm_eye *e, const llm_loading *of, ggl_error *err) {
    llm_loading l = *of;
    ggl_error why = {0};
    char text[sizeof why.msg + 100];
    llm_eye *ear = ggl_calloc(1, sizeof *ear);
    if (!ear)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    l.model.ear = true;
    const ggl_status st = open_one(ear, &l, &why);
    if (st == GGL_OK && ear->kind == &llm_eye_sounds) {
        ear->media = e->media;
        e->other = ear;
        return GGL_OK;
    }
    llm_model_free(ear->model);
    ggl_free(ear);
    if (st != GGL_NOT_FOUND && st != GGL_UNSUPPORTED && st != GGL_OK)
        return ggl_pass(err, &why);
    keep_why(e, &why);
    snprintf(text, sizeof text, "the model hears no sounds: %s", e->why_not.msg);
    if (of->note)
        of->note(of->ctx, text);
    return GGL_OK;
}

/* Opens the ear of a file whose eye is of a kind that is not known: why it is not. False: there is none. */
static bool open_ear_alone(llm_eye *e, const llm_loading *of, const ggl_error *why) {
    llm_loading l = *of;
    char text[sizeof why->msg + 100];
    l.model.ear = true;
    if (open_one(e, &l, NULL) != GGL_OK || e->kind != &llm_eye_sounds)
        return false;
    keep_why(e, why);
    snprintf(text, sizeof text, "the model sees no pictures: %s", e->why_not.msg);
    if (of->note)
        of->note(of->ctx, text);
    return true;
}

ggl_status llm_eye_open(llm_eye **out, const llm_loading *l, ggl_error *err) {
    llm_eye *e = *out = ggl_calloc(1, sizeof *e);
    if (!e)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_error why = {0};
    ggl_status st = open_one(e, l, &why);
    if (st == GGL_NOT_FOUND && open_ear_alone(e, l, &why))
        st = GGL_OK;
    if (st != GGL_OK)
        (void)ggl_pass(err, &why);
    if (st == GGL_OK)
        st = llm_media_new(&e->media, KEPT_BYTES, err);
    if (st == GGL_OK && has_ear(e, l))
        st = open_ear(e, l, err);
    if (st == GGL_OK)
        return st;
    llm_eye_close(e);
    *out = NULL;
    return st;
}

void llm_eye_close(llm_eye *e) {
    if (!e)
        return;
    llm_eye_stop(e);
    if (e->other)
        e->other->media = NULL;
    llm_eye_close(e->other);
    llm_media_free(e->media);
    llm_model_free(e->model);
    ggl_free(e->adapter);
    ggl_free(e);
}

void llm_eye_stop(llm_eye *e) {
    if (!e)
        return;
    llm_stages_free(e->stages);
    e->stages = NULL;
    llm_mel_free(e->mel);
    e->mel = NULL;
    llm_eye_stop(e->other);
}

const llm_eye *llm_eye_other(const llm_eye *e) {
    return e->other;
}

void llm_eye_memory(const llm_eye *e, int backend, bool is_host, ggl_memory *out) {
    *out = (ggl_memory){0};
    for (; e; e = e->other) {
        ggl_memory m;
        llm_stages_memory(e->stages, backend, &m);
        ggl_memory_add(out, &m);
        out->io += is_host ? llm_stages_row_bytes(e->stages) : 0;
    }
}

const llm_stages *llm_eye_stages(const llm_eye *e) {
    return e->stages;
}

llm_media *llm_eye_media(const llm_eye *e) {
    return e->media;
}

ggl_status llm_eye_plan(llm_eye *e, const llm_session_params *p, ggl_error *err) {
    llm_session_params own = llm_session_default();
    own.backend = p->backend;
    own.n_backends = p->n_backends;
    own.fold = p->fold;
    own.fold_products = p->fold_products;
    own.no_repack = p->no_repack;
    own.progress = p->progress;
    own.progress_ctx = p->progress_ctx;
    own.cancelled = p->cancelled;
    own.cancelled_ctx = p->cancelled_ctx;
    own.adapter = e->adapter;
    own.n_adapters = e->n_adapters;
    llm_eye_stop(e);
    e->planned = own;
    const ggl_status st = llm_stages_plan(&e->stages, e->model, &own, 0, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", ggl_gguf_name(llm_model_file(e->model)));
    return e->other ? llm_eye_plan(e->other, p, err) : GGL_OK;
}

/* Refuses rows that are not as long as the text model's. */
static ggl_status check_width(const llm_eye *e, int64_t n_given, ggl_error *err) {
    const int64_t n = llm_stages_n_row(e->stages);
    return n == n_given
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT,
                          "%s makes rows of %" PRId64
                          " numbers of a %s, but the text model takes %" PRId64
                          ": it belongs to another model",
                          ggl_gguf_name(llm_model_file(e->model)), n, e->kind->what, n_given);
}

ggl_status llm_eye_fits(const llm_eye *e, int64_t n_given, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (; e && st == GGL_OK; e = e->other)
        st = e->stages ? check_width(e, n_given, err) : GGL_OK;
    return st;
}

/* llm_eye_start of one that stands alone, or of one of two. */
static ggl_status start_one(llm_eye *e, const llm_session_params *p, int64_t n_given,
                            ggl_error *err) {
    const bool is_planned =
        e->stages && e->planned.backend == p->backend && e->planned.n_backends == p->n_backends;
    const char *file = ggl_gguf_name(llm_model_file(e->model));
    ggl_status st = is_planned ? GGL_OK : llm_eye_plan(e, p, err);
    if (st != GGL_OK)
        return st;
    st = check_width(e, n_given, err);
    if (st != GGL_OK)
        return st;
    st = llm_stages_alloc(e->stages, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", file);
    e->n_ctx = p->n_ctx;
    e->cancelled = p->cancelled;
    e->cancelled_ctx = p->cancelled_ctx;
    return e->kind->start ? e->kind->start(e, err) : GGL_OK;
}

ggl_status llm_eye_start(llm_eye *e, const llm_session_params *p, int64_t n_given, ggl_error *err) {
    const ggl_status st = start_one(e, p, n_given, err);
    return st == GGL_OK && e->other ? start_one(e->other, p, n_given, err) : st;
}

static bool are_same(const llm_adapter_use *a, size_t n, const llm_adapter_use *b, size_t n_b) {
    bool same = n == n_b;
    for (size_t i = 0; i < n && same; i++)
        same = a[i].adapter == b[i].adapter && a[i].scale == b[i].scale;
    return same;
}

/* Makes the stages again, which there are. */
static ggl_status renew(llm_eye *e, const llm_adapter_use *use, size_t n, ggl_error *err) {
    llm_session_params own = e->planned;
    llm_stages *s;
    own.adapter = use;
    own.n_adapters = n;
    own.progress = NULL;
    const ggl_status st = llm_stages_new(&s, e->model, &own, 0, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", ggl_gguf_name(llm_model_file(e->model)));
    llm_stages_free(e->stages);
    e->stages = s;
    e->planned = own;
    return st;
}

static ggl_status adapt_one(llm_eye *e, const llm_adapter_use *use, size_t n, ggl_error *err) {
    llm_adapter_use *own = n > 0 ? ggl_calloc(n, sizeof *own) : NULL;
    uint64_t adapters = 0;
    size_t n_own = 0;
    if (n > 0 && !own)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu adapters", n);
    for (size_t i = 0; i < n; i++)
        if (use[i].beside)
            own[n_own++] = use[i];
    const bool same = are_same(own, n_own, e->adapter, e->n_adapters);
    const ggl_status st = same || !e->stages ? GGL_OK : renew(e, own, n_own, err);
    if (same || st != GGL_OK) {
        ggl_free(own);
        return st;
    }
    for (size_t i = 0; i < n_own; i++)
        adapters = llm_adapter_digest(own[i], adapters);
    e->digest = ggl_gguf_digest(llm_model_file(e->model)) ^ adapters;
    ggl_free(e->adapter);
    e->adapter = own;
    e->n_adapters = n_own;
    return st;
}

ggl_status llm_eye_adapt(llm_eye *e, const llm_adapter_use *use, size_t n, ggl_error *err) {
    const ggl_status st = adapt_one(e, use, n, err);
    return st == GGL_OK && e->other ? adapt_one(e->other, use, n, err) : st;
}

ggl_status llm_eye_start_reading(llm_eye *e, int64_t n_ctx, ggl_error *err) {
    if (e->n_most < 1)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s does not say how many rows its input has at most",
                        ggl_gguf_name(llm_model_file(e->model)));
    e->n_ctx = n_ctx;
    return e->kind->start ? e->kind->start(e, err) : GGL_OK;
}
