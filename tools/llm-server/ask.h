/* A request, in the same form for all APIs: each API's reader (dialect.h) fills an ask, and answer.c carries
 * it out. */
#ifndef LLM_SERVER_ASK_H
#define LLM_SERVER_ASK_H

#include "common/json.h"
#include "llm/internal/beams.h"
#include "llm/internal/diffuse.h"
#include "llm/internal/sampler.h"
#include "llm/internal/talk.h"
#include "llm/internal/tokenizer.h"
#include "memory.h"

typedef enum ask_kind {
    ASK_CHAT, /* messages go through the model's chat template; the answer is read by llm/internal/calls.h */
    ASK_TEXT,  /* texts or tokens are continued */
    ASK_EMBED, /* texts or tokens become vectors */
    ASK_RANK,  /* texts get scores: how well each answers the query */
    ASK_CHOOSE /* questions get the probabilities of their labels */
} ask_kind;

/* ASK_CHOOSE: a question, and the labels that may answer it. */
typedef struct ask_question {
    enum { ASK_YES_NO, ASK_OPTION, ASK_LEVEL } type;
    ggl_str name; /* s NULL: it has none */
    ggl_str text; /* the message */
    ggl_str *label;
    size_t n_labels;
    const json_value *from; /* as the request has it */
} ask_question;

/* A text or tokens to continue: `text`, or with text.s NULL ids. */
typedef struct ask_prompt {
    ggl_str text;
    const int32_t *id;
    size_t n;
} ask_prompt;

/* What the answer must fit. */
typedef enum ask_form { ASK_ANY, ASK_JSON, ASK_SCHEMA, ASK_GBNF } ask_form;

typedef enum ask_tools {
    ASK_TOOLS_AUTO,     /* the model decides */
    ASK_TOOLS_NONE,     /* it is not shown the tools */
    ASK_TOOLS_REQUIRED, /* the answer is a call of one of them, by a grammar, */
    ASK_TOOLS_NAMED     /* or of the one that `tool` names */
} ask_tools;

/* A picture or a sound: the bytes of its file, or where it is (api_images.h). */
typedef struct ask_image {
    unsigned char
        *bytes; /* [n], owned; NULL: it is yet to be fetched from `url`, or was looked at */
    size_t n;
    const char *url;
    bool is_sound;
} ask_image;

/* The names in a request that this server does not know. */
typedef struct ignored_fields {
    bool strict;     /* such a name is an error */
    size_t n;        /* how many there were, */
    char names[240]; /* each once, with ", " between them; ".." stands for those without room */
    char within
        [56]; /* the path of the object that is read now (fields_enter); "": the request itself */
} ignored_fields;

/* What the server keeps of the request and its answer, for later requests that name it. The texts are in `arena`. */
typedef struct ask_keeping {
    bool is_wanted;
    const char *parent;       /* the id of what it follows; NULL: nothing */
    const char *conversation; /* the id of the conversation to which it is added; NULL: none */
    ggl_str sent, fixed;      /* as in store.h */
} ask_keeping;

/* Zero, except for the defaults that ask_new sets. Everything points into `doc`, or into `arena`. */
typedef struct ask {
    llm_json *doc;              /* the request's body */
    char *body;                 /* the text of doc, owned; NULL: it is in `arena` */
    memory_hold held;           /* for all that the request holds */
    size_t n_held_doc;          /* its part for doc and body */
    size_t n_body;              /* bytes of doc's text */
    struct answer_store *store; /* earlier answers (store.h); NULL: none are kept */
    uint64_t owner;             /* whose answers the request may name */
    ask_keeping keep;
    size_t n_named;    /* bytes of kept texts that were read for it */
    size_t n_recalled; /* the first items or messages of doc, which the request has named */
    const char *code;  /* of an error while it is read, if the API has a name for it; static */
    ggl_arena arena;
    ignored_fields ignored;
    ask_kind kind;
    bool
        is_empty; /* nothing is asked for, as by clients that load a model: the answer has no choices */
    const char *model; /* as the client named it, to be repeated; NULL: the server's name for it */
    bool stream;
    bool stream_usage; /* the stream ends with counts of tokens */

    /* ASK_CHAT: messages, tools and further variables of the template; owned. Its values are in `doc` and `arena`. */
    llm_talk *talk;
    const char *
        talk_name; /* the request's field that the conversation or the texts are from; NULL: "messages", "input" or "prompt" */
    const json_value *tools; /* a list in OpenAI's form; NULL: none */
    ask_tools tool_choice;
    ggl_str tool;     /* ASK_TOOLS_NAMED */
    bool whole_calls; /* in streams, too, each call is one part */
    bool one_call;    /* at most one call in an answer (parallel_tool_calls: false) */
    bool continues;   /* the last message is the beginning of the answer, to be continued */
    bool no_turn;     /* the prompt ends after the last message: no turn of the assistant begins */
    bool raw_marks;   /* reasoning and calls stay in the text: the answer is all content */
    /* ASK_TEXT, ASK_EMBED; ASK_RANK: the documents */
    ask_prompt *prompt;
    size_t n_prompts;
    ask_question *question; /* ASK_CHOOSE: [n_prompts] */
    bool echo;              /* the answer begins with the prompt, also its log-probabilities */
    /* ASK_EMBED, ASK_RANK */
    bool truncates;        /* texts that are longer than the context are cut */
    bool no_parse_special; /* what looks like a special token in a text is text */
    int64_t n_dims;        /* the first numbers of a vector that are given; 0: all */
    const char *
        task; /* of the adapters for tasks, and whose prompt comes before texts; NULL: the default */
    const char *
        prompt_name; /* the model's prompt of this name comes before texts; NULL: none, or the task's */
    bool keeps_length; /* vectors are not brought to length 1 */
    ggl_str query;     /* s NULL: there is none; ASK_CHOOSE: what the questions are about */
    bool
        compares; /* the last text is the query, and the others get its similarity: texts have a vector for each token */
    int64_t top_n;      /* documents that are given, the best; 0: all */
    bool returns_texts; /* with their texts */
    bool
        raw_scores; /* scores as the model computes them, in a form that otherwise has shares of 1 */

    int64_t n_choices;           /* for each prompt; 1 .. 128 */
    int64_t n_max;               /* tokens to draw; -1: until the context is full */
    int64_t n_keep;              /* tokens that a full context keeps; -1: the prompt */
    int64_t reasoning_budget;    /* tokens of reasoning, after which it is ended; -1: no limit */
    llm_sampler_params sampling; /* seed: of the first choice, each further one has one more */
    llm_diffusion diffusion;     /* the schedule */
    llm_beams_params beams;      /* n 0: tokens are drawn, unless wants_beams, then n_choices are */
    bool wants_beams;            /* vLLM's way to ask for them */
    bool has_seed;               /* without it a random one is taken */
    ggl_str *stop;
    size_t n_stops;
    bool stop_in_text; /* a stop string that was found belongs to the answer */
    bool ignore_eos;
    const json_value *
        lora; /* scales of adapters (server_adapters.h), checked later; NULL: those of all requests */
    int n_top;          /* log-probabilities: -1: none, else of the token and the n_top likeliest */
    bool sampled_probs; /* of the sampler's candidates in place of the model's own */
    ask_form form;
    ggl_str form_text; /* the schema's JSON text, or the grammar */
    double seconds;    /* the answer must be complete by then; 0: the server's limit */
    bool no_cache; /* all of the prompt is run: what other sequences have computed is not used */
    bool shows_prompt;    /* the answer has the prompt as the model saw it */
    bool return_progress; /* a stream says how much of the prompt has run */
    bool return_tokens;   /* parts carry the ids of their tokens */
    int only_slot;        /* -1: any */
    bool has_keep;        /* the model stays loaded for a time after its last use: */
    double keep_seconds;  /* less than 0: for ever */
    void *own;            /* of the dialect, in `arena` */

    size_t
        n_digits; /* bytes of long runs of such characters as pictures' digits are, which were not counted as text yet */
    bool sees, fetches; /* it may have pictures, also by their address */
    bool listens;       /* it may have sounds */
    const char *lack;   /* server_facts.lack; NULL: it is not known */
    ask_image *image;   /* [n_images] */
    size_t n_images, cap_images;
    size_t n_image_text; /* bytes of `doc` that are pictures' digits */
    size_t n_rows;       /* that they became, as far as they were looked at */
    size_t n_sound_rows; /* of n_rows: those of sounds */
    char image_key[33];  /* the beginning of their marks */
    /* Lets go of what the server keeps of them, `looked`. NULL: it keeps nothing. */
    void (*unsee)(struct ask *a);
    /* Appends the tokens that stand for number i of them, which was looked at, behind those of the text so far. Any thread. */
    ggl_status (*append_seen)(const struct ask *a, size_t i, llm_tokens *ids, ggl_error *err);
    void *looked;
} ask;

/* What reading a request takes: its text and JSON values, which are counted by their marks; */
size_t ask_doc_bytes(ggl_str body);
/* what n bytes, of which n_image are the digits of pictures, may take at most: these are decoded, all else is rendered and
 * tokenized; */
size_t ask_reading_bytes(size_t n, size_t n_image);
/* how many bytes of it may be the digits of pictures: those of long runs of such characters, in which a slash may be escaped. */
size_t ask_digit_bytes(ggl_str body);

/* What a byte of text may take while it is rendered and tokenized, as far as seen. */
enum { ASK_TEXT_BYTES = 40 };
/* Holds memory for a text of n bytes that is tokenized while the request is read, unless it is held already. GGL_NOMEM. (dialect.c) */
GGL_NODISCARD ggl_status ask_hold_text(ask *a, size_t n, ggl_error *err);

/* Frees the files of the pictures, which were looked at. (dialect.c) */
void ask_drop_files(ask *a);

/* True if the answer is rows of numbers that the model computes: vectors, scores, or probabilities of labels. */
static inline bool ask_has_rows(const ask *a) {
    return a->kind == ASK_EMBED || a->kind == ASK_RANK || a->kind == ASK_CHOOSE;
}

#endif
