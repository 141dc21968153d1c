/* Waiting tasks. Clients take turns; the tasks of one client keep their order. Tasks that have run and were
 * preempted come first. */
#ifndef LLM_CLIENT_QUEUE_H
#define LLM_CLIENT_QUEUE_H

#include "task.h"

/* A client with waiting tasks. */
typedef struct client {
    table_node node; /* key: llm_sequence_params.client */
    task *first, *last;
    size_t n;                   /* tasks */
    struct client *prev, *next; /* in the ring of turns */
} client;

typedef struct queue {
    table clients;
    client *turn;    /* the next to get a place; NULL: there are no clients */
    task *preempted; /* preempted tasks, the one that began first at the front */
    size_t n;        /* tasks, including preempted ones */
} queue;

/* Adds a task at the end of its client's row. False: out of memory. */
bool llm_queue_add(queue *q, task *t);
/* Adds a task that was preempted. */
void llm_queue_put_back(queue *q, task *t);
/* Returns how many tasks of a client wait, without preempted ones. */
size_t llm_queue_n_of(const queue *q, uint64_t client);
/* The next task; NULL: none waits. */
task *llm_queue_first(const queue *q);
/* Takes out the next task, which gets a place. The turn passes to the next client. NULL: none
 * waits. */
task *llm_queue_take(queue *q);
/* Takes out a task that gets no place. Its client keeps the turn as long as it has other tasks. */
void llm_queue_remove(queue *q, task *t);
/* Calls fn for each task, which may remove that task. */
void llm_queue_each(queue *q, void (*fn)(void *ctx, task *t), void *ctx);
/* The queue must be empty. */
void llm_queue_fini(queue *q);

#endif
