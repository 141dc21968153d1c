/* Objects inside a request (messages, blocks, tools) as tables: a row for each name that such an object may
 * have. The values go, as they are, into a struct of pointers.
 *
 *     typedef struct block { const json_value *type, *text; } block;
 *     static const shape_row rows[] = {
 *         {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, type), NULL},
 *         {"text", SHAPE_STRING, offsetof(block, text), NULL},
 *         {"cache_control", SHAPE_IGNORED, 0, NULL},
 *         {"citations", SHAPE_REFUSED, 0, "leave them out"},
 *         {0}};
 *     block b;
 *     st = read_shape(&b, sizeof b, &ask->ignored, value, rows, err); */
#ifndef LLM_SERVER_API_SHAPE_H
#define LLM_SERVER_API_SHAPE_H

#include "dialect.h"

/* What a row accepts. */
enum {
    SHAPE_BOOL = 1 << JSON_BOOL,
    SHAPE_NUMBER = 1 << JSON_NUMBER,
    SHAPE_STRING = 1 << JSON_STRING,
    SHAPE_LIST = 1 << JSON_ARRAY,
    SHAPE_OBJECT = 1 << JSON_OBJECT,
    SHAPE_REQUIRED = 1 << 8, /* besides: it must be there */
    SHAPE_IGNORED = 1 << 9,  /* anything; it has no effect */
    SHAPE_REFUSED = 1 << 10  /* null, false, and empty strings, lists and objects only */
};

typedef struct shape_row {
    const char *name;
    unsigned kinds;
    size_t
        at; /* offset of a `const json_value *` in the struct; NULL stands for absent and for null */
    const char *why; /* SHAPE_REFUSED: what to do instead */
} shape_row;

/* Clears the struct and reads an object into it, by a table that ends with an empty row. Unknown names go into `x`.
 * GGL_USAGE: `v` is no object, lacks a required name, a value is of another kind, or, if x->strict, a name is unknown
 * ("did you mean"); GGL_UNSUPPORTED: a refused name. The caller puts the place before the message (ggl_within). */
GGL_NODISCARD ggl_status read_shape(void *out, size_t size, ignored_fields *x, const json_value *v,
                                    const shape_row *table, ggl_error *err);

/* True for values that ask for nothing: null, false, and empty strings, lists and objects. */
bool json_asks_nothing(const json_value *v);
/* True if v is `true`. NULL is fine. */
bool json_is_true(const json_value *v);

#endif
