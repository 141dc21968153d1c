"""HRM-Text (Sapient 2026, transformers' modeling_hrm_text.py): two stacks of layers in cycles, as loops in loops."""
from kin import *


def hrm_text(k, w, tokens, n_ctx):
    eps, n_stack = k("attention.layer_norm_rms_epsilon"), k("hrm.layers_per_stack")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))

    def stack(x, first):
        for l in range(first, first + n_stack):
            b = layer(w, l)
            h = rms_norm(x, None, eps)
            q, key, v = qkv(k, b, h)
            a = merge_heads(attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v))
            x = x + linear(a * sigmoid(linear(h, b("attn_gate"))), b("attn_output"))
            x = x + swiglu(b, rms_norm(x, None, eps))
        return rms_norm(x, None, eps)

    high, low = w["token_embd.weight"][tokens] * k("embedding_scale", 1.0), w["hrm.z_l_init"]
    for _ in range(k("hrm.h_cycles")):
        for _ in range(k("hrm.l_cycles")):
            low = stack(high + low, 0)
        high = stack(high + low, n_stack)
    return tied_output(w, high)


def model(name, seed, n_stack, n_high, n_low, more={}, **named):
    def parts(w, l):
        w.matrix(f"blk.{l}.attn_gate", N_HEAD * (more.get("attention.key_length") or 12), N_EMBD)

    cycles = {"block_count": n_stack * n_high * (n_low + 1), "hrm.layers_per_stack": n_stack, "hrm.h_cycles": n_high, "hrm.l_cycles": n_low}
    case = kin(name, "hrm_text", seed, {**cycles, **more}, n_layer=2 * n_stack, norms=(), parts=parts, whole=lambda w: w.vector("hrm.z_l_init", N_EMBD), forward=hrm_text, **named)
    del case.tensors["output_norm.weight"]


model("hrm_text", 3501, 1, 2, 2, {"embedding_scale": 3.0, "rope.freq_base": 200.0, "hrm.prefix_lm": True}, tied=False)
model("hrm_text-plain", 3502, 2, 1, 1, {**sizes(14, 2), **YARN, "rope.dimension_count": 10}, bias="qkv")
model("hrm_text-common", 3503, 2, 2, 3, {**sizes(16, 4, 16), "embedding_scale": 3.0, "rope.freq_base": 200.0, "rope.dimension_count": 16}, tied=False)
