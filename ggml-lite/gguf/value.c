/* Finds keys and tensors, and converts values. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gguf_file.h"

gguf_text ggl_gguf_show(ggl_str s) {
    gguf_text t;
    size_t at = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.s[i];
        if (at + 4 + 3 >= sizeof t.s) { /* room for one more escape, and for the dots */
            memcpy(t.s + at, "...", 3);
            at += 3;
            break;
        }
        if (c >= 0x20 && c < 0x7f)
            t.s[at++] = (char)c;
        else
            at += (size_t)snprintf(t.s + at, sizeof t.s - at, "\\x%02x", c);
    }
    t.s[at] = '\0';
    return t;
}

const char *ggl_gguf_name(const ggl_gguf *f) {
    return f->parts[0].path;
}

static const struct {
    const char *name;
    size_t size; /* bytes of an element; 0: it varies */
} type_rows[] = {
    [GGL_GGUF_U8] = {"u8", 1},         [GGL_GGUF_I8] = {"i8", 1},
    [GGL_GGUF_U16] = {"u16", 2},       [GGL_GGUF_I16] = {"i16", 2},
    [GGL_GGUF_U32] = {"u32", 4},       [GGL_GGUF_I32] = {"i32", 4},
    [GGL_GGUF_F32] = {"f32", 4},       [GGL_GGUF_BOOL] = {"bool", 1},
    [GGL_GGUF_STRING] = {"string", 0}, [GGL_GGUF_U64] = {"u64", 8},
    [GGL_GGUF_I64] = {"i64", 8},       [GGL_GGUF_F64] = {"f64", 8},
    [GGL_GGUF_ARRAY] = {"array", 0},
};

const char *ggl_gguf_type_name(ggl_gguf_type t) {
    return (unsigned)t <= GGL_GGUF_F64 ? type_rows[t].name : "unknown";
}

size_t ggl_gguf_type_size(ggl_gguf_type t) {
    return (unsigned)t <= GGL_GGUF_F64 ? type_rows[t].size : 0;
}

static ggl_str str_of(const char *s) {
    return (ggl_str){.s = s, .n = strlen(s)};
}

const ggl_gguf_value *ggl_gguf_head_find(const gguf_head *h, const char *key) {
    size_t i = ggl_index_find(&h->by_key, h->values, str_of(key));
    return i == SIZE_MAX ? NULL : &h->values[i].pub;
}

size_t ggl_gguf_n_values(const ggl_gguf *f) {
    return f->parts[0].head.n_values;
}

const ggl_gguf_value *ggl_gguf_value_at(const ggl_gguf *f, size_t i) {
    const gguf_head *h = &f->parts[0].head;
    return i < h->n_values ? &h->values[i].pub : NULL;
}

const ggl_gguf_value *ggl_gguf_find(const ggl_gguf *f, const char *key) {
    return ggl_gguf_head_find(&f->parts[0].head, key);
}

size_t ggl_gguf_n_tensors(const ggl_gguf *f) {
    return f->n_tensors;
}

const ggl_gguf_tensor *ggl_gguf_tensor_at(const ggl_gguf *f, size_t i) {
    return i < f->n_tensors ? &f->tensors[i] : NULL;
}

const ggl_gguf_tensor *ggl_gguf_find_tensor(const ggl_gguf *f, const char *name) {
    size_t i = ggl_index_find(&f->by_name, f->tensors, str_of(name));
    return i == SIZE_MAX ? NULL : &f->tensors[i];
}

/* Returns the bytes of element i; NULL if i is out of range, or elements have no fixed size. */
static const uint8_t *element(const ggl_gguf_value *v, uint64_t i) {
    size_t size = ggl_gguf_type_size(v->type);
    return i < v->n && size > 0 ? ((const gguf_value *)v)->data + i * size : NULL;
}

/* Return the integer of `size` bytes at p, which need not be aligned. */
static uint64_t unsigned_at(const uint8_t *p, size_t size) {
    uint64_t u = 0;
    memcpy(&u, p, size); /* files and machines are little-endian */
    return u;
}

static int64_t signed_at(const uint8_t *p, size_t size) {
    const uint64_t u = unsigned_at(p, size), sign = (uint64_t)1 << (8 * size - 1);
    return (int64_t)((u ^ sign) - sign);
}

bool ggl_gguf_integer(const ggl_gguf_value *v, uint64_t i, int64_t *out) {
    const uint8_t *p = element(v, i);
    if (!p)
        return false;
    const size_t size = ggl_gguf_type_size(v->type);
    switch (v->type) {
    case GGL_GGUF_U64:
        if (p[7] > 127) /* 2^63 or more */
            return false;
        /* fall through */
    case GGL_GGUF_U8:
    case GGL_GGUF_U16:
    case GGL_GGUF_U32:
        *out = (int64_t)unsigned_at(p, size);
        return true;
    case GGL_GGUF_I8:
    case GGL_GGUF_I16:
    case GGL_GGUF_I32:
    case GGL_GGUF_I64:
        *out = signed_at(p, size);
        return true;
    default:
        return false;
    }
}

bool ggl_gguf_unsigned(const ggl_gguf_value *v, uint64_t i, uint64_t *out) {
    const uint8_t *p = element(v, i);
    int64_t n;
    if (p && v->type == GGL_GGUF_U64) {
        *out = unsigned_at(p, sizeof *out);
        return true;
    }
    if (!ggl_gguf_integer(v, i, &n) || n < 0)
        return false;
    *out = (uint64_t)n;
    return true;
}

static double float_at(const uint8_t *p) {
    float x;
    memcpy(&x, p, sizeof x);
    return (double)x;
}

static double double_at(const uint8_t *p) {
    double x;
    memcpy(&x, p, sizeof x);
    return x;
}

bool ggl_gguf_number(const ggl_gguf_value *v, uint64_t i, double *out) {
    const uint8_t *p = element(v, i);
    int64_t n;
    if (!p)
        return false;
    switch (v->type) {
    case GGL_GGUF_F32:
        *out = float_at(p);
        return true;
    case GGL_GGUF_F64:
        *out = double_at(p);
        return true;
    case GGL_GGUF_U64:
        *out = (double)unsigned_at(p, sizeof(uint64_t));
        return true;
    default:
        if (!ggl_gguf_integer(v, i, &n))
            return false;
        *out = (double)n;
        return true;
    }
}

bool ggl_gguf_bool(const ggl_gguf_value *v, uint64_t i, bool *out) {
    const uint8_t *p = element(v, i);
    if (!p || v->type != GGL_GGUF_BOOL)
        return false;
    *out = *p != 0;
    return true;
}

bool ggl_gguf_string(const ggl_gguf_value *v, uint64_t i, ggl_str *out) {
    if (i >= v->n || v->type != GGL_GGUF_STRING)
        return false;
    const gguf_value *x = (const gguf_value *)v;
    const uint8_t *p = x->data + (x->starts ? x->starts[i] : 0);
    uint64_t n;
    memcpy(&n, p, sizeof n);
    *out = (ggl_str){.s = (const char *)p + sizeof n, .n = (size_t)n};
    return true;
}

bool ggl_gguf_same_value(const ggl_gguf_value *a, const ggl_gguf_value *b) {
    const gguf_value *x = (const gguf_value *)a, *y = (const gguf_value *)b;
    return a->type == b->type && a->is_array == b->is_array && a->n == b->n && x->size == y->size &&
           (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
}

static int wrong_type(const ggl_gguf_value *v, const char *wanted, ggl_error *err) {
    ggl_fail(err, GGL_FORMAT, "key '%s' is %s%s, %s is expected", ggl_gguf_show(v->key).s,
             v->is_array ? "an array of " : "", ggl_gguf_type_name(v->type), wanted);
    return -1;
}

int ggl_gguf_head_get_integer(const gguf_head *h, const char *key, int64_t *out, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_head_find(h, key);
    if (!v)
        return 0;
    if (!v->is_array && ggl_gguf_integer(v, 0, out))
        return 1;
    double x;
    if (!v->is_array && v->type == GGL_GGUF_U64 && ggl_gguf_number(v, 0, &x)) {
        ggl_fail(err, GGL_FORMAT, "key '%s' is %.0f, which is too large", ggl_gguf_show(v->key).s,
                 x);
        return -1;
    }
    return wrong_type(v, "an integer", err);
}

/* Puts the file's path before the message if `found` is -1; returns found. */
static int with_path(const ggl_gguf *f, int found, ggl_error *err) {
    if (found < 0)
        ggl_within(err, GGL_FORMAT, "%s", ggl_gguf_name(f));
    return found;
}

int ggl_gguf_get_integer(const ggl_gguf *f, const char *key, int64_t *out, ggl_error *err) {
    return with_path(f, ggl_gguf_head_get_integer(&f->parts[0].head, key, out, err), err);
}

int ggl_gguf_get_string(const ggl_gguf *f, const char *key, ggl_str *out, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(f, key);
    if (!v)
        return 0;
    if (!v->is_array && ggl_gguf_string(v, 0, out))
        return 1;
    return with_path(f, wrong_type(v, "a string", err), err);
}

int ggl_gguf_get_number(const ggl_gguf *f, const char *key, double *out, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(f, key);
    if (!v)
        return 0;
    if (!v->is_array && ggl_gguf_number(v, 0, out))
        return 1;
    return with_path(f, wrong_type(v, "a number", err), err);
}

int ggl_gguf_get_bool(const ggl_gguf *f, const char *key, bool *out, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(f, key);
    if (!v)
        return 0;
    if (!v->is_array && ggl_gguf_bool(v, 0, out))
        return 1;
    return with_path(f, wrong_type(v, "a bool", err), err);
}
