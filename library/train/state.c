/* Saving a training, and going on with it. The file is the state of the trainer (llm/internal/train.h); its text is a JSON object:
 *
 *     {"version": 1, "settings": {..}, "model": "..", "adapter": "..", "teacher": "..", "data": "..",
 *      "step": 12, "draw": 96, "n_steps": 100, "seconds": 3.5, "history": ".."}
 *
 * settings has what the bits depend on besides the files; model, adapter and teacher are the digests of theirs, and data is that of what was read from
 * the others. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "ggl/internal/gguf.h"
#include "training.h"

/* --- settings --------------------------------------------------------------------------------- */

static const char *separator(const llm_json_out *out) {
    return out->n > 0 && out->s[out->n - 1] != '{' ? ", " : "";
}

static void put_number(llm_json_out *out, const char *name, double x) {
    llm_json_format(out, "%s'%s': %.17g", separator(out), name, x);
}

/* What is no number, or has more digits than a double. */
static void put_text(llm_json_out *out, const char *name, const char *text) {
    llm_json_format(out, "%s'%s': '%s'", separator(out), name, text);
}

ggl_status llm_train_settings(llm_training *t, ggl_error *err) {
    const llm_training_params *p = &t->p;
    llm_json_out out = {0};
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, p->seed);
    llm_json_format(&out, "{'given': {");
    put_number(&out, "minutes", p->minutes);
    put_number(&out, "n_batch", (double)p->n_batch);
    put_number(&out, "n_seq", (double)p->n_seq);
    put_number(&out, "rate", p->rate);
    put_number(&out, "rate_end", p->rate_end);
    put_number(&out, "rate_hold", p->rate_hold);
    put_text(&out, "schedule", llm_train_fall_name(t->fall));
    put_number(&out, "optimizer", t->optimizer);
    put_number(&out, "round_to", t->rounded);
    put_number(&out, "n_warmup", (double)p->n_warmup);
    put_number(&out, "beta1", p->beta1);
    put_number(&out, "beta2", p->beta2);
    put_number(&out, "eps", p->eps);
    put_number(&out, "decay", p->decay);
    put_number(&out, "max_norm", p->max_norm);
    put_text(&out, "seed", seed);
    put_number(&out, "lora", p->lora);
    put_number(&out, "adapter", p->adapter != NULL);
    put_number(&out, "rank", !p->lora ? 0 : p->rank ? (double)p->rank : 16);
    put_number(&out, "alpha", t->of.adapter ? llm_adapter_describe(t->of.adapter).alpha : 0);
    put_number(&out, "valid_share", p->valid_share);
    put_number(&out, "dpo_beta", p->dpo_beta);
    put_number(&out, "teacher_share", t->of.teach ? p->teacher_share : 0);
    put_number(&out, "teacher_temp", t->of.teach ? p->teacher_temp : 0);
    llm_json_format(&out, "}, 'sizes': {");
    /* Of a training with a limit of minutes the number of steps is no setting, but settled later. */
    put_number(&out, "n_steps", p->minutes > 0 ? 0 : (double)t->n_steps);
    put_number(&out, "n_ctx", (double)p->n_ctx);
    put_number(&out, "n_ubatch", (double)p->n_ubatch);
    llm_json_format(&out, "}}");
    t->settings = out.s;
    return out.failed ? ggl_fail(err, GGL_NOMEM, "out of memory for the settings") : GGL_OK;
}

/* Writes a setting's value for a message. */
static const char *show(const json_value *v, char *to, size_t size) {
    if (v->kind == JSON_NUMBER)
        snprintf(to, size, "%g", v->number);
    else
        snprintf(to, size, "%.*s", (int)(v->n < 40 ? v->n : 40), v->s);
    return to;
}

static bool is_same(const json_value *a, const json_value *b) {
    return a->kind == JSON_NUMBER ? a->number == b->number
                                  : a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

/* Fails if one of these settings is another one than it was. */
static ggl_status compare(const json_value *was, const json_value *now, const char *path,
                          ggl_error *err) {
    char a[64], b[64];
    for (uint32_t i = 0; i < now->n; i++) {
        const ggl_str name = json_name(now, i);
        const json_value *x = was && was->kind == JSON_OBJECT && i < was->n ? &was->item[i] : NULL,
                         *y = &now->item[i];
        if (!x || x->kind != y->kind || json_name(was, i).n != name.n ||
            memcmp(json_name(was, i).s, name.s, name.n) != 0)
            return ggl_fail(err, GGL_FORMAT, "%s: training.own has no setting '%.*s'", path,
                            (int)name.n, name.s);
        if (!is_same(x, y))
            return ggl_fail(err, GGL_USAGE,
                            "%s: this training began with %.*s = %s, and now it is %s: it can only "
                            "go on with what it began with",
                            path, (int)name.n, name.s, show(x, a, sizeof a), show(y, b, sizeof b));
    }
    return GGL_OK;
}

/* The file of which a copy is written, with what was learned. */
static const ggl_gguf *file_of(const llm_training *t) {
    return t->of.adapter ? llm_adapter_file(t->of.adapter) : llm_model_file(t->of.model);
}

ggl_status llm_training_write(const llm_training *t, const char *path, bool f32, ggl_error *err) {
    return llm_trainer_write(t->trainer, file_of(t), f32 || t->of.adapter, path, err);
}

ggl_status llm_train_check_write(const llm_training *t, bool f32, ggl_error *err) {
    return llm_trainer_check_write(t->trainer, file_of(t), f32 || t->of.adapter, err);
}

/* --- saving ----------------------------------------------------------------------------------- */

static uint64_t digest_of_data(const llm_training *t) {
    return llm_train_data_digest(t->data) ^
           (t->valid ? llm_train_data_digest(t->valid) * UINT64_C(0x9e3779b97f4a7c15) : 0);
}

static uint64_t digest_of_model(const llm_training *t) {
    return ggl_gguf_digest(llm_model_file(t->of.model));
}

/* That with which it began; a new one follows from the settings. */
static uint64_t digest_of_adapter(const llm_training *t) {
    return t->p.adapter ? ggl_gguf_digest(llm_adapter_file(t->of.adapter)) : 0;
}

static uint64_t digest_of_teacher(const llm_training *t) {
    return t->of.teacher_file ? ggl_gguf_digest(t->of.teacher_file) : 0;
}

/* What else the bits depend on. */
static const struct {
    const char *name, *was;
    uint64_t (*of)(const llm_training *t);
} digests[] = {
    {"model", "another model", digest_of_model},
    {"adapter", "another adapter", digest_of_adapter},
    {"teacher", "another teacher", digest_of_teacher},
    {"data",
     "other texts than the files have now, or with another n_ctx, separator, chat template or "
     "choice of what counts",
     digest_of_data},
};
enum { N_DIGESTS = sizeof digests / sizeof *digests };

static ggl_status compare_digests(const llm_training *t, const json_value *root, const char *path,
                                  ggl_error *err) {
    char now[32];
    for (int i = 0; i < N_DIGESTS; i++) {
        const json_value *was = llm_json_get_kind(root, digests[i].name, JSON_STRING);
        snprintf(now, sizeof now, "%016" PRIx64, digests[i].of(t));
        if (!was)
            return ggl_fail(err, GGL_FORMAT, "%s: training.own has no '%s'", path, digests[i].name);
        if (!llm_json_is(was, now))
            return ggl_fail(err, GGL_USAGE,
                            "%s: this training began with %s: it can only go on with the same",
                            path, digests[i].was);
    }
    return GGL_OK;
}

ggl_status llm_training_save(const llm_training *t, const char *path, ggl_error *err) {
    llm_json_out out = {0};
    llm_json_format(&out, "{'version': 1, 'settings': %s,\n", t->settings);
    for (int i = 0; i < N_DIGESTS; i++)
        llm_json_format(&out, "'%s': '%016" PRIx64 "', ", digests[i].name, digests[i].of(t));
    llm_json_format(&out, "'step': %lld, 'draw': %lld, 'n_steps': %lld, 'seconds': %.17g,\n",
                    (long long)t->step, (long long)t->draw, (long long)t->n_steps, t->seconds);
    llm_json_format(&out, "'history': ");
    llm_train_history_write(&t->history, &out);
    llm_json_format(&out, "}\n");
    const ggl_status st =
        out.failed ? ggl_fail(err, GGL_NOMEM, "out of memory for %s", path)
                   : llm_trainer_write_state(t->trainer, (ggl_str){out.s, out.n}, path, err);
    ggl_free(out.s);
    return st;
}

/* --- going on --------------------------------------------------------------------------------- */

/* Gets a whole number, 0 or more. */
static bool get_count(const json_value *root, const char *name, int64_t *out) {
    const json_value *v = llm_json_get_kind(root, name, JSON_NUMBER);
    if (!v || !v->whole || v->number < 0)
        return false;
    *out = (int64_t)v->number;
    return true;
}

/* Fails if it would not go on with the same bits. What is given comes before what follows from that and from the files. */
static ggl_status compare_all(const llm_training *t, const json_value *root, const char *path,
                              ggl_error *err) {
    const json_value *was = llm_json_get(root, "settings");
    llm_json *now = NULL;
    ggl_status st = llm_json_parse(&now, t->settings, strlen(t->settings), "settings", err);
    if (st != GGL_OK)
        return st;
    st = compare(llm_json_get(was, "given"), llm_json_get(&now->root, "given"), path, err);
    if (st == GGL_OK)
        st = compare_digests(t, root, path, err);
    if (st == GGL_OK)
        st = compare(llm_json_get(was, "sizes"), llm_json_get(&now->root, "sizes"), path, err);
    llm_json_free(now);
    return st;
}

/* Sets where the training is by what was saved; nothing else of it is changed before all is checked. */
static ggl_status take(llm_training *t, const json_value *root, const ggl_gguf *f, ggl_error *err) {
    const char *path = ggl_gguf_name(f);
    const json_value *seconds = llm_json_get_kind(root, "seconds", JSON_NUMBER);
    int64_t version, step, draw, n_steps;
    if (!get_count(root, "version", &version) || version != 1 || !seconds ||
        !(seconds->number >= 0) || !get_count(root, "step", &step) ||
        !get_count(root, "draw", &draw) || !get_count(root, "n_steps", &n_steps))
        return ggl_fail(err, GGL_FORMAT, "%s: training.own is not what llm-train saves", path);
    ggl_status st = compare_all(t, root, path, err);
    train_history h = {0};
    if (st == GGL_OK)
        st = llm_train_history_read(&h, llm_json_get(root, "history"), path, err);
    if (st == GGL_OK && h.n != step)
        st = ggl_fail(err, GGL_FORMAT, "%s: it has a history of %" PRId64 " of %" PRId64 " steps",
                      path, h.n, step);
    if (st == GGL_OK)
        st = llm_trainer_read_state(t->trainer, f, err);
    if (st != GGL_OK) {
        llm_train_history_fini(&h);
        return st;
    }
    llm_train_history_fini(&t->history);
    t->history = h;
    t->step = step;
    t->draw = draw;
    t->n_steps = n_steps;
    t->seconds = seconds->number;
    t->out_of_time = !llm_train_has_time(t);
    t->n_tokens = h.n > 0 ? h.at[h.n - 1].n_tokens : 0;
    if (h.n > 0)
        h.at[h.n - 1].is_last = llm_train_is_over(t);
    return st;
}

ggl_status llm_training_resume(llm_training *t, const char *path, ggl_error *err) {
    ggl_gguf *f = NULL;
    llm_json *doc = NULL;
    ggl_str text = {0};
    ggl_status st = ggl_gguf_open(&f, path, NULL, err);
    if (st != GGL_OK)
        return st;
    const ggl_gguf_value *own = ggl_gguf_find(f, "training.own");
    if (!own || !ggl_gguf_string(own, 0, &text))
        st = ggl_fail(err, GGL_FORMAT,
                      "%s: it has no training.own: it is not the state of a training", path);
    if (st == GGL_OK)
        st = llm_json_parse(&doc, text.s, text.n, path, err);
    if (st == GGL_OK)
        st = take(t, &doc->root, f, err);
    llm_json_free(doc);
    ggl_gguf_close(f);
    return st;
}
