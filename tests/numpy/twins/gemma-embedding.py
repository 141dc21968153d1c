"""EmbeddingGemma (Vera et al. 2025; transformers' modeling_gemma3.py with use_bidirectional_attention; two dense layers of sentence-transformers
after the mean, which are products, so that here they follow each row)."""
from encoders import *


def model(name, seed, more={}, n_kv=4, d=16, dv=None, n_layer=3, dense=None):
    def parts(w, l):
        for part in ("attn_q_norm", "attn_k_norm"):
            w.norm(f"blk.{l}.{part}", d)
        for part in ("post_attention_norm", "post_ffw_norm"):
            w.norm(f"blk.{l}.{part}", N_EMBD)
    w = llama_weights(seed, n_kv, d, dv, n_layer=n_layer, parts=parts)
    if dense:
        w.matrix("dense_2", dense[0], N_EMBD)
        w.matrix("dense_3", dense[1], dense[0])
    keys = {**keys_of(n_layer, N_EMBD, N_FF, 4, EPS), "attention.key_length": d, "attention.sliding_window": 9, **more}
    encoder(name, "gemma-embedding", keys, w, None)


model("gemma-embedding", 3501, {"rope.freq_base": 1e6, "attention.causal": False, "attention.sliding_window_pattern": 3})
model("gemma-embedding-dense", 3502, {"attention.head_count_kv": 2, "attention.value_length": 10, "rope.freq_base": 300.0, "rope.freq_base_swa": 20.0,
                                      "rope.scaling.type": "linear", "rope.scaling.factor": 3.0, "rope.scaling.attn_factor": 1.4,
                                      "dense_2_feat_in": 48, "dense_2_feat_out": 70, "dense_3_feat_in": 70, "dense_3_feat_out": 33,
                                      "attention.layer_norm_rms_epsilon": None}, 2, 16, 10, 7, (70, 33))
model("gemma-embedding-sizes", 3503, {"rope.freq_base": 1e6, "attention.sliding_window": 6, "attention.sliding_window_pattern": 2}, dense=(48, 48))
