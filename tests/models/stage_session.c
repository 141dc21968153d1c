/* Sessions of models that see texts whole, or read one before they write: texts beside each other have the bits that they have
 * alone, a text is not cut, what a slot reads goes with it; and diffusion. */
#include "diffuse_alone.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "llm/internal/diffuse.h"
#include "llm/internal/embed.h"
#include "llm/internal/stage_rows.h"
#include "ggl/internal/sched.h"
#include "tiny_model.h"

#define HEAD "arch tiny\nlanguage 2\ntoken_embd [16, 8]\nf = freqs(8, 1000)\n"
#define SEES                                                                                       \
    "stage s:\n  x = token_embd[token]\n  for i < 3:\n    q = rope_half(heads(x, 2), f)\n"         \
    "    x = x + attention(q, q, heads(x, 2), window = 40 if i == 1 else none)\n  return x\n"

static const char encoder[] =
    HEAD SEES "embedding = s\nscore = flat(sum(reshape(s[0], 8, 2))) * 3\n";
static const char diffusion[] = HEAD SEES "logits = linear(s, token_embd)\n";
static const char reader[] =
    HEAD "stage e:\n  y = token_embd[token]\n  k = rope_half(heads(y, 2), f)\n  return y + "
         "attention(k, k, k)\n"
         "x = token_embd[token]\nq = rope_half(heads(x, 2), f)\nx = x + attention(q, q, q)\n"
         "r = cache(heads(e, 2), heads(e * 2, 2))\n"
         "x = x + flat(attend(heads(x, 2), r))\nlogits = linear(x, token_embd)\n";

/* The same over rows of four numbers, in place of a text. */
static const char hearer[] =
    HEAD "input heard [4] from floats(rows = 150)\n"
         "stage e over heard:\n  y = concat(heard, heard + 1, heard * 2, heard * heard)\n"
         "  k = rope_half(heads(y, 2), f)\n  return y + attention(k, k, k)\n"
         "x = token_embd[token]\nq = rope_half(heads(x, 2), f)\nx = x + attention(q, q, q)\n"
         "r = cache(heads(e, 2), heads(e * 2, 2))\n"
         "x = x + flat(attend(heads(x, 2), r))\nlogits = linear(x, token_embd)\n";

typedef struct fixture {
    llm_model *m;
    ggl_backend *cpu, *fold;
    llm_session *s;
} fixture;

static void fixture_fini(fixture *f) {
    llm_session_free(f->s);
    llm_model_free(f->m);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->fold);
}

/* n_pool: as llm_session_params.n_pool. */
static bool fixture_init_pool(fixture *f, const char *text, int n_threads, int64_t n_ctx,
                              int64_t n_slots, int64_t n_pool) {
    const char *path = test_path("stage.gguf");
    ggl_error err = {0};
    *f = (fixture){0};
    if (!tiny_model_write(path, text, 0.7f) ||
        !CHECK_OK(llm_model_open(&f->m, path, NULL, &err), &err))
        return false;
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = n_threads};
    llm_session_params p = llm_session_default();
    p.n_ctx = n_ctx;
    p.n_slots = n_slots;
    p.n_pool = n_pool;
    p.type_k = p.type_v = GGL_F32;
    bool ok = CHECK_OK(ggl_backend_open(&f->cpu, "cpu", &bp, &err), &err) &&
              CHECK_OK(ggl_backend_open(&f->fold, "reference", NULL, &err), &err);
    p.backend = &f->cpu;
    p.n_backends = 1;
    p.fold = f->fold;
    return ok && CHECK_OK(llm_session_new(&f->s, f->m, &p, &err), &err) &&
           CHECK_OK(llm_session_alloc(f->s, &err), &err);
}

static bool fixture_init(fixture *f, const char *text, int n_threads, int64_t n_ctx,
                         int64_t n_slots) {
    return fixture_init_pool(f, text, n_threads, n_ctx, n_slots, 0);
}

/* Token i of text k. */
static int32_t token_of(int k, int i) {
    return (int32_t)((uint32_t)(k * 977 + i) * 2654435761u >> 29);
}

/* --- texts side by side ------------------------------------------------------------------------- */

enum { N_TEXTS = 12, LONGEST = 150 };
static const int lengths[N_TEXTS] = {1, 5, 64, 130, 3, 65, 150, 2, 17, 63, 128, 1};
static int32_t words[N_TEXTS][LONGEST];

typedef struct rows {
    float at[N_TEXTS][LONGEST * 16];
    int64_t n[N_TEXTS];
} rows;

static bool take(void *ctx, size_t text, int64_t n_rows, const float *row, int64_t n) {
    rows *r = ctx;
    r->n[text] = n_rows * n;
    memcpy(r->at[text], row, (size_t)(n_rows * n) * sizeof *row);
    return true;
}

static bool embed(fixture *f, const llm_embed_text *text, size_t n, llm_pooling pooling,
                  int64_t n_dims, rows *out) {
    ggl_error err = {0};
    return CHECK_OK(llm_embed_all(f->s,
                                  &(llm_embedding_params){.text = text,
                                                          .n_texts = n,
                                                          .pooling = pooling,
                                                          .n_dims = n_dims,
                                                          .normalize = pooling < LLM_POOL_NONE,
                                                          .each = take,
                                                          .ctx = out},
                                  &err),
                    &err);
}

TEST(side_by_side) {
    static rows all, alone;
    llm_embed_text text[N_TEXTS];
    for (int k = 0; k < N_TEXTS; k++) {
        for (int i = 0; i < lengths[k]; i++)
            words[k][i] = token_of(k, i);
        text[k] = (llm_embed_text){.token = words[k], .n = (size_t)lengths[k]};
    }
    fixture f[2];
    bool ok = fixture_init(&f[0], encoder, 3, 200, 7) && fixture_init(&f[1], encoder, 1, 200, 1);
    for (int pooling = 0; ok && pooling < LLM_POOL_COUNT; pooling++)
        for (int64_t n_dims = 0; n_dims <= 5; n_dims += 5) {
            ok = embed(&f[0], text, N_TEXTS, (llm_pooling)pooling, n_dims, &all);
            for (int k = 0; ok && k < N_TEXTS; k++) {
                ok = embed(&f[1], &text[k], 1, (llm_pooling)pooling, n_dims, &alone);
                CHECK_MSG(all.n[k] == alone.n[0] && all.n[k] > 0 &&
                              memcmp(all.at[k], alone.at[0], (size_t)all.n[k] * sizeof(float)) == 0,
                          "text %d of %d tokens, %s: %d numbers", k, lengths[k],
                          llm_pooling_name((llm_pooling)pooling), (int)all.n[k]);
            }
        }
    /* a change of the last token changes the first one's vector */
    ok = ok && embed(&f[1], &text[2], 1, LLM_POOL_CLS, 0, &all);
    words[2][63] = (words[2][63] + 1) % 8;
    ok = ok && embed(&f[1], &text[2], 1, LLM_POOL_CLS, 0, &alone);
    CHECK(ok && memcmp(all.at[0], alone.at[0], 16 * sizeof(float)) != 0);
    fixture_fini(&f[0]);
    fixture_fini(&f[1]);
}

TEST(whole) {
    fixture f;
    ggl_error err = {0};
    int32_t id[210];
    bool want[210];
    for (int i = 0; i < 210; i++) {
        id[i] = token_of(0, i);
        want[i] = true;
    }
    REQUIRE(fixture_init(&f, encoder, 1, 200, 2));
    CHECK(llm_session_sees_all(f.s) && !llm_session_has_logits(f.s) &&
          llm_session_n_score(f.s) == 2);
    llm_batch b = {.n = 5, .token = id, .want_embedding = want};
    CHECK_OK(llm_session_eval(f.s, &b, &err), &err);
    CHECK_INT(llm_session_eval(f.s, &b, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "sees a text whole: clear the slot first");
    CHECK_OK(llm_session_clear(f.s, 0, &err), &err);
    b.n = 201;
    CHECK_INT(llm_session_eval(f.s, &b, &err), GGL_LIMIT);
    b = (llm_batch){.n = 5, .token = id};
    CHECK_INT(llm_session_eval(f.s, &b, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "the model gives no logits");
    CHECK_INT(llm_session_read(f.s, 0, id, 3, &err), GGL_USAGE);
    const llm_embed_text text[2] = {{.token = id, .n = 3}, {.token = id, .n = 201}};
    llm_embedding_params p = {.text = text, .n_texts = 2, .each = take};
    CHECK_INT(llm_embed_all(f.s, &p, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "texts[1] has 201 tokens, but the longest text has 200 (n_ctx, or -c N)");
    p.n_texts = 1;
    p.n_dims = 17;
    CHECK_INT(llm_embed_all(f.s, &p, &err), GGL_USAGE);
    fixture_fini(&f);
}

/* Layers that see a text whole store their keys and values for themselves alone, in the memory of one or two. */
TEST(layers_share_memory) {
    static const char one[] =
        HEAD "stage s:\n  x = token_embd[token]\n  q = rope_half(heads(x, 2), f)\n"
             "  return x + attention(q, q, q)\nembedding = s\n";
    fixture f[2];
    ggl_memory three, alone;
    REQUIRE(fixture_init(&f[0], encoder, 1, 200, 2) && fixture_init(&f[1], one, 1, 200, 2));
    CHECK(ggl_sched_memory(llm_session_sched(f[0].s), 0, &three) &&
          ggl_sched_memory(llm_session_sched(f[1].s), 0, &alone));
    /* the last layer is computed in two parts, for all tokens and for wanted ones */
    CHECK(three.stores_rows <= 2 * alone.stores_rows && alone.stores_rows > 0);
    for (int k = 0; k < 2; k++)
        fixture_fini(&f[k]);
}

/* --- a text that is read ------------------------------------------------------------------------ */

typedef struct logits {
    float at[64 * 8];
    int n;
} logits;

static void take_logits(void *ctx, int64_t i, const float *x) {
    logits *l = ctx;
    (void)i;
    memcpy(l->at + 8 * l->n++, x, 8 * sizeof *x);
}

/* Runs n tokens in a slot, in pieces. */
static bool write_some(fixture *f, int slot, int n, int piece, logits *out) {
    ggl_error err = {0};
    int32_t id[64], slots[64];
    bool want[64];
    out->n = 0;
    for (int i = 0; i < n; i++) {
        id[i] = token_of(5, i);
        slots[i] = slot;
        want[i] = true;
    }
    for (int i = 0; i < n; i += piece) {
        const llm_batch b = {.n = n - i < piece ? n - i : piece,
                             .token = id + i,
                             .slot = slots,
                             .want = want,
                             .each = take_logits,
                             .ctx = out};
        if (!CHECK_OK(llm_session_eval(f->s, &b, &err), &err))
            return false;
    }
    return true;
}

static bool read_text(fixture *f, int slot, int k, int n) {
    ggl_error err = {0};
    int32_t id[200];
    for (int i = 0; i < n; i++)
        id[i] = token_of(k, i);
    return CHECK_OK(llm_session_read(f->s, slot, id, n, &err), &err);
}

static bool same(const logits *a, const logits *b) {
    return a->n == b->n && memcmp(a->at, b->at, (size_t)a->n * 8 * sizeof(float)) == 0;
}

TEST(reads) {
    static logits want, got, other;
    fixture f;
    ggl_error err = {0};
    const int32_t one = 1;
    REQUIRE(fixture_init(&f, reader, 3, 200, 4));
    CHECK(llm_session_reads_text(f.s) && !llm_session_sees_all(f.s));
    CHECK_INT(llm_session_eval(f.s, &(llm_batch){.n = 1, .token = &one}, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "reads a text before it writes, and slot 0 has none");
    bool ok = read_text(&f, 0, 1, 130) && write_some(&f, 0, 40, 40, &want);
    ok = ok && read_text(&f, 1, 2, 7) && write_some(&f, 1, 40, 40, &other);
    CHECK_MSG(ok && !same(&want, &other), "another text gives the same logits");
    /* in pieces, again in the same slot, whose text stays */
    CHECK_OK(llm_session_clear(f.s, 0, &err), &err);
    CHECK(ok && write_some(&f, 0, 40, 7, &got) && same(&want, &got));
    /* a copy reads the same text, and is its own */
    CHECK_OK(llm_session_copy(f.s, 2, 0, &err), &err);
    CHECK_OK(llm_session_cut(f.s, 2, 0, &err), &err);
    ok = ok && read_text(&f, 0, 3, 64);
    CHECK(ok && write_some(&f, 2, 40, 13, &got) && same(&want, &got));
    /* the first text again, after others */
    CHECK(ok && read_text(&f, 0, 1, 130) && write_some(&f, 0, 40, 40, &got) && same(&want, &got));
    int32_t long_one[201] = {0};
    CHECK_INT(llm_session_read(f.s, 0, long_one, 201, &err), GGL_LIMIT);
    CHECK_INT(llm_session_read(f.s, 4, long_one, 3, &err), GGL_USAGE);
    CHECK_INT(llm_session_read(f.s, 0, long_one, 0, &err), GGL_USAGE);
    long_one[1] = 8;
    CHECK_INT(llm_session_read(f.s, 0, long_one, 3, &err), GGL_USAGE);
    fixture_fini(&f);
}

/* Runs tokens from..n-1 of the sequence that write_some runs; the slot has those before. */
static bool go_on(fixture *f, int slot, int from, int n, logits *out) {
    ggl_error err = {0};
    out->n = 0;
    for (int i = from; i < n; i++) {
        const int32_t id = token_of(5, i);
        const llm_batch b = {.n = 1, .token = &id, .slot = &slot, .each = take_logits, .ctx = out};
        if (!CHECK_OK(llm_session_eval(f->s, &b, &err), &err))
            return false;
    }
    return true;
}

static bool ends_as(const logits *all, int from, const logits *part) {
    return part->n == all->n - from &&
           memcmp(all->at + 8 * from, part->at, (size_t)part->n * 8 * sizeof(float)) == 0;
}

/* A saved slot has the text, of which only what the tokens read is kept; what it cannot be restored to is refused. */
TEST(saves_the_text) {
    static logits want, got;
    fixture f[3];
    ggl_error err = {0};
    void *data = NULL;
    size_t size = 0;
    int64_t n;
    const bool ok = fixture_init(&f[0], reader, 3, 200, 3) &&
                    fixture_init(&f[1], reader, 1, 256, 2) &&
                    fixture_init(&f[2], reader, 1, 100, 1);
    REQUIRE(ok && read_text(&f[0], 1, 1, 130) && write_some(&f[0], 1, 40, 40, &want));
    REQUIRE_OK(llm_session_cut(f[0].s, 1, 20, &err), &err);
    REQUIRE_OK(llm_session_save(f[0].s, 1, false, &data, &size, &err), &err);
    CHECK_INT(size, llm_session_save_size(f[0].s, 1));
    /* 3 pages of the text's keys and values and 1 of the answer's, 16 + 16 numbers a row, and the text's tokens */
    CHECK_MSG(size < 4 * 64 * 32 * 4 + 130 * 4 + 128, "%zu bytes", size);
    /* in another session that has another text there, and beside one with a text of its own */
    CHECK(read_text(&f[1], 0, 2, 7) && write_some(&f[1], 0, 9, 9, &got));
    CHECK(read_text(&f[1], 1, 3, 99));
    REQUIRE_OK(llm_session_restore(f[1].s, 0, data, size, &err), &err);
    CHECK_INT(llm_session_n_past(f[1].s, 0), 20);
    const int32_t *text = llm_session_text(f[1].s, 0, &n);
    CHECK(n == 130 && text && text[0] == token_of(1, 0) && text[129] == token_of(1, 129));
    CHECK(go_on(&f[1], 0, 20, 40, &got) && ends_as(&want, 20, &got));
    CHECK_OK(llm_session_clear(f[1].s, 0, &err), &err);
    CHECK(write_some(&f[1], 0, 40, 7, &got) && same(&want, &got));
    /* a slot that has read nothing is empty, also where another one had a text; it needs one before it writes */
    void *nothing = NULL;
    size_t n_nothing = 0;
    const int32_t one = 1;
    REQUIRE_OK(llm_session_save(f[0].s, 2, false, &nothing, &n_nothing, &err), &err);
    REQUIRE_OK(llm_session_restore(f[1].s, 0, nothing, n_nothing, &err), &err);
    CHECK_INT(llm_session_n_past(f[1].s, 0), 0);
    CHECK(llm_session_text(f[1].s, 0, &n) == NULL && n == 0);
    CHECK_INT(llm_session_eval(f[1].s, &(llm_batch){.n = 1, .token = &one}, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "slot 0 has none");
    ggl_free(nothing);
    /* the text is longer than this session's context; damage */
    CHECK_INT(llm_session_restore(f[2].s, 0, data, size, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "a text of 130 tokens");
    for (size_t i = 0; i < size; i += i < 200 ? 1 : 997) {
        ((char *)data)[i] ^= 1;
        CHECK_MSG(llm_session_restore(f[1].s, 0, data, size, &err) != GGL_OK, "byte %zu", i);
        ((char *)data)[i] ^= 1;
    }
    CHECK_INT(llm_session_restore(f[1].s, 0, data, size - 1, &err), GGL_FORMAT);
    CHECK_INT(llm_session_restore(f[1].s, 2, data, size, &err), GGL_USAGE);
    ggl_free(data);
    for (int k = 0; k < 3; k++)
        fixture_fini(&f[k]);
}

/* Texts have room of their own, so tokens may fill theirs. A saved slot whose text is longer than the room for texts is not
 * restored. */
TEST(texts_have_room_of_their_own) {
    static logits want, got;
    fixture f[2];
    ggl_error err = {0};
    void *data = NULL;
    size_t size = 0;
    int64_t n;
    const bool ok =
        fixture_init(&f[0], reader, 1, 200, 1) && fixture_init_pool(&f[1], reader, 1, 200, 2, 96);
    REQUIRE(ok && read_text(&f[0], 0, 1, 130) && write_some(&f[0], 0, 40, 40, &want));
    REQUIRE_OK(llm_session_save(f[0].s, 0, false, &data, &size, &err), &err);
    CHECK(read_text(&f[1], 0, 2, 9));
    CHECK_INT(llm_session_restore(f[1].s, 0, data, size, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "has read 130 tokens, but the KV cache has room for 128 of these");
    CHECK(llm_session_text(f[1].s, 0, &n) && n == 9); /* nothing has changed */
    ggl_free(data);
    REQUIRE(read_text(&f[0], 0, 1, 60) && write_some(&f[0], 0, 64, 64, &want));
    REQUIRE_OK(llm_session_save(f[0].s, 0, false, &data, &size, &err), &err);
    REQUIRE_OK(llm_session_restore(f[1].s, 0, data, size, &err), &err);
    CHECK(read_text(&f[1], 1, 1, 60) && write_some(&f[1], 1, 64, 64, &got) && same(&want, &got));
    CHECK_INT(llm_session_n_free(f[1].s), 0);
    CHECK(read_text(&f[1], 0, 2, 9)); /* all pages of tokens are taken */
    ggl_free(data);
    for (int k = 0; k < 2; k++)
        fixture_fini(&f[k]);
}

/* Decoders whose own rows have no pages: one that only reads, and one with a state. A window that is a ring is a third. */
#define ENCODES                                                                                    \
    "  k = rope_half(heads(y, 2), f)\n  return y + attention(k, k, k)\nx = token_embd[token]\n"
#define READS                                                                                      \
    "r = cache(heads(e, 2), heads(e * 2, 2))\nx = x + flat(attend(heads(x, 2), r))\n"              \
    "logits = linear(x, token_embd)\n"
static const char only_reads[] = HEAD "stage e:\n  y = token_embd[token]\n" ENCODES READS;
static const char has_state[] = HEAD "stage e:\n  y = token_embd[token]\n" ENCODES
                                     "x = x + flat(sum(transpose(recent(x, 3))))\n" READS;
static const char has_ring[] =
    HEAD "input heard [4] from floats(rows = 8)\n"
         "stage e over heard:\n  y = concat(heard, heard + 1, heard * 2, heard * heard)\n" ENCODES
         "q = rope_half(heads(x, 2), f)\nx = x + attention(q, q, q, window = 20)\n" READS;

TEST(decoders_without_pages) {
    static const char *const text[] = {only_reads, has_state, has_ring};
    static logits one, other;
    for (int i = 0; i < 3; i++) {
        fixture f;
        if (CHECK(fixture_init(&f, text[i], 1, 4000, 2)) && i < 2)
            CHECK(read_text(&f, 0, 1, 30) && read_text(&f, 1, 1, 30) &&
                  write_some(&f, 0, 40, 40, &one) && write_some(&f, 1, 40, 7, &other) &&
                  same(&one, &other));
        fixture_fini(&f);
    }
}

/* The stages of a tiny model, on the CPU. */
typedef struct staged {
    ggl_backend *cpu;
    llm_model *m;
    llm_stages *s;
} staged;

/* Writes and opens the model; most: rows that run at once, or 0. False: reported. */
static bool staged_open(staged *t, const char *file, const char *text, int64_t most) {
    ggl_error err = {0};
    *t = (staged){0};
    if (!CHECK(tiny_model_write(test_path(file), text, 0.7f)) ||
        !CHECK_OK(llm_model_open(&t->m, test_path(file), NULL, &err), &err) ||
        !CHECK_OK(ggl_backend_open(&t->cpu, "cpu", NULL, &err), &err))
        return false;
    llm_session_params p = llm_session_default();
    p.backend = &t->cpu;
    p.n_backends = 1;
    return CHECK_OK(llm_stages_new(&t->s, t->m, &p, most, &err), &err);
}

static void staged_close(staged *t) {
    llm_stages_free(t->s);
    llm_model_free(t->m);
    ggl_backend_close(t->cpu);
}

/* Rows that see no others run in pieces, also in the order of windows: each is where it belongs. */
TEST(windows_in_pieces) {
    enum { ROWS = 1024, SIDE = 32 };
    static float in[ROWS * 12];
    static int32_t yx[ROWS][2];
    ggl_error err = {0};
    staged t;
    const float *out;
    int64_t n = 0;
    REQUIRE(staged_open(
        &t, "windows.gguf",
        "arch tiny\nlanguage 2\ntoken_embd [16, 8]\n"
        "input patch [2, 2, 3] from picture(patch = 2, size = 64, mean = [0, 0, 0], std = [1, 1, "
        "1])\n"
        "stage e over patch(windows = 4):\n  return flat(patch) * 2 + 0 * sum(flat(token_embd))\n"
        "rows = e\n",
        ROWS));
    for (int i = 0; i < ROWS; i++) {
        yx[i][0] = i / SIDE, yx[i][1] = i % SIDE;
        for (int k = 0; k < 12; k++)
            in[12 * i + k] = (float)i;
    }
    const llm_row_places places = {.yx = yx[0]};
    llm_stages_place(t.s, &places);
    REQUIRE_OK(llm_stages_run(t.s, in, ROWS, &out, &n, &err), &err);
    CHECK_INT(n, ROWS);
    for (int i = 0; i < ROWS; i++)
        CHECK(out[12 * i] == 2.0f * (float)i);
    staged_close(&t);
}

/* Rows of the windows of a sound are numbered through all of them. */
TEST(numbers_in_a_sound) {
    enum { EACH = 6, N_OUT = 2 };
    static const struct {
        int64_t window, n;
        float t[3], first[3];
    } row[] = {{0, EACH, {1, 3, 5}, {0, 2, 4}},
               {2, EACH, {13, 15, 17}, {12, 14, 16}},
               {3, 4, {19, 21}, {18, 20}}};
    float in[EACH * 3] = {0};
    ggl_error err = {0};
    staged t;
    const float *out;
    int64_t n = 0;
    REQUIRE(staged_open(
        &t, "numbers.gguf",
        "arch tiny\nlanguage 2\ntoken_embd [16, 8]\n"
        "input mel [3] from sound(rate = 1000, window = 8, step = 10, seconds = 0.06, whole = 0)\n"
        "stage e over mel:\n  return reshape(0 * sum(mel) + mel.t + 0 * sum(flat(token_embd)), 1)\n"
        "stage f over e(every = 2, from = 1):\n  return concat(reshape(0 * sum(e) + e.t, 1), "
        "flat(around(e, -1, 1)))\nrows = f\n",
        0));
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        const llm_row_places places = {.window = row[k].window};
        llm_stages_place(t.s, &places);
        REQUIRE_OK(llm_stages_run(t.s, in, row[k].n, &out, &n, &err), &err);
        CHECK_INT(n, row[k].n / 2);
        for (int i = 0; i < n; i++)
            CHECK_MSG(out[N_OUT * i] == row[k].t[i] && out[N_OUT * i + 1] == row[k].first[i],
                      "%d: %g %g", i, (double)out[N_OUT * i], (double)out[N_OUT * i + 1]);
    }
    staged_close(&t);
}

/* A causal stage runs in pieces, of which each sees those before, as far as its window goes. */
TEST(causal) {
    enum { ROWS = 700, BACK = 40 };
    static float in[ROWS * 2];
    ggl_error err = {0};
    staged t;
    const float *out;
    int64_t n = 0;
    REQUIRE(staged_open(
        &t, "causal.gguf",
        "arch tiny\nlanguage 2\ntoken_embd [16, 8]\n"
        "input seen [2] from floats(rows = 1000)\n"
        "stage e over seen(causal = 1):\n  q = heads(seen * 0, 1)\n"
        "  return attention(q, q, heads(seen, 1), window = 40) + 0 * sum(flat(token_embd))\n"
        "stage f over e:\n  return e * 1\nrows = f\n",
        0));
    for (int run = 0; run < 2; run++) {
        for (int i = 0; i < 2 * ROWS; i++)
            in[i] = (float)((i * 37 + run) % 64);
        REQUIRE_OK(llm_stages_run(t.s, in, ROWS - run, &out, &n, &err), &err);
        CHECK_INT(n, ROWS - run);
        for (int64_t i = 0; i < n; i++) {
            const int64_t first = i < BACK ? 0 : i - BACK + 1;
            double mean = 0;
            for (int64_t k = first; k <= i; k++)
                mean += (double)in[2 * k] / (double)(i - first + 1);
            CHECK_MSG(fabs((double)out[2 * i] - mean) < 1e-4, "row %d: %g, not %g", (int)i,
                      (double)out[2 * i], mean);
        }
    }
    staged_close(&t);
}

/* Convolutions over rows, of which every other one goes on, a causal stage, and three rows side by side, also beyond the end. */
static const char flowing[] =
    "arch tiny\nlanguage 2\ntoken_embd [16, 8]\n"
    "input seen [2] from floats(rows = 1000)\n"
    "stage a over seen:\n  return flat(around(seen, -2, 4)) + 0 * sum(flat(token_embd))\n"
    "stage b over a(every = 2, from = 1):\n  return flat(around(a, 0, 2)) * 0.5\n"
    "stage c over b(causal = 1):\n  q = rope_half(heads(b, 2), freqs(8, 100))\n"
    "  return b + attention(q, q, heads(b, 2), window = 20)\n"
    "stage d over c(every = 3, from = -1):\n  return flat(around(c, -1, 3))\nrows = d\n";

/* Runs the stages over n rows in pieces of so many: all at once, if that is 0. Returns how many rows they make; negative: reported. */
static int64_t flow(staged *t, const float *in, int64_t n, int64_t each, float *to) {
    const int64_t n_row = llm_stages_n_row(t->s);
    ggl_error err = {0};
    const float *out;
    int64_t got = 0, n_out = 0;
    if (!CHECK_OK(llm_stages_begin(t->s, &err), &err))
        return -1;
    for (int64_t at = 0; at < n; at += each) {
        const int64_t some = n - at < each ? n - at : each;
        if (!CHECK_OK(llm_stages_flow(t->s, in + 2 * at, some, at + some == n, &out, &got, &err),
                      &err))
            return -1;
        if (got > 0)
            memcpy(to + n_out * n_row, out, (size_t)(got * n_row) * sizeof *to);
        n_out += got;
    }
    llm_stages_end(t->s);
    return n_out;
}

/* Rows that come piece by piece make the rows of all at once, with the same bits. */
TEST(flow) {
    enum { ROWS = 700, MOST = 300, N_ROW = 48 };
    static const int64_t all[] = {ROWS, 601, 9, 2}, each[] = {1, 2, 7, 64, 300, ROWS};
    static float in[ROWS * 2], want[MOST * N_ROW], got[MOST * N_ROW];
    ggl_error err = {0};
    staged t;
    const float *out;
    int64_t n = 0;
    REQUIRE(staged_open(&t, "flow.gguf", flowing, 0));
    CHECK(llm_stages_can_flow(t.s));
    CHECK_INT(llm_stages_n_row(t.s), N_ROW);
    for (int i = 0; i < 2 * ROWS; i++)
        in[i] = (float)(i * 37 % 64) * 0.03f;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        REQUIRE_OK(llm_stages_run(t.s, in, all[k], &out, &n, &err), &err);
        REQUIRE(n <= MOST);
        memcpy(want, out, (size_t)(n * N_ROW) * sizeof *want);
        for (size_t j = 0; j < sizeof each / sizeof *each; j++) {
            CHECK_INT(flow(&t, in, all[k], each[j], got), n);
            CHECK_MSG(memcmp(got, want, (size_t)(n * N_ROW) * sizeof *want) == 0,
                      "%d rows in pieces of %d", (int)all[k], (int)each[j]);
        }
    }
    staged_close(&t);
}

TEST(flow_refused) {
    enum { ROWS = 1000 };
    static float in[2 * ROWS];
    ggl_error err = {0};
    staged t;
    const float *out;
    int64_t n = 0;
    REQUIRE(staged_open(&t, "flow.gguf", flowing, 0));
    CHECK_INT(llm_stages_flow(t.s, in, 1, false, &out, &n, &err), GGL_USAGE);
    REQUIRE_OK(llm_stages_begin(t.s, &err), &err);
    CHECK_INT(llm_stages_run(t.s, in, 9, &out, &n, &err), GGL_USAGE);
    REQUIRE_OK(llm_stages_flow(t.s, in, ROWS, false, &out, &n, &err), &err);
    REQUIRE_OK(llm_stages_flow(t.s, in, 0, false, &out, &n, &err), &err);
    CHECK_INT(n, 0);
    CHECK_INT(llm_stages_flow(t.s, in, 1, true, &out, &n, &err), GGL_LIMIT);
    CHECK_STR(err.msg, "the input has more than 1000 rows, for which the stages were made");
    llm_stages_end(t.s);
    CHECK_OK(llm_stages_run(t.s, in, 9, &out, &n, &err), &err);
    staged_close(&t);
    REQUIRE(staged_open(&t, "whole.gguf",
                        "arch tiny\nlanguage 2\ntoken_embd [16, 8]\n"
                        "input seen [2] from floats(rows = 100)\n"
                        "stage e over seen:\n  q = heads(seen, 1)\n"
                        "  return attention(q, q, q) + 0 * sum(flat(token_embd))\nrows = e\n",
                        0));
    CHECK(!llm_stages_can_flow(t.s));
    CHECK_INT(llm_stages_begin(t.s, &err), GGL_UNSUPPORTED);
    CHECK(strstr(err.msg, "need their input as a whole"));
    staged_close(&t);
}

/* A plane of 5 x 5 rows: windows that are filled, every other line and column, the squares around these, and rows before. */
TEST(planes) {
    enum { SIDE = 5, ROWS = SIDE * SIDE, HALF = 3, N_OUT = 8 };
    float in[ROWS * 3];
    int32_t yx[ROWS][2];
    ggl_error err = {0};
    staged t;
    const float *out;
    int64_t n = 0;
    REQUIRE(staged_open(
        &t, "planes.gguf",
        "arch tiny\nlanguage 2\ntoken_embd [16, 8]\n"
        "input patch [1, 1, 3] from picture(patch = 1, size = 5, mean = 0, std = 1)\n"
        "stage e over patch(windows = 2, filled = 1):\n  a, b = split(patch.window, 1, 1)\n"
        "  return concat(flat(patch), reshape(0 * sum(flat(patch)) + patch.y, 1), reshape(0 * "
        "sum(flat(patch)) + patch.x, 1), b - a, reshape(0 * sum(flat(patch)) + patch.lines, 1), "
        "0 * sum(flat(token_embd)))\n"
        "stage f over e(step = 2):\n  return flat(sum(plane_around(e, 3), 1))\n"
        "stage g over f(from = -2):\n  return f * 1\nrows = g\n",
        0));
    for (int i = 0; i < ROWS; i++) {
        yx[i][0] = i / SIDE, yx[i][1] = i % SIDE;
        for (int k = 0; k < 3; k++)
            in[3 * i + k] = (float)(i * i);
    }
    const llm_row_places places = {.yx = yx[0]};
    llm_stages_place(t.s, &places);
    REQUIRE_OK(llm_stages_run(t.s, in, ROWS, &out, &n, &err), &err);
    CHECK_INT(n, 2 + HALF * HALF);
    for (int i = 0; i < 2 * N_OUT; i++)
        CHECK(out[i] == 0);
    for (int i = 0; i < HALF * HALF; i++) {
        float want[N_OUT] = {0};
        for (int j = 0; j < 9; j++) {
            const int y = i / HALF * 2 + j / 3 - 1, x = i % HALF * 2 + j % 3 - 1;
            if (y < 0 || y >= SIDE || x < 0 || x >= SIDE)
                continue;
            const float own[] = {in[3 * (y * SIDE + x)],
                                 in[3 * (y * SIDE + x)],
                                 in[3 * (y * SIDE + x)],
                                 (float)y,
                                 (float)x,
                                 4,
                                 SIDE,
                                 0};
            for (int k = 0; k < N_OUT; k++)
                want[k] += own[k];
        }
        for (int k = 0; k < N_OUT; k++)
            CHECK_MSG(out[N_OUT * (i + 2) + k] == want[k], "%d, %d: %g, not %g", i, k,
                      (double)out[N_OUT * (i + 2) + k], (double)want[k]);
    }
    staged_close(&t);
}

static ggl_status read_once(llm_session *s, int slot, const int32_t *id, int64_t n, bool *is_found,
                            ggl_error *err) {
    const ggl_status st = llm_session_find_read(s, slot, id, n, is_found, err);
    return st == GGL_OK && !*is_found ? llm_session_read(s, slot, id, n, err) : st;
}

/* A text that a slot has is not read again, and copies of it are their own. */
TEST(reads_once) {
    static logits want, got;
    fixture f;
    ggl_error err = {0};
    int32_t id[130];
    bool is_found;
    for (int i = 0; i < 130; i++)
        id[i] = token_of(1, i);
    REQUIRE(fixture_init(&f, reader, 2, 200, 3));
    REQUIRE_OK(read_once(f.s, 0, id, 130, &is_found, &err), &err);
    CHECK(!is_found && write_some(&f, 0, 40, 40, &want));
    REQUIRE_OK(read_once(f.s, 0, id, 130, &is_found, &err), &err);
    CHECK(is_found && llm_session_n_past(f.s, 0) == 40);
    REQUIRE_OK(read_once(f.s, 2, id, 130, &is_found, &err), &err);
    CHECK(is_found && read_text(&f, 0, 2, 64) && write_some(&f, 2, 40, 11, &got) &&
          same(&want, &got));
    REQUIRE_OK(read_once(f.s, 1, id, 129, &is_found, &err), &err);
    CHECK(!is_found);
    CHECK_INT(read_once(f.s, 3, id, 3, &is_found, &err), GGL_USAGE);
    CHECK_INT(read_once(f.s, 0, NULL, 3, &is_found, &err), GGL_USAGE);
    fixture_fini(&f);
}

/* Every byte of a saved slot is written, also of stores in which it has nothing. */
TEST(saved_bytes) {
    fixture f;
    ggl_error err = {0};
    static logits out;
    REQUIRE(fixture_init(&f, reader, 1, 200, 3) && read_text(&f, 0, 1, 130) &&
            write_some(&f, 0, 40, 40, &out));
    ggl_sched *s = (ggl_sched *)llm_session_sched(f.s);
    const size_t n = ggl_sched_slot_size(s, 40, false);
    char *saved[2] = {ggl_calloc(n, 1), ggl_calloc(n, 1)};
    REQUIRE(saved[0] && saved[1]);
    memset(saved[1], 0x5a, n);
    for (int i = 0; i < 2; i++)
        CHECK_OK(ggl_sched_save_slot(s, 0, 40, false, saved[i], &err), &err);
    CHECK(memcmp(saved[0], saved[1], n) == 0);
    ggl_free(saved[0]);
    ggl_free(saved[1]);
    fixture_fini(&f);
}

/* Sequences with texts of their own in one batch. */
TEST(reads_beside_others) {
    fixture f;
    ggl_error err = {0};
    static logits alone[3], together;
    REQUIRE(fixture_init(&f, reader, 2, 200, 3));
    bool ok = true;
    for (int k = 0; k < 3; k++) {
        ok = ok && read_text(&f, k, k, 1 + 66 * k) && write_some(&f, k, 10, 10, &alone[k]);
        CHECK_OK(llm_session_clear(f.s, k, &err), &err);
    }
    int32_t id[30], slot[30];
    bool want[30];
    for (int i = 0; i < 30; i++) {
        id[i] = token_of(5, i / 3);
        slot[i] = i % 3;
        want[i] = true;
    }
    const llm_batch b = {
        .n = 30, .token = id, .slot = slot, .want = want, .each = take_logits, .ctx = &together};
    CHECK(ok && CHECK_OK(llm_session_eval(f.s, &b, &err), &err));
    for (int i = 0; i < together.n; i++)
        CHECK_MSG(memcmp(together.at + 8 * i, alone[i % 3].at + 8 * (i / 3), 8 * sizeof(float)) ==
                      0,
                  "token %d of slot %d", i / 3, i % 3);
    fixture_fini(&f);
}

/* Gives the slot the n rows of input k. */
static bool hear(fixture *f, int slot, int k, int n) {
    static float x[150 * 4];
    const float *const input[] = {x};
    ggl_error err = {0};
    int32_t id[LLM_ROWS_ID] = {k, n};
    for (int i = 0; i < 4 * n; i++)
        x[i] = (float)(i * 37 % 101 * (k + 1) % 29 - 14) / 20;
    return CHECK_OK(llm_session_read_rows(f->s, slot, input, n, id, &err), &err);
}

/* Rows that tokens read are kept, shared, saved and restored like a text; there may be more of them than of tokens. */
TEST(reads_rows) {
    static logits want, got, other;
    fixture f[2];
    ggl_error err = {0};
    void *data = NULL;
    size_t size = 0;
    int64_t n;
    bool is_found;
    const int32_t one = 1, id[LLM_ROWS_ID] = {1, 150};
    REQUIRE(fixture_init(&f[0], hearer, 3, 48, 4) && fixture_init(&f[1], hearer, 1, 64, 2));
    CHECK(llm_session_reads_text(f[0].s) && !llm_session_sees_all(f[0].s));
    CHECK_INT(llm_session_n_ctx(f[0].s), 48);
    CHECK_INT(llm_session_eval(f[0].s, &(llm_batch){.n = 1, .token = &one}, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "reads rows of an input before it writes, and slot 0 has none");
    CHECK_INT(llm_session_read(f[0].s, 0, &one, 1, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "rows of numbers, and no text");
    CHECK_INT(llm_session_read_rows(f[0].s, 0, NULL, 3, id, &err), GGL_USAGE);
    CHECK_INT(llm_session_read_rows(f[0].s, 0, (const float *const[]){NULL}, 151, id, &err),
              GGL_LIMIT);
    CHECK_HAS(err.msg, "151 rows, but it was made for 150");
    bool ok = hear(&f[0], 0, 1, 150) && write_some(&f[0], 0, 40, 40, &want);
    ok = ok && hear(&f[0], 1, 2, 7) && write_some(&f[0], 1, 40, 40, &other);
    CHECK_MSG(ok && !same(&want, &other), "other rows give the same logits");
    static const int32_t too_many[9] = {0};
    CHECK_INT(llm_session_eval(f[0].s, &(llm_batch){.n = 9, .token = too_many}, &err), GGL_LIMIT);
    CHECK(!llm_session_text(f[0].s, 0, &n) && n == 0);
    CHECK_OK(llm_session_find_read(f[0].s, 2, id, LLM_ROWS_ID, &is_found, &err), &err);
    CHECK(is_found && write_some(&f[0], 2, 40, 7, &got) && same(&want, &got));
    CHECK_OK(llm_session_find_read(f[0].s, 3, (int32_t[LLM_ROWS_ID]){1, 149}, LLM_ROWS_ID,
                                   &is_found, &err),
             &err);
    CHECK(!is_found);
    CHECK(hear(&f[0], 0, 3, 64)); /* the copy is its own */
    REQUIRE_OK(llm_session_cut(f[0].s, 2, 20, &err), &err);
    REQUIRE_OK(llm_session_save(f[0].s, 2, false, &data, &size, &err), &err);
    CHECK(hear(&f[1], 1, 2, 99));
    REQUIRE_OK(llm_session_restore(f[1].s, 0, data, size, &err), &err);
    CHECK_OK(llm_session_find_read(f[1].s, 0, id, LLM_ROWS_ID, &is_found, &err), &err);
    CHECK(is_found && go_on(&f[1], 0, 20, 40, &got) && ends_as(&want, 20, &got));
    for (size_t i = 0; i < size; i += i < 200 ? 1 : 997) {
        ((char *)data)[i] ^= 1;
        CHECK_MSG(llm_session_restore(f[1].s, 0, data, size, &err) != GGL_OK, "byte %zu", i);
        ((char *)data)[i] ^= 1;
    }
    ggl_free(data);
    for (int k = 0; k < 2; k++)
        fixture_fini(&f[k]);
}

/* --- diffusion ---------------------------------------------------------------------------------- */

enum { LENGTH = 40, PROMPT = 6 };

typedef struct steps {
    int n;
    bool blocks_in_order;
} steps;

/* Masks (7) of a block of eight may be gone only if those before it are. */
static bool on_step(void *ctx, int64_t n_done, const int32_t *id) {
    steps *s = ctx;
    (void)n_done;
    s->n++;
    int last = -1, first = LENGTH;
    for (int i = PROMPT; i < LENGTH; i++) {
        first = id[i] == 7 && i < first ? i : first;
        last = id[i] != 7 ? i : last;
    }
    s->blocks_in_order &= last < 0 || (last - PROMPT) / 8 <= (first - PROMPT) / 8;
    return true;
}

static llm_diffusion of(steps *s, int order, int64_t n_block, double temp, uint64_t seed) {
    static int32_t prompt[PROMPT] = {1, 2, 3, 4, 5, 6};
    return (llm_diffusion){.prompt = prompt,
                           .n_prompt = PROMPT,
                           .n_length = LENGTH,
                           .n_steps = 10,
                           .n_block = n_block,
                           .eps = 0.001,
                           .order = (llm_diffusion_order)order,
                           .temp = temp,
                           .top_p = 1,
                           .mask = 7,
                           .shift = order % 2 == 0,
                           .seed = seed,
                           .step = on_step,
                           .ctx = s};
}

TEST(diffuses) {
    fixture f[2];
    ggl_error err = {0};
    int32_t a[LENGTH], b[LENGTH];
    int n_other = 0;
    bool ok = fixture_init(&f[0], diffusion, 1, 64, 1) && fixture_init(&f[1], diffusion, 3, 64, 1);
    for (int k = 0; ok && k < 4 * LLM_DIFFUSE_N_ORDERS; k++) {
        steps s = {.blocks_in_order = true};
        llm_diffusion d = of(&s, k % LLM_DIFFUSE_N_ORDERS, k & 1 ? 8 : 0, k & 2 ? 1 : 0, 5);
        d.cfg_scale = k % 3 == 0 ? 0.5 : 0;
        d.top_k = k % 3 == 1 ? 3 : 0;
        d.order_temp = k % 4 == 3 ? 0.2 : 0;
        ok = CHECK_OK(diffuse_alone(f[0].s, &d, a, &err), &err) &&
             CHECK_OK(diffuse_alone(f[1].s, &d, b, &err), &err);
        CHECK_MSG(ok && memcmp(a, b, sizeof a) == 0, "case %d: threads change the text", k);
        for (int i = 0; i < LENGTH; i++)
            CHECK_MSG(a[i] != d.mask, "case %d: token %d is still a mask", k, i);
        CHECK_MSG(memcmp(a, d.prompt, PROMPT * sizeof *a) == 0, "case %d: the prompt", k);
        CHECK_MSG(s.n >= 4 && (!d.n_block || s.blocks_in_order), "case %d: %d steps", k, s.n);
        d.seed = 6;
        ok = ok && CHECK_OK(diffuse_alone(f[0].s, &d, b, &err), &err);
        n_other += ok && memcmp(a, b, sizeof a) != 0;
    }
    CHECK_MSG(n_other >= 5, "other seeds gave %d other texts", n_other);
    steps s = {0};
    llm_diffusion d = of(&s, 0, 0, 1, 1);
    d.n_length = 65;
    CHECK_INT(diffuse_alone(f[0].s, &d, a, &err), GGL_LIMIT);
    d = of(&s, 0, 0, -1, 1);
    CHECK_INT(diffuse_alone(f[0].s, &d, a, &err), GGL_USAGE);
    d = of(&s, 0, 0, 1, 1);
    d.mask = 8;
    CHECK_INT(diffuse_alone(f[0].s, &d, a, &err), GGL_USAGE);
    CHECK_INT(llm_diffusion_of(&d, f[0].m, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "mask_token_id");
    fixture_fini(&f[0]);
    fixture_fini(&f[1]);
}
