/* JSON as defined by RFC 8259, and also NaN, Infinity and -Infinity, which Python's json writes. No
 * other extensions: no comments, no trailing commas, no second value. A name that an object has
 * twice is an error, as it is not known which value is meant.
 *
 * Limits: LLM_JSON_MAX_DEPTH levels, LLM_JSON_MAX_VALUES values and names. Time is linear in the
 * text. Memory is 24 bytes for each value and name, 4 for each array and object, and the strings
 * with escapes: less than 14 times the text.
 *
 *     llm_json *doc;
 *     if (llm_json_read(&doc, "config.json", LIMIT, &err) == GGL_OK)
 *         n = llm_json_get(&doc->root, "hidden_size"); // NULL: absent, or the root is not an
 *                                                          object */
#ifndef LLM_JSON_H
#define LLM_JSON_H

#include "ggl/internal/alloc.h"
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
    union {
        bool flag;  /* BOOL */
        bool whole; /* NUMBER: an integer of at most 53 bits, so that `number` is exact */
    };
    uint16_t n_text; /* NUMBER: bytes of its text */
    uint32_t n;      /* STRING: bytes; ARRAY, OBJECT: elements; others: 0 */
    union {
        double number; /* may be NaN or infinite */
        /* STRING: valid UTF-8, escapes resolved; may hold NULs, and none is at its end */
        const char *s;
        const struct json_value *item; /* [n]; in an OBJECT the n names follow; see json_name */
    };
    const char *
        text; /* NUMBER: it as it is written, in the text that was parsed; NULL: NaN and infinities */
} json_value;

typedef struct llm_json {
    ggl_arena arena; /* strings that had escapes */
    json_value root;
    json_value *value; /* all other values */
    char *text;        /* owned, if it was read from a file */
} llm_json;

/* Returns the text of a STRING. */
static inline ggl_str json_str(const json_value *v) {
    return (ggl_str){v->s, v->n};
}
/* Returns the text of a NUMBER as it is written; empty: NaN and infinities. */
static inline ggl_str json_number_text(const json_value *v) {
    return v->text ? (ggl_str){v->text, v->n_text} : (ggl_str){"", 0};
}
/* Returns the name of an OBJECT's i-th element. */
static inline ggl_str json_name(const json_value *v, size_t i) {
    return json_str(&v->item[v->n + i]);
}

/* Parses a text, which is borrowed until llm_json_free; `name` is for messages
 * ("config.json:3:17: ..", columns in bytes). GGL_FORMAT, GGL_LIMIT (too deep, too many values,
 * a number too large), GGL_NOMEM; after an error *out is NULL. */
GGL_NODISCARD ggl_status llm_json_parse(llm_json **out, const char *text, size_t n,
                                        const char *name, ggl_error *err);
/* The same for what a model has written: a name may be there twice, and a number may be larger than doubles (infinite). */
GGL_NODISCARD ggl_status llm_json_parse_answer(llm_json **out, const char *text, size_t n,
                                               const char *name, ggl_error *err);
/* Reads and parses a file of at most `most` bytes. Also GGL_IO, or GGL_LIMIT if it is longer;
 * the message begins with the path. */
GGL_NODISCARD ggl_status llm_json_read(llm_json **out, const char *path, size_t most,
                                       ggl_error *err);
void llm_json_free(llm_json *doc);

/* Returns the value of that name in an object; NULL: no such name, or v is NULL or not an
 * object. */
const json_value *llm_json_get(const json_value *v, const char *name);
/* The same, but NULL also for values of another kind. */
const json_value *llm_json_get_kind(const json_value *v, const char *name, json_kind kind);
bool llm_json_is(const json_value *v,
                 const char *s); /* whether v, which may be NULL, is the string s */
/* Whether the object has a member of that name, and this is the string s. */
bool llm_json_has(const json_value *object, const char *name, const char *s);
/* Reads a NUMBER that is written as an integer (no point, no exponent) of 64 bits, exactly: its
 * absolute value and sign. False: v is something else, or larger. */
bool llm_json_integer(const json_value *v, uint64_t *magnitude, bool *negative);
const char *llm_json_kind_text(json_kind kind); /* "an object" */

#endif
