"""Mistral Small 3, Ministral 3 (transformers' modeling_ministral3.py): a Llama with YaRN and queries that grow with the position."""
from families import swiglu
from kin import *


def mistral3(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    other = {"rope.scaling.yarn_beta_fast": "rope.scaling.beta_fast", "rope.scaling.yarn_beta_slow": "rope.scaling.beta_slow",
             "rope.scaling.yarn_log_multiplier": "rope.scaling.mscale_all_dim", "attention.temperature_scale": "rope.scaling_beta",
             "attention.temperature_length": "rope.scaling.original_context_length"}

    def either(name, *default):
        return k(name, k(other[name], *default)) if name in other else k(name, *default)

    theta, mag = scaled_frequencies(either, k("rope.dimension_count", head_size(k)), w.get("rope_freqs.weight"))
    beta, original = either("attention.temperature_scale", 0.0), either("attention.temperature_length", k("context_length"))
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        q = rotate(q, theta, False, mag) * (1 + beta * np.log1p(np.arange(len(x)) // original))[:, None, None]
        x = x + project(b, "attn_output", merge_heads(attention(q, rotate(key, theta, False, mag), v)))
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, seed, more={}, factors=0, **named):
    kin(name, "mistral3", mistral3, seed, more, whole=lambda w: factors and w.factors("rope_freqs", factors), **named)


model("mistral3", 281, {**sizes(16, 2), **YARN, "rope.scaling.original_context_length": 7, "rope.scaling.yarn_log_multiplier": 1.0,
                        "attention.temperature_scale": 0.7}, tied=False)
model("mistral3-plain", 282, {"rope.dimension_count": 8}, bias="qkvo", ffn_bias=True)
model("mistral3-freqs", 283, {**sizes(14, 1, 10), "attention.temperature_scale": 0.9, "context_length": 11}, factors=7, n_ctx=64)
model("mistral3-length", 284, {**YARN, "attention.temperature_scale": 0.9, "attention.temperature_length": 5})
model("mistral3-ollama", 285, {**YARN, "rope.scaling.yarn_beta_fast": None, "rope.scaling.yarn_beta_slow": None,
                               "rope.scaling.beta_fast": 6.0, "rope.scaling.beta_slow": 0.5, "rope.scaling.mscale": 1.0,
                               "rope.scaling.mscale_all_dim": 1.0, "rope.scaling_beta": 0.6, "rope.scaling.original_context_length": 9})
