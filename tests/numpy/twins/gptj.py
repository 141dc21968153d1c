"""GPT-J (Wang & Komatsuzaki 2021; modeling_gptj) and CodeGen (Nijkamp et al. 2022; modeling_codegen): parallel on one LayerNorm, adjacent pairs rotated, biases in the MLP only."""
from nano import Weights, add, keys_of


def gptj(name, seed, more={}, n_kv=4, d=12, bias=True, tied=False, arch="gptj"):
    n_embd, n_head, n_ff = 48, 4, 76
    w = Weights(seed)
    w.embedding(88, n_embd)
    if not tied:
        w.matrix("output", 88, n_embd, bias=bias)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, True)
        w.attention(l, n_embd, n_head, n_kv, d)
        w.matrix(b + "ffn_up", n_ff, n_embd, bias=True)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2, bias=True)
    w.norm("output_norm", n_embd, True)
    add(name, arch, {**keys_of(2, n_embd, n_ff, n_head, 1e-2, True), **more}, w)


gptj("gptj", 2071, {"rope.dimension_count": 6, "rope.freq_base": 300.0})
gptj("gptj-others", 2072, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.scaling.type": "linear",
                           "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.3}, 2, 14, False)
gptj("gptj-plain", 2073, tied=True)
gptj("codegen", 2074, {"rope.dimension_count": 8}, arch="codegen")
