/* A server for tests of answers: the built-in chat model, an engine, replies that are kept in memory, and an API
 * whose bytes are easy to compare. */
#ifndef TESTS_ANSWER_FIXTURE_H
#define TESTS_ANSWER_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>

#include "ggl/backends.h"
#include "llm-server/answer_impl.h"
#include "test.h"

enum { FIXTURE_CTX = 512, FIXTURE_PARALLEL = 4 };

/* What a client got. */
struct http_reply {
    int status;
    bool streams, ended;
    char media[64], retry_after[16];
    answer_bytes body;
    int n_later;              /* calls of http_reply_later */
    int n_writes, gone_after; /* the client goes after so many writes; 0: it stays */
    bool gone;
};

typedef struct posted {
    void (*fn)(void *ctx, llm_engine *e);
    void *ctx;
} posted;

struct server {
    server_facts facts;
    ggl_backend *cpu, *reference;
    llm_model *model;
    const llm_tokenizer *tokenizer;
    llm_chat *chat;
    llm_session *session;
    llm_vocab *vocab;
    llm_engine *engine;
    answers *answers;
    posted *post;
    size_t n_posts, cap_posts;
    pthread_mutex_t lock; /* of `post` and `vocab` */
    atomic_llong n_holds;
    double keep_seconds;
    uint64_t count[N_SERVER_COUNTERS];
    llm_head *head[LLM_POOL_COUNT]; /* made when they are used */
    bool embeds;                    /* it gives embeddings; set before server_open, as the next */
    const dialect *api;             /* NULL: fixture_api */
    int64_t now;     /* of the fake clock, which goes on 1 ms at each look; 0: the system's */
    size_t n_looks;  /* pictures that were looked at */
    bool looks_fail; /* they are bad */
    bool ends;       /* nothing can be posted any more */
    ggl_error err;
};

/* The API of these tests, which writes lines:
 *
 *     B                            a stream begins
 *     P choice kind hex [id:logprob:top,..]*
 *     C choice number name arguments [tokens]
 *     F choice finish stop context_full n_prompt n_drawn seed
 *     E n_prompt n_drawn n_reasoning
 *     A                            it is alive
 *     X status type message in_stream */
extern const dialect fixture_api;

bool server_open(server *s, size_t n_queue);
void server_close(server *s);
/* Runs what was posted and steps the engine until it has nothing to do, or `n_steps` were made. */
void server_run(server *s, int n_steps);

/* Asks with the server's defaults: a chat of one message; a text; nothing is random. */
ask *ask_chat(server *s, const char *message);
/* Gives it another conversation, of JSON. */
void ask_set_talk(ask *a, const char *json);
ask *ask_text(server *s, const char *text);
/* Starts an ask. The reply is owned by the caller; reply_free. */
http_reply *start(server *s, ask *a);
void reply_free(http_reply *r);
/* Starts an ask and runs it to its end. */
http_reply *answer_alone(server *s, ask *a);

/* Joins the pieces of a stream: lines "choice: content", reasoning, calls, tokens and the end for each
 * choice. A whole answer gives the same. The caller frees it. */
char *joined(const http_reply *r);
/* The content of a choice; the caller frees it. */
char *content_of(const http_reply *r, int choice);

#endif
