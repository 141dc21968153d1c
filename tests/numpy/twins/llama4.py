"""Llama 4 (Meta 2025), after transformers' modeling_llama4.py; MobileLLM-R1, dense, rotates all layers."""
from mixtures import *
from families import scaled_frequencies


def llama4(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", 12)), w.get("rope_freqs.weight"))
    every = len(tokens) * 99 if k("attention.sliding_window", 1) == 0 else k("attention.sliding_window_pattern", 4)
    step, length = k("attention.temperature_scale", 0.1), k("attention.temperature_length", 8192)
    later = np.array([1 + step * math.log((t + 1) // length + 1) for t in range(len(tokens))])

    def attend(b, h, l):
        q, key, v = queries_keys_values(k, b, h)
        if (l + 1) % every:
            q, key = rotate(q, theta, False, mag), rotate(key, theta, False, mag)
            if k("use_qk_norm", k("expert_count", 0) != 128):
                q, key = rms_norm(q, None, eps), rms_norm(key, None, eps)
        else:
            q = q * later[:, None, None]
        return output_of(b, attention(q, key, v, chunk=k("attention.chunk_size", 8192) if (l + 1) % every else None))

    def feed(b, h, l):
        if b("ffn_gate_inp") is None:
            return swiglu(b, h)
        scores = linear(h, b("ffn_gate_inp"))
        chosen = [best(row, k("expert_used_count", 1)) for row in scores]
        gate, up, down = b("ffn_gate_exps"), b("ffn_up_exps"), b("ffn_down_exps")
        y = [sum(down[e] @ (silu(gate[e] @ z) * (up[e] @ z)) for e in of for z in [x * sigmoid(row[e])])
             for x, row, of in zip(h, scores, chosen)]
        return np.array(y) + shared(b, h)

    return decoder(k, w, tokens, attend, feed)


def dense(w, l):
    if l % 2 == 0:
        for name in [n for n in w if n.startswith(f"blk.{l}.ffn_") and ("exp" in n or "inp" in n)]:
            del w[name]
        w.gated(l, 48, 78)


gqa = {"attention.head_count_kv": 2, "attention.key_length": 14, "attention.value_length": 10, "rope.dimension_count": 8, "rope.freq_base": 300.0}
nano("llama4", "llama4", 1251, {"interleave_moe_layer_step": 1, "expert_used_count": 1}, n_layer=4, n_expert=4, n_shared=22, forward=llama4)
nano("llama4-step", "llama4", 1252, {**gqa, "expert_gating_func": 2, "expert_weights_norm": False, "interleave_moe_layer_step": 2, "expert_used_count": 2, "attention.sliding_window_pattern": 3,
     "attention.temperature_scale": 0.4, "attention.temperature_length": 5, "attention.chunk_size": 64, "use_qk_norm": False}, n_kv=2, d=14, dv=10,
     n_layer=4, n_expert=4, n_shared=22, bias="qkvo", tied=True, extra=dense, factors={"rope_freqs": 4}, forward=llama4)
nano("llama4-chunks", "llama4", 1257, {"interleave_moe_layer_step": 1, "expert_used_count": 1, "attention.chunk_size": 5}, n_layer=4, n_expert=4, n_shared=22, forward=llama4)
nano("llama4-mobile", "llama4", 1253, {"attention.sliding_window": 0, "interleave_moe_layer_step": 0, "rope.freq_base": 300.0}, n_expert=0, tied=True, n_layer=4, forward=llama4)
nano("llama4-mobile-step", "llama4", 1256, {"attention.sliding_window": 0, "context_length": 9000}, n_expert=0, forward=llama4)
nano("llama4-dense-by-step", "llama4", 1254, {"interleave_moe_layer_step": 0, "expert_count": 4, "expert_used_count": 1}, n_expert=0, forward=llama4)
nano("llama4-maverick", "llama4", 1255, {"expert_used_count": None}, n_layer=2, n_expert=128, n_each=6, n_shared=6, forward=llama4)
