"""MPT (MosaicML 2023; llm-foundry's modeling_mpt): ALiBi or learned positions, clamped or normalised Q and K."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward(k, w, tokens, n_ctx):
    n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_epsilon")
    n_kv, clip = k("attention.head_count_kv", n_head), k("attention.clamp_kqv", 0) or math.inf
    slopes = alibi_slopes(n_head, k("attention.max_alibi_bias")) if k("attention.max_alibi_bias", 0) else None
    x = w["token_embd.weight"][tokens]
    if "position_embd.weight" in w:
        x = x + w["position_embd.weight"][: len(tokens)]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = layer_normed(b, x, "attn_norm", eps)
        q, key, v = (np.clip(p, -clip, clip) for p in fused_qkv(b, h, n_head, n_kv, k("attention.key_length", n_embd // n_head)))
        if b("attn_q_norm") is not None:  # over the whole row
            q = split_heads(layer_normed(b, merge_heads(q), "attn_q_norm", eps), n_head)
            key = split_heads(layer_normed(b, merge_heads(key), "attn_k_norm", eps), n_kv)
        x = x + dense(b, merge_heads(attention(q, key, v, slopes=slopes)), "attn_output")
        up = gelu(dense(b, layer_normed(b, x, "ffn_norm", eps), "ffn_up"))
        scales = w.get(f"blk.{l}.ffn.act.scales")
        x = x + dense(b, up if scales is None else up / scales, "ffn_down")
    return tied_output(w, final_norm(w, x, eps))


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
    add(name, "mpt", {**keys_of(2, n_embd, n_ff, n_head, 1e-1, True), **more}, w, forward)


mpt("mpt", 2041, {"rope.freq_base": 20000.0, "attention.max_alibi_bias": 8.0, "attention.clamp_kqv": 1.3})
mpt("mpt-positions", 2042, {"attention.max_alibi_bias": 0.0, "attention.clamp_kqv": 0.0}, positions=True, bias=True, tied=False)
mpt("mpt-norms", 2043, {"attention.max_alibi_bias": 5.0, "attention.head_count_kv": 2, "attention.key_length": 10}, 2, 10, norms="bias")
mpt("mpt-scales", 2044, norms="plain", scales=True)
