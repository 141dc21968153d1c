"""Grok 1 (xAI 2024, model.py of the release) and Grok 2 (2025, after sglang's grok.py), without caps on the router, as files are run."""
from mixtures import *


def norms(last, dense=False):
    def extra(w, l):
        for norm in ("attn_output_norm", last):
            w.norm(f"blk.{l}.{norm}", 48)
        if dense:
            w.gated(l, 48, 78)
    return extra


nano("grok", "grok", 1731, {"expert_gating_func": 1, "expert_weights_norm": True, "attention.head_count_kv": 2}, n_kv=2, extra=norms("layer_output_norm"))
nano("grok2", "grok", 1732, {"attention.key_length": 14, "attention.value_length": 14, "attention.output_scale": 0.5, "attn_logit_softcapping": 2.0,
     "final_logit_softcapping": 3.0, "router_logit_softcapping": 30.0, "embedding_scale": 3.0, "logit_scale": 1.3, "rope.scaling.type": "yarn",
     "rope.scaling.factor": 4.0, "rope.scaling.yarn_ext_factor": 1.0, "rope.scaling.yarn_attn_factor": 1.0, "rope.freq_base": 60.0,
     "rope.scaling.original_context_length": 24, "attention.temperature_length": 64, "expert_weights_scale": 1.2}, d=14, tied=True,
     bias="qkv", extra=norms("post_ffw_norm", True))
nano("grok-plain", "grok", 1733, {"expert_feed_forward_length": None, "feed_forward_length": 26, "attention.output_scale": 0.7}, n_each=26,
     extra=norms("layer_output_norm"))
