/* Files of importance matrices: written and read; the bytes of the old format as worked out by hand; damaged
 * files; merging. */
#include <math.h>

#include "measure/imatrix.h"
#include "ggl/internal/gguf.h"

#include "alloc_fail.h"
#include "test.h"

/* Two weights: 3 columns, and 2 experts of 2 columns, of which the second has no rows. */
static imatrix *make(void) {
    imatrix *m;
    imatrix_entry *e;
    if (llm_imatrix_new(&m, 8, NULL) != GGL_OK)
        return NULL;
    (void)!llm_imatrix_add(m, "blk.1.ffn_up_exps.weight", 2, 2, &e, NULL);
    memcpy(e->sum2, (const float[]){3, 0.5F, 0, 0}, 4 * sizeof *e->sum2);
    e->count[0] = 6;
    (void)!llm_imatrix_add(m, "blk.0.attn_q.weight", 3, 1, &e, NULL);
    memcpy(e->sum2, (const float[]){0, 16, 4}, 3 * sizeof *e->sum2);
    e->count[0] = 16;
    llm_imatrix_count_chunks(m);
    (void)!llm_imatrix_add_dataset(m, "a.txt", NULL);
    return m;
}

static void check_mean(const imatrix_entry *e, int64_t n_col, int64_t i_mat, const float *want) {
    float mean[8];
    llm_imatrix_mean(e, n_col, i_mat, mean);
    for (int64_t i = 0; i < n_col; i++)
        CHECK_MSG(mean[i] == want[i], "mean %d is %g, not %g", (int)i, (double)mean[i],
                  (double)want[i]);
}

TEST(gguf) {
    ggl_error err = {0};
    imatrix *m = make(), *r = NULL;
    const char *path = test_path("m.gguf");
    REQUIRE(m);
    REQUIRE_OK(llm_imatrix_write(m, path, &err), &err);
    llm_imatrix_free(m);
    REQUIRE_OK(llm_imatrix_open(&r, path, 99, &err), &err);
    CHECK_INT(llm_imatrix_n(r), 2);
    CHECK_STR(llm_imatrix_at(r, 0)->name.s, "blk.0.attn_q.weight"); /* in the order of names */
    CHECK_INT(llm_imatrix_chunk_size(r), 8);
    CHECK_INT(llm_imatrix_n_chunks(r), 2);
    CHECK_INT(llm_imatrix_n_datasets(r), 1);
    CHECK_STR(llm_imatrix_dataset(r, 0), "a.txt");
    CHECK(!llm_imatrix_dataset(r, 1) && !llm_imatrix_find(r, "blk.0.attn_k.weight"));
    const imatrix_entry *e = llm_imatrix_find(r, "blk.1.ffn_up_exps.weight");
    REQUIRE(e && e->n_col == 2 && e->n_mat == 2);
    CHECK(e->count[0] == 6 && e->count[1] == 0);
    CHECK(llm_imatrix_fits(e, 2, 2) && !llm_imatrix_fits(e, 4, 1) && !llm_imatrix_fits(e, 2, 3));
    check_mean(e, 2, 0, (const float[]){0.5F, 0.5F / 6});
    check_mean(e, 2, 1, (const float[]){1, 1});
    llm_imatrix_free(r);
}

/* Tensors and keys as other programs expect them. */
TEST(gguf_tensors) {
    ggl_error err = {0};
    imatrix *m = make();
    ggl_gguf *f;
    const char *path = test_path("m.gguf");
    REQUIRE(m && llm_imatrix_write(m, path, &err) == GGL_OK);
    llm_imatrix_free(m);
    REQUIRE_OK(ggl_gguf_open(&f, path, NULL, &err), &err);
    ggl_str type;
    int64_t n = 0;
    CHECK(ggl_gguf_get_string(f, "general.type", &type, &err) == 1 && ggl_str_is(type, "imatrix"));
    CHECK(ggl_gguf_get_integer(f, "imatrix.chunk_count", &n, &err) == 1 && n == 2);
    CHECK(ggl_gguf_get_integer(f, "imatrix.chunk_size", &n, &err) == 1 && n == 8);
    const ggl_gguf_tensor *s = ggl_gguf_find_tensor(f, "blk.1.ffn_up_exps.weight.in_sum2"),
                          *c = ggl_gguf_find_tensor(f, "blk.1.ffn_up_exps.weight.counts");
    REQUIRE(s && c && ggl_gguf_n_tensors(f) == 4);
    CHECK(s->n_dims == 2 && s->ne[0] == 2 && s->ne[1] == 2 && s->type == GGL_F32);
    CHECK(c->n_dims == 2 && c->ne[0] == 1 && c->ne[1] == 2 && ((const float *)c->data)[0] == 6);
    ggl_gguf_close(f);
}

/* make() in the old format: means times chunks; 16 rows are two chunks of 8, 6 rows are one. */
static const char dat[] =
    "\2\0\0\0"
    "\23\0\0\0blk.0.attn_q.weight\2\0\0\0\3\0\0\0\0\0\0\0\0\0\0\100\0\0\0\77"
    "\30\0\0\0blk.1.ffn_up_exps.weight\1\0\0\0\4\0\0\0\0\0\0\77\253\252\252\75\0\0\200\77\0\0"
    "\200\77"
    "\2\0\0\0\5\0\0\0a.txt";
enum { DAT = sizeof dat - 1 };

TEST(dat) {
    ggl_error err = {0};
    imatrix *r = NULL;
    REQUIRE_OK(llm_imatrix_open_memory(&r, dat, DAT, "m", 8, &err), &err);
    CHECK(llm_imatrix_n_chunks(r) == 2 && llm_imatrix_chunk_size(r) == 8);
    CHECK_STR(llm_imatrix_dataset(r, 0), "a.txt");
    const imatrix_entry *e = llm_imatrix_find(r, "blk.1.ffn_up_exps.weight");
    REQUIRE(e && e->n_col == 4 && e->n_mat == 1 && e->count[0] == 8);
    REQUIRE(llm_imatrix_fits(e, 2, 2) &&
            llm_imatrix_fits(e, 4, 1)); /* experts, which it does not tell */
    check_mean(e, 2, 0, (const float[]){0.5F, 0.5F / 6});
    check_mean(e, 2, 1, (const float[]){1, 1});
    check_mean(llm_imatrix_find(r, "blk.0.attn_q.weight"), 3, 0, (const float[]){0, 1, 0.25F});
    llm_imatrix_free(r);
}

TEST(merge) {
    ggl_error err = {0};
    imatrix *a = make(), *b = make(), *old = NULL, *other = NULL;
    imatrix_entry *e;
    REQUIRE(a && b);
    REQUIRE_OK(llm_imatrix_merge(a, b, &err), &err);
    CHECK(llm_imatrix_n(a) == 2 && llm_imatrix_n_chunks(a) == 4 && llm_imatrix_n_datasets(a) == 2);
    const imatrix_entry *q = llm_imatrix_find(a, "blk.0.attn_q.weight");
    CHECK(q->count[0] == 32 && q->sum2[1] == 32 && q->sum2[2] == 8);
    /* a file of the old format has one count for all experts; in either order */
    for (int turn = 0; turn < 2; turn++) {
        REQUIRE_OK(llm_imatrix_open_memory(&old, dat, DAT, "m", 8, &err), &err);
        imatrix *from = turn ? b : old, *into = turn ? old : b;
        REQUIRE_OK(llm_imatrix_merge(into, from, &err), &err);
        const imatrix_entry *x = llm_imatrix_find(into, "blk.1.ffn_up_exps.weight");
        CHECK(x->n_mat == 2 && x->n_col == 2 && x->count[0] == (turn ? 22 : 14) &&
              x->count[1] == (turn ? 16 : 8));
        CHECK(x->sum2[0] == (turn ? 11 : 7));
        llm_imatrix_free(old);
    }
    REQUIRE_OK(llm_imatrix_new(&other, 8, &err), &err);
    REQUIRE_OK(llm_imatrix_add(other, "blk.0.attn_q.weight", 4, 1, &e, &err), &err);
    CHECK(llm_imatrix_merge(a, other, &err) == GGL_USAGE);
    CHECK_HAS(err.msg, "'blk.0.attn_q.weight': 1 matrices of 4 columns, but 1 of 3");
    CHECK(llm_imatrix_add(other, "blk.0.attn_q.weight", 3, 1, &e, &err) == GGL_USAGE);
    llm_imatrix_free(a);
    llm_imatrix_free(b);
    llm_imatrix_free(other);
}

/* --- damaged files ---------------------------------------------------------------------------- */

static void check_refused(const void *data, size_t n, const char *words) {
    ggl_error err = {0};
    imatrix *m;
    CHECK(llm_imatrix_open_memory(&m, data, n, "m", 8, &err) == GGL_FORMAT && !m);
    CHECK_HAS(err.msg, words);
}

TEST(damaged_dat) {
    enum { n = DAT };
    ggl_error err = {0};
    unsigned char *data = malloc(n);
    REQUIRE(data);
    memcpy(data, dat, n);
    /* every beginning: only those that end after the entries, or after the chunks, are whole */
    const size_t entries = 4 + 4 + 19 + 8 + 12 + 4 + 24 + 8 + 16;
    for (size_t k = 0; k <= n; k++) {
        const bool whole = k == entries || k == entries + 4 || k == n;
        imatrix *r;
        CHECK_INT(llm_imatrix_open_memory(&r, data, k, "m", 8, &err) == GGL_OK, whole);
        llm_imatrix_free(r);
    }
    check_refused("no matrix", 9, "m: is neither a GGUF file nor an importance matrix");
    data[5] = 1; /* the first name has 256 more bytes */
    check_refused(data, n, "m: entry 1 of 2: the file ends before its name does");
    data[5] = 0;
    check_refused(data, entries - 1,
                  "entry 2 of 2: 'blk.1.ffn_up_exps.weight': the file ends before its values");
    data[0] = 255;
    check_refused(data, n, "neither a GGUF file nor");
    data[0] = 2;
    data[8 + 19 + 8 + 3] = 0xbf; /* the first mean, 0, becomes -0.5 */
    check_refused(data, n, "'blk.0.attn_q.weight': the sum of column 0 of matrix 0 is -4");
    free(data);
}

typedef struct tensor {
    const char *name;
    ggl_type type;
    int64_t ne[2];
    const void *data;
} tensor;

/* Opens a GGUF file with these tensors (up to one without a name), which must be refused. */
static void check_gguf(const char *type, const tensor *t, const char *words) {
    void *data = NULL;
    size_t n = 0;
    ggl_error err = {0};
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    REQUIRE(w);
    ggl_gguf_put_string(w, "general.type", type, strlen(type));
    for (; t->name; t++)
        ggl_gguf_put_tensor(w, t->name, t->type, 2, t->ne, t->data);
    CHECK_OK(ggl_gguf_writer_write_memory(w, &data, &n, &err), &err);
    ggl_gguf_writer_free(w);
    check_refused(data, n, words);
    free(data);
}

TEST(damaged_gguf) {
    static const float sums[6] = {1, 2, 3, 4, 5, 6}, bad[6] = {1, 2, NAN}, count[2] = {1, 2},
                       wrong[2] = {1, -2};
    static const int32_t whole[2] = {1, 2};
    const tensor s = {"a.in_sum2", GGL_F32, {3, 2}, sums}, c = {"a.counts", GGL_F32, {1, 2}, count};
    check_gguf("model", (tensor[]){s, c, {0}}, "m: general.type is 'model', not 'imatrix'");
    check_gguf("imatrix", (tensor[]){{"a.weight", GGL_F32, {3, 2}, sums}, {0}},
               "m: has no tensor NAME.in_sum2");
    check_gguf("imatrix", (tensor[]){s, {0}}, "m: entry 'a': there is no 'a.counts'");
    check_gguf("imatrix", (tensor[]){c, {0}}, "m: entry 'a': there is no 'a.in_sum2'");
    check_gguf("imatrix", (tensor[]){s, {"a.counts", GGL_I32, {1, 2}, whole}, {0}},
               "tensor 'a.counts' has 8 bytes of type i32");
    check_gguf("imatrix", (tensor[]){{"a.in_sum2", GGL_F32, {5, 1}, sums}, c, {0}},
               "entry 'a': 5 sums are not for 2 counts");
    check_gguf("imatrix", (tensor[]){{"a.in_sum2", GGL_F32, {3, 2}, bad}, c, {0}},
               "entry 'a': the sum of column 2 of matrix 0 is nan");
    check_gguf("imatrix", (tensor[]){s, {"a.counts", GGL_F32, {1, 2}, wrong}, {0}},
               "entry 'a': the count of matrix 1 is -2");
    check_gguf(
        "imatrix",
        (tensor[]){{".in_sum2", GGL_F32, {3, 2}, sums}, {".counts", GGL_F32, {1, 2}, count}, {0}},
        "the weight's name is empty");
}

/* --- memory ----------------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char *data;
    size_t n;
} bytes;

static bool open_and_merge(void *arg) {
    const bytes *b = arg;
    imatrix *m = NULL, *into = NULL;
    const bool ok = llm_imatrix_open_memory(&m, b->data, b->n, "m", 8, NULL) == GGL_OK &&
                    llm_imatrix_new(&into, 8, NULL) == GGL_OK &&
                    llm_imatrix_merge(into, m, NULL) == GGL_OK;
    llm_imatrix_free(m);
    llm_imatrix_free(into);
    return ok;
}

TEST(out_of_memory) {
    imatrix *m = make();
    const char *path = test_path("m.gguf");
    bytes b;
    REQUIRE(m && llm_imatrix_write(m, path, NULL) == GGL_OK);
    llm_imatrix_free(m);
    b.data = test_read_file(path, &b.n);
    REQUIRE(b.data);
    CHECK(alloc_fail_each(open_and_merge, &b) > 10);
    free(b.data);
}

TEST(nothing_to_write) {
    imatrix *m;
    ggl_error err = {0};
    REQUIRE(llm_imatrix_new(&m, 0, &err) == GGL_OK);
    CHECK_INT(llm_imatrix_chunk_size(m), IMATRIX_CHUNK);
    CHECK(llm_imatrix_write(m, test_path("m.gguf"), &err) == GGL_USAGE);
    CHECK_HAS(err.msg, "nothing was collected");
    llm_imatrix_free(m);
}
