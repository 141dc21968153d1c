/* Files: the model as it is now, and what a trainer needs to go on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/types.h"
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
    const size_t old = (size_t)(n / from->block) * from->size,
                 new = (size_t)(n / c->type->block) * c->type->size;
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

ggl_status llm_trainer_write(const llm_trainer *t, const ggl_gguf *of, bool f32, const char *path,
                             ggl_error *err) {
    const size_t n = ggl_gguf_n_tensors(of);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    changed *c = ggl_calloc(n + 1, sizeof *c);
    if (!w || !c) {
        ggl_gguf_writer_free(w);
        ggl_free(c);
        return ggl_fail(err, GGL_NOMEM, "out of memory for %s", path);
    }
    for (size_t i = 0; i < ggl_gguf_n_values(of); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(of, i);
        if (!llm_train_is_split_key(v))
            ggl_gguf_put_value(w, v);
    }
    for (size_t i = 0; i < n; i++) {
        const ggl_gguf_tensor *x = ggl_gguf_tensor_at(of, i);
        const bool changes = learns(t, x);
        c[i] = (changed){t, x, ggl_type_get(changes ? type_of(t, x, f32) : x->type)};
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)x->name.n, x->name.s);
        if (changes)
            ggl_gguf_put_tensor_later(w, name, c[i].type->type, x->n_dims, x->ne, write_changed,
                                      &c[i]);
        else
            ggl_gguf_put_tensor(w, name, x->type, x->n_dims, x->ne, x->data);
    }
    ggl_status st = ggl_gguf_writer_write(w, path, err);
    ggl_gguf_writer_free(w);
    ggl_free(c);
    return st;
}

/* --- the state -------------------------------------------------------------------------------- */

#define MOST_STEPS (UINT64_C(1) << 53) /* whole numbers of a double */

static const char *const part[LLM_TRAIN_STATES] = {"data", "mean", "square"};

static void name_of(const llm_train_weight *w, int k, char *to, size_t size) {
    snprintf(to, size, "%s.%s", w->name, part[k]);
}

ggl_status llm_trainer_write_state(const llm_trainer *t, ggl_str own, const char *path,
                                   ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    const uint64_t steps = (uint64_t)llm_trainer_n_steps(t);
    char name[512];
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %s", path);
    ggl_gguf_put_string(w, "general.type", "training", 8);
    ggl_gguf_put(w, "training.steps", GGL_GGUF_U64, false, &steps, 1);
    ggl_gguf_put_string(w, "training.own", own.s, own.n);
    for (int i = 0; i < llm_trainer_n_weights(t); i++) {
        const llm_train_weight x = llm_trainer_weight(t, i);
        for (int k = 0; k < LLM_TRAIN_STATES; k++) {
            name_of(&x, k, name, sizeof name);
            ggl_gguf_put_tensor(w, name, GGL_F32, x.n_dims, x.ne, llm_train_weight_state(&x, k));
        }
    }
    ggl_status st = ggl_gguf_writer_write(w, path, err);
    ggl_gguf_writer_free(w);
    return st;
}

/* Finds all that a trainer of these weights has. */
static ggl_status check_state(const llm_trainer *t, const ggl_gguf *f, uint64_t *steps,
                              ggl_error *err) {
    const ggl_gguf_value *s = ggl_gguf_find(f, "training.steps");
    const size_t want = LLM_TRAIN_STATES * (size_t)llm_trainer_n_weights(t);
    char name[512];
    if (!s || !ggl_gguf_unsigned(s, 0, steps) || *steps > MOST_STEPS)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: it has no training.steps: it is not the state of a trainer",
                        ggl_gguf_name(f));
    for (int i = 0; i < llm_trainer_n_weights(t); i++) {
        const llm_train_weight x = llm_trainer_weight(t, i);
        for (int k = 0; k < LLM_TRAIN_STATES; k++) {
            name_of(&x, k, name, sizeof name);
            const ggl_gguf_tensor *have = ggl_gguf_find_tensor(f, name);
            if (!have || have->type != GGL_F32 || memcmp(have->ne, x.ne, sizeof x.ne) != 0)
                return ggl_fail(err, GGL_FORMAT,
                                "%s: %s %s: it is the state of another model, or of other weights",
                                ggl_gguf_name(f), name,
                                have ? "has another type or shape" : "is missing");
        }
    }
    if (ggl_gguf_n_tensors(f) != want)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: it has %zu tensors, but these weights have %zu: other weights learned",
                        ggl_gguf_name(f), ggl_gguf_n_tensors(f), want);
    return GGL_OK;
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
            memcpy(llm_train_weight_state(&x, k), have->data, have->size);
        }
    }
    if (st == GGL_OK)
        llm_trainer_set_steps(t, (int64_t)steps);
    return st;
}
