"""Baichuan (Yang et al. 2023), XVERSE: Llama's layers; Baichuan 13B, of 40 layers, with ALiBi and no rotation."""
from blocks import *
from families import *
from nano import Weights, add, keys_of


def forward_of(arch):
    def forward(k, w, tokens, n_ctx):
        n_embd, n_head, eps = k("embedding_length"), k("attention.head_count"), k("attention.layer_norm_rms_epsilon")
        theta, mag = scaled_frequencies(k, k("rope.dimension_count", k("attention.key_length", n_embd // n_head)))
        x = w["token_embd.weight"][tokens]
        for l in range(k("block_count")):
            b = layer(w, l)
            q, key, v = separate_qkv(b, rms_norm(x, b("attn_norm"), eps), n_head, k("attention.head_count_kv", n_head))
            if arch == "baichuan" and k("block_count") == 40:
                a = attention(q, key, v, slopes=alibi_slopes(n_head, k("attention.max_alibi_bias", 8.0)))
            else:
                a = attention(rotate(q, theta, False, mag), rotate(key, theta, False, mag), v)
            x = x + linear(merge_heads(a), b("attn_output"))
            x = x + swiglu(b, rms_norm(x, b("ffn_norm"), eps))
        return tied_output(w, rms_norm(x, w["output_norm.weight"], eps))
    return forward


def baichuan(name, arch, seed, more={}, n_kv=4, d=12, n_layer=2, n_embd=48, n_head=4, n_ff=76, tied=False):
    w = Weights(seed)
    w.embedding(88, n_embd, tied)
    for l in range(n_layer):
        w.norm(f"blk.{l}.attn_norm", n_embd)
        w.attention(l, n_embd, n_head, n_kv, d)
        w.norm(f"blk.{l}.ffn_norm", n_embd)
        w.gated(l, n_embd, n_ff)
        for part in ("attn_output", "ffn_down") if n_layer > 2 else ():  # what so many layers add stays small
            w[f"blk.{l}.{part}.weight"] *= np.float32(0.15)
    w.norm("output_norm", n_embd)
    add(name, arch, {**keys_of(n_layer, n_embd, n_ff, n_head, 1e-2), **more}, w, forward_of(arch))


small = {"n_layer": 40, "n_embd": 12, "n_head": 3, "n_kv": 3, "d": 4, "n_ff": 14}
baichuan("baichuan-7b", "baichuan", 2101, {"rope.dimension_count": 12, "tensor_data_layout": "Meta AI original pth"})
baichuan("baichuan-13b", "baichuan", 2102, {"rope.dimension_count": 4, "attention.head_count_kv": 3}, **small)
baichuan("baichuan-13b-bias", "baichuan", 2103, {"attention.max_alibi_bias": 5.0}, **small)
baichuan("xverse", "xverse", 2104, {"attention.head_count_kv": 2, "attention.key_length": 14, "rope.dimension_count": 10,
                                    "rope.freq_base": 300.0, "rope.scaling.type": "linear", "rope.scaling.factor": 3.0,
                                    "rope.scaling.attn_factor": 1.3}, 2, 14, tied=True)
baichuan("xverse-40", "xverse", 2105, **small)
