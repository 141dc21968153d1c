/* The models that a server offers: a table with a row for each. Some are loaded. Without --models it has one
 * row, which is loaded at the start.
 *
 * A row is loaded when a request names it. Requests that come meanwhile wait here, without a thread. One thread, the
 * manager, decides which model is loaded or unloaded next; each model is loaded on the thread of its own engine. Models
 * are loaded one after the other. A model that answers is never unloaded: each request holds it (models_take,
 * server_release). If a model needs room, the one that was asked for least recently gets no further requests until it has been
 * unloaded. */
#ifndef LLM_SERVER_MODELS_H
#define LLM_SERVER_MODELS_H

#include <stdio.h>

#include "model_card.h"
#include "options.h"
#include "server.h"

/* A model is a row, which lives as long as the table. */

/* NULL: out of memory. o: the command line's, borrowed. log: for requests; may be NULL. `changed` is called on another thread
 * when the only model is loaded, or its loading has failed. Rows are added before models_start. */
models *models_new(server_options *o, FILE *log, void (*changed)(void *ctx), void *ctx);
/* Adds a row. o: its flags, whose words are in `words` (NULL ends them); the table frees both, also
 * on failure. NULL: the flags of the table. aliases: further names, separated by commas, or NULL. GGL_USAGE: a
 * name is in use. */
GGL_NODISCARD ggl_status models_add(models *t, const char *name, const char *aliases,
                                    server_options *o, char **words, const model_card *card,
                                    ggl_error *err);
/* Returns the row of exactly that name; NULL if none. */
model *models_find_exactly(const models *t, const char *name);
/* Adds rows. Returns -1, or an exit code after a message. */
typedef int models_reader(models *t, int argc, char **argv);
/* For models_reload: the function that adds the rows, and the command line that it reads, which is borrowed. */
void models_set_reader(models *t, models_reader *read, int argc, char **argv);
/* Lets a row be loaded at the start. */
void model_want(model *m);
GGL_NODISCARD ggl_status models_start(models *t, ggl_error *err);
/* Ends all answers, and all requests that wait, with an error. */
void models_stop(models *t);
/* After models_stop. NULL is fine. */
void models_free(models *t);

const server_options *models_options(const models *t);
memory *models_memory(const models *t); /* what all requests hold, of all models */
stream_table *models_streams(const models *t);
answer_store *models_store(const models *t); /* NULL: answers are not kept */
/* Writes a warning to the log, or, if there is none, to standard error. */
void models_warn(const models *t, const char *text);
/* The same as server_say_ignored. */
void models_say_ignored(const models *t, const ignored_fields *x, const http_request *q,
                        http_reply *r);
/* The models that are offered, in their order. A list never changes, and lives as long as the table: a later one may have other models. */
typedef struct model_list {
    struct model_list *older;
    size_t n;
    model *at[];
} model_list;
const model_list *models_get_list(const models *t);
/* Reads again what --models names. Models that have the same flags and file as before stay as they are, loaded or not. Those
 * that are gone are unloaded when their answers have ended. GGL_USAGE: there is no --models; GGL_LIMIT: another thread does it
 * now, or the table is not started; else what is wrong with the folder or file, and nothing changes. (models_reload.c) */
GGL_NODISCARD ggl_status models_reload(models *t, ggl_error *err);
/* True without --models: there is one model, which every name means. */
bool models_is_single(const models *t);
/* When the table was made, in seconds since 1970. */
int64_t models_get_began(const models *t);
/* True once the only model has been loaded for the first time, or if there is --models. */
bool models_is_ready(const models *t);
/* Whether a balancer should send requests. */
typedef enum models_readiness {
    MODELS_READY,
    MODELS_LOADING,
    MODELS_DRAINING,
    MODELS_FULL /* a further request would have no place in the queue */
} models_readiness;
models_readiness models_get_readiness(models *t);
/* The server is about to end: it is ready no longer. */
void models_drain(models *t);
/* The only model could not be loaded: its exit code; -1: nothing of that kind. */
int models_exit_code(const models *t);

/* Returns the model of a name: any name if there is only one model without --models. An Ollama tag ":latest" may
 * follow. name NULL: the only row. On failure NULL, with a message. */
model *models_find(const models *t, const char *name, ggl_error *err);
/* The same, but the only model, too, must be called by its name or an alias. name: not NULL. */
model *models_find_named(const models *t, const char *name, ggl_error *err);

/* Called when the model is ready for a request that waited. s: held for it; NULL: loading failed, see err. */
typedef void model_ready(models *t, server *s, const ggl_error *err, const http_request *q,
                         http_reply *r);
/* Holds a model for a request of a client (server_client): *s is its server, if it is loaded. Else *s is NULL, the model is loaded, and
 * `ready` is called on one of the workers. GGL_LIMIT: too many requests wait already. */
GGL_NODISCARD ggl_status models_take(model *m, server **s, uint64_t client, const http_request *q,
                                     http_reply *r, model_ready *ready, ggl_error *err);
/* Holds the server of a model only to look at it: it is not loaded for that, and the time since its last use goes
 * on. NULL: it is not loaded. */
server *model_peek(model *m);
void model_unpeek(server *s);

typedef enum model_state {
    MODEL_UNLOADED,
    MODEL_LOADING,
    MODEL_LOADED,
    MODEL_UNLOADING
} model_state;
extern const char *const model_state_names[];

typedef struct model_status {
    model_state state;
    bool has_failed;     /* it could not be loaded the last time; `error` says why */
    int n_uses;          /* requests that hold it */
    size_t n_waiting;    /* requests that wait for it */
    double seconds_left; /* until it is unloaded; less than 0: not by time */
    uint64_t n_loads;
    llm_senses has; /* before it was loaded for the first time, as its card says */
    char error[2048];
} model_status;
model_status model_get_status(model *m);
/* Returns what server_props gave when the model was unloaded the last time; NULL: it never was, or memory ran out.
 * The caller frees it. */
char *model_props(model *m);
models *model_table(const model *m);
/* Returns the bytes that the other loaded models use: see library/place/fit.h. ctx: the model. */
double model_taken(void *ctx, const char *device);
/* Makes one of the same files that another row has loaded, unless these have changed since; see server.beside. ctx: the model. */
llm_model *model_beside(void *ctx, const struct llm_opening *o);
const char *model_name(const model *m);
const char *model_alias(const model *m, size_t i); /* NULL: there are not that many */
const model_card *model_get_card(const model *m);  /* it never changes */
/* Returns when a model that is not loaded was made, in seconds since 1970: when its file was changed; without --models, when the
 * model was last loaded. 0: unknown. */
int64_t model_get_modified(const model *m);
const server_options *model_options(const model *m);

/* The scales of the n adapters of the command line that POST /lora-adapters has set for the model; they last as long as the row, also while the model is not
 * loaded. get: false, and nothing is set, if there are none. */
bool model_get_scales(model *m, float *scale, size_t n);
GGL_NODISCARD ggl_status model_set_scales(model *m, const float *scale, size_t n, ggl_error *err);

/* For POST /models/load and /models/unload. A model that is in use is unloaded when its answers have ended. */
void model_load(model *m);
/* False: it is not loaded. */
bool model_unload(model *m);

/* Counts for a model, or, with m NULL, requests that named none. */
void models_count(models *t, model *m, server_counter which);
uint64_t models_get_count(const models *t, const model *m, server_counter which);

#endif
