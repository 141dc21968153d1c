"""PLM 1.8B (Deng et al. 2025; the authors' modeling_plm.py): latent attention and a squared ReLU."""
from kin import *


def plm(k, w, tokens, n_ctx):
    eps, n_head, rank, rot = (k(name) for name in ("attention.layer_norm_rms_epsilon", "attention.head_count", "attention.kv_lora_rank", "rope.dimension_count"))
    d = k("attention.key_length") - rot
    theta, mag = scaled_frequencies(k, rot)
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b = layer(w, l)
        h = rms_norm(x, b("attn_norm"), eps)
        q = split_heads(linear(h, b("attn_q")), n_head)
        q = np.concatenate([q[..., :d], rotate(q[..., d:], theta, False, mag)], -1)
        low = linear(h, b("attn_kv_a_mqa"))
        both = split_heads(linear(rms_norm(low[:, :rank], b("attn_kv_a_norm"), eps), b("attn_kv_b")), n_head)
        shared = rotate(low[:, None, rank:], theta, False, mag)
        key = np.concatenate([both[..., :d], np.repeat(shared, n_head, 1)], -1)
        x = x + linear(merge_heads(attention(q, key, both[..., d:])), b("attn_output"))
        up = linear(rms_norm(x, b("ffn_norm"), eps), b("ffn_up"))
        x = x + linear(np.maximum(up, 0) ** 2, b("ffn_down"))
    return linear(rms_norm(x, w["output_norm.weight"], eps), w["token_embd.weight"])


def model(name, seed, more={}, d=10, rot=6, dv=9, rank=14):
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD)
    for l in range(2):
        b = f"blk.{l}."
        w.norm(b + "attn_norm", N_EMBD)
        w.matrix(b + "attn_q", N_HEAD * (d + rot), N_EMBD, gain=1.5)
        w.matrix(b + "attn_kv_a_mqa", rank + rot, N_EMBD, gain=1.5)
        w.norm(b + "attn_kv_a_norm", rank)
        w.matrix(b + "attn_kv_b", N_HEAD * (d + dv), rank, gain=1.5)
        w.matrix(b + "attn_output", N_EMBD, N_HEAD * dv)
        w.norm(b + "ffn_norm", N_EMBD)
        w.matrix(b + "ffn_up", N_FF, N_EMBD)
        w.matrix(b + "ffn_down", N_EMBD, N_FF)
    w.norm("output_norm", N_EMBD)
    add(name, "plm", {**keys_of(2, N_EMBD, N_FF, N_HEAD, EPS), "attention.head_count_kv": N_HEAD, "attention.kv_lora_rank": rank, "attention.key_length": d + rot,
                      "attention.value_length": dv, "rope.dimension_count": rot, **more}, w, plm)


model("plm", 1671, {"rope.freq_base": 300.0})
model("plm-yarn", 1672, YARN)
