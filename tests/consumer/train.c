/* A program that trains, as a user's would: two steps, with a loss of its own, which is a graph of libllm for a call of libllm-train. */
#include <ggl/compose.h>
#include <inttypes.h>
#include <llm/train.h>
#include <stdio.h>

static ggl_tensor *doubled(void *user, ggl_graph *g, ggl_tensor *logits, ggl_tensor *target) {
    (void)user;
    return ggl_binary(g, GGL_OP_MUL, ggl_cross_entropy(g, logits, target), ggl_graph_number(g, 2));
}

int main(void) {
    static const char name[] = "train-texts.txt";
    const char *file[] = {name};
    ggl_error err = {.msg = ""};
    llm_training *t = NULL;
    llm_training_report r = {.size = sizeof r};
    const llm_training_params p = {.size = sizeof p,
                                   .file = file,
                                   .n_files = 1,
                                   .n_ctx = 32,
                                   .n_steps = 2,
                                   .valid_share = -1,
                                   .loss = doubled};
    FILE *f = fopen(name, "w");
    for (int i = 0; f && i < 100; i++)
        fprintf(f, "Once upon a time there was a cat number %d. ", i);
    if (!f || fclose(f) != 0)
        return 1;
    ggl_status st = llm_training_open(&t, "builtin:stories", &p, &err);
    if (st == GGL_OK)
        st = llm_training_step(t, &r, &err);
    remove(name);
    if (st == GGL_OK)
        printf("step %" PRId64 " of %" PRId64 ": loss %.3f\n", r.step, r.n_steps, r.loss);
    else
        fprintf(stderr, "%s\n", err.msg);
    llm_training_close(t);
    return st == GGL_OK ? 0 : 1;
}
