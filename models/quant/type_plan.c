#include "type_plan.h"

#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/types.h"

/* Returns element 0 of the key {arch}.NAME, or `otherwise` if the key is missing. */
static int64_t model_number(const ggl_gguf *f, ggl_str arch, const char *name, int64_t otherwise) {
    char key[256];
    int64_t value;
    snprintf(key, sizeof key, "%.*s.%s", (int)(arch.n < 128 ? arch.n : 128), arch.s, name);
    const ggl_gguf_value *v = ggl_gguf_find(f, key);
    return v && v->n > 0 && ggl_gguf_integer(v, 0, &value) && value >= 0 && value <= INT32_MAX
               ? value
               : otherwise;
}

/* Makes the name safe to show, as bytes from a file must not control the terminal. */
static void show_name(quant_tensor *t) {
    size_t n = 0;
    for (const char *c = t->name; *c && n + 5 < sizeof t->shown; c++)
        n += (size_t)snprintf(t->shown + n, sizeof t->shown - n,
                              (unsigned char)*c < 0x20 || *c == 0x7f ? "\\x%02x" : "%c", *c);
}

static void name_tensor(quant_tensor *t) {
    snprintf(t->name, sizeof t->name, "%.*s", (int)t->from->name.n, t->from->name.s);
    show_name(t);
    if (t->n_part > 1)
        return;
    t->part = &t->from;
    t->n_part = 1;
}

static ggl_str architecture(const ggl_gguf *f) {
    ggl_str arch = {"", 0};
    const ggl_gguf_value *v = ggl_gguf_find(f, "general.architecture");
    if (v && !v->is_array)
        (void)ggl_gguf_string(v, 0, &arch);
    return arch;
}

static void read_model(quant_model *m, const ggl_gguf *f, const quant_choice *c,
                       const quant_plan *p) {
    const ggl_str arch = architecture(f);
    m->n_layer = p->n_layer - (c->prune ? c->prune->n : 0);
    m->has_matrix = c->has_matrix;
    m->n_head = model_number(f, arch, "attention.head_count", 0);
    m->n_head_kv = model_number(f, arch, "attention.head_count_kv", m->n_head);
    m->n_expert = model_number(f, arch, "expert_count", 0);
    for (size_t i = 0; i < p->n; i++)
        llm_quant_model_add(m, p->tensor[i].name);
}

/* True if a tensor can get another type: quantized ones and those of floats. Integers are copied. */
static bool can_change(const ggl_gguf_tensor *t) {
    const ggl_type_info *old = ggl_type_get((int)t->type);
    return old && (ggl_type_has_products(t->type) || t->type == GGL_F64);
}

/* Returns the name of the type for a tensor; NULL: it is copied. */
static const char *choose(const quant_tensor *t, const quant_model *m, quant_choice *c) {
    const ggl_gguf_tensor *from = t->from;
    bool is_output = strcmp(t->name, "output.weight") == 0;
    bool is_embedding = strcmp(t->name, "token_embd.weight") == 0;
    if (!llm_quant_wanted(t->name, from->n_dims, from->ne) || (is_output && c->leave_output) ||
        !can_change(from))
        return NULL;
    quant_override *o = NULL;
    for (size_t k = 0; k < c->n_override && !o; k++)
        if (llm_pattern_matches(c->override[k].pattern, (ggl_str){t->name, strlen(t->name)}))
            o = &c->override[k];
    if (o)
        o->n_tensors++;
    if (is_embedding && c->embedding)
        return c->embedding;
    if (is_output && c->output)
        return c->output;
    if (o)
        return o->type->name;
    if (is_embedding && !m->has_output && c->output) /* it also makes the logits */
        return c->output;
    if (c->pick)
        return c->pick(c->pick_ctx, t);
    if (!c->mix || c->pure)
        return c->type || !c->mix ? c->type : c->mix->base; /* NULL: copied */
    return llm_quant_mix_type(c->mix, m, t->name, from->n_dims, from->ne);
}

static ggl_status plan_tensor(quant_tensor *t, const quant_model *m, quant_choice *c,
                              ggl_error *err) {
    const ggl_gguf_tensor *from = t->from;
    const char *wanted = choose(t, m, c);
    const ggl_type_info *old = ggl_type_get((int)from->type);
    t->type = old;
    t->size = from->size;
    if (!wanted)
        return GGL_OK;
    const char *fits = llm_quant_fit(wanted, from->ne[0]);
    if (strcmp(fits, wanted) != 0)
        t->wanted = wanted;
    t->type = llm_quant_type_find(fits, err);
    if (!t->type)
        return ggl_within(err, GGL_UNSUPPORTED, "tensor '%s'", t->shown);
    if (t->type != old && old->quantized && !c->requantize)
        return ggl_fail(err, GGL_USAGE,
                        "tensor '%s' is already %s; quantizing it again to %s loses more than "
                        "quantizing the original; --allow-requantize does it anyway",
                        t->shown, old->name, t->type->name);
    int64_t n = 1;
    for (int d = 0; d < from->n_dims; d++)
        n *= from->ne[d];
    if (t->type != old && !ggl_row_size_checked(t->type->type, n, &t->size))
        return ggl_fail(err, GGL_LIMIT, "tensor '%s' would be too large", t->shown);
    return GGL_OK;
}

/* Removes layers from a plan that has names. */
static ggl_status prune(quant_plan *p, const quant_prune *layers, ggl_error *err) {
    int last = QUANT_MAX_LAYERS - 1;
    size_t n = 0;
    while (last > 0 && !layers->gone[last])
        last--;
    if (last >= p->n_layer)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "--prune-layers: there is no layer %d: the model has %lld, from 0 on", last,
                        (long long)p->n_layer);
    if (layers->n >= p->n_layer)
        return ggl_fail(err, GGL_NOT_FOUND, "--prune-layers would remove all %d layers", layers->n);
    for (size_t i = 0; i < p->n; i++) {
        char name[sizeof p->tensor[i].name];
        if (!llm_quant_prune_name(layers, p->tensor[i].name, name, sizeof name))
            continue;
        p->tensor[n] = p->tensor[i];
        memcpy(p->tensor[n].name, name, sizeof name);
        show_name(&p->tensor[n]);
        if (p->tensor[n].n_part == 1)
            p->tensor[n].part = &p->tensor[n].from;
        n++;
    }
    p->n = n;
    return GGL_OK;
}

ggl_status llm_quant_plan_make(quant_plan *p, const ggl_gguf *f, quant_choice *c, ggl_error *err) {
    ggl_status s = GGL_OK;
    quant_model *m = ggl_calloc(1, sizeof *m);
    *p = (quant_plan){.n = ggl_gguf_n_tensors(f)};
    p->tensor = ggl_calloc(p->n, sizeof *p->tensor);
    if (!m || !p->tensor) {
        ggl_free(m);
        llm_quant_plan_fini(p);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < p->n; i++) {
        p->tensor[i].from = ggl_gguf_tensor_at(f, i);
        name_tensor(&p->tensor[i]);
    }
    if (c->merge_experts)
        s = llm_quant_merge_experts(p, err);
    for (size_t i = 0; i < p->n; i++)
        name_tensor(&p->tensor[i]);
    p->n_layer = model_number(f, architecture(f), "block_count", 0);
    if (s == GGL_OK && c->prune)
        s = prune(p, c->prune, err);
    read_model(m, f, c, p);
    for (size_t k = 0; k < c->n_override; k++)
        c->override[k].n_tensors = 0;
    for (size_t i = 0; s == GGL_OK && i < p->n; i++) {
        quant_tensor *t = &p->tensor[i];
        double n = 1;
        s = plan_tensor(t, m, c, err);
        for (int d = 0; d < t->from->n_dims; d++)
            n *= (double)t->from->ne[d];
        p->n_elements += n;
        p->size_before += t->from->size;
        p->size_after += t->size;
    }
    for (size_t k = 0; s == GGL_OK && k < c->n_override; k++)
        if (c->override[k].n_tensors == 0)
            s = ggl_fail(err, GGL_NOT_FOUND,
                         "--tensor-type %s: no tensor that can be quantized has a matching name, "
                         "or an earlier --tensor-type matches them all",
                         c->override[k].text);
    ggl_free(m);
    if (s != GGL_OK)
        llm_quant_plan_fini(p);
    return s;
}

void llm_quant_plan_fini(quant_plan *p) {
    ggl_free(p->tensor);
    ggl_arena_fini(&p->made);
    *p = (quant_plan){0};
}
