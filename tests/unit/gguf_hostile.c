/* A table of files that are wrong, each with the words its message must hold. */
#include "gguf_bytes.h"
#include "ggl/internal/gguf.h"
#include "test.h"

/* The name's length brings the data to an odd multiple of the alignment. */
static void name_of_length(gguf_bytes *b, uint32_t alignment, uint32_t type) {
    char name[16] = "";
    for (size_t n = 1; n < 9; n++) {
        name[n - 1] = 'x';
        b->n = 0;
        put_header(b, 3, 1, 1);
        put_key_u32(b, "general.alignment", alignment);
        put_tensor(b, name, 1, 1, 1, type, 0);
        if (b->n % 8 == alignment)
            break;
    }
    put_zeros(b, 8);
}

static void one_tensor(gguf_bytes *b, uint32_t n_dims, uint64_t ne0, uint64_t ne1, uint32_t type,
                       uint64_t offset) {
    put_header(b, 3, 1, 0);
    put_tensor(b, "blk.0.attn_q.weight", n_dims, ne0, ne1, type, offset);
    put_align(b, 32);
    put_zeros(b, 256);
}

#define HOSTILE(name, status, words, ...)                                                          \
    static void build_##name(gguf_bytes *b) {                                                      \
        __VA_ARGS__;                                                                               \
    }
#include "gguf_hostile.def"
#undef HOSTILE

typedef struct hostile {
    const char *name;
    void (*build)(gguf_bytes *b);
    ggl_status status;
    const char *words;
} hostile;

static const hostile table[] = {
#define HOSTILE(name, status, words, ...) {#name, build_##name, GGL_##status, words},
#include "gguf_hostile.def"
};

static void check_hostile(const hostile *h) {
    gguf_bytes *b = calloc(1, sizeof *b);
    h->build(b);
    unsigned char *copy = malloc(b->n); /* its end is known to the address sanitizer */
    memcpy(copy, b->data, b->n);
    ggl_gguf *f = NULL;
    ggl_error err = {0};
    int before = test_failures;
    CHECK_INT(ggl_gguf_open_memory(&f, copy, b->n, "bad.gguf", &err), h->status);
    CHECK(!f);
    CHECK_INT(err.status, h->status);
    CHECK(strncmp(err.msg, "bad.gguf: ", 10) == 0);
    CHECK(!strchr(err.msg, '\n'));
    CHECK_HAS(err.msg, h->words);
    CHECK_INT(ggl_gguf_open_memory(&f, copy, b->n, "bad.gguf", NULL), h->status);
    if (test_failures > before)
        fprintf(stderr, "in '%s'\n", h->name);
    free(copy);
    free(b);
}

TEST(hostile_files) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check_hostile(&table[i]);
}

/* Every byte of a good file, set to each of some values: an error or not, but never a crash; and
 * what opens can be read to its end. */
TEST(every_byte_changed) {
    static gguf_bytes b;
    put_good_file(&b, 3);
    static const unsigned char values[] = {0, 1, 2, 8, 9, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < b.n; at++) {
        unsigned char old = b.data[at];
        for (size_t k = 0; k < sizeof values; k++) {
            ggl_gguf *f;
            b.data[at] = values[k];
            unsigned char *copy = malloc(b.n);
            memcpy(copy, b.data, b.n);
            if (ggl_gguf_open_memory(&f, copy, b.n, "changed", NULL) == GGL_OK) {
                unsigned sum = 0;
                for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
                    const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
                    for (size_t j = 0; j < t->size; j++)
                        sum += ((const unsigned char *)t->data)[j];
                }
                for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
                    const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
                    ggl_str s;
                    for (uint64_t j = 0; j < v->n && ggl_gguf_string(v, j, &s); j++)
                        for (size_t c = 0; c < s.n; c++)
                            sum += (unsigned char)s.s[c];
                }
                CHECK(sum != 1); /* so that it is used */
                ggl_gguf_close(f);
            }
            free(copy);
        }
        b.data[at] = old;
    }
}
