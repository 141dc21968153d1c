/* Conversion: a descriptor, the byte 1, config.json. The tensors are always the same few. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "convert/conversion.h"
#include "convert/packed.h"

static const char head[] =
    "{\"a\": {\"dtype\": \"F32\", \"shape\": [6, 4], \"data_offsets\": [0, 96]}, "
    "\"w.weight\": {\"dtype\": \"F16\", \"shape\": [4, 4], \"data_offsets\": [96, 128]}, "
    "\"w.bias\": {\"dtype\": \"BF16\", \"shape\": [4], \"data_offsets\": [128, 136]}, "
    "\"e.0\": {\"dtype\": \"F64\", \"shape\": [4, 1, 2], \"data_offsets\": [136, 200]}, "
    "\"e.1\": {\"dtype\": \"I32\", \"shape\": [2], \"data_offsets\": [200, 208]}, "
    "\"p.i.weight\": {\"dtype\": \"I8\", \"shape\": [4, 32], \"data_offsets\": [208, 336]}, "
    "\"p.i.scales\": {\"dtype\": \"F32\", \"shape\": [2], \"data_offsets\": [336, 344]}, "
    "\"p.z.weight\": {\"dtype\": \"I8\", \"shape\": [0, 4], \"data_offsets\": [344, 344]}, "
    "\"p.z.scales\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [344, 348]}, "
    "\"p.m.weight\": {\"dtype\": \"U32\", \"shape\": [2, 8], \"data_offsets\": [348, 412]}, "
    "\"p.m.scales\": {\"dtype\": \"BF16\", \"shape\": [2, 2], \"data_offsets\": [412, 420]}, "
    "\"p.m.biases\": {\"dtype\": \"BF16\", \"shape\": [2, 2], \"data_offsets\": [420, 428]}, "
    "\"p.x.weight\": {\"dtype\": \"U32\", \"shape\": [2, 8], \"data_offsets\": [428, 492]}, "
    "\"p.x.scales\": {\"dtype\": \"U8\", \"shape\": [2, 2], \"data_offsets\": [492, 496]}}";

enum { N_DATA = 496 };

/* Packs codes in groups where there is a block type for them. */
static void pack(recipe *r) {
    double error;
    size_t bad = 0;
    char blocks[64 * 34];
    if (!llm_packed_of(r))
        return;
    const int type = llm_packed_block_type(r, &error);
    const int64_t n = llm_recipe_count(r);
    if (type >= 0 && n <= 64 * 32)
        llm_packed_pack(r, (ggl_type)type, 0, n, blocks, &bad);
    llm_packed_settle(r);
}

static void convert(const llm_arch *arch, const json_value *config, llm_safetensors *source) {
    arch_conversion c = {.arch = arch, .config = config, .source = source};
    for (c.section = arch->convert; c.section; c.section = c.section->next) {
        float x[64];
        ggl_status s = llm_arch_convert_check_config(&c, NULL);
        s = llm_arch_convert_keys(&c, NULL);
        if (s == GGL_OK)
            s = llm_arch_convert_tensors(&c, NULL);
        for (size_t i = 0; s == GGL_OK && i < c.n_tensor; i++) {
            int64_t n = llm_recipe_count(c.tensor[i].recipe);
            if (llm_recipe_read(c.tensor[i].recipe, n > 64 ? n - 64 : 0, n > 64 ? 64 : n, x,
                                NULL) != GGL_OK)
                abort();
            pack(c.tensor[i].recipe);
        }
        llm_arch_conversion_fini(&c);
        ggl_error err;
        c = (arch_conversion){.arch = arch,
                              .config = config,
                              .source = source,
                              .section = c.section,
                              .collect = true};
        s = llm_arch_convert_keys(&c, &err);
        if (s == GGL_OK)
            s = llm_arch_convert_check_keys(&c, &err);
        if (s == GGL_OK && !c.no_keys)
            s = llm_arch_convert_tensors(&c, &err);
        llm_arch_conversion_fini(&c);
        c = (arch_conversion){
            .arch = arch, .config = config, .source = source, .section = c.section};
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char bytes[8 + sizeof head + N_DATA];
    llm_arch *arch;
    llm_json *config;
    llm_safetensors *source;
    size_t n = 0;
    while (n < size && data[n] != 1)
        n++;
    bytes[0] = (char)((sizeof head - 1) & 0xff);
    bytes[1] = (char)((sizeof head - 1) >> 8);
    memcpy(bytes + 8, head, sizeof head - 1);
    if (n == size || llm_arch_parse(&arch, (const char *)data, n, "fuzz.arch", NULL) != GGL_OK)
        return 0;
    if (llm_json_parse(&config, (const char *)data + n + 1, size - n - 1, "config.json", NULL) ==
        GGL_OK) {
        if (llm_safetensors_open_memory(&source, bytes, 8 + sizeof head - 1 + N_DATA, "x", NULL) !=
            GGL_OK)
            abort();
        convert(arch, &config->root, source);
        llm_safetensors_close(source);
        llm_json_free(config);
    }
    llm_arch_free(arch);
    return 0;
}

#define BEGIN                                                                                      \
    "arch t, u\nlanguage 1\nd = .n\na [d, n_vocab]\nx = a[token]\nw [d, d] bias?\nx = x + "        \
    "linear(x, w)\n"
#define END                                                                                        \
    "\x01{\"n\": 4, \"v\": 6, \"o\": {\"l\": [1, 2, 3, 4], \"s\": \"u\", \"z\": null, \"t\": "     \
    "true}}"

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const seeds[] = {
        BEGIN "logits = linear(x, a)\nconvert A:\n  arch <- config.o.s\n  require config.o.t and "
              "has(config.o), \"no\"\n  .vocab_size <- config.v\n"
              "  .n <- config.n ?? 3\n  a <- \"a\" if config.o.t else none\n  w <- "
              "transpose(pairs(\"none\" ?? \"w\", 2)) * 2 + 1\n  ignore \"e.{e}\", \"p.*\"\n" END,
        BEGIN "f [d] ?\nx = x * f if has(f) else x\nlogits = linear(x, a)\nconvert A:\n  "
              ".vocab_size <- config.v\n  .n <- config.n\n  a <- \"a\"\n"
              "  w <- concat(rows(\"w\", 1, 3), regroup(rows(\"w\", 0, 1), 1, 1))\n  f <- "
              "config.o.l ?? \"e.1\"\n  ignore \"e*\", \"p.*\"\nconvert B:\n"
              "  .vocab_size <- size(config.o.l) + 2\n  .n <- config.o.l[3]\n  a <- stack(\"a\", "
              "6)\n  w <- exp(\"w\" / d)\n" END,
        BEGIN "g [2, d, 2] ?\nlogits = linear(x, a)\nconvert A:\n  .vocab_size <- config.v\n  .n "
              "<- config.n\n  .l <- config.o.l\n  a <- \"a\"\n  w <- \"w\"\n"
              "  g <- stack(\"e.{e}\", 2)\n  ignore \"*\"\n" END,
        BEGIN "logits = linear(x, a)\nconvert A:\n  .vocab_size <- config.v\n  .n <- config.n if "
              "has(\"w\") else rope.theta\n  a <- \"a\"\n  w <- \"w\"\n"
              "  .f <- rope.full_attention.factor ?? none\n  require rope.type in [\"default\", "
              "\"yarn\"]\n  use rope_scaling\n  ignore \"e.{e}\", \"p.*\", config.o\n"
              "\x01{\"n\": 4, \"v\": 6, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2}, "
              "\"max_position_embeddings\": 8, "
              "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"yarn\"}}, \"o\": "
              "{\"x\": [1]}, \"rope_theta\": 3}",
        BEGIN
        "f [64, 2]\ng [32, 4]\nlogits = linear(x * (sum(flat(f)) + sum(flat(g))), a)\n"
        "convert A:\n  .vocab_size <- config.v\n  .n <- config.n\n  a <- \"a\"\n  w <- \"w\"\n"
        "  f <- \"p.m\"\n  g <- concat(rows(\"p.i\", 2, 2), pairs(rows(\"p.i\", 0, 2), 1)) ?? "
        "\"p.z\"\n  ignore \"*\"\n"
        "\x01{\"n\": 4, \"v\": 6, \"quantization\": {\"group_size\": 32, \"bits\": 4, "
        "\"p.m\": {\"group_size\": 32, \"bits\": 4}}}",
        BEGIN "f [64, 2]\nlogits = linear(x * sum(flat(f)), a)\nconvert A:\n  .vocab_size <- "
              "config.v\n  .n <- config.n\n  a <- \"a\"\n  w <- \"w\"\n  f <- \"p.x\"\n  ignore "
              "\"*\"\n\x01{\"n\": 4, \"v\": 6, \"quantization\": {\"mode\": \"mxfp4\"}}",
    };
    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return false;
    *size = strlen(seeds[k]);
    *data = malloc(*size);
    if (!*data)
        abort();
    memcpy(*data, seeds[k], *size);
    return true;
}
