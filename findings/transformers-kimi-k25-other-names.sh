#!/bin/sh
# transformers 5.24: a folder of Kimi K2.5 that is read and saved has other names of tensors than before: the layers of the text become blocks
# (language_model.model.blocks.0), the eye's patches go into its encoder (vision_tower.encoder.patch_embed), and one part of the projector gets the module's
# name (model.mm_projector.pre_norm). The library reads both, but programs that know the published names alone refuse what it saved. Its rules of loading are
# undone backwards, and one of them renames all blocks, another whatever begins with vision_tower. llm-convert reads both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0
"$dir/venv/bin/python" - "$dir" <<'PY' 2>/dev/null
import sys
from safetensors.torch import load_file, save_file
from transformers import Kimi_K25Config, Kimi_K25ForConditionalGeneration

folder, file = sys.argv[1] + "/model", sys.argv[1] + "/model/model.safetensors"
published = {"language_model.model.blocks.": "language_model.model.layers.", "vision_tower.encoder.patch_embed.": "vision_tower.patch_embed.", "model.mm_projector.": "mm_projector."}
text = {"model_type": "deepseek_v3", "hidden_size": 16, "intermediate_size": 16, "moe_intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
        "vocab_size": 32, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "n_shared_experts": 1, "kv_lora_rank": 8,
        "q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8}
vision = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 3, "patch_size": 4, "pos_emb_height": 5, "pos_emb_width": 5}

def as_published(name):
    for saved, own in published.items():
        name = own + name[len(saved):] if name.startswith(saved) else name
    return name

Kimi_K25ForConditionalGeneration(Kimi_K25Config(text_config=text, vision_config=vision, projection_hidden_size=24, tie_word_embeddings=False)).save_pretrained(folder)
save_file({as_published(name): t for name, t in load_file(file).items()}, file, {"format": "pt"})
before = set(load_file(file))
model, found = Kimi_K25ForConditionalGeneration.from_pretrained(folder, output_loading_info=True)
model.save_pretrained(folder)
after = set(load_file(file))
print("read: missing", len(found["missing_keys"]), "unexpected", len(found["unexpected_keys"]))
print("saved:", len(after - before), "of", len(before), "names are others, such as", sorted(after - before)[-1])
# read: missing 0 unexpected 0
# saved: 42 of 64 names are others, such as vision_tower.encoder.patch_embed.proj.weight
sys.exit(0 if after != before and not found["missing_keys"] and not found["unexpected_keys"] else 1)
PY
