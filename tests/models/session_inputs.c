/* The inputs of a session's tokens, by their table: each row is an input of one of the models here, which takes a batch that brings what the input
 * needs, and refuses one that does not, or brings what the session does not read. */
#include <math.h>

#include "ggl/backends.h"
#include "llm/internal/media.h"
#include "run/session_impl.h"
#include "test.h"
#include "tiny_model.h"
#include "toy_adapter.h"

#define HEAD "arch tiny\nlanguage 2\ntoken_embd [16, n_vocab]\n"
#define OVER(of, args)                                                                             \
    "stage draft over " of "(ahead = 1" args "):\n  h = heads(token_embd[token], 2)\n"
#define TAKEN  "input taken [16] from layers([\"state\"])\ny = taken + 0\n"
#define GUESS  "guess = linear(draft, token_embd)\n"
#define LOGITS "logits = linear(x, token_embd)\n"

enum { PICTURE = 3, MASK = 5, MOST_ROWS = 8 };

typedef struct fixture {
    ggl_backend *cpu, *reference;
    llm_media *pictures;
    toy_adapter adapter;
    int32_t first;                     /* of the picture's rows */
    bool is_met[LLM_MAX_TOKEN_INPUTS]; /* rows of the table that one of the graphs needs */
    ggl_error err;
} fixture;

/* What a session is made of, and two batches of it. */
typedef struct sample {
    const char *text, *only;
    int guess_layer;
    bool has_pictures, has_tasks, reads;
    llm_batch good, bad; /* good.n: 0: it must be made to read first */
    const char *refused; /* part of the sentence that refuses `bad` */
} sample;

static const int32_t ids[] = {1, MASK, MASK, 2};
static const float zeros[MOST_ROWS * TINY_WIDTH] = {0};
static const int two_slots[] = {0, 1};

static bool fixture_init(fixture *f) {
    const int64_t ne[GGL_MAX_DIMS] = {TINY_WIDTH, TINY_VOCAB, 1, 1};
    const llm_media_rows rows = {.row = zeros, .n = PICTURE, .n_row = TINY_WIDTH + 4, .n_pos = 2};
    *f = (fixture){0};
    toy_adapter_add(&f->adapter, "token_embd.weight", 2, ne, 7, false);
    return CHECK_OK(ggl_backend_open(&f->cpu, "cpu", NULL, &f->err), &f->err) &&
           CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &f->err), &f->err) &&
           CHECK(toy_adapter_open(&f->adapter, "tiny", &f->err)) &&
           CHECK_OK(llm_media_new(&f->pictures, 1 << 16, &f->err), &f->err) &&
           CHECK_OK(
               llm_media_add(f->pictures, (uint8_t[LLM_MEDIA_ID]){3}, &rows, &f->first, &f->err),
               &f->err);
}

static void fixture_fini(fixture *f) {
    toy_adapter_free(&f->adapter);
    llm_media_free(f->pictures);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

static bool write_model(const char *path, const char *text) {
    float embd[TINY_WIDTH * TINY_VOCAB];
    ggl_error err = {0};
    for (int i = 0; i < TINY_WIDTH * TINY_VOCAB; i++)
        embd[i] = 0.6f * sinf((float)i * 1.7f);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.architecture", "tiny", 4);
    ggl_gguf_put_string(w, "general.descriptor", text, strlen(text));
    ggl_gguf_put(w, "tokenizer.ggml.mask_token_id", GGL_GGUF_U32, false, (uint32_t[]){MASK}, 1);
    ggl_gguf_put_tensor(w, "token_embd.weight", GGL_F32, 2, (int64_t[]){TINY_WIDTH, TINY_VOCAB},
                        embd);
    const bool ok = CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
    ggl_gguf_writer_free(w);
    return ok;
}

static bool session_open(fixture *f, const sample *x, llm_model **m, llm_session **s) {
    const char *path = test_path("tiny.gguf");
    const llm_adapter_use use = {.adapter = f->adapter.adapter, .varies = true, .task = 1};
    llm_session_params p = llm_session_default();
    p.n_ctx = 32;
    p.n_slots = 2;
    p.n_rows = 4;
    p.only = x->only;
    p.guess_layer = x->guess_layer;
    p.media = x->has_pictures ? f->pictures : NULL;
    p.adapter = &use;
    p.n_adapters = x->has_tasks;
    p.backend = &f->cpu;
    p.n_backends = 1;
    p.fold = f->reference;
    return write_model(path, x->text) &&
           CHECK_OK(llm_model_open(m, path, NULL, &f->err), &f->err) &&
           CHECK_OK(llm_session_new(s, *m, &p, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(*s, &f->err), &f->err);
}

/* Notes which rows of the table the session's graph needs. */
static void meet(fixture *f, const llm_session *s) {
    for (int k = 0; llm_session_input(k); k++) {
        const ggl_tensor *own = s->inputs[k], *other = s->stage_inputs[k];
        f->is_met[k] = f->is_met[k] || (own && own->needed) || (other && other->needed);
    }
}

static void check_sample(fixture *f, const sample *x) {
    llm_model *m = NULL;
    llm_session *s = NULL;
    if (session_open(f, x, &m, &s)) {
        meet(f, s);
        CHECK_INT(llm_session_eval(s, &x->bad, &f->err), GGL_USAGE);
        CHECK_HAS(f->err.msg, x->refused);
        CHECK_INT(llm_session_n_past(s, 0), 0);
        if (x->reads)
            CHECK_OK(llm_session_read(s, 0, ids, 4, &f->err), &f->err);
        CHECK_OK(llm_session_eval(s, &x->good, &f->err), &f->err);
        CHECK_INT(llm_session_n_past(s, 0), x->good.n);
        const float *logits = llm_session_logits(s);
        for (int i = 0; logits && i < TINY_VOCAB; i++)
            CHECK_MSG(isfinite(logits[i]), "logit %d of %s", i, x->text);
        CHECK(logits);
    }
    llm_session_free(s);
    llm_model_free(m);
}

/* Each input has a model here that reads it; so a row that is added to the table needs one, too. */
TEST(inputs_are_needed_and_checked) {
    fixture f;
    REQUIRE(fixture_init(&f));
    const int32_t shown[] = {1, f.first, f.first - 1, f.first - 2, 3};
    const float wrong = INFINITY, half = 0.5f;
    const float *const wrong_share[] = {NULL, &wrong}, *const share[] = {&half, NULL};
    const sample samples[] = {
        {.text = HEAD "x = token_embd[token]\n" OVER("x", "") "  return flat(h) + x\n" GUESS,
         .only = "guess",
         .good = {.n = 2, .token = ids, .row = zeros},
         .bad = {.n = 2, .token = ids},
         .refused = "a session of guesses needs the rows of the tokens before (llm_batch.row)"},
        {.text = HEAD TAKEN OVER("y", ", from = 1, stay = 1") "  return flat(h) + y * 0.7\n" GUESS,
         .only = "guess",
         .good = {.n = 2, .token = ids, .feature = zeros},
         .bad = {.n = 2, .token = ids, .row = zeros},
         .refused = "a session of guesses needs the rows of the tokens before (llm_batch.row)"},
        {.text = HEAD TAKEN OVER("y", ", from = 1, block b < 4") //
         "  r = heads(where(b, token_embd[token], y), 2)\n"
         "  return flat(attention(h, r, r))\n" GUESS,
         .only = "guess",
         .good = {.n = 3, .token = ids, .is_block = true},
         .bad = {.n = 2, .token = ids, .slot = two_slots, .is_block = true},
         .refused = "in one slot, of at most 64 tokens and 4 wanted ones, without rows"},
        {.text = HEAD TAKEN OVER("y", ", from = 1, block b < 4") //
         "  r = heads(where(b, token_embd[token], y), 2)\n"
         "  return flat(attention(h, r, r))\n"
         "guess = linear(in_turn(draft) + token_embd[guess_before()], token_embd)\n",
         .only = "guess",
         .guess_layer = 1,
         .good = {.n = 2, .token = ids, .row = zeros},
         .bad = {.n = 2, .token = ids, .feature = zeros},
         .refused = "the session reads no rows of another model (llm_batch.feature)"},
        {.text =
             HEAD "stage e:\n  y = token_embd[token]\n  k = heads(y, 2)\n"
                  "  return y + attention(k, k, k)\nx = token_embd[token]\n"
                  "x = x + flat(attend(heads(x, 2), cache(heads(e, 2), heads(e, 2))))\n" ALL LOGITS,
         .reads = true,
         .good = {.n = 2, .token = ids},
         .bad = {.n = 2, .token = ids},
         .refused = "the model reads a text before it writes, and slot 0 has none"},
        {.text = HEAD "x = given(token_embd[token], together = 1)\nm = given_more(4)\n"
                      "if has(m): x = x + sum(m)\nh = heads(x, 2)\n"
                      "t = rope_places(h, freqs(8, 100), 1, [1, 1, 2])\n"
                      "x = x + attention(t, t, h)\n" LOGITS,
         .has_pictures = true,
         .good = {.n = 5, .token = shown},
         .bad = {.n = 3, .token = shown},
         .refused = "row 1 of a picture of 3 ends a text, but all of its rows see each other"},
        {.text =
             HEAD "x = given(token_embd[token], together = 1)\nm = given_more(4)\n"
                  "if has(m): x = x + sum(m)\nh = heads(x, 2)\nf = freqs(8, 100)\nt = h\n"
                  "if has(pos.line):\n  t = rope_half(rope_half(rope_half(h, f, at = pos.line), "
                  "f, at = pos.column), f, at = pos.picture)\n"
                  "x = x + attention(t, t, h)\n" LOGITS,
         .has_pictures = true,
         .good = {.n = 5, .token = shown},
         .bad = {.n = 3, .token = shown},
         .refused = "row 1 of a picture of 3 ends a text, but all of its rows see each other"},
        {.text = HEAD "x = given(token_embd[token], together = 3)\nm = given_more(4)\n"
                      "if has(m): x = x + sum(m) * is_given()\nh = heads(x, 2)\n"
                      "x = x + attention(h, h, h, window = 2)\n" LOGITS,
         .has_pictures = true,
         .good = {.n = 5, .token = shown},
         .bad = {.n = 3, .token = shown},
         .refused = "row 1 of a picture of 3 ends a text, but all of its rows see each other"},
        {.text = HEAD "x = token_embd[token]\nx = x + token_embd[token_type(3)]\n" ALL LOGITS,
         .good = {.n = 2, .token = ids, .type = (int32_t[]){2, 0}},
         .bad = {.n = 2, .token = ids, .type = (int32_t[]){0, 3}},
         .refused = "token 1 has the type 3; the model knows the types 0 to 2"},
        {.text = HEAD "x = token_embd[token]\n" ALL LOGITS,
         .has_tasks = true,
         .good = {.n = 2, .token = ids, .share = share},
         .bad = {.n = 2, .token = ids, .share = wrong_share},
         .refused = "share 0 of a token is inf"},
    };
    for (size_t k = 0; k < sizeof samples / sizeof *samples; k++)
        check_sample(&f, &samples[k]);
    for (int k = 0; llm_session_input(k); k++)
        CHECK_MSG(f.is_met[k], "no model here reads the input '%s'", llm_session_input(k)->name);
    fixture_fini(&f);
}

/* Refuses a batch of one token that brings rows which a session of this text does not read. */
static void check_unread(fixture *f, llm_session *s, llm_batch b, const char *refused) {
    b.n = 1;
    b.token = ids;
    CHECK_INT(llm_session_eval(s, &b, &f->err), GGL_USAGE);
    CHECK_STR(f->err.msg, refused);
}

TEST(unread_rows_are_refused) {
    fixture f;
    llm_model *m = NULL;
    llm_session *s = NULL;
    const sample plain = {.text = HEAD "x = token_embd[token]\n" ALL LOGITS};
    REQUIRE(fixture_init(&f));
    if (session_open(&f, &plain, &m, &s)) {
        const float *input[] = {zeros};
        check_unread(&f, s, (llm_batch){.row = zeros}, "the session reads no rows (llm_batch.row)");
        check_unread(&f, s, (llm_batch){.feature = zeros},
                     "the session reads no rows of another model (llm_batch.feature)");
        check_unread(&f, s, (llm_batch){.input = input},
                     "the session has no stage over rows (llm_batch.input)");
    }
    llm_session_free(s);
    llm_model_free(m);
    fixture_fini(&f);
}

TEST(the_table) {
    const session_input *row;
    for (int k = 0; (row = llm_session_input(k)); k++) {
        for (int i = 0; i < k; i++)
            CHECK_MSG(strcmp(llm_session_input(i)->name, row->name) != 0, "'%s' stands twice",
                      row->name);
        CHECK_MSG((row->number != NULL) != (row->values != NULL), "'%s' has one kind of values",
                  row->name);
    }
}
