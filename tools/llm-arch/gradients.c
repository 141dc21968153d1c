/* llm-arch verify --gradients: a model's gradients beside differences of the loss. */
#include "gradients.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/amounts.h"
#include "common/progress.h"
#include "common/report.h"
#include "ggl/internal/alloc.h"
#include "llm/train.h"

#define MOST_ERROR 2e-3 /* of the largest gradient */

/* A number that was compared; its name is kept. */
typedef struct compared {
    char weight[96];
    llm_gradient of;
} compared;

typedef struct list {
    compared *at;
    size_t n, cap;
    bool lacks_memory;
} list;

static bool keep(void *user, const llm_gradient *g) {
    list *l = user;
    if (!ggl_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at)) {
        l->lacks_memory = true;
        return false;
    }
    compared *to = &l->at[l->n++];
    snprintf(to->weight, sizeof to->weight, "%s", g->weight);
    to->of = *g;
    progress_set((double)l->n);
    return true;
}

static double error_of(const compared *c) {
    const double error = fabs(c->of.difference - c->of.gradient);
    return isnan(error) ? INFINITY : error;
}

static int by_error(const void *a, const void *b) {
    const double x = error_of(a), y = error_of(b);
    return (x < y) - (x > y);
}

static void print(list *l, const llm_gradients_result *r, int64_t n_worst) {
    printf("%" PRId64 " gradient%s of %" PRId64 " weight%s; the largest of all is %.4g\n",
           r->n_numbers, llm_amount_s(r->n_numbers), r->n_weights, llm_amount_s(r->n_weights),
           r->largest);
    qsort(l->at, l->n, sizeof *l->at, by_error);
    if (n_worst > 0)
        printf("%10s %12s %12s  %s\n", "error", "gradient", "difference", "weight");
    for (size_t i = 0; i < l->n && (int64_t)i < n_worst; i++) {
        const compared *c = &l->at[i];
        printf("%10.2g %12.5g %12.5g  %s[%" PRId64 "]\n", error_of(c) / r->largest, c->of.gradient,
               c->of.difference, c->weight, c->of.element);
    }
}

int arch_verify_gradients(const char *tool, const char *model, const char *arch, int64_t n_numbers,
                          int64_t n_tokens, int64_t n_worst) {
    ggl_error err = {0};
    list l = {0};
    llm_gradients_result r = {.size = sizeof r};
    const llm_gradients_params p = {.size = sizeof p,
                                    .arch = arch,
                                    .n_numbers = n_numbers,
                                    .n_tokens = n_tokens,
                                    .each = keep,
                                    .user = &l};
    progress_begin("numbers", (double)n_numbers, "gradients");
    const ggl_status st = llm_verify_gradients(model, &p, &r, &err);
    progress_end();
    int code = 0;
    if (l.lacks_memory)
        code = tool_error(tool, 1, "out of memory for a list of gradients");
    else if (st != GGL_OK)
        code = tool_error(tool, st == GGL_USAGE ? 2 : 1, "%s", err.msg);
    else
        print(&l, &r, n_worst);
    if (code == 0 && !(r.error <= MOST_ERROR))
        code =
            tool_error(tool, 1,
                       "a gradient is off by %.2g of the largest; rounding explains %g: a rule is "
                       "wrong, or the loss has a jump there",
                       r.error, MOST_ERROR);
    else if (code == 0)
        printf("all are right: off by at most %.2g of the largest\n", r.error);
    ggl_free(l.at);
    return code;
}
