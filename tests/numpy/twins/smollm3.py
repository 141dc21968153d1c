"""SmolLM 3 (transformers' modeling_smollm3.py): a Llama without positions on every fourth layer."""
from kin import *


kin("smollm3", "smollm3", 291, {**sizes(None, 2), "rope.dimension_count": 12, "rope.freq_base": 300.0}, n_layer=5)
kin("smollm3-plain", "smollm3", 292, bias="qkvo", ffn_bias=True, tied=False)
kin("smollm3-yarn", "smollm3", 293, {**sizes(14, 1, 10), **YARN, "rope.dimension_count": 8}, n_layer=4)
