"""Apertus (Swiss AI 2025; transformers' modeling_apertus.py, activations.py): normalised queries and keys, xIELU (Huang 2024)."""
from kin import *


def xielu(x, alpha_p, alpha_n, beta, eps):
    right, left = math.log1p(math.exp(alpha_p)), beta + math.log1p(math.exp(alpha_n))
    return np.where(x > 0, right * x * x + beta * x, (np.expm1(np.minimum(x, eps)) - x) * left + beta * x)


def apertus(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)), w.get("rope_freqs.weight"))
    numbers = [k("xielu." + name) for name in ("alpha_p", "alpha_n", "beta", "eps")]
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, rms_norm(x, b("attn_norm"), eps))
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v)
        x = x + project(b, "attn_output", merge_heads(a))
        up = project(b, "ffn_up", rms_norm(x, b("ffn_norm"), eps))
        x = x + project(b, "ffn_down", xielu(up, *(n[l] if isinstance(n, list) else n for n in numbers)))
    return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))


def model(name, seed, more, numbers, factors=0, **named):
    case = kin(name, "apertus", apertus, seed, {**more, **{"xielu." + n: v for n, v in numbers.items()}}, qk_norm=True,
               feed_forward="plain", whole=lambda w: factors and w.factors("rope_freqs", factors), **named)
    plain = case.meta  # these keys do not begin with the architecture's name
    case.meta = lambda: {key.replace("apertus.xielu.", "xielu."): v for key, v in plain().items()}


model("apertus", 361, {**sizes(None, 2), "rope.freq_base": 300.0},
      {"alpha_p": [0.6, -0.4], "alpha_n": [0.9, 0.2], "beta": [0.5, 0.3], "eps": [-1e-6, -0.3]}, factors=6, tied=False)
model("apertus-one-for-all", 362, {"rope.dimension_count": 8}, {"alpha_p": 0.7, "alpha_n": -0.3, "beta": 0.5, "eps": -0.1})
model("apertus-yarn", 363, {**sizes(14, 1, 10), **YARN},
      {"alpha_p": [1.6, 0.4], "alpha_n": [0.1, 0.8], "beta": [0.5, 0.2], "eps": [-0.2, -1e-6]}, bias="qkvo")
