#!/bin/sh
# CTranslate2 with weights of 8 bits: on processors without VNNI, its kernels of oneDNN add pairs of products in 16 bits, which overflow. oneDNN is what it takes
# on processors that are not Intel's. Logits are then some ten times as far from the exact ones as 8 bits make them; with MKL (CT2_USE_MKL=1), the
# same model on the same processor is right.
# Seen with ctranslate2 4.8.5, transformers 5.24.0 (PyPI), oneDNN limited to AVX2 by its own variable: the largest errors of a small Llama's logits.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0 ctranslate2==4.8.5 2>/dev/null
cd "$dir"
cat >run.py <<'PY'
import os
import sys

import ctranslate2
import numpy as np
import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

words = [f"w{i}" for i in range(50)] + ["<unk>", "<s>", "</s>"]
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=53, hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4, bos_token_id=51, eos_token_id=52,
                                     initializer_range=0.1)).eval()
if not os.path.isdir("int8"):
    model.save_pretrained("folder")
    PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>")), unk_token="<unk>", bos_token="<s>",
                            eos_token="</s>").save_pretrained("folder")
    ctranslate2.converters.TransformersConverter("folder").convert("int8", quantization="int8")
ids = [1, 5, 9, 20, 33]
with torch.no_grad():
    exact = model(input_ids=torch.tensor([ids])).logits[0].numpy()
for kind in ("float32", "int8"):
    got = np.array(ctranslate2.Generator("int8", device="cpu", compute_type=kind).forward_batch([[words[i] for i in ids]]))[0]
    print(kind, abs(got - exact).max())
PY
CT2_USE_MKL=1 venv/bin/python run.py 2>/dev/null >mkl.txt
CT2_USE_MKL=0 ONEDNN_MAX_CPU_ISA=AVX2 DNNL_MAX_CPU_ISA=AVX2 venv/bin/python run.py 2>/dev/null >dnnl.txt
echo "MKL:" && cat mkl.txt && echo "oneDNN with AVX2:" && cat dnnl.txt
paste -d " " mkl.txt dnnl.txt | awk '$1 == "float32" { ok = $2 < 0.1 && $4 < 0.1 } $1 == "int8" { exit !(ok && $2 < 0.1 && $4 > 0.3) }'
