#include "safetensors_write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json_write.h"
#include "ggl/internal/file.h"
#include "ggl/internal/types.h"

static int64_t count(const st_out *t) {
    return t->ne[0] * (t->n_dims > 1 ? t->ne[1] : 1);
}

static size_t bytes(const st_out *t) {
    return ggl_row_size(t->type, count(t));
}

static const char *dtype(ggl_type type) {
    return type == GGL_F16 ? "F16" : type == GGL_BF16 ? "BF16" : "F32";
}

static void put_header(llm_json_out *out, const st_out *tensor, size_t n) {
    size_t at = 0;
    llm_json_format(out, "{'__metadata__': {'format': 'pt'}");
    for (size_t i = 0; i < n; i++) {
        const st_out *t = &tensor[i];
        llm_json_format(out, ", %.*s: {'dtype': '%s', 'shape': [", LLM_JSON_TEXT(t->name),
                        dtype(t->type));
        if (t->n_dims > 1)
            llm_json_format(out, "%lld, ", (long long)t->ne[1]);
        llm_json_format(out, "%lld], 'data_offsets': [%zu, %zu]}", (long long)t->ne[0], at,
                        at + bytes(t));
        at += bytes(t);
    }
    llm_json_put_text(out, "}");
    while (!out->failed && out->n % 8 != 0) /* data begin at a multiple of 8 */
        llm_json_put_text(out, " ");
}

static ggl_status write_data(FILE *f, const st_out *t, ggl_error *err) {
    enum { PIECE = 1024 };
    const ggl_type_info *type = ggl_type_get(t->type);
    union {
        double align;
        char s[PIECE * 4];
    } raw;
    float back[PIECE];
    for (int64_t at = 0, k; at < count(t); at += k) {
        k = count(t) - at < PIECE ? count(t) - at : PIECE;
        type->from_float(t->data + at, raw.s, k);
        type->to_float(raw.s, back, k);
        for (int64_t i = 0; i < k; i++)
            if (!isfinite(back[i]))
                return ggl_fail(err, GGL_FORMAT, "%s: a number is NaN or infinite in %s", t->name,
                                type->name);
        fwrite(raw.s, type->size, (size_t)k, f);
    }
    return GGL_OK;
}

ggl_status llm_safetensors_write(const char *path, const st_out *tensor, size_t n, size_t *size,
                                 ggl_error *err) {
    llm_json_out header = {0};
    ggl_new_file *f = NULL;
    put_header(&header, tensor, n);
    ggl_status s = header.failed ? ggl_fail(err, GGL_NOMEM, "out of memory")
                                 : ggl_new_file_open(&f, path, err);
    if (s == GGL_OK) {
        unsigned char length[8];
        for (int k = 0; k < 8; k++)
            length[k] = (unsigned char)((uint64_t)header.n >> (8 * k));
        fwrite(length, 1, sizeof length, ggl_new_file_stream(f));
        fwrite(header.s, 1, header.n, ggl_new_file_stream(f));
    }
    *size = 8 + header.n;
    for (size_t i = 0; i < n && s == GGL_OK; i++) {
        s = write_data(ggl_new_file_stream(f), &tensor[i], err);
        ggl_new_file_note(f);
        *size += bytes(&tensor[i]);
    }
    ggl_free(header.s);
    if (s == GGL_OK)
        return ggl_new_file_commit(f, err);
    ggl_new_file_discard(f);
    return s;
}
