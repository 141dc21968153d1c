/* Weights of the model that PEFT saves beside pairs: of layers of the vocabulary with a pair (NAME.base_layer.weight), and of those whose size is
 * not that of the model's config.json (NAME.weight). They are needed only if they are others than the model's own. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/graph.h"
#include "lora_impl.h"

/* Returns the first number in which they differ; -1: there is none. A copy may be rounded to another type. */
static int64_t find_difference(const st_tensor *copy, const st_tensor *own, float *x, float *y) {
    enum { PIECE = 256 };
    const ggl_type_info *type = ggl_type_get(copy->type), *other = ggl_type_get(own->type);
    const int64_t n = ggl_extents(copy->ne, 0, LLM_ST_MAX_DIMS, 1);
    float a[PIECE], b[PIECE], rounded[PIECE];
    char raw[PIECE * 8];
    for (int64_t at = 0, k; at < n; at += k) {
        k = n - at < PIECE ? n - at : PIECE;
        type->to_float((const char *)copy->data + (size_t)at * type->size, a, k);
        other->to_float((const char *)own->data + (size_t)at * other->size, b, k);
        type->from_float(b, raw, k);
        type->to_float(raw, rounded, k);
        for (int64_t i = 0; i < k; i++)
            if (a[i] != b[i] && a[i] != rounded[i]) {
                *x = a[i];
                *y = b[i];
                return at + i;
            }
    }
    return -1;
}

static bool is_plain(const st_tensor *t) {
    return t->data && t->type >= 0 && ggl_type_get(t->type)->block == 1 &&
           ggl_type_get(t->type)->from_float && ggl_type_get(t->type)->size <= 8;
}

#define INSTEAD "an adapter in GGUF cannot have whole weights; " LORA_MERGE_INSTEAD

static ggl_status compare(const llm_lora *l, const lora_copy *c, const st_tensor *own,
                          const char *folder, ggl_error *err) {
    float x, y;
    if (memcmp(c->tensor->ne, own->ne, sizeof own->ne) != 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: %.300s has %" PRId64 " rows of %" PRId64 ", but in %s %" PRId64
                        " of %" PRId64 ": it is not the model's own; " INSTEAD,
                        l->file_path, c->name, c->tensor->ne[1], c->tensor->ne[0], folder,
                        own->ne[1], own->ne[0]);
    const int64_t at = find_difference(c->tensor, own, &x, &y);
    return at < 0 ? GGL_OK
                  : ggl_fail(err, GGL_UNSUPPORTED,
                             "%s: %.300s is not that of %s: number %" PRId64
                             " is %g, and %g there; " INSTEAD,
                             l->file_path, c->name, folder, at, (double)x, (double)y);
}

/* Returns the model's tensor of which it is a copy; NULL: it is not there, or has codes. */
static const st_tensor *find_own(const llm_lora *l, const arch_convert *section,
                                 const lora_copy *c) {
    const st_tensor *t =
        l->model == l->weights ? NULL : llm_lora_find_in(l->model, section, c->name);
    if (!t && llm_lora_is_head(c->name))
        t = l->embedding;
    return t && is_plain(t) && is_plain(c->tensor) ? t : NULL;
}

ggl_status llm_lora_check_copies(const llm_lora *l, const arch_convert *section, const char *folder,
                                 char *note, size_t size, ggl_error *err) {
    size_t n_same = 0;
    ggl_status s = GGL_OK;
    *note = '\0';
    for (size_t i = 0; i < l->n_copy && s == GGL_OK; i++) {
        const lora_copy *c = &l->copy[i];
        const st_tensor *own = find_own(l, section, c);
        n_same += own != NULL;
        if (own)
            s = compare(l, c, own, folder, err);
        else if (!c->has_pair)
            s = ggl_fail(err, GGL_UNSUPPORTED,
                         "%s: tensor %.300s is not a part of a pair (lora_A, lora_B, "
                         "lora_magnitude_vector), and %s has none with which it could be "
                         "compared: " INSTEAD,
                         l->file_path, c->name, folder);
    }
    const char *seen = n_same == l->n_copy ? "the same there" : "not there to be compared";
    if (l->n_copy == 1)
        snprintf(note, size,
                 "%.200s is left out, which is no part of a pair: the model's own weight in %.200s "
                 "is used, which is %s",
                 l->copy[0].name, folder, seen);
    else if (l->n_copy > 1)
        snprintf(note, size,
                 "%zu weights are left out, which are no part of a pair, such as %.200s: the "
                 "model's own in %.200s are used, which are %s",
                 l->n_copy, l->copy[0].name, folder, seen);
    return s;
}
