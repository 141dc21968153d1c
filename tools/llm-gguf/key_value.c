#include "key_value.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"
#include "common/input.h"
#include "common/json_text.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/text.h"

/* Names of types, with those of other programs. Whole numbers have a range. */
static const struct type_row {
    const char *names; /* separated by spaces */
    ggl_gguf_type type;
    size_t size;
    double min, max;
} types[] = {
    {"u8 uint8", GGL_GGUF_U8, 1, 0, UINT8_MAX},
    {"i8 int8", GGL_GGUF_I8, 1, INT8_MIN, INT8_MAX},
    {"u16 uint16", GGL_GGUF_U16, 2, 0, UINT16_MAX},
    {"i16 int16", GGL_GGUF_I16, 2, INT16_MIN, INT16_MAX},
    {"u32 uint32", GGL_GGUF_U32, 4, 0, UINT32_MAX},
    {"i32 int32 int", GGL_GGUF_I32, 4, INT32_MIN, INT32_MAX},
    {"u64 uint64", GGL_GGUF_U64, 8, 0, 0},
    {"i64 int64", GGL_GGUF_I64, 8, 0, 0},
    {"f32 float32 float", GGL_GGUF_F32, 4, 0, 0},
    {"f64 float64 double", GGL_GGUF_F64, 8, 0, 0},
    {"bool boolean", GGL_GGUF_BOOL, 1, 0, 0},
    {"str string", GGL_GGUF_STRING, 0, 0, 0},
};
enum { N_TYPES = sizeof types / sizeof *types };

static const struct type_row *find_type(const char *s, size_t n) {
    for (int i = 0; i < N_TYPES; i++)
        if (arg_is_among(types[i].names, s, n))
            return &types[i];
    return NULL;
}

static const struct type_row *row_of(ggl_gguf_type t) {
    int i = 0;
    while (i < N_TYPES - 1 && types[i].type != t)
        i++;
    return &types[i];
}

/* Reads "u32:" or "arr[u32]:" at *s and moves *s past it. Leaves all as it is if there is no type. */
static void read_type(const char **s, key_value *out) {
    const char *colon = strchr(*s, ':');
    size_t n = colon ? (size_t)(colon - *s) : 0;
    const bool array = n > 5 && memcmp(*s, "arr[", 4) == 0 && colon[-1] == ']';
    const struct type_row *t = array ? find_type(*s + 4, n - 5) : find_type(*s, n);
    if (n == 0 || !t)
        return;
    out->type = t->type;
    out->is_array = array;
    out->typed = true;
    *s = colon + 1;
}

int key_value_read(const char *tool, const char *word, key_value *out) {
    const char *equals = strchr(word, '='), *s = equals ? equals + 1 : "";
    *out = (key_value){0};
    if (!equals || equals == word)
        return tool_error(tool, 2, "'%s' is not KEY=VALUE, as in general.name=str:Mine", word);
    out->key = ggl_copy_text_n(word, (size_t)(equals - word));
    read_type(&s, out);
    if (s[0] == '@' && s[1] != '@') {
        out->text = tool_read_file(tool, s + 1, &out->n);
        if (!out->text)
            return 1;
    } else {
        s += s[0] == '@';
        out->text = ggl_copy_text(s);
        out->n = strlen(s);
    }
    return out->key && out->text ? -1 : tool_error(tool, 1, "out of memory");
}

void key_value_fini(key_value *v) {
    free(v->key);
    free(v->text);
    *v = (key_value){0};
}

/* --- values ----------------------------------------------------------------------------------- */

/* Encodes one element of a type that is not a string. Returns -1, or an exit code after a message. */
static int encode(const char *tool, const char *key, const struct type_row *t, const char *s,
                  void *to) {
    bool range = false;
    int64_t i = 0;
    uint64_t u = 0;
    double x = 0;
    if (t->type == GGL_GGUF_BOOL) {
        u = strcmp(s, "true") == 0 || strcmp(s, "1") == 0;
        if (!u && strcmp(s, "false") != 0 && strcmp(s, "0") != 0)
            return tool_error(tool, 2, "%s: '%s' is neither true nor false", key, s);
        memcpy(to, &u, 1);
        return -1;
    }
    if (t->type == GGL_GGUF_F32 || t->type == GGL_GGUF_F64) {
        const bool ok = args_read_float(s, &x, &range);
        const float f = (float)x;
        if (!ok || (t->type == GGL_GGUF_F32 && !isfinite(f)))
            return tool_error(tool, 2, "%s: '%s' is not a number%s", key, s,
                              ok || range ? " that fits its type" : "");
        if (t->type == GGL_GGUF_F32 && x != 0 && fabsf(f) < FLT_MIN)
            return tool_error(tool, 2,
                              "%s: %s is too small for f32, which has %.4g here: f64:%s keeps it, "
                              "and 0 is written as 0",
                              key, s, (double)f, s);
        memcpy(to, t->type == GGL_GGUF_F32 ? (const void *)&f : (const void *)&x, t->size);
        return -1;
    }
    const bool ok =
        t->type == GGL_GGUF_U64 ? args_read_uint64(s, &u, &range) : args_read_int(s, &i, &range);
    range |= ok && t->max > t->min && ((double)i < t->min || (double)i > t->max);
    if (range)
        return tool_error(tool, 2, "%s: %s is out of range for %s", key, s,
                          ggl_gguf_type_name(t->type));
    if (!ok)
        return tool_error(tool, 2, "%s: '%s' is not a whole number, as %s needs", key, s,
                          ggl_gguf_type_name(t->type));
    /* files and machines are little-endian */
    memcpy(to, t->type == GGL_GGUF_U64 ? (const void *)&u : (const void *)&i, t->size);
    return -1;
}

static int put_one(const char *tool, ggl_gguf_writer *w, const key_value *v,
                   const struct type_row *t) {
    uint64_t element = 0;
    if (t->type == GGL_GGUF_STRING) {
        ggl_gguf_put_string(w, v->key, v->text, v->n);
        return -1;
    }
    const int code = encode(tool, v->key, t, v->text, &element);
    if (code < 0)
        ggl_gguf_put(w, v->key, t->type, false, &element, 1);
    return code;
}

/* A list: "1,2,3", or as JSON "[1, 2, 3]" and ["a, b", "c"]. */
typedef struct list {
    char *at, *end; /* what is still to be read; elements are cut out of it */
    uint8_t *data;  /* numbers */
    ggl_str *s;     /* strings */
    size_t n, cap;
} list;

/* Cuts the next element out: sets *out. Returns NULL, or what is wrong. */
static const char *next_element(list *l, bool string, ggl_str *out) {
    l->at += strspn(l->at, " \t\r\n");
    if (string && *l->at == '"') {
        size_t used;
        const char *wrong = json_read_string(l->at, (size_t)(l->end - l->at), l->at, &out->n,
                                             &used); /* never longer than its source */
        out->s = l->at;
        if (wrong)
            return wrong;
        l->at += used;
        l->at += strspn(l->at, " \t\r\n");
        if (l->at < l->end && *l->at != ',')
            return "a comma is expected after a string";
    } else {
        out->s = l->at;
        out->n = strcspn(l->at, ",");
        l->at += out->n;
        while (out->n > 0 && strchr(" \t\r\n", out->s[out->n - 1]))
            out->n--;
    }
    if (l->at < l->end)
        l->at++; /* the comma */
    return NULL;
}

static int add_element(const char *tool, list *l, const key_value *v, const struct type_row *t,
                       ggl_str e) {
    const bool string = t->type == GGL_GGUF_STRING;
    const size_t each = string ? sizeof *l->s : t->size;
    void *array = string ? (void *)&l->s : (void *)&l->data;
    if (!ggl_grow(array, &l->cap, l->n + 1, each))
        return tool_error(tool, 1, "out of memory");
    if (string) {
        l->s[l->n++] = e;
        return -1;
    }
    char text[64] = "";
    if (e.n >= sizeof text)
        return tool_error(tool, 2, "%s: '%.40s..' is not a number", v->key, e.s);
    memcpy(text, e.s, e.n);
    const int code = encode(tool, v->key, t, text, l->data + l->n * each);
    l->n += code < 0;
    return code;
}

static int put_array(const char *tool, ggl_gguf_writer *w, const key_value *v,
                     const struct type_row *t) {
    char *copy = malloc(v->n + 1);
    list l = {.at = copy, .end = copy + v->n};
    int code = copy ? -1 : tool_error(tool, 1, "out of memory");
    if (copy) {
        memcpy(copy, v->text, v->n + 1);
        l.at += strspn(l.at, " \t\r\n");
        while (l.end > l.at && strchr(" \t\r\n", l.end[-1]))
            *--l.end = '\0';
        if (*l.at == '[' && l.end > l.at + 1 && l.end[-1] == ']') {
            *--l.end = '\0';
            l.at++;
            l.at += strspn(l.at, " \t\r\n");
        } else if (*l.at == '[') {
            code =
                tool_error(tool, 2, "%s: the list begins with [, but does not end with ]", v->key);
        }
    }
    bool more = code < 0 && l.at < l.end;
    while (more && code < 0) {
        ggl_str e;
        const char *comma = l.at;
        const char *wrong = next_element(&l, t->type == GGL_GGUF_STRING, &e);
        code = wrong ? tool_error(tool, 2, "%s: element %zu: %s", v->key, l.n + 1, wrong)
                     : add_element(tool, &l, v, t, e);
        more = l.at < l.end && l.at > comma;
    }
    if (code < 0 && t->type == GGL_GGUF_STRING)
        ggl_gguf_put_strings(w, v->key, l.s, l.n);
    else if (code < 0)
        ggl_gguf_put(w, v->key, t->type, true, l.data, l.n);
    ggl_free(l.data);
    ggl_free(l.s);
    free(copy);
    return code;
}

/* True for a text that is written as a list, "1,2" or "[1]". */
static bool is_list(const key_value *v) {
    const char *s = v->text + strspn(v->text, " \t\r\n");
    return *s == '[' || strchr(s, ',');
}

int key_value_put(const char *tool, ggl_gguf_writer *w, const key_value *v,
                  const ggl_gguf_value *old) {
    if (!v->typed && !old)
        return tool_error(tool, 2,
                          "%s is a new key, so its type is needed: %s=str:.., u32:, i32:, f32:, "
                          "bool:, .., or arr[str]: for a list",
                          v->key, v->key);
    if (!v->typed && old->is_array && old->n > 1 && !is_list(v))
        return tool_error(tool, 2,
                          "%s is a list of %" PRIu64 " elements, and '%.40s' is no list: a list is "
                          "written as JSON, such as %s='[%s]', or with commas",
                          v->key, old->n, v->text, v->key,
                          old->type == GGL_GGUF_STRING ? "\"a\", \"b\"" : "1, 2");
    const struct type_row *t = row_of(v->typed ? v->type : old->type);
    return (v->typed ? v->is_array : old->is_array) ? put_array(tool, w, v, t)
                                                    : put_one(tool, w, v, t);
}
