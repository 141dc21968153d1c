/* Adapters and control vectors: any bytes either open and fit a made-up llama, or are refused with a message that begins
 * with the file's name; a graph that is built with them finishes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/adapter.h"

static llm_arch *arch;
static llm_arch_toy *toy;

static void make_toy(void) {
    ggl_error err = {0};
    if (toy)
        return;
    require(llm_arch_open(&arch, "llama", &err) == GGL_OK);
    toy = llm_arch_toy_new(arch, 0, &err);
    require(toy != NULL);
    llm_arch_toy_freeze(toy);
}

/* Builds the toy's graph with the adapter twice, at two scales. */
static void build(const llm_adapter *a) {
    const llm_adapter_use use[] = {{.adapter = a, .scale = 0.5}, {.adapter = a}};
    const llm_arch_params p = {.size = sizeof p, .adapter = use, .n_adapters = 2};
    ggl_error err = {0};
    ggl_graph *g = ggl_graph_new(NULL);
    require(g != NULL);
    const ggl_status st = llm_arch_build(arch, llm_arch_toy_source(toy), &p, g, NULL, &err);
    if (st == GGL_OK)
        require(ggl_graph_finish(g, &err) == GGL_OK);
    else
        require(err.msg[0] != 0);
    ggl_graph_free(g);
}

/* Opens the bytes as a control vector. */
static void try_control(const uint8_t *data, size_t size) {
    llm_adapter *a;
    ggl_error err = {0};
    if (llm_control_open_memory(&a, data, size, "fuzz", &err) != GGL_OK) {
        require(!a && strncmp(err.msg, "fuzz", 4) == 0);
        return;
    }
    const llm_adapter_info info = llm_adapter_describe(a);
    require(info.n_pairs == 0 && info.n_directions > 0 && info.layer_min >= 1 &&
            info.layer_min <= info.layer_max);
    build(a);
    llm_adapter_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    llm_adapter *a;
    ggl_error err = {0};
    make_toy();
    try_control(data, size);
    if (llm_adapter_open_memory(&a, data, size, "fuzz", &err) != GGL_OK) {
        require(!a && strncmp(err.msg, "fuzz", 4) == 0);
        return 0;
    }
    const llm_adapter_info info = llm_adapter_describe(a);
    require(info.n_pairs > 0 && info.rank_min >= 1 && info.rank_min <= info.rank_max);
    require(llm_adapter_digest((llm_adapter_use){.adapter = a, .scale = 1}, 0) != 0);
    build(a);
    llm_adapter_free(a);
    return 0;
}

/* A pair for a weight of the toy, whose extents it has. */
static void put_pair(ggl_gguf_writer *w, const char *name, int64_t rank) {
    static const float zeros[1 << 16];
    char half[128];
    llm_arch_tensor t = {.name = name};
    const llm_arch_source *s = llm_arch_toy_source(toy);
    if (!s->find_tensor(s->ctx, &t))
        return;
    const bool embedding = strcmp(name, "token_embd.weight") == 0;
    const int64_t in[] = {embedding ? rank : t.ne[0], embedding ? t.ne[1] : rank, t.ne[2], 1};
    const int64_t out[] = {rank, embedding ? t.ne[0] : t.ne[1], t.ne[2], 1};
    require(ggl_extents(in, 0, 3, 1) <= 1 << 16 && ggl_extents(out, 0, 3, 1) <= 1 << 16);
    snprintf(half, sizeof half, "%s.lora_a", name);
    ggl_gguf_put_tensor(w, half, GGL_F32, t.n_dims, in, zeros);
    snprintf(half, sizeof half, "%s.lora_b", name);
    ggl_gguf_put_tensor(w, half, GGL_F32, t.n_dims, out, zeros);
    snprintf(half, sizeof half, "%s.lora_magnitude", name);
    if (!embedding && rank % 2)
        ggl_gguf_put_tensor(w, half, GGL_F32, t.n_dims - 1, &out[1], zeros);
}

/* Directions of the length of the toy's rows, in any order. */
static void put_directions(ggl_gguf_writer *w) {
    static const float x[1 << 10] = {1, -2};
    llm_arch_tensor t = {.name = "output_norm.weight"};
    const llm_arch_source *s = llm_arch_toy_source(toy);
    require(s->find_tensor(s->ctx, &t) && t.ne[0] <= 1 << 10);
    ggl_gguf_put_string(w, "general.architecture", "controlvector", 13);
    ggl_gguf_put_string(w, "controlvector.model_hint", "llama", 5);
    ggl_gguf_put_tensor(w, "direction.1", GGL_F32, 1, (int64_t[]){t.ne[0], 1, 1, 1}, x);
}

/* 0: one pair; 1: one for each kind of use; 2: a control vector. */
bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const names[] = {"blk.0.attn_q.weight", "blk.1.ffn_down.weight",
                                        "token_embd.weight", "output.weight",
                                        "blk.0.ffn_up_exps.weight"};
    const float alpha = 8;
    void *bytes;
    if (k > 2)
        return false;
    make_toy();
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    require(w != NULL);
    if (k == 2)
        put_directions(w);
    else {
        ggl_gguf_put_string(w, "general.type", "adapter", 7);
        ggl_gguf_put_string(w, "adapter.type", "lora", 4);
        ggl_gguf_put_string(w, "general.architecture", "llama", 5);
        ggl_gguf_put(w, "adapter.lora.alpha", GGL_GGUF_F32, false, &alpha, 1);
        for (int i = 0; i < (k ? 5 : 1); i++)
            put_pair(w, names[i], 1 + i);
    }
    require(ggl_gguf_writer_write_memory(w, &bytes, size, NULL) == GGL_OK);
    ggl_gguf_writer_free(w);
    *data = malloc(*size);
    require(*data != NULL);
    memcpy(*data, bytes, *size);
    ggl_free(bytes);
    return true;
}
