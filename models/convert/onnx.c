#include "onnx.h"

#include <stdio.h>
#include <string.h>

#include "common/little_endian.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "ggl/internal/types.h"

enum { MOST_DEPTH = 16 };                                 /* graphs within graphs */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* wire types */

/* A message, or a part of one. */
typedef struct span {
    const unsigned char *at, *end;
} span;

/* A member of a message: a number, or bytes. */
typedef struct member {
    uint64_t number; /* its field's */
    int wire;
    uint64_t value;
    span bytes;
} member;

static bool read_varint(span *s, uint64_t *out) {
    *out = 0;
    for (int shift = 0; shift < 64 && s->at < s->end; shift += 7) {
        const unsigned char byte = *s->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static ggl_status damaged(ggl_error *err) {
    return ggl_fail(err, GGL_FORMAT,
                    "the file is truncated or damaged, or no ONNX: download it again");
}

/* Takes the next member off *s. */
static ggl_status next(span *s, member *m, ggl_error *err) {
    uint64_t key = 0, n = 0;
    if (!read_varint(s, &key))
        return damaged(err);
    *m = (member){.number = key >> 3, .wire = (int)(key & 7)};
    if (m->wire == VARINT)
        return read_varint(s, &m->value) ? GGL_OK : damaged(err);
    if (m->wire == BYTES && !read_varint(s, &n))
        return damaged(err);
    n = m->wire == FIXED64 ? 8 : m->wire == FIXED32 ? 4 : n;
    if ((m->wire != BYTES && n == 0) || n > (uint64_t)(s->end - s->at))
        return damaged(err);
    m->bytes = (span){s->at, s->at + n};
    s->at += n;
    return GGL_OK;
}

/* --- a tensor --------------------------------------------------------------------------------- */

typedef struct tensor {
    int64_t dim[LLM_ST_MAX_DIMS]; /* outermost first */
    int n_dims;
    uint64_t type;
    span name, data;
    bool is_elsewhere;
} tensor;

static ggl_status add_dim(tensor *t, uint64_t x, ggl_error *err) {
    if (t->n_dims == LLM_ST_MAX_DIMS || x < 1 || x > INT32_MAX)
        return ggl_fail(err, GGL_FORMAT, "a tensor has more than %d dimensions, or one of %llu",
                        LLM_ST_MAX_DIMS, (unsigned long long)x);
    t->dim[t->n_dims++] = (int64_t)x;
    return GGL_OK;
}

static ggl_status read_dims(tensor *t, const member *m, ggl_error *err) {
    span s = m->bytes;
    uint64_t x = 0;
    if (m->wire == VARINT)
        return add_dim(t, m->value, err);
    ggl_status st = GGL_OK;
    while (st == GGL_OK && s.at < s.end)
        st = read_varint(&s, &x) ? add_dim(t, x, err) : damaged(err);
    return st;
}

static ggl_status read_tensor(tensor *t, span s, ggl_error *err) {
    enum { DIMS = 1, TYPE = 2, FLOATS = 4, NAME = 8, RAW = 9, PLACE = 14 };
    ggl_status st = GGL_OK;
    while (st == GGL_OK && s.at < s.end) {
        member m = {0};
        st = next(&s, &m, err);
        if (st != GGL_OK)
            return st;
        if (m.number == DIMS)
            st = read_dims(t, &m, err);
        else if (m.number == TYPE)
            t->type = m.value;
        else if (m.number == NAME)
            t->name = m.bytes;
        else if (m.number == RAW || (m.number == FLOATS && m.wire == BYTES))
            t->data = m.bytes;
        else if (m.number == PLACE)
            t->is_elsewhere = m.value != 0;
    }
    return st;
}

/* Adds a tensor of floating-point numbers; others, such as shapes, are no weights. */
static ggl_status add(llm_safetensors *st, const tensor *t, span name, ggl_error *err) {
    const int type = t->type == 1    ? GGL_F32
                     : t->type == 10 ? GGL_F16
                     : t->type == 16 ? GGL_BF16
                                     : -1;
    const size_t n_name = (size_t)(name.end - name.at), size = (size_t)(t->data.end - t->data.at);
    char shown[4 * 120 + 1];
    if (type < 0 || t->n_dims == 0 || n_name == 0)
        return GGL_OK;
    ggl_show(shown, sizeof shown, (const char *)name.at, n_name < 120 ? n_name : 120);
    if (t->is_elsewhere)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "tensor '%s' is in a file beside it, which is not read", shown);
    const ggl_type_info *info = ggl_type_get(type);
    st_tensor x = {.dtype = type == GGL_F32   ? "F32"
                            : type == GGL_F16 ? "F16"
                                              : "BF16",
                   .type = type,
                   .n_dims = t->n_dims,
                   .data = t->data.at,
                   .size = size};
    size_t want = info->size;
    for (int d = 0; d < LLM_ST_MAX_DIMS; d++) {
        x.ne[d] = d < t->n_dims ? t->dim[t->n_dims - 1 - d] : 1;
        if (!ggl_size_mul(want, (uint64_t)x.ne[d], &want))
            want = SIZE_MAX;
    }
    if (want != size)
        return ggl_fail(err, GGL_FORMAT, "tensor '%s' has %zu bytes, which do not fit its shape",
                        shown, size);
    char *own = ggl_arena_strndup(&st->arena, (const char *)name.at, n_name);
    if (!own || !ggl_grow(&st->tensor, &st->cap_tensor, st->n_tensor + 1, sizeof x))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the table of tensors");
    x.name = (ggl_str){own, n_name};
    if (memchr(own, 0, n_name))
        return ggl_fail(err, GGL_FORMAT, "the name of tensor '%s' has a NUL", shown);
    st->tensor[st->n_tensor++] = x;
    return GGL_OK;
}

/* --- graphs ----------------------------------------------------------------------------------- */

static ggl_status read_graph(llm_safetensors *st, span s, int depth, ggl_error *err);

static ggl_status read_attribute(llm_safetensors *st, span s, span output, int depth,
                                 ggl_error *err) {
    enum { TENSOR = 5, GRAPH = 6 };
    ggl_status status = GGL_OK;
    while (status == GGL_OK && s.at < s.end) {
        member m = {0};
        tensor t = {0};
        status = next(&s, &m, err);
        if (status == GGL_OK && m.number == GRAPH)
            status = read_graph(st, m.bytes, depth + 1, err);
        if (status != GGL_OK || m.number != TENSOR)
            continue;
        status = read_tensor(&t, m.bytes, err);
        if (status == GGL_OK)
            status = add(st, &t, output, err);
    }
    return status;
}

static ggl_status read_node(llm_safetensors *st, span s, int depth, ggl_error *err) {
    enum { OUTPUT = 2, ATTRIBUTE = 5 };
    span output = {0};
    ggl_status status = GGL_OK;
    for (int turn = 0; turn < 2; turn++) /* the output's name may stand behind */
        for (span at = s; status == GGL_OK && at.at < at.end;) {
            member m = {0};
            status = next(&at, &m, err);
            if (status == GGL_OK && m.number == OUTPUT && !output.at)
                output = m.bytes;
            if (status == GGL_OK && m.number == ATTRIBUTE && turn == 1)
                status = read_attribute(st, m.bytes, output, depth, err);
        }
    return status;
}

static ggl_status read_graph(llm_safetensors *st, span s, int depth, ggl_error *err) {
    enum { NODE = 1, INITIALIZER = 5 };
    ggl_status status = GGL_OK;
    if (depth > MOST_DEPTH)
        return ggl_fail(err, GGL_LIMIT, "more than %d graphs within each other", MOST_DEPTH);
    while (status == GGL_OK && s.at < s.end) {
        member m = {0};
        tensor t = {0};
        status = next(&s, &m, err);
        if (status == GGL_OK && m.number == NODE)
            status = read_node(st, m.bytes, depth, err);
        if (status != GGL_OK || m.number != INITIALIZER)
            continue;
        status = read_tensor(&t, m.bytes, err);
        if (status == GGL_OK)
            status = add(st, &t, t.name, err);
    }
    return status;
}

ggl_status llm_onnx_read(llm_safetensors *st, const void *data, size_t size, ggl_error *err) {
    enum { GRAPH = 7 };
    span s = {data, (const unsigned char *)data + size};
    ggl_status status = GGL_OK;
    while (status == GGL_OK && s.at < s.end) {
        member m = {0};
        status = next(&s, &m, err);
        if (status == GGL_OK && m.number == GRAPH)
            status = read_graph(st, m.bytes, 0, err);
    }
    return status == GGL_OK ? llm_safetensors_index(st, err) : status;
}

bool llm_onnx_is(const char *path, const char *head, size_t n) {
    return ggl_ends_with(path, ".onnx") && n > 2 && head[0] == 0x08; /* ir_version */
}
