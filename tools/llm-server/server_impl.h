/* What the files server*.c and llm-server.c share. */
#ifndef LLM_SERVER_SERVER_IMPL_H
#define LLM_SERVER_SERVER_IMPL_H

#include <stdatomic.h>
#include <stdio.h>

#include "cache_settings.h"
#include "ggl/internal/os_thread.h"
#include "llm/internal/grammar.h"
#include "model_card.h"
#include "opening.h"
#include "options.h"
#include "rate.h"
#include "server.h"
#include "turn_queue.h"

/* A function that is to be run on the engine's thread. */
typedef struct message {
    struct message *next;
    void (*fn)(void *ctx, llm_engine *e);
    void *ctx;
} message;

/* Memory that a loaded model uses, and that measurements of free memory do not show: see library/place/fit.h. */
typedef struct used_memory {
    char device[32];
    double bytes;
} used_memory;

enum { SERVER_MEMORIES = 8 };

typedef struct looks looks; /* looks.c */

struct server {
    model *model_row; /* whose server it is; not used here */
    const char *name; /* the model's; NULL: that of its file */
    /* See library/place/fit.h; ctx: the model. NULL: there are no other models. */
    double (*taken)(void *ctx, const char *device);
    /* Gives a model of the same files that is loaded (llm_model_beside), which the caller frees; NULL: there is none. ctx: the model. NULL: there are
     * no other models. */
    llm_model *(*beside)(void *ctx, const llm_opening *o);
    /* See server_other; own: the model. NULL: there are no other models. */
    const char *(*other)(model *own, ask_kind kind);
    server_options *o;
    server_facts facts;
    int32_t fim[N_FIM];
    llm_opening opening;
    llm_context *ctx; /* without an engine */
    llm_engine *engine;
    uintptr_t engine_thread;    /* ggl_os_thread_number, while it runs */
    llm_prompt_folder *prompts; /* beginnings that are shared; NULL: none are */
    char prompts_also[LLM_CACHE_SETTINGS];
    answers *answers;
    rate prompt_rate, drawn_rate;    /* of the engine's tokens; on its thread */
    looks *looks;                    /* of a model that sees; NULL: it does not */
    turn_queue *speech;              /* of a model that hears, with one thread; NULL: it does not */
    turn *hearing;                   /* what runs there, known to that thread; NULL: nothing */
    atomic_uintptr_t hearing_thread; /* its ggl_os_thread_number; 0: it heard nothing yet */
    int n_said;                      /* texts of sounds that the engine runs; on its thread */
    char *model_info;
    double load_seconds, repack_seconds;
    used_memory
        used[SERVER_MEMORIES]; /* device "": the CPU's; the first one without bytes ends them */

    os_mutex vocab_lock;
    llm_vocab *vocab; /* made when it is needed first */

    atomic_bool is_ready; /* the model is loaded */
    atomic_bool aborts;   /* loading is to end early */
    size_t n_queue;       /* sequences that may wait; those that do, before the last step: */
    atomic_size_t n_waiting;
    bool insists;     /* it is loaded even if it does not fit into memory; set before the start */
    bool lacks_room;  /* loading has ended because it does not fit */
    char error[2048]; /* of loading */

    os_mutex lock; /* of all below */
    os_cond has_message;
    message *first, **last;
    bool ends; /* no messages are taken any more */

    os_thread thread;
    bool has_thread;
    atomic_int exit_code;    /* of loading; -1: it went well */
    void (*changed)(void *); /* called when loading has ended, from the engine's thread */
    void *changed_ctx;
};

/* --- server_load.c: on the engine's thread, before anything else --- */

/* Opens the model and all that belongs to it. Returns -1, or an exit code after a message. */
int server_load(server *s);
/* Frees it. */
void server_unload(server *s);

/* --- looks.c: see server_look --- */

/* Starts the threads on which a model looks, and, if pictures are fetched from addresses, those which fetch. At most n_most requests
 * wait. NULL: there is no memory, or no thread. */
looks *looks_new(size_t n_most, bool fetches);
/* Ends them: what runs is given up. NULL is fine. */
void looks_end(looks *l);
void looks_free(looks *l); /* after its end; NULL is fine */
/* True if the eye or ear is to give up what it looks at or hears. On the thread that uses it. */
bool looks_stops(const looks *l);
/* Around each use of the eye or ear: by this turn, which runs. */
void looks_enter(looks *l, turn_queue *of, turn *t);
void looks_leave(looks *l);

/* --- server.c --- */

/* NULL: out of memory. account: the memory that requests hold; kept: streams that can be resumed; both borrowed. `changed` is
 * called on another thread once the model is loaded, or loading has failed. */
server *server_new(server_options *o, model *m, memory *account, stream_table *kept,
                   answer_store *store, void (*changed)(void *ctx), void *ctx);
/* Starts the engine's thread, which loads the model. */
GGL_NODISCARD ggl_status server_start(server *s, ggl_error *err);
/* Ends all answers with an error, and the engine's thread. */
void server_stop(server *s);
/* After server_stop. */
void server_free(server *s);

/* True if the server does not let models of this kind write: they are encoders, or --embeddings asks for the vectors of the text that
 * they read before they write, or that they see whole and write by diffusion. */
static inline bool server_only_reads(const llm_arch *arch, const server_options *o) {
    if (model_card_hears(arch))
        return false;
    const bool diffuses = llm_arch_sees_all(arch) && llm_arch_has_output(arch, "logits");
    return diffuses || llm_arch_reads_text(arch) ? o->open.how.params.embeddings
                                                 : llm_arch_sees_all(arch);
}

/* Returns /props of a loaded model, a JSON object that lacks is_sleeping and the closing brace; NULL: out of memory. The
 * caller frees it. (server_props.c) */
char *server_props(const server *s);

/* --- endpoints.c --- */

/* For http_params; ctx is the table of models. */
bool endpoints_accept(void *ctx, const http_request *q, http_reply *r);
void endpoints_handle(void *ctx, const http_request *q, http_reply *r);
void endpoints_refuse(void *ctx, const http_request *q, http_reply *r, int status,
                      const char *sentence);

/* What the model notices beside text. */
static inline llm_senses server_senses(const server_facts *f) {
    return (llm_senses){server_sees(f), f->listens};
}

#endif
