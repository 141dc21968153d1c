/* The values of a template while it is rendered: Python's, as far as templates have them. All
 * memory is one arena, which lives as long as the rendering. */
#ifndef LLM_TEMPLATE_VALUE_H
#define LLM_TEMPLATE_VALUE_H

#include <stdbool.h>

#include "common/json.h"
#include "ggl/alloc.h"
#include "ggl/internal/index.h"
#include "ggl/internal/os_attempt.h"

typedef enum tv_kind {
    TV_UNDEFINED, /* a name, attribute or element that is not there; `text` is its name */
    TV_NONE,
    TV_BOOL,
    TV_INT,
    TV_FLOAT,
    TV_STRING,
    TV_LIST,
    TV_TUPLE,
    TV_DICT,
    TV_ITERATOR,  /* what map, select and others give: its elements can be taken once; `list` */
    TV_NAMESPACE, /* a dict whose items `set ns.name = ..` changes */
    TV_LOOP,      /* the variable `loop` */
    TV_FUNCTION,  /* a global function or a method; see builtins.h */
    TV_MACRO
} tv_kind;

typedef struct tv {
    tv_kind kind;
    bool
        markup; /* STRING: from the filters safe and escape; what + adds to it is escaped for HTML */
    union {
        bool truth;
        int64_t integer;
        struct { /* FLOAT */
            double number;
            const json_value *written; /* as which it was given; NULL: it was computed */
        };
        ggl_str text; /* STRING: UTF-8; UNDEFINED */
        struct tv_list *list;
        struct tv_dict *dict;
        struct tv_loop *loop;
        struct tv_function *function;
        struct tv_macro *macro;
    };
} tv;

typedef struct tv_list {
    tv *at;
    size_t n, cap;
} tv_list;

typedef struct tv_item {
    ggl_str name; /* the key as a string; first, for ggl_index */
    tv key, value;
} tv_item;

/* Keeps the order in which items were added. */
typedef struct tv_dict {
    tv_item *item;
    size_t n, cap;
    ggl_index index;              /* of all items, once there are more than a few */
    struct tv_dict *next_indexed; /* those whose index must be freed */
} tv_dict;

typedef struct tv_origin tv_origin; /* origin.h */

/* A long text to which others were added, and room behind it. */
typedef struct tv_growing {
    char *s;
    size_t n, cap;
} tv_growing;

/* One rendering. A function that fails abandons `attempt`, so its result is always a value. */
typedef struct tv_heap {
    ggl_arena arena;
    tv_dict *indexed;
    size_t steps, max_steps;
    ggl_error *err;
    const char *name;  /* of the template, for messages */
    int line;          /* of the node that is evaluated */
    int depth;         /* of nested values, expressions and calls in progress */
    tv_origin *origin; /* NULL: it is not noted */
    tv_growing
        growing[4]; /* the texts that were put together last; next_growing is replaced next */
    unsigned next_growing;
    int64_t now; /* local time in seconds since 1970; 0: the system is asked */
    os_attempt attempt;
    ggl_status status;
    bool refuses_bare; /* raise_exception's text is the whole message */
} tv_heap;

/* Ends the rendering with this error; the message begins with the template's name and line. */
_Noreturn void llm_tv_fail(tv_heap *h, ggl_status st, const char *fmt, ...) GGL_PRINTF(3, 4);
/* The same; the message is the text alone. */
_Noreturn void llm_tv_fail_bare(tv_heap *h, ggl_status st, ggl_str text);
/* Counts steps; fails beyond the limit. */
void llm_tv_step(tv_heap *h, size_t n);
/* Counts the steps of work that goes over n bytes of text and makes no value. */
static inline void tv_scan(tv_heap *h, size_t n) {
    llm_tv_step(h, n / 16 + 1);
}
/* Count levels of nesting; the first fails if there are too many for the stack. */
void llm_tv_enter(tv_heap *h);
static inline void tv_leave(tv_heap *h) {
    h->depth--;
}
/* Allocates in the arena; fails beyond the limit. Bytes count as steps, too. */
void *llm_tv_alloc(tv_heap *h, size_t n, size_t size);
void llm_tv_heap_fini(tv_heap *h);

static inline tv tv_none(void) {
    return (tv){.kind = TV_NONE};
}
static inline tv tv_bool(bool b) {
    return (tv){.kind = TV_BOOL, .truth = b};
}
static inline tv tv_int(int64_t i) {
    return (tv){.kind = TV_INT, .integer = i};
}
static inline tv tv_float(double x) {
    return (tv){.kind = TV_FLOAT, .number = x};
}
/* The text is borrowed. */
static inline tv tv_str(ggl_str s) {
    return (tv){.kind = TV_STRING, .text = s};
}
static inline tv tv_undefined(ggl_str name) {
    return (tv){.kind = TV_UNDEFINED, .text = name};
}
static inline bool tv_is_list(tv v) {
    return v.kind == TV_LIST || v.kind == TV_TUPLE;
}
static inline bool tv_is_number(tv v) {
    return v.kind == TV_INT || v.kind == TV_FLOAT || v.kind == TV_BOOL;
}

tv llm_tv_new_list(tv_heap *h, tv_kind kind);
void llm_tv_push(tv_heap *h, tv list, tv v);
tv llm_tv_new_dict(tv_heap *h);
/* Sets or replaces the item of this key: a string, number, truth value, none or undefined. */
void llm_tv_dict_set(tv_heap *h, tv_dict *d, tv key, tv value);
/* Returns the item's value; NULL if none. */
const tv *llm_tv_dict_get(tv_heap *h, const tv_dict *d, tv key);
const tv *llm_tv_dict_find(const tv_dict *d, ggl_str name); /* of a string key */
/* An integer that does not fit in 64 bits becomes a float, which is wide. */
tv llm_tv_from_json(tv_heap *h, const json_value *v);
/* True for integers beyond 64 bits: they have their digits, but arithmetic takes them as floats. */
bool llm_tv_is_wide(tv v);

/* --- text ------------------------------------------------------------------------------------- */

/* A growing text. */
typedef struct tv_text {
    char *s;
    size_t n, cap;
} tv_text;
void llm_tv_put(tv_heap *h, tv_text *t, const char *s, size_t n);
void llm_tv_puts(tv_heap *h, tv_text *t, const char *s);
ggl_str llm_tv_done(const tv_text *t);

/* Append the value as str() and repr() of Python write it. A number with more digits than a double has stays as it was given. */
void llm_tv_put_str(tv_heap *h, tv_text *t, tv v);
void llm_tv_put_repr(tv_heap *h, tv_text *t, tv v);
/* Returns str(v). */
ggl_str llm_tv_to_str(tv_heap *h, tv v);

/* Appends the value as json.dumps(ensure_ascii=False) does. indent < 0: on one line; item and name:
 * the separators, such as ", " and ": ". */
typedef struct tv_json_style {
    int indent;
    ggl_str item, name;
    bool sort_keys, ascii; /* ascii: other characters as \uXXXX */
} tv_json_style;
void llm_tv_put_json(tv_heap *h, tv_text *t, tv v, const tv_json_style *style);

/* Characters are code points. Byte offset of character i, at most s.n; and their number. */
size_t llm_tv_n_chars(ggl_str s);
size_t llm_tv_char_at(ggl_str s, size_t i);
/* Reads the code point at s[*i] and moves *i past it; a byte that is no UTF-8 counts as one. */
uint32_t llm_tv_next_char(ggl_str s, size_t *i);
void llm_tv_put_char(tv_heap *h, tv_text *t, uint32_t c);

/* --- properties ------------------------------------------------------------------------------- */

bool llm_tv_truth(tv v);
bool llm_tv_equal(tv_heap *h, tv a, tv b);
/* Returns a negative number, 0 or a positive one; fails if the two have no order. `op` is for the
 * message. */
int llm_tv_compare(tv_heap *h, tv a, tv b, const char *op);
bool llm_tv_contains(tv_heap *h, tv container, tv v);
/* Returns the length of a string, list or dict; fails for other values. */
size_t llm_tv_length(tv_heap *h, tv v);
/* Returns the elements of what a loop can go over, as a list: of a list itself, of a dict its keys,
 * of a string its characters, of an undefined value none, of an iterator those that are left, which
 * are then gone. Fails for others. */
tv_list *llm_tv_elements(tv_heap *h, tv v);
/* "a string", for messages. */
const char *llm_tv_kind_text(tv v);
/* Fails unless v is of the kind; `what` says what it is for. */
ggl_str llm_tv_want_str(tv_heap *h, tv v, const char *what);
int64_t llm_tv_want_int(tv_heap *h, tv v, const char *what);
double llm_tv_want_number(tv_heap *h, tv v, const char *what);

#endif
