/* Text with guesses, and with prompt caches, is the text without: for trained models, and for small
 * ones with windows and states, over prompts that share beginnings, with seeds and temperatures,
 * numbers of threads and sizes of ubatches. GGL_TEST_PROMPTS=1000 runs so many with each model. */
#include <math.h>
#include <unistd.h>

#include "alone.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "guess/heard.h"
#include "llm/internal/guess.h"
#include "llm/internal/prompt_cache.h"
#include "llm/internal/text_inputs.h"
#include "seed.h"
#include "test.h"
#include "tiny_model.h"

enum { CTX = 256, DRAWN = 48, GUESSES = 16, WIDTH = 16, VOCAB = 24, LAYERS = 3 };

/* With a layer of its own that guesses, mostly as the model itself would. */
#define AHEAD                                                                                      \
    "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\nx = token_embd[token]\n" ALL                 \
    "logits = linear(x, token_embd)\n"                                                             \
    "stage draft over x(ahead = 1):\n  h = heads(token_embd[token], 2)\n"                          \
    "  return token_embd[token] + attention(h, h, h) + x * 0.03\nguess = linear(draft, "           \
    "token_embd)\n"

/* Three of them; they differ, and mostly guess as the model would. */
#define AHEAD_BY(ahead)                                                                            \
    "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\nx = token_embd[token]\n" ALL                 \
    "logits = linear(x, token_embd)\n"                                                             \
    "stage draft over x(ahead = " ahead ", layer k < 3):\n  h = heads(token_embd[token], 2)\n"     \
    "  return token_embd[token] + attention(h, h, h) + x * 0.03 * k\nguess = linear(draft, "       \
    "token_embd)\n"

/* How a text is generated. */
typedef enum way { PLAIN, LOOKUP, LOOKUP_PACED, DRAFT, DRAFT_PACED, CACHED, WAYS } way;
static const char *const way_name[] = {
    "plain",         "lookup", "lookup at its pace", "a draft's guesses", "a draft at its pace",
    "a prompt cache"};

typedef struct fixture {
    ggl_backend *cpu, *reference;
    llm_model *model;
    llm_session *plain, *fast,
        *draft;  /* draft: the same model, with a coarser cache, or its layers that guess */
    bool is_own; /* these */
    llm_heard *heard;
    llm_draft_layer more[LAYERS]; /* the layers after the first */
    int n_more;
    llm_guess *guess[WAYS];
    int64_t n_vocab, n_guessed[WAYS], n_right[WAYS];
    int32_t prompt[CTX], out[DRAWN];
    size_t n_prompt;
    llm_sampler_params sampling;
    uint64_t seed;
    ggl_error err;
} fixture;

static uint64_t below(fixture *f, uint64_t n) {
    return test_random(&f->seed) % n;
}

static int64_t n_prompts(void) {
    const char *given = getenv("GGL_TEST_PROMPTS");
    return given ? atoll(given) : TEST_SANITIZED ? 9 : 25;
}

/* --- sessions --------------------------------------------------------------------------------- */

static bool session_open(fixture *f, llm_session **s, int64_t n_ubatch, int64_t n_rows,
                         int64_t n_slots, ggl_type type) {
    llm_session_params p = llm_session_default();
    p.n_ctx = CTX;
    p.n_slots = n_slots;
    p.n_ubatch = n_ubatch;
    p.n_rows = n_rows;
    p.type_k = p.type_v = type;
    p.rows = f->is_own && s == &f->fast;
    p.only = f->is_own && s != &f->fast && s != &f->plain ? "guess" : NULL;
    p.guess_layer = s == &f->draft ? 0 : f->n_more;
    p.backend = &f->cpu;
    p.n_backends = 1;
    p.fold = f->reference;
    return CHECK_OK(llm_session_new(s, f->model, &p, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(*s, &f->err), &f->err);
}

/* Opens the layers that guess after the first. */
static bool layers_open(fixture *f, ggl_type type) {
    const llm_arch_result *built = llm_session_built(f->draft);
    llm_session *before = f->draft;
    for (bool ok = true; f->n_more < built->n_guess_layers - 1;
         before = f->more[f->n_more - 1].session) {
        llm_draft_layer *l = &f->more[f->n_more++];
        ok = session_open(f, &l->session, 13, 1, 2, type) &&
             CHECK(llm_session_tells(before) == !built->guess_apart);
        l->heard = f->heard;
        if (ok && !built->guess_apart)
            ok = CHECK_OK(llm_heard_new(&l->heard, before, &f->err), &f->err);
        if (!ok)
            return false;
    }
    return true;
}

static bool guessers_open(fixture *f, ggl_type type) {
    if (f->is_own &&
        (!CHECK_OK(llm_heard_new(&f->heard, f->fast, &f->err), &f->err) || !layers_open(f, type)))
        return false;
    for (int w = LOOKUP; w <= DRAFT_PACED; w++) {
        llm_guess_params p = llm_guess_default();
        llm_draft_params d = llm_draft_default();
        d.session = f->draft;
        d.heard = f->heard;
        d.more = f->more;
        d.n_more = f->n_more;
        d.slot = w == DRAFT_PACED;
        d.p_min = w == DRAFT ? 0 : 0.3f;
        p.always = w == LOOKUP || w == DRAFT;
        ggl_status st = w >= DRAFT ? llm_guess_draft(&f->guess[w], &p, &d, &f->err)
                                   : llm_guess_lookup(&f->guess[w], &p, &f->err);
        if (!CHECK_OK(st, &f->err))
            return false;
    }
    return true;
}

static bool setup(fixture *f, const char *path, int n_threads, int64_t n_ubatch, ggl_type type) {
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = n_threads};
    const llm_model_params mp = {.size = sizeof mp, .arch_dirs = ""};
    const bool ok =
        CHECK_OK(ggl_backend_open(&f->cpu, "cpu", &bp, &f->err), &f->err) &&
        CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &f->err), &f->err) &&
        CHECK_OK(llm_model_open(&f->model, path, &mp, &f->err), &f->err);
    f->is_own = ok && llm_arch_has_output(llm_model_arch(f->model), "guess");
    const bool is_open = ok && session_open(f, &f->plain, 100, 1, 1, GGL_F16) &&
                         session_open(f, &f->fast, n_ubatch, GUESSES + 1, 1, GGL_F16) &&
                         session_open(f, &f->draft, 13, 1, 2, type);
    if (is_open)
        f->n_vocab = llm_session_n_vocab(f->plain);
    return is_open && guessers_open(f, type);
}

static void teardown(fixture *f) {
    for (int w = 0; w < WAYS; w++)
        llm_guess_free(f->guess[w]);
    for (; f->n_more > 0; f->n_more--) {
        const llm_draft_layer *l = &f->more[f->n_more - 1];
        if (l->heard != f->heard)
            llm_heard_free(l->heard);
        llm_session_free(l->session);
    }
    llm_heard_free(f->heard);
    f->heard = NULL;
    llm_session_free(f->plain);
    llm_session_free(f->fast);
    llm_session_free(f->draft);
    llm_model_free(f->model);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
    for (int w = 0; w < WAYS; w++)
        f->guess[w] = NULL;
    f->plain = f->fast = f->draft = NULL;
    f->model = NULL;
    f->cpu = f->reference = NULL;
}

/* --- texts ------------------------------------------------------------------------------------ */

/* Gets what the file has of the prompt. */
static bool load(fixture *f, alone_seq *a, llm_prompt_cache *c) {
    int64_t n;
    const ggl_status st =
        llm_prompt_cache_load(c, test_path("text.cache"), f->prompt, f->n_prompt, &n, &f->err);
    return (st == GGL_NOT_FOUND || CHECK_OK(st, &f->err)) &&
           CHECK_OK(llm_engine_adopt(a->e, 0, f->prompt, (size_t)n, &f->err), &f->err);
}

/* Leaves the file for the next one. */
static bool save(fixture *f, alone_seq *a, llm_prompt_cache *c) {
    size_t n;
    alone_end(a);
    const int32_t *id = alone_tokens(a, &n);
    const size_t n_held = (size_t)llm_session_n_past(f->fast, 0);
    return CHECK_OK(llm_prompt_cache_save(c, test_path("text.cache"), id,
                                          below(f, 2) ? n_held : f->n_prompt, &f->err),
                    &f->err);
}

static bool generate(fixture *f, way w, int32_t *out) {
    llm_session *s = w == PLAIN ? f->plain : f->fast;
    const llm_prompt_cache_params cp = {.size = sizeof cp, .model = f->model, .session = s};
    llm_sampler *sampler = NULL;
    alone_seq a = {0};
    llm_prompt_cache *c = NULL;
    const bool is_guessed = w >= LOOKUP && w <= DRAFT_PACED;
    const llm_guesser *guesser = is_guessed ? llm_guess_guesser(f->guess[w]) : NULL;
    bool ok = CHECK_OK(llm_sampler_new(&sampler, &f->sampling, (int32_t)f->n_vocab, CTX, &f->err),
                       &f->err) &&
              CHECK_OK(llm_prompt_cache_new(&c, &cp, &f->err), &f->err);
    const llm_engine_params e = {.session = s,
                                 .guesser = is_guessed ? &guesser : NULL,
                                 .n_guess_max = GUESSES,
                                 .whole_prompts = below(f, 2)};
    const llm_sequence_params p = {.sampler = sampler,
                                   .n_max = -1,
                                   .shift = true,
                                   .n_keep = 20,
                                   .keeps = w == CACHED ? c : NULL};
    ok = ok && alone_open(&a, &e, &p, &f->err) && (w != CACHED || load(f, &a, c)) &&
         CHECK_OK(alone_prompt(&a, f->prompt, f->n_prompt, &f->err), &f->err);
    for (int i = 0; i < DRAWN && ok; i++)
        ok = CHECK_OK(alone_next(&a, &out[i], &f->err), &f->err);
    if (ok) {
        f->n_guessed[w] += alone_stats(&a).n_guessed;
        f->n_right[w] += alone_stats(&a).n_right;
    }
    ok = ok && (w != CACHED || f->n_prompt + DRAWN > CTX || save(f, &a, c));
    alone_close(&a);
    llm_prompt_cache_free(c);
    llm_sampler_free(sampler);
    return ok;
}

/* The next prompt: the last one again, a part of it with something new, or with its text. */
static void next_prompt(fixture *f) {
    const uint64_t what = below(f, 4);
    if (what == 1 && f->n_prompt + DRAWN < CTX) {
        memcpy(f->prompt + f->n_prompt, f->out, sizeof f->out);
        f->n_prompt += DRAWN;
    } else if (what > 1 || f->n_prompt == 0) {
        const size_t keep = below(f, f->n_prompt / 2 + 1), n_new = 2 + below(f, 60);
        f->n_prompt = keep + n_new;
        for (size_t i = keep; i < f->n_prompt; i++) /* some of it repeats */
            f->prompt[i] =
                i > 8 && below(f, 4) ? f->prompt[i - 8] : (int32_t)below(f, (uint64_t)f->n_vocab);
    }
    static const float temp[] = {0, 0.5f, 1, 2};
    f->sampling = llm_sampler_default();
    f->sampling.seed = test_random(&f->seed);
    f->sampling.temp = temp[below(f, 4)];
    f->sampling.repeat_penalty = below(f, 3) ? 1 : 1.1f;
}

/* Some prompts in all ways. */
static bool check_prompts(fixture *f, int64_t n) {
    unlink(test_path("text.cache"));
    for (int64_t i = 0; i < n; i++) {
        int32_t other[DRAWN];
        next_prompt(f);
        if (!generate(f, PLAIN, f->out))
            return false;
        for (int w = LOOKUP; w < WAYS; w++) {
            if (!generate(f, (way)w, other))
                return false;
            int k = 0;
            while (k < DRAWN && f->out[k] == other[k])
                k++;
            if (!CHECK_MSG(
                    k == DRAWN,
                    "prompt %d of %zu tokens, temperature %g: with %s token %d is %d, not %d",
                    (int)i, f->n_prompt, (double)f->sampling.temp, way_name[w], k, other[k],
                    f->out[k]))
                return false;
        }
    }
    return true;
}

/* type: of the draft's cache. The coarser it is, the more guesses are wrong. */
static void check_model(const char *path, ggl_type type) {
    static const struct {
        int n_threads;
        int64_t n_ubatch;
    } c[] = {{1, 64}, {2, 17}, {3, 6}};
    fixture f = {.seed = sample_seed()};
    const int64_t n = n_prompts(), n_ways = (int64_t)(sizeof c / sizeof *c);
    bool ok = true;
    for (int64_t i = 0; i < n_ways && ok; i++) {
        ok = setup(&f, path, c[i].n_threads, c[i].n_ubatch, type) &&
             check_prompts(&f, (n + i) / n_ways);
        teardown(&f);
    }
    printf("%d prompts;", (int)n);
    for (int w = LOOKUP; w <= DRAFT_PACED; w++)
        printf(" %s: %d of %d guesses right%s", way_name[w], (int)f.n_right[w], (int)f.n_guessed[w],
               w < DRAFT_PACED ? ";" : "\n");
    /* few prompts may have nothing to look up */
    CHECK(!ok || ((n < 32 || f.n_right[LOOKUP] > n / 8) && f.n_right[DRAFT] > n));
    CHECK(!ok ||
          (f.n_guessed[LOOKUP] > f.n_right[LOOKUP] && f.n_guessed[DRAFT] > f.n_right[DRAFT]));
}

/* --- drafts that share a session -------------------------------------------------------------- */

enum { SHARING = 3 };

static bool draft_open(fixture *f, llm_guess **g, llm_session *s, int slot) {
    llm_guess_params p = llm_guess_default();
    const llm_draft_params d = {.size = sizeof d, .session = s, .slot = slot};
    p.always = true;
    return CHECK_OK(llm_guess_draft(g, &p, &d, &f->err), &f->err);
}

/* Texts that grow in turns, and at times go back: guessed in slots of one session, and each in a
 * session of its own. */
static void check_sharing(fixture *f, llm_guess *const *shared, llm_guess *const *own) {
    static int32_t text[SHARING][CTX];
    size_t n[SHARING] = {0};
    for (int step = 0; step < 60; step++) {
        const int k = (int)below(f, SHARING);
        int32_t a[GUESSES], b[GUESSES];
        size_t n_same = n[k];
        if (below(f, 6) == 0)
            n[k] = n_same = below(f, n[k] + 1);
        for (uint64_t n_new = 1 + below(f, 12); n_new > 0 && n[k] < CTX - GUESSES; n_new--)
            text[k][n[k]++] = (int32_t)below(f, (uint64_t)f->n_vocab);
        const llm_guesser *x = llm_guess_guesser(shared[k]), *y = llm_guess_guesser(own[k]);
        const int64_t n_a = x->guess(x->self, text[k], n[k], n_same, a, GUESSES);
        const int64_t n_b = y->guess(y->self, text[k], n[k], n_same, b, GUESSES);
        if (!CHECK_INT(n_a, n_b) || !CHECK(n_a > 0 && memcmp(a, b, (size_t)n_a * sizeof *a) == 0))
            return;
    }
}

TEST(drafts_share_a_session) {
    fixture f = {.seed = sample_seed()};
    llm_session *all = NULL, *one[SHARING] = {NULL};
    llm_guess *shared[SHARING] = {NULL}, *own[SHARING] = {NULL}, *none = NULL;
    bool ok = setup(&f, DATA "/stories-qwen2.gguf", 1, 64, GGL_F16) &&
              session_open(&f, &all, 16, 1, SHARING, GGL_F16);
    for (int k = 0; k < SHARING && ok; k++)
        ok = session_open(&f, &one[k], 16, 1, 1, GGL_F16) && draft_open(&f, &shared[k], all, k) &&
             draft_open(&f, &own[k], one[k], 0);
    if (ok) {
        check_sharing(&f, shared, own);
        const llm_draft_params beyond = {.size = sizeof beyond, .session = all, .slot = SHARING};
        CHECK_INT(llm_guess_draft(&none, NULL, &beyond, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "slot 3 does not exist; there are 3");
    }
    for (int k = 0; k < SHARING; k++) {
        llm_guess_free(shared[k]);
        llm_guess_free(own[k]);
        llm_session_free(one[k]);
    }
    llm_session_free(all);
    teardown(&f);
}

static bool write_tiny(const char *path, const char *text) {
    static float embd[WIDTH * VOCAB];
    ggl_error err = {0};
    for (int i = 0; i < WIDTH * VOCAB; i++)
        embd[i] = 0.6f * sinf((float)i * 1.7f);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.architecture", "tiny", 4);
    ggl_gguf_put_string(w, "general.descriptor", text, strlen(text));
    ggl_gguf_put(w, "tokenizer.ggml.mask_token_id", GGL_GGUF_U32, false, (uint32_t[]){9}, 1);
    ggl_gguf_put_tensor(w, "token_embd.weight", GGL_F32, 2, (int64_t[]){WIDTH, VOCAB}, embd);
    const bool ok = CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
    ggl_gguf_writer_free(w);
    return ok;
}

static void check_tiny(const char *text) {
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path("tiny.gguf")); /* test_path reuses its memory */
    if (write_tiny(path, text))
        check_model(path, GGL_BF16);
}

TEST(builtin) {
    check_model(MODELS "/builtin/stories.gguf", GGL_Q4_0);
}

TEST(gpt2) {
    check_model(DATA "/stories-gpt2.gguf", GGL_BF16);
}

TEST(qwen2) {
    check_model(DATA "/stories-qwen2.gguf", GGL_BF16);
}

TEST(qwen3) {
    check_model(DATA "/stories-qwen3.gguf", GGL_Q4_0);
}

TEST(layers_of_its_own) {
    check_tiny(AHEAD);
}

/* A model that predicts from the last token alone, and a layer that does the same: each guess is right, so none is made for another place. */
TEST(layers_that_know) {
    fixture f = {.seed = sample_seed(), .n_prompt = 40};
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path("tiny.gguf"));
    const bool ok =
        CHECK(write_tiny(path, "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\nx = "
                               "token_embd[token]\nlogits = linear(x, token_embd)\n"
                               "stage draft over x(ahead = 1):\n  return token_embd[token] + x * "
                               "0\nguess = linear(draft, token_embd)\n")) &&
        setup(&f, path, 1, 17, GGL_F32);
    f.sampling = llm_sampler_default();
    f.sampling.temp = 0;
    for (int i = 0; i < 40; i++)
        f.prompt[i] = (int32_t)below(&f, VOCAB);
    if (ok && generate(&f, DRAFT, f.out))
        CHECK(f.n_guessed[DRAFT] > DRAWN / 2 && f.n_right[DRAFT] == f.n_guessed[DRAFT]);
    teardown(&f);
}

TEST(layers_in_a_row) {
    check_tiny(AHEAD_BY("1"));
}

TEST(layers_apart) {
    check_tiny(AHEAD_BY("k + 1"));
}

/* What layer k returns for the token at p: its embedding, and 0.7 of the row that it reads. guessed: that of the newest guess. */
#define BLEND(ahead)                                                                               \
    "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\nx = token_embd[token]\n"                     \
    "logits = linear(x, token_embd)\nstage draft over x(ahead = " ahead                            \
    ", layer k < 3):\n  return token_embd[token] + x * 0.7\nguess = linear(draft, token_embd)\n"

static float embedded(int64_t id, int i) {
    return 0.6f * sinf((float)(id * WIDTH + i) * 1.7f);
}

static int32_t best_of(const float *row) {
    int32_t best = 0;
    float most = -INFINITY;
    for (int32_t id = 0; id < VOCAB; id++) {
        float score = 0;
        for (int i = 0; i < WIDTH; i++)
            score += row[i] * embedded(id, i);
        if (score > most)
            most = score, best = id;
    }
    return best;
}

/* Sets row to what layer k returns for token p; id: the tokens, and the guesses so far. Layers after the last one are the last one again. */
static void blend(const int32_t *id, int64_t p, int k, bool is_apart, float *row) {
    const int at = k < LAYERS ? k : LAYERS - 1;
    if (k < 0 || (is_apart && k < LAYERS)) {
        const int64_t before = p - at - 1;
        for (int i = 0; i < WIDTH; i++)
            row[i] = k < 0 ? embedded(id[p], i)
                           : embedded(id[p], i) + (before < 0 ? 0 : 0.7f * embedded(id[before], i));
        return;
    }
    float before[WIDTH] = {0};
    if (p > 0)
        blend(id, p - 1, k - 1, is_apart, before);
    for (int i = 0; i < WIDTH; i++)
        row[i] = embedded(id[p], i) + 0.7f * before[i];
}

/* Compares guesses with those that are computed here. */
static void check_blend(fixture *f, bool is_apart) {
    const llm_guesser *g = llm_guess_guesser(f->guess[DRAFT]);
    int32_t id[64], out[5];
    for (size_t n = 1, n_old = 0; n < 40; n_old = n, n += 1 + below(f, 4)) {
        for (size_t i = n_old; i < n; i++)
            id[i] = (int32_t)below(f, VOCAB);
        const size_t n_past = (size_t)llm_session_n_past(f->fast, 0);
        const llm_batch b = {.n = (int64_t)(n - 1 - n_past), .token = id + n_past};
        if (b.n > 0 && !CHECK_OK(llm_session_eval(f->fast, &b, &f->err), &f->err))
            return;
        const int64_t n_out = g->guess(g->self, id, n, n_old, out, 5);
        CHECK_INT(n_out, 5);
        for (int k = 0; k < n_out; k++) {
            float row[WIDTH];
            blend(id, (int64_t)n - 1 + k, k, is_apart, row);
            if (!CHECK_INT(out[k], best_of(row)))
                return;
            id[n + (size_t)k] = out[k];
        }
    }
}

TEST(rows_of_layers) {
    static const char *const text[] = {BLEND("1"), BLEND("k + 1")};
    for (int k = 0; k < 2; k++) {
        fixture f = {.seed = sample_seed()};
        char path[1024];
        snprintf(path, sizeof path, "%s", test_path("tiny.gguf"));
        if (CHECK(write_tiny(path, text[k])) && setup(&f, path, 1, 17, GGL_F32))
            check_blend(&f, k == 1);
        teardown(&f);
    }
}

/* A model that guesses for another one: each guess after a token is made in its place, where it sees the tokens before, all alike. */
static const char in_place[] = "arch tiny\nlanguage 2\ninput taken [16] from layers([\"state\"])\n"
                               "y = taken + 0\nstage draft over y(ahead = 1, from = 1, stay = 1):\n"
                               "  embd [16, n_vocab] from \"target:token_embd.weight\"\n"
                               "  q = heads(embd[token] * 0, 1)\n"
                               "  a = attend(q, cache(heads(taken, 1), heads(taken, 1)))\n"
                               "  return embd[token] + y * 0.7 + flat(a) * 0.5\n"
                               "token_embd [16, n_vocab]\nguess = linear(draft, token_embd)\n";

/* Sets the session of the model that guesses, f->draft, and that of the other one, f->fast. */
static bool pair_open(fixture *f, const llm_model *head) {
    llm_session_params p = llm_session_default();
    p.n_ctx = CTX;
    p.type_k = p.type_v = GGL_F32;
    p.backend = &f->cpu;
    p.n_backends = 1;
    p.fold = f->reference;
    p.only = "guess";
    p.other = f->model;
    p.n_rows = 5;
    p.n_slots = 2;
    if (!CHECK_OK(llm_session_new(&f->draft, head, &p, &f->err), &f->err))
        return false;
    CHECK(llm_session_built(f->draft)->guess_stays !=
          (llm_session_built(f->draft)->n_guess_block > 0));
    p.only = NULL;
    p.other = NULL;
    p.tap = llm_session_built(f->draft)->tap;
    p.n_taps = llm_session_built(f->draft)->n_taps;
    return CHECK_OK(llm_session_new(&f->fast, f->model, &p, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(f->fast, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(f->draft, &f->err), &f->err) &&
           CHECK_OK(llm_heard_new(&f->heard, f->fast, &f->err), &f->err);
}

/* One that makes its guesses at once: each mask sees the tokens before, the newest one and the other masks, all alike. */
static const char in_block[] =
    "arch tiny\nlanguage 2\ninput taken [16] from layers([\"state\"])\n"
    "y = taken + 0\nstage draft over y(ahead = 1, from = 1, block b < 6):\n"
    "  embd [16, n_vocab] from \"target:token_embd.weight\"\n"
    "  r = heads(where(b, embd[token] * 0.3, y), 1)\n"
    "  a = attention(heads(embd[token] * 0, 1), r, r)\n"
    "  return embd[token] * 0.1 + a\n"
    "token_embd [16, n_vocab]\nguess = linear(draft, token_embd)\n";
enum { MASK = 9 };

static void check_in_block(fixture *f) {
    const llm_draft_params dp = {.size = sizeof dp, .session = f->draft, .heard = f->heard};
    llm_guess_params gp = llm_guess_default();
    int32_t id[64], out[8];
    gp.always = true;
    if (!CHECK_OK(llm_guess_draft(&f->guess[DRAFT], &gp, &dp, &f->err), &f->err))
        return;
    const llm_guesser *g = llm_guess_guesser(f->guess[DRAFT]);
    CHECK_INT(llm_session_mask(f->draft), MASK);
    for (size_t n = 2, n_old = 0; n < 40; n_old = n, n += 1 + below(f, 4)) {
        for (size_t i = n_old; i < n; i++)
            id[i] = (int32_t)below(f, VOCAB);
        const size_t n_past = (size_t)llm_session_n_past(f->fast, 0);
        const llm_batch b = {.n = (int64_t)(n - 1 - n_past), .token = id + n_past};
        if (b.n > 0 && !CHECK_OK(llm_session_eval(f->fast, &b, &f->err), &f->err))
            return;
        const int n_max = 1 + (int)below(f, 7), n_out = n_max < 5 ? n_max : 5;
        float row[WIDTH];
        for (int i = 0; i < WIDTH; i++) {
            float sum = 0.3f * (embedded(id[n - 1], i) + 5 * embedded(MASK, i));
            for (size_t t = 0; t + 1 < n; t++)
                sum += embedded(id[t], i);
            row[i] = 0.1f * embedded(MASK, i) + sum / (float)(n + 5);
        }
        CHECK_INT(g->guess(g->self, id, n, n_old, out, n_max), n_out);
        for (int k = 0; k < n_out; k++)
            if (!CHECK_INT(out[k], best_of(row)))
                return;
        CHECK_INT(llm_session_n_past(f->draft, 0), (int64_t)n - 1);
    }
    const int32_t two[] = {1, 2};
    const llm_batch b = {.n = 2, .token = two, .is_block = true};
    CHECK_INT(llm_session_eval(f->fast, &b, &f->err), GGL_USAGE);
    CHECK_HAS(f->err.msg, "no blocks");
    /* more wanted ones than run at once; two slots */
    const int32_t six[6] = {1, MASK, MASK, MASK, MASK, MASK};
    const int slots[6] = {0, 0, 0, 0, 0, 1};
    bool want[6] = {true, true, true, true, true, true};
    llm_batch block = {.n = 6, .token = six, .want = want, .is_block = true};
    CHECK_INT(llm_session_eval(f->draft, &block, &f->err), GGL_USAGE);
    CHECK_HAS(f->err.msg, "of which 6 are wanted");
    want[0] = false;
    block.slot = slots;
    CHECK_INT(llm_session_eval(f->draft, &block, &f->err), GGL_USAGE);
    CHECK_HAS(f->err.msg, "one slot");
}

static void check_in_place(fixture *f) {
    const llm_draft_params dp = {.size = sizeof dp, .session = f->draft, .heard = f->heard};
    llm_guess_params gp = llm_guess_default();
    int32_t id[64], out[5];
    gp.always = true;
    if (!CHECK_OK(llm_guess_draft(&f->guess[DRAFT], &gp, &dp, &f->err), &f->err))
        return;
    const llm_guesser *g = llm_guess_guesser(f->guess[DRAFT]);
    for (size_t n = 2, n_old = 0; n < 40; n_old = n, n += 1 + below(f, 4)) {
        for (size_t i = n_old; i < n; i++)
            id[i] = (int32_t)below(f, VOCAB);
        const size_t n_past = (size_t)llm_session_n_past(f->fast, 0);
        const llm_batch b = {.n = (int64_t)(n - 1 - n_past), .token = id + n_past};
        if (b.n > 0 && !CHECK_OK(llm_session_eval(f->fast, &b, &f->err), &f->err))
            return;
        float mean[WIDTH] = {0}, row[WIDTH];
        for (int i = 0; i < WIDTH; i++) {
            for (size_t t = 0; t + 1 < n; t++)
                mean[i] += embedded(id[t], i) / (float)(n - 1);
            row[i] = embedded(id[n - 2], i);
        }
        CHECK_INT(g->guess(g->self, id, n, n_old, out, 5), 5);
        for (int k = 0; k < 5; k++) {
            for (int i = 0; i < WIDTH; i++)
                row[i] = embedded(k ? out[k - 1] : id[n - 1], i) + 0.7f * row[i] + 0.5f * mean[i];
            if (!CHECK_INT(out[k], best_of(row)))
                return;
        }
    }
}

static void check_pair(const char *text, void (*check)(fixture *f)) {
    fixture f = {.seed = sample_seed()};
    const llm_model_params mp = {.size = sizeof mp, .arch_dirs = ""};
    llm_model *head = NULL;
    char path[1024], other[1024];
    snprintf(path, sizeof path, "%s", test_path("head.gguf"));
    snprintf(other, sizeof other, "%s", test_path("tiny.gguf"));
    const bool ok =
        CHECK(write_tiny(other, "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\nx = "
                                "token_embd[token]\nlogits = linear(x, token_embd)\n")) &&
        CHECK(write_tiny(path, text)) &&
        CHECK_OK(ggl_backend_open(&f.cpu, "cpu", NULL, &f.err), &f.err) &&
        CHECK_OK(ggl_backend_open(&f.reference, "reference", NULL, &f.err), &f.err) &&
        CHECK_OK(llm_model_open(&f.model, other, &mp, &f.err), &f.err) &&
        CHECK_OK(llm_model_open(&head, path, &mp, &f.err), &f.err);
    if (ok && pair_open(&f, head))
        check(&f);
    teardown(&f);
    llm_model_free(head);
}

TEST(guesses_in_place) {
    check_pair(in_place, check_in_place);
}

TEST(guesses_in_a_block) {
    check_pair(in_block, check_in_block);
}

/* Checks of graphs take both ways of a model that guesses for another one. */
TEST(made_up_rows_are_of_both_kinds) {
    const int32_t token[4] = {0};
    const llm_text_inputs x = {.token = token, .first = 3, .n = 4};
    ggl_tensor given = {.name = "given", .type = GGL_F32};
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        given.ne[d] = 1;
    float value[4];
    CHECK_INT(llm_text_input(&x, &given, value), 4);
    for (int i = 0; i < 4; i++)
        CHECK(value[i] == (float)((3 + i) % 2));
}

/* Layer 1 is in both loops, layer 2 in the second alone. */
TEST(layers_of_two_loops) {
    fixture f = {.seed = sample_seed()};
    const llm_model_params mp = {.size = sizeof mp, .arch_dirs = ""};
    llm_session_params p = llm_session_default();
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path("tiny.gguf"));
    if (CHECK(write_tiny(path, "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\nx = "
                               "token_embd[token]\nlayer l < 2: x = x * 2\nlayer l < 3: x = x + 1\n"
                               "logits = linear(x, token_embd)\n")) &&
        CHECK_OK(ggl_backend_open(&f.cpu, "cpu", NULL, &f.err), &f.err) &&
        CHECK_OK(llm_model_open(&f.model, path, &mp, &f.err), &f.err)) {
        p.backend = &f.cpu;
        p.n_backends = 1;
        p.n_taps = 1;
        p.tap = (int32_t[]){2};
        CHECK_OK(llm_session_new(&f.fast, f.model, &p, &f.err), &f.err);
        p.tap = (int32_t[]){1};
        CHECK_INT(llm_session_new(&f.plain, f.model, &p, &f.err), GGL_UNSUPPORTED);
        CHECK_HAS(f.err.msg, "two loops over layers");
    }
    teardown(&f);
}

/* Rows that are heard, cut, heard again and dropped. */
TEST(heard_rows) {
    fixture f = {.seed = sample_seed()};
    llm_heard *none = NULL;
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path("tiny.gguf"));
    if (CHECK(write_tiny(path, AHEAD)) && setup(&f, path, 1, 17, GGL_F32)) {
        const float zero[WIDTH] = {0};
        const int32_t id[] = {3, 5};
        CHECK_INT(llm_session_n_row(f.fast), WIDTH);
        CHECK_INT(llm_session_n_row(f.plain), 0);
        CHECK_INT(llm_heard_new(&none, f.plain, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "llm_session_params.rows");
        CHECK_INT(llm_session_eval(f.draft, &(llm_batch){.n = 1, .token = id}, &f.err), GGL_USAGE);
        CHECK_HAS(f.err.msg, "llm_batch.row");
        CHECK_INT(llm_session_eval(f.fast, &(llm_batch){.n = 1, .token = id, .row = zero}, &f.err),
                  GGL_USAGE);
        CHECK_HAS(f.err.msg, "reads no rows");
        CHECK_OK(llm_session_eval(f.fast, &(llm_batch){.n = 2, .token = id}, &f.err), &f.err);
        const float *first = llm_heard_row(f.heard, 0, 0, 3);
        CHECK(first && llm_heard_row(f.heard, 0, 1, 5) == first + WIDTH);
        CHECK(!llm_heard_row(f.heard, 0, 1, 3) && !llm_heard_row(f.heard, 0, 2, 3));
        CHECK_OK(llm_session_cut(f.fast, 0, 1, &f.err), &f.err);
        CHECK_OK(llm_session_eval(f.fast, &(llm_batch){.n = 1, .token = id}, &f.err), &f.err);
        CHECK(llm_heard_row(f.heard, 0, 1, 3) && !llm_heard_row(f.heard, 0, 1, 5));
        llm_heard_drop(f.heard, 0, 1);
        CHECK(!llm_heard_row(f.heard, 0, 0, 3) && llm_heard_row(f.heard, 0, 1, 3));
        llm_heard_pause(f.heard, true);
        CHECK_OK(llm_session_eval(f.fast, &(llm_batch){.n = 1, .token = id}, &f.err), &f.err);
        CHECK(!llm_heard_row(f.heard, 0, 1, 3) && !llm_heard_row(f.heard, 0, 2, 3));
        llm_heard_pause(f.heard, false);
        CHECK_OK(llm_session_eval(f.fast, &(llm_batch){.n = 1, .token = id + 1}, &f.err), &f.err);
        CHECK(llm_heard_row(f.heard, 0, 3, 5) && !llm_heard_row(f.heard, 0, 2, 3));
    }
    teardown(&f);
}

TEST(windows) {
    check_tiny(MODEL(WINDOW ALL));
}

TEST(states) {
    check_tiny(MODEL(STATES));
}

TEST(windows_and_states) {
    check_tiny(MODEL(ALL WINDOW STATES));
}
