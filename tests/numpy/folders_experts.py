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


def olmoe(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)

    def attend(p, h):
        q, k, v = (linear(h, w[f"{p}{x}_proj.weight"]) for x in "qkv")
        q, k = rms_norm(q, w[p + "q_norm.weight"], EPS), rms_norm(k, w[p + "k_norm.weight"], EPS)
        q, k, v = (split_heads(np.clip(y, -c["clip_qkv"], c["clip_qkv"]), n) for y, n in ((q, N_HEAD), (k, N_KV), (v, N_KV)))
        return linear(merge_heads(attention(rotate(q, theta, True, mag), rotate(k, theta, True, mag), v)), w[p + "o_proj.weight"])

    return decoder(c, w, attend, lambda *a: chosen(*a, normal=False))


def olmoe_weights(c, w):
    common_weights(c, w)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        attention_weights(w, p + "self_attn.", c["d"])
        w.vector(p + "self_attn.q_norm.weight", N_HEAD * c["d"], 1.0)
        w.vector(p + "self_attn.k_norm.weight", N_KV * c["d"], 1.0)
        expert_weights(w, p + "mlp.", shared=False)


def grove(c, w, n_ctx):
    """Qwen 3's mixture; experts 0 and 1, 2 and 3 bring a small one along."""
    theta, mag = rotation(c, c["d"], n_ctx)

    def attend(p, h):
        q, k, v = (split_heads(linear(h, w[f"{p}{x}_proj.weight"]), n) for x, n in (("q", N_HEAD), ("k", N_KV), ("v", N_KV)))
        q, k = rms_norm(q, w[p + "q_norm.weight"], EPS), rms_norm(k, w[p + "k_norm.weight"], EPS)
        return linear(merge_heads(attention(rotate(q, theta, True, mag), rotate(k, theta, True, mag), v)), w[p + "o_proj.weight"])

    def feed(w, p, h):
        beside = {f"{p}experts.{e}.{part}": w[f"{p}chunk_experts.{e // 2}.{part}"] for e in range(N_EXPERT)
                  for part in ("gate_proj.weight", "up_proj.weight", "down_proj.weight")}
        return chosen(w, p, h, True) + 0.05 * chosen({**w, **beside}, p, h, True)

    return decoder(c, w, attend, feed)


def grove_weights(c, w):
    common_weights(c, w)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        attention_weights(w, p + "self_attn.", c["d"])
        for x in "qk":
            w.vector(f"{p}self_attn.{x}_norm.weight", c["d"], 1.0)
        expert_weights(w, p + "mlp.", shared=False)
        w.vector(p + "mlp.expert_bias", N_EXPERT)  # a buffer that is not used
        for e in range(N_EXPERT // 2):
            gated_weights(w, f"{p}mlp.chunk_experts.{e}.", c["d"])
            w[f"{p}mlp.chunk_experts.{e}.down_proj.weight"] *= 20  # times 0.05: as much as the experts


def minicpm(c, w, n_ctx):
    theta, mag = rotation(c, c["d"], n_ctx)
    part = c["scale_depth"] / math.sqrt(N_LAYER)
    x = w["model.embed_tokens.weight"][TOKENS] * c["scale_emb"]
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        h = rms_norm(x, w[p + "input_layernorm.weight"], EPS)
        q, k, v = (split_heads(linear(h, w[f"{p}self_attn.{n}_proj.weight"]), heads) for n, heads in (("q", N_HEAD), ("k", N_KV), ("v", N_KV)))
        a = attention(rotate(q, theta, True, mag), rotate(k, theta, True, mag), v)
        x = x + part * linear(merge_heads(a), w[p + "self_attn.o_proj.weight"])
        x = x + part * swiglu(w, p + "mlp.", rms_norm(x, w[p + "post_attention_layernorm.weight"], EPS))
    x = rms_norm(x, w["model.norm.weight"], EPS) / (N_EMBD / c["dim_model_base"])
    return linear(x, w.get("lm_head.weight", w["model.embed_tokens.weight"]))


def minicpm_weights(c, w):
    common_weights(c, w)
    for l in range(N_LAYER):
        attention_weights(w, f"model.layers.{l}.self_attn.", c["d"])
        gated_weights(w, f"model.layers.{l}.mlp.", N_FF)


LATENT = {"kv_lora_rank": 20, "qk_nope_head_dim": 10, "qk_rope_head_dim": 8, "v_head_dim": 14, "n_routed_experts": N_EXPERT, "n_shared_experts": 1,
          "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "first_k_dense_replace": 1, "moe_layer_freq": 1}


def deepseek(c, w, n_ctx):
    """DeepSeek 2 and 3: latent attention; a softmax and the best two, or a sigmoid, a bias for the choice, and the best group of two."""
    rot, d, r = c["qk_rope_head_dim"], c["qk_nope_head_dim"], c["kv_lora_rank"]
    theta, _ = rotation(c, rot, n_ctx)
    three = c["kind"] == "deepseek3"
    factor = c["rope"].get("factor", 1.0)
    scale = (1 + 0.1 * c["rope"].get("mscale_all_dim", 0.0) * math.log(factor)) ** 2 / math.sqrt(d + rot)

    def attend(p, h):
        if three:
            q = linear(rms_norm(linear(h, w[p + "q_a_proj.weight"]), w[p + "q_a_layernorm.weight"], EPS), w[p + "q_b_proj.weight"])
        else:
            q = linear(h, w[p + "q_proj.weight"])
        q = split_heads(q, N_HEAD)
        low = linear(h, w[p + "kv_a_proj_with_mqa.weight"])
        both = split_heads(linear(rms_norm(low[:, :r], w[p + "kv_a_layernorm.weight"], EPS), w[p + "kv_b_proj.weight"]), N_HEAD)
        k_rot = np.repeat(rotate(low[:, None, r:], theta, False), N_HEAD, 1)
        q = np.concatenate([q[..., :d], rotate(q[..., d:], theta, False)], -1)
        a = attention(q, np.concatenate([both[..., :d], k_rot], -1), both[..., d:], scale=scale)
        return linear(merge_heads(a), w[p + "o_proj.weight"])

    def feed(w, p, h):
        if p + "gate.weight" not in w:
            return swiglu(w, p, h)
        s = linear(h, w[p + "gate.weight"])
        share = sigmoid(s) if three else softmax(s)
        of = []
        for row in share + w[p + "gate.e_score_correction_bias"] if three else share:
            pair = 2 * int(row[2:].sum() > row[:2].sum())  # two groups of two experts, of which one is kept
            of.append([pair, pair + 1] if three else best(row, 2))
        weights = [{e: c["routed_scaling_factor"] * row[e] / (sum(row[i] for i in es) if three else 1) for e in es} for row, es in zip(share, of)]
        part = [{name: w[f"{p}experts.{e}.{name}_proj.weight"] for name in ("gate", "up", "down")} for e in range(N_EXPERT)]
        y = experts(h, weights, of, lambda e, x: part[e]["down"] @ (silu(part[e]["gate"] @ x) * (part[e]["up"] @ x)))
        return y + swiglu(w, p + "shared_experts.", h)

    return decoder(c, w, attend, feed)


def deepseek_weights(c, w):
    d, rot, r, dv = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["kv_lora_rank"], c["v_head_dim"]
    common_weights(c, w)
    for l in range(N_LAYER + bool(c.get("q_lora_rank"))):
        p = f"model.layers.{l}."
        if l == N_LAYER:  # the draft layer
            w.vector(p + "enorm.weight", N_EMBD)
            continue
        if c.get("q_lora_rank"):
            w.matrix(p + "self_attn.q_a_proj.weight", c["q_lora_rank"], N_EMBD)
            w.vector(p + "self_attn.q_a_layernorm.weight", c["q_lora_rank"], 1.0)
            w.matrix(p + "self_attn.q_b_proj.weight", N_HEAD * (d + rot), c["q_lora_rank"])
        else:
            w.matrix(p + "self_attn.q_proj.weight", N_HEAD * (d + rot), N_EMBD)
        w.matrix(p + "self_attn.kv_a_proj_with_mqa.weight", r + rot, N_EMBD)
        w.vector(p + "self_attn.kv_a_layernorm.weight", r, 1.0)
        w.matrix(p + "self_attn.kv_b_proj.weight", N_HEAD * (d + dv), r)
        w.matrix(p + "self_attn.o_proj.weight", N_EMBD, N_HEAD * dv)
        if l == 0:
            gated_weights(w, p + "mlp.", N_FF)
            continue
        expert_weights(w, p + "mlp.", shared=False)
        gated_weights(w, p + "mlp.shared_experts.", N_EACH)
        if c.get("q_lora_rank"):
            w.vector(p + "mlp.gate.e_score_correction_bias", N_EXPERT)


QWEN35 = {k: v for k, v in CLASSES["Qwen3_5ForCausalLM"][0].items() if k != "intermediate_size"}
CLASSES = {
    "Qwen2MoeForCausalLM": (llama_config("qwen2moe", theta=1e6, tied=False, **EXPERTS, shared_expert_intermediate_size=N_SHARED,
                                         norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[]),
                            qwen2moe, qwen2moe_weights, EVERY),
    "OlmoeForCausalLM": ({**llama_config("olmoe", tied=False, clip_qkv=1.1, norm_topk_prob=False, num_experts=N_EXPERT, num_experts_per_tok=2), "intermediate_size": N_EACH},
                         olmoe, olmoe_weights, EVERY),
    "GroveMoeForCausalLM": (llama_config("grove", d=16, head_dim=16, tied=False, **EXPERTS, norm_topk_prob=True, decoder_sparse_step=1,
                                         mlp_only_layers=[], use_sliding_window=False, sliding_window=None, max_window_layers=48),
                            grove, grove_weights, EVERY),
    "MiniCPMForCausalLM": (llama_config("minicpm", scale_emb=3.0, scale_depth=1.4, dim_model_base=24), minicpm, minicpm_weights, ["default", "linear"]),
    "DeepseekV2ForCausalLM": (llama_config("deepseek2", tied=False, **LATENT, q_lora_rank=None, scoring_func="softmax", topk_method="greedy", n_group=1,
                                           topk_group=1, routed_scaling_factor=1.5, norm_topk_prob=False), deepseek, deepseek_weights, ["default"]),
    "DeepseekV3ForCausalLM": (llama_config("deepseek3", tied=False, **LATENT, q_lora_rank=18, scoring_func="sigmoid", topk_method="noaux_tc", n_group=2,
                                           topk_group=1, routed_scaling_factor=2.5, norm_topk_prob=True, num_nextn_predict_layers=1), deepseek,
                              deepseek_weights, ["default", "yarn-latent"]),
    "Qwen3NextForCausalLM": ({**QWEN35, **EXPERTS, "shared_expert_intermediate_size": N_SHARED, "norm_topk_prob": True,
                              "decoder_sparse_step": 1, "mlp_only_layers": [], "intermediate_size": N_FF}, qwen3next, qwen3next_weights, EVERY),
    "Qwen3_5MoeForCausalLM": ({**QWEN35, **EXPERTS, "shared_expert_intermediate_size": N_SHARED,
                               "feed": lambda *a: with_shared(*a, normal=True, stacked=True)}, qwen35, qwen35moe_weights, ["default", "yarn"]),
}
