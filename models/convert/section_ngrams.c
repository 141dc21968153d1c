/* Values of convert sections for tables whose rows hashes of tokens choose: which tokens are alike, the primes that hashes are taken modulo, and the numbers
 * that numpy's generator drew for them. */
#include <inttypes.h>
#include <string.h>

#include "common/utf8.h"
#include "conversion.h"
#include "ggl/internal/alloc.h"
#include "hf_tokenizer_impl.h"
#include "text/byte_spelling.h"
#include "text/steps.h"

enum { MOST_PRIMES = 4096, MOST_SEED = INT32_MAX };

static bool whole_argument(arch_eval *ev, const arch_expr *e, int k, double least, double most,
                           int64_t *out) {
    const arch_expr *x = e->arg[k].value;
    const arch_value v = llm_arch_eval_expr(ev, x);
    return v.kind != VAL_FAIL && llm_arch_want_whole(ev, x, &v, least, most, out);
}

static arch_value list_of(const arch_value *item, int64_t n) {
    return (arch_value){.kind = VAL_LIST, .item = item, .n = (size_t)n};
}

/* primes(n, from): the first n primes from a number on. */
arch_value llm_arch_convert_primes(arch_eval *ev, const arch_expr *e) {
    int64_t n, from;
    if (!whole_argument(ev, e, 0, 1, MOST_PRIMES, &n) ||
        !whole_argument(ev, e, 1, 2, (double)INT32_MAX, &from))
        return ARCH_FAIL;
    arch_value *item = ggl_arena_alloc(&ev->arena, (size_t)n, sizeof *item);
    if (!item)
        return llm_arch_nomem(ev);
    for (int64_t i = 0, x = from; i < n; x++) {
        int64_t by = 2;
        while (by * by <= x && x % by != 0)
            by++;
        if (!llm_arch_step(ev, e->mark, 1 + by / 64))
            return ARCH_FAIL;
        if (by * by > x)
            item[i++] = llm_arch_number((double)x);
    }
    return list_of(item, n);
}

/* --- numbers that numpy draws --------------------------------------------------------------------- */

/* A number of 128 bits. */
typedef struct wide {
    uint64_t hi, lo;
} wide;

static wide product(uint64_t a, uint64_t b) {
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, mid = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)mid;
    return (wide){a1 * b1 + (mid >> 32) + (other >> 32), other << 32 | (uint32_t)low};
}

static wide sum(wide a, wide b) {
    const uint64_t lo = a.lo + b.lo;
    return (wide){a.hi + b.hi + (lo < a.lo), lo};
}

/* PCG64 (O'Neill 2014), as numpy.random.default_rng has it: XSL-RR of 128 bits. */
typedef struct generator {
    wide state, step;
} generator;

static uint64_t next(generator *g) {
    const wide by = {0x2360ed051fc65da4u, 0x4385df649fccf645u};
    wide s = product(g->state.lo, by.lo);
    s.hi += g->state.hi * by.lo + g->state.lo * by.hi;
    g->state = sum(s, g->step);
    const uint64_t x = g->state.hi ^ g->state.lo;
    const unsigned turn = (unsigned)(g->state.hi >> 58);
    return x >> turn | x << (-turn & 63);
}

static uint32_t mixed(uint32_t x, uint32_t *constant, uint32_t by) {
    x ^= *constant;
    *constant *= by;
    x *= *constant;
    return x ^ x >> 16;
}

/* Of a seed below 2^32, by numpy's SeedSequence. */
static generator seeded(uint32_t seed) {
    uint32_t pool[4], word[8], c = 0x43b0d7e5u;
    for (int i = 0; i < 4; i++)
        pool[i] = mixed(i == 0 ? seed : 0, &c, 0x931e8875u);
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) {
            if (from == to)
                continue;
            const uint32_t x =
                0xca01f9ddu * pool[to] - 0x4973f715u * mixed(pool[from], &c, 0x931e8875u);
            pool[to] = x ^ x >> 16;
        }
    c = 0x8b51f9ddu;
    for (int i = 0; i < 8; i++)
        word[i] = mixed(pool[i % 4], &c, 0x58f38dedu);
    uint64_t part[4];
    for (int i = 0; i < 4; i++)
        part[i] = (uint64_t)word[2 * i + 1] << 32 | word[2 * i];
    generator g = {.state = {0, 0}, .step = {part[2] << 1 | part[3] >> 63, part[3] << 1 | 1}};
    next(&g);
    g.state = sum(g.state, (wide){part[0], part[1]});
    next(&g);
    return g;
}

/* A number below `most`, which is above 2^32, with equal chances (Lemire 2019). */
static uint64_t below(generator *g, uint64_t most) {
    wide m = product(next(g), most);
    while (m.lo < most && m.lo < -most % most)
        m = product(next(g), most);
    return m.hi;
}

/* drawn(seed, i, most): number i of numpy.random.default_rng(seed).integers(0, most, n). */
arch_value llm_arch_convert_drawn(arch_eval *ev, const arch_expr *e) {
    int64_t seed, i, most;
    if (!whole_argument(ev, e, 0, 0, MOST_SEED, &seed) ||
        !whole_argument(ev, e, 1, 0, MOST_PRIMES, &i) ||
        !whole_argument(ev, e, 2, 4294967297.0, 9007199254740992.0, &most) ||
        !llm_arch_step(ev, e->mark, i + 1))
        return ARCH_FAIL;
    generator g = seeded((uint32_t)seed);
    for (; i > 0; i--)
        (void)below(&g, (uint64_t)most);
    return llm_arch_number((double)below(&g, (uint64_t)most));
}

/* --- tokens that are alike ------------------------------------------------------------------------ */

static const char folds[] =
    "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFKC\"}, {\"type\": \"NFD\"}, "
    "{\"type\": \"StripAccents\"}, "
    "{\"type\": \"Lowercase\"}, {\"type\": \"Replace\", \"pattern\": {\"Regex\": \"[ "
    "\\\\t\\\\r\\\\n]+\"}, \"content\": \" \"}, "
    "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"^ $\"}, \"content\": \"\\ue000\"}, "
    "{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}, "
    "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\\ue000\"}, \"content\": \" \"}]}";

/* Tokens by what they have in common. */
typedef struct alike {
    ggl_arena arena;
    step_list fold;
    step_memory memory;
    step_text text[2];
    int bytes[0x180]; /* of characters of byte-level vocabularies; -1: it stands for none */
    ggl_str *key;     /* [n_keys]: those of the kinds so far */
    size_t n_keys;
    ggl_index index;
} alike;

/* Writes the bytes of a byte-level token; a token with another character stands for itself. Returns their number. */
static size_t spelled(const alike *a, ggl_str piece, char *out) {
    size_t n = 0;
    for (ggl_str left = piece; left.n > 0;) {
        const uint32_t c = llm_take_char(&left);
        if (c >= 0x180 || a->bytes[c] < 0) {
            memcpy(out, piece.s, piece.n);
            return piece.n;
        }
        out[n++] = (char)a->bytes[c];
    }
    return n;
}

/* True if no character is broken, and none is the one that stands for broken ones. */
static bool is_text(const char *s, size_t n) {
    bool whole = true;
    for (ggl_str left = {s, n}; left.n > 0 && whole;) {
        const uint32_t c = llm_take_char(&left);
        whole = c < 0x110000 && c != 0xfffd;
    }
    return whole;
}

/* Finds the number of the token's kind. */
static ggl_status kind_of(alike *a, ggl_str piece, char *buf, size_t *kind, ggl_error *err) {
    ggl_str key = {buf, spelled(a, piece, buf)};
    step_line line = {0};
    if (!is_text(key.s, key.n))
        key = piece;
    else if (llm_steps_normalize(&a->fold, &a->memory, &(step_line){.s = key.s, .n = key.n},
                                 a->text, &line, err) != GGL_OK)
        return err->status;
    else if (line.n > 0)
        key = (ggl_str){line.s, line.n};
    *kind = ggl_index_find(&a->index, a->key, key);
    if (*kind != SIZE_MAX)
        return GGL_OK;
    const char *own = ggl_arena_strndup(&a->arena, key.s, key.n);
    if (!own)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    a->key[ *kind = a->n_keys++] = (ggl_str){own, key.n};
    ggl_index_put(&a->index, a->key, *kind);
    return GGL_OK;
}

static ggl_status begin_alike(alike *a, int64_t n, ggl_error *err) {
    llm_json *json = NULL;
    char s[2];
    for (int c = 0; c < 0x180; c++)
        a->bytes[c] = -1;
    for (unsigned b = 0; b < 256; b++) {
        ggl_str one = {s, llm_spell_byte(b, s)};
        a->bytes[llm_take_char(&one)] = (int)b;
    }
    ggl_status st = llm_json_parse(&json, folds, sizeof folds - 1, "folds", err);
    step_reader r = {.arena = &a->arena, .err = err};
    if (st == GGL_OK)
        st = llm_steps_read_normalizer(&a->fold, &r, &json->root);
    llm_json_free(json); /* strings of steps are copied: see below */
    if (st == GGL_OK && !(a->key = ggl_calloc((size_t)n, sizeof *a->key)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory");
    return st == GGL_OK
               ? ggl_index_init(&a->index, (size_t)n, sizeof *a->key, GGL_INDEX_STRINGS, err)
               : st;
}

static ggl_status find_alike(alike *a, const llm_hf_tokenizer *t, int64_t n, arch_value *item,
                             ggl_error *err) {
    size_t longest = 1, cap = 0;
    char *buf = NULL;
    for (int64_t i = 0; i < n; i++)
        longest = t->piece[i].n > longest ? t->piece[i].n : longest;
    if (!ggl_grow(&buf, &cap, longest, 1))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status s = GGL_OK;
    for (int64_t i = 0; i < n && s == GGL_OK; i++) {
        size_t kind = 0;
        if (i < t->n_ids) /* the others are in no text */
            s = kind_of(a, t->piece[i], buf, &kind, err);
        item[i] = llm_arch_number((double)kind);
    }
    ggl_free(buf);
    return s;
}

/* tokens_alike(n, kinds): for each of n tokens the number of its kind, in the order in which kinds appear. */
arch_value llm_arch_convert_alike(arch_eval *ev, const arch_expr *e) {
    int64_t n, kinds;
    if (!whole_argument(ev, e, 0, 1, (double)(1 << 24), &n) ||
        !whole_argument(ev, e, 1, 1, (double)n, &kinds) || !llm_arch_step(ev, e->mark, n))
        return ARCH_FAIL;
    arch_value *item = ggl_arena_alloc(&ev->arena, (size_t)n, sizeof *item);
    alike *a = ggl_calloc(1, sizeof *a);
    if (!item || !a) {
        ggl_free(a);
        return llm_arch_nomem(ev);
    }
    llm_hf_tokenizer *t = NULL;
    ggl_error err = {0};
    const llm_hf_vocab vocab = {.n = n};
    ggl_status s = llm_hf_tokenizer_open(&t, ev->conv->folder ? ev->conv->folder : ".",
                                         ev->conv->config, &vocab, &err);
    if (s == GGL_OK && (!t || !t->bytes))
        s = ggl_fail(&err, GGL_UNSUPPORTED, "%s",
                     t ? "the tokenizer is not byte-level BPE" : "the folder has no tokenizer");
    s = s == GGL_OK ? begin_alike(a, n, &err) : s;
    s = s == GGL_OK ? find_alike(a, t, n, item, &err) : s;
    if (s == GGL_OK && a->n_keys != (size_t)kinds)
        s = ggl_fail(&err, GGL_FORMAT,
                     "the tokenizer's tokens are of %zu kinds, and of %" PRId64
                     " by config.json: hashes would choose other rows",
                     a->n_keys, kinds);
    llm_hf_tokenizer_free(t);
    llm_step_memory_fini(&a->memory);
    ggl_free(a->text[0].s);
    ggl_free(a->text[1].s);
    ggl_index_fini(&a->index);
    ggl_free(a->key);
    ggl_arena_fini(&a->arena);
    ggl_free(a);
    return s == GGL_OK ? list_of(item, n)
                       : llm_arch_error(ev, e->mark, "%s(..): %s", e->name, err.msg);
}
