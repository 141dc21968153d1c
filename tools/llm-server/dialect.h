/* An API as a table: how a request is read, and how the answer is written. answer.c calls these; they
 * write bytes into an llm_json_out and know nothing of HTTP, threads and models. All may be called from
 * the engine's thread and must be quick. */
#ifndef LLM_SERVER_DIALECT_H
#define LLM_SERVER_DIALECT_H

#include "ask.h"
#include "common/json_write.h"
#include "llm/internal/diffuse.h"
#include "llm/internal/logprobs.h"
#include "llm/internal/pooling.h"

/* Marks for filling in the middle: before and after the gap, and for the answer; of a project and a file. */
enum { FIM_PRE, FIM_SUF, FIM_MID, FIM_REP, FIM_SEP, N_FIM };

/* What the readers of requests may know of the server. */
typedef struct server_facts {
    const char *model; /* its name in answers */
    const char *model_path;
    int64_t n_ctx, n_vocab, n_parallel;
    bool writes;         /* the model continues texts; else it makes vectors or scores of them */
    int64_t n_row;       /* numbers of a row of a picture or sound; 0: the model notices none */
    int64_t most_images; /* of a text; 0: any number */
    bool looks, listens; /* these rows are of pictures, of sounds */
    char lack
        [1024]; /* why an eye or an ear that came with the model is not open; "": none came, or it is */
    bool fetches;    /* pictures are fetched from their addresses */
    bool hears;      /* it writes down what is said in sounds, and nothing else */
    bool has_words;  /* it also shows when each word is said */
    int64_t n_embd;  /* length of an embedding; 0: the server gives none */
    int64_t n_dims;  /* how many of these numbers are given, unless others are asked for; 0: all */
    int64_t n_score; /* numbers of a score, of which the first counts; 0: the server gives none */
    ggl_error why_no_rank; /* if there are scores that rank no documents */
    bool
        sees_all; /* the model sees texts whole, so that what is cut off of a text's end changes all of it */
    bool diffuses; /* it writes them by diffusion: an answer has a length from the start */
    llm_diffusion diffusion; /* the server's defaults, with the model's mask */
    bool reads_text; /* the prompt is a text that the model reads before it writes another */
    llm_pooling pooling;
    bool
        all_vectors; /* of embeddings: each token's, as it is; pooling is LLM_POOL_MEAN, which runs all tokens */
    bool limit_is_file;          /* n_ctx is the max_seq_length of the model's settings */
    bool embeds_empty;           /* a text without tokens has a vector, too */
    bool has_chat;               /* it has a chat template */
    bool shows_tools;            /* the template shows the model what tools there are */
    bool shares_prompts;         /* beginnings are shared by files (--prompt-cache-dir) */
    bool strict_fields;          /* a field that is not known is an error */
    int64_t t_start;             /* seconds since 1970 */
    llm_sampler_params sampling; /* the server's defaults */
    bool has_seed;               /* sampling.seed is the default, too; else seeds are random */
    int64_t n_predict;           /* default of n_max */
    bool shifts;                 /* a full context loses old tokens, but the first */
    int64_t n_keep;              /* (default of ask.n_keep) */
    int64_t reasoning_budget;    /* tokens of reasoning after which it is ended; -1: no limit */
    bool raw_marks;              /* default of ask.raw_marks in OpenAI's chats */
    double max_seconds;          /* an answer that takes longer is ended; 0: no limit */
    const struct llm_tokenizer *tokenizer;
    const int32_t
        *fim; /* [N_FIM] marks for filling in the middle that the file names, or -1; NULL: none */
} server_facts;

static inline bool server_sees(const server_facts *f) { /* pictures */
    return f->n_row > 0 && f->looks;
}

/* A token of an answer with its log-probabilities. */
typedef struct answer_token {
    int32_t id;
    ggl_str text; /* may be a part of a character */
    /* Bytes at the beginning of `text` that the answer's text lacks: all of a control token, or the space that many tokenizers
     * put before a text. */
    size_t n_hidden;
    double logprob; /* NaN: not asked for, or not defined (the first token of an echoed prompt) */
    const llm_logprob *top; /* [n_top], the likeliest first */
    size_t n_top;
} answer_token;

typedef enum part_kind { PART_CONTENT, PART_REASONING, PART_CALL } part_kind;

/* A piece of a choice. A stream gives each as it comes; else pieces of one text are joined. Texts are whole UTF-8 characters. */
typedef struct answer_part {
    part_kind kind;
    ggl_str text; /* CONTENT, REASONING */
    bool begins;  /* it begins a text; else the one before goes on, if it is of this kind */
    bool
        joins; /* there was such a text before: a line break belongs between them where they become one */
    ggl_str name, arguments,
        id;   /* CALL; the id is never empty; arguments: a JSON object in one line */
    int call; /* CALL: number of the call in its choice, from 0 */
    /* CALL of dialect.takes_pieces: a piece of the arguments; only the first has name and id. `goes_on`: more pieces of this
     * call come before any other part. */
    bool is_continued, goes_on;
    const answer_token *
        token; /* [n_tokens]: the tokens of this piece, if asked for; they may end a little before or after the text */
    size_t n_tokens;
} answer_part;

typedef enum finish {
    FINISH_STOP,
    FINISH_STOP_STRING,
    FINISH_LENGTH,
    FINISH_CALLS,
    FINISH_CANCELLED,
    FINISH_DEADLINE
} finish;

typedef struct answer_choice {
    int index;         /* 0 .. n_prompts * n_choices - 1 */
    answer_part *part; /* [n_parts]: not in streams */
    size_t n_parts;
    finish finish;
    ggl_str stop;      /* FINISH_STOP_STRING: which */
    bool context_full; /* FINISH_LENGTH: the context was full before n_max */
    bool has_shifted;  /* it has lost tokens, because the context was full */
    int64_t n_prompt, n_reused, n_drawn, n_guessed, n_right;
    double prompt_s, generate_s; /* seconds */
    uint64_t seed;
    int slot; /* the engine's slot in which it ran; before its end, the requested one; -1: any */
    ggl_str prompt;                  /* its text, as the model saw it */
    int64_t first_vector, n_vectors; /* rows of answer.embedding; one, unless facts.all_vectors */
} answer_choice;

typedef struct answer_counts { /* of all choices; a prompt of several choices counts once */
    int64_t n_prompt, n_reused, n_drawn, n_reasoning;
    int64_t n_sound;         /* of n_prompt: rows of sounds */
    double total_s, first_s; /* seconds since the request, and until the first token */
} answer_counts;

typedef struct answer {
    const ask *ask;
    const server_facts *facts;
    char id[40];           /* random letters and digits, without any API's prefix */
    int64_t created;       /* seconds since 1970 */
    answer_choice *choice; /* [n_choices] */
    int n_choices;
    answer_counts counts; /* complete at `end` and `whole` */
    const float *scale;   /* [n_scales] of the adapters, in the order of --lora */
    size_t n_scales;
    const float *
        embedding; /* ask_has_rows: the rows of all choices, each [answer_width]; ASK_CHOOSE: a row for each label */
    void *own; /* what the dialect keeps between calls: own_size zeroed bytes */
} answer;

/* Returns how many numbers a row has: of a vector, or of a score. */
static inline int64_t answer_width(const answer *x) {
    return x->ask->kind == ASK_RANK     ? x->facts->n_score
           : x->ask->kind == ASK_CHOOSE ? 1
                                        : x->facts->n_embd;
}
/* Returns how many of them are given. */
static inline int64_t answer_dims(const answer *x) {
    const bool of_texts = x->ask->kind == ASK_EMBED && !x->facts->all_vectors;
    return x->ask->n_dims > 0                 ? x->ask->n_dims
           : of_texts && x->facts->n_dims > 0 ? x->facts->n_dims
                                              : answer_width(x);
}

typedef struct api_error {
    int status; /* of HTTP */
    const char *
        type; /* a name of the kind of error: "invalid_request", "not_found", "authentication", "permission", "too_large",
                       * "rate_limit", "overloaded", "timeout", "server_error", "unsupported", "too_long": the prompt has
                       * n_prompt tokens, more than the n_ctx of the context */
    const char *message; /* one sentence */
    const char *param;   /* the field it is about; NULL: none */
    const char *
        request_id; /* of the answer's header request-id, which Anthropic's errors repeat; NULL: none */
    const char *code; /* the API's own name of the error; NULL: it follows from the type */
    int64_t n_prompt, n_ctx;
} api_error;

typedef struct dialect {
    const char *name; /* for logs and metrics */
    const char
        *stream_type; /* "text/event-stream" or "application/x-ndjson"; NULL: it never streams */
    /* Fills the ask from a->doc->root. After an error *param is the field that is wrong (a static string, or in the
     * arena). A field that is not known goes into a->ignored; one that is known and not supported is an error that names
     * it, if to ignore it would change what the request means. GGL_USAGE, GGL_UNSUPPORTED,
     * GGL_FORMAT and GGL_LIMIT become status 400, GGL_NOT_FOUND 404. */
    ggl_status (*read)(ask *a, const server_facts *facts, const char **param, ggl_error *err);
    /* Without a stream: writes the body. */
    void (*whole)(const answer *x, llm_json_out *out);
    /* At the end of a stream: writes the same, to be kept (store.h). NULL: answers are not kept. */
    void (*kept)(const answer *x, llm_json_out *out);
    const char *id_prefix; /* of an answer's id; NULL unless answers are kept */
    /* Streams; NULL: nothing is written there. */
    void (*begin)(const answer *x, llm_json_out *out);
    void (*part)(const answer *x, const answer_choice *c, const answer_part *p, llm_json_out *out);
    void (*end_choice)(const answer *x, const answer_choice *c, llm_json_out *out);
    void (*end)(const answer *x, llm_json_out *out);
    /* Writes something into a stream from time to time while the prompt runs, so that no proxy closes it. NULL: nothing. */
    void (*alive)(const answer *x, llm_json_out *out);
    /* Says in a stream, in place of a piece, how much of a prompt has run: n_done tokens of c->n_prompt, c->n_reused of which
     * did not have to. NULL: nothing. */
    void (*progress)(const answer *x, const answer_choice *c, int64_t n_done, llm_json_out *out);
    /* An error: as the body, or, in a stream that has begun, as an event. */
    void (*error)(const api_error *e, bool in_stream, llm_json_out *out);
    bool takes_pieces; /* in streams, calls of tools come in pieces while they are written */
    size_t own_size;
    const struct field *fields; /* the table of the request's fields, for documents and tests */
} dialect;

/* --- asks (dialect.c) --------------------------------------------------------------------------- */

/* Makes an ask with the server's defaults: one choice, n_predict tokens, no log-probabilities, any slot.
 * NULL: out of memory. The caller sets `doc`, whose text must live as long. */
ask *ask_new(const server_facts *facts);
void ask_free(ask *a); /* also doc and arena. NULL is fine. */

uint64_t random_number(void);
/* n random letters and digits, and a NUL. */
void random_text(char *text, size_t n);

/* GGL_UNSUPPORTED: the server gives a vector for each token, which only llama.cpp's /embedding can have. */
GGL_NODISCARD ggl_status embed_needs_pooling(const server_facts *facts, ggl_error *err);

/* --- for the readers (read_fields.c) ------------------------------------------------------------ */

/* How a field of a request is read: into the ask at `at`, by its kind. Numbers lie in min .. max (min = max:
 * any that fit); 7.0 is an integer, too. */
typedef enum field_kind {
    FIELD_BOOL,   /* bool */
    FIELD_INT,    /* int64_t; at most 53 bits */
    FIELD_INT32,  /* int32_t */
    FIELD_FLOAT,  /* float */
    FIELD_DOUBLE, /* double */
    FIELD_STRING, /* ggl_str */
    FIELD_SEED,   /* sampling.seed and has_seed; -1: random */
    FIELD_STOPS,  /* a string or a list of strings, into stop; none may be empty */
    /* logit_bias into sampling.bias, as OpenAI and llama.cpp have it: {"ID": bias, "text": bias, ..} or
     * [[id, bias], ["text", bias], ..]. A text stands for each of its tokens, false for minus infinity. */
    FIELD_BIAS,
    FIELD_FN,      /* calls fn */
    FIELD_IGNORED, /* has no effect here whatever it says, such as "user": accepted */
    FIELD_REFUSED  /* an error with `why`, unless it is null, or `fn` accepts it */
} field_kind;

typedef struct field {
    const char *name;
    field_kind kind;
    size_t at; /* offset in the ask */
    double min, max;
    ggl_status (*fn)(ask *a, const json_value *v, const server_facts *facts, ggl_error *err);
    const char *why; /* REFUSED: what to do instead, as in "give the messages again" */
} field;

/* Rows: {"n", FIELD_INT, .at = FIELD_AT(n_choices), .min = 1, .max = 128}, {"user", .kind = FIELD_IGNORED}. */
#define FIELD_AT(member) offsetof(ask, member)

/* Reads an object by a table that ends with an empty row, in the order of the table. null is as if the field
 * were absent, except for FIELD_FN rows of min = 1. *param becomes the name of the field that is wrong.
 * GGL_USAGE: an unknown name ("unknown field \"temprature\"; did you mean \"temperature\"?"), a value of the wrong
 * kind or out of range; GGL_UNSUPPORTED: a refused field; GGL_LIMIT: far too many unknown names; GGL_NOMEM; and what fn
 * returns. Without a->ignored.strict, unknown names are no errors. Time is linear in the object. */
GGL_NODISCARD ggl_status read_fields(ask *a, const json_value *object, const field *table,
                                     const server_facts *facts, const char **param, ggl_error *err);

enum { FIELD_NOT = 72 };
/* Writes what a value is, for the end of a message: ", not \"value\"". v NULL: "". Returns got. */
const char *field_not(const json_value *v, char got[FIELD_NOT]);
/* Fails with "\"name\" must be `wanted`, not \"value\"". v NULL: there is no value. */
ggl_status field_wrong(ggl_error *err, const char *name, const json_value *v, const char *wanted);

/* Says that an object in the one under way is read from now on, by its name or a path with dots, until fields_leave gets what this
 * returns; "": it is the same object. read_fields does it for what its functions read. Not after a failure: nothing more is read then. */
size_t fields_enter(ignored_fields *x, const char *name);
void fields_leave(ignored_fields *x, size_t before);
/* Writes down that a name of the request, or `of`.name, is ignored. `of` NULL: of the object that was entered. Only what a header may
 * carry is written. GGL_LIMIT: there were too many. */
GGL_NODISCARD ggl_status fields_ignore(ignored_fields *x, const char *of, ggl_str name,
                                       ggl_error *err);

#endif
