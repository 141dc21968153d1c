/* A hash table of objects with numbers as keys. Each object contains its node, so llm_table_put
 * cannot fail after llm_table_reserve. */
#ifndef LLM_ID_TABLE_H
#define LLM_ID_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of each object. */
typedef struct table_node {
    uint64_t key;
    struct table_node *next; /* in its bucket */
} table_node;

typedef struct table {
    table_node **bucket;
    size_t n_buckets, n; /* n_buckets: 0 or a power of two */
} table;

/* Makes room for one more object. False: out of memory. */
bool llm_table_reserve(table *t);
/* There must be room, and no other object with this key. */
void llm_table_put(table *t, table_node *x);
/* NULL if none. */
void *llm_table_find(const table *t, uint64_t key);
/* x must be in it. */
void llm_table_remove(table *t, table_node *x);
void llm_table_fini(table *t);

#endif
