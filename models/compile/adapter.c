/* Opens an adapter: checks its keys, and pairs its tensors. */
#include "adapter.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/digest.h"
#include "common/peft_folder.h"
#include "ggl/graph.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"

/* --- keys ------------------------------------------------------------------------------------- */

/* Checks that a key has this string as its value. */
static ggl_status check_string(const llm_adapter *a, const char *key, const char *want,
                               ggl_error *err) {
    ggl_str s;
    const int found = ggl_gguf_get_string(a->file, key, &s, err);
    if (found < 0)
        return GGL_FORMAT;
    if (llm_file_is_control(a->file))
        return ggl_fail(err, GGL_FORMAT, "%s is a control vector, not a LoRA adapter",
                        llm_adapter_name(a));
    if (found == 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s is not an adapter: its key %s is missing; \"%s\" is expected",
                        llm_adapter_name(a), key, want);
    if (s.n == strlen(want) && memcmp(s.s, want, s.n) == 0)
        return GGL_OK;
    return ggl_fail(err, strncmp(key, "adapter.", 8) == 0 ? GGL_UNSUPPORTED : GGL_FORMAT,
                    "%s is not a LoRA adapter: its key %s is \"%.*s\"; \"%s\" is expected",
                    llm_adapter_name(a), key, (int)ggl_utf8_cut(s.s, s.n, 60), s.s, want);
}

static ggl_status read_alpha(llm_adapter *a, ggl_error *err) {
    if (ggl_gguf_get_number(a->file, "adapter.lora.alpha", &a->alpha, err) < 0)
        return GGL_FORMAT;
    if (isfinite(a->alpha))
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT,
                    "%s: key adapter.lora.alpha is %g; a finite number is expected",
                    llm_adapter_name(a), a->alpha);
}

/* Refuses keys of adapters that this program would apply in another way than their authors. */
static ggl_status check_other_keys(const llm_adapter *a, ggl_error *err) {
    static const char *const known[] = {"adapter.type", "adapter.lora.alpha",
                                        "adapter.lora.task_name", "adapter.lora.prompt_prefix"};
    for (size_t i = 0; i < ggl_gguf_n_values(a->file); i++) {
        const ggl_str key = ggl_gguf_value_at(a->file, i)->key;
        bool is_known = key.n < 8 || memcmp(key.s, "adapter.", 8) != 0;
        for (size_t k = 0; k < sizeof known / sizeof *known && !is_known; k++)
            is_known = key.n == strlen(known[k]) && memcmp(key.s, known[k], key.n) == 0;
        const bool invoked = key.n > 14 && memcmp(key.s, "adapter.alora.", 14) == 0;
        if (!is_known)
            return ggl_fail(err, GGL_UNSUPPORTED, "%s: key %.*s is not supported%s",
                            llm_adapter_name(a), (int)ggl_utf8_cut(key.s, key.n, 100), key.s,
                            invoked ? ": such an adapter works only after certain tokens of the "
                                      "text (activated LoRA)"
                                    : "");
    }
    return GGL_OK;
}

static ggl_status read_keys(llm_adapter *a, ggl_error *err) {
    ggl_status st = check_string(a, "general.type", "adapter", err);
    if (st == GGL_OK)
        st = check_string(a, "adapter.type", "lora", err);
    if (st == GGL_OK)
        st = read_alpha(a, err);
    if (st == GGL_OK)
        st = check_other_keys(a, err);
    if (st != GGL_OK)
        return st;
    const int found = ggl_gguf_get_string(a->file, "general.architecture", &a->architecture, err);
    if (found == 0)
        return ggl_fail(err, GGL_FORMAT, "%s: the key general.architecture is missing",
                        llm_adapter_name(a));
    return found < 0 || ggl_gguf_get_string(a->file, "general.name", &a->title, err) < 0
               ? GGL_FORMAT
               : GGL_OK;
}

/* --- pairs ------------------------------------------------------------------------------------ */

static const char *const ends[] = {".lora_a", ".lora_b", ".lora_magnitude"};

/* Adds a tensor of the file to its pair. */
static ggl_status add_tensor(llm_adapter *a, const ggl_gguf_tensor *t, ggl_error *err) {
    size_t k = 0;
    while (k < 3 && !ggl_str_ends_with(t->name, ends[k]))
        k++;
    if (k == 3)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: tensor %.*s is neither a .lora_a nor a .lora_b nor a .lora_magnitude; "
                        "only low-rank changes of matrices, and lengths of their rows, are "
                        "supported, so it would have no effect",
                        llm_adapter_name(a), (int)ggl_utf8_cut(t->name.s, t->name.n, 200),
                        t->name.s);
    const ggl_str name = {t->name.s, t->name.n - strlen(ends[k])};
    if (name.n == 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: a tensor is called %s, without the name of what it changes",
                        llm_adapter_name(a), ends[k]);
    size_t i = ggl_index_find(&a->index, a->pair, name);
    if (i == SIZE_MAX) {
        i = a->n_pairs;
        const char *own = ggl_arena_strndup(&a->arena, name.s, name.n);
        if (!own || !ggl_grow(&a->pair, &a->cap_pairs, i + 1, sizeof *a->pair))
            return ggl_fail(err, GGL_NOMEM, "out of memory");
        a->pair[i] =
            (arch_pair){.name = {own, name.n}, .embedding = strcmp(own, "token_embd.weight") == 0};
        a->n_pairs++;
        (void)ggl_index_put(&a->index, a->pair, i);
    }
    const ggl_gguf_tensor **part[] = {&a->pair[i].a, &a->pair[i].b, &a->pair[i].magnitude};
    *part[k] = t;
    return GGL_OK;
}

/* Refuses a tensor that is not a matrix, or a stack of them, of a type that products accept. */
static ggl_status check_half(const llm_adapter *a, const arch_pair *p, const ggl_gguf_tensor *t,
                             ggl_error *err) {
    const ggl_type_info *type = ggl_type_get(t->type);
    const char half = t == p->a ? 'a' : 'b';
    if (!type || !ggl_type_has_products((ggl_type)t->type))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: %.200s.lora_%c has the type %s, which products do "
                        "not accept",
                        llm_adapter_name(a), p->name.s, half, type ? type->name : "?");
    if (t->n_dims < 2 || t->n_dims > (p->embedding ? 2 : 3))
        return ggl_fail(err, GGL_SHAPE, "%s: %.200s.lora_%c has %d dimension%s; %s",
                        llm_adapter_name(a), p->name.s, half, t->n_dims, t->n_dims == 1 ? "" : "s",
                        p->embedding ? "2 are expected" : "2 or 3 are expected");
    if (t->size == 0)
        return ggl_fail(err, GGL_SHAPE,
                        "%s: %.200s.lora_%c is empty: it is [%" PRId64 ", %" PRId64 "%s",
                        llm_adapter_name(a), p->name.s, half, t->ne[0], t->ne[1],
                        t->n_dims > 2 ? ", ..]" : "]");
    return GGL_OK;
}

/* Checks that there is a number for each row that the pair changes. */
static ggl_status check_magnitude(const llm_adapter *a, const arch_pair *p, ggl_error *err) {
    const ggl_gguf_tensor *t = p->magnitude, *b = p->b;
    const ggl_type_info *type = t ? ggl_type_get(t->type) : NULL;
    if (!t)
        return GGL_OK;
    if (p->embedding)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: %.200s.lora_magnitude: magnitudes (DoRA) of the embedding are not "
                        "supported, only those of matrices of products",
                        llm_adapter_name(a), p->name.s);
    if (t->type != GGL_F32)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: %.200s.lora_magnitude has the type %s; f32 is expected",
                        llm_adapter_name(a), p->name.s, type ? type->name : "?");
    if (t->n_dims == b->n_dims - 1 && t->ne[0] == b->ne[1] && t->ne[1] == b->ne[2])
        return GGL_OK;
    return ggl_fail(
        err, GGL_SHAPE,
        "%s: %.200s.lora_magnitude has %d dimension%s and %" PRId64 " numbers; .lora_b [%" PRId64
        ", %" PRId64 "%s changes %" PRId64 " rows, each of which needs one, in %d",
        llm_adapter_name(a), p->name.s, t->n_dims, t->n_dims == 1 ? "" : "s",
        ggl_extents(t->ne, 0, GGL_MAX_DIMS, 1), b->ne[0], b->ne[1], b->n_dims > 2 ? ", ..]" : "]",
        ggl_extents(b->ne, 1, GGL_MAX_DIMS, 1), b->n_dims - 1);
}

/* Checks that both halves are there and have the same rank, and sets it. */
static ggl_status check_pair(const llm_adapter *a, arch_pair *p, ggl_error *err) {
    if (!p->a && !p->b)
        return ggl_fail(err, GGL_FORMAT,
                        "%s has %.200s.lora_magnitude, but neither .lora_a nor .lora_b of that "
                        "weight",
                        llm_adapter_name(a), p->name.s);
    if (!p->a || !p->b)
        return ggl_fail(err, GGL_FORMAT, "%s has %.200s.%s, but no %.200s.%s: half of a pair",
                        llm_adapter_name(a), p->name.s, p->a ? "lora_a" : "lora_b", p->name.s,
                        p->a ? "lora_b" : "lora_a");
    const int64_t rank_a = p->a->ne[p->embedding ? 0 : 1];
    const int64_t rank_b = p->b->ne[0];
    p->rank = rank_b;
    ggl_status st = check_half(a, p, p->a, err);
    if (st == GGL_OK)
        st = check_half(a, p, p->b, err);
    if (st != GGL_OK)
        return st;
    if (rank_a != rank_b)
        return ggl_fail(err, GGL_SHAPE,
                        "%s: %.200s.lora_a [%" PRId64 ", %" PRId64 "] and .lora_b [%" PRId64
                        ", %" PRId64 "] do not have the same rank",
                        llm_adapter_name(a), p->name.s, p->a->ne[0], p->a->ne[1], p->b->ne[0],
                        p->b->ne[1]);
    return check_magnitude(a, p, err);
}

static ggl_status read_pairs(llm_adapter *a, ggl_error *err) {
    const size_t n = ggl_gguf_n_tensors(a->file);
    if (n == 0)
        return ggl_fail(err, GGL_FORMAT, "%s is an adapter without tensors", llm_adapter_name(a));
    ggl_status st = ggl_index_init(&a->index, n, sizeof *a->pair, GGL_INDEX_STRINGS, err);
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        st = add_tensor(a, ggl_gguf_tensor_at(a->file, i), err);
    for (size_t i = 0; i < a->n_pairs && st == GGL_OK; i++)
        st = check_pair(a, &a->pair[i], err);
    return st;
}

/* --- the adapter ------------------------------------------------------------------------------ */

ggl_status llm_adapter_of_file(llm_adapter **out, ggl_gguf *file, ggl_status st,
                               ggl_status (*read)(llm_adapter *a, ggl_error *err), ggl_error *err) {
    llm_adapter *a = st == GGL_OK ? ggl_calloc(1, sizeof *a) : NULL;
    *out = NULL;
    if (!a) {
        ggl_gguf_close(file);
        return st == GGL_OK ? ggl_fail(err, GGL_NOMEM, "out of memory") : st;
    }
    a->file = file;
    st = read(a, err);
    if (st != GGL_OK) {
        llm_adapter_free(a);
        return st;
    }
    *out = a;
    return GGL_OK;
}

static ggl_status read_all(llm_adapter *a, ggl_error *err) {
    const ggl_status st = read_keys(a, err);
    return st == GGL_OK ? read_pairs(a, err) : st;
}

ggl_status llm_adapter_open(llm_adapter **out, const char *path, const ggl_gguf_params *params,
                            ggl_error *err) {
    ggl_gguf *file = NULL;
    *out = NULL;
    ggl_status st = llm_peft_refuse_folder(path, err);
    if (st != GGL_OK)
        return st;
    st = ggl_gguf_open(&file, path, params, err);
    return llm_adapter_of_file(out, file, st, read_all, err);
}

ggl_status llm_adapter_open_memory(llm_adapter **out, const void *data, size_t size,
                                   const char *name, ggl_error *err) {
    ggl_gguf *file = NULL;
    const ggl_status st = ggl_gguf_open_memory(&file, data, size, name, err);
    return llm_adapter_of_file(out, file, st, read_all, err);
}

ggl_status llm_adapter_open_file(llm_adapter **out, ggl_gguf *file, ggl_error *err) {
    return llm_adapter_of_file(out, file, GGL_OK, read_all, err);
}

void llm_adapter_free(llm_adapter *a) {
    if (!a)
        return;
    ggl_gguf_close(a->file);
    ggl_index_fini(&a->index);
    ggl_arena_fini(&a->arena);
    ggl_free(a->pair);
    ggl_free(a->direction);
    ggl_free(a);
}

const char *llm_adapter_name(const llm_adapter *a) {
    const char *path = ggl_gguf_name(a->file), *slash = ggl_os_last_separator(path);
    return slash ? slash + 1 : path;
}

bool llm_file_is_control(const ggl_gguf *file) {
    ggl_str s;
    return ggl_gguf_get_string(file, "general.architecture", &s, NULL) == 1 &&
           ggl_str_is(s, LLM_CONTROL_KIND);
}

bool llm_adapter_is_of_sense(const char *name) {
    static const char *const begin[] = {"v.", "a.", "mm.", "resampler."};
    bool is = false;
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        is |= strncmp(name, begin[i], strlen(begin[i])) == 0;
    return is;
}

const ggl_gguf *llm_adapter_file(const llm_adapter *a) {
    return a->file;
}

llm_adapter_info llm_adapter_describe(const llm_adapter *a) {
    llm_adapter_info x = {.n_pairs = a->n_pairs,
                          .rank_min = INT64_MAX,
                          .alpha = a->alpha,
                          .architecture = a->architecture,
                          .title = a->title,
                          .n_directions = a->n_directions};
    if (a->n_directions > 0) {
        x.rank_min = 0;
        x.layer_min = a->direction[0].layer;
        x.layer_max = a->direction[a->n_directions - 1].layer;
    }
    for (size_t i = 0; i < a->n_directions; i++)
        x.bytes += a->direction[i].t->size;
    for (size_t i = 0; i < a->n_pairs; i++) {
        const arch_pair *p = &a->pair[i];
        x.rank_min = p->rank < x.rank_min ? p->rank : x.rank_min;
        x.rank_max = p->rank > x.rank_max ? p->rank : x.rank_max;
        x.bytes += p->a->size + p->b->size + (p->magnitude ? p->magnitude->size : 0);
        x.n_magnitudes += p->magnitude != NULL;
    }
    return x;
}

uint64_t llm_adapter_digest(llm_adapter_use use, uint64_t before) {
    const llm_adapter *a = use.adapter;
    uint64_t h = before ^ LLM_DIGEST_START;
    if (use.scale == 0)
        return before;
    h = llm_digest(h, &use.scale, sizeof use.scale);
    h = llm_digest(h, &a->alpha, sizeof a->alpha);
    if (a->n_directions > 0) {
        h = llm_digest(h, &use.first, sizeof use.first);
        h = llm_digest(h, &use.last, sizeof use.last);
    }
    for (size_t i = 0; i < ggl_gguf_n_tensors(a->file); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(a->file, i);
        h = llm_digest(h, t->name.s, t->name.n);
        h = llm_digest(h, t->ne, sizeof t->ne);
        h = llm_digest(h, t->data, t->data ? t->size : 0);
    }
    return h ? h : 1;
}
