#!/bin/sh
# transformers 5.24: a folder of HYV4ForCausalLM that is read and saved has other names of tensors than before: the parts of hyper-connections change places
# (hc_attn_layer.hc_pre becomes hc_pre.hc_attn_layer), and the gate of the feed-forward part becomes linear_gate. The library reads both, but programs
# that know the published names alone refuse what it saved. The names are undone by the rules of loading, backwards, where two names had become one.
# llm-convert reads both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0
"$dir/venv/bin/python" - "$dir" <<'PY' 2>/dev/null
import sys
from safetensors.torch import load_file, save_file
from transformers import HYV4Config, HYV4ForCausalLM

folder, file = sys.argv[1] + "/model", sys.argv[1] + "/model/model.safetensors"
published = {"hc_pre.hc_attn_layer": "hc_attn_layer.hc_pre", "hc_pre.hc_mlp_layer": "hc_mlp_layer.hc_pre", "hc_pre.hc_head": "hc_head", "mlp.linear_gate": "mlp.gate_proj",
             "shared_experts.linear_gate": "shared_experts.gate_proj"}

def as_published(name):
    for saved, own in published.items():
        name = name.replace(saved, own)
    return name

HYV4ForCausalLM(HYV4Config(vocab_size=32, pad_token_id=0, bos_token_id=1, eos_token_id=2, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
                           num_key_value_heads=2, q_lora_rank=8, kv_lora_rank=8, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=8, n_routed_experts=4, num_experts_per_tok=2,
                           moe_intermediate_size=16, index_n_heads=2, index_head_dim=16)).save_pretrained(folder)
save_file({as_published(name): t for name, t in load_file(file).items()}, file, {"format": "pt"})
before = set(load_file(file))
model, found = HYV4ForCausalLM.from_pretrained(folder, output_loading_info=True)
model.save_pretrained(folder)
after = set(load_file(file))
print("read: missing", len(found["missing_keys"]), "unexpected", len(found["unexpected_keys"]))
print("saved:", len(after - before), "of", len(before), "names are others, such as", sorted(after - before)[1])
# read: missing 0 unexpected 0
# saved: 17 of 60 names are others, such as model.hc_pre.hc_head.hc_head_fn
sys.exit(0 if after != before and not found["missing_keys"] and not found["unexpected_keys"] else 1)
PY
