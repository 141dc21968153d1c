"""Ling (Ling team 2025), after the authors' modeling_bailing_moe.py."""
from mixtures import *
from families import scaled_frequencies


def bailingmoe(k, w, tokens, n_ctx):
    d = k("attention.key_length", k("rope.dimension_count", 12))
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", d), w.get("rope_freqs.weight"))

    def attend(b, h, l):
        q, key, v = queries_keys_values(k, b, h)
        return output_of(b, attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v))

    def feed(b, h, l):
        return swiglu(b, h) if l < k("leading_dense_block_count", 0) else routed(k, b, h) + shared(b, h)

    return decoder(k, w, tokens, attend, feed)


nano("bailingmoe", "bailingmoe", 1161, bailingmoe, {"expert_weights_norm": True, "expert_weights_scale": 1.0, "leading_dense_block_count": 0,
     "expert_shared_count": 2, "rope.dimension_count": 14, "attention.head_count_kv": 2}, n_kv=2, d=14, n_shared=44)
nano("bailingmoe-dense", "bailingmoe", 1162, bailingmoe, {"expert_weights_scale": 1.4, "leading_dense_block_count": 1, "expert_gating_func": 1,
     "attention.key_length": 14, "attention.value_length": 10, "rope.dimension_count": 8, "rope.freq_base": 300.0, "expert_shared_count": 1},
     d=14, dv=10, n_shared=22, n_dense=1, fused=True, tied=True, bias="qkvo", factors={"rope_freqs": 4})
nano("bailingmoe-plain", "bailingmoe", 1163, bailingmoe, {"expert_shared_count": 1}, n_shared=22)
