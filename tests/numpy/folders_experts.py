"""Folders of families with experts for ./folders.py: small models laid out as their classes have them."""
from folders import *

N_EXPERT, N_EACH, N_SHARED = 4, 20, 28
EXPERTS = {"num_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH}


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


def olmoe_weights(c, w):
    common_weights(c, w)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        attention_weights(w, p + "self_attn.", c["d"])
        w.vector(p + "self_attn.q_norm.weight", N_HEAD * c["d"], 1.0)
        w.vector(p + "self_attn.k_norm.weight", N_KV * c["d"], 1.0)
        expert_weights(w, p + "mlp.", shared=False)


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


def minicpm_weights(c, w):
    common_weights(c, w)
    for l in range(N_LAYER):
        attention_weights(w, f"model.layers.{l}.self_attn.", c["d"])
        gated_weights(w, f"model.layers.{l}.mlp.", N_FF)


LATENT = {"kv_lora_rank": 20, "qk_nope_head_dim": 10, "qk_rope_head_dim": 8, "v_head_dim": 14, "n_routed_experts": N_EXPERT, "n_shared_experts": 1,
          "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "first_k_dense_replace": 1, "moe_layer_freq": 1}


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


def decoder(c, w, attend, feed):
    x = w["model.embed_tokens.weight"][TOKENS]
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        x = x + attend(p + "self_attn.", rms_norm(x, w[p + "input_layernorm.weight"], EPS))
        x = x + feed(w, p + "mlp.", rms_norm(x, w[p + "post_attention_layernorm.weight"], EPS))
    return linear(rms_norm(x, w["model.norm.weight"], EPS), w.get("lm_head.weight", w["model.embed_tokens.weight"]))


def mimo2(c, w, n_ctx):
    theta, mag = rotation(c, 4, n_ctx)  # 0.3 of heads of 16, rounded down to whole pairs
    near = inverse_frequencies(4, c["swa_rope_theta"])

    def attend(p, h):
        l = int(p.split(".")[2])
        swa = c["hybrid_layer_pattern"][l] == 1
        q, k, v = (split_heads(linear(h, w[f"{p}{x}_proj.weight"]), n) for x, n in (("q", N_HEAD), ("k", N_HEAD if swa else N_KV), ("v", N_HEAD if swa else N_KV)))
        turn = (lambda x: rotate(x, near, True)) if swa else lambda x: rotate(x, theta, True, mag)
        a = attention(turn(q), turn(k), v, window=c["sliding_window"] if swa else None, sinks=w.get(p + "attention_sink_bias"))
        return c["attention_value_scale"] * linear(merge_heads(a), w[p + "o_proj.weight"])

    def feed(w, p, h):
        if p + "gate.weight" not in w:
            return swiglu(w, p, h)
        share = sigmoid(linear(h, w[p + "gate.weight"]))
        of = [best(row, 2) for row in share + w[p + "gate.e_score_correction_bias"]]
        parts = [{e: row[e] / sum(row[es]) for e in es} for row, es in zip(share, of)]
        one = [[w[f"{p}experts.{e}.{name}.weight"] for name in ("gate_proj", "up_proj", "down_proj")] for e in range(N_EXPERT)]
        return experts(h, parts, of, lambda e, x: one[e][2] @ (silu(one[e][0] @ x) * (one[e][1] @ x)))

    return decoder(c, w, attend, feed)


def mimo2_weights(c, w):
    common_weights(c, w)
    for l in range(N_LAYER):
        p = f"model.layers.{l}.self_attn."
        n_kv = N_HEAD if c["hybrid_layer_pattern"][l] else N_KV
        for x, rows, columns in (("q", N_HEAD * 16, N_EMBD), ("k", n_kv * 16, N_EMBD), ("v", n_kv * c["v_head_dim"], N_EMBD), ("o", N_EMBD, N_HEAD * c["v_head_dim"])):
            w.matrix(f"{p}{x}_proj.weight", rows, columns)
        if c["hybrid_layer_pattern"][l]:
            w.vector(p + "attention_sink_bias", N_HEAD)
        p = f"model.layers.{l}.mlp."
        if not c["moe_layer_freq"][l]:
            gated_weights(w, p, N_FF)
            continue
        w.matrix(p + "gate.weight", N_EXPERT, N_EMBD)
        w[p + "gate.e_score_correction_bias"] = np.float32(w.random.normal(size=N_EXPERT) / 3).astype(np.float64)
        for e in range(N_EXPERT):
            gated_weights(w, f"{p}experts.{e}.", N_EACH)


def joined(w):
    """With queries, keys and values in one matrix."""
    out = {}
    for name, t in w.items():
        if name.endswith("q_proj.weight"):
            out[name.replace("q_proj", "qkv_proj")] = np.concatenate([w[name.replace("q_proj", x)] for x in ("q_proj", "k_proj", "v_proj")])
        elif not name.endswith(("k_proj.weight", "v_proj.weight")):
            out[name] = t
    return out


CLASSES = {
    "MiMoV2FlashForCausalLM": ({**{k: v for k, v in llama_config("mimo", d=16, head_dim=16, tied=False, partial=0.3).items() if k != "rms_norm_eps"}, "layernorm_epsilon": EPS,
                                "v_head_dim": 12, "swa_head_dim": 16, "swa_v_head_dim": 12, "swa_num_attention_heads": N_HEAD, "swa_num_key_value_heads": N_HEAD,
                                "swa_rope_theta": 70.0, "sliding_window": 5, "sliding_window_size": 5, "hybrid_layer_pattern": [0, 1, 1], "moe_layer_freq": [0, 0, 1],
                                "attention_value_scale": 0.7, "add_swa_attention_sink_bias": True, "add_full_attention_sink_bias": False, "attention_chunk_size": 5,
                                "n_routed_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "n_shared_experts": None, "n_group": 1,
                                "topk_group": 1, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True, "routed_scaling_factor": None,
                                "attention_bias": False}, mimo2_weights, ["default"], mimo2),
}
CLASSES |= {
    "MiMoV2ForCausalLM": ({**CLASSES["MiMoV2FlashForCausalLM"][0], "layout": joined, "vision_config": {"hidden_size": 8}, "audio_config": {"group_size": 4}, "image_token_id": 39},
                          *CLASSES["MiMoV2FlashForCausalLM"][1:]),
    "Qwen2MoeForCausalLM": (llama_config("qwen2moe", theta=1e6, tied=False, **EXPERTS, shared_expert_intermediate_size=N_SHARED,
                                         norm_topk_prob=False, decoder_sparse_step=1, mlp_only_layers=[]),
                            qwen2moe_weights, EVERY),
    "OlmoeForCausalLM": ({**llama_config("olmoe", tied=False, clip_qkv=1.1, norm_topk_prob=False, num_experts=N_EXPERT, num_experts_per_tok=2), "intermediate_size": N_EACH},
                         olmoe_weights, EVERY),
    "GroveMoeForCausalLM": (llama_config("grove", d=16, head_dim=16, tied=False, **EXPERTS, norm_topk_prob=True, decoder_sparse_step=1,
                                         mlp_only_layers=[], use_sliding_window=False, sliding_window=None, max_window_layers=48),
                            grove_weights, EVERY),
    "MiniCPMForCausalLM": (llama_config("minicpm", scale_emb=3.0, scale_depth=1.4, dim_model_base=24), minicpm_weights, ["default", "linear"]),
    "DeepseekV2ForCausalLM": (llama_config("deepseek2", tied=False, **LATENT, q_lora_rank=None, scoring_func="softmax", topk_method="greedy", n_group=1,
                                           topk_group=1, routed_scaling_factor=1.5, norm_topk_prob=False), deepseek_weights, ["default"]),
    "DeepseekV3ForCausalLM": (llama_config("deepseek3", tied=False, **LATENT, q_lora_rank=18, scoring_func="sigmoid", topk_method="noaux_tc", n_group=2,
                                           topk_group=1, routed_scaling_factor=2.5, norm_topk_prob=True, num_nextn_predict_layers=1), deepseek_weights, ["default", "yarn-latent"]),
    "Qwen3NextForCausalLM": ({**QWEN35, **EXPERTS, "shared_expert_intermediate_size": N_SHARED, "norm_topk_prob": True,
                              "decoder_sparse_step": 1, "mlp_only_layers": [], "intermediate_size": N_FF}, qwen3next_weights, EVERY),
    "Qwen3_5MoeForCausalLM": ({**QWEN35, **EXPERTS, "shared_expert_intermediate_size": N_SHARED}, qwen35moe_weights, ["default", "yarn"]),
}
