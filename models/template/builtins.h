/* What templates can call: filters, tests, methods and global functions. Tables, in filters.c,
 * tests.c, methods.c and globals.c. */
#ifndef LLM_TEMPLATE_BUILTINS_H
#define LLM_TEMPLATE_BUILTINS_H

#include "value.h"

enum { TV_MOST_PARAMS = 6 };

/* The arguments of a call, by the parameters of the function that is called. */
typedef struct tv_args {
    const tv *at[TV_MOST_PARAMS]; /* NULL: not given */
    tv_list rest;                 /* further positional ones, if the function takes any */
    tv_dict *named;               /* further named ones, likewise */
} tv_args;

/* self: the filtered or tested value, or the method's object. */
typedef tv tv_fn(tv_heap *h, tv self, const tv_args *a);

typedef struct tv_builtin {
    const char *name;
    /* Names of parameters, separated by spaces; "?" after a name: it may be absent; "*" and "**":
     * further arguments by position, and by name. */
    const char *params;
    tv_fn *fn;
} tv_builtin;

/* A function as a value. */
typedef struct tv_function {
    const tv_builtin *builtin;
    tv self;
} tv_function;

/* Arguments as a call has them, before they are bound to parameters. */
typedef struct tv_given {
    tv_list by_place;
    tv_dict *by_name; /* NULL: none */
} tv_given;

/* Calls the builtin; `what` is "filter", "test", "function" or "method", for messages. */
tv llm_tv_call_builtin(tv_heap *h, const tv_builtin *b, const char *what, tv self,
                       const tv_given *g);

/* Return NULL for an unknown name. */
const tv_builtin *llm_tv_filter(ggl_str name);
const tv_builtin *llm_tv_test(ggl_str name);
const tv_builtin *llm_tv_global(ggl_str name);
const tv_builtin *llm_tv_method(tv_kind kind, ggl_str name);
/* The name in one table, for the three above. */
const tv_builtin *llm_tv_lookup(const tv_builtin *table, size_t n, ggl_str name);

/* Returns object.name, or object[key]; an undefined value if there is none. */
tv llm_tv_attribute(tv_heap *h, tv object, ggl_str name);
tv llm_tv_element(tv_heap *h, tv object, tv key);
/* Follows "a.b.0" through attributes and elements, as map(attribute=) and sort(attribute=) do.
 * otherwise: replaces each absent element; NULL or none: nothing does. */
tv llm_tv_path(tv_heap *h, tv object, ggl_str path, const tv *otherwise);
/* A slice of a string or list; a bound may be NULL. */
tv llm_tv_slice(tv_heap *h, tv object, const tv *first, const tv *end, const tv *step);
/* Returns a op b; op as in a BINARY node: + - * / % ~, 'f' (//) or 'p' (**). */
tv llm_tv_binary(tv_heap *h, int op, tv a, tv b);
tv llm_tv_negated(tv_heap *h, tv v);
/* Fails because an operator does not work with these values. */
_Noreturn void llm_tv_no_operation(tv_heap *h, const char *op, tv a, tv b);
/* Appends the text of `format % args`: %s %r %d %i %x %f %g with flags, width and precision. */
tv llm_tv_percent(tv_heap *h, ggl_str format, tv args);

/* What the variable `loop` knows. */
typedef struct tv_loop {
    const tv_list *list;
    size_t i;
    tv last;               /* the argument of loop.changed */
    struct tv_loop *outer; /* the loop around it; NULL: none */
} tv_loop;
tv llm_tv_loop_attribute(tv_heap *h, tv_loop *l, ggl_str name);

/* Appends the time in a form of strftime. */
void llm_tv_put_time(tv_heap *h, tv_text *t, ggl_str format);

#endif
