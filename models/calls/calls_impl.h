/* The parser of answers. calls.c finds marks and collects parts; scan.c follows a call's pattern
 * through the text, as far as it is there; body.c makes name and arguments of what was found. */
#ifndef LLM_CALLS_IMPL_H
#define LLM_CALLS_IMPL_H

#include "common/json.h"
#include "formats.h"
#include "llm/calls.h"

enum { MAX_NAME = 256 };

/* Offsets in the answer. */
typedef struct span {
    size_t begin, end;
} span;

typedef struct argument {
    span key, value;
    bool typed, string; /* the model says whether the value is a string */
} argument;

typedef enum progress { STEP_DONE, STEP_WAIT, STEP_FAIL } progress;

/* A call that is being read. */
typedef struct attempt {
    const pattern *p; /* NULL: not known yet which of those that begin with `mark` */
    const mark *mark; /* NULL: at the begin of the answer */
    size_t begin, scan;
    size_t body; /* where the text after the mark begins */
    int piece;   /* index in p */
    span name, id, value;
    piece_kind kind; /* of `value` */
    /* progress in a value */
    bool entered, complete, escaped;
    char quote;  /* in a string: the character that ends it; 1: the format's quote */
    int depth;   /* of brackets */
    size_t last; /* end of what is complete */
    /* arguments */
    int arg_piece;
    argument *arg;
    size_t n_args, cap_args;
    const char *error;
    bool no_memory;
} attempt;

/* A part with offsets; texts that are not in the answer are in the arena. */
typedef struct event {
    llm_calls_kind kind;
    bool begins;
    span text;
    ggl_str name, arguments, id;
    const char *error;
} event;

struct llm_calls {
    call_format f;
    llm_json *tools;
    char *tools_text;
    char *text; /* the answer, after what the prompt began */
    size_t n, cap, max, seed;
    size_t pos;          /* all before is decided */
    size_t shown, solid; /* reported up to here; end of the last character that is no white space */
    bool begun;          /* the part that is under way was reported in part */
    bool fresh;          /* nothing but white space since the begin, reasoning or a call */
    bool after_start;    /* the last part was a call without a mark */
    bool strict;         /* a call was broken: marks count in strings, too */
    bool final;          /* no more text comes */
    enum { IN_CONTENT, IN_REASONING, IN_CALL, IN_BROKEN } mode;
    const mark *think;
    attempt a;
    event *event;
    size_t n_events, cap_events, next;
    ggl_arena arena;
};

/* Returns the mark that begins at text[i]: the longest. *wait: more text is needed to know. */
const mark *llm_calls_mark_at(const llm_calls *c, size_t i, bool *wait);
/* Compares text[i] with a string. STEP_WAIT: it may become it. */
progress llm_calls_compare(const llm_calls *c, size_t i, ggl_str s);
size_t llm_calls_skip_white(const llm_calls *c, size_t i);
bool llm_calls_is_white(char ch);

/* Goes on with the call. STEP_FAIL: a->error says why there is none. STEP_DONE: a->scan is its
 * end. */
progress llm_calls_step(llm_calls *c, attempt *a);
/* Chooses the pattern by what follows the mark. */
progress llm_calls_choose(llm_calls *c, attempt *a);

/* Reports the calls of a complete attempt. GGL_FORMAT: a->error says what is wrong, nothing was
 * reported. */
ggl_status llm_calls_read(llm_calls *c, attempt *a, ggl_error *err);
/* Adds a part; zeroed. NULL: out of memory. */
event *llm_calls_push(llm_calls *c, llm_calls_kind kind, span text);

/* A JSON text that is being written. After no_memory, nothing is added. */
typedef struct call_text {
    char *s;
    size_t n, cap;
    bool no_memory;
} call_text;
void llm_calls_put(call_text *t, const char *s, size_t n);
/* Adds the characters of a string, escaped where JSON demands it; without quotes. */
void llm_calls_put_string(call_text *t, ggl_str s);

/* Rewrites Python's calls, or values with other quotes (NULL: Python), as JSON into the arena.
 * GGL_FORMAT: it is none, *error says why. */
typedef struct py_call {
    ggl_str name, arguments;
} py_call;
/* Reads the next call from *text; name.n == 0: the end. */
ggl_status llm_calls_python(ggl_arena *arena, ggl_str *text, py_call *out, const char **error);
ggl_status llm_calls_loose(ggl_arena *arena, ggl_str text, ggl_str quote, ggl_str *out,
                           const char **error);

#endif
