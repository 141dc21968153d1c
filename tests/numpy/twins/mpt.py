"""MPT (MosaicML 2023; llm-foundry's modeling_mpt): ALiBi or learned positions, clamped or normalised Q and K."""
from nano import Weights, add, keys_of


def mpt(name, seed, more={}, n_kv=6, d=8, tied=True, positions=False, norms="", bias=False, scales=False):
    n_embd, n_head, n_ff = 48, 6, 94
    w = Weights(seed)
    w.embedding(86, n_embd, tied)
    if positions:
        w.put("position_embd.weight", 0.25 * w.random.normal(size=(64, n_embd)))
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", n_embd, bias)
        w.matrix(b + "attn_qkv", (n_head + 2 * n_kv) * d, n_embd, gain=1.5, bias=bias)
        w.matrix(b + "attn_output", n_embd, n_head * d, bias=bias)
        for part, n in [("q", n_head), ("k", n_kv)] if norms else []:
            w.norm(b + f"attn_{part}_norm", n * d, norms == "bias")
        w.norm(b + "ffn_norm", n_embd, bias)
        w.matrix(b + "ffn_up", n_ff, n_embd, bias=bias)
        w.matrix(b + "ffn_down", n_embd, n_ff, gain=2, bias=bias)
        if scales:
            w.put(b + "ffn.act.scales", w.random.uniform(0.5, 2, n_ff))
    w.norm("output_norm", n_embd, bias)
    add(name, "mpt", {**keys_of(2, n_embd, n_ff, n_head, 1e-1, True), **more}, w)


mpt("mpt", 2041, {"rope.freq_base": 20000.0, "attention.max_alibi_bias": 8.0, "attention.clamp_kqv": 1.3})
mpt("mpt-positions", 2042, {"attention.max_alibi_bias": 0.0, "attention.clamp_kqv": 0.0}, positions=True, bias=True, tied=False)
mpt("mpt-norms", 2043, {"attention.max_alibi_bias": 5.0, "attention.head_count_kv": 2, "attention.key_length": 10}, 2, 10, norms="bias")
mpt("mpt-scales", 2044, norms="plain", scales=True)
