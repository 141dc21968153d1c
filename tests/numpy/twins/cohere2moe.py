"""Cohere 2 with experts (Cohere 2026): Cohere 2 (modeling_cohere2.py) with dense layers first, then experts, averaged with shared ones."""
from mixtures import *
from families import scaled_frequencies
from nano import CASES, guess


def cohere2moe(k, w, tokens, n_ctx):
    d, every = k("attention.key_length", 12), k("attention.sliding_window_pattern", 4)
    theta, mag = scaled_frequencies(k, d, w.get("rope_freqs.weight"))
    rms, plain = k("attention.layer_norm_rms_epsilon", 0), k("attention.layer_norm_epsilon", 0)
    norm = lambda x, weight: rms_norm(x, weight, rms) if rms else layer_norm(x, weight, None, plain)
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count") - k("nextn_predict_layers", 0)):
        b, dense = layer(w, l), l < k("leading_dense_block_count")
        local = every[l] if isinstance(every, list) else l % every > 0
        h = norm(x, b("attn_norm"))
        q, key, v = queries_keys_values(k, b, h)
        if local or dense:
            q, key = rotate(q, theta, False, mag), rotate(key, theta, False, mag)
        a = attention(q, key, v, window=k("attention.sliding_window") if local else None)
        if dense:
            y = swiglu(b, h)
        else:
            y = routed(k, b, h, gating=2)
            y = y if b("ffn_up_shexp") is None else (y + shared(b, h)) / 2
        x = x + linear(merge_heads(a), b("attn_output")) + y
    return tied_output(w, norm(x, w["output_norm.weight"])) * k("logit_scale")


nano("cohere2moe", "cohere2moe", 1721, cohere2moe, {"attention.sliding_window": 6, "logit_scale": 0.7, "leading_dense_block_count": 1, "expert_shared_count": 1,
     "expert_shared_feed_forward_length": 30, "expert_gating_func": 2, "expert_weights_norm": True, "expert_weights_scale": 1.4,
     "nextn_predict_layers": 1, "attention.layer_norm_rms_epsilon": None, "attention.layer_norm_epsilon": 1e-2, "rope.freq_base": 300.0,
     "rope.freq_base_swa": 300.0, "attention.key_length": 14, "attention.value_length": 14, "attention.head_count_kv": 2},
     d=14, n_kv=2, n_layer=5, n_dense=1, n_shared=30, second="", draft=1, factors={"rope_freqs": 7})
nano("cohere2moe-rms", "cohere2moe", 1722, cohere2moe, {"attention.sliding_window": 5, "logit_scale": 1.3, "leading_dense_block_count": 0, "expert_shared_count": 2,
     "attention.sliding_window_pattern": [True, False, True]}, n_layer=3, n_shared=44, second="", fused=True, bias="qkv", tied=True)
nano("cohere2moe-draft", "cohere2moe", 1724, cohere2moe, {"attention.sliding_window": 5, "logit_scale": 1.3, "leading_dense_block_count": 0, "expert_shared_count": 2,
     "attention.sliding_window_pattern": [True, False, True, False], "nextn_predict_layers": 1}, n_layer=3, n_shared=44, second="", bias="qkv", draft=1)


def turned(k, w, tokens, n_ctx):
    """The layer that guesses has positions, and sees everything: as the only layer of a model in which dense layers would be that."""
    wide = lambda name, *rest: {"attention.sliding_window": 1000, "attention.sliding_window_pattern": [True] * 9}.get(name, None) or k(name, *rest)
    return cohere2moe(wide if k("block_count") == 1 else k, w, tokens, n_ctx)


def rows(k, w, tokens, n_ctx):
    eye = {**{name: t for name, t in w.items() if not name.startswith("output.")}, "output.weight": np.eye(len(w["output_norm.weight"]))}
    return turned(k, eye, tokens, n_ctx) / k("logit_scale")


CASES["cohere2moe-draft"].forward = turned
guess("cohere2moe-draft", over=rows)
nano("cohere2moe-plain", "cohere2moe", 1723, cohere2moe, {"attention.sliding_window": 5, "logit_scale": 1.3, "leading_dense_block_count": 0, "expert_gating_func": 1,
     "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}, second="")
