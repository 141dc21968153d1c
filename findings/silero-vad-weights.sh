#!/bin/sh
# The package silero-vad has several files of its model. silero_vad.jit and silero_vad_16k_op15.onnx have the same weights, but silero_vad_16k.safetensors has those of
# another training: the same shapes, other numbers, other probabilities. (silero_vad.onnx has the same weights as the .jit, too.)
# Seen with silero-vad 6.2.3 of PyPI: the first weight of the first convolution differs, the short-time spectrum's does not.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/env"
"$tmp/env/bin/pip" -q --disable-pip-version-check download --no-deps -d "$tmp" silero-vad==6.2.3
cat >"$tmp/weights.py" <<'END'
import glob, json, struct, sys, zipfile

wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
safe, onnx = (wheel.read("silero_vad/data/" + n) for n in ("silero_vad_16k.safetensors", "silero_vad_16k_op15.onnx"))
n = struct.unpack("<Q", safe[:8])[0]
head = json.loads(safe[8 : 8 + n])
for name in ("stft_conv.weight", "conv1.weight", "lstm_cell.weight_hh", "final_conv.weight"):
    first, end = head[name]["data_offsets"]
    print(name, "same" if safe[8 + n + first : 8 + n + end] in onnx else "other")
END
got=$(python3 "$tmp/weights.py" "$tmp")
echo "$got"
[ "$got" = "stft_conv.weight same
conv1.weight other
lstm_cell.weight_hh other
final_conv.weight other" ]
