/* Files: the model as it is now, and what a trainer needs to go on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/types.h"
#include "ggl/internal/xxh64.h"
#include "train_impl.h"

/* --- the model -------------------------------------------------------------------------------- */

/* A tensor of the file, which is written as `type`. */
typedef struct changed {
    const llm_trainer *t;
    const ggl_gguf_tensor *of;
    const ggl_type_info *type;
} changed;

/* Returns the first element of the tensor that the weight is; -1: it is no part of it. */
static int64_t place_of(const llm_train_weight *w, const ggl_gguf_tensor *of) {
    const ggl_type_info *type = ggl_type_get(of->type);
    const uintptr_t begin = (uintptr_t)of->data, at = (uintptr_t)w->origin;
    if (!of->data || at < begin || at >= begin + of->size)
        return -1;
    if (type->row_meta > 0) /* weights are whole rows */
        return (int64_t)((at - begin) / ggl_row_size(of->type, of->ne[0])) * of->ne[0];
    return (int64_t)((at - begin) / type->size) * type->block;
}

static bool learns(const llm_trainer *t, const ggl_gguf_tensor *of) {
    bool any = false;
    for (int k = 0; k < llm_trainer_n_weights(t) && !any; k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        any = place_of(&w, of) >= 0;
    }
    return any;
}

/* The type with which a tensor that learns is written: the one to which it is rounded while it learns, if it is. */
static ggl_type type_of(const llm_trainer *t, const ggl_gguf_tensor *of, bool f32) {
    for (int k = 0; k < llm_trainer_n_weights(t) && !f32; k++) {
        const llm_train_weight w = llm_trainer_weight(t, k);
        if (w.rounded != GGL_F32 && place_of(&w, of) >= 0)
            return w.rounded;
    }
    return f32 ? GGL_F32 : of->type;
}

/* Sets out to the tensor as the file has it, in the type that is written. */
static ggl_status copy_old(const changed *c, char *out, ggl_error *err) {
    const ggl_type_info *from = ggl_type_get(c->of->type);
    const int64_t n = c->of->ne[0], rows = ggl_extents(c->of->ne, 1, GGL_MAX_DIMS, 1);
    const size_t old = ggl_row_size(c->of->type, n), new = ggl_row_size(c->type->type, n);
    if (from == c->type) {
        memcpy(out, c->of->data, (size_t)rows * old);
        return GGL_OK;
    }
    float *row = ggl_calloc((size_t)n, sizeof *row);
    if (!row)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %.*s", (int)c->of->name.n,
                        c->of->name.s);
    for (int64_t i = 0; i < rows; i++) {
        from->to_float((const char *)c->of->data + (size_t)i * old, row, n);
        c->type->from_float(row, out + (size_t)i * new, n);
    }
    ggl_free(row);
    return GGL_OK;
}

static ggl_status check_type(const ggl_gguf_tensor *of, const ggl_type_info *type, ggl_error *err) {
    return type->from_float
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED,
                          "%.*s cannot be rounded to %s again: write what learned as f32",
                          (int)of->name.n, of->name.s, type->name);
}

/* Writes the tensor, in which weights that learn are all elements or some rows. */
static ggl_status write_changed(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const changed *c = ctx;
    const int64_t n = ggl_extents(c->of->ne, 0, GGL_MAX_DIMS, 1);
    const size_t size = (size_t)(n / c->type->block) * c->type->size;
    ggl_status st = check_type(c->of, c->type, err);
    if (st != GGL_OK)
        return st;
    char *out = ggl_calloc(size, 1);
    if (!out)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %.*s", (int)c->of->name.n,
                        c->of->name.s);
    st = copy_old(c, out, err);
    for (int k = 0; k < llm_trainer_n_weights(c->t); k++) {
        const llm_train_weight w = llm_trainer_weight(c->t, k);
        const int64_t at = place_of(&w, c->of);
        if (at >= 0)
            c->type->from_float(w.master, out + (size_t)(at / c->type->block) * c->type->size,
                                llm_train_weight_count(&w));
    }
    if (st == GGL_OK)
        st = ggl_gguf_sink_write(to, out, size, err);
    ggl_free(out);
    return st;
}

ggl_status llm_trainer_check_write(const llm_trainer *t, const ggl_gguf *of, bool f32,
                                   ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < ggl_gguf_n_tensors(of) && st == GGL_OK; i++) {
        const ggl_gguf_tensor *x = ggl_gguf_tensor_at(of, i);
        if (learns(t, x))
            st = check_type(x, ggl_type_get(type_of(t, x, f32)), err);
    }
    return st;
}

bool llm_train_is_split_key(const ggl_gguf_value *v) {
    return v->key.n > 6 && memcmp(v->key.s, "split.", 6) == 0;
}

/* A model or an adapter that is about to be written. */
typedef struct model_writer {
    ggl_gguf_writer *w;
    changed *changed; /* [tensors of the file] */
} model_writer;

static void end_model(model_writer *m) {
    ggl_gguf_writer_free(m->w);
    ggl_free(m->changed);
}

/* Lists what is written. False: out of memory; end_model must be called in any case. */
static bool begin_model(model_writer *m, const llm_trainer *t, const ggl_gguf *of, bool f32) {
    const size_t n = ggl_gguf_n_tensors(of);
    *m = (model_writer){ggl_gguf_writer_new(), ggl_calloc(n + 1, sizeof *m->changed)};
    if (!m->w || !m->changed)
        return false;
    for (size_t i = 0; i < ggl_gguf_n_values(of); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(of, i);
        if (!llm_train_is_split_key(v)) /* it is one file now */
            ggl_gguf_put_value(m->w, v);
    }
    for (size_t i = 0; i < n; i++) {
        const ggl_gguf_tensor *x = ggl_gguf_tensor_at(of, i);
        changed *c = &m->changed[i];
        const bool changes = learns(t, x);
        *c = (changed){t, x, ggl_type_get(changes ? type_of(t, x, f32) : x->type)};
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)x->name.n, x->name.s);
        if (changes)
            ggl_gguf_put_tensor_later(m->w, name, c->type->type, x->n_dims, x->ne, write_changed,
                                      c);
        else
            ggl_gguf_put_tensor(m->w, name, x->type, x->n_dims, x->ne, x->data);
    }
    return true;
}

ggl_status llm_trainer_write(const llm_trainer *t, const ggl_gguf *of, bool f32, const char *path,
                             ggl_error *err) {
    model_writer m;
    const ggl_status st = begin_model(&m, t, of, f32)
                              ? ggl_gguf_writer_write(m.w, path, err)
                              : ggl_fail(err, GGL_NOMEM, "out of memory for %s", path);
    end_model(&m);
    return st;
}

uint64_t llm_trainer_write_size(const llm_trainer *t, const ggl_gguf *of, bool f32) {
    model_writer m;
    const uint64_t n = begin_model(&m, t, of, f32) ? ggl_gguf_writer_size(m.w) : 0;
    end_model(&m);
    return n;
}

/* --- the state -------------------------------------------------------------------------------- */

#define MOST_STEPS (UINT64_C(1) << 53) /* whole numbers of a double */

static const char *const part[LLM_TRAIN_STATES] = {"data", "mean", "square"};

static void name_of(const llm_train_weight *w, int k, char *to, size_t size) {
    snprintf(to, size, "%s.%s", w->name, part[k]);
}

/* The digest of a state's contents: the steps, the text, and of each tensor the name and the numbers. */
static void begin_digest(ggl_xxh64 *h, uint64_t steps, ggl_str own) {
    ggl_xxh64_begin(h);
    ggl_xxh64_add(h, &steps, sizeof steps);
    ggl_xxh64_add(h, own.s, own.n);
}

static void add_digest(ggl_xxh64 *h, ggl_str name, const void *data, size_t size) {
    ggl_xxh64_add(h, name.s, name.n);
    ggl_xxh64_add(h, data, size);
}

static uint64_t digest_of_state(const llm_trainer *t, ggl_str own) {
    char name[512];
    ggl_xxh64 h;
    begin_digest(&h, (uint64_t)llm_trainer_n_steps(t), own);
    for (int i = 0; i < llm_trainer_n_weights(t); i++) {
        const llm_train_weight x = llm_trainer_weight(t, i);
        for (int k = 0; k < LLM_TRAIN_STATES; k++) {
            const llm_train_state s = llm_train_weight_state(&x, k);
            name_of(&x, k, name, sizeof name);
            add_digest(&h, (ggl_str){name, strlen(name)}, s.data, s.size);
        }
    }
    return ggl_xxh64_end(&h);
}

/* Lists what is written. NULL: out of memory. */
static ggl_gguf_writer *begin_state(const llm_trainer *t, ggl_str own, uint64_t digest) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    const uint64_t steps = (uint64_t)llm_trainer_n_steps(t);
    char name[512];
    if (!w)
        return NULL;
    ggl_gguf_put_string(w, "general.type", "training", 8);
    ggl_gguf_put(w, "training.steps", GGL_GGUF_U64, false, &steps, 1);
    ggl_gguf_put(w, "training.digest", GGL_GGUF_U64, false, &digest, 1);
    ggl_gguf_put_string(w, "training.own", own.s, own.n);
    for (int i = 0; i < llm_trainer_n_weights(t); i++) {
        const llm_train_weight x = llm_trainer_weight(t, i);
        for (int k = 0; k < LLM_TRAIN_STATES; k++) {
            const llm_train_state s = llm_train_weight_state(&x, k);
            name_of(&x, k, name, sizeof name);
            ggl_gguf_put_tensor(w, name, s.type, s.n_dims, s.ne, s.data);
        }
    }
    return w;
}

ggl_status llm_trainer_write_state(const llm_trainer *t, ggl_str own, const char *path,
                                   ggl_error *err) {
    ggl_gguf_writer *w = begin_state(t, own, digest_of_state(t, own));
    const ggl_status st = w ? ggl_gguf_writer_write(w, path, err)
                            : ggl_fail(err, GGL_NOMEM, "out of memory for %s", path);
    ggl_gguf_writer_free(w);
    return st;
}

uint64_t llm_trainer_state_size(const llm_trainer *t) {
    ggl_gguf_writer *w = begin_state(t, (ggl_str){"", 0}, 0);
    const uint64_t n = w ? ggl_gguf_writer_size(w) : 0;
    ggl_gguf_writer_free(w);
    return n;
}

/* Finds all that a trainer of these weights has. */
static ggl_status check_state(const llm_trainer *t, const ggl_gguf *f, uint64_t *steps,
                              ggl_error *err) {
    const ggl_gguf_value *s = ggl_gguf_find(f, "training.steps");
    const size_t n = LLM_TRAIN_STATES * (size_t)llm_trainer_n_weights(t);
    char name[512];
    if (!s || !ggl_gguf_unsigned(s, 0, steps) || *steps > MOST_STEPS)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: it has no training.steps: it is not the state of a trainer",
                        ggl_gguf_name(f));
    for (int i = 0; i < llm_trainer_n_weights(t); i++) {
        const llm_train_weight x = llm_trainer_weight(t, i);
        for (int k = 0; k < LLM_TRAIN_STATES; k++) {
            const llm_train_state want = llm_train_weight_state(&x, k);
            name_of(&x, k, name, sizeof name);
            const ggl_gguf_tensor *have = ggl_gguf_find_tensor(f, name);
            if (!have || have->type != want.type || memcmp(have->ne, want.ne, sizeof want.ne) != 0)
                return ggl_fail(err, GGL_FORMAT,
                                "%s: %s %s: it is the state of another model, or of other weights",
                                ggl_gguf_name(f), name,
                                have ? "has another type or shape" : "is missing");
        }
    }
    if (ggl_gguf_n_tensors(f) != n)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: it has %zu tensors, but these weights have %zu: other weights learned",
                        ggl_gguf_name(f), ggl_gguf_n_tensors(f), n);
    return GGL_OK;
}

ggl_status llm_trainer_check_state(const ggl_gguf *f, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(f, "training.digest"),
                         *n = ggl_gguf_find(f, "training.steps"),
                         *own = ggl_gguf_find(f, "training.own");
    ggl_str text = {0};
    uint64_t was, steps = 0;
    ggl_xxh64 h;
    if (!v || !ggl_gguf_unsigned(v, 0, &was) || !n || !ggl_gguf_unsigned(n, 0, &steps) || !own ||
        !ggl_gguf_string(own, 0, &text))
        return ggl_fail(err, GGL_FORMAT,
                        "%s: it lacks training.own, .steps or .digest: it is not the state of a "
                        "training, or an older version of the program saved it, and only that "
                        "one can go on with it",
                        ggl_gguf_name(f));
    begin_digest(&h, steps, text);
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *x = ggl_gguf_tensor_at(f, i);
        add_digest(&h, x->name, x->data, x->size);
    }
    return ggl_xxh64_end(&h) == was
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT,
                          "%s is damaged: its contents do not have the digest %016" PRIx64
                          " that was written with them (training.digest)",
                          ggl_gguf_name(f), was);
}

ggl_status llm_trainer_read_state(llm_trainer *t, const ggl_gguf *f, ggl_error *err) {
    uint64_t steps = 0;
    char name[512];
    ggl_status st = check_state(t, f, &steps, err);
    for (int i = 0; i < llm_trainer_n_weights(t) && st == GGL_OK; i++) {
        const llm_train_weight x = llm_trainer_weight(t, i);
        for (int k = 0; k < LLM_TRAIN_STATES; k++) {
            name_of(&x, k, name, sizeof name);
            const ggl_gguf_tensor *have = ggl_gguf_find_tensor(f, name);
            memcpy(llm_train_weight_state(&x, k).data, have->data, have->size);
        }
    }
    if (st == GGL_OK)
        llm_trainer_set_steps(t, (int64_t)steps);
    return st;
}
