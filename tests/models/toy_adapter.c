#include "toy_adapter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"

static uint64_t next(uint64_t *s) {
    *s += 0x9e3779b97f4a7c15u;
    uint64_t z = *s;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static float *numbers(uint64_t *seed, int64_t n, double size) {
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = (float)(size * ((double)(next(seed) >> 11) * 0x1p-52 - 1));
    return x;
}

static bool is_embedding(const toy_pair *p) {
    return strcmp(p->name, "token_embd.weight") == 0;
}

void toy_adapter_add(toy_adapter *x, const char *name, int n_dims, const int64_t *ne, uint64_t seed,
                     bool zero_b) {
    x->pair = realloc(x->pair, (x->n + 1) * sizeof *x->pair);
    toy_pair *p = &x->pair[x->n++];
    *p = (toy_pair){.n_dims = n_dims};
    snprintf(p->name, sizeof p->name, "%s", name);
    memcpy(p->ne, ne, sizeof p->ne);
    for (const char *s = name; *s; s++)
        seed = seed * 31 + (unsigned char)*s;
    p->rank = 1 + (int64_t)(next(&seed) % 4);
    p->one_a = n_dims == 3 && next(&seed) % 2;
    const int64_t n = p->ne[2], n_a = p->one_a ? 1 : n;
    p->a = numbers(&seed, (is_embedding(p) ? ne[1] : ne[0]) * p->rank * n_a, 1);
    p->b = numbers(&seed, (is_embedding(p) ? ne[0] : ne[1]) * p->rank * n,
                   zero_b ? 0 : 0.5 / sqrt((double)ne[0]));
    if (is_embedding(p) || x->sizes == 0 || (x->sizes == 1 && next(&seed) % 2))
        return;
    p->m = numbers(&seed, ne[1] * n, 0.25);
    for (int64_t i = 0; i < ne[1] * n; i++)
        p->m[i] += 1;
}

bool toy_adapter_open(toy_adapter *x, const char *architecture, ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    const float alpha = (float)x->alpha;
    size_t size;
    ggl_gguf_put_string(w, "general.type", "adapter", 7);
    ggl_gguf_put_string(w, "adapter.type", "lora", 4);
    ggl_gguf_put_string(w, "general.architecture", architecture, strlen(architecture));
    ggl_gguf_put(w, "adapter.lora.alpha", GGL_GGUF_F32, false, &alpha, 1);
    for (size_t i = 0; i < x->n; i++) {
        const toy_pair *p = &x->pair[i];
        const bool e = is_embedding(p);
        char name[160];
        const int64_t a[] = {e ? p->rank : p->ne[0], e ? p->ne[1] : p->rank, p->ne[2], 1};
        const int64_t b[] = {p->rank, e ? p->ne[0] : p->ne[1], p->ne[2], 1};
        snprintf(name, sizeof name, "%s.lora_a", p->name);
        ggl_gguf_put_tensor(w, name, GGL_F32, p->one_a ? 2 : p->n_dims, a, p->a);
        snprintf(name, sizeof name, "%s.lora_b", p->name);
        ggl_gguf_put_tensor(w, name, GGL_F32, p->n_dims, b, p->b);
        snprintf(name, sizeof name, "%s.lora_magnitude", p->name);
        if (p->m)
            ggl_gguf_put_tensor(w, name, GGL_F32, p->n_dims - 1,
                                (int64_t[]){p->ne[1], p->ne[2], 1, 1}, p->m);
    }
    ggl_status st = ggl_gguf_writer_write_memory(w, &x->bytes, &size, err);
    ggl_gguf_writer_free(w);
    return st == GGL_OK &&
           llm_adapter_open_memory(&x->adapter, x->bytes, size, "toy-adapter", err) == GGL_OK;
}

void toy_adapter_free(toy_adapter *x) {
    llm_adapter_free(x->adapter);
    ggl_free(x->bytes);
    for (size_t i = 0; i < x->n; i++) {
        free(x->pair[i].a);
        free(x->pair[i].b);
        free(x->pair[i].m);
    }
    free(x->pair);
    *x = (toy_adapter){.alpha = x->alpha, .sizes = x->sizes};
}

/* Makes the row w[in] that of base + change, times its length. */
static void set_length(const toy_pair *p, int64_t row, const float *base, const double *change,
                       float *w) {
    double sum = 0;
    for (int64_t k = 0; k < p->ne[0]; k++)
        sum += (base[k] + change[k]) * (base[k] + change[k]);
    for (int64_t k = 0; k < p->ne[0]; k++)
        w[k] = (float)(w[k] * (double)p->m[row] / sqrt(sum));
}

void toy_adapter_merge(const toy_adapter *x, double scale, const char *name, float *w) {
    for (size_t i = 0; i < x->n; i++)
        if (strcmp(x->pair[i].name, name) == 0) {
            const size_t n = (size_t)ggl_extents(x->pair[i].ne, 0, 3, 1);
            float *base = malloc(n * sizeof *base);
            if (base)
                memcpy(base, w, n * sizeof *base);
            toy_adapter_merge_on(x, scale, name, base, w);
            free(base);
        }
}

void toy_adapter_merge_on(const toy_adapter *x, double scale, const char *name, const float *base,
                          float *w) {
    for (size_t i = 0; i < x->n; i++) {
        const toy_pair *p = &x->pair[i];
        if (strcmp(p->name, name) != 0)
            continue;
        const double s = x->alpha != 0 ? scale * x->alpha / (double)p->rank : scale;
        const int64_t in = p->ne[0], out = p->ne[1], r = p->rank;
        double *change = calloc((size_t)in, sizeof *change);
        for (int64_t m = 0; change && m < p->ne[2]; m++)
            for (int64_t j = 0; j < out; j++) {
                const int64_t row = m * out + j;
                for (int64_t k = 0; k < in; k++) {
                    const float *a = p->a + (p->one_a ? 0 : m * in * r), *b = p->b + m * r * out;
                    double sum = 0;
                    for (int64_t c = 0; c < r; c++)
                        sum += is_embedding(p) ? (double)p->b[c + r * k] * p->a[c + r * j]
                                               : (double)b[c + r * j] * a[k + in * c];
                    change[k] = s * sum;
                    w[row * in + k] += (float)(s * sum);
                }
                if (p->m)
                    set_length(p, row, base + row * in, change, w + row * in);
            }
        free(change);
    }
}
