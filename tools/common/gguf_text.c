#include "gguf_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/show.h"
#include "ggl/internal/types.h"

ggl_str text_of_key(const ggl_gguf *f, const char *key) {
    ggl_error err;
    ggl_str x = {"", 0};
    (void)ggl_gguf_get_string(f, key, &x, &err);
    return x;
}

int tensor_layer(ggl_str name, ggl_str *rest) {
    size_t i = 4;
    int layer = 0;
    *rest = name;
    if (name.n < 6 || memcmp(name.s, "blk.", 4) != 0)
        return -1;
    while (i < name.n && name.s[i] >= '0' && name.s[i] <= '9' && layer < 100000)
        layer = layer * 10 + (name.s[i++] - '0');
    if (i == 4 || i + 1 >= name.n || name.s[i] != '.')
        return -1;
    *rest = (ggl_str){name.s + i + 1, name.n - i - 1};
    return layer;
}

size_t tensor_layer_at(ggl_str name) {
    ggl_str rest;
    for (size_t i = 0; i + 5 < name.n; i++)
        if ((i == 0 || name.s[i - 1] == '.') &&
            tensor_layer((ggl_str){name.s + i, name.n - i}, &rest) >= 0)
            return i;
    return SIZE_MAX;
}

uint64_t tensor_elements(const ggl_gguf_tensor *t) {
    size_t n = 1;
    for (int d = 0; d < t->n_dims; d++)
        if (!ggl_size_mul(n, (uint64_t)t->ne[d], &n))
            return 0;
    return n;
}

const char *tensor_shape(const ggl_gguf_tensor *t, char *buf, size_t size) {
    size_t n = (size_t)snprintf(buf, size, "[");
    for (int d = 0; d < t->n_dims && n < size; d++)
        n += (size_t)snprintf(buf + n, size - n, "%s%" PRId64, d ? ", " : "", t->ne[d]);
    if (n < size)
        snprintf(buf + n, size - n, "]");
    return buf;
}

const char *tensor_type(const ggl_gguf_tensor *t) {
    const ggl_type_info *info = ggl_type_get((int)t->type);
    const char *foreign = ggl_type_foreign_name((int)t->type);
    return info ? info->name : foreign ? foreign : "?";
}

const char *number_text(const ggl_gguf_value *v, uint64_t i, int digits, char buf[NUMBER_TEXT]) {
    bool flag;
    double x;
    int64_t whole;
    uint64_t large;
    buf[0] = '\0';
    if (ggl_gguf_bool(v, i, &flag))
        snprintf(buf, NUMBER_TEXT, "%s", flag ? "true" : "false");
    else if (ggl_gguf_integer(v, i, &whole))
        snprintf(buf, NUMBER_TEXT, "%" PRId64, whole);
    else if (ggl_gguf_unsigned(v, i, &large))
        snprintf(buf, NUMBER_TEXT, "%" PRIu64, large);
    else if (ggl_gguf_number(v, i, &x))
        snprintf(buf, NUMBER_TEXT, "%.*g", v->type == GGL_GGUF_F64 ? digits : 9, x);
    return buf;
}

/* Writes element i of a value; most: bytes of a string. */
static size_t print_item(const ggl_gguf_value *v, uint64_t i, size_t most, char *buf, size_t size) {
    ggl_str s;
    char number[NUMBER_TEXT];
    if (ggl_gguf_string(v, i, &s)) {
        bool cut = s.n > most;
        char text[4 * 60 + 1];
        ggl_show(text, sizeof text, s.s, cut ? most : s.n);
        return (size_t)snprintf(buf, size, "\"%s%s\"", text, cut ? ".." : "");
    }
    return (size_t)snprintf(buf, size, "%s", number_text(v, i, 9, number));
}

static const char *one_text(const ggl_gguf_value *v, size_t most, char *buf, size_t size) {
    buf[0] = '\0';
    print_item(v, 0, most, buf, size);
    return buf;
}

static const char *list_text(const ggl_gguf_value *v, uint64_t shown, char *buf, size_t size) {
    size_t n = (size_t)snprintf(buf, size, "[");
    for (uint64_t i = 0; i < v->n && i < shown && n < size; i++) {
        n += (size_t)snprintf(buf + n, size - n, "%s", i ? ", " : "");
        if (n < size)
            n += print_item(v, i, 60, buf + n, size - n);
    }
    if (n < size)
        snprintf(buf + n, size - n, v->n > shown ? ", .. %" PRIu64 " in all]" : "]", v->n);
    return buf;
}

const char *value_text(const ggl_gguf_value *v, char *buf, size_t size) {
    return v->is_array ? list_text(v, v->type == GGL_GGUF_STRING ? 3 : 16, buf, size)
                       : one_text(v, 60, buf, size);
}

const char *value_text_within(const ggl_gguf_value *v, size_t most, char *buf, size_t size) {
    value_text(v, buf, size);
    if (v->is_array)
        for (uint64_t shown = 16; strlen(buf) > most && shown >= 1; shown--)
            list_text(v, shown, buf, size);
    else
        for (size_t n = 60; strlen(buf) > most && n >= 16; n--)
            one_text(v, n, buf, size);
    return buf;
}
