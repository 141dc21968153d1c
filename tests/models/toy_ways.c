#include "toy_ways.h"

#include <math.h>
#include <string.h>

static ggl_status open_backend(ggl_backend **out, const char *name, int n_threads, ggl_error *err) {
    const ggl_backend_params p = {.size = sizeof p, .n_threads = n_threads};
    return ggl_backend_open(out, name, &p, err);
}

ggl_status toy_backends_open(toy_backends *b, ggl_error *err) {
    *b = (toy_backends){.cpu3 = NULL};
    ggl_status st = open_backend(&b->cpu[0], "cpu", 1, err);
    if (st == GGL_OK)
        st = open_backend(&b->cpu[1], "cpu", 2, err);
    if (st == GGL_OK)
        st = open_backend(&b->cpu3, "cpu", 3, err);
    return st == GGL_OK ? open_backend(&b->reference, "reference", 1, err) : st;
}

void toy_backends_close(toy_backends *b) {
    ggl_backend *all[] = {b->cpu[0], b->cpu[1], b->cpu3, b->reference};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ggl_backend_close(all[i]);
}

void toy_ways(const toy_backends *b, toy_way out[TOY_WAYS]) {
    out[0] = (toy_way){"token by token", b->cpu, 1, -1, 1};
    out[1] = (toy_way){"3 threads, pieces of 7", &b->cpu3, 1, -1, 7};
    out[2] = (toy_way){"split before layer 1", b->cpu, 2, 1, 9};
}

double toy_distance(const toy_logits *a, const toy_logits *b) {
    double worst = 0, size = 1;
    for (size_t i = 0; i < a->n; i++) {
        if (a->at[i] < -1e37f && b->at[i] < -1e37f)
            continue;
        const double d = fabs((double)a->at[i] - (double)b->at[i]);
        worst = d > worst || isnan(d) ? d : worst;
        size = fmax(size, fabs((double)b->at[i]));
    }
    return worst / size;
}

size_t toy_other_bits(const toy_logits *a, const toy_logits *b) {
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        n += memcmp(&a->at[i], &b->at[i], 4) != 0 && !(isnan(a->at[i]) && isnan(b->at[i]));
    return n;
}
