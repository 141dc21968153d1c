#include "dialect.h"

#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_process.h"

uint64_t random_number(void) {
    uint64_t x = 0;
    if (!ggl_os_random(&x, sizeof x))
        x = (uint64_t)ggl_os_clock() * 0x9e3779b97f4a7c15u;
    return x;
}

void random_text(char *text, size_t n) {
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t x = 0;
    for (size_t i = 0; i < n; i++, x /= 62) {
        if (i % 8 == 0)
            x = random_number();
        text[i] = letters[x % 62];
    }
    text[n] = '\0';
}

ask *ask_new(const server_facts *facts) {
    ask *a = ggl_calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->ignored.strict = facts->strict_fields;
    a->sees = server_sees(facts);
    a->lack = facts->lack;
    a->listens = facts->n_row > 0 && facts->listens;
    a->fetches = facts->fetches;
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

ggl_status ask_hold_text(ask *a, size_t n, ggl_error *err) {
    const size_t n_new = n < a->n_digits ? n : a->n_digits;
    a->n_digits -= n_new;
    if (n_new == 0 || memory_set(&a->held, a->held.n + n_new * ASK_TEXT_BYTES))
        return GGL_OK;
    return ggl_fail(err, GGL_NOMEM,
                    "no memory for a text of %zu bytes (--request-memory); try again later", n);
}

void ask_drop_files(ask *a) {
    for (size_t i = 0; i < a->n_images; i++) {
        ggl_free(a->image[i].bytes);
        a->image[i].bytes = NULL;
    }
}

void ask_free(ask *a) {
    if (!a)
        return;
    if (a->unsee)
        a->unsee(a);
    ask_drop_files(a);
    ggl_free(a->image);
    llm_talk_free(a->talk);
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
