/* The server: a model with its session and engine, and what endpoints and answers use of it. */
#ifndef LLM_SERVER_SERVER_H
#define LLM_SERVER_SERVER_H

#include "dialect.h"
#include "http.h"
#include "llm/internal/chat.h"
#include "llm/internal/engine.h"
#include "llm/internal/head.h"
#include "store.h"
#include "streams.h"

typedef struct server server;
typedef struct models models; /* models.h */
typedef struct model model;   /* the same: one of them */

/* An endpoint (endpoints.c lists them all). */
typedef struct endpoint {
    const char *method;
    const char *path; /* one that ends with "/" and a star matches all paths with this beginning */
    /* The request is an ask, which answer_start carries out; NULL: handle answers it at once. */
    const dialect *dialect;
    void (*handle)(server *s, const http_request *q, http_reply *r);
    /* Answers requests that concern no single model. With `handle`, too, those that name none if there are several. */
    void (*handle_all)(models *t, const http_request *q, http_reply *r);
    /* Answers for a model that is not loaded, from its file. False: it has to be loaded. NULL: always. */
    bool (*handle_unloaded)(model *m, const http_request *q, http_reply *r);
    bool takes_form; /* the body is multipart/form-data */
    bool takes_list; /* the body is a list, which names no model: the query does */
    bool only_looks; /* is no use of the model, which keeps it loaded (--keep-alive) */
    const char *why; /* the reason why it is not supported, sent with status 501 */
    bool is_public;  /* needs no API key */
    bool
        needs_no_model; /* `handle_all` answers at once, also while the model is still being loaded */
} endpoint;

const server_facts *server_get_facts(const server *s);
/* A server that is held is not unloaded. Whoever has it from a caller may hold it for longer; from any thread. */
void server_hold(server *s);
void server_release(server *s);
/* How many seconds the model stays loaded after its last use; less than 0: for ever. Until the next request. */
void server_keep(server *s, double seconds);
/* Identifies the client of a request: see endpoint_client. */
uint64_t server_client(const server *s, const http_request *q);
uint64_t models_client(const models *t, const http_request *q);
const llm_chat *server_chat(const server *s); /* NULL: the model has no template */
const llm_tokenizer *server_tokenizer(const server *s);
/* How vectors are made of rows; NULL: none are. */
const llm_head *server_head(const server *s);
/* llm_embed_tokenize. */
GGL_NODISCARD ggl_status server_read_text(const server *s, ggl_str text, unsigned flags,
                                          llm_tokens *ids, ggl_error *err);
/* llm_embed_cut, of a text. */
GGL_NODISCARD ggl_status server_cut_text(const server *s, llm_tokens *ids, ggl_error *err);
/* llm_embed_count_before, of a request. */
GGL_NODISCARD ggl_status server_count_before(const server *s, const ask *a, ggl_str prompt,
                                             int64_t *n, ggl_error *err);
/* llm_fill_query. */
GGL_NODISCARD ggl_status server_fill_query(const server *s, llm_tokens *ids, int32_t *n_seen,
                                           ggl_error *err);
/* Finds the task of texts that become vectors, *number as of llm_sequence_params, and what comes before them, *before, which the caller
 * frees by ggl_free; it stays NULL if neither name is given. GGL_USAGE: there is no such task or prompt; *param is the field. */
GGL_NODISCARD ggl_status server_find_task(const server *s, const char *task,
                                          const char *prompt_name, int32_t *number, char **before,
                                          size_t *n_before, const char **param, ggl_error *err);
/* Returns the name of another model of --models that answers requests of this kind; NULL: there is none. */
const char *server_other(const server *s, ask_kind kind);
int server_n_slots(const server *s); /* of the engine */
const llm_vocab *server_vocab(
    server *s); /* made at the first call; any thread. NULL: out of memory */
const char *server_model_info(
    const server *s); /* facts of the file for /v1/models and /api/show: a JSON object */

/* Runs fn on the engine's thread between two steps, and waits for it: for answers about the engine's state, such as
 * /slots. Returns false, without calling fn, if the server is ending. */
bool server_on_engine(server *s, void (*fn)(void *ctx, llm_engine *e), void *ctx);
/* The same without waiting. Functions run in the order of the calls. */
bool server_post(server *s, void (*fn)(void *ctx, llm_engine *e), void *ctx);

/* What all answers share: the list of those in progress, and compiled grammars. The server makes it before the first
 * request, and frees it after the engine. (answers.c) */
typedef struct answers answers;
answers *answers_new(void); /* NULL: out of memory */
/* Before the first request: all of them together take their memory from m; NULL: any. (answer_memory.c) */
void answers_limit(answers *x, memory *m);
/* Before the first request: a stream on which nothing was written for these seconds gets a sign of life, which begins it; less
 * than 0: none does. Without this call ANSWERS_PING_SECONDS. */
enum { ANSWERS_PING_SECONDS = 10 };
void answers_ping(answers *x, int64_t seconds);
/* Before the first request: streams are kept there for clients that resume them; NULL if none are. */
void answers_keep(answers *x, stream_table *s);
/* Before the first request: answers are kept there for requests that name them; NULL if none are. */
void answers_store(answers *x, answer_store *s);
void answers_free(answers *x);
answers *server_answers(const server *s);
/* The server calls this on the engine's thread before each step, and at least once a second while
 * the engine waits for something: ends answers whose clients have gone, and keeps streams alive. */
void answers_tick(answers *x, llm_engine *e);
/* Call after the engine was freed: ends the answers that had no sequence in it, with an error. */
void answers_end(answers *x);
/* Number of answers in progress. Call this and the next on the engine's thread. */
size_t answers_n(const answers *x);
/* True if something runs, and nobody waits for it: the clients have gone. On the engine's thread, also within a step, which then need not go on. */
bool answers_run_for_nobody(const answers *x);
/* How long answers took to their first token. */
enum { ANSWERS_BOUNDS = 12 };
extern const double answers_bound[ANSWERS_BOUNDS]; /* in seconds, ascending */
typedef struct answers_times {
    uint64_t
        n[ANSWERS_BOUNDS +
          1]; /* times up to answers_bound[i] and above the bound before; the last: longer ones */
    double sum;
} answers_times;
const answers_times *answers_first_tokens(const answers *x);

/* Names what is ignored of a request: in a header, before http_reply_begin, and in the log. */
void server_say_ignored(const server *s, const ignored_fields *x, const http_request *q,
                        http_reply *r);

/* Numbers for /metrics, counted from any thread, for each model. */
typedef enum server_counter {
    COUNT_REQUESTS,
    COUNT_ERRORS,
    COUNT_REJECTED, /* refused because the queue was full */
    COUNT_GONE,     /* the client has disconnected before the end of the answer */
    N_SERVER_COUNTERS
} server_counter;
void server_count(server *s, server_counter which);

/* Makes the ask of a request, which may name what its client was answered before. NULL: out of memory. (answers.c) */
ask *answer_new_ask(server *s, const http_request *q);
/* Carries out a request whose body was read: prepares prompts, sampler and grammar on the calling thread, gives
 * the sequences to the engine, and answers through r. Takes the ask, also on failure, and ends r. (answer.c) */
void answer_start(server *s, const dialect *d, ask *a, const http_request *q, http_reply *r);
/* Called once pictures were looked at. e: why that failed; NULL: it did not. */
typedef void looked_fn(void *ctx, const api_error *e);
/* Looks at the pictures of a request, when it is its client's turn: sets ask.image[].seen, which stay until ask_free. The model's eye looks once at
 * equal pictures. Then calls `done`, now or on one of the workers' threads; until then nobody else uses the ask and the reply. deadline:
 * of answers_now; 0: none. (looks.c) */
void server_look(server *s, ask *a, http_reply *r, uint64_t client, int64_t deadline,
                 looked_fn *done, void *ctx);
/* Returns the dialect whose form errors have for a path, known or not. (paths.c) */
const dialect *path_errors(const char *path);
/* The same of a request: paths of both OpenAI's and Anthropic's API have the form of the one whose header it has. (paths.c) */
const dialect *request_errors(const http_request *q);
/* True if a path is that of a pattern: one that ends with a star fits all that begin so and go on; elsewhere a star fits what has no "/". (paths.c) */
bool path_fits_pattern(const char *pattern, const char *path);
/* The error with the id of the reply's request. */
api_error answer_error_of(const api_error *e, http_reply *r);
/* Answers with an error in the dialect's form. */
void answer_error(const dialect *d, const api_error *e, http_reply *r);
/* The error for a status and a sentence, which it borrows. */
api_error api_error_of(ggl_status st, const ggl_error *err, const char *param);
/* Answers with the error for a status and a sentence. (answer_error.c) */
void answer_failed(const dialect *d, ggl_status st, const ggl_error *err, const char *param,
                   http_reply *r);

/* The same for a request that could not be read. */
void answer_unread(const dialect *d, const ask *a, ggl_status st, const ggl_error *err,
                   const char *param, http_reply *r);

/* All dialects, in the files api_*.c. */
extern const dialect api_openai_chat, api_openai_completions, api_openai_responses,
    api_openai_compact, api_openai_embeddings, api_anthropic_messages, api_ollama_generate,
    api_ollama_chat, api_ollama_embed, api_ollama_embeddings, api_llamacpp_completion,
    api_llamacpp_infill, api_llamacpp_embedding, api_llamacpp_embeddings, api_rerank, api_tei_embed,
    api_decisions, api_systemone;

/* The lengths of prompts that requests would have. (answer_count.c) */
void api_anthropic_count(server *s, const http_request *q, http_reply *r);
void api_openai_chat_count(server *s, const http_request *q, http_reply *r);
void api_openai_responses_count(server *s, const http_request *q, http_reply *r);

/* Writes the name of what a request continues, which the requests of a conversation have in common: its messages as far as the
 * first one of the user, or the beginning of a text. False: it has none, as one for vectors. (answer_prefix.c) */
enum { ANSWER_PREFIX = 17 };
bool answer_prefix(const ask *a, char *text);

/* Forms with a sound. (speech.c) */
void speech_transcribe(server *s, const http_request *q, http_reply *r);
void speech_translate(server *s, const http_request *q, http_reply *r);
void speech_infer(server *s, const http_request *q, http_reply *r);

#endif
