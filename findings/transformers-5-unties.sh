#!/bin/sh
# transformers 5: a folder whose config.json says tie_word_embeddings and that has an lm_head other than its embeddings is not tied any more: the
# logits are those of its lm_head. Version 4.57 computes with the embeddings, and so do programs that follow the value. The same folder gives two texts.
# Seen with transformers 5.24.0 and 4.57.6, torch 2.13.0 (PyPI): a tiny Qwen 2 of random weights, its logits with and without the second matrix.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >folder.py <<'PY'
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen2Config, Qwen2ForCausalLM

torch.manual_seed(1)
c = Qwen2Config(vocab_size=40, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                tie_word_embeddings=True)
Qwen2ForCausalLM(c).save_pretrained("tied")
stored = load_file("tied/model.safetensors")
stored["lm_head.weight"] = torch.flip(stored["model.embed_tokens.weight"], [0]).contiguous()
Qwen2ForCausalLM(c).save_pretrained("both")
save_file(stored, "both/model.safetensors", {"format": "pt"})
PY
cat >logits.py <<'PY'
import torch
import transformers
from transformers import Qwen2ForCausalLM

with torch.no_grad():
    one, other = (Qwen2ForCausalLM.from_pretrained(name, dtype=torch.float32)(torch.tensor([[3, 17, 29]])).logits for name in ("tied", "both"))
flipped = torch.allclose(torch.flip(one, [-1]), other, atol=1e-6)
print("transformers", transformers.__version__, "the same logits:", torch.equal(one, other), "those of the second matrix:", flipped)
raise SystemExit(not ((flipped and not torch.equal(one, other)) if transformers.__version__[0] == "5" else torch.equal(one, other)))
PY
for version in 5.24.0 4.57.6; do
    python3 -m venv "venv-$version"
    "venv-$version/bin/pip" install --quiet torch==2.13.0 "transformers==$version" safetensors==0.8.0 2>/dev/null
    [ -d both ] || "venv-$version/bin/python" folder.py 2>/dev/null
    "venv-$version/bin/python" logits.py 2>/dev/null
done
