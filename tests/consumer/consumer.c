/* The example of docs/graph.md, built against the installed package. */
#include <stdio.h>

#include "ggl/backends.h"
#include "ggl/sched.h"

int main(void) {
    static float w[3 * 2] = {1, 2, 3, 4, 5, 6}; /* [3, 2]: two rows of three */
    ggl_error err = {0};
    ggl_backend *cpu = NULL;
    ggl_sched *s = NULL;
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x =
        ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){3}, true); /* [3], for each of the batch */
    ggl_tensor *m = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){3, 2}, w);
    ggl_tensor *y = ggl_unary(g, GGL_OP_TANH, ggl_linear(g, x, m, NULL)); /* [2] */
    ggl_graph_output(g, "y", y);

    ggl_sched_params p = {.backend = &cpu, .n_backends = 1};
    const float batch[2][3] = {{1, 0, 0}, {0, 0.1f, -0.1f}};
    if (ggl_graph_finish(g, &err) != GGL_OK ||
        ggl_backend_open(&cpu, "cpu", NULL, &err) != GGL_OK ||
        ggl_sched_new(&s, g, &p, &err) != GGL_OK || ggl_sched_alloc(s, &err) != GGL_OK ||
        ggl_sched_set(s, "x", batch, 2, &err) != GGL_OK ||
        ggl_sched_run(s, 2, NULL, 0, &err) != GGL_OK) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    const float *out = ggl_sched_output(s, 0);
    printf("%.4f %.4f\n%.4f %.4f\n", out[0], out[1], out[2], out[3]);
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(cpu);
    return 0;
}
