/* Saving a training, and going on with it. The file is the state of the trainer (llm/internal/trainer.h); its text is a JSON object:
 *
 *     {"version": 1, "settings": {..}, "model": "..", "descriptor": "..", "adapter": "..", "teacher": "..", "data": "..",
 *      "step": 12, "draw": 96, "n_steps": 100, "seconds": 3.5, "measured": 4096, "history": ".."}
 *
 * settings has what the bits depend on besides the files; model, descriptor, adapter and teacher are the digests of theirs, and data is that of what was read from
 * the others; measured is the most tokens of a measurement, which follows from the steps of a training with a limit of minutes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "ggl/internal/gguf.h"
#include "training.h"

/* --- what it depends on ------------------------------------------------------------------------ */

/* Writes a setting's value for a message. */
static const char *show(const json_value *v, char *to, size_t size) {
    if (v->kind == JSON_NUMBER)
        snprintf(to, size, "%.10g", v->number);
    else
        snprintf(to, size, "%.*s", (int)(v->n < 40 ? v->n : 40), v->s);
    return to;
}

static bool is_same(const json_value *a, const json_value *b) {
    return a->kind == JSON_NUMBER ? a->number == b->number
                                  : a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

/* Fails because of a setting: "this training began with n_batch (-b) = 2048, and now ..". */
static ggl_status refuse_setting(ggl_str name, const json_value *was, const char *now,
                                 const char *path, ggl_error *err) {
    const char *flag = llm_train_setting_flag(name);
    char a[64];
    return ggl_fail(err, GGL_USAGE,
                    "%s: this training began with %.*s%s%s%s = %s, and now %s: it can only go on "
                    "with what it began with",
                    path, (int)name.n, name.s, flag ? " (" : "", flag ? flag : "", flag ? ")" : "",
                    show(was, a, sizeof a), now);
}

/* Fails if one of these settings is another one than it was. */
static ggl_status compare(const json_value *was, const json_value *now, const char *path,
                          ggl_error *err) {
    char b[64], text[80];
    for (uint32_t i = 0; i < now->n; i++) {
        const ggl_str name = json_name(now, i);
        const json_value *x = was && was->kind == JSON_OBJECT && i < was->n ? &was->item[i] : NULL,
                         *y = &now->item[i];
        if (!x || x->kind != y->kind || json_name(was, i).n != name.n ||
            memcmp(json_name(was, i).s, name.s, name.n) != 0)
            return ggl_fail(err, GGL_FORMAT, "%s: training.own has no setting '%.*s'", path,
                            (int)name.n, name.s);
        if (is_same(x, y))
            continue;
        snprintf(text, sizeof text, "it is %s", show(y, b, sizeof b));
        return refuse_setting(name, x, text, path, err);
    }
    return was && was->kind == JSON_OBJECT && was->n > now->n
               ? refuse_setting(json_name(was, now->n), &was->item[now->n], "there is none", path,
                                err)
               : GGL_OK;
}

const ggl_gguf *llm_train_file(const llm_training *t) {
    return t->of.adapter ? llm_adapter_file(t->of.adapter)
                         : llm_model_file(t->of.draft ? t->of.draft : t->of.model);
}

const ggl_gguf *llm_train_eye_file(const llm_training *t) {
    return t->of.eye ? llm_model_file(t->of.eye) : NULL;
}

/* True if the weight's numbers are those of a tensor of the file. */
static bool is_in(const llm_train_weight *w, const ggl_gguf *f) {
    const uintptr_t at = (uintptr_t)w->origin;
    bool any = false;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f) && !any; i++) {
        const ggl_gguf_tensor *x = ggl_gguf_tensor_at(f, i);
        any = x->data && at >= (uintptr_t)x->data && at < (uintptr_t)x->data + x->size;
    }
    return any;
}

bool llm_train_eye_learns(const llm_training *t) {
    bool any = false;
    for (int k = 0; t->of.eye && k < llm_trainer_n_weights(t->trainer) && !any; k++) {
        const llm_train_weight w = llm_trainer_weight(t->trainer, k);
        any = is_in(&w, llm_train_eye_file(t));
    }
    return any;
}

ggl_status llm_train_check_eye(const llm_training *t, ggl_error *err) {
    if (t->p.mmproj_out || !llm_train_eye_learns(t))
        return GGL_OK;
    return ggl_fail(
        err, GGL_USAGE,
        "weights of the eye or the ear learn: mmproj_out (--mmproj-out FILE) says where "
        "it is written, or patterns of learn (--learn) name other weights alone, such "
        "as 'blk.*'");
}

ggl_status llm_training_write(const llm_training *t, const char *path, bool f32, ggl_error *err) {
    ggl_status st = llm_train_check_eye(t, err);
    if (st == GGL_OK)
        st = llm_trainer_write(t->trainer, llm_train_file(t), f32 || t->of.adapter, path, err);
    return st == GGL_OK && t->p.mmproj_out
               ? llm_trainer_write(t->trainer, llm_train_eye_file(t), f32, t->p.mmproj_out, err)
               : st;
}

ggl_status llm_train_check_write(const llm_training *t, bool f32, ggl_error *err) {
    const ggl_status st =
        llm_trainer_check_write(t->trainer, llm_train_file(t), f32 || t->of.adapter, err);
    return st == GGL_OK && t->of.eye
               ? llm_trainer_check_write(t->trainer, llm_train_eye_file(t), f32, err)
               : st;
}

/* --- saving ----------------------------------------------------------------------------------- */

/* Fails if one of the digests from `first` to before `end` is another one than it was. */
static ggl_status compare_digests(const llm_training *t, const json_value *root, int first, int end,
                                  const char *path, ggl_error *err) {
    static const char other_data[] = "other texts than the files have now, or with another context "
                                     "(n_ctx, -c), separator, chat template or "
                                     "choice of what counts";
    uint64_t digest[TRAIN_DIGESTS];
    char now[32];
    llm_train_digests(t, digest);
    for (int i = first; i < end; i++) {
        const json_value *was = llm_json_get_kind(root, llm_train_digest_name[i], JSON_STRING);
        snprintf(now, sizeof now, "%016" PRIx64, digest[i]);
        if (!was)
            return ggl_fail(err, GGL_FORMAT, "%s: training.own has no '%s'", path,
                            llm_train_digest_name[i]);
        const bool is_new = llm_json_is(was, "0000000000000000");
        if (is_new != (digest[i] == 0))
            return ggl_fail(err, GGL_USAGE,
                            "%s: this training began with%s %s, and now there is %s: it can only "
                            "go on with what it began with",
                            path, is_new ? "out" : "", llm_train_digest_none[i],
                            is_new ? "one" : "none");
        if (!llm_json_is(was, now))
            return ggl_fail(err, GGL_USAGE,
                            "%s: this training began with %s: it can only go on with the same",
                            path, i == TRAIN_DIGEST_DATA ? other_data : llm_train_digest_other[i]);
    }
    return GGL_OK;
}

ggl_status llm_training_save(const llm_training *t, const char *path, ggl_error *err) {
    llm_json_out out = {0};
    uint64_t digest[TRAIN_DIGESTS];
    llm_train_digests(t, digest);
    llm_json_format(&out, "{'version': 1, 'settings': %s,\n", t->settings);
    for (int i = 0; i < TRAIN_DIGESTS; i++)
        llm_json_format(&out, "'%s': '%016" PRIx64 "', ", llm_train_digest_name[i], digest[i]);
    llm_json_format(&out,
                    "'step': %lld, 'draw': %lld, 'n_steps': %lld, 'seconds': %.17g,\n"
                    "'measured': %.17g,\n",
                    (long long)t->step, (long long)t->draw, (long long)t->n_steps, t->seconds,
                    isfinite(t->measured.most) ? t->measured.most : 0);
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

/* Fails if it would not go on with the same bits. A cause comes before what follows from it: usual settings follow from the model, what
 * is read from the files from these, and sizes from all. */
static ggl_status compare_all(const llm_training *t, const json_value *root, const char *path,
                              ggl_error *err) {
    const json_value *was = llm_json_get(root, "settings");
    llm_json *now = NULL;
    ggl_status st = llm_json_parse(&now, t->settings, strlen(t->settings), "settings", err);
    if (st != GGL_OK)
        return st;
    st = compare_digests(t, root, 0, TRAIN_DIGEST_DATA, path, err);
    if (st == GGL_OK)
        st = compare(llm_json_get(was, "given"), llm_json_get(&now->root, "given"), path, err);
    if (st == GGL_OK)
        st = compare_digests(t, root, TRAIN_DIGEST_DATA, TRAIN_DIGESTS, path, err);
    if (st == GGL_OK)
        st = compare(llm_json_get(was, "sizes"), llm_json_get(&now->root, "sizes"), path, err);
    llm_json_free(now);
    return st;
}

/* Sets where the training is by what was saved; nothing else of it is changed before all is checked. */
static ggl_status take(llm_training *t, const json_value *root, const ggl_gguf *f, ggl_error *err) {
    const char *path = ggl_gguf_name(f);
    const json_value *seconds = llm_json_get_kind(root, "seconds", JSON_NUMBER),
                     *measured = llm_json_get_kind(root, "measured", JSON_NUMBER);
    int64_t version, step, draw, n_steps;
    if (!get_count(root, "version", &version) || version != 1 || !seconds ||
        !(seconds->number >= 0) || !measured || !(measured->number >= 0) ||
        !get_count(root, "step", &step) || !get_count(root, "draw", &draw) ||
        !get_count(root, "n_steps", &n_steps))
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
    if (!t->measured.item)
        t->measured.most = measured->number;
    t->out_of_time = !llm_train_has_time(t);
    t->n_tokens = h.n > 0 ? h.at[h.n - 1].n_tokens : 0;
    if (h.n > 0)
        h.at[h.n - 1].is_last = llm_train_is_over(t);
    return st;
}

/* Nobody can go on from a file that is damaged, or something else. */
static ggl_status advise_to_remove(ggl_status st, ggl_error *err) {
    return err ? ggl_fail(err, st, "%s; no training can go on from it: remove it to begin again",
                          err->msg)
               : st;
}

ggl_status llm_training_resume(llm_training *t, const char *path, ggl_error *err) {
    ggl_gguf *f = NULL;
    llm_json *doc = NULL;
    ggl_str text = {0};
    ggl_status st = ggl_gguf_open(&f, path, NULL, err);
    if (st == GGL_OK)
        st = llm_trainer_check_state(f, err);
    if (st == GGL_FORMAT)
        st = advise_to_remove(st, err);
    if (st == GGL_OK)
        (void)ggl_gguf_string(ggl_gguf_find(f, "training.own"), 0, &text);
    if (st == GGL_OK)
        st = llm_json_parse(&doc, text.s, text.n, path, err);
    if (st == GGL_OK)
        st = take(t, &doc->root, f, err);
    if (st == GGL_OK)
        st = llm_train_group_resume(t, err);
    llm_json_free(doc);
    ggl_gguf_close(f);
    return st;
}
