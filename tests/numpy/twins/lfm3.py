"""LFM 3 (Liquid 2026, transformers' modeling_lfm3.py): short convolutions, attention with a sigmoid for each head, windows, norms after each part."""
from kin import *


def model(name, seed, kinds, more={}, norms=True, gate=True, factors=(), own_norm="token_embd_norm", **named):
    """kinds: of each layer, c: convolution, w: attention with a window, a: without."""
    d = more.get("attention.key_length") or 12

    def parts(w, l):
        b = f"blk.{l}."
        if norms:
            w.norm(b + "post_attention_norm", N_EMBD)
            w.norm(b + "post_ffw_norm", N_EMBD)
        if kinds[l] == "c":
            for part in ("q", "k", "v", "output", "q_norm", "k_norm"):
                del w[f"{b}attn_{part}.weight"]
            w.matrix(b + "shortconv.in_proj", 3 * N_EMBD, N_EMBD)
            w.matrix(b + "shortconv.conv", N_EMBD, 4)
            w.matrix(b + "shortconv.out_proj", N_EMBD, N_EMBD, gain=2)
        elif gate:
            w.matrix(b + "attn_gate", N_HEAD, N_EMBD, gain=2)

    case = kin(name, "lfm3", seed, {"attention.head_count_kv": 2, "attention.sliding_window": 5, "shortconv.l_cache": 4, **more}, n_layer=len(kinds), qk_norm=True, parts=parts,
               whole=lambda w: factors and w.put("rope_freqs.weight", factors), **named)
    case.tensors[own_norm + ".weight"] = case.tensors.pop("output_norm.weight")
    case.keys |= {"attention.head_count_kv": [0 if kind == "c" else 2 for kind in kinds], "attention.sliding_window_pattern": [kind == "w" for kind in kinds]}


model("lfm3", 3601, "cwca", {"rope.freq_base": 900.0, "rope.freq_base_swa": 30.0}, factors=[1, 1, 1, 1e30, 1e30, 1e30])
model("lfm3-plain", 3602, "wca", {**YARN, "attention.key_length": 14, "attention.value_length": 14, "rope.dimension_count": 10}, norms=False, gate=False, own_norm="output_norm", tied=False)
model("lfm3-part", 3603, "acw", {"rope.dimension_count_swa": 8})
