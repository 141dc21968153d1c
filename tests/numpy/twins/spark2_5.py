"""Spark X2.5 (iFlytek 2026; written from llama.cpp's converter and graph): a sigmoid for each head, windows with their own rotation."""
from kin import *


def model(name, seed, pattern, more={}, **named):
    def parts(w, l):
        w.matrix(f"blk.{l}.attn_gate", N_HEAD, N_EMBD, gain=2)

    return kin(name, "spark2_5", seed, {"attention.sliding_window": 5, "attention.sliding_window_pattern": pattern, **more}, n_layer=len(pattern), parts=parts, **named)


model("spark2_5", 3201, [True, False, True], {"rope.freq_base": 200.0, "rope.freq_base_swa": 30.0, "rope.dimension_count": 6, "rope.dimension_count_swa": 10})
model("spark2_5-plain", 3202, [False, True], {**sizes(14, 2, 14), "gelu": "erf"}, tied=False, bias="qkv")
case = model("spark2_5-heads", 3203, [True, False], {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 24, "rope.freq_base": 60.0, "attention.key_length": 12,
                                                      "attention.head_count_kv": 2})
case.keys |= {"attention.head_count": [4, 2], "attention.head_count_kv": [2, 1]}
for part in ("q", "k", "v", "gate"):
    t = case.tensors[f"blk.1.attn_{part}.weight"]
    case.tensors[f"blk.1.attn_{part}.weight"] = t[: len(t) // 2].copy()
case.tensors["blk.1.attn_output.weight"] = case.tensors["blk.1.attn_output.weight"][:, :24].copy()
model("spark2_5-common", 3204, [True, False, True], {**sizes(16, 2, 16), "rope.freq_base": 200.0, "rope.freq_base_swa": 30.0, "rope.dimension_count": 8, "rope.dimension_count_swa": 16}, tied=False)
