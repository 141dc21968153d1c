"""Qwen 3 Next (Qwen team 2025), after transformers' modeling_qwen3_next.py."""
from nano import Weights, add, keys_of
from nano import guess

K_HEADS, V_HEADS, SIZE, TAPS = 2, 6, 10, 4


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
                            "ssm.inner_size": V_HEADS * SIZE, **more}, w)


model("qwen3next", 1111, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14,
                          "rope.dimension_count": 8, "rope.freq_base": 300.0, "full_attention_interval": 3,
                          "expert_feed_forward_length": 22, "expert_shared_feed_forward_length": 30}, n_ff=22, n_shared=30, tied=False)
model("qwen3next-old", 1112, {"norm_top_k_prob": True, "expert_gating_func": 1, "expert_weights_norm": True}, n_kv=4, d=10, old=True, layers="mmma", dt="")
model("qwen3next-draft", 1113, {"attention.head_count_kv": [0, 2, 0, 0], "attention.recurrent_layers": [True, False, True, True], "nextn_predict_layers": 1,
                                "attention.key_length": 14, "expert_weights_scale": 1.4, "rope.scaling.type": "yarn",
                                "rope.scaling.factor": 4.0}, layers="mam", fused=True, draft=1)
guess("qwen3next-draft", 1, keys={"attention.head_count_kv": [0, 2, 0, 2]}, **{"attention.recurrent_layers": [False]})
