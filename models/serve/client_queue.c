#include "client_queue.h"

#include "ggl/alloc.h"

/* --- the ring of clients ---------------------------------------------------------------------- */

/* The new client's turn comes after those of all others. */
static void join(queue *q, client *c) {
    llm_table_put(&q->clients, &c->node);
    if (!q->turn) {
        q->turn = c->prev = c->next = c;
        return;
    }
    c->next = q->turn;
    c->prev = q->turn->prev;
    c->prev->next = c->next->prev = c;
}

static void leave(queue *q, client *c) {
    llm_table_remove(&q->clients, &c->node);
    c->prev->next = c->next;
    c->next->prev = c->prev;
    if (q->turn == c)
        q->turn = c->next == c ? NULL : c->next;
    ggl_free(c);
}

/* NULL: out of memory. */
static client *find_client(queue *q, uint64_t key) {
    client *c = llm_table_find(&q->clients, key);
    if (c)
        return c;
    if (!llm_table_reserve(&q->clients))
        return NULL;
    c = ggl_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->node.key = key;
    join(q, c);
    return c;
}

/* --- tasks ------------------------------------------------------------------------------------ */

bool llm_queue_add(queue *q, task *t) {
    client *c = find_client(q, t->p.client);
    if (!c)
        return false;
    t->client = c;
    t->prev = c->last;
    t->next = NULL;
    if (c->last)
        c->last->next = t;
    else
        c->first = t;
    c->last = t;
    c->n++;
    q->n++;
    return true;
}

size_t llm_queue_n_of(const queue *q, uint64_t key) {
    const client *c = llm_table_find(&q->clients, key);
    return c ? c->n : 0;
}

void llm_queue_put_back(queue *q, task *t) {
    task *prev = NULL, *next = q->preempted;
    for (; next && next->turn < t->turn; next = next->next)
        prev = next;
    t->client = NULL;
    t->prev = prev;
    t->next = next;
    if (next)
        next->prev = t;
    if (prev)
        prev->next = t;
    else
        q->preempted = t;
    q->n++;
}

task *llm_queue_first(const queue *q) {
    return q->preempted ? q->preempted : q->turn ? q->turn->first : NULL;
}

task *llm_queue_take(queue *q) {
    task *t = llm_queue_first(q);
    if (t && t->client)
        q->turn = t->client->next;
    if (t)
        llm_queue_remove(q, t);
    return t;
}

void llm_queue_remove(queue *q, task *t) {
    client *c = t->client;
    task **first = c ? &c->first : &q->preempted;
    if (t->prev)
        t->prev->next = t->next;
    else
        *first = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else if (c)
        c->last = t->prev;
    t->prev = t->next = NULL;
    t->client = NULL;
    q->n--;
    if (c)
        c->n--;
    if (c && !c->first)
        leave(q, c);
}

static void each_from(task *t, void (*fn)(void *ctx, task *t), void *ctx) {
    for (task *next; t; t = next) {
        next = t->next;
        fn(ctx, t);
    }
}

void llm_queue_each(queue *q, void (*fn)(void *ctx, task *t), void *ctx) {
    each_from(q->preempted, fn, ctx);
    /* a client leaves, and is freed, when its last task is removed */
    size_t n_clients = q->clients.n;
    for (client *c = q->turn, *next; n_clients > 0; c = next, n_clients--) {
        next = c->next;
        each_from(c->first, fn, ctx);
    }
}

void llm_queue_fini(queue *q) {
    llm_table_fini(&q->clients);
}
