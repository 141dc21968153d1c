#!/bin/sh
# transformers 5.24: three kinds of models have a configuration of their own and run as another class (internlm3 and iquestcoder as Llama, sarvam_moe as GLM-4 with experts).
# Saved, config.json says the other class in "architectures", and model_type the kind. Of sarvam_moe the tensors keep the names that were published, which the class
# Glm4MoeForCausalLM does not have elsewhere: a converter that looks at "architectures" alone misses all of its tensors. llm-convert looks at both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0
"$dir/venv/bin/python" - "$dir" <<'PY' 2>/dev/null
import json, sys
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

small = dict(vocab_size=32, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, head_dim=16, pad_token_id=0)
experts = dict(n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, n_shared_experts=1, first_k_dense_replace=1)
published = {"internlm3": "InternLM3ForCausalLM", "iquestcoder": "IQuestCoderForCausalLM", "sarvam_moe": "SarvamMoEForCausalLM"}
seen = []
for kind, own in published.items():
    folder = f"{sys.argv[1]}/{kind}"
    config = AutoConfig.for_model(kind, **small, **(experts if kind == "sarvam_moe" else {}), architectures=[own])
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    saved = json.load(open(folder + "/config.json"))
    embedding = next(name for name in load_file(folder + "/model.safetensors") if "embed" in name)
    seen.append((saved["model_type"], saved["architectures"][0], embedding))
    print(own, "is saved as", saved["architectures"][0], "with", embedding)
# InternLM3ForCausalLM is saved as LlamaForCausalLM with model.embed_tokens.weight
# IQuestCoderForCausalLM is saved as LlamaForCausalLM with model.embed_tokens.weight
# SarvamMoEForCausalLM is saved as Glm4MoeForCausalLM with model.word_embeddings.weight
sys.exit(0 if seen == [("internlm3", "LlamaForCausalLM", "model.embed_tokens.weight"), ("iquestcoder", "LlamaForCausalLM", "model.embed_tokens.weight"),
                       ("sarvam_moe", "Glm4MoeForCausalLM", "model.word_embeddings.weight")] else 1)
PY
