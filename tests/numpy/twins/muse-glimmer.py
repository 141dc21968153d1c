"""Muse Glimmer (Meta 2026): norms around each part, a gate on attention, and no positions on every fourth layer; after the graph of
ik_llama.cpp."""
from kin import *



def model(name, seed, more={}, draft=0, **named):
    d, n_layer = more.get("attention.key_length") or N_EMBD // N_HEAD, 4

    def gate(w, l):
        w.matrix(f"blk.{l}.attn_gate", N_HEAD * d, N_EMBD)

    def drafts(w):
        for l in range(draft):
            w.norm(f"blk.{n_layer + l}.attn_norm", N_EMBD)

    kin(name, "muse-glimmer", seed, {"attention.sliding_window": 7, "logit_scale": 0.5, "block_count": n_layer + draft, **more}, n_layer=n_layer,
        norms=("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"), qk_norm=True, parts=gate, whole=drafts, **named)


model("muse-glimmer", 1191, {"final_logit_softcapping": 0.9}, tied=False)
model("muse-glimmer-pattern", 1192, {**sizes(16, 2), "attention.sliding_window_pattern": [0, 1, 1, 0], "rope.freq_base_swa": 300.0, "rope.freq_base": 10.0,
                                     "rope.dimension_count": 16})
model("muse-glimmer-draft", 1193, {**sizes(14, 1), "attention.sliding_window_pattern": 2, "nextn_predict_layers": 1, **YARN}, draft=1)
