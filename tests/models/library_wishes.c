/* What llm_generate_params may ask for together: each two members are refused if, and only if, the table that llm-cli and llm-server
 * read, too, says so (library/job_rules.def; tests/e2e/job_rules.py asks these). */
#include "job_rules.h"
#include "library_test.h"
#include "tiny_model.h"

static size_t force(void *user, const int32_t **id) {
    (void)user, (void)id;
    return 0;
}

static bool full(void *user, const int32_t **id, size_t *n) {
    (void)user, (void)id, (void)n;
    return false;
}

static void prompt_logits(void *user, int64_t i, const float *logits) {
    (void)user, (void)i, (void)logits;
}

static bool token(void *user, int32_t id, const float *logits) {
    (void)user, (void)id, (void)logits;
    return true;
}

/* Asks for it. False: no member does. */
static bool wish(llm_generate_params *p, llm_job_wish which) {
    static const llm_token_bias bias = {1, 1};
    static const int32_t read = 1;
    switch (which) {
    case LLM_JOB_BEAMS:
        p->n_beams = 2;
        return true;
    case LLM_JOB_GRAMMAR:
        p->grammar = "root ::= \"a\"";
        return true;
    case LLM_JOB_SCHEMA:
        p->json_schema = "{}";
        return true;
    case LLM_JOB_CALL:
        p->tools =
            "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}]";
        p->tool_choice = "required";
        return true;
    case LLM_JOB_BIAS:
        p->bias = &bias;
        p->n_bias = 1;
        return true;
    case LLM_JOB_FORCE:
        p->force = force;
        return true;
    case LLM_JOB_PROMPT_LOGITS:
        p->prompt_logits = prompt_logits;
        return true;
    case LLM_JOB_READ:
        p->read = &read;
        p->n_read = 1;
        return true;
    case LLM_JOB_SHIFT:
        return p->shift = true;
    case LLM_JOB_FULL:
        p->full = full;
        return true;
    default:
        return false;
    }
}

/* Checks what the context says about two wishes, which are one if a is b. */
static void check_two(llm_context *c, uint32_t before, llm_job_wish a, llm_job_wish b) {
    llm_generate_params p = greedy(4);
    ggl_error err = {0}, want = {0};
    p.token = token;
    if (!wish(&p, a) || !wish(&p, b))
        return;
    const char *word = NULL;
    const uint32_t both = before | UINT32_C(1) << a | UINT32_C(1) << b;
    const ggl_status st = llm_job_check(both, LLM_JOB_MEMBERS, &word, &want);
    CHECK_MSG(llm_check_params(c, &p, &err) == st, "%s and %s: %s", llm_job_word(a, 0),
              llm_job_word(b, 0), err.msg);
    CHECK_STR(err.msg, want.msg);
    CHECK(st == GGL_OK || (word && strstr(err.msg, word)));
}

TEST(each_two_of_a_model) {
    llm_context *c = open_with("builtin:chat", (llm_open_params){.n_parallel = 2});
    REQUIRE(c);
    for (int a = 0; a < LLM_JOB_N_WISHES; a++)
        for (int b = 0; b < LLM_JOB_N_WISHES; b++)
            check_two(c, 0, (llm_job_wish)a, (llm_job_wish)b);
    llm_close(c);
}

TEST(each_by_diffusion) {
    static const char text[] =
        "arch tiny\nlanguage 2\ntoken_embd [16, 8]\nstage s:\n  x = token_embd[token]\n"
        "  h = heads(x, 2)\n  x = x + attention(h, h, h)\n  return x\n"
        "logits = linear(s, token_embd)\n";
    const char *const key = "tokenizer.ggml.mask_token_id=int:7";
    REQUIRE(tiny_model_write(test_path("wishes.gguf"), text, 0.7f));
    llm_context *c =
        open_with(test_path("wishes.gguf"),
                  (llm_open_params){.n_parallel = 2, .override = &key, .n_override = 1});
    REQUIRE(c);
    for (int a = 0; a < LLM_JOB_N_WISHES; a++)
        if (a != LLM_JOB_PROMPT_LOGITS) /* then nothing is written by diffusion */
            check_two(c, LLM_JOB_ASKS(DIFFUSION, true), (llm_job_wish)a, (llm_job_wish)a);
    llm_close(c);
}

/* The sentences, and whose words they have. */
TEST(sentences) {
    ggl_error err;
    const char *word = NULL;
    const uint32_t two =
        LLM_JOB_ASKS(BEAMS, true) | LLM_JOB_ASKS(SCHEMA, true) | LLM_JOB_ASKS(BIAS, false);
    CHECK_INT(llm_job_check(two, LLM_JOB_MEMBERS, &word, &err), GGL_USAGE);
    CHECK_STR(err.msg, "a search of beams (n_beams) and a schema (json_schema) cannot be used "
                       "together");
    CHECK_INT(llm_job_check(two, LLM_JOB_FLAGS, &word, &err), GGL_USAGE);
    CHECK_STR(err.msg, "a search of beams (--beams) and a schema (--json-schema) cannot be used "
                       "together");
    CHECK_INT(llm_job_check(two | LLM_JOB_ASKS(DIFFUSION, true), LLM_JOB_FIELDS, &word, &err),
              GGL_UNSUPPORTED);
    CHECK_STR(err.msg, "the model writes by diffusion, all of a text at once, where a search of "
                       "beams (num_beams) cannot be used");
    CHECK_STR(word, "num_beams");
    CHECK_OK(llm_job_check(LLM_JOB_ASKS(SCHEMA, true), LLM_JOB_FIELDS, NULL, &err), &err);
    CHECK_OK(llm_job_check_beams(4, 4, LLM_JOB_FIELDS, &err), &err);
    CHECK_INT(llm_job_check_beams(5, 4, LLM_JOB_FIELDS, &err), GGL_USAGE);
    CHECK_STR(err.msg, "5 beams need as many sequences (--parallel), but there are 4");
    CHECK_INT(llm_job_check_beams(65, 100, LLM_JOB_MEMBERS, &err), GGL_USAGE);
    CHECK_STR(err.msg, "n_beams is 65; 0 to 64 beams are possible");
}
