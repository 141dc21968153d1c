/* Prompt caches: text with one is the text without, for models whose slots can be cut, keep a window,
 * or have states; and files that are damaged, or of another model, are refused. */
#include "llm/internal/prompt_cache.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "alone.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/gguf.h"
#include "llm/internal/media.h"
#include "run/prompt_cache_file.h"
#include "seed.h"
#include "test.h"
#include "tiny_model.h"

enum { VOCAB = TINY_VOCAB, CTX = 160, UBATCH = 16, DRAWN = 12 };

/* A program: everything from the model to the engine. */
typedef struct program {
    ggl_backend *cpu, *reference;
    llm_model *model;
    llm_session *s;
    llm_sampler *sampler;
    alone_seq a;
    llm_prompt_cache *cache;
    ggl_error err;
} program;

typedef struct settings {
    const char *model, *also;
    int64_t n_ctx, n_ubatch;
    ggl_type type;
    uint64_t seed;
    size_t n_snapshot_bytes; /* of the engine */
    llm_media *media;        /* NULL: there are no pictures */
} settings;

static bool open_session(program *p, const settings *o) {
    const llm_model_params mp = {.size = sizeof mp, .arch_dirs = ""};
    llm_session_params sp = llm_session_default();
    sp.n_ctx = o->n_ctx ? o->n_ctx : CTX;
    sp.n_ubatch = o->n_ubatch ? o->n_ubatch : UBATCH;
    sp.type_k = sp.type_v = o->type ? o->type : GGL_F32;
    sp.backend = &p->cpu;
    sp.n_backends = 1;
    sp.fold = p->reference;
    sp.media = o->media;
    return CHECK_OK(llm_model_open(&p->model, o->model, &mp, &p->err), &p->err) &&
           CHECK_OK(llm_session_new(&p->s, p->model, &sp, &p->err), &p->err) &&
           CHECK_OK(llm_session_alloc(p->s, &p->err), &p->err);
}

static bool program_open(program *p, const settings *o) {
    *p = (program){0};
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = 1};
    llm_sampler_params sampling = llm_sampler_default();
    sampling.seed = o->seed;
    if (!CHECK_OK(ggl_backend_open(&p->cpu, "cpu", &bp, &p->err), &p->err) ||
        !CHECK_OK(ggl_backend_open(&p->reference, "reference", NULL, &p->err), &p->err) ||
        !open_session(p, o) ||
        !CHECK_OK(llm_sampler_new(&p->sampler, &sampling, VOCAB, CTX, &p->err), &p->err))
        return false;
    const llm_prompt_cache_params cp = {
        .size = sizeof cp, .model = p->model, .session = p->s, .also = o->also};
    return CHECK_OK(llm_prompt_cache_new(&p->cache, &cp, &p->err), &p->err) &&
           alone_open(&p->a,
                      &(llm_engine_params){.session = p->s,
                                           .whole_prompts = true,
                                           .n_snapshot_bytes = o->n_snapshot_bytes},
                      &(llm_sequence_params){.sampler = p->sampler, .n_max = -1}, &p->err);
}

static void program_close(program *p) {
    alone_close(&p->a);
    llm_prompt_cache_free(p->cache);
    llm_sampler_free(p->sampler);
    llm_session_free(p->s);
    llm_model_free(p->model);
    ggl_backend_close(p->cpu);
    ggl_backend_close(p->reference);
}

static bool draw(program *p, int32_t *out) {
    for (int i = 0; i < DRAWN; i++)
        if (!CHECK_OK(alone_next(&p->a, &out[i], &p->err), &p->err))
            return false;
    return true;
}

/* Runs a prompt; with `keeps` it is one for the cache. */
static bool prompt(program *p, const int32_t *id, size_t n, bool keeps) {
    p->a.p.keeps = keeps ? p->cache : NULL;
    return CHECK_OK(alone_prompt(&p->a, id, n, &p->err), &p->err);
}

/* Runs the prompt as llm-cli does with --prompt-cache, and with `all` --prompt-cache-all. Returns the
 * tokens that did not have to run; negative: a failure. */
static int64_t run_cached(const settings *o, const char *path, const int32_t *id, size_t n,
                          bool all, int32_t *out) {
    program p;
    int64_t n_held = -1;
    if (program_open(&p, o)) {
        ggl_status st = llm_prompt_cache_load(p.cache, path, id, n, &n_held, &p.err);
        if (st == GGL_OK)
            st = llm_engine_adopt(p.a.e, 0, id, (size_t)n_held, &p.err);
        else if (st == GGL_NOT_FOUND)
            st = GGL_OK;
        bool ok = CHECK_OK(st, &p.err) && prompt(&p, id, n, true) &&
                  CHECK(alone_stats(&p.a).n_reused >= n_held) && draw(&p, out);
        alone_end(&p.a);
        size_t n_all = 0;
        const int32_t *tokens = ok ? alone_tokens(&p.a, &n_all) : NULL;
        n_all = ok ? (size_t)llm_session_n_past(p.s, 0) : 0;
        ok = ok && CHECK_OK(llm_prompt_cache_save(p.cache, path, tokens, all ? n_all : n, &p.err),
                            &p.err);
        n_held = ok ? n_held : -1;
    }
    program_close(&p);
    return n_held;
}

static bool run_plain(const settings *o, const int32_t *id, size_t n, int32_t *out) {
    program p;
    const bool ok = program_open(&p, o) && prompt(&p, id, n, false) && draw(&p, out);
    program_close(&p);
    return ok;
}

/* Programs one after the other with one file, whose prompts share beginnings. */
static void check_model(const char *text, bool can_cut) {
    const char *model = test_path("tiny.gguf"), *path = test_path("tiny.cache");
    uint64_t seed = sample_seed();
    int32_t id[CTX], with[DRAWN], without[DRAWN];
    int64_t n_reused = 0;
    unlink(path);
    if (!tiny_model_write(model, text, 0.4f))
        return;
    size_t n = 0;
    for (int i = 0; i < 40; i++) {
        settings o = {.model = model, .seed = test_random(&seed)};
        if (can_cut) /* the rings of windows depend on it */
            o.n_ubatch = 1 + (int64_t)(test_random(&seed) % 20);
        const size_t keep = test_random(&seed) % 3 || n == 0 ? n : test_random(&seed) % n;
        n = keep + test_random(&seed) % 40;
        n = n < 2 ? 2 : n > 140 ? 20 : n;
        for (size_t k = keep; k < n; k++)
            id[k] = (int32_t)(test_random(&seed) % VOCAB);
        const bool all = test_random(&seed) % 2;
        const int64_t held = run_cached(&o, path, id, n, all, with);
        n_reused += held;
        if (held < 0 || !run_plain(&o, id, n, without) ||
            !CHECK_MSG(memcmp(with, without, sizeof with) == 0,
                       "run %d, a prompt of %zu tokens of which %d were saved: %d .., not %d ..", i,
                       n, (int)held, with[0], without[0]))
            return;
        /* with -all the answer is part of the next prompt */
        if (all && n + DRAWN < 140 && test_random(&seed) % 2) {
            memcpy(id + n, with, sizeof with);
            n += DRAWN;
        }
    }
    CHECK_MSG(n_reused > (can_cut ? 300 : 60), "only %d tokens were reused", (int)n_reused);
}

TEST(caches) {
    check_model(MODEL(ALL), true);
}

TEST(windows) {
    check_model(MODEL(ALL WINDOW), false);
}

TEST(states) {
    check_model(MODEL(STATES), false);
}

TEST(all) {
    check_model(MODEL(ALL WINDOW STATES), false);
}

/* --- the same prompt again -------------------------------------------------------------------- */

static const int32_t some[30] = {1, 2, 3, 4, 5, 6, 7, 0, 1, 1, 2, 2, 3, 3, 4,
                                 4, 5, 5, 6, 6, 7, 7, 0, 0, 1, 3, 5, 7, 2, 4};

/* All but the last token of the same prompt is there, for every kind of model and either flag. */
TEST(the_same_prompt_runs_one_token) {
    static const char *const text[] = {MODEL(ALL), MODEL(ALL WINDOW), MODEL(STATES),
                                       MODEL(ALL WINDOW STATES)};
    for (int i = 0; i < 8; i++) {
        const settings o = {.model = test_path("same.gguf")};
        const char *path = test_path("same.cache");
        int32_t out[DRAWN];
        unlink(path);
        if (!tiny_model_write(o.model, text[i / 2], 0.4f) ||
            !CHECK_INT(run_cached(&o, path, some, 30, i % 2, out), 0) ||
            !CHECK_INT(run_cached(&o, path, some, 30, i % 2, out), 29))
            return;
    }
}

/* --- refusals --------------------------------------------------------------------------------- */

static ggl_status load(const settings *o, const char *path, ggl_error *err) {
    program p;
    int64_t n_held = -1;
    ggl_status st = GGL_USAGE;
    if (program_open(&p, o)) {
        st = llm_prompt_cache_load(p.cache, path, some, 30, &n_held, &p.err);
        *err = p.err;
        CHECK_INT(n_held, st == GGL_OK ? 29 : 0);
        CHECK_INT(llm_session_n_past(p.s, 0), n_held);
    }
    program_close(&p);
    return st;
}

static const char *refused(const settings *o, const char *path) {
    static ggl_error err;
    err = (ggl_error){0};
    return load(o, path, &err) == GGL_UNSUPPORTED || err.status == GGL_FORMAT ? err.msg : "";
}

TEST(what_differs_is_named) {
    const char *model = test_path("a.gguf"), *other = test_path("b.gguf"),
               *path = test_path("a.cache"), *text = MODEL(ALL);
    settings o = {.model = model, .also = "adapter x"};
    int32_t out[DRAWN];
    ggl_error err = {0};
    REQUIRE(tiny_model_write(model, text, 0.4f) && tiny_model_write(other, text, 0.5f));
    CHECK_INT(load(&o, path, &err), GGL_NOT_FOUND);
    CHECK_INT(run_cached(&o, path, some, 30, false, out), 0);
    CHECK_INT(load(&o, path, &err), GGL_OK);
    o.n_ctx = 60, o.n_ubatch = 3; /* these make no difference */
    CHECK_INT(load(&o, path, &err), GGL_OK);
    o.n_ctx = 20;
    CHECK_INT(load(&o, path, &err), GGL_LIMIT);
    o.n_ctx = 0;
    o.type = GGL_F16;
    CHECK_HAS(refused(&o, path), "keys of type f32");
    o.type = 0;
    o.also = NULL;
    CHECK_HAS(refused(&o, path), "another setting: adapter x; now: none");
    o.also = "adapter x";
    o.model = other;
    CHECK_HAS(refused(&o, path), "another model: a.gguf; now: b.gguf");
    REQUIRE(tiny_model_write(other, text, 0.4f) && rename(other, model) == 0);
    o.model = model;
    CHECK_HAS(refused(&o, path), "has changed since");
}

TEST(another_ring_is_refused) {
    const char *path = test_path("r.cache");
    settings o = {.model = test_path("r.gguf")};
    int32_t out[DRAWN];
    REQUIRE(tiny_model_write(o.model, MODEL(WINDOW), 0.4f));
    CHECK_INT(run_cached(&o, path, some, 30, false, out), 0);
    o.n_ubatch = 80;
    CHECK_HAS(refused(&o, path), "-ub");
}

/* The same weights, read by another descriptor. */
TEST(another_descriptor_is_refused) {
    const char *model = test_path("d.gguf"), *path = test_path("d.cache");
    static const char changed[] = MODEL("h = heads(x, 2)\nx = x + 2 * attention(h, h, h)\n");
    const settings o = {.model = model};
    int32_t out[DRAWN];
    program p = {0};
    int64_t n_held;
    REQUIRE(tiny_model_write(model, MODEL(ALL), 0.4f));
    CHECK_INT(run_cached(&o, path, some, 30, false, out), 0);
    REQUIRE(test_write_file(test_path("d.arch"), changed, sizeof changed - 1));
    REQUIRE(program_open(&p, &o));
    llm_prompt_cache_free(p.cache);
    alone_close(&p.a);
    llm_session_free(p.s);
    llm_model_free(p.model);
    const llm_model_params mp = {.size = sizeof mp, .arch_path = test_path("d.arch")};
    llm_session_params sp = llm_session_default();
    sp.n_ctx = CTX;
    sp.type_k = sp.type_v = GGL_F32;
    sp.backend = &p.cpu;
    sp.n_backends = 1;
    sp.fold = p.reference;
    REQUIRE_OK(llm_model_open(&p.model, model, &mp, &p.err), &p.err);
    REQUIRE_OK(llm_session_new(&p.s, p.model, &sp, &p.err), &p.err);
    REQUIRE_OK(llm_session_alloc(p.s, &p.err), &p.err);
    const llm_prompt_cache_params cp = {.size = sizeof cp, .model = p.model, .session = p.s};
    REQUIRE_OK(llm_prompt_cache_new(&p.cache, &cp, &p.err), &p.err);
    CHECK_INT(llm_prompt_cache_load(p.cache, path, some, 30, &n_held, &p.err), GGL_UNSUPPORTED);
    CHECK_HAS(p.err.msg, "another descriptor");
    program_close(&p);
}

/* --- damage ----------------------------------------------------------------------------------- */

/* Each byte that is changed, and each length that is cut off, is noticed. */
TEST(damage_is_noticed) {
    const char *path = test_path("e.cache"), *bad = test_path("bad.cache");
    const settings o = {.model = test_path("e.gguf")};
    int32_t out[DRAWN];
    program p;
    size_t size;
    int64_t n_held;
    REQUIRE(tiny_model_write(o.model, MODEL(STATES), 0.4f));
    CHECK_INT(run_cached(&o, path, some, 30, false, out), 0);
    unsigned char *data = test_read_file(path, &size);
    REQUIRE(data && program_open(&p, &o));
    uint64_t seed = sample_seed();
    for (size_t i = 0; i < 2 * size; i += i < 700 ? 1 : 1 + test_random(&seed) % 13) {
        const bool is_cut = i >= size;
        unsigned char *byte = &data[is_cut ? 0 : i];
        const unsigned char was = *byte;
        *byte ^= is_cut ? 0 : (unsigned char)(1 + test_random(&seed) % 255);
        REQUIRE(test_write_file(bad, data, is_cut ? i - size : size));
        *byte = was;
        const ggl_status st = llm_prompt_cache_load(p.cache, bad, some, 30, &n_held, &p.err);
        const bool is_gap = st == GGL_OK && !is_cut; /* of zeros between the entries */
        if (!CHECK_MSG(is_gap ? was == 0 : st != GGL_OK && n_held == 0,
                       "byte %zu of %zu%s: status %d, %d tokens", i % size, size,
                       is_cut ? ", cut off" : "", st, (int)n_held))
            break;
    }
    free(data);
    program_close(&p);
}

TEST(files_of_another_kind_are_left_alone) {
    const char *path = test_path("notes.txt");
    const settings o = {.model = test_path("f.gguf")};
    program p;
    int64_t n_held;
    size_t size;
    REQUIRE(tiny_model_write(o.model, MODEL(ALL), 0.4f));
    REQUIRE(test_write_file(path, "my notes", 8));
    REQUIRE(program_open(&p, &o));
    CHECK_INT(llm_prompt_cache_load(p.cache, path, some, 30, &n_held, &p.err), GGL_FORMAT);
    CHECK_HAS(p.err.msg, "not a prompt cache");
    REQUIRE(prompt(&p, some, 30, false));
    alone_end(&p.a);
    CHECK_INT(llm_prompt_cache_save(p.cache, path, some, 30, &p.err), GGL_USAGE);
    unsigned char *data = test_read_file(path, &size);
    CHECK(data && size == 8 && memcmp(data, "my notes", 8) == 0);
    free(data);
    CHECK_INT(llm_prompt_cache_save(p.cache, path, some, 31, &p.err), GGL_USAGE);
    /* an empty file, as mktemp leaves it, is replaced */
    REQUIRE(test_write_file(path, "", 0));
    CHECK_INT(llm_prompt_cache_load(p.cache, path, some, 30, &n_held, &p.err), GGL_NOT_FOUND);
    REQUIRE_OK(llm_engine_adopt(p.a.e, 0, some, 0, &p.err), &p.err);
    REQUIRE(prompt(&p, some, 30, false));
    CHECK_OK(llm_prompt_cache_save(p.cache, path, some, 30, &p.err), &p.err);
    CHECK_OK(llm_prompt_cache_load(p.cache, path, some, 30, &n_held, &p.err), &p.err);
    program_close(&p);
}

/* A prompt that the slot no longer holds, because the context was shifted, is saved from its copy. */
TEST(a_prompt_that_was_shifted_away) {
    const char *path = test_path("shifted.cache");
    const settings o = {.model = test_path("g.gguf")};
    program p;
    int32_t want[DRAWN], got[DRAWN], other[20];
    REQUIRE(tiny_model_write(o.model, MODEL(STATES), 0.4f));
    REQUIRE(run_plain(&o, some, 30, want));
    REQUIRE(program_open(&p, &o));
    CHECK_INT(llm_prompt_cache_save_copy(p.cache, path, some, 30, &p.err), GGL_NOT_FOUND);
    REQUIRE(prompt(&p, some, 30, true));
    memcpy(other, some + 3, sizeof other); /* another beginning */
    REQUIRE(prompt(&p, other, 20, false));
    CHECK_INT(llm_prompt_cache_save_copy(p.cache, path, other, 20, &p.err), GGL_NOT_FOUND);
    CHECK_OK(llm_prompt_cache_save_copy(p.cache, path, some, 30, &p.err), &p.err);
    program_close(&p);
    CHECK_INT(run_cached(&o, path, some, 30, false, got), 29);
    CHECK(memcmp(got, want, sizeof got) == 0);
}

/* The sequence's own tokens, from the middle on, as a prompt: what a program does that drops the beginning. */
TEST(own_tokens_as_a_prompt) {
    static const char *const text[] = {MODEL(ALL), MODEL(STATES)};
    for (int k = 0; k < 2; k++)
        for (int cached = 0; cached < 2; cached++) {
            const settings o = {.model = test_path("o.gguf")};
            program p;
            int32_t want[DRAWN], got[DRAWN];
            size_t n;
            REQUIRE(tiny_model_write(o.model, text[k], 0.4f));
            REQUIRE(run_plain(&o, some + 8, 22, want));
            REQUIRE(program_open(&p, &o));
            REQUIRE(prompt(&p, some, 30, false));
            alone_end(&p.a);
            REQUIRE(prompt(&p, alone_tokens(&p.a, &n) + 8, 22, cached));
            CHECK(draw(&p, got) && memcmp(got, want, sizeof got) == 0);
            program_close(&p);
        }
}

/* Saves and loads; true if nothing failed. */
static bool save_and_load(void *arg) {
    program *p = arg;
    const char *path = test_path("g.cache");
    const llm_prompt_cache_params cp = {.size = sizeof cp, .model = p->model, .session = p->s};
    llm_prompt_cache *c;
    ggl_error err;
    int64_t n_held = 0;
    unlink(path);
    if (llm_prompt_cache_new(&c, &cp, NULL) != GGL_OK)
        return false;
    p->a.p.keeps = c;
    bool ok = llm_engine_adopt(p->a.e, 0, some, 0, NULL) == GGL_OK &&
              alone_prompt(&p->a, some, 30, &err) == GGL_OK;
    alone_end(&p->a);
    ok = ok && llm_prompt_cache_save(c, path, some, 30, NULL) == GGL_OK &&
         llm_prompt_cache_load(c, path, some, 30, &n_held, NULL) == GGL_OK;
    CHECK_INT(n_held, ok ? 29 : 0);
    llm_prompt_cache_free(c);
    CHECK_INT(llm_session_clear(p->s, 0, NULL), GGL_OK);
    return ok;
}

TEST(every_allocation_fails_in_turn) {
    /* no snapshots: those for which there is no memory are left out */
    const settings o = {.model = test_path("h.gguf"), .n_snapshot_bytes = 1};
    program p;
    REQUIRE(tiny_model_write(o.model, MODEL(ALL STATES), 0.4f));
    REQUIRE(program_open(&p, &o));
    const long n = alloc_fail_each(save_and_load, &p);
    CHECK_MSG(n >= 8, "%ld allocations were failed", n);
    program_close(&p);
}

/* --- rows of pictures and sounds ---------------------------------------------------------------- */

enum { ROWS = 12, RUN = 6 };

static void keep_logits(void *ctx, int64_t i, const float *logits) {
    (void)i;
    memcpy(ctx, logits, VOCAB * sizeof *logits);
}

/* Adds rows whose contents have this number; those of all numbers want the same ids, which the first one gets. */
static int32_t add_rows(program *p, llm_media *m, int number, bool has_place) {
    float row[ROWS * TINY_WIDTH];
    int32_t place[3 * ROWS], first = 0;
    const uint8_t id[LLM_MEDIA_ID] = {77, 0, 0, 0, (uint8_t)number};
    for (int i = 0; i < ROWS * TINY_WIDTH; i++)
        row[i] = (float)number * sinf((float)i);
    for (int i = 0; i < ROWS; i++) {
        place[3 * i] = 0;
        place[3 * i + 1] = i / 4;
        place[3 * i + 2] = i % 4;
    }
    const llm_media_rows rows = {.row = row,
                                 .n = ROWS,
                                 .n_row = TINY_WIDTH,
                                 .place = has_place ? place : NULL,
                                 .n_pos = has_place ? 4 : ROWS};
    CHECK_OK(llm_media_add(m, id, &rows, &first, &p->err), &p->err);
    return first;
}

/* Runs n tokens, and what follows of the rows, or tokens to which rows are added; the last logits. */
static void go_on(program *p, llm_session *s, const int32_t *id, size_t n, bool of_rows,
                  float *logits) {
    int32_t next[3];
    for (int i = 0; i < 3; i++)
        next[i] = of_rows ? id[n - 1] - 1 - i : 4;
    llm_batch b = {.n = 3, .token = next, .each = keep_logits, .ctx = logits};
    CHECK_OK(llm_session_eval(s, &b, &p->err), &p->err);
}

/* In another process rows may have other ids, when those that they had are taken: the slot goes on with the same rows. */
TEST(rows_that_have_other_ids) {
    static const char *const text[] = {
        "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\n"
        "x = given(token_embd[token], added = 1)\n" ALL "logits = linear(x, token_embd)\n",
        "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\n"
        "x = given(token_embd[token])\nh = heads(x, 2)\nf = freqs(8, 100)\nt = h\n"
        "if has(pos.line):\n  t = rope_half(rope_half(h, f, at = pos.y), f, at = pos.picture)\n"
        "x = x + attention(t, t, h)\nlogits = linear(x, token_embd)\n"};
    const char *model = test_path("tiny.gguf"), *path = test_path("tiny.cache");
    for (int k = 0; k < 2; k++) {
        const settings o = {.model = model};
        llm_media *m[2] = {NULL, NULL};
        float logits[3][VOCAB] = {{0}};
        int32_t *id = NULL, before[RUN];
        size_t n = 0, n_all = 0;
        program p;
        ggl_error err = {0};
        REQUIRE(tiny_model_write(model, text[k], 0.6f));
        (void)unlink(path);
        for (int i = 0; i < 2; i++) {
            REQUIRE_OK(llm_media_new(&m[i], 1 << 20, &err), &err);
            settings with = o;
            with.media = m[i];
            REQUIRE(program_open(&p, &with));
            if (i == 1) /* another's rows have these ids */
                (void)add_rows(&p, m[i], 3, k == 1);
            const int32_t first = add_rows(&p, m[i], 1, k == 1);
            for (int j = 0; j < RUN; j++)
                before[j] = first - j;
            if (i == 0) {
                llm_batch b = {.n = RUN, .token = before};
                REQUIRE_OK(llm_session_eval(p.s, &b, &p.err), &p.err);
                REQUIRE_OK(llm_prompt_cache_save(p.cache, path, before, RUN, &p.err), &p.err);
                go_on(&p, p.s, before, RUN, k == 1, logits[0]);
            } else {
                REQUIRE_OK(llm_prompt_cache_restore(p.cache, path, &id, &n, &n_all, &p.err),
                           &p.err);
                CHECK_INT(n, RUN);
                CHECK(memcmp(id, before, sizeof before) == 0);
                go_on(&p, p.s, id, n, k == 1, logits[1]);
            }
            program_close(&p);
        }
        CHECK_MSG(memcmp(logits[0], logits[1], sizeof logits[0]) == 0, "model %d: %g is not %g", k,
                  (double)logits[1][0], (double)logits[0][0]);
        ggl_free(id);
        llm_media_free(m[0]);
        llm_media_free(m[1]);
    }
}
