#!/bin/sh
# transformers 5.24: MiniMaxForCausalLM turns whole heads, whatever rotary_dim and partial_rotary_factor say; with a rotation that is scaled, a partial factor
# ends in an error of shapes. The authors' configuration of MiniMax-Text-01 and M1 has rotary_dim 64 of heads of 128, of which their class and llama.cpp turn
# half. llm-convert obeys rotary_dim and partial_rotary_factor.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0
"$dir/venv/bin/python" - <<'PY' 2>/dev/null
import torch
from transformers import MiniMaxConfig, MiniMaxForCausalLM

def logits(**more):
    torch.manual_seed(1)
    c = MiniMaxConfig(vocab_size=40, hidden_size=48, intermediate_size=16, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=16, num_local_experts=2,
                      layer_types=["full_attention"], **more)
    with torch.no_grad():
        return MiniMaxForCausalLM(c).eval()(input_ids=torch.tensor([[3, 17, 29, 5]])).logits

whole = logits()
half = logits(rotary_dim=8, rope_parameters={"rope_type": "default", "rope_theta": 1000000.0, "partial_rotary_factor": 0.5})
print("half of each head, as configured, gives the same as whole heads:", torch.equal(whole, half))
try:
    logits(rope_parameters={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "rope_theta": 1000000.0, "partial_rotary_factor": 0.5})
    print("yarn: computed")
    raise SystemExit(1)
except RuntimeError as e:
    print("yarn:", e)
raise SystemExit(0 if torch.equal(whole, half) else 1)
PY
