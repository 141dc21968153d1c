#!/bin/sh
# Weights of 8 bits with dynamic quantization: onnxruntime and PyTorch find one scale for the inputs of all rows. So the result of a text depends on which
# other texts are in the same batch: beside a row of 20 times its size, the row here has another vector than alone.
# Seen with onnxruntime 1.32.0, onnx 1.23.2, torch 2.13.0 (PyPI): cosines to the exact product, alone and beside the other row.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 onnx==1.23.2 onnxruntime==1.32.0 2>/dev/null
cd "$dir"
venv/bin/python - <<'PY' 2>/dev/null
import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

rng = np.random.default_rng(0)
w, row, other = (rng.normal(size=size).astype(np.float32) for size in ((32, 16), (1, 32), (1, 32)))
both = np.concatenate([row, 20 * other])
shape = helper.make_tensor_value_info
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [shape("x", TensorProto.FLOAT, ["n", 32])], [shape("y", TensorProto.FLOAT, ["n", 16])],
                          [numpy_helper.from_array(w, "w")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "full.onnx")
quantize_dynamic("full.onnx", "int8.onnx", weight_type=QuantType.QInt8)
session = onnxruntime.InferenceSession("int8.onnx", providers=["CPUExecutionProvider"])
linear = torch.nn.Linear(32, 16, bias=False)
linear.weight.data = torch.tensor(w.T.copy())
small = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(linear), {torch.nn.Linear})
same = True
for name, run in (("onnxruntime " + onnxruntime.__version__, lambda x: session.run(None, {"x": x})[0][0]), ("torch " + torch.__version__, lambda x: small(torch.tensor(x))[0].numpy())):
    alone, beside, exact = run(row), run(both), (row @ w)[0]
    near = [float(v @ exact / np.linalg.norm(v) / np.linalg.norm(exact)) for v in (alone, beside)]
    print(name, "alone:", near[0], "beside the other row:", near[1])
    same &= near[0] > 0.9998 and near[1] < 0.999
raise SystemExit(not same)
PY
