/* The table of declared tensors. */
#include <string.h>

#include "compile.h"

arch_weight *llm_arch_find_weight(arch_eval *ev, const char *name) {
    size_t i = ggl_index_find(&ev->weight_index, ev->weight_name, (ggl_str){name, strlen(name)});
    return i == SIZE_MAX ? NULL : ev->weight[i];
}

/* Adds the name of the next weight to the index. False: out of memory, reported. */
static bool index_weight(arch_eval *ev, const char *name) {
    ggl_index *x = &ev->weight_index;
    size_t i = ev->n_weight;
    if (!llm_arch_push(ev, &ev->weight_name, &ev->cap_weight_name, i + 1, sizeof *ev->weight_name))
        return false;
    ev->weight_name[i] = (ggl_str){name, strlen(name)};
    if (arch_index_room(x, ev->weight_name, i + 1, sizeof *ev->weight_name, NULL) != GGL_OK)
        return llm_arch_nomem(ev), false;
    ggl_index_put(x, ev->weight_name, i);
    return true;
}

arch_weight *llm_arch_add_weight(arch_eval *ev, const char *name, ggl_tensor *t, arch_place p,
                                 bool is_bias) {
    /* the chain contains line numbers, which take time */
    if (ev->frame && !llm_arch_step(ev, p, (int64_t)p.text->n / 32))
        return NULL;
    arch_weight *w = ggl_arena_alloc(&ev->arena, 1, sizeof *w);
    if (!w)
        return llm_arch_nomem(ev), NULL;
    if (!llm_arch_push(ev, &ev->weight, &ev->cap_weight, ev->n_weight + 1, sizeof *ev->weight) ||
        !index_weight(ev, name))
        return NULL;
    *w = (arch_weight){name, t, p, llm_arch_chain(ev, p), is_bias, NULL};
    return ev->weight[ev->n_weight++] = w;
}
