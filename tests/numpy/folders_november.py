"""Folders of classes that came with transformers 5.24, as ./folders_late.py has them: rows in ./recorded.txt are transformers' own."""
from folders import EPS, N_EMBD, N_FF, N_HEAD, N_VOCAB
from folders_experts import N_EACH, N_EXPERT
from folders_late import FEED, SIZE, attention, put

N_ALL = 20  # the width of the expert that all tokens pass
KINDS = ["sliding_attention", "full_attention", "sliding_attention"]
OWN = {**SIZE, "num_hidden_layers": 3, "head_dim": 16, "rms_norm_eps": EPS, "hidden_act": "silu", "sliding_window": 5, "layer_types": KINDS, "num_experts": N_EXPERT, "num_experts_per_tok": 2,
       "moe_intermediate_size": N_EACH, "tie_word_embeddings": False, "d": 16, "theta": 500.0}
EACH = {"gate_proj": (N_EACH, N_EMBD), "up_proj": (N_EACH, N_EMBD), "down_proj": (N_EMBD, N_EACH)}
ALL = {"gate_proj": (N_ALL, N_EMBD), "up_proj": (N_ALL, N_EMBD), "down_proj": (N_EMBD, N_ALL)}


def under(p, shapes):
    return {p + name: shape for name, shape in shapes.items()}


def experts(shared=""):
    """A router, its experts, and one that all tokens pass."""
    return {"mlp.gate": (N_EXPERT, N_EMBD)} | (under(f"mlp.{shared}.", ALL) if shared else {}) | {name: shape for e in range(N_EXPERT) for name, shape in under(f"mlp.experts.{e}.", EACH).items()}


def frame(w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})


QK = attention(16) | {"self_attn.q_norm": 16, "self_attn.k_norm": 16}


def kolibri_weights(c, w):
    frame(w)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", dict.fromkeys(("input_layernorm", "post_attn_norm", "post_attention_layernorm", "post_ffn_norm"), N_EMBD) | QK
            | experts("shared_experts") | {"moe.router.expert_bias!": N_EXPERT})


def renamed(**names):
    """The names of transformers' code in place of those of published folders."""
    def layout(w):
        for old, new in names.items():
            w = {name.replace(old, new): t for name, t in w.items()}
        return w
    return layout


def flint_weights(c, w):
    frame(w)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD, "self_attn.softmax_offset!": N_HEAD} | QK | (FEED if l == 0 else experts("shared_expert")))


def beam_weights(c, w):
    frame(w)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", dict.fromkeys(("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"), N_EMBD) | QK
            | {"self_attn.gate_proj": (N_HEAD * 16, N_EMBD), "self_attn.gate_bias!": N_HEAD}
            | (FEED if l == 0 else experts() | {"mlp.gate.e_score_correction_bias!": N_EXPERT}))


KOLIBRI = {**OWN, "model_type": "kolibri1", "shared_expert_intermediate_size": N_ALL, "norm_topk_prob": False}
SAVED = renamed(post_attn_norm="post_self_attn_layernorm", post_ffn_norm="post_mlp_layernorm", **{"moe.router.expert_bias": "mlp.gate.e_score_correction_bias"})
CLASSES = {
    "Kolibri1ForCausalLM": (KOLIBRI, kolibri_weights, ["default", "yarn"]),
    "Kolibri1ForCausalLM saved": ({**KOLIBRI, "layout": SAVED, "norm_topk_prob": True}, kolibri_weights, ["default"]),
    "FlintForCausalLM": ({**OWN, "model_type": "flint", "intermediate_size": N_FF, "shared_expert_intermediate_size": N_ALL, "norm_topk_prob": True, "mlp_only_layers": [0], "decoder_sparse_step": 1,
                          "attention_bias": False}, flint_weights, ["default", "linear"]),
    "BeamForCausalLM": ({**OWN, "model_type": "beam", "intermediate_size": N_FF, "mlp_layer_types": ["dense", "sparse", "sparse"], "n_group": 2, "topk_group": 1, "routed_scaling_factor": 2.5,
                         "norm_topk_prob": True, "final_logit_softcapping": 3.0, "attention_bias": False,
                         "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 500.0}, "full_attention": None}}, beam_weights, [None]),
}
