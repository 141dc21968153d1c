"""EmbeddingGemma 2 (Google 2026; transformers' modeling_embedding_gemma2.py): Gemma 4's block in both directions, a vector for each layer, a product at the end."""
from encoders import *


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
    encoder(name, "gemma-embedding2", keys, w, None)


model("gemma-embedding2", 3701, [True, True, False], {"attention.sliding_window_pattern": [True, True, False], "rope.freq_base": 900.0, "rope.freq_base_swa": 20.0, "attention.causal": False,
                                                      "dense_2_feat_in": 48, "dense_2_feat_out": 33}, n_kv=[2, 2, 1], dense=33, scale=True)
model("gemma-embedding2-plain", 3702, [True] * 5 + [False], {"attention.key_length_swa": None, "attention.layer_norm_rms_epsilon": None, "attention.value_length": 16, "attention.value_length_swa": 16}, d_far=16)
model("gemma-embedding2-turned", 3703, [True, False], {"attention.sliding_window_pattern": 2, "attention.sliding_window": 5, "rope.dimension_count": 16, "rope.dimension_count_swa": 10, "rope.scaling.type": "linear",
                                                       "rope.scaling.factor": 3.0, "rope.freq_base": 300.0, "embedding_length_out": 30, "attention.shared_kv_layers": 0}, dense=30)
