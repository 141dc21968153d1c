"""Folders of models whose text parts alone are read, for ./folders.py: DeepSeek-OCR, after the authors' modeling_deepseekv2.py with
use_mla false, and Muse Glimmer, after modeling_muse_glimmer.py of transformers."""
from folders import *
from folders import CLASSES as FIRST
from folders_experts import N_EACH, N_EXPERT, common_weights, expert_weights, gated_weights
from folders_late import SIZE, attention, put
from folders_mixed import HEADS, guessing
from folders_more import CLASSES as MORE
from folders_more import lfm2_weights

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

# --- those whose rows in ./recorded.txt transformers gave: the text parts of models that see


def turned(config, sections):
    """The parts of the rotation for time, line and column, in either form of ./folders.py."""
    name = "rope_parameters" if "rope_parameters" in config else "rope_scaling"
    old = config[name] or {"type": "default"}
    return {**config, name: {**old, "mrope_section": sections}}


def seeing(of, tower, vision, sections=None, flat=False, names="model.language_model.", **outside):
    """The class with its text part under other names, beside the configuration of its eye. flat: the text part's values are outside."""
    config, weights, scalings, *_ = of
    how = config.get("how", {})
    layout_of = how.get("layout", dict)

    def write(config):
        config = turned(config, sections) if sections else config
        config = {key: value for key, value in config.items() if value is not None or key == "rope_scaling"}
        return {**outside, "vision_config": vision, **(config if flat else {"text_config": config})}

    def layout(w):
        return {name.replace("model.", names, 1) if name.startswith("model.") else name: t for name, t in layout_of(w).items()}

    return {**config, "write": write, "layout": layout, "how": {**{key: value for key, value in how.items() if key != "layout"}, "sees": tower, "guesses": how.get("guesses", "-").replace("model.", names, 1)}}, weights, scalings


def beside_step_eye(config):
    return {"model_type": "step_robotics", "text_config": config, "image_token_id": 39, "understand_projector_stride": 2, "projector_bias": False, "image_token_len": 169, "patch_token_len": 81,
            "vision_config": {"width": 16, "heads": 2, "layers": 1, "image_size": 16, "patch_size": 4, "mlp_ratio": 1.0, "use_cls_token": False}}


def glm4v_weights(c, w):
    d = c["d"]
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", dict.fromkeys(("input_layernorm", "post_attention_layernorm", "post_self_attn_layernorm", "post_mlp_layernorm"), N_EMBD) | attention(d)
            | {"mlp.gate_up_proj": (2 * N_FF, N_EMBD), "mlp.down_proj": (N_EMBD, N_FF)}
            | ({f"self_attn.{n}_proj.bias!": rows * d for n, rows in (("q", N_HEAD), ("k", N_KV), ("v", N_KV))} if c["like"]["bias"] else {}))


SIGHT = {"hidden_size": 16, "num_heads": 2, "depth": 1, "intermediate_size": 16, "image_size": 8, "patch_size": 4, "out_hidden_size": N_EMBD}
TOWER = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16, "image_size": 8, "patch_size": 4}
GLM_SEES = {**SIZE, "intermediate_size": N_FF, "num_hidden_layers": 3, "rms_norm_eps": EPS, "hidden_act": "silu", "d": 16, "head_dim": 16, "theta": 500.0, "tie_word_embeddings": False}
GLM_OCR = {**GLM_SEES, "model_type": "glm_ocr_text", "like": {"bias": False}}, glm4v_weights, ["default"]
GLM_IDS = {"image_token_id": 39, "video_token_id": 38, "image_start_token_id": 37, "image_end_token_id": 36, "video_start_token_id": 35, "video_end_token_id": 34}

CLASSES = {
    "Glm4vForConditionalGeneration": seeing(({**GLM_SEES, "model_type": "glm4v_text", "head_dim": None, "d": 12, "partial": 0.5, "like": {"bias": True}}, glm4v_weights, ["default", "yarn"]),
                                            "model.visual", SIGHT, [1, 1, 1], model_type="glm4v", **GLM_IDS),
    "GlmOcrForConditionalGeneration": seeing(GLM_OCR, "model.visual", SIGHT, [4, 2, 2], model_type="glm_ocr", **GLM_IDS),
    "GlmOcrForConditionalGeneration guesses": seeing(guessing(GLM_OCR, "model.layers.3.", (*HEADS, "shared_head.norm"), "model.layers.3.", **{"glm4.nextn_predict_layers": 1}), "model.visual",
                                                     SIGHT, [4, 2, 2], model_type="glm_ocr", **GLM_IDS),
    "PaddleOCRVLForConditionalGeneration": seeing((llama_config("qwen2vl", d=16, head_dim=16, theta=500.0, tied=False, use_bias=False), llama_weights, ["default", "yarn"]), ("model.visual", "model.projector"),
                                                  TOWER, [2, 3, 3], flat=True, names="model.", model_type="paddleocr_vl", image_token_id=39, video_token_id=38, vision_start_token_id=37,
                                                  compression_ratio=1.0, use_3d_rope=True, rope_is_neox_style=True, weight_share_add_bias=True),
    "LightOnOcrForConditionalGeneration": seeing(({**FIRST["Qwen3ForCausalLM"][0], "model_type": "qwen3"}, llama_weights, ["default"]), ("model.vision_encoder", "model.vision_projection"),
                                                 {**TOWER, "model_type": "pixtral", "head_dim": 8, "hidden_act": "silu"}, model_type="lighton_ocr", image_token_id=39, spatial_merge_size=2),
    "StepVLForConditionalGeneration": ({**FIRST["Qwen3ForCausalLM"][0], "model_type": "qwen3", "how": {"class": "Qwen3ForCausalLM"}, "write": beside_step_eye}, llama_weights, ["default"]),
    "Phi4ForCausalLMV": ({**FIRST["Phi3ForCausalLM"][0], "pad_token_id": 0, "how": {"class": "Phi3ForCausalLM", "renamed": True}, "layout": lambda w: {**w, "model.vision_tower.vision_tower.x": np.zeros(4)},
                          "write": lambda config: {**config, "vision_config": {"hidden_size": 8}, "mm_hidden_size": 8, "min_num_patches": 1, "max_num_patches": 4}}, llama_weights, ["default"]),
    "Lfm2VlForConditionalGeneration": seeing(({**MORE["Lfm2ForCausalLM"][0], "model_type": "lfm2"}, lfm2_weights, ["default"]), ("model.vision_tower", "model.multi_modal_projector"),
                                             {**TOWER, "model_type": "siglip2_vision_model", "num_patches": 4}, model_type="lfm2_vl", image_token_id=39, downsample_factor=2, projector_hidden_act="gelu",
                                             projector_bias=True, projector_use_layernorm=True, projector_hidden_size=16),
    "DeepseekOCRForCausalLM": ({**OCR, "rms_norm_eps": EPS, "routed_scaling_factor": 1.3}, deepseek_ocr_weights, [None]),
    "DeepseekOCRForCausalLM published": (OCR, deepseek_ocr_weights, [None]),
    "MuseGlimmerForConditionalGeneration": (MUSE, muse_glimmer_weights, ["default", "linear", "yarn"]),
}
