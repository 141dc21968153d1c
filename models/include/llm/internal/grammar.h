/* Constrained output: grammars, and matchers that say which tokens may come next.
 *
 *     llm_grammar *g;
 *     llm_vocab *v;
 *     llm_matcher *m;
 *     if (llm_grammar_from_gbnf(&g, text, n, "list.gbnf", &err) != GGL_OK) ...
 *     if (llm_vocab_new(&v, tokenizer, &err) != GGL_OK) ...      // once per tokenizer
 *     if (llm_matcher_new(&m, g, v, &err) != GGL_OK) ...         // once per sequence
 *     for (int32_t left = budget; left > 0 && !llm_matcher_must_end(m); left--) {
 *         if (llm_matcher_mask(m, left, allowed, &err) != GGL_OK) ...
 *         int32_t id = ...;                                      // only one that is allowed
 *         if (llm_matcher_accept_token(m, id, &err) != GGL_OK) ...
 *         if (llm_matcher_has_ended(m)) break;                   // an end-of-generation token
 *     }
 *
 * Texts are bytes of UTF-8; a grammar describes characters. Grammars and vocabularies do not change
 * after they were made: any number of threads may use them. A matcher caches what it learns about
 * its grammar, and shares that with its copies: a matcher and its copies belong to one thread at a
 * time. docs/grammars.md says how it works. */
#ifndef LLM_GRAMMAR_H
#define LLM_GRAMMAR_H

#include "ggl/status.h"
#include "llm/internal/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_grammar llm_grammar;
typedef struct llm_vocab llm_vocab;
typedef struct llm_matcher llm_matcher;

/* --- grammars --------------------------------------------------------------------------------- */

/* Reasoning before what a grammar describes: `open`, any text without `close`, `close`, and at most two blanks or line ends. */
typedef struct llm_thought {
    char open[128], close[128];
    bool
        is_begun; /* `open` is in the prompt: the text goes on after it, and has to close it. Else there may be no reasoning */
} llm_thought;
enum { LLM_THOUGHTS = 4 };

/* Read a grammar from text[0..n), which is not needed afterwards; `name` stands for it in messages,
 * which have the form "name:line:column: error: ..." with the line and a caret.
 * GGL_FORMAT: the text is no grammar (schema), or describes no text at all; GGL_UNSUPPORTED: it uses
 * a keyword that cannot be guaranteed (the message names it and its place); GGL_LIMIT: it is too
 * large; GGL_NOMEM. *out is NULL on failure. */
GGL_NODISCARD ggl_status llm_grammar_from_gbnf(llm_grammar **out, const char *text, size_t n,
                                               const char *name, ggl_error *err);
GGL_NODISCARD ggl_status llm_grammar_from_schema(llm_grammar **out, const char *text, size_t n,
                                                 const char *name, ggl_error *err);
enum { LLM_GRAMMAR_USUAL_BYTES = 1 << 29 };

typedef struct llm_gbnf_params {
    size_t size;        /* sizeof(llm_gbnf_params): ggl/internal/params.h */
    uint64_t max_steps; /* see llm_matcher_limit; beyond them GGL_LIMIT; 0: no limit */
    size_t max_bytes;   /* the memory that reading and compiling take; 0: LLM_GRAMMAR_USUAL_BYTES */
    const llm_thought
        *thought; /* [n_thoughts]: the ways in which reasoning may come before the text */
    size_t n_thoughts;
} llm_gbnf_params;

/* The same with parameters; NULL: all zero. */
GGL_NODISCARD ggl_status llm_grammar_from_gbnf_with(llm_grammar **out, const char *text, size_t n,
                                                    const char *name, const llm_gbnf_params *params,
                                                    ggl_error *err);
/* Called for each keyword and format that no draft of the standard has, and that has no effect:
 * "s.json: #/properties/a/tpye: ..". The text is valid during the call. */
typedef void (*llm_schema_note)(void *arg, const char *text);

typedef struct llm_schema_params {
    size_t size;          /* sizeof(llm_schema_params): ggl/internal/params.h */
    llm_schema_note note; /* NULL: none; called with note_arg */
    void *note_arg;
    /* White space between tokens is at most one space after ':' and ','. For generated texts: where
     * any JSON is allowed, small models fill their budget with line breaks and indentation. */
    bool compact;
    /* The steps (see llm_matcher_limit) that reading and compiling may take, beyond which the schema is
     * refused with GGL_LIMIT; 0: no limit. */
    uint64_t max_steps;
    size_t max_bytes;           /* the memory they may take; 0: LLM_GRAMMAR_USUAL_BYTES */
    const llm_thought *thought; /* as in llm_gbnf_params */
    size_t n_thoughts;
} llm_schema_params;

/* The same with parameters; NULL: all zero. */
GGL_NODISCARD ggl_status llm_grammar_from_schema_with(llm_grammar **out, const char *text, size_t n,
                                                      const char *name,
                                                      const llm_schema_params *params,
                                                      ggl_error *err);
/* The bytes that it holds. */
size_t llm_grammar_size(const llm_grammar *g);
/* Matchers of the grammar do not need it any more. */
void llm_grammar_free(llm_grammar *g);

/* --- vocabularies ----------------------------------------------------------------------------- */

/* Sorts a tokenizer's tokens by their text (llm_token_text); does not need the tokenizer afterwards.
 * Control tokens and tokens without text are never allowed by a mask; end-of-generation tokens are
 * allowed where the text is complete. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_vocab_new(llm_vocab **out, const llm_tokenizer *t, ggl_error *err);
/* The same from n texts, which are copied; tokens with an empty text are never allowed, and those
 * with is_eog[id] end the generation (is_eog may be NULL). */
GGL_NODISCARD ggl_status llm_vocab_from_texts(llm_vocab **out, const ggl_str *text,
                                              const bool *is_eog, int32_t n, ggl_error *err);
/* Matchers must be freed first. */
void llm_vocab_free(llm_vocab *v);
/* Number of ids; the words of a mask are (n + 31) / 32. */
int32_t llm_vocab_n(const llm_vocab *v);

/* --- matchers --------------------------------------------------------------------------------- */

/* Makes a matcher at the beginning of a text. `v` must live longer; NULL: only bytes are matched
 * (no masks, no tokens). GGL_UNSUPPORTED: no text of the grammar can be written with the
 * vocabulary, which lacks some bytes; GGL_LIMIT; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_matcher_new(llm_matcher **out, const llm_grammar *g,
                                         const llm_vocab *v, ggl_error *err);
/* Makes a matcher at the same place of the same text; both go on separately. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_matcher_copy(llm_matcher **out, const llm_matcher *m, ggl_error *err);
void llm_matcher_free(llm_matcher *m);
enum { LLM_MATCHER_USUAL_STEPS = 1 << 24, LLM_MATCHER_USUAL_BACK = 1 << 17 };

/* Limits the work of a matcher and its copies. They have a supply of `most` steps. Each mask, ending,
 * token or byte takes steps from it, and fails with GGL_LIMIT if they do not suffice. Before each of them,
 * `back` steps are put back, up to `most` in all. So a hard mask may take `most` steps, but a long text no
 * more than `back` for each token on average. A step takes 20 to 100 ns. Until this is called, they are
 * those that the grammar was compiled with, or LLM_MATCHER_USUAL_STEPS, about a second, and
 * LLM_MATCHER_USUAL_BACK, about 5 ms. `most` 0: no limit. */
void llm_matcher_limit(llm_matcher *m, uint64_t most, uint64_t back);
/* Limits the memory of a matcher and its copies together; what needs more fails with GGL_LIMIT. Until
 * this is called, it is what the grammar was compiled with. 0: no limit. */
void llm_matcher_limit_bytes(llm_matcher *m, size_t most);
/* The bytes that a matcher and its copies hold together, without the grammar and the vocabulary. */
size_t llm_matcher_size(const llm_matcher *m);
/* Goes back to the beginning of the text. */
void llm_matcher_reset(llm_matcher *m);

/* Appends bytes to the text, up to the first that no text of the grammar continues with, and sets
 * *n_accepted to how many they were (GGL_OK, even if that is fewer than n). GGL_LIMIT and GGL_NOMEM:
 * the matcher gave up at that byte; it can still be freed or reset. */
GGL_NODISCARD ggl_status llm_matcher_accept_bytes(llm_matcher *m, const char *s, size_t n,
                                                  size_t *n_accepted, ggl_error *err);
/* Appends a token's text; or, for an end-of-generation token, ends the text. GGL_USAGE: the grammar
 * does not allow it here, or the text has ended; the matcher is unchanged. GGL_LIMIT, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_matcher_accept_token(llm_matcher *m, int32_t id, ggl_error *err);

/* Number of ids of its vocabulary; 0: it has none. */
int32_t llm_matcher_n_vocab(const llm_matcher *m);
/* True if the text is one of the grammar's as it is. */
bool llm_matcher_is_complete(const llm_matcher *m);
/* True if the text is complete and nothing can follow. */
bool llm_matcher_must_end(const llm_matcher *m);
/* True after an end-of-generation token was accepted. */
bool llm_matcher_has_ended(const llm_matcher *m);

enum { LLM_MATCHER_NO_BUDGET = -1 };

/* Sets bit id % 32 of allowed[id / 32] for the tokens that may come next, and clears the others.
 *
 * Without a budget these are exactly the tokens after which the text can still be completed with
 * tokens of the vocabulary. With a budget (how many tokens may follow in all, the next one
 * included) they are those after which an ending is known that fits into the rest, and the first
 * token of the planned ending (llm_matcher_ending). If the budget is no less than the planned ending
 * before the first token, and is passed one less for each token, then some token is allowed at every
 * step until the text is complete, and the text is complete when the budget is used up. With a
 * smaller budget the planned ending is still on offer, but the text may remain incomplete.
 *
 * End-of-generation tokens are allowed where the text is complete; they need no budget. No bit is
 * set after has_ended, or if must_end and the vocabulary has no such token. GGL_USAGE: there is no
 * vocabulary; GGL_LIMIT, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_matcher_mask(llm_matcher *m, int32_t budget, uint32_t *allowed,
                                          ggl_error *err);

/* Sets id[0 .. *n), `most` at most, to the tokens that must come next, one after the other: where a mask
 * would allow one token alone, and that one does not end the text. `budget` is as for llm_matcher_mask before the
 * first of them. The matcher stays where it is. Fails as llm_matcher_mask does; what cannot be found
 * within its steps or bytes is left out. */
GGL_NODISCARD ggl_status llm_matcher_forced(llm_matcher *m, int32_t budget, int32_t *id,
                                            int32_t most, int32_t *n, ggl_error *err);

/* Plans an ending: sets *id and *n to tokens that complete the text, none if it is complete. It is
 * one of the fewest bytes, in the fewest tokens for these. Valid until the next call for the
 * matcher. */
GGL_NODISCARD ggl_status llm_matcher_ending(llm_matcher *m, const int32_t **id, int32_t *n,
                                            ggl_error *err);

/* Writes what may come next, for messages: "'\"', '}' or a digit". Writes at most `size` bytes with
 * the NUL. Returns the length that enough room would need. */
size_t llm_matcher_expected(llm_matcher *m, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
