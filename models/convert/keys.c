#include "keys.h"

#include "ggl/internal/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Keys that are f32 even if their value is whole, as attention.scale = 12, because GGUF keys are
 * typed and other engines check the type. All other whole values are integers. The patterns
 * cover all keys that llama.cpp's converter writes as f32. */
static const char *const float_keys[] = {"*_epsilon",
                                         "*_eps",
                                         "*freq_base*",
                                         "*softcapping",
                                         "*_sigmoid_capping",
                                         "*_scale",
                                         "*.attention.scale",
                                         "*.scale_linear",
                                         "*.rope.scaling.*factor*",
                                         "*.rope.scaling.alpha",
                                         "*.yarn_*",
                                         "*.max_alibi_bias",
                                         "*.clamp_kqv",
                                         "*.xielu.*",
                                         "xielu.*",
                                         "*.gate_lower_bound",
                                         "*.hyper_connection.magnitude",
                                         "*.activation.situ_*",
                                         "*.swiglu_clamp_*",
                                         "*.image_mean",
                                         "*.image_std"};

/* Keys whose numbers have 64 bits however small they are, for the same reason. */
static const char *const wide_keys[] = {"*.ple.layer_multipliers", "*.ple.head_offsets",
                                        "*.ple.head_vocab_sizes"};

static bool is_one_of(const char *const *pattern, size_t n, const char *name) {
    for (size_t k = 0; k < n; k++)
        if (arch_match(pattern[k], name, strlen(name)))
            return true;
    return false;
}

ggl_gguf_type llm_convert_number_type(const converted_key *k) {
    const llm_arch_item *item = k->key.handle;
    double lo = 0, hi = 0;
    bool whole = !is_one_of(float_keys, sizeof float_keys / sizeof *float_keys, k->name);
    for (uint64_t i = 0; i < k->key.n; i++) {
        whole = whole && item[i].number == floor(item[i].number);
        lo = item[i].number < lo ? item[i].number : lo;
        hi = item[i].number > hi ? item[i].number : hi;
    }
    if (!whole || lo < -0x1p53 || hi > 0x1p53)
        return GGL_GGUF_F32;
    if (lo >= 0 && is_one_of(wide_keys, sizeof wide_keys / sizeof *wide_keys, k->name))
        return GGL_GGUF_U64;
    if (k->key.is_list || lo < 0)
        return lo < INT32_MIN || hi > INT32_MAX ? GGL_GGUF_I64 : GGL_GGUF_I32;
    return hi > UINT32_MAX ? GGL_GGUF_U64 : GGL_GGUF_U32;
}

static void put_number(char *to, ggl_gguf_type type, double x) {
    int32_t i32 = type == GGL_GGUF_I32 ? (int32_t)x : 0;
    uint32_t u32 = type == GGL_GGUF_U32 ? (uint32_t)x : 0;
    int64_t i64 = type == GGL_GGUF_I64 || type == GGL_GGUF_U64 ? (int64_t)x : 0;
    float f32 = (float)x;
    if (type == GGL_GGUF_F32)
        memcpy(to, &f32, 4);
    else if (type == GGL_GGUF_I32)
        memcpy(to, &i32, 4);
    else if (type == GGL_GGUF_U32)
        memcpy(to, &u32, 4);
    else
        memcpy(to, &i64, 8);
}

ggl_status llm_convert_put_key(ggl_gguf_writer *w, const converted_key *k, ggl_error *err) {
    const llm_arch_item *item = k->key.handle;
    size_t n = (size_t)k->key.n;
    char *buf = ggl_calloc(n + 1, sizeof(ggl_str));
    if (!buf)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (k->key.type == LLM_ARCH_STRING) {
        ggl_str *s = (ggl_str *)(void *)buf;
        for (size_t i = 0; i < n; i++)
            s[i] = item[i].string;
        if (k->key.is_list)
            ggl_gguf_put_strings(w, k->name, s, n);
        else
            ggl_gguf_put_string(w, k->name, s[0].s, s[0].n);
    } else if (k->key.type == LLM_ARCH_BOOL) {
        for (size_t i = 0; i < n; i++)
            buf[i] = item[i].flag;
        ggl_gguf_put(w, k->name, GGL_GGUF_BOOL, k->key.is_list, buf, n);
    } else {
        ggl_gguf_type type = llm_convert_number_type(k);
        size_t size = type == GGL_GGUF_I64 || type == GGL_GGUF_U64 ? 8 : 4;
        for (size_t i = 0; i < n; i++)
            put_number(buf + i * size, type, item[i].number);
        ggl_gguf_put(w, k->name, type, k->key.is_list, buf, n);
    }
    ggl_free(buf);
    return GGL_OK;
}

const char *llm_convert_type_text(const converted_key *k) {
    static const char *const names[][2] = {
        [GGL_GGUF_U32] = {"u32", "[u32]"},          [GGL_GGUF_I32] = {"i32", "[i32]"},
        [GGL_GGUF_F32] = {"f32", "[f32]"},          [GGL_GGUF_BOOL] = {"bool", "[bool]"},
        [GGL_GGUF_STRING] = {"string", "[string]"}, [GGL_GGUF_U64] = {"u64", "[u64]"},
        [GGL_GGUF_I64] = {"i64", "[i64]"}};
    const ggl_gguf_type type = k->key.type == LLM_ARCH_STRING ? GGL_GGUF_STRING
                               : k->key.type == LLM_ARCH_BOOL ? GGL_GGUF_BOOL
                                                              : llm_convert_number_type(k);
    return names[type][k->key.is_list];
}

static void item_text(const converted_key *k, uint64_t i, char *buf, size_t size) {
    const llm_arch_item *item = &((const llm_arch_item *)k->key.handle)[i];
    if (k->key.type == LLM_ARCH_STRING)
        snprintf(buf, size, "\"%.*s\"", (int)ggl_utf8_cut(item->string.s, item->string.n, 30),
                 item->string.s);
    else if (k->key.type == LLM_ARCH_BOOL)
        snprintf(buf, size, "%s", item->flag ? "true" : "false");
    else
        snprintf(buf, size, "%.10g", item->number);
}

const char *llm_convert_value_text(const converted_key *k, char *buf, size_t size) {
    char item[40];
    size_t used = 0;
    if (!k->key.is_list) {
        item_text(k, 0, buf, size);
        return buf;
    }
    used = (size_t)snprintf(buf, size, "[");
    for (uint64_t i = 0; i < k->key.n && i < 3; i++) {
        item_text(k, i, item, sizeof item);
        used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "", item);
    }
    snprintf(buf + used, size - used, k->key.n > 3 ? ", ..] of %" PRIu64 : "]", k->key.n);
    return buf;
}
