#include "dialect.h"

ask *ask_new(const server_facts *facts) {
    ask *a = ggl_calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->ignored.strict = facts->strict_fields;
    a->n_choices = 1;
    a->n_max = facts->n_predict;
    a->n_keep = facts->n_keep;
    a->sampling = facts->sampling;
    a->diffusion = facts->diffusion;
    a->has_seed = facts->has_seed;
    a->beams.length_penalty = 1;
    a->reasoning_budget = facts->reasoning_budget;
    a->n_top = -1;
    a->only_slot = -1;
    return a;
}

void ask_free(ask *a) {
    if (!a)
        return;
    llm_json_free(a->doc);
    ggl_arena_fini(&a->arena);
    ggl_free(a->body);
    memory_force(&a->held, 0);
    ggl_free(a);
}

ggl_status embed_needs_pooling(const server_facts *facts, ggl_error *err) {
    if (!facts->all_vectors)
        return GGL_OK;
    return ggl_fail(
        err, GGL_UNSUPPORTED,
        "this server gives a vector for each token (--pooling none), for which this API "
        "has no form; use /embedding, or start the server with --pooling mean, last or "
        "cls");
}
