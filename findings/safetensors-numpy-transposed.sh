#!/bin/sh
# safetensors 0.8.0: save_file of safetensors.numpy writes the numbers of a transposed array in the order in which they lie in memory, under the
# transposed shape, without an error: what is read back is another matrix. 0.7.0 wrote what the array shows, and safetensors.torch refuses such tensors.
# numpy.ascontiguousarray before saving helps.
# Seen with safetensors 0.7.0 and 0.8.0 (PyPI), numpy 2.3.5: the first gives the matrix back, the second does not.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/run.py" <<'PY'
import sys

import numpy as np
import safetensors
from safetensors.numpy import load_file, save_file

a = np.arange(6, dtype=np.float32).reshape(2, 3).T
save_file({"a": a, "b": np.ascontiguousarray(a)}, sys.argv[1])
back = load_file(sys.argv[1])
print("safetensors", safetensors.__version__, "saved", a.tolist(), "read", back["a"].tolist(), "and, made contiguous before,", back["b"].tolist())
right = np.array_equal(back["a"], a)
raise SystemExit(not np.array_equal(back["b"], a) or right != (safetensors.__version__ == "0.7.0"))
PY
for version in 0.7.0 0.8.0; do
    python3 -m venv "$dir/$version"
    "$dir/$version/bin/pip" install --quiet safetensors==$version numpy==2.3.5 2>/dev/null
    "$dir/$version/bin/python" "$dir/run.py" "$dir/$version.safetensors"
done
