/* llm/internal/sampler.h: the stages, in random orders with random parameters, against the naive model of
 * sampler_model.c; masks, biases, orders by name, copies, and hostile values. */
#include <math.h>

#include "llm/internal/sampler.h"

#include "alloc_fail.h"
#include "sampler_model.h"
#include "seed.h"
#include "steps.h"
#include "tokenizer_file.h"

enum { MOST = MODEL_MOST, WORDS = MOST / 32 };

/* --- a tokenizer of MOST short texts, with many line ends and the like --- */

static llm_tokenizer *make_tokenizer(void) {
    static const char letters[] = "ab \n:*\"xyzuvw";
    static char text[MOST][8];
    static ggl_str piece[MOST];
    static float score[MOST];
    static int32_t type[MOST];
    for (int i = 0; i < MOST; i++) {
        size_t n = 0;
        for (int x = i + 1; x > 0; x /= 13) /* all different */
            text[i][n++] = letters[x % 13];
        piece[i] = (ggl_str){text[i], n};
        type[i] = 1;
    }
    type[0] = 2;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "tokenizer.ggml.model", "llama", 5);
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", piece, MOST);
    ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, score, MOST);
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, type, MOST);
    llm_tokenizer *t = NULL;
    ggl_error err = {0};
    CHECK_OK(from_writer(&t, w, &err), &err);
    return t;
}

/* --- random parameters --- */

static uint64_t seed;

static int below(int n) {
    return (int)(test_random(&seed) % (uint64_t)n);
}

static float between(float low, float high) {
    return low + (high - low) * (test_random_float(&seed) + 1) / 2;
}

/* Each of these is off about half of the time. */
static float maybe(float off, float low, float high) {
    return below(2) ? off : between(low, high);
}

static void random_order(llm_sampler_params *p) {
    for (int i = 0; i < LLM_SAMPLER_N_STAGES; i++) {
        const int k = below(i + 1);
        p->stage[i] = p->stage[k];
        p->stage[k] = (uint8_t)i;
    }
    p->n_stages = below(4) ? 1 + below(LLM_SAMPLER_N_STAGES) : 0;
}

static llm_sampler_params random_params(void) {
    llm_sampler_params p = llm_sampler_default();
    p.temp = below(8) ? between(0.05f, 2.5f) : below(2) ? 0 : 1;
    p.top_k = below(3) ? below(40) : below(4) * 400;
    p.top_p = maybe(1, 0, 1);
    p.min_p = maybe(0, 0, 0.3f);
    p.repeat_penalty = maybe(1, 0.7f, 2);
    p.repeat_last_n = below(3) ? below(30) - 1 : 64;
    p.frequency_penalty = maybe(0, -0.5f, 1);
    p.presence_penalty = maybe(0, -0.5f, 1);
    p.dynatemp_range = below(3) ? 0 : between(0, 1.5f);
    p.dynatemp_exponent = between(0, 2);
    p.typ_p = below(3) ? 1 : between(0, 1);
    p.top_n_sigma = below(3) ? -1 : between(0.1f, 3);
    p.xtc_probability = below(3) ? 0 : between(0, 1);
    p.xtc_threshold = between(0.01f, 0.6f);
    p.dry_multiplier = maybe(0, 0, 2);
    p.dry_base = between(1, 3);
    p.dry_allowed_length = below(5);
    p.dry_last_n = below(3) ? -1 : below(40);
    p.mirostat = below(5) ? 0 : 2;
    p.mirostat_tau = between(0.5f, 5);
    p.mirostat_eta = between(0.01f, 0.5f);
    p.seed = test_random(&seed);
    random_order(&p);
    return p;
}

static void random_logits(float *x, int n) {
    const int kind = below(4);
    for (int i = 0; i < n; i++) {
        x[i] = kind == 0   ? (float)below(4)       /* many equal ones */
               : kind == 1 ? -(float)(i % 7) / 2   /* groups of equals */
               : kind == 2 ? between(-1, 1) * 12   /* a few likely ones */
                           : between(-0.5f, 0.5f); /* almost alike */
        if (below(50) == 0)
            x[i] = below(2) ? NAN : -INFINITY;
    }
}

/* Fills a mask; returns NULL for none. */
static const uint32_t *random_mask(uint32_t *mask, int n) {
    const int kind = below(4);
    if (kind == 0)
        return NULL;
    for (int i = 0; i < WORDS; i++) {
        mask[i] = (uint32_t)test_random(&seed);
        mask[i] = kind == 1 ? mask[i] : kind == 2 ? mask[i] & (uint32_t)test_random(&seed) : 0;
    }
    const int id = below(n);
    mask[id / 32] |= 1u << id % 32;
    return mask;
}

/* --- the chain against the model --- */

typedef struct pair {
    sampler_model m;
    llm_sampler *s;
    llm_logit_bias bias[4];
    int n_xtc, n_xtc_hits; /* how often XTC made a difference, or could have */
} pair;

static void pair_init(pair *x, const llm_tokenizer *t) {
    static const ggl_str breakers[] = {{"\n", 1}, {"a:", 2}, {":*", 2}, {"\"", 1}, {"*\n:", 3}};
    ggl_error err = {0};
    *x = (pair){.m = {.p = random_params(),
                      .n_vocab = 1 + below(below(4)   ? 60
                                           : below(4) ? 400
                                                      : MOST)}};
    llm_sampler_params *p = &x->m.p;
    x->m.n_last = below(4) ? 1 + below(60) : 0;
    x->m.mu = 2 * p->mirostat_tau;
    p->n_bias = below(3) ? 0 : (size_t)below(4);
    for (size_t i = 0; i < p->n_bias; i++)
        x->bias[i] = (llm_logit_bias){below(x->m.n_vocab), below(4) ? between(-3, 3) : -INFINITY};
    p->bias = x->bias;
    p->tokenizer = below(3) ? t : NULL;
    p->dry_breakers = breakers;
    p->n_dry_breakers = (size_t)below(6);
    for (int id = 0; id < x->m.n_vocab; id++)
        x->m.text[id] = llm_token_text(t, id, true);
    CHECK_OK(llm_sampler_new(&x->s, p, x->m.n_vocab, x->m.n_last, &err), &err);
}

/* True if the candidates are those of the model. */
static bool is_same(const llm_candidate *a, size_t n, const model_candidate *b, int n_b) {
    bool same = (int)n == n_b;
    for (size_t i = 0; i < n && same; i++)
        same = a[i].id == b[i].id && fabs(a[i].p - b[i].p) < 1e-5;
    return same;
}

/* Chooses one token with both; returns whether they agree. */
static bool step(pair *x) {
    static float logits[MOST];
    static uint32_t mask[WORDS];
    static llm_candidate got[MOST];
    static model_candidate plain[MOST], cut[MOST];
    random_logits(logits, x->m.n_vocab);
    const uint32_t *allowed = random_mask(mask, x->m.n_vocab);
    const int32_t id = llm_sampler_next(x->s, logits, allowed);
    const size_t n = llm_sampler_candidates(x->s, got, MOST);
    const int n_plain = model_candidates(&x->m, logits, allowed, false, plain),
              n_cut = model_candidates(&x->m, logits, allowed, true, cut);
    const bool is_plain = is_same(got, n, plain, n_plain), is_cut = is_same(got, n, cut, n_cut);
    if (is_plain != is_cut) {
        x->n_xtc++;
        x->n_xtc_hits += is_cut;
    }
    if (n_plain == 0)
        return CHECK_INT(id, -1) && CHECK_INT(n, 0);
    bool ok = is_plain || (is_cut && x->m.p.xtc_probability > 0);
    size_t at = 0;
    while (at < n && got[at].id != id)
        at++;
    ok = ok && at < n && (got[at].p > 0 || got[0].p == 0);
    if (ok && x->m.p.mirostat && x->m.p.temp > 0)
        model_mirostat(&x->m, got[at].p);
    /* repetitions: often a token from a while ago */
    const int next = below(2) && x->m.n_past > 3 ? x->m.past[x->m.n_past - 3] : id;
    llm_sampler_accept(x->s, next);
    x->m.past[x->m.n_past++] = next;
    return ok;
}

TEST(chain) {
    llm_tokenizer *t = make_tokenizer();
    const int n_rounds = TEST_SANITIZED ? 300 : 2000;
    int n_xtc = 0;
    double expected = 0, hits = 0;
    for (int round = 0; round < n_rounds; round++) {
        pair x;
        seed = sample_seed() * 1000003 + (uint64_t)round;
        pair_init(&x, t);
        for (int i = 0; i < 40; i++)
            if (!CHECK_MSG(step(&x), "round %d, token %d: not as the model chooses", round, i))
                break;
        n_xtc += x.n_xtc;
        hits += x.n_xtc_hits;
        expected += x.n_xtc * x.m.p.xtc_probability;
        llm_sampler_free(x.s);
    }
    CHECK(n_xtc > n_rounds / 10);
    CHECK_MSG(fabs(hits - expected) < 5 * sqrt(n_xtc), "XTC: %.0f of %d times, expected %.0f", hits,
              n_xtc, expected);
    llm_tokenizer_free(t);
}

/* A long list whose logits change is sorted again, equal logits by id: 3 becomes 2 by a penalty. */
TEST(long_list_is_sorted_again) {
    enum { N = 2000 };
    static float logits[N];
    static llm_candidate got[N];
    llm_sampler_params p = llm_sampler_default();
    ggl_error err;
    llm_sampler *s;
    p.top_k = 1900;
    p.presence_penalty = 1;
    CHECK_OK(llm_sampler_read_names(&p, "top_k;penalties", &err), &err);
    REQUIRE_OK(llm_sampler_new(&s, &p, N, N, &err), &err);
    for (int i = 0; i < N; i++)
        logits[i] = (float)(i % 4);
    for (int32_t id = 3; id < N; id += 12)
        llm_sampler_accept(s, id);
    (void)llm_sampler_next(s, logits, NULL);
    REQUIRE(llm_sampler_candidates(s, got, N) == 1900);
    for (int i = 1; i < 1900; i++)
        if (!CHECK(got[i - 1].p > got[i].p ||
                   (got[i - 1].p == got[i].p && got[i - 1].id < got[i].id)))
            break;
    llm_sampler_free(s);
}

/* --- masks and biases --- */

TEST(forbidden_is_never_chosen) {
    static const float odd[] = {1, NAN, -INFINITY, INFINITY, 40, -INFINITY, NAN, 3};
    for (uint64_t round = 0; round < 3000; round++) {
        seed = round;
        llm_sampler_params p = random_params();
        const llm_logit_bias bias[] = {{3, -INFINITY}, {5, -2}};
        p.bias = bias;
        p.n_bias = (size_t)below(3);
        const uint32_t allowed = (uint32_t)below(256);
        const unsigned left = allowed & ~(p.n_bias > 0 ? 8u : 0u);
        ggl_error err;
        llm_sampler *s;
        REQUIRE_OK(llm_sampler_new(&s, &p, 8, 20, &err), &err);
        for (int i = 0; i < 20; i++) {
            const int32_t id = llm_sampler_next(s, odd, &allowed);
            if (!CHECK_MSG(left ? id >= 0 && (left >> id & 1) : id == -1,
                           "round %d: %d was chosen among %x", (int)round, (int)id, left))
                break;
            llm_sampler_accept(s, id);
        }
        llm_sampler_free(s);
    }
}

/* If nothing may be chosen, no random number is drawn. */
TEST(nothing_allowed) {
    const float logits[40] = {0};
    const uint32_t none[2] = {0, 0xffffff00}; /* bits past the vocabulary do not count */
    llm_sampler_params p = llm_sampler_default();
    ggl_error err;
    llm_sampler *a, *b;
    p.xtc_probability = 1;
    REQUIRE_OK(llm_sampler_new(&a, &p, 40, 0, &err), &err);
    REQUIRE_OK(llm_sampler_new(&b, &p, 40, 0, &err), &err);
    for (int i = 0; i < 50; i++) {
        CHECK_INT(llm_sampler_next(a, logits, none), -1);
        CHECK_INT(llm_sampler_candidates(a, NULL, 0), 0);
        CHECK_INT(llm_sampler_next(a, logits, NULL), llm_sampler_next(b, logits, NULL));
    }
    llm_sampler_free(a);
    llm_sampler_free(b);
}

/* A mask that allows everything changes nothing. */
TEST(whole_mask) {
    enum { N = 2000 };
    static float logits[N];
    static uint32_t all[(N + 31) / 32];
    memset(all, 0xff, sizeof all);
    for (uint64_t round = 0; round < 200; round++) {
        seed = round;
        llm_sampler_params p = random_params();
        ggl_error err;
        llm_sampler *a, *b;
        REQUIRE_OK(llm_sampler_new(&a, &p, N, 20, &err), &err);
        REQUIRE_OK(llm_sampler_new(&b, &p, N, 20, &err), &err);
        for (int i = 0; i < 10; i++) {
            random_logits(logits, N);
            const int32_t id = llm_sampler_next(a, logits, NULL);
            CHECK_INT(llm_sampler_next(b, logits, all), id);
            llm_sampler_accept(a, id);
            llm_sampler_accept(b, id);
        }
        llm_sampler_free(a);
        llm_sampler_free(b);
    }
}

/* --- orders --- */

TEST(orders) {
    llm_sampler_params p = llm_sampler_default();
    ggl_error err = {0};
    CHECK_INT(p.n_stages, 0);
    CHECK_OK(llm_sampler_read_names(&p, "top_k;temperature;penalties", &err), &err);
    CHECK_INT(p.n_stages, 3);
    CHECK_INT(p.stage[0], LLM_SAMPLER_TOP_K);
    CHECK_INT(p.stage[1], LLM_SAMPLER_TEMPERATURE);
    CHECK_INT(p.stage[2], LLM_SAMPLER_PENALTIES);
    CHECK_OK(llm_sampler_read_names(&p, "typical;nucleus;temp;top-nsigma;", &err), &err);
    CHECK_INT(p.n_stages, 4);
    CHECK_INT(p.stage[0], LLM_SAMPLER_TYP_P);
    CHECK_INT(p.stage[3], LLM_SAMPLER_TOP_N_SIGMA);
    CHECK_OK(llm_sampler_read_letters(&p, "edskypmxt", &err), &err);
    CHECK_INT(p.n_stages, LLM_SAMPLER_N_STAGES);
    for (int i = 0; i < LLM_SAMPLER_N_STAGES; i++) {
        CHECK_INT(p.stage[i], i);
        CHECK_INT(llm_sampler_stage_letter((llm_sampler_stage)i), "edskypmxt"[i]);
        CHECK_OK(llm_sampler_read_names(&p, llm_sampler_stage_name((llm_sampler_stage)i), &err),
                 &err);
        CHECK_INT(p.stage[0], i);
        CHECK_INT(p.n_stages, 1);
        CHECK_OK(llm_sampler_read_letters(&p, "edskypmxt", &err), &err);
    }
    const struct {
        const char *names, *letters, *words;
    } bad[] = {
        {"top_k;tpo_p", NULL, "'tpo_p' is not a stage; there are penalties (e), dry (d)"},
        {"", NULL, "'' is not a stage"},
        {"top_k;;temp", NULL, "'' is not a stage"},
        {"top_k;top-k", NULL, "stage top_k is named twice"},
        {"top", NULL, "'top' is not a stage"},
        {NULL, "kq", "'q' is not a stage"},
        {NULL, "kk", "stage top_k is named twice"},
        {NULL, "", "'' is not a stage"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_INT(bad[i].names ? llm_sampler_read_names(&p, bad[i].names, &err)
                               : llm_sampler_read_letters(&p, bad[i].letters, &err),
                  GGL_USAGE);
        CHECK_HAS(err.msg, bad[i].words);
        CHECK_INT(p.n_stages, LLM_SAMPLER_N_STAGES);
    }
}

/* --- state --- */

TEST(reset_and_copy) {
    enum { N = 300 };
    static float logits[N];
    for (uint64_t round = 0; round < 300; round++) {
        seed = round;
        llm_sampler_params p = random_params();
        ggl_error err;
        llm_sampler *a, *b;
        int32_t first[30];
        random_logits(logits, N);
        REQUIRE_OK(llm_sampler_new(&a, &p, N, 25, &err), &err);
        REQUIRE_OK(llm_sampler_new(&b, &p, N, 25, &err), &err);
        for (int i = 0; i < 30; i++) {
            if (i == 20)
                CHECK_OK(llm_sampler_copy(b, a, &err), &err);
            first[i] = llm_sampler_next(a, logits, NULL);
            llm_sampler_accept(a, first[i]);
        }
        for (int i = 20; i < 30; i++) { /* from the copy on */
            CHECK_INT(llm_sampler_next(b, logits, NULL), first[i]);
            llm_sampler_accept(b, first[i]);
        }
        llm_sampler_reset(b);
        for (int i = 0; i < 30; i++) {
            CHECK_INT(llm_sampler_next(b, logits, NULL), first[i]);
            llm_sampler_accept(b, first[i]);
        }
        llm_sampler_free(b);
        REQUIRE_OK(llm_sampler_new(&b, &p, N + 1, 25, &err), &err);
        CHECK_INT(llm_sampler_copy(b, a, &err), GGL_USAGE);
        CHECK_HAS(err.msg, "were made with different parameters");
        llm_sampler_free(a);
        llm_sampler_free(b);
    }
}

/* A sampler that shares what another one has prepared draws what one of its own would. */
TEST(samplers_like_others) {
    enum { N = MOST };
    static float logits[N];
    static const llm_logit_bias bias[] = {{3, 2}, {17, -INFINITY}, {40, 1.5f}};
    static const ggl_str breakers[] = {{"\n", 1}, {"a:", 2}};
    llm_tokenizer *t = make_tokenizer();
    for (uint64_t round = 0; round < 100; round++) {
        seed = round;
        llm_sampler_params p = random_params();
        ggl_error err;
        llm_sampler *a, *b, *c;
        p.bias = bias;
        p.n_bias = 3;
        p.tokenizer = t;
        p.dry_breakers = breakers;
        p.n_dry_breakers = 2;
        p.dry_multiplier = 1;
        p.dry_last_n = -1;
        REQUIRE_OK(llm_sampler_new(&a, &p, N, 25, &err), &err);
        REQUIRE_OK(llm_sampler_new_like(&b, a, &err), &err);
        REQUIRE_OK(llm_sampler_new_like(&c, b, &err), &err);
        llm_sampler_reseed(c, p.seed);
        for (int i = 0; i < 30; i++) {
            random_logits(logits, N);
            const int32_t id = llm_sampler_next(a, logits, NULL);
            CHECK_INT(llm_sampler_next(b, logits, NULL), id);
            CHECK_INT(llm_sampler_next(c, logits, NULL), id);
            llm_sampler_accept(a, id);
            llm_sampler_accept(b, id);
            llm_sampler_accept(c, id);
        }
        llm_sampler_free(a); /* in any order */
        llm_sampler_free(b);
        llm_sampler_free(c);
    }
    llm_tokenizer_free(t);
}

/* --- edges --- */

TEST(edges) {
    static const float kinds[][3] = {{-INFINITY, -INFINITY, -INFINITY},
                                     {NAN, NAN, NAN},
                                     {INFINITY, INFINITY, -INFINITY},
                                     {3.4e38f, -3.4e38f, 1e-45f},
                                     {0, -0.0f, 0}};
    for (uint64_t round = 0; round < 4000; round++) {
        seed = round;
        llm_sampler_params p = random_params();
        ggl_error err;
        llm_sampler *s;
        p.frequency_penalty = below(2) ? 3e38f : p.frequency_penalty;
        p.presence_penalty = below(2) ? -3e38f : p.presence_penalty;
        p.repeat_penalty = below(2) ? 3e38f : 1e-37f;
        p.dry_multiplier = below(2) ? 3e38f : 0;
        p.dry_base = 3e38f;
        p.temp = below(2) ? 1e-38f : 3e38f;
        const int n_vocab = 1 + below(3);
        REQUIRE_OK(llm_sampler_new(&s, &p, n_vocab, below(20), &err), &err);
        for (int i = 0; i < 30; i++) {
            const int32_t id = llm_sampler_next(s, kinds[below(5)], NULL);
            if (!CHECK_MSG(id >= 0 && id < n_vocab, "round %d: token %d", (int)round, (int)id))
                break;
            llm_sampler_accept(s, id);
        }
        llm_sampler_free(s);
    }
}

TEST(numbers) {
    llm_sampler_params p = llm_sampler_default();
    ggl_error err;
    for (size_t i = 0; i < LLM_SAMPLER_N_NUMBERS; i++) {
        const llm_sampler_number *n = &llm_sampler_numbers[i];
        const double x = n->low > -1 ? n->low : -1, above = n->high * 2 + 1,
                     by_default = llm_sampler_get_number(&p, n);
        CHECK_MSG(by_default >= n->low && by_default <= n->high, "%s", n->field);
        CHECK_OK(llm_sampler_set_number(&p, n->field, x, &err), &err);
        CHECK_MSG(llm_sampler_get_number(&p, n) == x, "%s", n->field);
        CHECK_INT(llm_sampler_set_number(&p, n->field, above, &err), GGL_USAGE);
        CHECK_HAS(err.msg, n->must_be);
        CHECK_INT(llm_sampler_set_number(&p, n->field, NAN, &err), GGL_USAGE);
        CHECK_MSG(llm_sampler_get_number(&p, n) == x, "%s", n->field);
    }
    CHECK_INT(llm_sampler_set_number(&p, "top_k", 1.5, &err), GGL_USAGE);
    CHECK_STR(err.msg, "top_k is 1.5, but must be an integer");
    CHECK_INT(llm_sampler_set_number(&p, "temprature", 1, &err), GGL_USAGE);
    CHECK_STR(err.msg, "the sampler has no number 'temprature'; did you mean 'temperature'?");
}

TEST(refused) {
    const llm_logit_bias no_id = {7, 1}, no_number = {1, NAN}, too_large = {1, INFINITY};
    const ggl_str empty = {"", 0};
    const llm_sampler_params d = llm_sampler_default();
    llm_sampler_params p[16];
    for (int i = 0; i < 16; i++)
        p[i] = d;
    p[0].typ_p = 1.5f;
    p[1].top_n_sigma = NAN;
    p[2].xtc_probability = -1;
    p[3].xtc_threshold = 2;
    p[4].dynatemp_range = -1;
    p[5].dynatemp_exponent = -1;
    p[6].frequency_penalty = INFINITY;
    p[7].presence_penalty = NAN;
    p[8].dry_multiplier = -1;
    p[9].dry_multiplier = 1, p[9].dry_base = 0.5f;
    p[10].mirostat = 1;
    p[11].bias = &no_id, p[11].n_bias = 1;
    p[12].bias = &no_number, p[12].n_bias = 1;
    p[13].bias = &too_large, p[13].n_bias = 1;
    p[14].dry_multiplier = 1, p[14].dry_breakers = &empty, p[14].n_dry_breakers = 1;
    p[15].n_stages = 2;
    static const char *const words[16] = {
        "typ_p is 1.5, but must be from 0 to 1",
        "top_n_sigma is nan",
        "xtc_probability is -1",
        "xtc_threshold is 2",
        "dynatemp_range is -1",
        "dynatemp_exponent is -1",
        "frequency_penalty is inf",
        "presence_penalty is nan",
        "dry_multiplier is -1",
        "dry_base is 0.5, but must be at least 1",
        "mirostat is 1, but must be 0 (off) or 2",
        "the bias for token 7: the vocabulary has only 5",
        "the bias for token 1 is nan",
        "the bias for token 1 is inf",
        "dry_breakers[0] is empty",
        "stage[1] is 0: no stage, or one named before",
    };
    for (int i = 0; i < 16; i++) {
        ggl_error err = {0};
        llm_sampler *s;
        CHECK_INT(llm_sampler_new(&s, &p[i], 5, 5, &err), GGL_USAGE);
        CHECK_HAS(err.msg, words[i]);
        CHECK(!s);
    }
}

/* --- time --- */

/* Steps of DRY for a token after n tokens, and of recording them. */
static uint64_t dry_steps(const llm_sampler_params *p, int n, int period) {
    static const float logits[MOST];
    ggl_error err;
    llm_sampler *s;
    ggl_n_steps = 0;
    if (!CHECK_OK(llm_sampler_new(&s, p, MOST, n, &err), &err))
        return 0;
    for (int i = 0; i < n; i++)
        llm_sampler_accept(s, 20 + (period ? i % period : below(2)));
    (void)llm_sampler_next(s, logits, NULL);
    llm_sampler_free(s);
    return ggl_n_steps;
}

/* Neither repetitive windows nor long breakers that almost occur cost more than linear time. */
TEST(dry_is_linear) {
    enum { N = 2000 };
    static char almost[N + 1];
    llm_tokenizer *t = make_tokenizer();
    llm_sampler_params p = llm_sampler_default();
    const ggl_str spelled = llm_token_text(t, 20, true);
    for (size_t i = 0; i < N; i++)
        almost[i] = spelled.s[i % spelled.n];
    almost[N] = '!';
    const ggl_str breakers[] = {{almost, sizeof almost}, {almost, N / 2}, {almost, 7}};
    p.dry_multiplier = 1;
    for (int period = 0; period < 4; period++)
        test_linear("a window", dry_steps(&p, N, period), dry_steps(&p, 10 * N, period), 10);
    p.tokenizer = t;
    p.dry_breakers = breakers;
    for (size_t n = 1; n <= 3; n++) {
        p.n_dry_breakers = n;
        const uint64_t none = dry_steps(&p, 1, 1); /* the breakers themselves */
        /* a few steps for each byte, whatever the hash table's seed */
        CHECK(dry_steps(&p, N, 1) - none < 100 * N);
        CHECK(dry_steps(&p, 10 * N, 1) - none < 1000 * N);
    }
    llm_tokenizer_free(t);
}

/* --- memory --- */

typedef struct creation {
    llm_sampler_params p;
    llm_tokenizer *t;
} creation;

static bool create(void *arg) {
    const creation *c = arg;
    llm_sampler *s;
    if (llm_sampler_new(&s, &c->p, 3000, 10, NULL) != GGL_OK)
        return false;
    llm_sampler_free(s);
    return true;
}

TEST(allocations) {
    static float logits[MOST];
    const llm_logit_bias bias = {1, 1};
    creation c = {.p = llm_sampler_default(), .t = make_tokenizer()};
    c.p.tokenizer = c.t;
    c.p.dry_multiplier = 1;
    c.p.repeat_penalty = 1.5f;
    c.p.bias = &bias;
    c.p.n_bias = 1;
    c.p.top_k = 0;
    CHECK(alloc_fail_each(create, &c) > 12);
    for (int k = 0; k < 3; k++) {
        ggl_error err;
        llm_sampler *s;
        c.p.mirostat = k == 1 ? 2 : 0;
        c.p.temp = k == 2 ? 0 : 1;
        REQUIRE_OK(llm_sampler_new(&s, &c.p, MOST, 100, &err), &err);
        const long before = alloc_count();
        for (int i = 0; i < 200; i++) {
            random_logits(logits, MOST);
            llm_sampler_accept(s, llm_sampler_next(s, logits, NULL));
        }
        llm_sampler_reset(s);
        CHECK_INT(alloc_count(), before);
        llm_sampler_free(s);
    }
    llm_tokenizer_free(c.t);
}
