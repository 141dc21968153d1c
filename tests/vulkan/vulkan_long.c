/* Hundreds of tokens under the validation layer: it says nothing, and no memory is lost. */
#include "llm/internal/session.h"
#include "messages.h"
#include "process_status.h"
#include "vulkan_test.h"

/* llvmpipe uploads into blocks of 1 MiB, and makes another now and then until about token 420. So
 * a span of tokens in which the process grows is followed by another; memory that every token loses
 * shows in all of them. */
enum { N_SPAN = 150, MOST_SPANS = 8, LEAST_LOST = 1300 /* bytes with each token */ };

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
    p.n_ctx = N_SPAN * MOST_SPANS;
    p.backend = &b;
    p.n_backends = 1;
    p.fold = reference;
    p.strict = true;
    REQUIRE_OK(llm_session_new(&s, model, &p, &err), &err);
    REQUIRE_OK(llm_session_alloc(s, &err), &err);
    size_t before = 0, after = 0;
    int32_t token = 1;
    bool grows = true;
    for (int span = 0; span < MOST_SPANS && grows; span++) {
        before = after;
        for (int i = 0; i < N_SPAN; i++) {
            const llm_batch one = {.n = 1, .token = &token};
            REQUIRE_OK(llm_session_eval(s, &one, &err), &err);
            token = likeliest(llm_session_logits(s), llm_session_n_vocab(s));
        }
        after = (size_t)test_status("VmRSS:") * 1024;
        grows = before == 0 || after > before + LEAST_LOST * N_SPAN;
    }
    CHECK_MSG(!grows, "%zu bytes, and %zu after %d tokens more", before, after, N_SPAN);
    llm_session_free(s);
    llm_model_free(model);
    ggl_backend_close(b);
    ggl_backend_close(reference);
    CHECK_INT(ggl_vulkan_messages(), 0);
}
