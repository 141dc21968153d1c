"""GLM-4.5 (Zhipu AI 2025), after transformers' modeling_glm4_moe.py."""
from mixtures import *
from nano import CASES, guess


three = {"expert_weights_norm": True, "expert_weights_scale": 2.5, "expert_gating_func": 2}
nano("glm4moe", "glm4moe", 1141, {**three, "attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 14,
     "rope.dimension_count": 8, "rope.freq_base": 300.0, "leading_dense_block_count": 1, "expert_shared_count": 1, "nextn_predict_layers": 1,
     "expert_group_count": 1, "expert_group_used_count": 1}, n_kv=2, d=14, bias="qkv", n_dense=1, n_shared=22, choice_bias=True, draft=1,
     second="post_attention_norm")
guess("glm4moe")
guess("glm4moe", layer=1, keys={"nextn_predict_layers": 2, "block_count": CASES["glm4moe"].keys["block_count"] + 1})
nano("glm4moe-norms", "glm4moe", 1142, {"expert_group_count": 3, "expert_group_used_count": 2, "rope.scaling.type": "yarn",
     "rope.scaling.factor": 4.0, "expert_feed_forward_length": None, "attention.value_length": 10}, dv=10, qk_norm="head", n_each=26, fused=True,
     tied=True, second="post_attention_norm", bias="qkvo")
nano("glm4moe-softmax", "glm4moe", 1143, {"expert_gating_func": 1, "expert_shared_count": 2}, n_shared=44, second="post_attention_norm")
