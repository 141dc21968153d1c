#include "weights.h"

#include <stdlib.h>
#include <string.h>

enum {
    POOL = 1 << 18, /* elements; a multiple of all block sizes */
    MAX_POOLS = 16,
    RUN_LEAST = 16, /* least number of blocks copied in a row */
    RUN_MORE = 240,
    BUFFER = 1 << 20
};

typedef struct pool {
    ggl_type type;
    double mean, sigma;
    char *data;
} pool;

struct bench_weights {
    uint64_t seed;
    pool pool[MAX_POOLS];
    int n_pools;
    char *buffer;
};

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Returns a nearly normal number of variance 1: the sum of four uniform 16-bit numbers (Irwin,
 * Hall). It calls no library function, so that all machines agree. */
static float normal(uint64_t *state) {
    uint64_t r = next(state);
    double sum = 0;
    for (int i = 0; i < 4; i++, r >>= 16)
        sum += (double)(r & 0xffff) + 0.5;
    /* the variance of the sum is 4 / 12 */
    return (float)((sum * 0x1p-16 - 2) * 1.7320508075688772);
}

static uint64_t hash_name(const char *s) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

bench_weights *bench_weights_new(uint64_t seed) {
    bench_weights *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->seed = seed;
    w->buffer = malloc(BUFFER);
    if (w->buffer)
        return w;
    free(w);
    return NULL;
}

void bench_weights_free(bench_weights *w) {
    if (!w)
        return;
    for (int i = 0; i < w->n_pools; i++)
        free(w->pool[i].data);
    free(w->buffer);
    free(w);
}

/* Returns the pool of a type, made at first use; NULL: out of memory. */
static const char *pool_of(bench_weights *w, ggl_type type, double mean, double sigma) {
    for (int i = 0; i < w->n_pools; i++)
        if (w->pool[i].type == type && w->pool[i].mean == mean && w->pool[i].sigma == sigma)
            return w->pool[i].data;
    float *x = malloc(POOL * sizeof *x);
    char *data = malloc(ggl_row_size(type, POOL));
    if (!x || !data || w->n_pools == MAX_POOLS) {
        free(x);
        free(data);
        return NULL;
    }
    uint64_t state = w->seed;
    for (int i = 0; i < POOL; i++)
        x[i] = (float)(mean + sigma * (double)normal(&state));
    ggl_type_get((int)type)->from_float(x, data, POOL);
    free(x);
    w->pool[w->n_pools++] = (pool){type, mean, sigma, data};
    return data;
}

/* Fills the buffer with runs of blocks from the pool; returns how many blocks, at most n. */
static int64_t mix_blocks(char *buffer, const char *data, size_t block, int64_t n_pool, int64_t n,
                          uint64_t *state) {
    int64_t room = (int64_t)(BUFFER / block), done = 0;
    n = n < room ? n : room;
    while (done < n) {
        uint64_t r = next(state);
        int64_t first = (int64_t)((r >> 16) % (uint64_t)n_pool),
                run = RUN_LEAST + (int64_t)(r & 0xffff) % RUN_MORE;
        run = run < n - done ? run : n - done;
        run = run < n_pool - first ? run : n_pool - first;
        memcpy(buffer + (size_t)done * block, data + (size_t)first * block, (size_t)run * block);
        done += run;
    }
    return n;
}

ggl_status bench_weights_write(bench_weights *w, const char *name, ggl_type type, int64_t n,
                               double mean, double sigma, ggl_gguf_sink *to, ggl_error *err) {
    const ggl_type_info *t = ggl_type_get((int)type);
    const char *data = pool_of(w, type, mean, sigma);
    if (!data)
        return ggl_fail(err, GGL_NOMEM, "out of memory for random weights");
    uint64_t state = w->seed ^ hash_name(name);
    ggl_status st = GGL_OK;
    for (int64_t left = n / t->block, done; left > 0 && st == GGL_OK; left -= done) {
        done = mix_blocks(w->buffer, data, t->size, POOL / t->block, left, &state);
        st = ggl_gguf_sink_write(to, w->buffer, (size_t)done * t->size, err);
    }
    return st;
}
