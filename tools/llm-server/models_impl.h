/* What models.c (rows, and requests that use them), models_manage.c (the manager's thread), models_table.c (beginning
 * and end) and models_reload.c share. */
#ifndef LLM_SERVER_MODELS_IMPL_H
#define LLM_SERVER_MODELS_IMPL_H

#include "models.h"
#include "server_impl.h"

/* A request that waits for a model. */
typedef struct waiting {
    struct waiting *next;
    models *table;
    const http_request *q;
    http_reply *r;
    model_ready *ready;
    uint64_t client;
    server *server; /* once it waits no longer; NULL: see err */
    ggl_error err;
} waiting;

struct model {
    models *table;
    char *name, *aliases; /* the aliases follow each other, each with a NUL; "" ends them */
    server_options *o, *own;
    char **words; /* the command line that it would have; NULL: the table's */
    model_card card;
    atomic_ullong count[N_SERVER_COUNTERS];

    /* Below the table's lock. */
    model_state state;
    server *server; /* while it is loading, loaded or unloading */
    int n_uses, n_peeks;
    bool has_news;   /* loading has ended */
    bool makes_room; /* another model needs its place: it takes no further requests */
    bool leaves;     /* it is to be unloaded by request */
    bool is_gone;    /* it is offered no longer */
    bool insists;    /* it is loaded even if it does not fit into memory */
    uint64_t
        wanted; /* since when it is to be loaded, as a number of the table's clock; 0: it is not */
    uint64_t
        used; /* when a request last took it, as such a number; not when its answer ended, which threads see late */
    double keep; /* seconds that it stays after its last use; less than 0: for ever */
    double idle_since;
    int64_t modified; /* see model_get_modified */
    waiting *first, **last;
    size_t n_waiting;
    uint64_t n_loads;
    char error[2048];
    bool has_failed;
    float *scale; /* [n_scales]: see model_get_scales; NULL: none */
    size_t n_scales;
    char *props;    /* see model_props */
    llm_senses has; /* see model_status */
};

struct models {
    server_options *o;
    int64_t began; /* seconds since 1970 */
    FILE *log;
    memory *memory;
    stream_table *streams;
    answer_store *store; /* NULL: --no-store */
    void (*changed)(void *ctx);
    void *changed_ctx;
    models_reader *read; /* for models_reload; NULL if none */
    int argc;
    char **argv;
    _Atomic(model_list *) list; /* of the rows that are not gone */
    atomic_flag reloads;
    atomic_ullong count[N_SERVER_COUNTERS];
    atomic_int exit_code;
    atomic_bool was_ready, drains;

    os_mutex lock; /* of all below, and of the rows */
    os_cond has_news;
    model **row; /* all that there ever were */
    size_t n, cap;
    uint64_t clock; /* counts events */
    size_t n_waiting;
    bool ends;
    os_thread manager;
    bool has_manager;
};

void model_free(model *m);
/* Makes n models the list. Without the lock only before models_start. False: out of memory. */
bool models_set_list(models *t, model *const *at, size_t n);
/* The manager's thread. arg: the table. */
void *models_manage(void *arg);
/* Takes all requests that wait for a model, to be answered by models_answer. With the lock. */
waiting *models_collect(model *m, server *s, const ggl_error *err);
/* Lets workers answer them. Without the lock. */
void models_answer(waiting *w);
/* Describes the model's failure to load. */
void models_failure(const model *m, ggl_error *err);

#endif
