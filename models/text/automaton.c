#include "automaton.h"

#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/steps.h"

/* Limit on nodes, i.e. bytes of all spellings. The largest published vocabularies have a few
 * million. */
enum { MOST_NODES = 1 << 25 };

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokens' spellings");
}

static ggl_status too_many(ggl_error *err) {
    return ggl_fail(err, GGL_LIMIT,
                    "the tokens' spellings have more than %d bytes in all, which no vocabulary "
                    "needs",
                    MOST_NODES);
}

static unsigned char byte_of(const automaton *x, const automaton_key *key, size_t at) {
    return (unsigned char)key->s[x->backward ? key->n - 1 - at : at];
}

/* --- adding ---------------------------------------------------------------------------------------- */

ggl_status llm_automaton_init(automaton *x, bool backward, ggl_error *err) {
    *x = (automaton){.backward = backward};
    /* the root, and behind the last node one that ends its children */
    if (!ggl_grow(&x->node, &x->cap, 2, sizeof *x->node))
        return no_memory(err);
    x->node[0] = (automaton_node){.first = 1, .id = -1};
    x->node[1].first = 1;
    x->n = 1;
    return GGL_OK;
}

static void drop_keys(automaton *x) {
    ggl_free(x->key);
    x->key = NULL;
    x->n_keys = x->cap_keys = 0;
}

void llm_automaton_fini(automaton *x) {
    ggl_free(x->node);
    ggl_free(x->label);
    drop_keys(x);
    *x = (automaton){0};
}

ggl_status llm_automaton_add(automaton *x, ggl_str spelling, int32_t id, ggl_error *err) {
    if (spelling.n == 0)
        return GGL_OK;
    if (spelling.n >= MOST_NODES || x->n_keys >= MOST_NODES)
        return too_many(err);
    if (!ggl_grow(&x->key, &x->cap_keys, x->n_keys + 1, sizeof *x->key))
        return no_memory(err);
    x->key[x->n_keys++] = (automaton_key){spelling.s, (uint32_t)spelling.n, id};
    return GGL_OK;
}

/* --- reading --------------------------------------------------------------------------------------- */

int32_t llm_automaton_child(const automaton *x, int32_t parent, unsigned char byte) {
    GGL_STEPS(1);
    if (parent == 0)
        return x->child_of_root[byte];
    int32_t from = x->node[parent].first, to = x->node[parent + 1].first;
    while (to - from > 8) {
        const int32_t middle = from + (to - from) / 2;
        if (x->label[middle] <= byte)
            from = middle;
        else
            to = middle;
    }
    for (; from < to; from++)
        if (x->label[from] == byte)
            return from;
    return 0;
}

int32_t llm_automaton_step(const automaton *x, int32_t state, unsigned char byte) {
    int32_t next = llm_automaton_child(x, state, byte);
    while (next == 0 && state != 0) {
        state = x->node[state].shorter;
        next = llm_automaton_child(x, state, byte);
    }
    return next;
}

int32_t llm_automaton_id(const automaton *x, ggl_str spelling) {
    const automaton_key key = {spelling.s, (uint32_t)spelling.n, 0};
    int32_t at = 0;
    for (size_t i = 0; i < spelling.n; i++) {
        at = llm_automaton_child(x, at, byte_of(x, &key, i));
        if (at == 0)
            return -1;
    }
    return x->node[at].id;
}

/* --- building -------------------------------------------------------------------------------------- */

/* Nodes are made level by level, so that those of a parent, and all shorter strings, are there before their children. The keys of a node stand side
 * by side, in the order in which they were added; they are dealt out to its children by their next byte. */
typedef struct builder {
    automaton *x;
    uint32_t (*range)[2]; /* of each node: its keys */
    uint32_t *n_found;    /* tokens that are found at each node */
    size_t cap_label, cap_range, cap_found;
    automaton_key *other; /* memory for as many keys */
} builder;

/* Makes a node for the keys [from, to), which agree in its bytes. Those that end there are taken out of it: the first of them counts. */
static ggl_status make_node(builder *b, int32_t parent, unsigned char byte, uint32_t from,
                            uint32_t to, ggl_error *err) {
    automaton *x = b->x;
    const size_t i = x->n;
    if (i >= MOST_NODES)
        return too_many(err);
    if (!ggl_grow(&x->node, &x->cap, i + 2, sizeof *x->node) ||
        !ggl_grow(&x->label, &b->cap_label, i + 1, 1) ||
        !ggl_grow(&b->range, &b->cap_range, i + 1, sizeof *b->range) ||
        !ggl_grow(&b->n_found, &b->cap_found, i + 1, sizeof *b->n_found))
        return no_memory(err);
    automaton_node *node = &x->node[i];
    *node = (automaton_node){.id = -1, .depth = x->node[parent].depth + 1};
    uint32_t n_left = from;
    for (uint32_t k = from; k < to; k++)
        if (x->key[k].n > node->depth)
            x->key[n_left++] = x->key[k];
        else if (node->id < 0)
            node->id = x->key[k].id;
    b->range[i][0] = from;
    b->range[i][1] = n_left;
    x->label[i] = byte;
    node->shorter = parent == 0 ? 0 : llm_automaton_step(x, x->node[parent].shorter, byte);
    node->found = node->id >= 0 ? (int32_t)i : x->node[node->shorter].found;
    b->n_found[i] = b->n_found[node->shorter] + (node->id >= 0);
    if (b->n_found[i] > x->most_found) {
        x->most_found = b->n_found[i];
        x->found_most = node->id;
    }
    if (parent == 0)
        x->child_of_root[byte] = (int32_t)i;
    x->n++;
    return GGL_OK;
}

enum { FEW = 16 };

/* Orders keys by a byte; equal ones stay in their order. */
static void order_few(const automaton *x, automaton_key *key, size_t n, size_t at) {
    for (size_t i = 1; i < n; i++) {
        const automaton_key k = key[i];
        const unsigned char byte = byte_of(x, &k, at);
        size_t j = i;
        for (; j > 0 && byte_of(x, &key[j - 1], at) > byte; j--)
            key[j] = key[j - 1];
        key[j] = k;
    }
}

static void order_many(const builder *b, automaton_key *key, size_t n, size_t at) {
    size_t first[257] = {0};
    for (size_t i = 0; i < n; i++)
        first[byte_of(b->x, &key[i], at) + 1]++;
    for (size_t c = 0; c < 256; c++)
        first[c + 1] += first[c];
    for (size_t i = 0; i < n; i++)
        b->other[first[byte_of(b->x, &key[i], at)]++] = key[i];
    memcpy(key, b->other, n * sizeof *key);
}

static ggl_status make_children(builder *b, int32_t parent, ggl_error *err) {
    automaton *x = b->x;
    const uint32_t from = b->range[parent][0], to = b->range[parent][1];
    const size_t at = x->node[parent].depth;
    ggl_status s = GGL_OK;
    x->node[parent].first = (int32_t)x->n;
    GGL_STEPS(to - from);
    if (to - from > FEW)
        order_many(b, x->key + from, to - from, at);
    else if (to > from)
        order_few(x, x->key + from, to - from, at);
    for (uint32_t k = from, next; k < to && s == GGL_OK; k = next) {
        const unsigned char byte = byte_of(x, &x->key[k], at);
        for (next = k + 1; next < to && byte_of(x, &x->key[next], at) == byte;)
            next++;
        s = make_node(b, parent, byte, k, next, err);
    }
    x->node[parent + 1].first = (int32_t)x->n;
    return s;
}

ggl_status llm_automaton_finish(automaton *x, ggl_error *err) {
    builder b = {.x = x};
    b.other = ggl_calloc(x->n_keys, sizeof *b.other);
    ggl_status s = GGL_OK;
    if (!b.other || !ggl_grow(&b.range, &b.cap_range, 1, sizeof *b.range) ||
        !ggl_grow(&b.n_found, &b.cap_found, 1, sizeof *b.n_found) ||
        !ggl_grow(&x->label, &b.cap_label, 1, 1))
        s = no_memory(err);
    else
        b.range[0][1] = (uint32_t)x->n_keys;
    for (size_t i = 0; i < x->n && s == GGL_OK; i++)
        s = make_children(&b, (int32_t)i, err);
    ggl_free(b.other);
    ggl_free(b.range);
    ggl_free(b.n_found);
    drop_keys(x);
    return s;
}
