"""Hunyuan (Tencent 2025), after transformers' modeling_hunyuan_v1_dense.py and _moe.py."""
from mixtures import *


nano("hunyuan-moe", "hunyuan-moe", 1191, {"expert_feed_forward_length": 22, "expert_shared_feed_forward_length": 30,
     "expert_shared_count": 1, "rope.scaling.type": "none", "rope.scaling.factor": 1.0, "expert_gating_func": 1, "expert_weights_norm": True}, qk_norm="head", n_shared=30)
nano("hunyuan-moe-gqa", "hunyuan-moe", 1192, {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10,
     "rope.dimension_count": 8, "rope.freq_base": 300.0, "expert_feed_forward_length": None, "expert_weights_scale": 1.3, "rope.scaling.factor": 3.0,
     "feed_forward_length": 26}, n_kv=2, d=14, dv=10, qk_norm="head", n_each=26, n_shared=26, fused=True, tied=True, bias="qkvo",
     factors={"rope_freqs": 4})
nano("hunyuan-dense", "hunyuan-dense", 1193, {"attention.head_count_kv": 2, "rope.freq_base": 300.0}, n_kv=2, qk_norm="head", n_expert=0)
nano("hunyuan_vl", "hunyuan_vl", 1194, {"attention.key_length": 14, "rope.freq_base": 30.0, "rope.scaling.alpha": 6.0,
     "rope.scaling.type": "none", "rope.scaling.factor": 1.0, "rope.dimension_sections": [2, 2, 2, 1]}, d=14, qk_norm="head", n_expert=0)
# As published: four equal sections. At a token of text all four have its position, so that it is a plain rotation.
nano("hunyuan_vl-equal", "hunyuan_vl", 1196, {"attention.key_length": 16, "attention.value_length": 16, "rope.freq_base": 30.0, "rope.scaling.alpha": 6.0,
     "rope.scaling.type": "none", "rope.scaling.factor": 1.0, "rope.scaling.original_context_length": 64, "rope.dimension_sections": [2, 2, 2, 2]}, d=16,
     qk_norm="head", n_expert=0)
nano("hunyuan_vl-plain", "hunyuan_vl", 1195, {"rope.scaling.alpha": 0.0}, qk_norm="head", n_expert=0)
nano("hunyuan-moe-common", "hunyuan-moe", 1197, {"attention.head_count_kv": 2, "rope.freq_base": 300.0, "feed_forward_length": 22,
     "expert_feed_forward_length": 22, "expert_shared_feed_forward_length": 30, "expert_shared_count": 1}, n_kv=2, qk_norm="head", n_shared=30)
