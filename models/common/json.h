/* JSON as RFC 8259 has it, and NaN, Infinity and -Infinity, which Python's json writes where a number is none; nothing else: no
 * comments, no trailing commas, no second value after the first. A name that an object has twice is an error: nobody knows which of
 * its values holds.
 * Bounded: LLM_JSON_MAX_DEPTH levels, LLM_JSON_MAX_VALUES values and names. Time is linear in the text, and memory is 16 bytes for
 * each value and name, 4 for each array and object, and those of strings with escapes: less than 10 times the text.
 *
 *     llm_json *doc;
 *     if (llm_json_read(&doc, "config.json", LIMIT, &err) == GGL_OK)
 *         n = llm_json_get(&doc->root, "hidden_size");     // NULL: absent, or the root is no object
 */
#ifndef LLM_JSON_H
#define LLM_JSON_H

#include "ggl/alloc.h"
#include "ggl/gguf.h"

#define LLM_JSON_MAX_DEPTH  64
#define LLM_JSON_MAX_VALUES (1 << 24)

typedef enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json_value {
    uint8_t kind; /* a json_kind */
    bool flag;    /* BOOL */
    bool whole;   /* NUMBER: an integer of at most 53 bits, so `number` is exact */
    uint32_t n;   /* STRING: bytes; ARRAY, OBJECT: elements */
    union {
        double number; /* may be NaN or infinite */
        const char
            *s; /* STRING: valid UTF-8, escapes resolved; may hold NULs, and has none at its end */
        const struct json_value *item; /* [n]; OBJECT: after them the n names, by json_name */
    };
} json_value;

typedef struct llm_json {
    ggl_arena arena; /* strings that had escapes */
    json_value root;
    json_value *value; /* all others */
    char *text;        /* owned if it was read from a file */
} llm_json;

static inline ggl_str json_str(const json_value *v) { /* of a STRING */
    return (ggl_str){v->s, v->n};
}
static inline ggl_str json_name(const json_value *v, size_t i) { /* of an OBJECT's i-th element */
    return json_str(&v->item[v->n + i]);
}

/* The text is borrowed until llm_json_free; `name` stands in messages ("config.json:3:17: ..", columns in bytes).
 * GGL_FORMAT, GGL_LIMIT (too deep, too many values, a number too large), GGL_NOMEM; on failure *out is NULL. */
GGL_NODISCARD ggl_status llm_json_parse(llm_json **out, const char *text, size_t n,
                                        const char *name, ggl_error *err);
/* A file of at most `most` bytes. GGL_IO, GGL_LIMIT and the above; the message begins with the path. */
GGL_NODISCARD ggl_status llm_json_read(llm_json **out, const char *path, size_t most,
                                       ggl_error *err);
void llm_json_free(llm_json *doc);

/* An object's value; NULL if there is none of that name, or v is NULL or no object. */
const json_value *llm_json_get(const json_value *v, const char *name);
/* Like that, of a kind. */
const json_value *llm_json_get_kind(const json_value *v, const char *name, json_kind kind);
bool llm_json_is(const json_value *v, const char *s); /* v is the string s */
const char *llm_json_kind_text(json_kind kind);       /* "an object" */

#endif
