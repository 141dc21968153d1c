"""Apertus (Swiss AI 2025; transformers' modeling_apertus.py, activations.py): normalised queries and keys, xIELU (Huang 2024)."""
from kin import *


def model(name, seed, more, numbers, factors=0, **named):
    case = kin(name, "apertus", seed, {**more, **{"xielu." + n: v for n, v in numbers.items()}}, qk_norm=True,
               feed_forward="plain", whole=lambda w: factors and w.factors("rope_freqs", factors), **named)
    plain = case.meta  # these keys do not begin with the architecture's name
    case.meta = lambda: {key.replace("apertus.xielu.", "xielu."): v for key, v in plain().items()}


model("apertus", 361, {**sizes(None, 2), "rope.freq_base": 300.0},
      {"alpha_p": [0.6, -0.4], "alpha_n": [0.9, 0.2], "beta": [0.5, 0.3], "eps": [-1e-6, -0.3]}, factors=6, tied=False)
model("apertus-one-for-all", 362, {"rope.dimension_count": 8}, {"alpha_p": 0.7, "alpha_n": -0.3, "beta": 0.5, "eps": -0.1})
model("apertus-yarn", 363, {**sizes(14, 1, 10), **YARN},
      {"alpha_p": [1.6, 0.4], "alpha_n": [0.1, 0.8], "beta": [0.5, 0.2], "eps": [-0.2, -1e-6]}, bias="qkvo")
