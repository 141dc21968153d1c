"""Muse Glimmer (Meta 2026): norms around each part, a gate on attention, and no positions on every fourth layer; after the graph of
ik_llama.cpp."""
from families import swiglu
from kin import *

POST = 1e-8


def muse_glimmer(k, w, tokens, n_ctx):
    eps = k("attention.layer_norm_rms_epsilon")
    theta, mag = scaled_frequencies(lambda key, *other: k("rope.freq_base_swa", k("rope.freq_base", 10000.0)) if key == "rope.freq_base" else k(key, *other), head_size(k))
    pattern = k("attention.sliding_window_pattern", 4)
    x = rms_norm(w["token_embd.weight"][tokens], None, eps)
    for l in range(k("block_count") - k("nextn_predict_layers", 0)):
        b = layer(w, l)
        is_near = bool(pattern[l]) if isinstance(pattern, list) else l % pattern < pattern - 1
        h = rms_norm(x, b("attn_norm"), eps)
        q, key, v = qkv(k, b, h)
        q, key = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps)
        if is_near:
            q, key = rotate(q, theta, False, mag), rotate(key, theta, False, mag)
        a = merge_heads(attention(q, key, v, window=k("attention.sliding_window") if is_near else None))
        x = x + rms_norm(project(b, "attn_output", a * sigmoid(project(b, "attn_gate", h))), b("post_attention_norm"), POST)
        x = x + rms_norm(swiglu(b, rms_norm(x, b("ffn_norm"), eps)), b("post_ffw_norm"), POST)
    y = tied_output(w, rms_norm(x, w["output_norm.weight"], eps)) * k("logit_scale")
    cap = k("final_logit_softcapping", 0.0)
    return cap * np.tanh(y / cap) if cap else y


def model(name, seed, more={}, draft=0, **named):
    d, n_layer = more.get("attention.key_length") or N_EMBD // N_HEAD, 4

    def gate(w, l):
        w.matrix(f"blk.{l}.attn_gate", N_HEAD * d, N_EMBD)

    def drafts(w):
        for l in range(draft):
            w.norm(f"blk.{n_layer + l}.attn_norm", N_EMBD)

    kin(name, "muse-glimmer", muse_glimmer, seed, {"attention.sliding_window": 7, "logit_scale": 0.5, "block_count": n_layer + draft, **more}, n_layer=n_layer,
        norms=("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"), qk_norm=True, parts=gate, whole=drafts, **named)


model("muse-glimmer", 1191, {"final_logit_softcapping": 0.9}, tied=False)
model("muse-glimmer-pattern", 1192, {**sizes(16, 2), "attention.sliding_window_pattern": [0, 1, 1, 0], "rope.freq_base_swa": 300.0, "rope.freq_base": 10.0,
                                     "rope.dimension_count": 16})
model("muse-glimmer-draft", 1193, {**sizes(14, 1), "attention.sliding_window_pattern": 2, "nextn_predict_layers": 1, **YARN}, draft=1)
