/* GGUF: whatever opens can be read to the last byte, and, written again, opens with the same
 * content. What can be read of a file with defects is touched, too. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ggl/alloc.h"
#include "ggl/gguf.h"
#include "ggl/internal/types.h"
#include "gguf/gguf_file.h"

static volatile unsigned sum; /* what is read is used */

static void touch(const void *data, size_t n) {
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i++)
        sum += p[i];
}

static void read_value(const ggl_gguf_value *v) {
    touch(v->key.s, v->key.n);
    for (uint64_t i = 0; i < v->n; i++) {
        ggl_str s;
        double x;
        int64_t n;
        bool b;
        int n_fits = 0;
        if (ggl_gguf_string(v, i, &s)) {
            touch(s.s, s.n);
            n_fits++;
        }
        n_fits += ggl_gguf_number(v, i, &x);
        n_fits += ggl_gguf_bool(v, i, &b);
        require(n_fits == 1);
        require(!ggl_gguf_integer(v, i, &n) || ggl_gguf_number(v, i, &x));
    }
    double x;
    require(!ggl_gguf_number(v, v->n, &x));
}

/* The same name, content and order in both. */
static void compare(const ggl_gguf *a, const ggl_gguf *b) {
    require(ggl_gguf_n_values(a) == ggl_gguf_n_values(b) &&
            ggl_gguf_n_tensors(a) == ggl_gguf_n_tensors(b));
    for (size_t i = 0; i < ggl_gguf_n_values(a); i++) {
        const ggl_gguf_value *x = ggl_gguf_value_at(a, i), *y = ggl_gguf_value_at(b, i);
        require(x->type == y->type && x->is_array == y->is_array && x->n == y->n &&
                x->key.n == y->key.n);
        require(memcmp(x->key.s, y->key.s, x->key.n) == 0);
    }
    for (size_t i = 0; i < ggl_gguf_n_tensors(a); i++) {
        const ggl_gguf_tensor *x = ggl_gguf_tensor_at(a, i), *y = ggl_gguf_tensor_at(b, i);
        require(x->type == y->type && x->n_dims == y->n_dims && x->size == y->size);
        require(memcmp(x->ne, y->ne, sizeof x->ne) == 0 && memcmp(x->data, y->data, x->size) == 0);
    }
}

static void write_again(const ggl_gguf *f) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf *again;
    void *data;
    size_t size;
    require(w != NULL);
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++)
        ggl_gguf_put_value(w, ggl_gguf_value_at(f, i));
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char name[65] = {0};
        memcpy(name, t->name.s, t->name.n);
        require(ggl_gguf_find_tensor(f, name) == t);
        ggl_gguf_put_tensor(w, name, t->type, t->n_dims, t->ne, t->data);
    }
    if (ggl_gguf_writer_write_memory(w, &data, &size, NULL) == GGL_OK) {
        require(ggl_gguf_open_memory(&again, data, size, "again", NULL) == GGL_OK);
        compare(f, again);
        ggl_gguf_close(again);
        ggl_free(data);
    }
    ggl_gguf_writer_free(w);
}

static void on_defect(void *ctx, const char *text) {
    *(int *)ctx += 1;
    require(*text != '\0');
}

/* Reads what can be read of a file with defects. */
static void read_defective(const uint8_t *data, size_t size, bool is_right) {
    int n = 0;
    gguf_head h;
    ggl_error err = {0};
    const ggl_gguf_params p = {.size = sizeof p, .defect = on_defect, .ctx = &n};
    if (size == 0 || ggl_gguf_head_read(&h, data, size, &p, &err) != GGL_OK)
        return;
    require(!is_right || n == 0);
    for (size_t i = 0; i < h.n_values; i++)
        read_value(&h.values[i].pub);
    for (size_t i = 0; i < h.n_tensors; i++)
        if (h.tensors[i].data)
            touch(h.tensors[i].data, h.tensors[i].size);
    ggl_gguf_head_fini(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ggl_gguf *f;
    ggl_error err = {0};
    const bool is_right = ggl_gguf_open_memory(&f, data, size, "fuzz", &err) == GGL_OK;
    ggl_gguf_close(f);
    read_defective(data, size, is_right);
    if (ggl_gguf_open_memory(&f, data, size, "fuzz", &err) != GGL_OK) {
        require(!f && err.status != GGL_OK && strncmp(err.msg, "fuzz: ", 6) == 0);
        return 0;
    }
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++)
        read_value(ggl_gguf_value_at(f, i));
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++)
        touch(ggl_gguf_tensor_at(f, i)->data, ggl_gguf_tensor_at(f, i)->size);
    int64_t alignment = 0;
    /* an alignment of gigabytes is legal, but takes its time */
    if (ggl_gguf_get_integer(f, "general.alignment", &alignment, NULL) == 0 || alignment <= 1 << 16)
        write_again(f);
    ggl_gguf_close(f);
    return 0;
}

/* 0: every type of value, some tensors; 1: no tensors; 2: many small ones, large alignment. */
bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const float zeros[64];
    if (k > 2)
        return false;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    require(w != NULL);
    ggl_gguf_put_string(w, "general.architecture", "fuzz", 4);
    if (k == 0) {
        ggl_gguf_put_strings(w, "tokenizer.ggml.tokens",
                             (const ggl_str[]){{"a", 1}, {"", 0}, {"bcd", 3}}, 3);
        for (int t = GGL_GGUF_U8; t <= GGL_GGUF_F64; t++) {
            if (t == GGL_GGUF_STRING || t == GGL_GGUF_ARRAY)
                continue;
            char key[16] = {'k', (char)('a' + t)};
            ggl_gguf_put(w, key, (ggl_gguf_type)t, false, zeros, 1);
            key[2] = 's';
            ggl_gguf_put(w, key, (ggl_gguf_type)t, true, zeros, 3);
        }
    }
    if (k == 2)
        ggl_gguf_put(w, "general.alignment", GGL_GGUF_U32, false, &(uint32_t){256}, 1);
    for (int i = 0; k != 1 && ggl_type_at(i); i++) {
        const ggl_type_info *t = ggl_type_at(i);
        int n_dims = t->block == 1 ? i % 5 : 1 + i % 4; /* 0 dimensions: one element */
        if (ggl_row_size(t->type, t->block) <= sizeof zeros)
            ggl_gguf_put_tensor(w, t->name, t->type, n_dims, (const int64_t[]){t->block, 1, 1, 1},
                                zeros);
    }
    ggl_error err = {0};
    void *bytes;
    require(ggl_gguf_writer_write_memory(w, &bytes, size, &err) == GGL_OK);
    ggl_gguf_writer_free(w);
    *data = malloc(*size);
    require(*data != NULL);
    memcpy(*data, bytes, *size);
    ggl_free(bytes);
    return true;
}
