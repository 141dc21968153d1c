#!/bin/sh
# transformers reads the tokenizer of a GGUF file without tokenizer.ggml.pre, the key that says how texts are cut before the merges. For all files with
# the model "gpt2" it takes GPT-2's pattern; so the digits of a number come in one piece where the model was trained with each for itself (smollm), and
# a folder that is saved from such a file keeps the other tokenizer.
# Seen with transformers 5.24.0 and gguf 0.19.0 (PyPI): "12" is one token with "smollm" and "gpt-2" alike; the steps of SmolLM2's own tokenizer.json make two of it.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0 gguf==0.19.0 2>/dev/null
cd "$dir"
venv/bin/python - <<'PY' 2>/dev/null
import json

import gguf
import transformers
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoTokenizer

tokens = sorted(pre_tokenizers.ByteLevel.alphabet()) + ["12", "<|end|>"]
ids, steps = {}, {}
for pre in ("gpt-2", "smollm"):
    w = gguf.GGUFWriter("model.gguf", "llama")
    for key, value in {"context_length": 32, "embedding_length": 8, "block_count": 1, "feed_forward_length": 8, "attention.head_count": 2}.items():
        w.add_uint32("llama." + key, value)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre)
    w.add_token_list(tokens)
    w.add_token_types([1] * (len(tokens) - 1) + [3])
    w.add_token_merges(["1 2"])
    w.add_bos_token_id(len(tokens) - 1)
    w.add_eos_token_id(len(tokens) - 1)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()
    t = AutoTokenizer.from_pretrained(".", gguf_file="model.gguf")
    ids[pre] = t.convert_ids_to_tokens(t("12", add_special_tokens=False)["input_ids"])
    steps = json.loads(t.backend_tokenizer.to_str())
own = Tokenizer.from_str(json.dumps(steps))
own.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
ids["SmolLM2's own steps"] = own.encode("12").tokens
print("transformers", transformers.__version__, ids)
raise SystemExit(ids != {"gpt-2": ["12"], "smollm": ["12"], "SmolLM2's own steps": ["1", "2"]})
PY
