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
    if (ok)
        fill(t, sorted, (size_t)n, path);
    else
        llm_trie_fini(t);
    ggl_free(work);
    ggl_free(path);
    return ok;
}

void llm_trie_fini(llm_trie *t) {
    ggl_free(t->node);
    ggl_free(t->id);
    *t = (llm_trie){0};
}
