"""Qwen 3 Next (Qwen team 2025), after transformers' modeling_qwen3_next.py."""
from mixtures import *
from families import scaled_frequencies
from nano import Weights, add, keys_of, other_names
from nano import guess

K_HEADS, V_HEADS, SIZE, TAPS = 2, 6, 10, 4


def unit(x, eps):
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), eps)


def memory(b, h, eps):
    each = V_HEADS // K_HEADS
    if b("ssm_in") is not None:
        parts = split_heads(linear(h, b("ssm_in")), K_HEADS)
        q, key, v, z = (merge_heads(p) for p in np.split(parts, np.cumsum([SIZE, SIZE, each * SIZE]), axis=-1))
        mixed = np.concatenate([q, key, v], -1)
    else:
        mixed, z = linear(h, b("attn_qkv")), linear(h, b("attn_gate"))
    mixed = silu(causal_conv(mixed, b("ssm_conv1d")))
    q, key, v = np.split(mixed, [K_HEADS * SIZE, 2 * K_HEADS * SIZE], axis=-1)
    of = [i // each for i in range(V_HEADS)]
    q, key, v = unit(split_heads(q, K_HEADS), eps)[:, of], unit(split_heads(key, K_HEADS), eps)[:, of], split_heads(v, V_HEADS)
    rate, decay = (merge_heads(p) for p in np.split(split_heads(linear(h, b("ssm_ba")), K_HEADS), 2, axis=-1))
    y = gated_delta_rule(q, key, v, b("ssm_a", "") * softplus(decay + b("ssm_dt", ".bias")), sigmoid(rate))
    return linear(merge_heads(rms_norm(y, b("ssm_norm"), eps)) * silu(z), b("ssm_out"))


def qwen3next(k, w, tokens, n_ctx):
    eps, n_head, n_kv = k("attention.layer_norm_rms_epsilon"), k("attention.head_count"), np.max(k("attention.head_count_kv", 4))
    d = k("attention.key_length", k("embedding_length") // n_head)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d))

    def attend(b, h, l):
        if b("attn_q") is None:
            return memory(b, h, eps)
        both = split_heads(linear(h, b("attn_q")), n_head)
        q, gate = both[..., :d], both[..., d:]
        key, v = (split_heads(linear(h, b(name)), n_kv) for name in ("attn_k", "attn_v"))
        q = rotate(rms_norm(q, b("attn_q_norm"), eps), theta, True, mag)
        key = rotate(rms_norm(key, b("attn_k_norm"), eps), theta, True, mag)
        return linear(merge_heads(attention(q, key, v) * sigmoid(gate)), b("attn_output"))

    def feed(b, h, l):
        return routed(k, b, h, normal=True) + sigmoid(linear(h, b("ffn_gate_inp_shexp")[None])) * shared(b, h)

    return decoder(k, w, tokens, attend, feed, second="post_attention_norm")


def model(name, seed, more={}, n_kv=2, d=14, layers="mma", old=False, tied=True, fused=False, n_ff=26, n_shared=52, draft=0, dt=".bias"):
    n_embd, n_head, n_expert = 40, 4, 5
    wide = (2 * K_HEADS + V_HEADS) * SIZE
    w = Weights(seed)
    w.embedding(86, n_embd, tied)
    for l, kind in enumerate(layers):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd)
        if kind == "a":
            w.attention(l, n_embd, n_head, n_kv, d)
            w.matrix(b + "attn_q", 2 * n_head * d, n_embd, gain=1.5)
            w.norm(b + "attn_q_norm", d)
            w.norm(b + "attn_k_norm", d)
        else:
            for part, n in (("ssm_in", wide + V_HEADS * SIZE),) if old else (("attn_qkv", wide), ("attn_gate", V_HEADS * SIZE)):
                w.matrix(b + part, n, n_embd, gain=1.5)
            w.matrix(b + "ssm_ba", 2 * V_HEADS, n_embd)
            w.put(b + "ssm_conv1d.weight", 0.7 * w.random.normal(size=(wide, TAPS)))
            w.vector(b + "ssm_dt" + dt, V_HEADS, 0.5)
            w.put(b + "ssm_a", -w.random.uniform(0.1, 1.0, V_HEADS))
            w.norm(b + "ssm_norm", SIZE)
            w.matrix(b + "ssm_out", n_embd, V_HEADS * SIZE)
        w.norm(b + "post_attention_norm", n_embd)
        w.experts(l, n_embd, n_ff, n_expert)
        w.shared_expert(l, n_embd, n_shared)
        w.vector(b + "ffn_gate_inp_shexp.weight", n_embd)
    for l in range(draft):
        w.norm(f"blk.{len(layers) + l}.attn_norm", n_embd)
    w.norm("output_norm", n_embd)
    if fused:
        w.fuse_experts()
    add(name, "qwen3next", {**keys_of(len(layers) + draft, n_embd, 52, n_head, 1e-2), "expert_count": n_expert, "expert_used_count": 2,
                            "ssm.group_count": K_HEADS, "ssm.time_step_rank": V_HEADS, "ssm.state_size": SIZE, "ssm.conv_kernel": TAPS,
                            "ssm.inner_size": V_HEADS * SIZE, **more}, w, other_names(qwen3next))


model("qwen3next", 1111, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14,
                          "rope.dimension_count": 8, "rope.freq_base": 300.0, "full_attention_interval": 3,
                          "expert_feed_forward_length": 22, "expert_shared_feed_forward_length": 30}, n_ff=22, n_shared=30, tied=False)
model("qwen3next-old", 1112, {"norm_top_k_prob": True, "expert_gating_func": 1, "expert_weights_norm": True}, n_kv=4, d=10, old=True, layers="mmma", dt="")
model("qwen3next-draft", 1113, {"attention.head_count_kv": [0, 2, 0, 0], "attention.recurrent_layers": [True, False, True, True], "nextn_predict_layers": 1,
                                "attention.key_length": 14, "expert_weights_scale": 1.4, "rope.scaling.type": "yarn",
                                "rope.scaling.factor": 4.0}, layers="mam", fused=True, draft=1)
guess("qwen3next-draft", 1, keys={"attention.head_count_kv": [0, 2, 0, 2]}, **{"attention.recurrent_layers": [False]})
