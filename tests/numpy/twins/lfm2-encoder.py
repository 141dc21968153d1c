"""LFM 2 as an encoder (LiquidAI's LFM2.5-Embedding, after llama.cpp's lfm2.cpp): its tokens all see each other, and its convolutions are around each."""
from encoders import *


def around(x, taps):
    """x [T, n], taps [n, k], k odd: the middle tap is the token itself, zeros beyond both ends."""
    reach, out = taps.shape[1] // 2, np.zeros_like(x)
    for t in range(len(x)):
        for j in range(taps.shape[1]):
            if 0 <= t + j - reach < len(x):
                out[t] += taps[:, j] * x[t + j - reach]
    return out


def forward(k, w, tokens, output):
    n, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(k, n // n_head)
    x = w["token_embd.weight"][tokens]
    for l in range(k("block_count")):
        b, n_kv = layer(w, l), k("attention.head_count_kv")[l]
        h = rms_norm(x, b("attn_norm"), eps)
        if n_kv == 0:
            before, after, y = np.split(linear(h, b("shortconv.in_proj")), 3, axis=-1)
            x = x + linear(after * around(before * y, b("shortconv.conv")), b("shortconv.out_proj"))
        else:
            q = rms_norm(split_heads(linear(h, b("attn_q")), n_head), b("attn_q_norm"), eps)
            key = rms_norm(split_heads(linear(h, b("attn_k")), n_kv), b("attn_k_norm"), eps)
            a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), split_heads(linear(h, b("attn_v")), n_kv), both=True)
            x = x + linear(merge_heads(a), b("attn_output"))
        x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
    return rms_norm(x, w["token_embd_norm.weight"], eps)


def model(name, seed, more={}, n_taps=3, heads=(0, 2, 0, 4)):
    w = Weights(seed)
    w.embedding(N_VOCAB, N_EMBD, True)
    for l, n_kv in enumerate(heads):
        b, d = f"blk.{l}.", N_EMBD // 4
        w.norm(b + "attn_norm", N_EMBD)
        if n_kv == 0:
            w.put(b + "shortconv.conv.weight", w.random.normal(size=(N_EMBD, n_taps)))
            w.matrix(b + "shortconv.in_proj", 3 * N_EMBD, N_EMBD)
            w.matrix(b + "shortconv.out_proj", N_EMBD, N_EMBD)
        else:
            w.attention(l, N_EMBD, 4, n_kv, d)
            w.norm(b + "attn_q_norm", d)
            w.norm(b + "attn_k_norm", d)
        w.norm(b + "ffn_norm", N_EMBD)
        w.gated(l, N_EMBD, N_FF)
    w.norm("token_embd_norm", N_EMBD)
    encoder(name, "lfm2", {**keys_of(len(heads), N_EMBD, N_FF, 4, EPS), "attention.head_count_kv": list(heads), "shortconv.l_cache": n_taps, "attention.causal": False, **more}, w, forward)


model("lfm2-encoder", 5701)
model("lfm2-encoder-yarn", 5702, {"rope.freq_base": 300.0, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16}, n_taps=5)
