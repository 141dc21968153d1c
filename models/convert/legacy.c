#include "legacy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/json_write.h"
#include "common/little_endian.h"
#include "common/mel_bands.h"
#include "common/text_file.h"
#include "ggl/internal/show.h"
#include "ggl/internal/types.h"
#include "hf_tokenizer.h"

enum { N_FIELDS = 11, BANDS = 4 + 4 * N_FIELDS, TOKENS = BANDS + 8 };
enum { RATE = 16000, WINDOW = 400, N_BIN = WINDOW / 2 + 1 };
enum { MOST_TOKEN = 256, MOST_NAME = 500, MOST_DIMS = 4, QUANT_VERSION = 2 };

/* The header's fields, and the most that each may be: with these, no product of two is too large. */
enum { VOCAB, STATE = 6, HEADS, LAYERS, MELS, FTYPE };
static const struct {
    const char *name;
    int32_t most;
} fields[N_FIELDS] = {
    {"n_vocab", 1 << 24},      {"n_audio_ctx", 1 << 20},   {"n_audio_state", 1 << 17},
    {"n_audio_head", 1 << 12}, {"n_audio_layer", 1 << 12}, {"n_text_ctx", 1 << 20},
    {"n_text_state", 1 << 17}, {"n_text_head", 1 << 12},   {"n_text_layer", 1 << 12},
    {"n_mels", 4096},          {"ftype", INT32_MAX}};

typedef struct reader {
    const char *data;
    size_t size, at;
    int32_t field[N_FIELDS];
    llm_safetensors *st;
} reader;

#define TRUNCATED "; the file may be truncated: download it again"

static int32_t i32_at(const char *at) {
    return (int32_t)llm_little_endian(at, 4);
}

/* True if the file has n more bytes. */
static bool has(const reader *r, size_t n) {
    return n <= r->size - r->at;
}

static int32_t next_i32(reader *r) {
    r->at += 4;
    return i32_at(r->data + r->at - 4);
}

/* --- the header ------------------------------------------------------------------------------- */

static ggl_status read_fields(reader *r, ggl_error *err) {
    if (r->size < TOKENS + 4)
        return ggl_fail(err, GGL_FORMAT, "the file has %zu bytes, too few for its header" TRUNCATED,
                        r->size);
    r->at = 4;
    for (int k = 0; k < N_FIELDS; k++) {
        const int32_t x = r->field[k] = next_i32(r);
        if (x < (k != FTYPE) || x > fields[k].most)
            return ggl_fail(err, GGL_FORMAT,
                            "the header's %s is %" PRId32 "; it should be %d to %" PRId32,
                            fields[k].name, x, k != FTYPE, fields[k].most);
    }
    const int32_t type = r->field[FTYPE] % 1000, version = r->field[FTYPE] / 1000;
    if (type > 1 && version != QUANT_VERSION)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "its tensors are quantized in version %" PRId32
                        " of the types, and only version %d, of May 2023, is supported: quantize "
                        "the model again, or download it anew",
                        version, QUANT_VERSION);
    return GGL_OK;
}

/* True if the bands are Slaney's, up to the rounding of the program that computed them in f32. */
static bool are_usual(const reader *r, const char *bands) {
    bool same = true;
    double want[N_BIN];
    for (int b = 0; same && b < r->field[MELS]; b++) {
        llm_mel_band(LLM_MEL_SLANEY, RATE, WINDOW, r->field[MELS], b, want);
        for (int k = 0; same && k < N_BIN; k++) {
            float got;
            memcpy(&got, bands + 4 * (b * N_BIN + k), sizeof got);
            same = fabs((double)got - want[k]) <= 0x1p-22 * want[k] + 1e-10;
        }
    }
    return same;
}

static ggl_status add(reader *r, const st_tensor *t, ggl_error *err) {
    llm_safetensors *st = r->st;
    if (!t->name.s || !ggl_grow(&st->tensor, &st->cap_tensor, st->n_tensor + 1, sizeof *t))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the table of tensors");
    st->tensor[st->n_tensor++] = *t;
    return GGL_OK;
}

static ggl_status read_bands(reader *r, ggl_error *err) {
    const int32_t n_mel = next_i32(r), n_bin = next_i32(r);
    if (n_mel != r->field[MELS] || n_bin != N_BIN)
        return ggl_fail(err, GGL_FORMAT,
                        "the spectrogram has %" PRId32 " bands of %" PRId32
                        " numbers; it should have %" PRId32 " (n_mels) of %d",
                        n_mel, n_bin, r->field[MELS], N_BIN);
    const size_t size = (size_t)n_mel * N_BIN * 4;
    if (!has(r, size))
        return ggl_fail(err, GGL_FORMAT,
                        "the bands of the spectrogram have %zu bytes, but %zu follow" TRUNCATED,
                        size, r->size - r->at);
    const char *bands = r->data + r->at;
    r->at += size;
    const st_tensor t = {.name = {"mel_filters", 11},
                         .dtype = "F32",
                         .type = GGL_F32,
                         .n_dims = 2,
                         .ne = {N_BIN, n_mel, 1, 1, 1, 1, 1, 1},
                         .data = bands,
                         .size = size};
    return are_usual(r, bands) ? GGL_OK : add(r, &t, err);
}

/* --- tokens ----------------------------------------------------------------------------------- */

static ggl_status skip_tokens(reader *r, ggl_error *err) {
    if (!has(r, 4))
        return ggl_fail(err, GGL_FORMAT, "the number of tokens is missing" TRUNCATED);
    const int32_t n = next_i32(r);
    if (n < 0 || n > r->field[VOCAB])
        return ggl_fail(err, GGL_FORMAT,
                        "the file has %" PRId32 " tokens; it should be 0 to %" PRId32 " (n_vocab)",
                        n, r->field[VOCAB]);
    for (int32_t i = 0; i < n; i++) {
        const bool starts = has(r, 4);
        const uint32_t len = starts ? (uint32_t)next_i32(r) : 0;
        if (len > MOST_TOKEN)
            return ggl_fail(err, GGL_LIMIT,
                            "token %" PRId32 " has %" PRIu32 " bytes; at most %d are supported", i,
                            len, MOST_TOKEN);
        if (!starts || !has(r, len))
            return ggl_fail(err, GGL_FORMAT,
                            "the file ends at token %" PRId32 " of %" PRId32 TRUNCATED, i, n);
        r->at += len;
    }
    return GGL_OK;
}

ggl_status llm_legacy_tokens(const void *data, ggl_arena *arena, ggl_str **token, int64_t *n,
                             ggl_error *err) {
    const char *at = (const char *)data + TOKENS;
    at += (size_t)i32_at(at - 8) * N_BIN * 4;
    *n = i32_at(at);
    at += 4;
    *token = ggl_arena_alloc(arena, (size_t)*n + 1, sizeof **token);
    if (!*token)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %" PRId64 " tokens", *n);
    for (int64_t i = 0; i < *n; i++) {
        const size_t len = (size_t)llm_little_endian(at, 4);
        (*token)[i] = (ggl_str){at + 4, len};
        at += 4 + len;
    }
    return GGL_OK;
}

bool llm_legacy_find_specials(int64_t n_vocab, legacy_specials *out) {
    enum { OTHERS = 8 }; /* the first two, and the six between languages and timestamps */
    out->languages = LEGACY_LANGUAGES - (n_vocab < 51866); /* the last one came with 51866 tokens */
    out->end = n_vocab - out->languages - OTHERS - LLM_HF_TIMES;
    return out->end > 0 && n_vocab <= 51866;
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* Reads the extents, and sets the size. */
static ggl_status read_shape(reader *r, st_tensor *t, ggl_error *err) {
    int64_t count = 1;
    const ggl_type_info *type = ggl_type_get(t->type);
    for (int d = 0; d < LLM_ST_MAX_DIMS; d++)
        t->ne[d] = d < t->n_dims ? next_i32(r) : 1;
    for (int d = 0; d < t->n_dims; d++) {
        if (t->ne[d] < 1 || count > INT64_MAX / t->ne[d])
            return ggl_fail(err, GGL_FORMAT, "its dimension %d of %" PRId64 " is %s", d, t->ne[d],
                            t->ne[d] < 1 ? "not positive" : "too large");
        count *= t->ne[d];
    }
    if (t->ne[0] % type->block != 0)
        return ggl_fail(err, GGL_FORMAT,
                        "its rows have %" PRId64
                        " numbers, which are no whole blocks of %s, %" PRId64
                        " each: whoever made the file chose a type that does not fit",
                        t->ne[0], type->name, type->block);
    return ggl_row_size_checked((ggl_type)t->type, count, &t->size)
               ? GGL_OK
               : ggl_fail(err, GGL_LIMIT, "it is too large");
}

static ggl_status read_tensor(reader *r, ggl_error *err) {
    const char *start = r->data + r->at;
    if (!has(r, 12))
        return ggl_fail(err, GGL_FORMAT,
                        "%zu bytes follow tensor %zu, too few for another one" TRUNCATED,
                        r->size - r->at, r->st->n_tensor);
    const int32_t n_dims = next_i32(r), n_name = next_i32(r), type = next_i32(r);
    const ggl_type_info *info = ggl_type_get(type);
    if (n_dims < 1 || n_dims > MOST_DIMS || n_name < 1 || n_name > MOST_NAME)
        return ggl_fail(err, GGL_FORMAT,
                        "at byte %zu, a tensor should begin, but it would have %" PRId32
                        " dimensions and a name of %" PRId32 " bytes: the file is damaged",
                        (size_t)(start - r->data), n_dims, n_name);
    if (!has(r, 4 * (size_t)n_dims + (size_t)n_name))
        return ggl_fail(err, GGL_FORMAT, "the file ends in the name of a tensor" TRUNCATED);
    st_tensor t = {.type = type, .n_dims = n_dims};
    const char *name = r->data + r->at + 4 * n_dims;
    char shown[4 * 120 + 1];
    ggl_show(shown, sizeof shown, name, ggl_utf8_cut(name, (size_t)n_name, 120));
    if (!info || !ggl_type_has_products(info->type))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "tensor '%s' has the type %" PRId32 ", which is unknown", shown, type);
    if (memchr(name, 0, (size_t)n_name))
        return ggl_fail(err, GGL_FORMAT, "the name of tensor '%s' has a NUL", shown);
    t.dtype = info->type == GGL_F32 ? "F32" : info->type == GGL_F16 ? "F16" : info->name;
    const ggl_status s = read_shape(r, &t, err);
    if (s != GGL_OK)
        return ggl_within(err, s, "tensor '%s'", shown);
    r->at += (size_t)n_name;
    if (!has(r, t.size))
        return ggl_fail(err, GGL_FORMAT,
                        "tensor '%s' has %zu bytes of type %s, but %zu follow" TRUNCATED, shown,
                        t.size, info->name, r->size - r->at);
    t.data = r->data + r->at;
    r->at += t.size;
    t.name = (ggl_str){ggl_arena_strndup(&r->st->arena, name, (size_t)n_name), (size_t)n_name};
    return add(r, &t, err);
}

static ggl_status read_all(reader *r, ggl_error *err) {
    ggl_status s = read_fields(r, err);
    if (s == GGL_OK)
        s = read_bands(r, err);
    if (s == GGL_OK)
        s = skip_tokens(r, err);
    while (s == GGL_OK && r->at < r->size)
        s = read_tensor(r, err);
    return s == GGL_OK ? llm_safetensors_index(r->st, err) : s;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Writes the header as a config.json. */
static ggl_status make_config(llm_json **out, const reader *r, ggl_error *err) {
    llm_json_out text = {0};
    char number[64];
    legacy_specials specials;
    llm_json_put_text(&text, "{\"architectures\": [\"LegacySpeechModel\"]");
    for (int k = 0; k < FTYPE; k++) {
        snprintf(number, sizeof number, ", \"%s\": %" PRId32, fields[k].name, r->field[k]);
        llm_json_put_text(&text, number);
    }
    if (llm_legacy_find_specials(r->field[VOCAB], &specials)) {
        snprintf(number, sizeof number, ", \"start_of_transcript\": %" PRId64, specials.end + 1);
        llm_json_put_text(&text, number);
    }
    const char *heads =
        llm_legacy_heads(r->field[LAYERS], r->field[HEADS], r->field[STATE], r->field[VOCAB]);
    if (heads)
        llm_json_format(&text, ", 'alignment_heads': [%s]", heads);
    llm_json_put_text(&text, "}");
    ggl_status s = text.failed ? ggl_fail(err, GGL_NOMEM, "out of memory")
                               : llm_json_parse(out, text.s, text.n, "header", err);
    if (s == GGL_OK)
        (*out)->text = text.s; /* freed with the document */
    else
        ggl_free(text.s);
    return s;
}

static ggl_status read_legacy(llm_safetensors *st, llm_json **config, const void *data, size_t size,
                              ggl_error *err) {
    reader r = {.data = data, .size = size, .st = st};
    const ggl_status s = read_all(&r, err);
    return s == GGL_OK ? make_config(config, &r, err) : s;
}

ggl_status llm_legacy_open(llm_safetensors **out, llm_json **config, const char *path,
                           const ggl_file_how *how, const ggl_str *bytes, ggl_error *err) {
    return llm_safetensors_open_other(out, config, path, how, bytes, read_legacy, err);
}

bool llm_legacy_is(const char *path) {
    char bytes[TOKENS];
    return llm_read_head(path, bytes, sizeof bytes) == sizeof bytes &&
           memcmp(bytes, "lmgg", 4) == 0 && i32_at(bytes + 4 + 4 * MELS) == i32_at(bytes + BANDS) &&
           i32_at(bytes + BANDS) > 0;
}
