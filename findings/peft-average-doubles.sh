#!/bin/sh
# PEFT: add_weighted_adapter with the weights 0.5 and 0.5 of one adapter and its copy is not that adapter. "linear", "dare_linear" and "magnitude_prune"
# mix A and B apart from each other, each with the root of the weight, so that the result is twice the adapter; "ties" gives half of it. "cat" and "svd"
# add up the changes of weights themselves, and give the adapter back.
# Seen with peft 0.21.2 (PyPI): the factors 2, 2, 2, 0.5, 1, 1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0 peft==0.21.2 2>/dev/null
"$dir/venv/bin/python" - <<'PY' 2>/dev/null
import peft, torch

torch.manual_seed(1)
config = lambda: peft.LoraConfig(r=4, lora_alpha=8, target_modules=["0"])
model = peft.get_peft_model(torch.nn.Sequential(torch.nn.Linear(32, 24)), config(), adapter_name="one")
model.add_adapter("copy", config())
layer = model.base_model.model[0]
for half in (layer.lora_A, layer.lora_B):
    half["one"].weight.data.normal_()
    half["copy"].weight.data.copy_(half["one"].weight)
change = layer.get_delta_weight("one")
want = {"linear": 2, "dare_linear": 2, "magnitude_prune": 2, "ties": 0.5, "cat": 1, "svd": 1}
got = {}
for way in want:
    model.add_weighted_adapter(["one", "copy"], [0.5, 0.5], way, combination_type=way, **({} if way in ("linear", "cat", "svd") else {"density": 1.0}))
    mixed = layer.get_delta_weight(way)
    got[way] = float((mixed * change).sum() / (change * change).sum())
    if not torch.allclose(mixed, got[way] * change, atol=1e-3):
        raise SystemExit(f"{way}: no multiple of the adapter")
print("peft", peft.__version__, "factors:", {way: round(factor, 4) for way, factor in got.items()})
raise SystemExit(any(abs(got[way] - want[way]) > 1e-3 for way in want))
PY
