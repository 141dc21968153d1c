"""EmbeddingGemma 2 (Google 2026; transformers' modeling_embedding_gemma2.py): Gemma 4's block in both directions, a vector for each layer, a product at the end."""
from encoders import *


def forward(k, w, tokens, output):
    n_embd, n_each, eps = k("embedding_length"), k("embedding_length_per_layer_input"), k("attention.layer_norm_rms_epsilon", 1e-6)
    d_far, pattern, base = k("attention.key_length"), k("attention.sliding_window_pattern", 6), k("rope.freq_base", 1e6)
    d_near = k("attention.key_length_swa", d_far)
    far = scaled_frequencies(lambda key, *rest: base if key == "rope.freq_base" else k(key, *rest), k("rope.dimension_count", d_far))
    close = inverse_frequencies(k("rope.dimension_count_swa", d_near), k("rope.freq_base_swa", 1e4)), 1.0
    x = w["token_embd.weight"][tokens] * n_embd**0.5
    own = linear(x, w["per_layer_model_proj.weight"]).reshape(len(x), -1, n_each) / n_embd**0.5
    own = rms_norm(own, w["per_layer_proj_norm.weight"], eps)
    for l in range(k("block_count")):
        b = layer(w, l)
        near = pattern[l] if isinstance(pattern, list) else (l + 1) % pattern != 0
        n_kv = k("attention.head_count_kv", [4] * 9)[l]
        theta, mag = close if near else far
        q, key, v = heads_of(k, b, rms_norm(x, b("attn_norm"), eps), n_kv)
        q, key, v = rms_norm(q, b("attn_q_norm"), eps), rms_norm(key, b("attn_k_norm"), eps), rms_norm(v, None, eps)
        a = attention(rotate(q, theta, True, mag), rotate(key, theta, True, mag), v, 1.0, k("attention.sliding_window") if near else None, both=True)
        x = x + rms_norm(linear(merge_heads(a), b("attn_output")), b("post_attention_norm"), eps)
        h = rms_norm(x, b("ffn_norm"), eps)
        x = x + rms_norm(linear(gelu(linear(h, b("ffn_gate"))) * linear(h, b("ffn_up")), b("ffn_down")), b("post_ffw_norm"), eps)
        x = x + rms_norm(linear(gelu(linear(x, b("inp_gate"))) * own[:, l], b("proj")), b("post_norm"), eps)
        x = x if b("layer_output_scale") is None else x * b("layer_output_scale")
    rows = rms_norm(x, w["output_norm.weight"], eps)
    return linear(rows, w["dense_2.weight"]) if "dense_2.weight" in w else rows


def model(name, seed, near, more={}, d_far=20, d_near=16, n_kv=None, dense=None, scale=False):
    """near: which layers have a window; n_kv: key heads of each."""
    w, n_each, n_layer = Weights(seed), 10, len(near)
    w.embedding(N_VOCAB, N_EMBD)
    w.matrix("per_layer_model_proj", n_each * n_layer, N_EMBD, gain=2)
    w.norm("per_layer_proj_norm", n_each)
    for l in range(n_layer):
        b, d = f"blk.{l}.", d_near if near[l] else d_far
        for part in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm"):
            w.norm(b + part, N_EMBD)
        w.attention(l, N_EMBD, 4, (n_kv or [4] * 9)[l], d)
        w.norm(b + "attn_q_norm", d)
        w.norm(b + "attn_k_norm", d)
        for part in ("attn_q_norm", "attn_k_norm"):
            w[f"{b}{part}.weight"] *= 0.5  # scores are not scaled
        w.gated(l, N_EMBD, N_FF)
        w.matrix(b + "inp_gate", n_each, N_EMBD)
        w.matrix(b + "proj", N_EMBD, n_each)
        if scale:
            w.vector(b + "layer_output_scale.weight", 1, shift=0.8)
    w.norm("output_norm", N_EMBD)
    if dense:
        w.matrix("dense_2", dense, N_EMBD)
    keys = {**keys_of(n_layer, N_EMBD, N_FF, 4, EPS), "attention.key_length": d_far, "attention.key_length_swa": d_near, "attention.head_count_kv": n_kv, "attention.sliding_window": 8,
            "embedding_length_per_layer_input": n_each, **more}
    encoder(name, "gemma-embedding2", keys, w, forward)


model("gemma-embedding2", 3701, [True, True, False], {"attention.sliding_window_pattern": [True, True, False], "rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "attention.causal": False,
                                                      "dense_2_feat_in": 48, "dense_2_feat_out": 33}, n_kv=[2, 2, 1], dense=33, scale=True)
model("gemma-embedding2-plain", 3702, [True] * 5 + [False], {"attention.key_length_swa": None, "attention.layer_norm_rms_epsilon": None, "attention.value_length": 16, "attention.value_length_swa": 16}, d_far=16)
model("gemma-embedding2-turned", 3703, [True, False], {"attention.sliding_window_pattern": 2, "attention.sliding_window": 5, "rope.dimension_count": 16, "rope.dimension_count_swa": 10, "rope.scaling.type": "linear",
                                                       "rope.scaling.factor": 3.0, "rope.freq_base": 300.0, "embedding_length_out": 30, "attention.shared_kv_layers": 0}, dense=30)
