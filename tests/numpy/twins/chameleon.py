"""Chameleon (Meta 2024; modeling_chameleon.py): LayerNorm on each head of Q and K, Swin's order of norms in the larger one, no image tokens."""
from kin import *


def chameleon(k, w, tokens, n_ctx):
    eps, swin = k("attention.layer_norm_rms_epsilon"), k("swin_norm", False)
    theta, mag = scaled_frequencies(k, k("rope.dimension_count", head_size(k)))
    pre = lambda x, weight: x if swin else rms_norm(x, weight, eps)
    post = lambda x, weight: rms_norm(x, weight, eps) if swin else x
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        q, key, v = qkv(k, b, pre(x, b("attn_norm")))
        q = layer_norm(q, b("attn_q_norm"), b("attn_q_norm", ".bias"), 1e-5)
        key = layer_norm(key, b("attn_k_norm"), b("attn_k_norm", ".bias"), 1e-5)
        a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)
        x = x + post(linear(merge_heads(a), b("attn_output")), b("attn_norm"))
        h = pre(x, b("ffn_norm"))
        x = x + post(linear(silu(linear(h, b("ffn_gate"))) * linear(h, b("ffn_up")), b("ffn_down")), b("ffn_norm"))
    y = tied_output(w, rms_norm(x, w["output_norm.weight"], eps))
    y[:, 4:8196] = np.finfo(np.float32).min
    return y


def model(name, seed, more={}, bias=False, tied=True):
    n_kv, d = more.get("attention.head_count_kv", N_HEAD), more.get("attention.key_length", 12)

    def parts(w, l):
        for part, n in (("q", N_HEAD), ("k", n_kv)):
            w.vector(f"blk.{l}.attn_{part}_norm.weight", (n, d), 0.3, 1)
            if bias:
                w.vector(f"blk.{l}.attn_{part}_norm.bias", (n, d))

    case = kin(name, "chameleon", chameleon, seed, more, tied=tied, parts=parts)
    for part in ("token_embd", "output"):
        if part + ".weight" in case.tensors:  # so many that some are no pieces of images
            case.tensors[part + ".weight"] = np.concatenate([case.tensors[part + ".weight"]] * 90)[:8240]


model("chameleon", 1771, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 8, "rope.freq_base": 300.0}, True, False)
model("chameleon-swin", 1772, {"swin_norm": True, **YARN})
