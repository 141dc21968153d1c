"""Arcee's AFM (transformers' modeling_arcee.py): a Llama with a squared ReLU and no gate."""
from kin import *


def arcee(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)), w.get("rope_freqs.weight"))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)
        x = x + project(b, "attn_output", merge_heads(a))
        x = x + project(b, "ffn_down", np.maximum(project(b, "ffn_up", rms_norm(x, b("ffn_norm"), eps)), 0) ** 2)
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, seed, more={}, factors=0, **named):
    kin(name, "arcee", arcee, seed, more, feed_forward="plain", whole=lambda w: factors and w.factors("rope_freqs", factors), **named)


model("arcee", 351, {**sizes(14, 2, 10), **YARN, "rope.dimension_count": 12}, tied=False)
model("arcee-plain", 352, bias="qkvo", ffn_bias=True)
model("arcee-freqs", 353, {**sizes(16, 1), "rope.dimension_count": 8}, factors=4)
model("arcee-common", 354, {"attention.head_count_kv": 2, "rope.freq_base": 300.0}, tied=False)
