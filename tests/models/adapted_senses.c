/* Adapters of eyes: their pairs change the eye as a merged file does, alone or beside pairs of the text model, at any scale; what no file has is refused by
 * name. */
#include <math.h>

#include "context.h"
#include "ggl/internal/gguf.h"
#include "library_test.h"
#include "llm/internal/adapter.h"
#include "llm/steps.h"
#include "opening.h"
#include "toy_adapter.h"

static const char picture[] = EXAMPLES "/shapes.bmp", text_model[] = BUILTIN "/shapes.gguf",
                  eye_file[] = BUILTIN "/shapes-eye.gguf";

static ggl_error err;

/* In functions that return something: the case ends. */
#define NEED(cond)                                                                                 \
    do {                                                                                           \
        if (!CHECK(cond))                                                                          \
            exit(1);                                                                               \
    } while (0)
#define NEED_OK(status_) NEED(CHECK_OK(status_, &err))

static const char *path_of(const char *name) {
    static char path[32][600];
    static int k;
    char *p = path[k++ % 32];
    snprintf(p, sizeof path[0], "%s/%s", test_folder(), name);
    return p;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Writes the eye with matrices of f32, changed by the adapters, in their order. */
static const char *write_eye(const char *name, const toy_adapter *const *x, const double *scale,
                             size_t n) {
    const char *path = path_of(name);
    ggl_gguf *f = NULL;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    float *kept[100];
    int n_kept = 0;
    NEED_OK(ggl_gguf_open(&f, eye_file, NULL, &err));
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++)
        ggl_gguf_put_value(w, ggl_gguf_value_at(f, i));
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        const int64_t count = ggl_extents(t->ne, 0, GGL_MAX_DIMS, 1);
        float *to = malloc((size_t)count * sizeof *to);
        char own[128];
        NEED(to && n_kept < 100);
        snprintf(own, sizeof own, "%.*s", (int)t->name.n, t->name.s);
        ggl_type_get(t->type)->to_float(t->data, to, count);
        for (size_t k = 0; k < n; k++)
            toy_adapter_merge(x[k], scale[k], own, to);
        ggl_gguf_put_tensor(w, own, GGL_F32, t->n_dims, t->ne, to);
        kept[n_kept++] = to;
    }
    CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
    while (n_kept > 0)
        free(kept[--n_kept]);
    ggl_gguf_writer_free(w);
    ggl_gguf_close(f);
    return path;
}

/* Adds pairs for tensors of a file. */
static void add_pairs(toy_adapter *x, const char *file, const char *const *name, size_t n,
                      uint64_t seed) {
    ggl_gguf *f = NULL;
    NEED_OK(ggl_gguf_open(&f, file, NULL, &err));
    for (size_t i = 0; i < n; i++) {
        const ggl_gguf_tensor *t = ggl_gguf_find_tensor(f, name[i]);
        if (CHECK_MSG(t != NULL, "%s has no %s", file, name[i]))
            toy_adapter_add(x, name[i], t->n_dims, t->ne, seed, false);
    }
    ggl_gguf_close(f);
}

static const char *const of_eye[] = {"v.blk.0.attn_q.weight", "v.blk.0.attn_v.weight",
                                     "v.blk.1.ffn_up.weight", "v.blk.2.ffn_down.weight",
                                     "mm.0.weight",           "mm.2.weight"},
                         *const of_text[] = {"blk.0.attn_q.weight", "blk.1.ffn_down.weight"};
enum { OF_EYE = sizeof of_eye / sizeof *of_eye, OF_TEXT = sizeof of_text / sizeof *of_text };

/* Writes the adapter to a file. */
static const char *write_adapter(toy_adapter *x, const char *name) {
    const char *path = path_of(name);
    ggl_gguf *f = NULL;
    ggl_str family = {0};
    char own[64];
    NEED_OK(ggl_gguf_open(&f, text_model, NULL, &err));
    NEED(ggl_gguf_get_string(f, "general.architecture", &family, &err) > 0);
    snprintf(own, sizeof own, "%.*s", (int)family.n, family.s);
    NEED(toy_adapter_open(x, own, &err));
    ggl_gguf_close(f);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    const ggl_gguf *from = llm_adapter_file(x->adapter);
    for (size_t i = 0; i < ggl_gguf_n_values(from); i++)
        ggl_gguf_put_value(w, ggl_gguf_value_at(from, i));
    for (size_t i = 0; i < ggl_gguf_n_tensors(from); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(from, i);
        char tensor[160];
        snprintf(tensor, sizeof tensor, "%.*s", (int)t->name.n, t->name.s);
        ggl_gguf_put_tensor(w, tensor, t->type, t->n_dims, t->ne, t->data);
    }
    CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
    ggl_gguf_writer_free(w);
    return path;
}

/* --- what is seen ------------------------------------------------------------------------------- */

typedef struct seen {
    float *row;
    size_t n; /* numbers */
    char mark[LLM_IMAGE_MARK];
} seen;

static seen look(llm_context *c) {
    seen s = {.row = NULL};
    size_t n = 0, n_row = 0;
    const llm_image image = {.path = picture};
    NEED_OK(llm_image_rows(c, &image, &s.row, &n, &n_row, &err));
    s.n = n * n_row;
    CHECK_OK(llm_see(c, &image, s.mark, &err), &err);
    return s;
}

/* Rows are counted without being laid out, as long as somebody holds them. */
TEST(rows_are_counted) {
    llm_context *c = open_with(text_model, (llm_open_params){.mmproj = eye_file});
    NEED(c);
    const seen s = look(c);
    llm_tokens ids = {0};
    size_t n, n_laid = 0;
    CHECK_OK(llm_seen_rows(c, s.mark, &n, &err), &err);
    CHECK_OK(llm_seen_tokens(c, s.mark, &ids, &err), &err);
    for (size_t i = 0; i < ids.n; i++)
        n_laid += ids.id[i] < 0;
    CHECK(n_laid > 0);
    CHECK_INT(n, n_laid);
    char other[LLM_IMAGE_MARK];
    strcpy(other, s.mark);
    other[LLM_IMAGE_MARK / 2] = other[LLM_IMAGE_MARK / 2] == '0' ? '1' : '0';
    CHECK_INT(llm_seen_rows(c, other, &n, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "not there any more");
    llm_tokens_fini(&ids);
    ggl_free(s.row);
    llm_close(c);
}

static llm_context *open_adapted(const char *eye, const llm_lora *lora, size_t n) {
    return open_with(text_model,
                     (llm_open_params){.mmproj = eye, .adapter = lora, .n_adapters = n});
}

static seen look_with(const char *eye, const llm_lora *lora, size_t n) {
    llm_context *c = open_adapted(eye, lora, n);
    NEED(c);
    const seen s = look(c);
    llm_close(c);
    return s;
}

static bool same_bits(const seen *a, const seen *b) {
    return a->n == b->n && memcmp(a->row, b->row, a->n * sizeof *a->row) == 0;
}

/* Returns the length of the difference over that of b. */
static double distance(const seen *a, const seen *b) {
    double d = 0, all = 0;
    if (!CHECK_INT(a->n, b->n))
        return NAN;
    for (size_t i = 0; i < a->n; i++) {
        d += ((double)a->row[i] - b->row[i]) * ((double)a->row[i] - b->row[i]);
        all += (double)b->row[i] * b->row[i];
    }
    return sqrt(d / all);
}

/* An eye with adapters makes the rows of one into which they are merged, up to rounding: one adapter, two, and such with magnitudes. */
TEST(merged) {
    const char *plain = write_eye("plain.gguf", NULL, NULL, 0);
    const seen base = look_with(plain, NULL, 0);
    for (int sizes = 0; sizes < 3; sizes++) {
        toy_adapter x = {.alpha = 3, .sizes = sizes}, y = {.alpha = 0, .sizes = sizes};
        const toy_adapter *const both[] = {&x, &y};
        const double scale[] = {0.7, 0.4};
        add_pairs(&x, eye_file, of_eye, OF_EYE, 1);
        add_pairs(&y, eye_file, of_eye + 1, OF_EYE - 2, 2);
        const llm_lora lora[] = {{write_adapter(&x, "x.gguf"), scale[0]},
                                 {write_adapter(&y, "y.gguf"), scale[1]}};
        /* the second one of two divides by the lengths of the eye's own rows: merging goes by the changed ones */
        for (size_t n = 1; n <= (sizes == 0 ? 2 : 1); n++) {
            seen got = look_with(plain, lora, n),
                 want = look_with(write_eye("merged.gguf", both, scale, n), NULL, 0);
            CHECK_MSG(distance(&got, &want) < 1e-4, "%d, %zu: %g", sizes, n, distance(&got, &want));
            CHECK_MSG(distance(&base, &want) > 1e-2, "%d, %zu", sizes, n);
            CHECK(strcmp(got.mark, base.mark) != 0); /* rows that are kept belong to the adapters */
            ggl_free(got.row);
            ggl_free(want.row);
        }
        toy_adapter_free(&x);
        toy_adapter_free(&y);
    }
    ggl_free(base.row);
}

/* At scale 0 rows and marks are those without the adapter, also if the scale becomes 0 later, and those of a scale do not depend on when it was set. */
TEST(scales) {
    toy_adapter x = {.alpha = 3, .sizes = 1};
    add_pairs(&x, eye_file, of_eye, OF_EYE, 1);
    llm_lora lora = {write_adapter(&x, "x.gguf"), 0.5};
    seen base = look_with(eye_file, NULL, 0), half = look_with(eye_file, &lora, 1);
    lora.scale = 0;
    llm_context *c = open_adapted(eye_file, &lora, 1);
    REQUIRE(c);
    seen none = look(c);
    CHECK(same_bits(&none, &base) && strcmp(none.mark, base.mark) == 0);
    CHECK(!same_bits(&half, &base));
    REQUIRE_OK(llm_set_adapter_scale(c, 0, 0.5, &err), &err);
    seen later = look(c);
    CHECK(same_bits(&later, &half) && strcmp(later.mark, half.mark) == 0);
    CHECK(strcmp(later.mark, base.mark) != 0);
    REQUIRE_OK(llm_set_adapter_scale(c, 0, 0, &err), &err);
    seen again = look(c);
    CHECK(same_bits(&again, &base) && strcmp(again.mark, base.mark) == 0);
    llm_close(c);
    seen *all[] = {&base, &half, &none, &later, &again};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ggl_free(all[i]->row);
    toy_adapter_free(&x);
}

/* The logits of a text. */
static float *logits_of(llm_context *c, size_t *n) {
    const int32_t id[] = {5, 9, 17, 30};
    const float *logits = NULL;
    float *own = NULL;
    *n = (size_t)llm_context_facts(c)->n_vocab;
    NEED_OK(llm_eval(c, id, 4, false, &logits, &err));
    own = malloc(*n * sizeof *own);
    NEED(own);
    memcpy(own, logits, *n * sizeof *own);
    return own;
}

/* A file with pairs of both: each changes what it names, and nothing else. */
TEST(both) {
    toy_adapter eye = {.alpha = 3}, text = {.alpha = 3}, both = {.alpha = 3};
    add_pairs(&eye, eye_file, of_eye, OF_EYE, 1);
    add_pairs(&text, text_model, of_text, OF_TEXT, 1);
    add_pairs(&both, eye_file, of_eye, OF_EYE, 1);
    add_pairs(&both, text_model, of_text, OF_TEXT, 1);
    const llm_lora lora[] = {{write_adapter(&eye, "eye.gguf"), 1},
                             {write_adapter(&text, "text.gguf"), 1},
                             {write_adapter(&both, "both.gguf"), 1}};
    seen s[4];
    float *logits[4];
    size_t n = 0;
    for (int i = 0; i < 4; i++) { /* the last one has none */
        llm_context *c = open_adapted(eye_file, &lora[i % 3], i < 3);
        REQUIRE(c);
        s[i] = look(c);
        logits[i] = logits_of(c, &n);
        llm_close(c);
    }
    CHECK(same_bits(&s[2], &s[0]) && same_bits(&s[1], &s[3]) && !same_bits(&s[0], &s[3]));
    CHECK(memcmp(logits[2], logits[1], n * sizeof(float)) == 0);
    CHECK(memcmp(logits[0], logits[3], n * sizeof(float)) == 0);
    CHECK(memcmp(logits[1], logits[3], n * sizeof(float)) != 0);
    for (int i = 0; i < 4; i++) {
        ggl_free(s[i].row);
        free(logits[i]);
    }
    toy_adapter_free(&eye);
    toy_adapter_free(&text);
    toy_adapter_free(&both);
}

/* Saved texts with pictures belong to the eye's adapters, too. */
TEST(saved) {
    toy_adapter x = {.alpha = 3};
    const char *file = path_of("talk.slot");
    add_pairs(&x, eye_file, of_eye, OF_EYE, 1);
    const llm_lora lora = {write_adapter(&x, "x.gguf"), 1};
    llm_context *c = open_adapted(eye_file, &lora, 1);
    size_t n = 0;
    REQUIRE(c);
    free(logits_of(c, &n));
    REQUIRE_OK(llm_save(c, file, &err), &err);
    llm_close(c);
    c = open_adapted(eye_file, NULL, 0);
    REQUIRE(c);
    CHECK(llm_restore(c, file, &err) != GGL_OK);
    CHECK_HAS(err.msg, "adapter");
    llm_close(c);
    toy_adapter_free(&x);
}

static void refuse(const char *model, const char *eye, const char *adapter, ggl_status want,
                   const char *said) {
    const llm_lora lora = {adapter, 1};
    const llm_open_params p = {
        .size = sizeof p, .n_ctx = 128, .mmproj = eye, .adapter = &lora, .n_adapters = 1};
    llm_context *c = NULL;
    CHECK_INT(llm_open(&c, model, &p, &err), want);
    CHECK_HAS(err.msg, said);
    llm_close(c);
}

TEST(refused) {
    toy_adapter x = {.alpha = 3}, y = {.alpha = 3}, z = {.alpha = 3}, norm = {.alpha = 3};
    add_pairs(&x, eye_file, of_eye, OF_EYE, 1);
    refuse(text_model, NULL, write_adapter(&x, "x.gguf"), GGL_NOT_FOUND,
           "has no tensor v.blk.0.attn_q.weight, a name of eyes and ears: the file of the eye or "
           "the ear is missing (mmproj, or --mmproj)");
    add_pairs(&y, eye_file, of_eye, OF_EYE, 1);
    toy_adapter_add(&y, "v.blk.7.attn_q.weight", 2, (int64_t[]){96, 96, 1, 1}, 1, false);
    refuse(text_model, eye_file, write_adapter(&y, "y.gguf"), GGL_NOT_FOUND,
           "y.gguf: v.blk.7.attn_q.weight.lora_a: neither ");
    CHECK_HAS(err.msg, "has a tensor v.blk.7.attn_q.weight; did you mean v.blk.");
    toy_adapter_add(&z, "mm.0.weight", 2, (int64_t[]){96, 95, 1, 1}, 1, false);
    refuse(text_model, eye_file, write_adapter(&z, "z.gguf"), GGL_SHAPE,
           "which does not fit mm.0.weight [96, 96]");
    toy_adapter_add(&norm, "v.patch_embd.weight", 3, (int64_t[]){8, 8, 3, 1}, 1, false);
    refuse(text_model, eye_file, write_adapter(&norm, "norm.gguf"), GGL_SHAPE,
           "which does not fit v.patch_embd.weight");
    toy_adapter_free(&x);
    toy_adapter_free(&y);
    toy_adapter_free(&z);
    toy_adapter_free(&norm);
}
