#!/bin/sh
# transformers 5.24: Granite Speech's scores are not divided by its text part's logits_scaling, 8 in the published 2B and 8B, which Granite itself divides by: the same words score
# 8 times as much. The likeliest word is the same, but sampling at a temperature of 1 is sampling at one of 1/8. Classes of before version 5 had a whole Granite as their text part, and
# divided. llm-convert writes the scale, as llama.cpp's converter does.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0
"$dir/venv/bin/python" - <<'PY' 2>/dev/null
import sys
import torch
from transformers import GraniteConfig, GraniteForCausalLM, GraniteSpeechConfig, GraniteSpeechForConditionalGeneration

text = {"model_type": "granite", "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 32, "logits_scaling": 8.0}
ear = {"input_dim": 32, "num_layers": 2, "hidden_dim": 24, "feedforward_mult": 2, "num_heads": 3, "dim_head": 8, "output_dim": 10, "context_size": 12, "max_pos_emb": 14, "conv_kernel_size": 7}
former = {"model_type": "blip_2_qformer", "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40, "cross_attention_frequency": 1, "encoder_hidden_size": 24}
both = GraniteSpeechForConditionalGeneration(GraniteSpeechConfig(text_config=text, encoder_config=ear, projector_config=former, has_lora_adapter=False)).eval()
alone = GraniteForCausalLM(GraniteConfig(**{k: v for k, v in text.items() if k != "model_type"})).eval()
alone.model.load_state_dict(both.model.language_model.state_dict())
alone.lm_head.load_state_dict(both.lm_head.state_dict())
with torch.no_grad():
    ids = torch.tensor([[5, 6, 7]])
    share = (both(input_ids=ids).logits / alone(input_ids=ids).logits).median()
print(f"Granite Speech's scores are {share:.1f} times those of Granite with the same weights")
# Granite Speech's scores are 8.0 times those of Granite with the same weights
sys.exit(0 if abs(share - 8) < 0.1 else 1)
PY
