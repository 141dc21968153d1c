"""Step 3.5 Flash (StepFun 2026; modeling_step3p5): windows, gated heads, experts with limits."""
from kin import *
from nano import guess


def model(name, seed, more, heads, kv, near, d=16, dv=None, n_dense=1, normed="qk", gate=True, bias=True, factors=0, draft=0, fused=False, tied=False):
    w, n_expert, n_each, n_shared = Weights(seed), 6, 22, 26
    w.embedding(N_VOCAB, N_EMBD, tied)
    if factors:
        w.factors("rope_freqs", factors)
    for l in range(len(near)):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        w.attention(l, N_EMBD, heads[l], kv[l], d, dv)
        for part in normed:
            w.norm(f"{b}attn_{part}_norm", d)
        if fused:
            w.put(b + "attn_qkv.weight", np.concatenate([w.pop(f"{b}attn_{part}.weight") for part in "qkv"]))
        if gate:
            w.matrix(b + "attn_gate", heads[l], N_EMBD)
        w.norm(b + "ffn_norm", N_EMBD)
        if l < n_dense:
            w.gated(l, N_EMBD, N_FF)
        else:
            w.experts(l, N_EMBD, n_each, n_expert)
            w.shared_expert(l, N_EMBD, n_shared)
            if bias:
                w.vector(b + "exp_probs_b.bias", n_expert, 0.5)
    for l in range(draft):
        w.norm(f"blk.{len(near) + l}.attn_norm", N_EMBD)
    w.norm("output_norm", N_EMBD)
    keys = {**keys_of(len(near) + draft, N_EMBD, N_FF, heads, EPS), "attention.head_count_kv": kv, "attention.key_length": d, "attention.value_length": dv,
            "attention.sliding_window": 6, "attention.sliding_window_pattern": near, "expert_count": n_expert, "expert_used_count": 3,
            "expert_feed_forward_length": n_each, "expert_shared_feed_forward_length": n_shared, **more}
    add(name, "step35", {key: v for key, v in keys.items() if v is not None}, w)


model("step35", 1651, {"rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 16, "swiglu_clamp_exp": [0.0, 0.4, 0.0, 0.3],
                       "swiglu_clamp_shexp": [0.5, 0.0, 0.4, 0.0], "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 1.5,
                       "leading_dense_block_count": 1, "moe_every_n_layers": 1, "nextn_predict_layers": 1},
      [4, 6, 6, 2], [2, 2, 1, 2], [False, True, True], factors=8, draft=1)
model("step35-draft", 1655, {"rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 16, "expert_gating_func": 2, "nextn_predict_layers": 1,
                             "attention.sliding_window_pattern": [False, True, True, True], "expert_weights_norm": True, "swiglu_clamp_exp": [0.0, 0.4, 0.0, 0.3]},
      [4, 6, 6, 6], [2, 2, 1, 1], [False, True, True], draft=1)
guess("step35-draft")
guess("step35-draft", layer=2, keys={"nextn_predict_layers": 3, "block_count": 6})
model("step35-fused", 1652, {"rope.dimension_count": 16, "rope.dimension_count_swa": 8, "expert_gating_func": 1, "rope.freq_base": 300.0}, [4, 2], [4, 1], [True, False], d=20, dv=10,
      fused=True, n_dense=0, normed="", gate=False, bias=False, tied=True)
model("step35-plain", 1653, {"attention.head_count_kv": None, **YARN}, [4, 3], [4, 3], [True, False], n_dense=0)
model("step35-common", 1654, {"attention.value_length": 16, "rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "rope.dimension_count": 16, "rope.dimension_count_swa": 16,
                              "swiglu_clamp_exp": [0.0, 0.4, 0.0, 0.3], "swiglu_clamp_shexp": [0.5, 0.0, 0.4, 0.0], "expert_gating_func": 2,
                              "expert_weights_norm": True, "expert_weights_scale": 1.5, "leading_dense_block_count": 1},
      [4, 6, 6, 2], [2, 2, 2, 2], [False, True, True, False])
