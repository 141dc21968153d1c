/* Times a transformer of made-up weights on a backend, through the scheduler:
 *     bench-graph [-b backend] [-t threads] [-q type] [-e n_embd] [-l n_layer] [-f n_ff] [-v
 * n_vocab] [-p prompt] [-n tokens] prints tokens per second for one prompt in one run, and for
 * tokens one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggl/backends.h"
#include "ggl/sched.h"

typedef struct options {
    const char *backend, *type;
    int threads, n_embd, n_layer, n_ff, n_vocab, n_prompt, n_gen, n_head, n_kv;
} options;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Weights of all layers may be the same bytes in content, not in place: memory traffic is a real
 * model's. */
static ggl_tensor *weight(ggl_graph *g, ggl_type type, int64_t k, int64_t n, double scale) {
    static uint32_t seed = 1;
    char name[32], *data = malloc(ggl_row_size(type, k) * (size_t)n);
    float *row = malloc((size_t)k * sizeof *row);
    static int count;
    for (int64_t r = 0; r < n && r < 16; r++) {
        for (int64_t i = 0; i < k; i++) {
            seed = seed * 1664525u + 1013904223u;
            row[i] = (float)(scale * ((double)(int32_t)seed * 0x1p-31));
        }
        ggl_type_get(type)->from_float(row, data + (size_t)r * ggl_row_size(type, k), k);
    }
    for (int64_t r = 16; r < n; r++)
        memcpy(data + (size_t)r * ggl_row_size(type, k),
               data + (size_t)(r % 16) * ggl_row_size(type, k), ggl_row_size(type, k));
    free(row);
    snprintf(name, sizeof name, "w%d", count++);
    return ggl_graph_weight(g, name, type, n > 1 ? 2 : 1, (int64_t[]){k, n}, data);
}

static ggl_tensor *op(ggl_graph *g, ggl_op o, ggl_tensor *a, ggl_tensor *b, int n_num,
                      const double *num) {
    return ggl_graph_op(g, o, (ggl_tensor *[]){a, b}, b ? 2 : 1, num, n_num);
}

static ggl_tensor *op2(ggl_graph *g, ggl_op o, ggl_tensor *a, ggl_tensor *b) {
    return op(g, o, a, b, 0, NULL);
}

static ggl_tensor *rms_norm(ggl_graph *g, ggl_tensor *x) {
    ggl_tensor *p = ggl_body_begin(g, &x, 1)[0],
               *sum = op(g, GGL_OP_SUM, op2(g, GGL_OP_MUL, p, p), NULL, 0, NULL);
    ggl_tensor *mean = op2(g, GGL_OP_DIV, sum, ggl_graph_number(g, (double)x->ne[0]));
    ggl_tensor *root =
        op(g, GGL_OP_SQRT, op2(g, GGL_OP_ADD, mean, ggl_graph_number(g, 1e-5)), NULL, 0, NULL);
    ggl_tensor *y = ggl_body_end(g, "rms", op2(g, GGL_OP_DIV, p, root), (double[]){1e-5}, 1);
    return op2(g, GGL_OP_MUL, y, weight(g, GGL_F32, x->ne[0], 1, 1));
}

static ggl_tensor *silu(ggl_graph *g, ggl_tensor *x) {
    ggl_tensor *p = ggl_body_begin(g, &x, 1)[0];
    return ggl_body_end(g, "silu", op2(g, GGL_OP_MUL, p, op(g, GGL_OP_SIGMOID, p, NULL, 0, NULL)),
                        NULL, 0);
}

static ggl_tensor *layer(ggl_graph *g, const options *o, ggl_type t, ggl_tensor *x,
                         ggl_tensor *freq) {
    int64_t e = o->n_embd, d = e / o->n_head, kv = d * o->n_kv;
    double scale = 1.0 / o->n_embd;
    ggl_tensor *h = rms_norm(g, x);
    ggl_tensor *q = ggl_linear(g, h, weight(g, t, e, e, scale), NULL),
               *k = ggl_linear(g, h, weight(g, t, e, kv, scale), NULL);
    ggl_tensor *v = ggl_linear(g, h, weight(g, t, e, kv, scale), NULL);
    const double q_shape[] = {(double)d, o->n_head}, kv_shape[] = {(double)d, o->n_kv};
    q = op(g, GGL_OP_ROPE_PAIR, op(g, GGL_OP_RESHAPE, q, NULL, 2, q_shape), freq, 0, NULL);
    k = op(g, GGL_OP_ROPE_PAIR, op(g, GGL_OP_RESHAPE, k, NULL, 2, kv_shape), freq, 0, NULL);
    ggl_tensor *cache =
        op(g, GGL_OP_CACHE, k, op(g, GGL_OP_RESHAPE, v, NULL, 2, kv_shape), 0, NULL);
    ggl_tensor *a = op(g, GGL_OP_RESHAPE, op(g, GGL_OP_ATTEND, q, cache, 0, NULL), NULL, 1,
                       (double[]){(double)e});
    x = op2(g, GGL_OP_ADD, x, ggl_linear(g, a, weight(g, t, e, e, scale), NULL));
    h = rms_norm(g, x);
    ggl_tensor *gate = silu(g, ggl_linear(g, h, weight(g, t, e, o->n_ff, scale), NULL));
    ggl_tensor *f =
        op2(g, GGL_OP_MUL, gate, ggl_linear(g, h, weight(g, t, e, o->n_ff, scale), NULL));
    return op2(g, GGL_OP_ADD, x, ggl_linear(g, f, weight(g, t, o->n_ff, e, scale), NULL));
}

static ggl_status run(const options *o, ggl_error *err) {
    ggl_backend *b, *reference;
    ggl_sched *s;
    ggl_graph_params gp = ggl_graph_default();
    gp.n_pos = o->n_prompt + o->n_gen + 64;
    gp.n_batch = o->n_prompt > 0 ? o->n_prompt : 1;
    ggl_graph *g = ggl_graph_new(&gp);
    const ggl_type_info *t = ggl_type_find(o->type);
    if (!t ||
        ggl_backend_open(&b, o->backend, &(ggl_backend_params){.n_threads = o->threads}, err) !=
            GGL_OK ||
        ggl_backend_open(&reference, "reference", NULL, err) != GGL_OK)
        return ggl_fail(err, GGL_USAGE, "no such type or backend");
    ggl_tensor *token = ggl_graph_input(g, "token", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    double f[256];
    int64_t r = o->n_embd / o->n_head / 2;
    for (int i = 0; i < r; i++)
        f[i] = 1.0 / (1 + i);
    ggl_tensor *freq = ggl_graph_const(g, 1, &r, f),
               *embd = weight(g, t->type, o->n_embd, o->n_vocab, 1);
    ggl_tensor *x = op(g, GGL_OP_PICK, embd, token, 0, NULL);
    for (int i = 0; i < o->n_layer; i++)
        x = layer(g, o, t->type, x, freq);
    ggl_graph_output(g, "logits", ggl_linear(g, rms_norm(g, x), embd, NULL));
    if (ggl_graph_finish(g, err) != GGL_OK || ggl_graph_fold(g, reference, err) != GGL_OK ||
        ggl_sched_new(&s, g, &(ggl_sched_params){.backend = &b, .n_backends = 1, .n_rows = 1},
                      err) != GGL_OK ||
        ggl_sched_alloc(s, err) != GGL_OK)
        return GGL_USAGE;
    int32_t *in = calloc((size_t)gp.n_pos, sizeof *in),
            *zero = calloc((size_t)gp.n_pos, sizeof *zero);
    ggl_status st = GGL_OK;
    printf("%s %s, %d threads:", o->backend, o->type, o->threads);
    for (int pass = 0; pass < 2 && st == GGL_OK; pass++) {
        int64_t n = pass ? 1 : o->n_prompt, times = pass ? o->n_gen : 3;
        double begin = now(), least = 1e9;
        for (int64_t i = 0; i < times && n > 0 && st == GGL_OK; i++) {
            double at = now();
            for (int64_t k = 0; k < n; k++)
                in[k] = (int32_t)(pass ? o->n_prompt + i : k);
            int32_t last = (int32_t)n - 1;
            (void)!(ggl_sched_set(s, "token", zero, n, err) |
                    ggl_sched_set(s, "slot", zero, n, err) | ggl_sched_set(s, "pos", in, n, err));
            st = ggl_sched_run(s, n, &last, 1, err);
            least = now() - at < least ? now() - at : least;
        }
        if (n > 0)
            printf(" %s %.1f t/s", pass ? "; one by one" : " prompt",
                   pass ? (double)times / (now() - begin) : (double)n / least);
    }
    printf("\n");
    return st;
}

int main(int argc, char **argv) {
    options o = {"cpu", "q8_0", 1, 128, 6, 384, 2048, 256, 256, 4, 2};
    for (int i = 1; i + 1 < argc; i += 2) {
        int v = atoi(argv[i + 1]);
        switch (argv[i][1]) {
        case 'b':
            o.backend = argv[i + 1];
            break;
        case 'q':
            o.type = argv[i + 1];
            break;
        case 't':
            o.threads = v;
            break;
        case 'e':
            o.n_embd = v;
            break;
        case 'l':
            o.n_layer = v;
            break;
        case 'f':
            o.n_ff = v;
            break;
        case 'v':
            o.n_vocab = v;
            break;
        case 'p':
            o.n_prompt = v;
            break;
        case 'n':
            o.n_gen = v;
            break;
        case 'h':
            o.n_head = v;
            break;
        case 'k':
            o.n_kv = v;
            break;
        default:
            fprintf(stderr, "unknown option %s\n", argv[i]);
            return 2;
        }
    }
    ggl_error err = {0};
    if (run(&o, &err) != GGL_OK) {
        fprintf(stderr, "error: %s\n", err.msg);
        return 1;
    }
    return 0;
}
