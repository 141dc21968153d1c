#!/bin/sh
# GPTQ's first format stores each zero point less 1. gptqmodel writes it by a subtraction from whole words of 32 bits, so that a zero point of 0 borrows from the next one, and its loader adds in whole words again, which
# gives back what was there. Its function that turns a quantized folder into an ordinary one, convert_gptq_file, adds to each field of 4 bits instead: the zero point after a 0 is then less by 1. One folder has two meanings.
# Zero points of 0 are usual where sym is false and a column has no negative number.
# Seen with gptqmodel 7.7.0, torch 2.13.0 and transformers 5.24.0 (PyPI): the lines at the end. The weights are all 1 or more with a scale of 1 and a zero point of 0 in every second row, 8 in the others.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3 -m venv .
bin/pip install -q setuptools wheel torch==2.13.0 transformers==5.24.0 numpy==2.4.6 safetensors accelerate==1.15.0 requests==2.34.2 >/dev/null 2>&1
BUILD_CUDA_EXT=0 bin/pip install -q --no-deps --no-build-isolation gptqmodel==7.7.0 logbar==0.4.15 pypcre==0.6.4 tokenicer==0.0.14 device-smi==0.5.7 defuser==0.0.28 pillow==13.0.0 threadpoolctl==3.8.0 >/dev/null 2>&1
cat >run.py <<'END'
import argparse, pathlib, torch
from safetensors.torch import save_file
from gptqmodel.nn_modules.qlinear.torch import TorchLinear
from gptqmodel.utils.model import convert_gptq_v1_to_v2_format_module, convert_gptq_v2_to_v1_format_module
from gptqmodel.utils.model_dequant import convert_gptq_file
rows, columns = 64, 64
zero = torch.tensor([[0.0], [8.0]]).repeat(rows // 2, 1)
codes = torch.arange(columns).repeat(rows, 1) % 16
linear = torch.nn.Linear(columns, rows, bias=False)
linear.weight.data = codes - zero
m = TorchLinear(bits=4, group_size=64, sym=False, desc_act=False, in_features=columns, out_features=rows, register_buffers=True)
m.pack_original(linear, torch.ones(rows, 1), zero, torch.zeros(columns, dtype=torch.int32))
m.post_init()
convert_gptq_v2_to_v1_format_module(m, argparse.Namespace(bits=4, pack_dtype=torch.int32))
save_file({f"l.{k}": getattr(m, k).data.clone() for k in ("qweight", "qzeros", "scales", "g_idx")}, "model.safetensors")
convert_gptq_v1_to_v2_format_module(m, 4, torch.int32)
loaded = m.dequantize_weight().T.float()
made = convert_gptq_file(pathlib.Path("model.safetensors"), torch.float32, {"bits": 4, "checkpoint_format": "gptq"}, "cpu")["l.weight"]
for name, w in (("loader", loaded), ("convert_gptq_file", made)):
    wrong = (w != linear.weight.data)
    print(f"{name}: {int(wrong.any(1).sum())} of {rows} rows differ, at most by {float((w - linear.weight.data).abs().max()):g}")
END
bin/python run.py >out.txt 2>err.txt || tail -3 err.txt
grep " rows " out.txt >got.txt || true
cat got.txt
cat >want.txt <<'END'
loader: 0 of 64 rows differ, at most by 0
convert_gptq_file: 32 of 64 rows differ, at most by 1
END
diff want.txt got.txt
