/* Checks a model's gradients: llm_verify_gradients. */
#include <inttypes.h>

#include "context.h"
#include "ggl/backends.h"
#include "ggl/internal/params.h"
#include "opening.h"
#include "training/gradient_check.h"

enum { NUMBERS = 64, TOKENS = 12, MOST_TOKENS = 1024, MOST_NUMBERS = 1 << 30 };

static ggl_status check(llm_gradients_params *p, const llm_gradients_params *params,
                        ggl_error *err) {
    const ggl_status st = GGL_READ_PARAMS(llm_gradients_params, p, params, err);
    if (st != GGL_OK)
        return st;
    p->n_numbers = p->n_numbers ? p->n_numbers : NUMBERS;
    p->n_tokens = p->n_tokens ? p->n_tokens : TOKENS;
    if (p->n_numbers < 1 || p->n_numbers > MOST_NUMBERS || p->n_tokens < 2 ||
        p->n_tokens > MOST_TOKENS)
        return ggl_fail(err, GGL_USAGE,
                        "gradients of %" PRId64 " numbers and %" PRId64
                        " tokens: at least 1, and 2 to %d, are needed",
                        p->n_numbers, p->n_tokens, MOST_TOKENS);
    return st;
}

ggl_status llm_verify_gradients(const char *path, const llm_gradients_params *params,
                                llm_gradients_result *result, ggl_error *err) {
    llm_gradients_params p = {.size = sizeof p};
    llm_gradients_result r = {.size = sizeof r};
    llm_context *c = NULL;
    ggl_backend *reference = NULL;
    ggl_error own;
    err = err ? err : &own;
    ggl_status st = check(&p, params, err);
    if (st == GGL_OK)
        st = result ? GGL_WRITE_PARAMS(llm_gradients_result, result, &r, err)
                    : ggl_fail(err, GGL_USAGE, "result is NULL");
    const llm_open_params of = {.size = sizeof of, .arch = p.arch};
    if (st == GGL_OK)
        st = llm_context_open_path(&c, path, &of, LLM_OPENED_MODEL, err);
    if (st == GGL_OK)
        st = ggl_backend_open(&reference, "reference", NULL, err);
    if (st == GGL_OK)
        st = llm_train_check_gradients(c->model, reference, &p, &r, err);
    if (st == GGL_OK)
        st = GGL_WRITE_PARAMS(llm_gradients_result, result, &r, err);
    ggl_backend_close(reference);
    llm_close(c);
    return st;
}
