/* What a model's file says about generating: tokens that are never chosen, and defaults of sampling. */
#include <math.h>

#include "ggl/internal/gguf.h"
#include "library_test.h"
#include "tiny_model.h"

/* --- files ------------------------------------------------------------------------------------ */

typedef struct noted { /* what llm_open_params.note has got */
    char s[4096];
} noted;

static void note(void *user, const char *text) {
    noted *n = user;
    const size_t used = strlen(n->s);
    snprintf(n->s + used, sizeof n->s - used, "%s\n", text);
}

/* Writes a copy of a model with one more key, n elements of `type`; returns its path. */
static const char *with_key(const char *from, const char *key, ggl_gguf_type type, bool is_list,
                            const void *data, uint64_t n) {
    ggl_error err = {0};
    ggl_gguf *f;
    const char *path = test_path("keys.gguf");
    if (!CHECK_OK(ggl_gguf_open(&f, from, NULL, &err), &err))
        return NULL;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++)
        ggl_gguf_put_value(w, ggl_gguf_value_at(f, i));
    ggl_gguf_put(w, key, type, is_list, data, n);
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
        ggl_gguf_put_tensor(w, name, t->type, t->n_dims, t->ne, t->data);
    }
    CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
    ggl_gguf_writer_free(w);
    ggl_gguf_close(f);
    return path;
}

/* --- tokens that are never chosen -------------------------------------------------------------- */

#define SUPPRESS "tokenizer.ggml.suppress_tokens"

static const char *suppressing(const char *from, const int32_t *id, uint64_t n) {
    return with_key(from, SUPPRESS, GGL_GGUF_I32, true, id, n);
}

static bool has(const drawn *d, int32_t id) {
    int64_t i = 0;
    while (i < d->n && d->id[i] != id)
        i++;
    return i < d->n;
}

/* Draws tokens after the prompt. */
static drawn draw(llm_context *c, llm_generate_params p) {
    ggl_error err;
    drawn d = {.n = 0};
    p.token = keep_token;
    p.user = &d;
    CHECK_OK(llm_generate(c, "Once upon a time", &p, NULL, NULL, &err), &err);
    CHECK(d.n > 0);
    return d;
}

/* The same by a job, beside another one. */
static drawn draw_job(llm_context *c, llm_generate_params p) {
    ggl_error err;
    drawn d[2] = {{.n = 0}};
    llm_job job[2];
    llm_generate_params q[2] = {p, p};
    for (int i = 0; i < 2; i++) {
        q[i].token = keep_token;
        q[i].user = &d[i];
        job[i] = (llm_job){.prompt = "Once upon a time", .params = &q[i]};
    }
    CHECK_OK(llm_generate_jobs(c, job, 2, &err), &err);
    CHECK_OK(job[0].err.status, &job[0].err);
    CHECK(d[0].n > 0 && d[0].n == d[1].n);
    return d[0];
}

/* Nothing that a text is asked for with brings a suppressed token back. */
TEST(suppressed_tokens_are_never_chosen) {
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_parallel = 3});
    REQUIRE(c);
    const llm_generate_params p = greedy(16);
    llm_generate_params beams = p;
    beams.n_beams = 3;
    const drawn usual = draw(c, p), searched = draw(c, beams);
    llm_close(c);
    const int32_t list[] = {usual.id[0], usual.id[5], searched.id[1], -1, 1 << 30};
    const char *path = suppressing(BUILTIN_MODEL, list, 5);
    const struct {
        llm_open_params open;
    } ways[] = {{{0}}, {{.lookup = true}}, {{.draft = BUILTIN_MODEL, .draft_p_min = 1e-6}}};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        llm_open_params open = ways[w].open;
        noted notes = {""};
        open.n_parallel = 3;
        open.note = note;
        open.user = &notes;
        REQUIRE((c = open_with(path, open)) != NULL);
        CHECK_HAS(notes.s, SUPPRESS " lists 2 tokens that are not in the vocabulary");
        for (int i = 0; i < 3; i++) {
            const llm_token_bias bias = {list[i], 1000};
            llm_generate_params q[5] = {p, p, p, p, beams};
            q[1].bias = &bias;
            q[1].n_bias = 1;
            q[2].grammar = "root ::= [^\\x00]*";
            q[3].temp = 3;
            q[3].seed = (uint64_t)w;
            for (int k = 0; k < 5; k++) {
                const drawn one = draw(c, q[k]), job = draw_job(c, q[k]);
                CHECK_MSG(!has(&one, list[i]) && !has(&job, list[i]), "token %d, wish %d, way %zu",
                          (int)list[i], k, w);
            }
        }
        llm_close(c);
    }
}

static bool all_but_two(void *user, int32_t id, const float *logits) {
    (void)logits;
    return CHECK(id != 2) && keep_token(user, id, NULL);
}

/* Nor in a text by diffusion. */
TEST(suppressed_tokens_are_not_diffused) {
    static const char text[] =
        "arch tiny\nlanguage 2\ntoken_embd [16, 8]\nf = freqs(8, 1000)\nstage s:\n  x = "
        "token_embd[token]\n  q = rope_half(heads(x, 2), f)\n"
        "  x = x + attention(q, q, heads(x, 2))\n  return x\nlogits = linear(s, token_embd)\n";
    const char *const key = "tokenizer.ggml.mask_token_id=int:7";
    const int32_t id = 1, list[] = {2, 3, 4, 5, 6, 0};
    char path[1024];
    ggl_error err;
    snprintf(path, sizeof path, "%s", test_path("diffusion.gguf"));
    REQUIRE(tiny_model_write(path, text, 0.7f));
    llm_context *c =
        open_with(suppressing(path, list, 6), (llm_open_params){.override = &key, .n_override = 1});
    REQUIRE(c);
    for (int i = 0; i < 3; i++) {
        drawn d = {.n = 0};
        llm_generate_params p = greedy(8);
        p.temp = (float)i;
        p.top_k = i == 2 ? 3 : 0;
        p.token = all_but_two;
        p.user = &d;
        CHECK_OK(generate_ids(c, &id, 1, &p, NULL, NULL, &err), &err);
        CHECK_INT(d.n, 8);
        for (int64_t k = 0; k < d.n; k++)
            CHECK_INT(d.id[k], 1);
    }
    llm_close(c);
}

/* A key that is no list of tokens, and one that lists them all. */
TEST(wrong_lists_of_suppressed_tokens) {
    static int32_t all[1 << 15];
    const double half = 1.5;
    ggl_error err;
    llm_context *c;
    for (int i = 0; i < 2; i++) {
        const char *path = i == 0 ? with_key(BUILTIN_MODEL, SUPPRESS, GGL_GGUF_I32, false, all, 1)
                                  : with_key(BUILTIN_MODEL, SUPPRESS, GGL_GGUF_F64, true, &half, 1);
        CHECK_INT(llm_open(&c, path, NULL, &err), GGL_FORMAT);
        CHECK_HAS(err.msg, "key " SUPPRESS " is no list of tokens");
    }
    for (int32_t i = 0; i < 1 << 15; i++)
        all[i] = i;
    REQUIRE((c = open_with(suppressing(BUILTIN_MODEL, all, 1 << 15), (llm_open_params){0})) !=
            NULL);
    const llm_generate_params p = greedy(4);
    CHECK_INT(llm_generate(c, "Once", &p, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "no token can be chosen");
    llm_close(c);
}

/* --- defaults of sampling ---------------------------------------------------------------------- */

/* Opens the built-in model with n more keys, as --override-kv has them. */
static llm_context *open_keys(const char *const *keys, size_t n, bool ignored, noted *notes) {
    notes->s[0] = 0;
    return open_with("builtin:stories", (llm_open_params){.override = keys,
                                                          .n_override = n,
                                                          .no_file_sampling = ignored,
                                                          .note = note,
                                                          .user = notes});
}

static void check_usual(const llm_generate_params *p) {
    const llm_generate_params d = llm_generate_default();
    CHECK(p->temp == 0.8f && p->top_k == 40 && p->top_p == 0.95f && p->min_p == 0.05f);
    CHECK(memcmp(p, &d, sizeof d) == 0);
}

/* The file's numbers are the defaults of the context, and those of no parameters; all others stay. */
TEST(files_have_defaults_of_sampling) {
    static const char *const keys[] = {
        "general.sampling.temp=float:0.25",        "general.sampling.top_k=int:7",
        "general.sampling.top_p=float:0",          "general.sampling.penalty_repeat=float:1.5",
        "general.sampling.penalty_last_n=int:0",   "general.sampling.mirostat_tau=float:3",
        "general.sampling.sequence=str:top-k;temp"};
    noted notes;
    llm_context *c = open_keys(keys, 7, false, &notes);
    REQUIRE(c);
    CHECK_STR(notes.s, "the model's file sets temperature 0.25, top_k 7, top_p 0, mirostat_tau 3, "
                       "repeat_penalty 1.5, repeat_last_n 0, samplers top_k;temperature; "
                       "no_file_sampling ignores that\n");
    const llm_generate_params p = llm_generate_default_of(c), d = llm_generate_default(),
                              none = llm_generate_default_of(NULL);
    CHECK(p.temp == 0.25f && p.top_k == 7 && p.repeat_penalty == 1.5f && p.mirostat_tau == 3);
    CHECK(p.top_p > 0 && p.top_p < 1e-30f); /* a 0 there means all tokens */
    CHECK_INT(p.repeat_last_n, LLM_NO_TOKENS);
    CHECK_STR(p.samplers, "top_k;temperature");
    CHECK(p.min_p == d.min_p && p.mirostat == 0 && p.xtc_threshold == d.xtc_threshold);
    check_usual(&d);
    check_usual(&none);
    llm_close(c);
    REQUIRE((c = open_keys(keys, 7, true, &notes)) != NULL);
    CHECK_STR(notes.s, "");
    const llm_generate_params usual = llm_generate_default_of(c);
    check_usual(&usual);
    llm_close(c);
}

/* Texts of all calls that are given no parameters, or the defaults. */
TEST(files_defaults_count_in_all_calls) {
    static const char *const keys[] = {"general.sampling.temp=float:0"};
    static const llm_message message = {"user", "Hi"};
    ggl_error err;
    noted notes;
    for (int ignored = 0; ignored < 2; ignored++) {
        llm_context *c = open_keys(keys, 1, ignored, &notes);
        REQUIRE(c);
        llm_generate_params p = llm_generate_default_of(c), likeliest = greedy(12);
        written a, b, none = {.n = 0}, job = {.n = 0};
        p.n_max = 12;
        p.seed = 1;
        generate(c, "Once upon", &p, &a);
        p.seed = 2;
        generate(c, "Once upon", &p, &b);
        CHECK_INT(strcmp(a.s, b.s) == 0, !ignored);
        generate(c, "Once upon", &likeliest, &b);
        CHECK_INT(strcmp(a.s, b.s) == 0, !ignored);
        CHECK_OK(llm_generate(c, "Once upon", NULL, take, &none, &err), &err);
        CHECK_INT(strncmp(none.s, b.s, b.n) == 0, !ignored);
        llm_job one = {.prompt = "Once upon", .each = take, .user = &job};
        CHECK_OK(llm_generate_jobs(c, &one, 1, &err), &err);
        CHECK_STR(job.s, none.s);
        none = (written){.n = 0};
        CHECK_INT(llm_reply(c, &message, 1, NULL, take, &none, &err), GGL_NOT_FOUND);
        llm_close(c);
    }
}

/* 0 is a number of its own in what the file sets, as in the programs. */
TEST(zeros_of_files_are_zeros) {
    static const char *const keys[] = {"general.sampling.top_p=float:0",
                                       "general.sampling.penalty_last_n=int:0"};
    noted notes;
    llm_context *c = open_keys(keys, 2, false, &notes);
    REQUIRE(c);
    written likeliest, t;
    llm_generate_params p = greedy(20);
    generate(c, "Once upon", &p, &likeliest);
    p = llm_generate_default_of(c);
    p.n_max = 20;
    p.temp = 3;
    p.top_k = 0;
    generate(c, "Once upon", &p, &t);
    CHECK_STR(t.s, likeliest.s);
    p.repeat_penalty = 50; /* of no token */
    generate(c, "Once upon", &p, &t);
    CHECK_STR(t.s, likeliest.s);
    p.repeat_last_n = 0; /* of the usual number of tokens */
    generate(c, "Once upon", &p, &t);
    CHECK(strcmp(t.s, likeliest.s) != 0);
    llm_close(c);
}

/* What cannot be used is named, and changes nothing. */
TEST(wrong_defaults_of_files_are_named) {
    static const struct {
        const char *key, *words;
    } row[] = {
        {"general.sampling.top_p=float:1.5", "sampling.top_p is 1.5, but must be from 0 to 1; it"},
        {"general.sampling.min_p=float:-1", "sampling.min_p is -1, but must be from 0 to 1; it"},
        {"general.sampling.temp=str:warm", "general.sampling.temp is no number; it is not used"},
        {"general.sampling.top_k=float:2.5",
         "is 2.5, but must be an integer, at least 0 (all); it"},
        {"general.sampling.top_k=int:-2", "is -2, but must be at least 0 (all); it is not used"},
        {"general.sampling.penalty_repeat=float:0", "is 0, but must be positive and finite; it is"},
        {"general.sampling.penalty_last_n=int:3000000000", "is 3e+09, but must be at least -1"},
        {"general.sampling.mirostat=int:1", "is 1, but only 0 (off) and 2 are supported; it is"},
        {"general.sampling.mirostat=int:3", "is 3, but must be 0 (off) or 2; it is not used"},
        {"general.sampling.sequence=int:3", "general.sampling.sequence is no text; it is not used"},
        {"general.sampling.sequence=str:;;", "general.sampling.sequence names no sampler; it is"},
        {"general.sampling.sequence=str:kq", "names 'q', which is no sampler here; it is left out"},
        {"general.sampling.sequence=str:top_k;infill", "names 'infill', which is no sampler here"},
        {"general.sampling.sequence=str:top_k;top-k",
         "names 'top-k', which is in the sequence be"}};
    noted notes;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        llm_context *c = open_keys(&row[i].key, 1, false, &notes);
        REQUIRE(c);
        CHECK_HAS(notes.s, row[i].words);
        llm_generate_params p = llm_generate_default_of(c);
        const bool orders = strstr(row[i].key, "str:kq") || strstr(row[i].key, "str:top_k");
        CHECK_MSG(!orders || (p.samplers && strcmp(p.samplers, "top_k") == 0), "%s", row[i].key);
        if (orders)
            p.samplers = NULL;
        check_usual(&p);
        llm_close(c);
    }
    /* more than there is room for, and a list */
    static char sequence[100000];
    memset(sequence, 'q', sizeof sequence - 1);
    memcpy(sequence, "general.sampling.sequence=str:", 30);
    const char *long_key = sequence;
    llm_context *c = open_keys(&long_key, 1, false, &notes);
    REQUIRE(c);
    CHECK_STR(notes.s,
              "builtin:stories: general.sampling.sequence names 'q', which is no sampler here; "
              "such names are left out\nbuiltin:stories: general.sampling.sequence names no "
              "sampler; it is not used\n");
    llm_close(c);
    const float numbers[] = {1, 2};
    c = open_with(with_key(BUILTIN_MODEL, "general.sampling.temp", GGL_GGUF_F32, true, numbers, 2),
                  (llm_open_params){.note = note, .user = &notes});
    REQUIRE(c);
    CHECK_HAS(notes.s, "keys.gguf: general.sampling.temp is no number; it is not used");
    llm_close(c);
}

/* Letters, and -1 as some programs write "all". */
TEST(spellings_of_files) {
    static const char *const keys[] = {"general.sampling.top_k=int:-1",
                                       "general.sampling.sequence=str:tkp"};
    noted notes;
    llm_context *c = open_keys(keys, 2, false, &notes);
    REQUIRE(c);
    const llm_generate_params p = llm_generate_default_of(c);
    CHECK_INT(p.top_k, 0);
    CHECK_STR(p.samplers, "temperature;top_k;top_p");
    llm_close(c);
}
