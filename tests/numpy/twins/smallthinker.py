"""SmallThinker (SJTU IPADS 2025), after the authors' modeling_smallthinker.py."""
from mixtures import *
from families import scaled_frequencies


def smallthinker(k, w, tokens, n_ctx):
    eps, window = k("attention.layer_norm_rms_epsilon"), k("attention.sliding_window", 0)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", 12)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        scores = linear(x, b("ffn_gate_inp"))
        p = softmax(scores) if k("expert_gating_func", 2) == 1 else sigmoid(scores)
        q, key, v = queries_keys_values(k, b, rms_norm(x, b("attn_norm"), eps))
        if not window or l % 4:
            q, key = rotate(q, theta, True, mag), rotate(key, theta, True, mag)
        x = x + output_of(b, attention(q, key, v, window=window if window and l % 4 else None))
        chosen = chosen_experts(p, k("expert_used_count"))
        x = x + moe(b, rms_norm(x, b("ffn_norm"), eps), p, chosen, True, k("expert_weights_scale", 1.0), act=lambda y: np.maximum(y, 0))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


nano("smallthinker", "smallthinker", 1311, smallthinker, {"expert_weights_norm": True, "attention.sliding_window": 6, "expert_gating_func": 2, "rope.freq_base": 300.0}, n_layer=5)
nano("smallthinker-sizes", "smallthinker", 1312, smallthinker, {"attention.sliding_window": 0, "attention.head_count_kv": 2, "attention.key_length": 14,
     "attention.value_length": 10, "rope.dimension_count": 8, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "expert_gating_func": 1,
     "expert_feed_forward_length": None, "feed_forward_length": 26, "expert_weights_scale": 1.3}, n_kv=2, d=14, dv=10, n_each=26, fused=True, tied=True)
nano("smallthinker-plain", "smallthinker", 1313, smallthinker)
nano("smallthinker-common", "smallthinker", 1314, smallthinker, {"attention.sliding_window": 4096, "attention.head_count_kv": 2, "expert_gating_func": 2,
     "rope.freq_base": 300.0}, n_layer=5, n_kv=2)
