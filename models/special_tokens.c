/* Aho and Corasick's automaton (1975), run from the end of the text to its beginning. When it has
 * read the bytes from position i on, its state is the longest prefix of text[i..] that is a suffix
 * of some token. The longest token that starts at i is then the longest token that is a prefix of
 * the state's spelling; it was found when the automaton was built. So each position is read once.
 * Trying tokens from left to right would read far and find nothing again and again: tokens "a" and
 * "aa..ab" in "aaa..".
 *
 * The trie holds the tokens' spellings from their last byte to their first. */
#include "special_tokens.h"

#include <string.h>

#include "ggl/alloc.h"
#include "ggl/steps.h"

/* Nodes of the trie, at most: bytes of all spellings. Published vocabularies have some thousands. */
enum { MOST_NODES = 1 << 24 };

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the special tokens");
}

ggl_status llm_special_init(special_tokens *x, ggl_error *err) {
    *x = (special_tokens){0};
    ggl_status s = ggl_index_init(&x->child, 256, sizeof *x->node, 2 * sizeof(int32_t), err);
    if (s != GGL_OK)
        return s;
    if (!ggl_grow(&x->node, &x->cap, 1, sizeof *x->node))
        return no_memory(err);
    x->node[x->n++] = (special_node){.parent = -1, .any = -1, .user = -1};
    return GGL_OK;
}

void llm_special_fini(special_tokens *x) {
    ggl_free(x->node);
    ggl_index_fini(&x->child);
    *x = (special_tokens){0};
}

/* 0: there is none. */
static int32_t child_of(const special_tokens *x, int32_t parent, unsigned char byte) {
    const int32_t key[2] = {parent, byte};
    GGL_STEPS(1);
    if (parent == 0)
        return x->child_of_root[byte];
    size_t i = ggl_index_find(&x->child, x->node, (ggl_str){(const char *)key, sizeof key});
    return i == SIZE_MAX ? 0 : (int32_t)i;
}

/* 0: out of memory. */
static int32_t child_new(special_tokens *x, int32_t parent, unsigned char byte) {
    if (!ggl_grow(&x->node, &x->cap, x->n + 1, sizeof *x->node) ||
        ggl_index_reserve(&x->child, x->node, x->n, NULL) != GGL_OK)
        return 0;
    int32_t i = (int32_t)x->n++;
    x->node[i] = (special_node){.parent = parent, .byte = byte, .any = -1, .user = -1};
    if (parent == 0)
        x->child_of_root[byte] = i;
    else
        ggl_index_put(&x->child, x->node, (size_t)i);
    return i;
}

ggl_status llm_special_add(special_tokens *x, ggl_str spelling, int32_t id, bool user_defined,
                           ggl_error *err) {
    int32_t at = 0;
    for (size_t i = spelling.n; i-- > 0;) {
        unsigned char byte = (unsigned char)spelling.s[i];
        int32_t next = child_of(x, at, byte);
        if (next == 0 && x->n >= MOST_NODES)
            return ggl_fail(
                err, GGL_LIMIT,
                "the special tokens have more than %d bytes in all, which no vocabulary "
                "needs",
                MOST_NODES);
        if (next == 0)
            next = child_new(x, at, byte);
        if (next == 0)
            return no_memory(err);
        at = next;
    }
    special_node *node = &x->node[at];
    if (node->any < 0) {
        node->any = id;
        node->user = user_defined ? id : -1;
    }
    return GGL_OK;
}

/* From state `at` with one more byte before it. */
static int32_t step(const special_tokens *x, int32_t at, unsigned char byte) {
    int32_t next = child_of(x, at, byte);
    while (next == 0 && at != 0) {
        at = x->node[at].shorter;
        next = child_of(x, at, byte);
    }
    return next;
}

/* Nodes in the order of their depth: parents and `shorter` first. NULL: out of memory. */
static int32_t *by_depth(const special_tokens *x) {
    uint32_t *depth = ggl_calloc(x->n, sizeof *depth), *first = ggl_calloc(x->n + 1, sizeof *first);
    int32_t *order = ggl_calloc(x->n, sizeof *order);
    for (size_t i = 1; depth && first && i < x->n; i++) { /* a node is made after its parent */
        depth[i] = depth[x->node[i].parent] + 1;
        first[depth[i] + 1]++;
    }
    if (depth && first && order) {
        first[1] = 1; /* the root */
        for (size_t d = 1; d <= x->n; d++)
            first[d] += first[d - 1];
        for (size_t i = 1; i < x->n; i++)
            order[first[depth[i]]++] = (int32_t)i;
    } else {
        ggl_free(order);
        order = NULL;
    }
    ggl_free(depth);
    ggl_free(first);
    return order;
}

ggl_status llm_special_finish(special_tokens *x, ggl_error *err) {
    int32_t *order = by_depth(x);
    if (!order)
        return no_memory(err);
    for (size_t k = 1; k < x->n; k++) {
        special_node *node = &x->node[order[k]];
        const int32_t parent = node->parent;
        node->shorter =
            parent == 0 ? 0 : step(x, x->node[parent].shorter, (unsigned char)node->byte);
        const special_node *shorter = &x->node[node->shorter];
        node->any = node->any < 0 ? shorter->any : node->any;
        node->user = node->user < 0 ? shorter->user : node->user;
    }
    ggl_free(order);
    return GGL_OK;
}

ggl_status llm_special_find(const special_tokens *x, const char *text, size_t n, bool user_only,
                            special_match **out, size_t *n_out, ggl_error *err) {
    size_t cap = 0;
    int32_t at = 0;
    *out = NULL;
    *n_out = 0;
    for (size_t i = n; i-- > 0;) {
        at = step(x, at, (unsigned char)text[i]);
        int32_t id = user_only ? x->node[at].user : x->node[at].any;
        if (id < 0)
            continue;
        if (*n_out == cap && !ggl_grow(out, &cap, *n_out + 1, sizeof **out)) {
            ggl_free(*out);
            *out = NULL;
            return no_memory(err);
        }
        (*out)[(*n_out)++] = (special_match){i, id};
    }
    return GGL_OK;
}
