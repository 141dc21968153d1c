#include "checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json_write.h"
#include "common/little_endian.h"
#include "common/text_file.h"
#include "ggl/graph.h"

enum { HEADER_0 = 28, HEADER = 256, N_FIELDS = 7 };
enum { DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, SEQ_LEN }; /* places in the header */

typedef struct header {
    int version;
    int64_t field[N_FIELDS]; /* vocab_size is positive */
    bool shared;             /* the classifier is tok_embeddings */
    int64_t group;           /* version 2: numbers with one factor; else 0 */
    size_t size;             /* bytes */
} header;

/* The fields' names, and the most that each may be. These limits keep all sizes below 2^62 bytes, and
 * tell a file of version 0, which has no magic number, from other files. */
static const struct {
    const char *name;
    int64_t most;
} fields[N_FIELDS] = {{"dim", 1 << 17},        {"hidden_dim", 1 << 19}, {"n_layers", 1 << 12},
                      {"n_heads", 1 << 12},    {"n_kv_heads", 1 << 12}, {"vocab_size", 1 << 24},
                      {"max_seq_len", 1 << 24}};

/* --- the header ------------------------------------------------------------------------------- */

static int32_t read_i32(const unsigned char *at) {
    return (int32_t)llm_little_endian(at, 4);
}

static bool has_magic(const unsigned char *bytes, size_t n) {
    return n >= 4 && memcmp(bytes, "24ka", 4) == 0;
}

static ggl_status check_fields(const header *h, ggl_error *err) {
    const int64_t *x = h->field;
    for (int k = 0; k < N_FIELDS; k++)
        if (x[k] < 1 || x[k] > fields[k].most)
            return ggl_fail(err, GGL_FORMAT,
                            "the header's %s is %" PRId64 "; it should be 1 to %" PRId64,
                            fields[k].name, x[k], fields[k].most);
    if (x[DIM] % x[HEADS] != 0 || x[DIM] / x[HEADS] % 2 != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "the header's dim, %" PRId64 ", is not %" PRId64
                        " heads (n_heads) of an even size",
                        x[DIM], x[HEADS]);
    if (x[HEADS] % x[KV_HEADS] != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "the header's n_heads, %" PRId64
                        ", is not a multiple of n_kv_heads, %" PRId64,
                        x[HEADS], x[KV_HEADS]);
    return GGL_OK;
}

/* Reads the header from the file's first n bytes. */
static ggl_status read_header(header *h, const unsigned char *bytes, size_t n, ggl_error *err) {
    const bool magic = has_magic(bytes, n);
    *h = (header){.size = magic ? HEADER : HEADER_0};
    if (n < h->size)
        return ggl_fail(err, GGL_FORMAT, "the file has %zu bytes, too few for its header of %zu", n,
                        h->size);
    h->version = magic ? read_i32(bytes + 4) : 0;
    if (magic && h->version != 1 && h->version != 2)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "this is a llama2.c checkpoint of version %d; 0, 1 and 2 are supported",
                        h->version);
    for (int k = 0; k < N_FIELDS; k++)
        h->field[k] = read_i32(bytes + (magic ? 8 : 0) + 4 * k);
    h->shared = magic ? bytes[36] == 1 : h->field[VOCAB] > 0;
    if (!magic && h->field[VOCAB] < 0)
        h->field[VOCAB] = -h->field[VOCAB];
    if (magic && bytes[36] > 1)
        return ggl_fail(err, GGL_FORMAT,
                        "the header's flag of a shared classifier is %d, not 0 or 1", bytes[36]);
    h->group = h->version == 2 ? read_i32(bytes + 37) : 0;
    if (h->version == 2 && h->group < 1)
        return ggl_fail(err, GGL_FORMAT, "the header's size of a group is %" PRId64, h->group);
    return check_fields(h, err);
}

/* --- the order of the weights ----------------------------------------------------------------- */

enum { ONE = N_FIELDS, KV, HALF_HEADS, N_EXTENTS }; /* extents besides the header's fields */

typedef struct kind {
    const char *name;  /* of the tensor; in layers, after "layers.N."; NULL: numbers to skip */
    bool layers;       /* one for each layer */
    int rows, columns; /* rows ONE: a vector */
} kind;

enum { EMBEDDING, WQ, WK, WV, WO, W1, W2, W3, ATTENTION_NORM, FFN_NORM, NORM, ROPE, CLASSIFIER };
static const kind kinds[] = {[EMBEDDING] = {"tok_embeddings", false, VOCAB, DIM},
                             [ATTENTION_NORM] = {"attention_norm", true, ONE, DIM},
                             [WQ] = {"attention.wq", true, DIM, DIM},
                             [WK] = {"attention.wk", true, KV, DIM},
                             [WV] = {"attention.wv", true, KV, DIM},
                             [WO] = {"attention.wo", true, DIM, DIM},
                             [FFN_NORM] = {"ffn_norm", true, ONE, DIM},
                             [W1] = {"feed_forward.w1", true, HIDDEN, DIM},
                             [W2] = {"feed_forward.w2", true, DIM, HIDDEN},
                             [W3] = {"feed_forward.w3", true, HIDDEN, DIM},
                             [NORM] = {"norm", false, ONE, DIM},
                             [ROPE] = {NULL, false, SEQ_LEN, HALF_HEADS},
                             [CLASSIFIER] = {"output", false, VOCAB, DIM}};

/* The order of the kinds in a version's file. The classifier is always the last one. */
typedef struct order {
    int n;
    unsigned char kind[14];
} order;
static const order order_0 = {14,
                              {EMBEDDING, ATTENTION_NORM, WQ, WK, WV, WO, FFN_NORM, W1, W2, W3,
                               NORM, ROPE, ROPE, CLASSIFIER}},
                   order_1 = {12,
                              {ATTENTION_NORM, FFN_NORM, NORM, EMBEDDING, WQ, WK, WV, WO, W1, W2,
                               W3, CLASSIFIER}}; /* versions 1 and 2 */

/* A walk over all weights; `st` gets the tensors, or is NULL to find only the size. */
typedef struct walk {
    const header *h;
    int64_t extent[N_EXTENTS];
    const char *data;
    uint64_t
        at; /* bytes; beyond what a size_t of 32 bits holds, too, before the file's size is known to fit */
    llm_safetensors *st;
} walk;

/* Adds a tensor of n_dims dimensions, and moves on by its size. */
static ggl_status add(walk *w, const char *name, const char *end, const char *dtype, int n_dims,
                      const int64_t *ne, size_t each, ggl_error *err) {
    st_tensor t = {.dtype = dtype, .type = each == 4 ? GGL_F32 : -1, .n_dims = n_dims};
    uint64_t size = each;
    for (int d = 0; d < LLM_ST_MAX_DIMS; d++) {
        t.ne[d] = d < n_dims ? ne[d] : 1;
        size *= (uint64_t)t.ne[d];
    }
    if (w->st) {
        const char *text = ggl_arena_printf(&w->st->arena, "%s%s", name, end);
        if (!text)
            return ggl_fail(err, GGL_NOMEM, "out of memory for the table of tensors");
        t.name = (ggl_str){text, strlen(text)};
        t.data = w->data + w->at;
        t.size = (size_t)size;
        w->st->tensor[w->st->n_tensor++] = t;
    }
    w->at += size;
    return GGL_OK;
}

static ggl_status add_weight(walk *w, const kind *k, int64_t layer, ggl_error *err) {
    const int64_t ne[] = {w->extent[k->columns], w->extent[k->rows]}, group = w->h->group;
    const int64_t count = ggl_extents(ne, 0, 2, 1), n_groups = group ? count / group : 0;
    char name[64];
    if (!k->name) {
        w->at += (uint64_t)count * 4;
        return GGL_OK;
    }
    if (k->layers)
        snprintf(name, sizeof name, "layers.%" PRId64 ".%s", layer, k->name);
    else
        snprintf(name, sizeof name, "%s", k->name);
    if (k->rows == ONE || !group)
        return add(w, name, ".weight", "F32", k->rows == ONE ? 1 : 2, ne, 4, err);
    if (count % group != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "the %" PRId64
                        " numbers of %s are not a multiple of the header's size of a "
                        "group, %" PRId64,
                        count, name, group);
    const ggl_status s = add(w, name, ".weight", "I8", 2, ne, 1, err);
    return s == GGL_OK ? add(w, name, ".scales", "F32", 1, &n_groups, 4, err) : s;
}

static ggl_status walk_all(walk *w, ggl_error *err) {
    const header *h = w->h;
    const order *o = h->version == 0 ? &order_0 : &order_1;
    ggl_status s = GGL_OK;
    memcpy(w->extent, h->field, sizeof h->field);
    w->extent[ONE] = 1;
    w->extent[KV] = h->field[DIM] / h->field[HEADS] * h->field[KV_HEADS];
    w->extent[HALF_HEADS] = h->field[DIM] / h->field[HEADS] / 2;
    w->at = h->size;
    for (int i = 0; s == GGL_OK && i < o->n - h->shared; i++) {
        const kind *k = &kinds[o->kind[i]];
        for (int64_t l = 0; s == GGL_OK && l < (k->layers ? h->field[LAYERS] : 1); l++)
            s = add_weight(w, k, l, err);
    }
    return s;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Writes the header as a config.json. */
static ggl_status make_config(llm_json **out, const header *h, ggl_error *err) {
    llm_json_out text = {0};
    char number[64];
    llm_json_put_text(&text, "{\"architectures\": [\"Llama2cCheckpoint\"], ");
    for (int k = 0; k < N_FIELDS; k++) {
        snprintf(number, sizeof number, "\"%s\": %" PRId64 ", ", fields[k].name, h->field[k]);
        llm_json_put_text(&text, number);
    }
    llm_json_put_text(&text,
                      h->shared ? "\"shared_classifier\": true}" : "\"shared_classifier\": false}");
    if (text.failed) {
        ggl_free(text.s);
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    ggl_status s = llm_json_parse(out, text.s, text.n, "header", err);
    if (s == GGL_OK)
        (*out)->text = text.s; /* freed with the document */
    else
        ggl_free(text.s);
    return s;
}

/* Adds all tensors of the file, whose size must be the one that the header calls for. */
static ggl_status add_tensors(llm_safetensors *st, const header *h, const char *data, size_t size,
                              ggl_error *err) {
    walk w = {.h = h, .data = data};
    ggl_status s = walk_all(&w, err);
    if (s == GGL_OK && w.at != size)
        s = ggl_fail(
            err, GGL_FORMAT,
            "the file has %zu bytes, but a llama2.c checkpoint of version %d with its header "
            "(dim %" PRId64 ", %" PRId64 " layers, %" PRId64 " tokens) has %" PRIu64 "; %s",
            size, h->version, h->field[DIM], h->field[LAYERS], h->field[VOCAB], w.at,
            size < w.at ? "it may be truncated: download it again" : "something follows its end");
    if (s != GGL_OK)
        return s;
    const size_t most = 2 * (9 * (size_t)h->field[LAYERS] + 3);
    if (!ggl_grow(&st->tensor, &st->cap_tensor, most, sizeof *st->tensor))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the table of tensors");
    w = (walk){.h = h, .data = data, .st = st};
    s = walk_all(&w, err);
    return s == GGL_OK ? llm_safetensors_index(st, err) : s;
}

static ggl_status read_checkpoint(llm_safetensors *st, llm_json **config, const void *data,
                                  size_t size, ggl_error *err) {
    header h;
    ggl_status s = read_header(&h, data, size, err);
    if (s == GGL_OK)
        s = add_tensors(st, &h, data, size, err);
    return s == GGL_OK ? make_config(config, &h, err) : s;
}

ggl_status llm_checkpoint_open(llm_safetensors **out, llm_json **config, const char *path,
                               const ggl_file_how *how, const ggl_str *bytes, ggl_error *err) {
    return llm_safetensors_open_other(out, config, path, how, bytes, read_checkpoint, err);
}

bool llm_checkpoint_is(const char *path) {
    unsigned char bytes[HEADER];
    header h;
    const size_t n = llm_read_head(path, bytes, sizeof bytes);
    return has_magic(bytes, n) || (n >= HEADER_0 && read_header(&h, bytes, n, NULL) == GGL_OK);
}
