#include "id_table.h"

#include "ggl/alloc.h"

static size_t bucket_of(const table *t, uint64_t key) {
    uint64_t h = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
    return (size_t)h & (t->n_buckets - 1);
}

static void push(table *t, table_node *x) {
    table_node **at = &t->bucket[bucket_of(t, x->key)];
    x->next = *at;
    *at = x;
}

bool llm_table_reserve(table *t) {
    if (t->n < t->n_buckets)
        return true;
    table old = *t;
    t->n_buckets = old.n_buckets ? 2 * old.n_buckets : 16;
    t->bucket = ggl_calloc(t->n_buckets, sizeof(table_node *));
    if (!t->bucket) {
        *t = old;
        return false;
    }
    for (size_t i = 0; i < old.n_buckets; i++)
        for (table_node *x = old.bucket[i], *next; x; x = next) {
            next = x->next;
            push(t, x);
        }
    ggl_free(old.bucket);
    return true;
}

void llm_table_put(table *t, table_node *x) {
    push(t, x);
    t->n++;
}

void *llm_table_find(const table *t, uint64_t key) {
    table_node *x = t->n_buckets ? t->bucket[bucket_of(t, key)] : NULL;
    while (x && x->key != key)
        x = x->next;
    return x;
}

void llm_table_remove(table *t, table_node *x) {
    table_node **at = &t->bucket[bucket_of(t, x->key)];
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    t->n--;
}

void llm_table_fini(table *t) {
    ggl_free(t->bucket);
    *t = (table){0};
}
