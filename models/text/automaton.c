#include "automaton.h"

#include "ggl/internal/alloc.h"
#include "ggl/internal/steps.h"

/* Limit on nodes, i.e. bytes of all spellings. The largest published vocabularies have a few
 * million. */
enum { MOST_NODES = 1 << 25 };

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokens' spellings");
}

ggl_status llm_automaton_init(automaton *x, ggl_error *err) {
    *x = (automaton){0};
    ggl_status s = ggl_index_init(&x->child, 256, sizeof *x->node, 2 * sizeof(int32_t), err);
    if (s != GGL_OK)
        return s;
    if (!ggl_grow(&x->node, &x->cap, 1, sizeof *x->node))
        return no_memory(err);
    x->node[x->n++] = (automaton_node){.parent = -1, .id = -1};
    return GGL_OK;
}

void llm_automaton_fini(automaton *x) {
    ggl_free(x->node);
    ggl_index_fini(&x->child);
    *x = (automaton){0};
}

int32_t llm_automaton_child(const automaton *x, int32_t parent, unsigned char byte) {
    const int32_t key[2] = {parent, byte};
    GGL_STEPS(1);
    if (parent == 0)
        return x->child_of_root[byte];
    size_t i = ggl_index_find(&x->child, x->node, (ggl_str){(const char *)key, sizeof key});
    return i == SIZE_MAX ? 0 : (int32_t)i;
}

/* Makes a child node. 0: out of memory. */
static int32_t child_new(automaton *x, int32_t parent, unsigned char byte) {
    if (!ggl_grow(&x->node, &x->cap, x->n + 1, sizeof *x->node) ||
        ggl_index_reserve(&x->child, x->node, x->n, NULL) != GGL_OK)
        return 0;
    int32_t i = (int32_t)x->n++;
    x->node[i] = (automaton_node){
        .parent = parent, .byte = byte, .id = -1, .depth = x->node[parent].depth + 1};
    if (parent == 0)
        x->child_of_root[byte] = i;
    else
        ggl_index_put(&x->child, x->node, (size_t)i);
    return i;
}

ggl_status llm_automaton_add(automaton *x, ggl_str spelling, int32_t id, bool backward, bool *added,
                             ggl_error *err) {
    int32_t at = 0;
    for (size_t i = 0; i < spelling.n; i++) {
        unsigned char byte = (unsigned char)spelling.s[backward ? spelling.n - 1 - i : i];
        int32_t next = llm_automaton_child(x, at, byte);
        if (next == 0 && x->n >= MOST_NODES)
            return ggl_fail(err, GGL_LIMIT,
                            "the tokens' spellings have more than %d bytes in all, which no "
                            "vocabulary needs",
                            MOST_NODES);
        if (next == 0)
            next = child_new(x, at, byte);
        if (next == 0)
            return no_memory(err);
        at = next;
    }
    bool is_new = at != 0 && x->node[at].id < 0;
    if (is_new)
        x->node[at].id = id;
    if (added)
        *added = is_new;
    return GGL_OK;
}

int32_t llm_automaton_step(const automaton *x, int32_t state, unsigned char byte) {
    int32_t next = llm_automaton_child(x, state, byte);
    while (next == 0 && state != 0) {
        state = x->node[state].shorter;
        next = llm_automaton_child(x, state, byte);
    }
    return next;
}

/* Returns the nodes ordered by depth, so that `parent` and `shorter` come before a node. NULL:
 * out of memory. */
static int32_t *by_depth(const automaton *x) {
    uint32_t *first = ggl_calloc(x->n + 1, sizeof *first);
    int32_t *order = ggl_calloc(x->n, sizeof *order);
    if (first && order) {
        for (size_t i = 0; i < x->n; i++)
            first[x->node[i].depth + 1]++;
        for (size_t d = 1; d <= x->n; d++)
            first[d] += first[d - 1];
        for (size_t i = 0; i < x->n; i++)
            order[first[x->node[i].depth]++] = (int32_t)i;
    } else {
        ggl_free(order);
        order = NULL;
    }
    ggl_free(first);
    return order;
}

ggl_status llm_automaton_finish(automaton *x, ggl_error *err) {
    int32_t *order = by_depth(x);
    uint32_t *n_found = ggl_calloc(x->n, sizeof *n_found);
    if (!order || !n_found) {
        ggl_free(order);
        ggl_free(n_found);
        return no_memory(err);
    }
    for (size_t k = 1; k < x->n; k++) {
        automaton_node *node = &x->node[order[k]];
        const int32_t parent = node->parent;
        node->shorter =
            parent == 0 ? 0
                        : llm_automaton_step(x, x->node[parent].shorter, (unsigned char)node->byte);
        node->found = node->id >= 0 ? order[k] : x->node[node->shorter].found;
        n_found[order[k]] = n_found[node->shorter] + (node->id >= 0);
        if (n_found[order[k]] > x->most_found) {
            x->most_found = n_found[order[k]];
            x->found_most = node->id;
        }
    }
    ggl_free(order);
    ggl_free(n_found);
    return GGL_OK;
}
