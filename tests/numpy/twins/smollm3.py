"""SmolLM 3 (transformers' modeling_smollm3.py): a Llama without positions on every fourth layer."""
from families import swiglu
from kin import *


def smollm3(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        if l % 4 < 3:
            q, key = rotate(q, theta, False, mag), rotate(key, theta, False, mag)
        x = x + project(b, "attn_output", merge_heads(attention(q, key, v)))
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


kin("smollm3", "smollm3", smollm3, 291, {**sizes(None, 2), "rope.dimension_count": 12, "rope.freq_base": 300.0}, n_layer=5)
kin("smollm3-plain", "smollm3", smollm3, 292, bias="qkvo", ffn_bias=True, tied=False)
kin("smollm3-yarn", "smollm3", smollm3, 293, {**sizes(14, 1, 10), **YARN, "rope.dimension_count": 8}, n_layer=4)
