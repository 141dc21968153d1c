/* The parser of answers. calls.c finds marks and collects parts; scan.c follows a call's pattern
 * through the text, as far as it is there; body.c makes name and arguments of what was found. */
#ifndef LLM_CALLS_IMPL_H
#define LLM_CALLS_IMPL_H

#include "common/json.h"
#include "formats.h"
#include "ggl/internal/alloc.h"
#include "llm/internal/calls.h"

enum { MAX_NAME = 256 };

/* Offsets in the answer. */
typedef struct span {
    size_t begin, end;
} span;

typedef struct argument {
    span key, value;
    bool typed, string; /* the model says whether the value is a string */
    bool verbatim;      /* it stands between the verbatim marks */
} argument;

/* A JSON text that is being written. After no_memory, nothing is added. */
typedef struct call_text {
    char *s;
    size_t n, cap;
    bool no_memory;
} call_text;

/* JSON that is read leniently and written as JSON: mend.c. */
typedef struct mender {
    call_text out;
    uint64_t lists, filled; /* bits of the open brackets: it is a list; it has an element */
    int depth;              /* of brackets */
    enum { MEND_VALUE, MEND_KEY, MEND_COLON, MEND_COMMA } next; /* what is expected */
    char quote; /* in a string: the character that ends it */
    bool is_key, in_word;
    size_t word; /* where the word without quotes begins */
    size_t n_values;
    size_t *end, n_ends,
        cap_ends; /* where objects end that may be calls: roots, and elements of root lists */
} mender;

/* The calls of a field that have begun: partial.c. Their name is known, and their arguments have begun; from then on they are calls,
 * whatever follows. */
typedef struct partial {
    bool never;  /* no more calls begin */
    int n_begun; /* calls; the field may be a list of them */
    size_t at;   /* offset up to which the text was used, of {json} and {args} in the mended text */
    /* {params} */
    size_t i_arg; /* the argument that comes next */
    bool in_arg;  /* it is a string, whose beginning was given out */
    /* {json}, {args} */
    bool in_object, begun_here; /* in the arguments; those of this call were begun */
    int n_args_keys; /* how often the key of the arguments was seen; the first one counts */
    bool quoted, escaped, has_value; /* in a string; after a backslash; after a colon */
    int depth, level;                /* of brackets; the depth in the object that is a call, or 0 */
    span last, key, name, id;        /* the last string, and those of the call */
} partial;

typedef enum progress { STEP_DONE, STEP_WAIT, STEP_FAIL } progress;

/* A call that is being read. */
typedef struct attempt {
    const pattern *p; /* NULL: not known yet which of those that begin with `mark` */
    const mark *mark; /* NULL: at the beginning of the answer */
    size_t begin, scan;
    bool was_begun; /* of the content before it, which goes on if it is no call */
    size_t was_shown;
    size_t body; /* where the text after the mark begins */
    int piece;   /* index in p */
    span name, id, value;
    piece_kind kind; /* of `value` */
    /* progress in a value */
    bool entered, complete, escaped;
    char quote;  /* in a string: the character that ends it; 1: the format's quote */
    int depth;   /* of brackets */
    size_t last; /* end of what is complete */
    span white;  /* the last white space that was skipped without passing it */
    size_t look; /* white space up to here was skipped, of what may follow a value */
    mender mend; /* {json}, {args}, {map} */
    bool
        unfinished; /* the value ended before its brackets were closed, or an argument before its mark */
    size_t n_whole;       /* objects that had ended by then */
    size_t rest;          /* where what was not read of a field begins; 0: all was read */
    bool was_begun_there; /* the call that had not ended had begun */
    /* arguments */
    bool sure; /* the first of them, or the end, was found: it is a call, whatever follows */
    int arg_piece;
    argument *arg;
    size_t n_args, cap_args;
    const char *error;
    bool no_memory;
    partial part;
} attempt;

/* A part with offsets; texts that are not in the answer are in the arena. */
typedef struct event {
    llm_calls_kind kind;
    bool begins;
    span text;
    ggl_str name, arguments, id;
    bool has_begun, unfinished;
    const char *error;
} event;

struct llm_calls {
    call_format f;
    const json_value *tools; /* borrowed; NULL: none */
    char *text;              /* the answer, after what the prompt began */
    size_t n, cap, max, seed;
    size_t pos;          /* all before is decided */
    size_t shown, solid; /* reported up to here; end of the last character that is no white space */
    bool begun;          /* the part that is under way was reported in part */
    bool after_mark;     /* a mark stands before the part: white space at its begin is left out */
    bool is_forced,
        was_forced;     /* the end of the reasoning is forced, or was: llm_calls_force_end */
    bool thought_begun; /* the reasoning that was ended by force was reported in part */
    bool one, over;     /* one call is wanted, and was given */
    bool skips;         /* another one has begun */
    int n_given;        /* calls that were given when they began */
    bool fresh;         /* nothing but white space since the begin, reasoning or a call */
    bool after_start;   /* the last part was a call without a mark */
    bool strict;        /* a call was broken: marks count in strings, too */
    bool doubtful;      /* what follows `doubt` may be calls that end the reasoning: thought.c */
    bool first_begins;  /* the next part begins, although text before it was the prompt's */
    size_t doubt, sure; /* offsets; before `sure`, marks in reasoning are text */
    size_t n_sure_events;
    bool final;    /* no more text comes */
    bool cut;      /* it ended at a limit: only what is complete is a call */
    bool partial;  /* calls are reported while they are written */
    bool demanded; /* the answer is calls: what begins like one without a mark is no content */
    bool either;   /* the answer is calls, or a text without any: llm_calls_params.answer */
    enum { IN_CONTENT, IN_REASONING, IN_DOUBT, IN_CALL, IN_BROKEN } mode;
    const mark *think;
    attempt a;
    event *event;
    size_t n_events, cap_events, next;
    char why[256]; /* the text of a.error, if it was made for the call */
    ggl_arena arena;
};

/* Returns the mark that begins at text[i]: the longest. *wait: more text is needed to know. */
const mark *llm_calls_mark_at(const llm_calls *c, size_t i, bool *wait);
/* Compares text[i] with a string. STEP_WAIT: it may become it. */
progress llm_calls_compare(const llm_calls *c, size_t i, ggl_str s);
/* Whether a mark that ends the reasoning stands at i; *n: its length. */
progress llm_calls_closes(const llm_calls *c, size_t i, size_t *n);
size_t llm_calls_skip_white(const llm_calls *c, size_t i);
bool llm_calls_is_white(char ch);
bool llm_calls_is_name(char ch); /* may be part of the name of a function */
ggl_str llm_calls_trimmed(ggl_str s);
/* The first of the names of a key, which are alternatives between '|'. */
ggl_str llm_calls_first_key(ggl_str keys);
/* A function's name without what the format cuts off its end. */
ggl_str llm_calls_cut_name(const call_format *f, ggl_str name);
static inline ggl_str llm_calls_slice(const llm_calls *c, span s) {
    return (ggl_str){c->text + s.begin, s.end - s.begin};
}

/* --- fields (fields.c) ---------------------------------------------------------------------------- */

progress llm_calls_fail(attempt *a, const char *error); /* STEP_FAIL */
/* STEP_WAIT, or at the end of the answer STEP_FAIL. */
progress llm_calls_wait_or(const llm_calls *c, attempt *a, const char *error);
/* The next piece, if it is a text, which ends a field. */
ggl_str llm_calls_stop_after(const pattern *p, int at);
/* In an answer with a broken call, a field also ends, by an error, at marks: so no text is read
 * again and again. */
progress llm_calls_strict_border(const llm_calls *c, attempt *a, size_t i);
/* True if a call has begun: its name is known, and so are arguments. The end of the text, or a mark where marks count, then ends it as a call. */
bool llm_calls_is_begun(const llm_calls *c, const attempt *a);
progress llm_calls_step_name(const llm_calls *c, attempt *a, span *out);
/* A field that goes on until a text. a->scan is where to look for it; *out is set at the first step. */
progress llm_calls_step_until(const llm_calls *c, attempt *a, ggl_str stop, size_t most, span *out);
/* {params}, up to `stop` (marked.c). */
progress llm_calls_step_params(llm_calls *c, attempt *a, ggl_str stop);

/* --- calls -------------------------------------------------------------------------------------- */

/* Goes on with the call. STEP_FAIL: the text is no call, a->error says why. STEP_DONE: a->scan is its
 * end. */
progress llm_calls_step(llm_calls *c, attempt *a);
/* Chooses the pattern by what follows the mark. */
progress llm_calls_choose(llm_calls *c, attempt *a);

/* In {json}, {args} and {map}: begins a value, or another one in the same field. */
void llm_mend_begin(mender *m);
void llm_mend_next(mender *m);
/* Passes the character at a->scan. stop: the text that ends the field. STEP_FAIL: no memory (a->no_memory), or nested too deeply. */
progress llm_mend_pass(const llm_calls *c, attempt *a, ggl_str stop);
/* Closes all that is open. False: no memory. */
bool llm_mend_close(const llm_calls *c, attempt *a);
void llm_mend_fini(mender *m);
/* Reads a whole text. GGL_FORMAT: it has no object or list. */
ggl_status llm_mend_text(ggl_arena *arena, ggl_str text, ggl_str *out);

/* Finds the calls that have begun in the mended text; reports them with llm_calls_params.partial. GGL_NOMEM. */
ggl_status llm_calls_track(llm_calls *c);
/* True if what is known of the call is reported while it is written. */
bool llm_calls_reports(const llm_calls *c);
/* The function of a call whose name stands in the pattern. */
ggl_str llm_calls_function_of(const llm_calls *c, const attempt *a);
/* True for the name of a tool, or one that a function may have. */
bool llm_calls_can_name(const llm_calls *c, ggl_str name);
/* The tool that a name means: functions.f:0 and functions_f_0 are f, if it is a tool and they are not. */
ggl_str llm_calls_tool_name(const llm_calls *c, ggl_str name);

/* Reports the calls of a complete attempt. GGL_FORMAT: a->error says what is wrong, nothing was
 * reported. */
ggl_status llm_calls_read(llm_calls *c, attempt *a, ggl_error *err);
/* Reports what is new of the call that is being read. GGL_NOMEM. */
ggl_status llm_calls_report_partial(llm_calls *c);
/* The name of a function and the id of its call, of what a pattern has found. */
void llm_calls_identify(const llm_calls *c, const attempt *a, ggl_str *name, ggl_str *id);
/* Begins a call at a mark; m NULL: without one. */
void llm_calls_begin(llm_calls *c, const mark *m, size_t begin);
/* In reasoning, at a mark of the format: reads what may be calls. STEP_WAIT: more text is needed. STEP_DONE: the reasoning
 * has ended with them. STEP_FAIL: it goes on; c->pos is where. */
progress llm_calls_thought(llm_calls *c, ggl_status *st, ggl_error *err);

/* Adds a part; zeroed. NULL: out of memory. */
event *llm_calls_push(llm_calls *c, llm_calls_kind kind, span text);

void llm_calls_put(call_text *t, const char *s, size_t n);
/* Adds valid JSON without the white space between its tokens; t NULL: adds nothing. Returns false if it has NaN or
 * Infinity, which llm_json_parse reads, but which are no JSON. */
bool llm_calls_put_line(call_text *t, ggl_str s);
/* Returns the function of a tool, {"type": "function", "function": {..}} or the inner object alone. name->n is 0 if it has
 * no name. */
const json_value *llm_calls_function(const json_value *tool, ggl_str *name);
/* Returns the function of the tool of this name; NULL if none. */
const json_value *llm_calls_function_named(const llm_calls *c, ggl_str name);
/* Returns the kinds of JSON that a schema allows, as bits 1 << json_kind; 0: it does not say. */
unsigned llm_calls_kinds(const json_value *schema);
/* The schema of a function's parameter; NULL: the tools have none. */
const json_value *llm_calls_schema(const llm_calls *c, ggl_str function, ggl_str key);
/* The same from the schema of all arguments. */
const json_value *llm_calls_schema_in(const json_value *parameters, ggl_str key);
/* Whether a text is to be a string where a schema allows these kinds. GGL_NOMEM. */
ggl_status llm_calls_as_string(unsigned kinds, ggl_str text, bool *string);
/* Rewrites elements, <name>value</name> with the format's tag in front of each, as an object in the arena.
 * GGL_FORMAT: *why says what is wrong. */
ggl_status llm_calls_tree(llm_calls *c, ggl_str function, ggl_str text, ggl_str *out,
                          const char **why);
/* A value without the line breaks around it, as far as they are the format's. */
ggl_str llm_calls_unwrap(const call_format *f, ggl_str s);

/* Adds the characters of a string, escaped where JSON demands it; without quotes. */
void llm_calls_put_string(call_text *t, ggl_str s);

/* Rewrites Python's calls, or values with other quotes (NULL: Python), as JSON into the arena.
 * GGL_FORMAT: the text is not such a call, *error says why. */
typedef struct py_call {
    ggl_str name, arguments;
} py_call;
/* Reads the next call from *text; name.n == 0: the end. */
ggl_status llm_calls_python(ggl_arena *arena, ggl_str *text, py_call *out, const char **error);
ggl_status llm_calls_loose(ggl_arena *arena, ggl_str text, ggl_str quote, ggl_str *out,
                           const char **error);

#endif
