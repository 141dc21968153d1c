"""Mistral Small 3, Ministral 3 (transformers' modeling_ministral3.py): a Llama with YaRN and queries that grow with the position."""
from kin import *


def model(name, seed, more={}, factors=0, **named):
    kin(name, "mistral3", seed, more, whole=lambda w: factors and w.factors("rope_freqs", factors), **named)


model("mistral3", 281, {**sizes(16, 2), **YARN, "rope.scaling.original_context_length": 7, "rope.scaling.yarn_log_multiplier": 1.0,
                        "attention.temperature_scale": 0.7}, tied=False)
model("mistral3-plain", 282, {"rope.dimension_count": 8}, bias="qkvo", ffn_bias=True)
model("mistral3-freqs", 283, {**sizes(14, 1, 10), "attention.temperature_scale": 0.9, "context_length": 11}, factors=7, n_ctx=64)
model("mistral3-length", 284, {**YARN, "attention.temperature_scale": 0.9, "attention.temperature_length": 5})
model("mistral3-ollama", 285, {**YARN, "rope.scaling.yarn_beta_fast": None, "rope.scaling.yarn_beta_slow": None,
                               "rope.scaling.beta_fast": 6.0, "rope.scaling.beta_slow": 0.5, "rope.scaling.mscale": 1.0,
                               "rope.scaling.mscale_all_dim": 1.0, "rope.scaling_beta": 0.6, "rope.scaling.original_context_length": 9})
