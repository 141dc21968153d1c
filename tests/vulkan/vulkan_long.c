/* Hundreds of tokens under the validation layer: it says nothing, and no memory is lost. */
#include <unistd.h>

#include "llm/session.h"
#include "messages.h"
#include "vulkan_test.h"

enum { N_WARM = 100, N_TOKENS = 400, LEAST_LOST = 1300 /* bytes with each token */ };

/* Bytes that the process has in memory; 0: not known. */
static size_t resident(void) {
    long pages[2] = {0};
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &pages[0], &pages[1]) != 2)
        pages[1] = 0;
    if (f)
        fclose(f);
    return (size_t)pages[1] * (size_t)sysconf(_SC_PAGESIZE);
}

static int32_t likeliest(const float *logits, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return (int32_t)best;
}

TEST(hundreds_of_tokens) {
    ggl_error err = {0};
    ggl_backend *reference = NULL, *b;
    llm_model *model = NULL;
    llm_session *s = NULL;
    setenv("GGL_VULKAN_VALIDATE", "1", 1);
    if (!(b = vulkan_open(NULL)))
        return;
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    REQUIRE_OK(llm_model_open(&model, MODELS "/models/builtin/stories.gguf", NULL, &err), &err);
    llm_session_params p = llm_session_default();
    p.n_ctx = N_TOKENS + 1;
    p.backend = &b;
    p.n_backends = 1;
    p.fold = reference;
    p.strict = true;
    REQUIRE_OK(llm_session_new(&s, model, &p, &err), &err);
    REQUIRE_OK(llm_session_alloc(s, &err), &err);
    size_t before = 0;
    int32_t token = 1;
    for (int i = 0; i < N_TOKENS; i++) {
        if (!CHECK_OK(llm_session_eval(s, &(llm_batch){.n = 1, .token = &token}, &err), &err))
            break;
        token = likeliest(llm_session_logits(s), llm_session_n_vocab(s));
        before = i == N_WARM ? resident() : before;
    }
    const size_t after = resident();
    CHECK_MSG(before > 0 && after <= before + LEAST_LOST * (N_TOKENS - N_WARM),
              "%zu bytes after %d tokens, %zu after %d", before, N_WARM, after, N_TOKENS);
    llm_session_free(s);
    llm_model_free(model);
    ggl_backend_close(b);
    ggl_backend_close(reference);
    CHECK_INT(ggl_vulkan_messages(), 0);
}
