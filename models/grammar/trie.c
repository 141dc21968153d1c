#include <string.h>

#include "ggl/alloc.h"
#include "vocab.h"

/* The first 8 bytes, so that most comparisons need no more. */
static uint64_t key_of(ggl_str s) {
    uint64_t key = 0;
    for (size_t i = 0; i < 8; i++)
        key = key << 8 | (i < s.n ? (unsigned char)s.s[i] : 0);
    return key;
}

static bool before(const llm_trie_text *a, const llm_trie_text *b) {
    if (a->key != b->key)
        return a->key < b->key;
    const size_t n = a->text.n < b->text.n ? a->text.n : b->text.n;
    const int order = n > 8 ? memcmp(a->text.s, b->text.s, n) : 0;
    return order != 0 ? order < 0 : a->text.n < b->text.n;
}

/* Merges the sorted texts from..middle and middle..end of a to b. */
static void merge(const llm_trie_text *a, llm_trie_text *b, size_t from, size_t middle,
                  size_t end) {
    for (size_t i = from, k = middle, out = from; out < end; out++) {
        const bool right = i == middle || (k < end && before(&a[k], &a[i]));
        b[out] = right ? a[k++] : a[i++];
    }
}

/* The end of the sorted run that begins at i. */
static size_t run_end(const llm_trie_text *a, size_t i, size_t n) {
    for (i++; i < n && !before(&a[i], &a[i - 1]); i++)
        ;
    return i < n ? i : n;
}

/* Merges neighbouring runs that are sorted already, until there is one. Returns where it is. */
static llm_trie_text *sort(llm_trie_text *a, llm_trie_text *b, size_t n) {
    for (bool sorted = false; !sorted;) {
        sorted = true;
        for (size_t from = 0, end; from < n; from = end) {
            const size_t middle = run_end(a, from, n);
            end = middle < n ? run_end(a, middle, n) : n;
            merge(a, b, from, middle, end);
            sorted = sorted && from == 0 && end == n;
        }
        llm_trie_text *other = a;
        a = b;
        b = other;
    }
    return a;
}

static size_t common_prefix(ggl_str a, ggl_str b) {
    size_t n = 0;
    while (n < a.n && n < b.n && a.s[n] == b.s[n])
        n++;
    return n;
}

static bool fits(const llm_trie_text *t) {
    return t->text.n > 0 && t->text.n <= LLM_TRIE_MAX_DEPTH;
}

/* Counts nodes, and the texts that are in the trie. */
static size_t count(const llm_trie_text *text, size_t n, llm_trie *t) {
    size_t n_nodes = 1;
    ggl_str last = {"", 0};
    for (size_t i = 0; i < n; i++) {
        if (!fits(&text[i]))
            continue;
        n_nodes += text[i].text.n - common_prefix(last, text[i].text);
        last = text[i].text;
        t->n_texts++;
        t->max_depth = (int32_t)last.n > t->max_depth ? (int32_t)last.n : t->max_depth;
    }
    return n_nodes;
}

/* path[d] is the node at depth d that is open. */
static void fill(llm_trie *t, const llm_trie_text *text, size_t n, int32_t *path) {
    ggl_str last = {"", 0};
    t->n_nodes = 1;
    t->n_texts = 0;
    path[0] = 0;
    for (size_t i = 0; i < n; i++) {
        if (!fits(&text[i]))
            continue;
        const ggl_str s = text[i].text;
        const size_t common = common_prefix(last, s);
        for (size_t d = common + 1; d <= last.n; d++)
            t->node[path[d]].end = t->n_nodes;
        for (size_t d = common + 1; d <= s.n; d++) {
            path[d] = t->n_nodes++;
            t->node[path[d]] = (llm_trie_node){
                .first = t->n_texts, .depth = (uint16_t)d, .byte = (uint8_t)s.s[d - 1]};
        }
        t->id[t->n_texts++] = text[i].id;
        last = s;
    }
    for (size_t d = 0; d <= last.n; d++)
        t->node[path[d]].end = t->n_nodes;
    t->node[t->n_nodes] = (llm_trie_node){.end = t->n_nodes, .first = t->n_texts};
}

static void find_first(llm_trie *t) {
    for (int32_t c = 1; c < t->n_nodes; c = t->node[c].end)
        t->first[t->node[c].byte] = c;
}

bool llm_trie_make(llm_trie *t, llm_trie_text *text, int32_t n) {
    *t = (llm_trie){0};
    llm_trie_text *work = ggl_calloc((size_t)n, sizeof *work);
    if (!work)
        return false;
    for (int32_t i = 0; i < n; i++)
        text[i].key = key_of(text[i].text);
    const llm_trie_text *sorted = sort(text, work, (size_t)n);
    const size_t n_nodes = count(sorted, (size_t)n, t);
    int32_t *path = ggl_calloc((size_t)t->max_depth + 1, sizeof *path);
    t->node = n_nodes < INT32_MAX ? ggl_calloc(n_nodes + 1, sizeof *t->node) : NULL;
    t->id = ggl_calloc((size_t)t->n_texts, sizeof *t->id);
    const bool ok = path && t->node && t->id;
    if (ok) {
        fill(t, sorted, (size_t)n, path);
        find_first(t);
    } else {
        llm_trie_fini(t);
    }
    ggl_free(work);
    ggl_free(path);
    return ok;
}

void llm_trie_fini(llm_trie *t) {
    ggl_free(t->node);
    ggl_free(t->id);
    *t = (llm_trie){0};
}

/* --- the order of children -------------------------------------------------------------------- */

/* Sets ascend from the largest to the smallest; the smallest that a node is pure for is its rank, and
 * 0 stands for none. */
static int purity(const llm_trie_node *node) {
    int rank = 0;
    for (int k = 0; k < LLM_N_SLICE_CHARS; k++)
        rank = node->tail[k] ? k + 1 : rank;
    return rank;
}

/* Pushes children on a stack, so that those of the smallest set come off first. */
static size_t push_children(const llm_trie *t, int32_t parent, int32_t *stack, size_t n) {
    for (int rank = 0; rank <= LLM_N_SLICE_CHARS; rank++)
        for (int32_t c = parent + 1; c < t->node[parent].end; c = t->node[c].end)
            if (purity(&t->node[c]) == rank)
                stack[n++] = c;
    return n;
}

/* Copies nodes and texts in the new order. */
static void reorder(const llm_trie *t, llm_trie *out, int32_t *stack) {
    size_t n = 0;
    int32_t n_texts = 0, at = 0;
    stack[n++] = 0;
    while (n > 0) {
        const int32_t i = stack[--n];
        out->node[at] = t->node[i];
        out->node[at++].first = n_texts;
        for (int32_t k = t->node[i].first; k < t->node[i + 1].first; k++)
            out->id[n_texts++] = t->id[k];
        n = push_children(t, i, stack, n);
    }
    out->node[at] = t->node[at];
}

/* path[d] is the node at depth d that is open. */
static void find_ends(llm_trie *t, int32_t *path) {
    int32_t depth = -1;
    for (int32_t i = 0; i <= t->n_nodes; i++) {
        const int32_t to = i < t->n_nodes ? t->node[i].depth : 0;
        for (; depth >= to; depth--)
            t->node[path[depth]].end = i;
        path[++depth] = i;
    }
    t->node[t->n_nodes].end = t->n_nodes;
}

/* From the last node to the first: a run begins with a node and goes on with that of its sibling. */
static void find_runs(llm_trie *t) {
    for (int32_t i = t->n_nodes - 1; i >= 0; i--) {
        llm_trie_node *node = &t->node[i];
        const llm_trie_node *after = &t->node[node->end];
        const bool sibling = node->end < t->n_nodes && after->depth == node->depth;
        for (int k = 0; k < LLM_N_SLICE_CHARS; k++) {
            const bool joins = node->tail[k] && sibling && after->run[k];
            node->run[k] = joins && after->run[k] > node->tail[k] ? after->run[k] : node->tail[k];
            node->run_end[k] = joins ? after->run_end[k] : node->end;
        }
    }
}

bool llm_trie_sort(llm_trie *t) {
    llm_trie out = {.n_nodes = t->n_nodes, .n_texts = t->n_texts, .max_depth = t->max_depth};
    int32_t *work = ggl_calloc((size_t)t->n_nodes + (size_t)t->max_depth + 1, sizeof *work);
    out.node = ggl_calloc((size_t)t->n_nodes + 1, sizeof *out.node);
    out.id = ggl_calloc((size_t)t->n_texts, sizeof *out.id);
    const bool ok = work && out.node && out.id;
    if (ok) {
        reorder(t, &out, work);
        find_ends(&out, work);
        find_runs(&out);
        find_first(&out);
        llm_trie_fini(t);
        *t = out;
    } else {
        llm_trie_fini(&out);
    }
    ggl_free(work);
    return ok;
}
