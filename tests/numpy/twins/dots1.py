"""dots.llm1 (rednote-hilab 2025), after transformers' modeling_dots1.py, and Hunyuan 3 (Tencent 2026)."""
from mixtures import *
from nano import guess


nano("dots1", "dots1", 1151, {"expert_weights_norm": True, "expert_weights_scale": 2.5, "expert_gating_func": 2,
     "leading_dense_block_count": 1, "expert_shared_count": 2}, n_dense=1, n_shared=44, choice_bias=True, qk_norm="head")
nano("dots1-groups", "dots1", 1152, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10,
     "rope.dimension_count": 8, "rope.freq_base": 300.0, "expert_group_count": 3, "expert_group_used_count": 2, "rope.scaling.type": "yarn",
     "rope.scaling.factor": 4.0, "expert_shared_count": 1}, n_kv=2, d=14, dv=10, qk_norm="head", n_shared=22, fused=True, tied=True, bias="qkvo")
nano("dots1-softmax", "dots1", 1153, {"expert_gating_func": 1, "expert_shared_count": 1}, n_shared=22, qk_norm="head")


def plain_name(w, l):
    if l:
        w.vector(f"blk.{l}.exp_probs_b", 6, 0.5)


nano("hy_v3", "hy_v3", 1154, {"expert_weights_norm": True, "expert_weights_scale": 1.4, "expert_shared_feed_forward_length": 30,
     "nextn_predict_layers": 1, "attention.key_length": 14, "attention.value_length": 14}, d=14, n_dense=1, n_shared=30, qk_norm="head", draft=1,
     extra=plain_name, factors={"rope_freqs": 7})
guess("hy_v3")
nano("hy_v3-plain", "hy_v3", 1155, {"rope.freq_base": 300.0}, n_shared=22, qk_norm="head", choice_bias=True)
