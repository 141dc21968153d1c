"""Folders of models whose text parts alone are read, for ./folders.py: DeepSeek-OCR, after the authors' modeling_deepseekv2.py with
use_mla false, and Muse Glimmer, after modeling_muse_glimmer.py of transformers."""
from folders import *
from folders_experts import N_EACH, N_EXPERT, common_weights, expert_weights, gated_weights

POST_EPS = 1e-8


# --- DeepSeek-OCR


def deepseek_ocr_weights(c, w):
    common_weights(c, w)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        for name in "qkvo":
            w.matrix(f"{p}self_attn.{name}_proj.weight", N_EMBD, N_EMBD)
        if l < c["first_k_dense_replace"]:
            gated_weights(w, p + "mlp.", N_FF)
        else:
            expert_weights(w, p + "mlp.", shared=False)
            gated_weights(w, p + "mlp.shared_experts.", 2 * N_EACH)


def beside_sight(w):
    seen = {name: np.zeros((2, 2)) for name in ("sam_model.patch_embed.proj.weight", "vision_model.embeddings.class_embedding",
                                                "projector.layers.weight", "image_newline", "view_seperator")}
    return {**w, **{"model." + name: x for name, x in seen.items()}}


def written_twice(c):
    """The configuration of the language model, and most of it once more outside."""
    outside = {k: v for k, v in c.items() if k not in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")}
    return {**outside, "model_type": "deepseek_vl_v2", "candidate_resolutions": [[1024, 1024]], "global_view_pos": "head", "tile_tag": "2D",
            "projector_config": {"input_dim": 2048, "model_type": "mlp_projector"}, "vision_config": {"image_size": 1024},
            "language_config": {"architectures": ["DeepseekV2ForCausalLM"], **c}}


OCR = {"kind": "deepseek-ocr", "hidden_size": N_EMBD, "intermediate_size": N_FF, "num_attention_heads": N_HEAD, "num_key_value_heads": N_HEAD,
       "num_hidden_layers": N_LAYER, "vocab_size": N_VOCAB, "max_position_embeddings": 64, "first_k_dense_replace": 1, "moe_intermediate_size": N_EACH,
       "n_routed_experts": N_EXPERT, "n_shared_experts": 2, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "topk_method": "greedy",
       "use_mla": False, "kv_lora_rank": None, "q_lora_rank": None, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "lm_head": True,
       "rm_head": False, "bos_token_id": 0, "eos_token_id": 1, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
       "layout": beside_sight, "write": written_twice}


# --- Muse Glimmer


def muse_glimmer_weights(c, w):
    d = c["head_dim"]
    w.matrix("model.embed_tokens.weight", N_VOCAB, N_EMBD)
    w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    w.vector("model.norm.weight", N_EMBD, 1.0)
    for l in range(N_LAYER):
        p = f"model.layers.{l}."
        for name, rows, columns in (("q", N_HEAD * d, N_EMBD), ("k", N_KV * d, N_EMBD), ("v", N_KV * d, N_EMBD), ("gate", N_HEAD * d, N_EMBD),
                                    ("o", N_EMBD, N_HEAD * d)):
            w.matrix(f"{p}self_attn.{name}_proj.weight", rows, columns)
        gated_weights(w, p + "mlp.", N_FF)
        for name in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"):
            w.vector(f"{p}{name}.weight", N_EMBD)


def within_language_model(w):
    out = {name.replace("model.", "model.language_model.", 1): x for name, x in w.items()}
    return {**out, **{f"model.{name}.weight": np.zeros((2, 2)) for name in ("vision_tower.ln_pre", "vision_adapter.fc1", "vision_projection")}}


def with_text_config(c):
    return {"model_type": "muse_glimmer", "text_config": {"model_type": "muse_glimmer_text", **c}, "vision_config": {"hidden_size": 8},
            "out_hidden_size": 6144, "projector_hidden_size": 4096, "projector_hidden_act": "gelu", "image_token_id": 7, "video_token_id": 8}


MUSE = {"kind": "muse-glimmer", "d": 16, "theta": 500.0, "hidden_size": N_EMBD, "intermediate_size": N_FF, "num_attention_heads": N_HEAD,
        "num_key_value_heads": N_KV, "head_dim": 16, "num_hidden_layers": N_LAYER, "vocab_size": N_VOCAB, "max_position_embeddings": 128,
        "rms_norm_eps": EPS, "post_norm_eps": POST_EPS, "hidden_activation": "silu", "sliding_window": 5,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "layer_rope_theta": [500.0, 0, 500.0], "qk_scale_factor": 1.7,
        "output_multiplier": 0.6, "final_logit_softcapping": 2.0, "tie_word_embeddings": False, "attention_bias": False, "attention_dropout": 0.0,
        "layout": within_language_model, "write": with_text_config}

CLASSES = {
    "DeepseekOCRForCausalLM": ({**OCR, "rms_norm_eps": EPS, "routed_scaling_factor": 1.3}, deepseek_ocr_weights, [None]),
    "DeepseekOCRForCausalLM published": (OCR, deepseek_ocr_weights, [None]),
    "MuseGlimmerForConditionalGeneration": (MUSE, muse_glimmer_weights, ["default", "linear", "yarn"]),
}
