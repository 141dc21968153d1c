/* The account of the memory that all requests hold together (--request-memory). Memory in proportion to what a
 * client sends, or asks for, is entered here first; a request that does not fit is refused.
 *
 *     memory_hold h = {.of = m, .use = MEMORY_BODIES};
 *     if (!memory_set(&h, n)) ...        // does not fit: h is unchanged
 *     memory_force(&h, 0);               // given back
 *
 * Any thread; a hold belongs to one at a time. */
#ifndef LLM_SERVER_MEMORY_H
#define LLM_SERVER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct memory memory;

/* What memory is held for. Each use has a part of the whole, so that none keeps all others out (memory.c). */
typedef enum memory_use {
    MEMORY_CONNECTIONS,
    MEMORY_BODIES,   /* that arrive, or wait for a worker */
    MEMORY_REQUESTS, /* as they were read: values, prompts, samplers */
    MEMORY_ANSWERS,  /* that are collected, and that wait for their clients to read them */
    MEMORY_GRAMMARS,
    MEMORY_STREAMS, /* that were sent, and may be read again */
    MEMORY_STORE,   /* answers that later requests may name */
    N_MEMORY_USES
} memory_use;

memory *memory_new(size_t most); /* bytes; NULL: out of memory */
void memory_free(memory *m);

const char *memory_name(memory_use use); /* "bodies" */
/* Bytes that a use may have, or one answer, or all together. m NULL: SIZE_MAX. */
size_t memory_most(const memory *m, memory_use use);
size_t memory_most_of_one(const memory *m);
size_t memory_most_of_all(const memory *m);
/* Bytes that it has now. */
size_t memory_held(memory *m, memory_use use);

/* Bytes that somebody holds. Zero except for `of` and `use` at first. of NULL: everything fits. */
typedef struct memory_hold {
    memory *of;
    memory_use use;
    size_t n;
} memory_hold;

/* Changes it to n bytes. False: they do not fit. */
bool memory_set(memory_hold *h, size_t n);
/* The same for memory that is there already: it always fits. */
void memory_force(memory_hold *h, size_t n);

#endif
