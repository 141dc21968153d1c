/* Numbers that must be wrong; see keys.h. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "keys.h"

/* Bounds for keys and computed tensors. Outside of them a model computes nonsense. A factor of 1e30 keeps a pair of numbers from turning. */
static const struct {
    const char *name;
    double above, most;
} sensible[] = {
    {"*_epsilon", 0, 1},      {"*.freq_base*", 0, 1e15},     {"*.rope.scaling.*factor*", 0, 1e6},
    {"*softcapping", 0, 1e9}, {"rope_f*.weight", 0, 1.1e30},
};
#define N_SENSIBLE (sizeof sensible / sizeof *sensible)

/* Returns a message if the number must be wrong, else NULL. */
static const char *odd_number(const char *name, double x, bool is_float, char *buf, size_t size) {
    const double y = is_float ? (double)(float)x : x;
    for (size_t r = 0; r < N_SENSIBLE; r++)
        if (arch_match(sensible[r].name, name, strlen(name)) &&
            !(y > sensible[r].above && y <= sensible[r].most)) {
            snprintf(
                buf, size,
                "%s has the value %g, which cannot be right: it should be above %g and at most %g",
                name, x, sensible[r].above, sensible[r].most);
            return buf;
        }
    if (!is_float || fabs(x) <= FLT_MAX)
        return NULL;
    snprintf(buf, size,
             "%s has the value %g, which is too large: files store it as f32, at most 3.4e38", name,
             x);
    return buf;
}

static ggl_status check_key(const converted_key *k, ggl_error *err) {
    const llm_arch_item *item = k->key.handle;
    char text[300];
    if (k->key.type != LLM_ARCH_NUMBER)
        return GGL_OK;
    const bool is_float = llm_convert_number_type(k) == GGL_GGUF_F32;
    for (uint64_t i = 0; i < k->key.n; i++)
        if (odd_number(k->name, item[i].number, is_float, text, sizeof text))
            return llm_arch_fail(err, GGL_FORMAT, k->line->place, NULL, NULL, "%s", text);
    return GGL_OK;
}

static ggl_status check_tensor(const converted_tensor *t, ggl_error *err) {
    const recipe *r = t->recipe;
    char text[300];
    for (int64_t i = 0; r->kind == RECIPE_HELD && i < llm_recipe_count(r); i++)
        if (odd_number(t->name, r->held[i], true, text, sizeof text))
            return ggl_fail(err, GGL_FORMAT, "tensor %s", text);
    return GGL_OK;
}

/* True if a key counts what a model cannot lack, or cannot have less than none of. */
static bool is_no_count(const char *name, double x) {
    static const char *const needed[] = {"*.vocab_size",       "*.context_length",
                                         "*.block_count",      "*.decoder_block_count",
                                         "*.embedding_length", "*.attention.head_count"};
    static const char *const counts[] = {"*_count", "*_length", "*_size"};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (arch_match(needed[i], name, strlen(name)))
            return x < 1;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (arch_match(counts[i], name, strlen(name)))
            return x < 0;
    return false;
}

ggl_status llm_convert_check_counts(arch_conversion *c, ggl_error *err) {
    for (size_t i = 0; i < c->n_key; i++) {
        const converted_key *k = &c->key[i];
        const llm_arch_item *item = k->key.handle;
        char said[300];
        if (k->key.type != LLM_ARCH_NUMBER || k->key.is_list || !is_no_count(k->name, item->number))
            continue;
        const bool needed = is_no_count(k->name, 0);
        (void)llm_arch_convert_cause(c, k->line->expr, item->number, said, sizeof said);
        if (said[0]) /* else the section says so itself, of an eye without layers */
            return ggl_fail(err, GGL_FORMAT,
                            "%s: %s: at least %d is expected, as it becomes the key %s",
                            c->config_path ? c->config_path : "config.json", said, needed, k->name);
    }
    return GGL_OK;
}

ggl_status llm_convert_check_numbers(arch_conversion *c, ggl_error *err) {
    for (size_t i = 0; i < c->n_key + c->n_tensor; i++) {
        ggl_status s =
            i < c->n_key ? check_key(&c->key[i], err) : check_tensor(&c->tensor[i - c->n_key], err);
        if (s == GGL_OK)
            continue;
        if (!c->collect || !err)
            return s;
        if (!llm_arch_convert_add_fault(c, err->msg))
            return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    return GGL_OK;
}
