/* Descriptors: each one that parses is built with made-up values, also frozen ones; each graph is
 * folded, scheduled and run once. Required: no crash, no hang, bounded memory, an error with a
 * message. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_eval.h"
#include "ggl/internal/graph.h"
#include "llm/internal/arch.h"

/* layer: of those that guess. Returns how many there are. */
static int build(const llm_arch *arch, const llm_arch_toy *toy, const char *only, int layer) {
    ggl_graph_params p = ggl_graph_default();
    const llm_arch_params params = {.size = sizeof params, .only = only, .guess_layer = layer};
    ggl_error err = {0};
    llm_arch_result result;
    p.n_pos = 64;
    p.n_batch = 2;
    ggl_graph *g = ggl_graph_new(&p);
    if (!g)
        return 0;
    ggl_status s = llm_arch_build(arch, llm_arch_toy_source(toy), &params, g, &result, &err);
    require(s == GGL_OK || err.msg[0]);
    if (s == GGL_OK && ggl_graph_finish(g, &err) == GGL_OK) {
        /* with the rows of further ones; in turn, these or guesses */
        const bool guesses = only && strcmp(only, "guess") == 0 && !result.guess_in_turn;
        require(only ? ggl_graph_n_outputs(g) == 1 + guesses : ggl_graph_n_outputs(g) >= 1);
        fuzz_eval(g);
    }
    const int n = s == GGL_OK ? result.n_guess_layers : 0;
    llm_arch_result_fini(&result);
    ggl_graph_free(g);
    return n;
}

/* All outputs in one graph, and each alone. */
static const char *const outputs[] = {NULL, "logits", "embedding", "score", "guess"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    llm_arch *arch;
    ggl_error err = {0};
    if (llm_arch_parse(&arch, (const char *)data, size, "fuzz.arch", &err) != GGL_OK) {
        require(err.msg[0] && !arch);
        return 0;
    }
    int n = llm_arch_toy_n_variants(arch);
    for (int v = 0; v < n && v < 2; v++) { /* no and all optional keys and tensors */
        llm_arch_toy *toy = llm_arch_toy_new(arch, v, &err);
        require(toy || err.msg[0]);
        if (!toy)
            continue;
        llm_arch_toy_freeze(toy);
        for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++)
            if (!outputs[k] || llm_arch_has_output(arch, outputs[k]))
                if (build(arch, toy, outputs[k], 0) > 1 && outputs[k])
                    build(arch, toy, outputs[k], 1);
        llm_arch_toy_free(toy);
    }
    llm_arch_free(arch);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    const char *name, *text;
    if (!llm_arch_builtin(k, &name, &text, size))
        return false;
    *data = malloc(*size);
    if (*data)
        memcpy(*data, text, *size);
    return *data != NULL;
}
