/* What OpenAI's APIs have in common. api_openai_talk.c reads messages, tools and formats, api_openai_write.c
 * writes what all answers have. */
#ifndef LLM_SERVER_API_OPENAI_H
#define LLM_SERVER_API_OPENAI_H

#include "api_talk.h"
#include "fields_sampling.h"

/* A tool of a request. */
typedef struct openai_tool {
    ggl_str shown; /* the name that the model sees: of a tool in a namespace "NAMESPACE__NAME" */
    ggl_str name, space;    /* space.n 0: it is in none */
    const json_value *tool; /* as the request has it */
    bool
        is_custom; /* free text in place of arguments: the model sees a function of one string, "input" */
    bool used; /* the model is shown it */
} openai_tool;

/* Before reasoning that is given as "encrypted_content" of responses. */
#define OPENAI_PLAIN "plain text: "

/* What these dialects keep in ask.own. */
typedef struct openai_own {
    ggl_arena *arena; /* the ask's */
    bool has_max;     /* n_max was set by the field `max_field` */
    const char *max_field;
    bool timings_per_token; /* each chunk of a stream has timings */
    bool base64;            /* embeddings as text */
    bool lists;             /* embeddings in the form of llama.cpp */
    bool logprobs;          /* chat: `logprobs` is true */
    int64_t top_logprobs;   /* -1: not given */
    openai_tool *tool;      /* [n_tools], if the model is shown any */
    size_t n_tools;
    struct ranked *ranked; /* api_rerank.c: the documents, to be sorted */
    bool is_tei;           /* in the form of Text Embeddings Inference */
    bool summarizes;       /* responses: the reasoning is its own summary, too */
    bool carries_thoughts; /* the same: "encrypted_content" has the reasoning, in plain text */
    bool this_turn_only;   /* the same: the model sees no reasoning of earlier turns */
    bool compacts;         /* the same: the answer sums up the conversation */
    int64_t *offset;       /* completions with log-probabilities: [choice] characters so far */
} openai_own;

static inline openai_own *openai_own_of(const ask *a) {
    return a->own;
}

/* --- requests ----------------------------------------------------------------------------------- */

/* Begins to read: sets ask.own. GGL_NOMEM. */
ggl_status openai_begin(ask *a, ask_kind kind, ggl_error *err);

field_fn openai_field_model;
/* Several names for one limit: if two of them are given, they must agree. */
field_fn openai_field_max_tokens, openai_field_max_completion_tokens, openai_field_n_predict;
field_fn openai_field_stream_options, openai_field_timings_per_token;
field_fn openai_field_top_logprobs, openai_field_parallel; /* "parallel_tool_calls" */

/* Reads parts of contents. Pictures and sounds become marks; those of the result of a tool's call that the model cannot see or hear, and files,
 * become texts that say so. */
llm_part_reader openai_part_reader(ask *a);
/* Adds a content, which is a string or a list of parts, to a message by `add` (talk_text or
 * talk_reasoning). `where` begins the messages of errors: "messages[1]". in_result: it is the result of a tool's call. */
ggl_status openai_add_content(ask *a, talk_writer *t, talk_adder *add, const json_value *content,
                              bool in_result, const char *where, ggl_error *err);

/* How the API writes functions: within "function": {..}, or `flat` in the tool itself. */
typedef enum openai_style { OPENAI_NESTED, OPENAI_FLAT } openai_style;

/* Reads "tools" and "tool_choice" of a request into the ask. */
ggl_status openai_read_tools(ask *a, openai_style style, const server_facts *facts,
                             const char **param, ggl_error *err);
/* Makes a tool in the form that templates read; description may be NULL. deferred: the model is shown it when a search has found it. GGL_NOMEM. */
ggl_status openai_make_tool(ask *a, json_value *out, ggl_str name, const json_value *description,
                            const json_value *parameters, bool deferred, ggl_error *err);
/* Returns the tool that the model calls by a name; NULL if none. */
const openai_tool *openai_find_tool(const ask *a, ggl_str shown);
/* True for the name of a tool with free text. */
bool openai_is_custom(const ask *a, ggl_str shown);
/* Makes the arguments of the function that the model sees in place of such a tool: {"input": ..}. GGL_NOMEM. */
ggl_status openai_make_input(ask *a, json_value *out, const json_value *input, ggl_error *err);
/* Writes a name as the model sees it: with its namespace, which may be empty. s NULL: out of memory. */
ggl_str openai_shown_name(ask *a, ggl_str space, ggl_str name);
/* Reads a format: {"type": "text" | "json_object" | "json_schema", ..}. */
ggl_status openai_read_format(ask *a, const json_value *v, openai_style style, ggl_error *err);
/* Writes an effort of reasoning as a variable of the template, unless *kwargs (may be NULL) sets the same variable. */
ggl_status openai_put_effort(talk_writer *t, const json_value *effort, const json_value *kwargs,
                             ggl_error *err);
/* Embeddings (api_openai_embeddings.c): reads the fields of a table, some by the readers below, and requires a text,
 * in the field `name`. */
ggl_status openai_read_embeddings(ask *a, const field *table, const char *name,
                                  const server_facts *facts, const char **param, ggl_error *err);
ggl_status openai_field_input(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err);
ggl_status openai_field_encoding(ask *a, const json_value *v, const server_facts *facts,
                                 ggl_error *err);
ggl_status openai_field_format(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err);
ggl_status openai_field_task(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err);
ggl_status openai_field_parse_special(ask *a, const json_value *v, const server_facts *facts,
                                      ggl_error *err);
ggl_status openai_field_prompt_name(ask *a, const json_value *v, const server_facts *facts,
                                    ggl_error *err);
ggl_status openai_field_dimensions(ask *a, const json_value *v, const server_facts *facts,
                                   ggl_error *err);
field_fn tei_field_direction; /* (api_tei.c) */
void openai_put_floats(const float *f, int64_t n, llm_json_out *out);
void openai_embeddings_whole(const answer *x, llm_json_out *out);
/* Ends the conversation with the tools and sets ask.talk; frees the writer. GGL_UNSUPPORTED: tools and a grammar exclude
 * each other. */
ggl_status openai_end_talk(ask *a, talk_writer *t, ggl_error *err);

/* --- answers ------------------------------------------------------------------------------------ */

void openai_put_int(llm_json_out *out, int64_t x);
/* The number in 17 digits; NaN: null; minus infinity: -9999, as OpenAI's servers have it. */
void openai_put_double(llm_json_out *out, double x);
/* `{"id":"PREFIXID","object":"OBJECT","created":N,"model":"..","system_fingerprint":".."`, an object to be
 * continued. */
void openai_put_head(const answer *x, const char *prefix, const char *object, llm_json_out *out);
void openai_put_model(const answer *x, llm_json_out *out);
void openai_put_usage(const answer_counts *n, llm_json_out *out);
/* llama.cpp's object of speeds: of one choice, or of all (c NULL). */
void openai_put_timings(const answer *x, const answer_choice *c, llm_json_out *out);
/* `"stop"`, .. */
void openai_put_finish(const answer_choice *c, llm_json_out *out);
/* The elements of logprobs.content, with commas between them. */
void openai_put_tokens(const answer *x, const answer_token *t, size_t n, llm_json_out *out);
/* `,"tokens":[..]` if the request asks for the ids of tokens. */
void openai_put_ids(const answer *x, const answer_part *p, size_t n, llm_json_out *out);
/* The arguments of a call as a string, or, of a tool with free text, the text in them. */
void openai_put_arguments(const ask *a, const answer_part *p, llm_json_out *out);
/* The texts of the parts of one kind as one string. */
void openai_put_texts(const answer_part *p, size_t n, part_kind kind, llm_json_out *out);

/* `,"n_prompt_tokens":..,"n_ctx":..` of a prompt that is too long, else nothing */
void openai_put_overflow(const api_error *e, llm_json_out *out);
/* `{"message":..,"type":..,"param":..,"code":..}` */
void openai_put_error(const api_error *e, llm_json_out *out);

/* Chats and completions. The whole object without its `}`; put_choice writes a choice. */
typedef void openai_choice_fn(const answer *x, const answer_choice *c, llm_json_out *out);
void openai_put_whole(const answer *x, openai_choice_fn *put_choice, llm_json_out *out);
/* A chunk of a stream with one choice: `data: {.."delta":` or `.."text":`, to be continued by the value; its end, after the
 * choice's last member. timed: whose speeds it has, or NULL. */
void openai_begin_chunk(const answer *x, int index, llm_json_out *out);
void openai_end_chunk(const answer *x, const answer_choice *timed, llm_json_out *out);
/* Functions of both dialects. */
void openai_end_choice(const answer *x, const answer_choice *c, llm_json_out *out);
void openai_progress(const answer *x, const answer_choice *c, int64_t n_done, llm_json_out *out);
void openai_end(const answer *x, llm_json_out *out);

/* The functions of dialects that all of them share. */
void openai_alive(const answer *x, llm_json_out *out);
/* `,"prompt_progress":{..}`; with timings, these as they are by then, too: `,"timings":{..}`. */
void openai_put_progress(const answer *x, const answer_choice *c, int64_t n_done, bool timings,
                         llm_json_out *out);
void openai_error(const api_error *e, bool in_stream, llm_json_out *out);
/* `{"error":{"code":400,"message":..,"type":..}}` (api_llamacpp.c) */
void llamacpp_error(const api_error *e, bool in_stream, llm_json_out *out);

#endif
