/* Splits the answer of a model into content, reasoning (<think>..</think>) and calls of tools, in the
 * formats of published families. The formats are data (models/calls/call_formats.txt); which one a model
 * uses follows from marks in its chat template.
 *
 *     llm_calls *c;
 *     llm_calls_params p = {.size = sizeof p, .template_text = text_of_the_template, .prompt = prompt, .tools = &tools->root};
 *     if (llm_calls_new(&c, &p, &err) != GGL_OK) ...
 *     while (a token is generated) {
 *         llm_calls_add(c, piece, n, &err);           // any pieces; they may cut marks and UTF-8
 *         while (llm_calls_next(c, &part)) show(&part);
 *     }
 *     llm_calls_finish(c, &err);
 *     while (llm_calls_next(c, &part)) show(&part);
 *     llm_calls_free(c);
 *
 * A whole answer is one llm_calls_add. The parts do not depend on how the answer was cut, except
 * that LLM_CALLS_CONTENT and LLM_CALLS_REASONING come in pieces: pieces of one kind that follow each
 * other, unless the later one says `begins`, are one part.
 *
 * The text must contain the control tokens (llm_token_text with special set): marks such as
 * [TOOL_CALLS] are control tokens in many vocabularies. The token that ended the generation may be
 * left out.
 *
 * Nothing is lost (but by llm_calls_cut): a text that begins like a call, but is no valid one, is reported as LLM_CALLS_BROKEN with its text
 * and what is wrong. Only the marks of the format and white space at the borders of parts are left
 * out. Time and memory are linear in the answer, whatever it says.
 *
 * Threads: one thread at a time uses an answer's calls; the functions without one have no state. */
#ifndef LLM_CALLS_H
#define LLM_CALLS_H

#include "ggl/str.h"
#include "ggl/status.h"
#include "llm/internal/grammar.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_calls llm_calls;

typedef enum llm_calls_kind {
    LLM_CALLS_CONTENT,   /* text for the user */
    LLM_CALLS_REASONING, /* the model's thoughts */
    LLM_CALLS_CALL,      /* a call of a tool */
    LLM_CALLS_BROKEN,    /* the text of a call that cannot be read; to be shown like content */
    /* With llm_calls_params.partial, of a call that is being written: */
    LLM_CALLS_BEGINS, /* its name, and its id if the model wrote one before the arguments */
    LLM_CALLS_PIECE   /* more of the arguments of the call that began last */
} llm_calls_kind;

/* Strings are valid until the next llm_calls_add, llm_calls_finish, llm_calls_cut or llm_calls_free. */
typedef struct llm_calls_part {
    llm_calls_kind kind;
    bool
        begins; /* CONTENT, REASONING, BROKEN: this piece begins a part; else it continues a part of content, if it is BROKEN or
                   * follows such a piece; always set in others */
    ggl_str text; /* CONTENT, REASONING: the piece; CALL, BROKEN: the answer's text, with marks */
    ggl_str name; /* CALL: the function */
    ggl_str
        arguments; /* CALL: a JSON object in one line, as the model wrote it except for white space; PIECE: a part of it */
    ggl_str id;    /* CALL: the model's id of the call; empty if it wrote none */
    bool has_begun; /* CALL: it was reported by BEGINS before */
    bool
        is_unfinished; /* CALL: the answer, or the call, ended before its arguments did; they were completed */
    const char
        *error; /* BROKEN: what is wrong, such as "the arguments of \"f\" are not JSON: .." */
} llm_calls_part;

struct json_value; /* models/common/json.h */

typedef struct llm_calls_params {
    size_t size; /* sizeof(llm_calls_params): ggl/internal/params.h */
    /* The name of a format; empty: llm_calls_format() of template_text. */
    ggl_str format;
    /* The chat template's text. If a format has several ways to write a call, llm_calls_grammar takes one
     * whose marks stand in the template. May be empty. */
    ggl_str template_text;
    /* The prompt. Only its end is read: templates may begin the answer, for instance by
     * "<think>\n". May be empty. */
    ggl_str prompt;
    /* Bytes at the end of the prompt that belong to the answer already, as when a message is continued: the parts go on
     * where they end, for instance within reasoning. */
    size_t n_begun;
    /* The tools, as in "tools" of a conversation: an array of {"type": "function", "function":
     * {"name": .., "parameters": {..}}}, which must live as long as the llm_calls. Some formats write strings without quotes; what is a string
     * and what a number then follows from the parameters' types. Without them, what reads as JSON is
     * JSON. May be NULL. */
    const struct json_value *tools;
    /* Report calls while they are written: BEGINS, then PIECEs, then CALL, of whose arguments the PIECEs, joined, are the
     * beginning. Several calls of one list may begin before their CALLs come, in the same order. A call that turns out to
     * be broken, or that llm_calls_cut leaves out, has no CALL. How much comes early depends on the format: arguments that are
     * written as JSON come as they are written, those between marks one after the other, and strings of them in pieces if the
     * tools say that they are strings. Pieces depend on how the answer was cut. */
    bool partial;
    size_t max_size; /* bytes of an answer; 0: 16 MiB */
    /* For llm_calls_grammar: as those of llm_schema_params. */
    uint64_t max_steps;
    size_t max_bytes;
    /* A JSON schema: the answer is calls, or in their place a JSON text that fits it. Once such a text has begun, all
     * of it is content, whatever marks its strings have, and so is a call without a mark of a function that is not among the
     * tools. Empty if none. */
    ggl_str answer;
    /* A grammar demands a call (llm_calls_grammar without `answer`): a text that begins like a call without a mark is
     * never content, so that llm_calls_cut leaves it out, too. */
    bool demanded;
    bool no_calls; /* calls are text, with their marks */
    bool one_call; /* nothing is reported after the first call: llm_calls_is_over */
} llm_calls_params;

/* Returns the name of the format whose marks stand in the text of a chat template, such as
 * "hermes"; else "reasoning", which has no calls: the model may think though nothing shows it. Of an empty text "plain", which
 * has neither. */
ggl_str llm_calls_format(ggl_str template_text);
/* True if a format of this name has calls. */
bool llm_calls_format_has_calls(ggl_str name);
/* Which control tokens are text for llm_calls_add. */
typedef enum llm_calls_tokens {
    LLM_CALLS_NO_TOKENS,
    LLM_CALLS_THINK_TOKENS, /* <think> and </think> */
    LLM_CALLS_ALL_TOKENS    /* the format of calls uses them as marks */
} llm_calls_tokens;
llm_calls_tokens llm_calls_tokens_of(ggl_str format);
/* True if the control token with this text is part of the answer's text. */
bool llm_calls_is_text(llm_calls_tokens tokens, ggl_str control_token);
/* Returns the name of the k-th format; empty: there are k or fewer. */
ggl_str llm_calls_format_name(int k);

/* Checks the value of "tools" in a conversation. GGL_FORMAT: it is no array, or an element is no tool; the message has its
 * index. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_calls_check_tools(const struct json_value *tools,
                                                                ggl_error *err);
/* Begins an answer. GGL_NOT_FOUND: no format of that name (the message lists them); GGL_FORMAT:
 * tools are no JSON array of tools; GGL_NOMEM. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_calls_new(llm_calls **out, const llm_calls_params *p, ggl_error *err);
void llm_calls_free(llm_calls *c);
/* Adds a piece of the answer. GGL_LIMIT: longer than max_size; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_calls_add(llm_calls *c, const char *text, size_t n, ggl_error *err);
/* Ends the answer: what was held back is reported. Statuses of llm_calls_add. */
GGL_NODISCARD ggl_status llm_calls_finish(llm_calls *c, ggl_error *err);
/* The same for an answer that was cut off, as by a limit of tokens: a call that is not complete, and the beginning
 * of a mark at the end, are left out. A call that lacks only its closing mark is complete. What is not complete
 * and began without a mark is content, as ever, unless llm_calls_params.demanded is set. */
GGL_NODISCARD ggl_status llm_calls_cut(llm_calls *c, ggl_error *err);
/* Returns the next part that is known; false: none until more is added. */
bool llm_calls_next(llm_calls *c, llm_calls_part *part);
/* Returns what the answer is in the middle of: CONTENT, REASONING, or CALL while a call is not
 * complete, so that nothing can be shown of it yet. */
llm_calls_kind llm_calls_now(const llm_calls *c);

/* Returns the mark that would end the reasoning that the answer is in the middle of, such as "</think>"; empty: it is not in
 * reasoning. Valid until llm_calls_free. */
ggl_str llm_calls_reasoning_end(const llm_calls *c);

/* Call before the text of llm_calls_reasoning_end is added because a limit of reasoning was reached. Models that take no notice go on with
 * their reasoning and end it themselves: all up to there is reasoning, and the second mark is no content. Text in the line of the
 * forced mark is held back until this is known, at the end of the answer at the latest. */
void llm_calls_force_end(llm_calls *c);

/* True if the only call that is wanted was reported (llm_calls_params.one_call): what follows in the answer is left out. */
bool llm_calls_is_over(const llm_calls *c);

/* Finds the ways in which reasoning may come before an answer in a given form, for llm_schema_params: none after reasoning that
 * has ended in the prompt. Statuses of llm_calls_new. */
GGL_NODISCARD ggl_status llm_calls_thoughts(llm_thought thought[LLM_THOUGHTS], size_t *n,
                                            const llm_calls_params *p, ggl_error *err);

/* Makes a grammar of answers that call a tool: `tool`, or any of p->tools if it is empty; one call if
 * `one` is set, else one or more; or of those that fit p->answer. The arguments fit the tool's "parameters". Reasoning may come before the calls if the
 * format has any; if the prompt has begun it, it must end first. The answer's text without the token that ends it
 * is what the grammar describes; llm_calls_new with the same parameters reads it. Marks that are control tokens are
 * spelled in other tokens, because grammars never allow control tokens.
 *
 * GGL_UNSUPPORTED: calls in the model's format cannot be written as a grammar (the message names the format),
 * or a schema has a keyword that cannot be guaranteed; GGL_NOT_FOUND: no such tool or format; GGL_FORMAT: the
 * tools or a schema are wrong; GGL_LIMIT, GGL_NOMEM. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_calls_grammar(llm_grammar **out, const llm_calls_params *p,
                                           ggl_str tool, bool one, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
