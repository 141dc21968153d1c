#!/bin/sh
# transformers 5.24: HunYuanVLForConditionalGeneration doubles each section of its rotation in place of the list of them, so that the two numbers of a pair, in the two halves of a
# head, are turned by different positions. In a text with pictures this is no rotation any more: it changes the length of a head. The code that Tencent published with the models,
# vLLM and llama.cpp turn each pair by one position. (It also finds learned positions by sizes, where these give a factor for a picture a tenth of a patch larger.)
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0
"$dir/venv/bin/python" - <<'PY' 2>/dev/null
import torch
from transformers.models.hunyuan_vl.configuration_hunyuan_vl import HunYuanVLTextConfig
from transformers.models.hunyuan_vl.modeling_hunyuan_vl import HunYuanVLRotaryEmbedding, apply_rotary_pos_emb

rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 1000.0, "factor": 1.0, "mrope_section": [1, 1, 1, 1]}
turn = HunYuanVLRotaryEmbedding(HunYuanVLTextConfig(hidden_size=16, num_attention_heads=2, head_dim=8, rope_parameters=rope))
x = torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 8]).reshape(1, 1, 1, 8)

def length(*places):
    cos, sin = turn(x, torch.tensor(places).reshape(4, 1, 1))
    return apply_rotary_pos_emb(x, x, cos, sin)[0].norm().item()

word, row = length(9, 9, 9, 9), length(9, 3, 1, 0)
print(f"length {x.norm().item():.4f}, of a word's head {word:.4f}, of a row's {row:.4f}")
raise SystemExit(0 if abs(word - x.norm().item()) < 1e-4 and abs(row - word) > 0.1 else 1)
PY
