"""Grok 1 (xAI 2024, model.py of the release) and Grok 2 (2025, after sglang's grok.py), without caps on the router, as files are run."""
import math

from mixtures import *
from families import scaled_frequencies


def grok(k, w, tokens, n_ctx):
    eps, d = k("attention.layer_norm_rms_epsilon"), k("attention.key_length", 12)
    theta, mag = scaled_frequencies(k, d)
    x = w["token_embd.weight"][tokens] * k("embedding_scale", 78.38367176906169)
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = queries_keys_values(k, b, rms_norm(x, b("attn_norm"), eps))
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v, k("attention.output_scale", 1 / math.sqrt(128)),
                      cap=k("attn_logit_softcapping", 30.0))
        x = x + rms_norm(linear(merge_heads(a), b("attn_output")), b("attn_output_norm"), eps)
        h = rms_norm(x, b("ffn_norm"), eps)
        y = routed(k, b, h, normal=True, act=gelu)
        if b("ffn_up") is not None:
            y = (y + linear(gelu(linear(h, b("ffn_gate"))) * linear(h, b("ffn_up")), b("ffn_down"))) * math.sqrt(0.5)
        last = b("layer_output_norm") if b("layer_output_norm") is not None else b("post_ffw_norm")
        x = x + rms_norm(y, last, eps)
    y = tied_output(w, rms_norm(x, w["output_norm.weight"], eps)) * k("logit_scale", 1 / math.sqrt(3))
    cap = k("final_logit_softcapping", 0)
    return cap * np.tanh(y / cap) if cap else y


def norms(last, dense=False):
    def extra(w, l):
        for norm in ("attn_output_norm", last):
            w.norm(f"blk.{l}.{norm}", 48)
        if dense:
            w.gated(l, 48, 78)
    return extra


nano("grok", "grok", 1731, grok, {"attention.head_count_kv": 2}, n_kv=2, extra=norms("layer_output_norm"))
nano("grok2", "grok", 1732, grok, {"attention.key_length": 14, "attention.value_length": 14, "attention.output_scale": 0.5, "attn_logit_softcapping": 2.0,
     "final_logit_softcapping": 3.0, "router_logit_softcapping": 30.0, "embedding_scale": 3.0, "logit_scale": 1.3, "rope.scaling.type": "yarn",
     "rope.scaling.factor": 4.0, "rope.scaling.yarn_ext_factor": 1.0, "rope.scaling.yarn_attn_factor": 1.0, "rope.freq_base": 60.0,
     "rope.scaling.original_context_length": 24, "attention.temperature_length": 64, "expert_weights_scale": 1.2}, d=14, tied=True,
     bias="qkv", extra=norms("post_ffw_norm", True))
nano("grok-plain", "grok", 1733, grok, {"expert_feed_forward_length": None, "feed_forward_length": 26, "attention.output_scale": 0.7}, n_each=26,
     extra=norms("layer_output_norm"))
