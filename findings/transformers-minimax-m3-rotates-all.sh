#!/bin/sh
# transformers 5.24: MiniMaxM3VLForCausalLM turns whole heads, whatever rotary_dim says, which is a documented value with the default 64; only partial_rotary_factor
# counts. llama.cpp 0.5.0's converter reads rotary_dim alone. llm-convert obeys partial_rotary_factor, and rotary_dim in a folder without it.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0
"$dir/venv/bin/python" - <<'PY' 2>/dev/null
import torch
from transformers import MiniMaxM3VLForCausalLM
from transformers.models.minimax_m3_vl.configuration_minimax_m3_vl import MiniMaxM3VLTextConfig

def logits(rope={}, **more):
    torch.manual_seed(1)
    c = MiniMaxM3VLTextConfig(vocab_size=40, hidden_size=48, intermediate_size=16, dense_intermediate_size=16, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
                              head_dim=16, num_local_experts=2, mlp_layer_types=["dense"], pad_token_id=None,
                              rope_parameters={"rope_type": "default", "rope_theta": 1000000.0, **rope}, **more)
    with torch.no_grad():
        return MiniMaxM3VLForCausalLM(c).eval()(input_ids=torch.tensor([[3, 17, 29, 5]])).logits

whole, by_size, by_factor = logits(rotary_dim=16), logits(rotary_dim=8), logits({"partial_rotary_factor": 0.5}, rotary_dim=16)
print("rotary_dim 8 of 16 gives the same as 16:", torch.equal(whole, by_size))
print("partial_rotary_factor 0.5 gives the same:", torch.equal(whole, by_factor))
raise SystemExit(0 if torch.equal(whole, by_size) and not torch.equal(whole, by_factor) else 1)
PY
