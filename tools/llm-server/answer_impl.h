/* How a request is carried out. A job is a request; each of its choices is a sequence of the engine while it runs.
 *
 * The worker thread that has the request prepares the job (answer_prepare.c) and hands it to the engine's
 * thread, to which it belongs from then on (answer.c). It ends on that thread when its last sequence has
 * ended: the reply is ended and everything freed; if the answer is long, by a worker, so that the sequences of others
 * go on. A job whose client has gone cancels its sequences first. */
#ifndef LLM_SERVER_ANSWER_IMPL_H
#define LLM_SERVER_ANSWER_IMPL_H

#include "answer_grammar.h"
#include "answer_parts.h"
#include "answer_text.h"
#include "job_parts.h"
#include "llm/internal/label_tokens.h"
#include "server.h"

enum {
    ANSWER_MAX_CHOICES = 4096,
    ANSWER_MAX_STOPS = 512,
    ANSWER_MAX_STOP_BYTES = 1 << 16,
    ANSWER_MAX_BREAKERS = 512,
    ANSWER_MAX_BREAKER_BYTES = 1 << 16,
    ANSWER_MAX_ECHO_TOP = 200000, /* log-probabilities of prompts that answers repeat */
    ANSWER_ECHO_PIECE = 64,       /* tokens of a repeated prompt that are written at once */
    ANSWER_LONG = 1000            /* an answer with more numbers is written by a worker */
};

typedef struct job job;

struct answers {
    answer_grammars *grammars;
    memory *memory;        /* NULL: no limit */
    stream_table *streams; /* NULL if none are kept */
    answer_store *store;   /* the same */
    job *first; /* those that were handed to the engine's thread, which alone uses this list */
    size_t n;
    answers_times first_tokens;
    int64_t ping_ns; /* see answers_ping */
    /* The engine's clock. */
    int64_t (*clock)(void *ctx);
    void *clock_ctx;
};

/* A prompt as text and tokens. */
typedef struct job_prompt {
    ggl_str text;             /* as the model sees it */
    char *owned;              /* its memory; NULL: it is the request's */
    size_t n_begun;           /* bytes at its end that belong to the message that is continued */
    llm_tokens ids, types;    /* types: of a query and a document; n 0: all are 0 */
    int32_t task;             /* of a text that becomes vectors; 0: none */
    int64_t n_before;         /* tokens of its own prompt, which are not pooled */
    int32_t n_seen;           /* tokens of a filled query that others see; 0: all */
    llm_chat_changes changes; /* of a conversation */
    llm_labels *labels;       /* ASK_CHOOSE: owned */
    size_t n_beginning; /* tokens with which other conversations will begin, too; 0: not known */
} job_prompt;

/* A place for a choice that runs, used by one choice after another. There are as many as can run at once. */
typedef struct seat {
    job *job;
    int choice;          /* index; -1: it is free */
    bool is_added;       /* the engine has it */
    uint64_t id;         /* of the engine */
    llm_job_parts parts; /* what writes its text */
    llm_calls *calls;    /* of this choice; NULL: all is content */
    answer_text text;
    double *sum;    /* ASK_EMBED: of the tokens' rows (llm_head_add); NULL: there is no head */
    int64_t n_rows; /* ASK_RANK: that came */
    /* Tokens of the prompt that were not given out yet, if their log-probabilities are asked for. */
    answer_token *echo; /* [n_echo] of ANSWER_ECHO_PIECE */
    llm_logprob *echo_top;
    size_t n_echo;
    size_t echo_at; /* bytes of the prompt's text before the next token */
    int64_t n_told; /* of its prompt's tokens, as far as the client knows; -1: it knows nothing */
    bool ends_reasoning; /* the mark that ends it was forced */
    bool has_echoed;     /* the prompt's text was given out, or is not asked for */
} seat;

struct job {
    server *server;
    answers *answers;
    const dialect *dialect;
    ask *ask;
    http_reply *reply;
    answer x;
    job_prompt *prompt; /* [n_prompts] */
    char *before;       /* [n_before]: comes before each text that becomes a vector */
    size_t n_before;
    size_t n_prompts;
    float share[LLM_ARCH_MAX_TASKS]; /* [n_shares]: of its tokens in the tasks of adapters */
    size_t n_shares;
    float *scale;        /* x.scale */
    int64_t n_too_long;  /* tokens of a prompt that is longer than the context; 0 if none is */
    answer_parts *parts; /* [x.n_choices]; not of streams */
    float *embedding;    /* ASK_EMBED, ASK_RANK: x.embedding */
    seat *seat;          /* [n_seats] */
    int n_seats;
    size_t n_top; /* of ask->n_top, at most the vocabulary */
    llm_logprob *top;
    llm_candidate *candidate; /* [n_vocab], for ask->sampled_probs */
    int64_t deadline;         /* of the clock; 0: none */
    uint64_t client;
    int64_t t_start, t_said; /* when the job began, and when something was last written */
    llm_json_out out;
    size_t size;    /* about how many numbers an answer without a stream has */
    size_t n_bytes; /* that it takes, about */
    memory_hold held, matchers_held;
    char *resume_id; /* owned; NULL: the stream is not kept */
    stream_log *log; /* NULL: the same, or it has not begun */

    /* On the engine's thread. */
    llm_engine *engine;
    job *next, **at;
    int n_seated, n_running,
        n_ended; /* choices that have got a seat; that the engine has; that have ended */
    int n_holds; /* more than 0: a caller up the stack uses the job, so that it must not be freed */
    bool is_accepted, has_begun; /* the engine has a choice; a stream's status line was sent */
    bool has_first, is_over, has_failed; /* is_over: no more choices are added */
    int status;                          /* of HTTP, if it failed */
    const char *type;
    ggl_error failure;
};

/* --- on the worker's thread (answer_prepare.c) -------------------------------------------------- */

/* Makes a job; NULL: out of memory, and nothing was taken. */
job *job_new(server *s, const dialect *d, ask *a, const http_request *q, http_reply *r);
/* Checks what the request itself says, before anything takes time. *param: the field that is wrong. */
GGL_NODISCARD ggl_status job_check_limits(const job *j, const char **param, ggl_error *err);
/* Makes prompts, samplers, matchers and all else that takes time. *param: the field that is wrong. */
GGL_NODISCARD ggl_status job_prepare(job *j, const char **param, ggl_error *err);
/* Makes the prompt of a conversation (ASK_CHAT). The caller frees p->owned and p->ids, also on failure. */
GGL_NODISCARD ggl_status answer_chat_prompt(server *s, const ask *a, job_prompt *p,
                                            const char **param, ggl_error *err);
/* Sets p->n_beginning of a conversation: its prompt as far as the system's messages and the tools go. 0 if it has neither, or if that
 * cannot be said. (answer_beginning.c) */
void answer_count_beginning(server *s, const ask *a, job_prompt *p);
/* Answers a request that asks for nothing (ask.is_empty). Takes the ask and ends r. (answer_empty.c) */
void answer_empty(server *s, const dialect *d, ask *a, http_reply *r);
/* Frees all but the reply. (answers.c) */
void job_free(job *j);

/* Makes a seat ready for a choice. Any thread. */
/* Forces the end of reasoning that has taken the tokens it may take. */
GGL_NODISCARD ggl_status seat_limit_reasoning(seat *s, ggl_error *err);
GGL_NODISCARD ggl_status seat_prepare(seat *s, int choice, ggl_error *err);
void seat_clear(seat *s); /* after its choice has ended */
/* The choices that a seat has one after the other from one sequence: those of a prompt are the best texts of one search of beams. */
static inline int job_n_texts(const job *j) {
    return j->ask->beams.n > 0 ? (int)j->ask->n_choices : 1;
}
static inline job_prompt *seat_prompt(const seat *s) {
    return &s->job->prompt[s->choice / s->job->ask->n_choices];
}

/* --- memory (answer_memory.c) ------------------------------------------------------------------- */

/* Holds what the job has and will have besides its answer. GGL_NOMEM: it does not fit. */
GGL_NODISCARD ggl_status job_hold_prompts(job *j, ggl_error *err);
/* Holds what the matchers of the job have learned by now; GGL_NOMEM as above. */
GGL_NODISCARD ggl_status job_hold_matchers(job *j, ggl_error *err);
/* Returns the most tokens of an answer; -1: until the context is full. One that shifts the context could go on for ever. */
int64_t job_n_most(const job *j);
/* The length of an answer that is written by diffusion. */
int64_t job_n_diffused(const job *j, const job_prompt *p);
/* GGL_LIMIT: the answer could take more memory than one may. */
GGL_NODISCARD ggl_status job_check_size(const job *j, const char **param, ggl_error *err);
/* Holds what a part adds to an answer without a stream. False: it does not fit; the job has failed. */
bool job_hold_part(job *j, const answer_part *part);
/* Cancels all sequences of a job; ends it with an error. (answers.c) */
void job_stop(job *j);
void job_fail(job *j, const api_error *e);

/* Holds the rows of an answer and the text that they become. GGL_LIMIT: more than one answer may; GGL_NOMEM. */
GGL_NODISCARD ggl_status job_hold_vectors(job *j, int64_t n_vectors, ggl_error *err);

/* --- embeddings and scores (answer_embed.c) ----------------------------------------------------- */

/* Sets which rows each choice has, whose prompt is there, and returns their number. */
int64_t job_count_vectors(job *j);
/* Makes room for the sum of a text's rows, if its vector is made of one, and begins it. */
GGL_NODISCARD ggl_status seat_make_sum(seat *s, ggl_error *err);
void seat_begin_sum(seat *s);
/* Describes the sequence of a choice to the engine. */
void seat_embed_params(const seat *s, llm_sequence_params *p);
/* Call when its last row was computed: makes its vector or score. GGL_FORMAT: the model's numbers are not finite. */
GGL_NODISCARD ggl_status seat_end_embedding(seat *s, ggl_error *err);
/* Puts the similarity of each text to the last one, the query, in place of its vectors. */
void job_compare(job *j);

/* --- labels (answer_choose.c) ------------------------------------------------------------------- */

/* Makes the prompt of question i, and its labels. */
GGL_NODISCARD ggl_status job_choose_prompt(job *j, size_t i, const char **param, ggl_error *err);
void seat_choose_params(const seat *s, llm_sequence_params *p);
/* Call when its labels were compared. */
GGL_NODISCARD ggl_status seat_end_choose(const seat *s, ggl_error *err);

/* True if the model may call tools, or else give an answer in a given form. */
static inline bool ask_is_either(const ask *a) {
    return a->kind == ASK_CHAT && a->tools && a->tool_choice == ASK_TOOLS_AUTO &&
           (a->form == ASK_JSON || a->form == ASK_SCHEMA);
}
/* True if the grammar must complete the answer before the limit of tokens, because JSON that is cut off is of no use. Calls
 * are cut off: one that was completed early, with half a command, would look as if the model had meant it. */
static inline bool ask_is_steered(const ask *a) {
    return (a->form == ASK_JSON || a->form == ASK_SCHEMA) && a->tool_choice < ASK_TOOLS_REQUIRED &&
           !ask_is_either(a);
}

int64_t answers_now(const answers *x); /* in ns (answers.c) */

/* Says in the header X-Notes what of a conversation the prompt does not show as it was given, and which variables of the template it does not read. Before http_reply_begin. */
void answer_say_notes(const server *s, const ask *a, const llm_chat_changes *changes,
                      http_reply *r);

/* --- what is written (answer_reply.c) ----------------------------------------------------------- */

/* Keeps what a stream will write for clients that resume it. Call once the engine has a choice. */
void job_keep_stream(job *j);
/* Streams or collects a part of a choice. False: out of memory. */
bool job_give(job *j, int choice, const answer_part *part);
void job_end_choice(job *j, int choice);
void job_keep_alive(job *j);
/* Says how much of the prompts has run, if that is asked for and news. */
void job_tell_progress(job *j);
/* The same for one prompt. */
void seat_tell_progress(seat *s, int64_t n_done);
/* Writes the answer, or what went wrong, and frees the job: a long answer on a worker's thread. */
void job_end_reply(job *j);

#endif
