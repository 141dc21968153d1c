"""Folders of families with experts for ./folders.py: small models laid out as their classes have them, and forward passes that read
that layout."""
from folders import *

N_EXPERT, N_EACH, N_SHARED = 4, 20, 28
EXPERTS = {"num_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH}


def chosen(w, p, h, normal, stacked=False, names=("gate_proj", "up_proj", "down_proj")):
    """Two experts, by a softmax over all; in matrices of their own, or all of a layer's in one tensor."""
    share = softmax(linear(h, w[p + "gate.weight"]))
    of = [best(row, 2) for row in share]
    weights = [{e: row[e] / (sum(row[i] for i in es) if normal else 1) for e in es} for row, es in zip(share, of)]
    if stacked:
        both, down = w[p + "experts.gate_up_proj"], w[p + "experts.down_proj"]
        gate, up = both[:, :N_EACH], both[:, N_EACH:]
    else:
        gate, up, down = ([w[f"{p}experts.{e}.{name}.weight"] for e in range(N_EXPERT)] for name in names)
    return experts(h, weights, of, lambda e, x: down[e] @ (silu(gate[e] @ x) * (up[e] @ x)))


def with_shared(w, p, h, **more):
    return chosen(w, p, h, **more) + sigmoid(linear(h, w[p + "shared_expert_gate.weight"])) * swiglu(w, p + "shared_expert.", h)


def decoder(c, w, attend, feed, one=0.0):
    x = w["model.embed_tokens.weight"][TOKENS]
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        x = x + attend(p + "self_attn.", rms_norm(x, w[p + "input_layernorm.weight"], EPS))
        x = x + feed(w, p + "mlp.", rms_norm(x, w[p + "post_attention_layernorm.weight"], EPS))
    return linear(rms_norm(x, w["model.norm.weight"], EPS), w.get("lm_head.weight", w["model.embed_tokens.weight"]))


def qwen2moe(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)

    def attend(p, h):
        q, k, v = (split_heads(linear(h, w[f"{p}{x}_proj.weight"], w[f"{p}{x}_proj.bias"]), n)
                   for x, n in (("q", N_HEAD), ("k", N_KV), ("v", N_KV)))
        return linear(merge_heads(attention(rotate(q, theta, True, mag), rotate(k, theta, True, mag), v)), w[p + "o_proj.weight"])

    return decoder(c, w, attend, lambda *a: with_shared(*a, normal=False))


def common_weights(c, w):
    w.matrix("model.embed_tokens.weight", N_VOCAB, N_EMBD)
    w.vector("model.norm.weight", N_EMBD, 1.0)
    if not c["tie_word_embeddings"]:
        w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    for l in range(N_LAYER):
        for name in ("input_layernorm", "post_attention_layernorm"):
            w.vector(f"model.layers.{l}.{name}.weight", N_EMBD, 1.0)


def attention_weights(w, p, d, bias=False):
    for x, rows, columns in (("q", N_HEAD * d, N_EMBD), ("k", N_KV * d, N_EMBD), ("v", N_KV * d, N_EMBD), ("o", N_EMBD, N_HEAD * d)):
        w.matrix(f"{p}{x}_proj.weight", rows, columns)
        if bias and x != "o":
            w.vector(f"{p}{x}_proj.bias", rows)


def gated_weights(w, p, n_ff, names=("gate_proj", "up_proj", "down_proj")):
    for name, shape in zip(names, ((n_ff, N_EMBD), (n_ff, N_EMBD), (N_EMBD, n_ff))):
        w.matrix(f"{p}{name}.weight", *shape)


def expert_weights(w, p, shared=True):
    w.matrix(p + "gate.weight", N_EXPERT, N_EMBD)
    for e in range(N_EXPERT):
        gated_weights(w, f"{p}experts.{e}.", N_EACH)
    if shared:
        gated_weights(w, p + "shared_expert.", N_SHARED)
        w.matrix(p + "shared_expert_gate.weight", 1, N_EMBD)


def qwen2moe_weights(c, w):
    common_weights(c, w)
    for l in range(N_LAYER):
        attention_weights(w, f"model.layers.{l}.self_attn.", c["d"], bias=True)
        expert_weights(w, f"model.layers.{l}.mlp.")


def qwen35moe_weights(c, w):
    llama_weights(c, w)
    for l in range(4):
        p = f"model.layers.{l}.mlp."
        for name in ("gate", "up", "down"):
            del w[f"{p}{name}_proj.weight"]
        w.matrix(p + "gate.weight", N_EXPERT, N_EMBD)
        w.matrix(p + "experts.gate_up_proj", N_EXPERT, 2 * N_EACH, N_EMBD)
        w.matrix(p + "experts.down_proj", N_EXPERT, N_EMBD, N_EACH)
        gated_weights(w, p + "shared_expert.", N_SHARED)
        w.matrix(p + "shared_expert_gate.weight", 1, N_EMBD)


def qwen3next(c, w, n_ctx):
    """Qwen 3.5's layers with queries, keys, values and gates of a key head side by side in one matrix, rates and decays in another."""
    k_heads, v_heads, size, each = 2, 4, 8, 2
    out = dict(w)
    for l in range(3):
        p = f"model.layers.{l}.linear_attn."
        q, k, v, z = np.split(out.pop(p + "in_proj_qkvz.weight").reshape(k_heads, -1, N_EMBD), np.cumsum([size, size, each * size]), axis=1)
        out[p + "in_proj_qkv.weight"] = np.concatenate([part.reshape(-1, N_EMBD) for part in (q, k, v)])
        out[p + "in_proj_z.weight"] = z.reshape(-1, N_EMBD)
        both = out.pop(p + "in_proj_ba.weight").reshape(k_heads, 2, each, N_EMBD)
        for i, name in enumerate("ba"):
            out[f"{p}in_proj_{name}.weight"] = both[:, i].reshape(v_heads, N_EMBD)
    return qwen35({**c, "feed": lambda *a: with_shared(*a, normal=True)}, out, n_ctx)


def qwen3next_weights(c, w):
    llama_weights({**c, "kind": "qwen35"}, w)
    for l in range(4):
        p = f"model.layers.{l}."
        for name in ("gate", "up", "down"):
            del w[f"{p}mlp.{name}_proj.weight"]
        expert_weights(w, p + "mlp.")
        if l < 3:
            for a, b, to in (("qkv", "z", "qkvz"), ("b", "a", "ba")):
                rows = [w.pop(f"{p}linear_attn.in_proj_{name}.weight") for name in (a, b)]
                w[f"{p}linear_attn.in_proj_{to}.weight"] = np.concatenate(rows)


QWEN35 = {k: v for k, v in CLASSES["Qwen3_5ForCausalLM"][0].items() if k != "intermediate_size"}
CLASSES = {
    "Qwen2MoeForCausalLM": (llama_config("qwen2moe", theta=1e6, tied=False, **EXPERTS, shared_expert_intermediate_size=N_SHARED,
                                         norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[]),
                            qwen2moe, qwen2moe_weights, EVERY),
    "Qwen3NextForCausalLM": ({**QWEN35, **EXPERTS, "shared_expert_intermediate_size": N_SHARED, "norm_topk_prob": True,
                              "decoder_sparse_step": 1, "mlp_only_layers": [], "intermediate_size": N_FF}, qwen3next, qwen3next_weights, EVERY),
    "Qwen3_5MoeForCausalLM": ({**QWEN35, **EXPERTS, "shared_expert_intermediate_size": N_SHARED,
                               "feed": lambda *a: with_shared(*a, normal=True, stacked=True)}, qwen35, qwen35moe_weights, ["default", "yarn"]),
}
