"""Folders of classes that were published under names of their own, or need code of their authors. For ./folders.py; rows in ./recorded.txt by transformers."""
import numpy as np

from folders import EPS, N_EMBD, N_FF, N_HEAD, N_KV, N_VOCAB
from folders_experts import N_EACH, N_EXPERT
from folders_more import CLASSES as MORE
from folders_late import FEED, glm_weights, SIZE, attention, put
from folders import CLASSES as MORE_FIRST
from folders_late import bare
from folders_mixed import NORMS, each, ends, feed

# --- Llama's and Qwen's own under other names, and Ling's


def llama_weights(c, w):
    ends(c, w)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | attention(16) | FEED | (BIASES if c.get("bias") else {}))


BIASES = {f"self_attn.{name}_proj.bias!": n * 16 for name, n in (("q", N_HEAD), ("k", N_KV), ("v", N_KV))} | {
    "self_attn.o_proj.bias!": N_EMBD, "mlp.gate_proj.bias!": N_FF, "mlp.up_proj.bias!": N_FF, "mlp.down_proj.bias!": N_EMBD}
PLAIN = {**SIZE, "intermediate_size": N_FF, "num_hidden_layers": 3, "head_dim": 16, "d": 16, "rms_norm_eps": EPS, "hidden_act": "silu", "tie_word_embeddings": False}


def kormo_layout(w):
    names = {"input_layernorm": "pre_attention_layernorm", "post_attention_layernorm": "pre_mlp_layernorm"}
    return {next((name.replace(old, new) for old, new in names.items() if old in name), name): t for name, t in w.items()}


def sarvam_weights(c, w):
    put(w, "", {"model.word_embeddings": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | {"attention.query_key_value": ((N_HEAD + 2 * N_KV) * 16, N_EMBD), "attention.query_layernorm": 16, "attention.key_layernorm": 16,
                                             "attention.dense": (N_EMBD, N_HEAD * 16)} | (FEED if l < 1 else {
            "mlp.gate": (N_EXPERT, N_EMBD), "mlp.gate.expert_bias!": N_EXPERT} | feed("mlp.shared_experts.", N_EACH) | each("mlp.experts.", N_EACH)))


SARVAM = {**PLAIN, "model_type": "sarvam_moe", "num_experts": N_EXPERT, "num_experts_per_tok": 2, "num_shared_experts": 1, "moe_intermediate_size": N_EACH, "first_k_dense_replace": 1,
          "routed_scaling_factor": 2.5, "norm_topk_prob": True, "use_qk_norm": True, "n_group": 1, "topk_group": 1, "theta": 8e6, "pad_token_id": 0, "use_qkv_bias": False,
          "moe_router_enable_expert_bias": True, "score_function": "sigmoid", "how": {"class": "AutoModelForCausalLM"}}

# --- GLM-4 in its authors' form, which computes what transformers' class does. Its own one has other names, and queries, keys and values in one tensor.

GLM = {"hidden_size": N_EMBD, "num_attention_heads": N_HEAD, "num_layers": 3, "ffn_hidden_size": N_FF, "kv_channels": 16, "multi_query_attention": True, "multi_query_group_num": N_KV,
       "padded_vocab_size": N_VOCAB, "vocab_size": N_VOCAB - 2, "seq_length": 128, "layernorm_epsilon": EPS, "rmsnorm": True, "post_layer_norm": True, "add_qkv_bias": True,
       "add_bias_linear": False, "interleaved_qkv": False, "original_rope": True, "rope_ratio": 500, "apply_residual_connection_post_layernorm": False, "attention_softmax_in_fp32": True,
       "bias_dropout_fusion": True, "fp32_residual_connection": False, "apply_query_key_layer_scaling": True, "tie_word_embeddings": False, "model_type": "chatglm"}


def glm_of(c):
    """The same model's configuration for transformers' class."""
    return {**{key: value for key, value in SIZE.items()}, "architectures": ["GlmForCausalLM"], "model_type": "glm", "intermediate_size": c["ffn_hidden_size"], "num_hidden_layers": c["num_layers"],
            "head_dim": c["kv_channels"], "rms_norm_eps": EPS, "attention_bias": True, "tie_word_embeddings": False, "pad_token_id": 0,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4 * c["rope_ratio"], "partial_rotary_factor": 0.5}}


def chatglm_weights(c, w):
    glm_weights({"num_hidden_layers": c["num_layers"]}, w)


def chatglm_layout(w):
    names = {"model.embed_tokens": "transformer.embedding.word_embeddings", "model.norm": "transformer.encoder.final_layernorm", "lm_head": "transformer.output_layer",
             "model.layers": "transformer.encoder.layers", "self_attn.o_proj": "self_attention.dense", "mlp.gate_up_proj": "mlp.dense_h_to_4h", "mlp.down_proj": "mlp.dense_4h_to_h"}
    out = {}
    for name, t in w.items():
        if "self_attn.q_proj" in name:
            parts = [w[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")]
            name, t = name.replace("self_attn.q_proj", "self_attention.query_key_value"), np.concatenate(parts)
        elif "self_attn.k_proj" in name or "self_attn.v_proj" in name:
            continue
        for old, new in names.items():
            name = name.replace(old, new)
        out[name] = t
    return out


# --- RWKV 6 and 7: the rows are those of ./twins/rwkv6.py and ./twins/rwkv7.py, for the same weights under the files' names

RANKS = {"w": 8, "a": 9, "v": 5, "g": 10}
RWKV = {"vocab_size": N_VOCAB, "hidden_size": N_EMBD, "num_hidden_layers": 3, "tie_word_embeddings": False}


def with_biases(w, p, *names):
    put(w, p, {name: N_EMBD for name in names} | {name + ".bias!": N_EMBD for name in names})


def rwkv7_weights(c, w):
    put(w, "", {"model.embeddings": (N_VOCAB, N_EMBD), "lm_head": (N_VOCAB, N_EMBD)})
    with_biases(w, "model.", "norm", "layers.0.pre_norm")
    for l in range(3):
        p = f"model.layers.{l}."
        with_biases(w, p, "attn_norm", "ffn_norm", "attn.g_norm")
        for name in "rwkvag":
            w.matrix(f"{p}attn.x_{name}", 1, 1, N_EMBD)
        put(w, p + "attn.", {f"{name}_proj": (N_EMBD, N_EMBD) for name in "rkvo"} | {"r_k!": (6, 8), "k_k!": N_EMBD, "k_a!": N_EMBD})
        for name in "wag" if l == 0 else "wavg":
            put(w, f"{p}attn.{name}_lora.lora.", {"0": (RANKS[name], N_EMBD), "2": (N_EMBD, RANKS[name])} | ({} if name == "g" else {"2.bias!": N_EMBD}))
        put(w, p + "ffn.", {"x_k!": N_EMBD, "key": (N_FF, N_EMBD), "value": (N_EMBD, N_FF)})


def rwkv6_weights(c, w):
    put(w, "", {"rwkv.embeddings": (N_VOCAB, N_EMBD), "head": (N_VOCAB, N_EMBD)})
    with_biases(w, "rwkv.", "ln_out", "blocks.0.pre_ln")
    for l in range(3):
        p = f"rwkv.blocks.{l}."
        with_biases(w, p, "ln1", "ln2", "attention.ln_x")
        for name in "xwkvrg":
            w.matrix(f"{p}attention.time_maa_{name}", 1, 1, N_EMBD)
        for name in "kr":
            w.matrix(f"{p}feed_forward.time_maa_{name}", 1, 1, N_EMBD)
        put(w, p + "attention.", {name: (N_EMBD, N_EMBD) for name in ("receptance", "key", "value", "gate", "output")} | {
            "time_maa_w1!": (N_EMBD, 5 * 4), "time_maa_w2!": (5, 4, N_EMBD), "time_decay!": (1, 1, N_EMBD), "time_decay_w1!": (N_EMBD, 7), "time_decay_w2!": (7, N_EMBD), "time_faaaa!": (6, 8)})
        put(w, p + "feed_forward.", {"key": (N_FF, N_EMBD), "value": (N_EMBD, N_FF), "receptance": (N_EMBD, N_EMBD)})


# --- Step 3.5 and 3.7: the layers with a window have more heads; values for the layers that guess stand behind those of the others


def step_weights(c, w):
    ends(c, w)
    for l in range(c["num_hidden_layers"] + c.get("num_nextn_predict_layers", 0)):
        near = c["layer_types"][l] == "sliding_attention"
        n_head = 6 if near else N_HEAD
        stacked = {"moe.gate": (N_EXPERT, N_EMBD), "moe.router_bias!": N_EXPERT, "moe.gate_proj": (N_EXPERT, N_EACH, N_EMBD), "moe.up_proj": (N_EXPERT, N_EACH, N_EMBD),
                   "moe.down_proj": (N_EXPERT, N_EMBD, N_EACH)} | feed("share_expert.", 28)
        put(w, f"model.layers.{l}.", NORMS | {"self_attn.q_proj": (n_head * 16, N_EMBD), "self_attn.k_proj": (N_KV * 16, N_EMBD), "self_attn.v_proj": (N_KV * 16, N_EMBD),
                                             "self_attn.o_proj": (N_EMBD, n_head * 16), "self_attn.q_norm": 16, "self_attn.k_norm": 16, "self_attn.g_proj": (n_head, N_EMBD)}
            | (stacked if 1 <= l < c["num_hidden_layers"] else FEED))
        if l >= c["num_hidden_layers"]:
            put(w, f"model.layers.{l}.", {"eh_proj": (N_EMBD, 2 * N_EMBD), "enorm": N_EMBD, "hnorm": N_EMBD, "transformer.shared_head.norm": N_EMBD, "transformer.shared_head.output": (N_VOCAB, N_EMBD)})
    for name in w:  # stored without their 1
        if name.endswith("norm.weight"):
            w[name] -= 1


LLAMA3 = {"rope_type": "llama3", "factor": 2.0, "original_max_position_embeddings": 8, "low_freq_factor": 1.0, "high_freq_factor": 32.0}


def step(guesses=0, **more):
    kinds = ["full_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"][: 4 + guesses]
    far = [kind == "full_attention" for kind in kinds]
    c = {**SIZE, "num_attention_groups": N_KV, "intermediate_size": N_FF, "num_hidden_layers": 4, "head_dim": 16, "rms_norm_eps": EPS, "layer_types": kinds, "sliding_window": 5,
         "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 6, "num_attention_groups": N_KV, "head_dim": 16, "true_head_dim": 16},
         "partial_rotary_factors": [0.5 if f else 1.0 for f in far], "rope_theta": [900.0 if f else 50.0 for f in far], "rope_scaling": LLAMA3, "yarn_only_types": ["full_attention"],
         "moe_num_experts": N_EXPERT, "moe_top_k": 2, "moe_intermediate_size": N_EACH, "share_expert_dim": 28, "moe_layers_enum": "1,2,3", "moe_every_n_layer": 1,
         "moe_router_scaling_factor": 1.5, "moe_router_activation": "sigmoid", "norm_expert_weight": True, "use_moe_router_bias": True, "use_head_wise_attn_gate": True,
         "swiglu_limits": [None, 0.4, 0.0, 0.3, 0.0][: 4 + guesses], "swiglu_limits_shared": [0.0, 0.0, 0.5, 0.2, 0.0][: 4 + guesses], "tie_word_embeddings": False, "pad_token_id": 0, **more}
    del c["num_key_value_heads"]
    return c, step_weights, [None]


def beside_an_eye(config):
    return {"architectures": ["Step3p7ForConditionalGeneration"], "model_type": "step3p7", "text_config": config, "vision_config": {
        "width": 32, "heads": 2, "layers": 1, "image_size": 28, "max_position_embeddings": 4}}


def as_saved(of):
    """As transformers 5 writes what it read."""
    config, weights, scalings = of
    hub = ("attention_other_setting", "num_attention_groups", "moe_num_experts", "moe_top_k", "moe_layers_enum", "rope_theta", "rope_scaling", "partial_rotary_factors")
    config = {key: value for key, value in config.items() if key not in hub} | {
        "num_sliding_attention_heads": 6, "per_layer_config": {"1": {"num_attention_heads": 6}, "2": {"num_attention_heads": 6}}, "num_key_value_heads": N_KV, "n_routed_experts": N_EXPERT,
        "num_experts_per_tok": 2, "mlp_layer_types": ["dense"] + ["sparse"] * 3, "query_pre_attn_scalar": 16, "num_nextn_predict_layers": 0, "mlp_bias": False, "attention_bias": False,
        "rope_parameters": {"full_attention": {**LLAMA3, "rope_theta": 900.0, "partial_rotary_factor": 0.5},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": 1.0}}}
    return config, weights, scalings


SEEN = {"class": "Step3p7ForConditionalGeneration", "sees": ("model.vision_model", "model.multi_modal_projector"), "within": beside_an_eye}
BARE_LFM = bare(MORE["Lfm2ForCausalLM"], "lfm2")
ASR = {**MORE_FIRST["Qwen3ForCausalLM"][0], "tie_word_embeddings": True}
CLASSES = {
    "Qwen3ASRForConditionalGeneration": ({**ASR, "write": lambda config: {"architectures": ["Qwen3ASRForConditionalGeneration"], "model_type": "qwen3_asr", "audio_token_id": 39, "timestamp_token_id": 38,
                                          "token_classification_bias": False, "audio_config": {"d_model": 8}, "text_config": {"model_type": "qwen3", **config}},
                                          "layout": lambda w: {name.replace("model.", "model.language_model.", 1): t for name, t in w.items()} | {"model.audio_tower.conv.weight": np.zeros((2, 2))}},
                                         *MORE_FIRST["Qwen3ForCausalLM"][1:2], ["default"], *MORE_FIRST["Qwen3ForCausalLM"][3:]),
    "RWKV7ForCausalLM": ({**RWKV, "model_type": "rwkv7", "head_dim": 8, "norm_eps": EPS, "norm_bias": True, "norm_first": True, "hidden_act": "sqrelu", "hidden_ratio": 4.0, "attn": None,
                          "attn_mode": "chunk", "decay_low_rank_dim": 8, "a_low_rank_dim": 9, "v_low_rank_dim": 5, "gate_low_rank_dim": 10, "intermediate_size": N_FF, "fuse_norm": False,
                          "value_dim": [N_EMBD] * 3, "num_heads": None, "max_position_embeddings": 2048, "fuse_cross_entropy": True}, rwkv7_weights, [None]),
    "Rwkv6ForCausalLM": ({**RWKV, "model_type": "rwkv6", "head_size": 8, "head_size_divisor": 8, "layer_norm_epsilon": EPS, "intermediate_size": None, "rescale_every": 6,
                          "attention_hidden_size": N_EMBD, "num_attention_heads": 8, "model_version": "6_0"}, rwkv6_weights, [None]),
    "ChatGLMModel": ({**GLM, "layout": chatglm_layout, "how": {"class": "GlmForCausalLM", "renamed": True, "within": glm_of}}, chatglm_weights, [None]),
    "Lfm2BidirectionalModel": ({**BARE_LFM[0], "how": {**BARE_LFM[0]["how"], "class": "Lfm2Model", "around": True, "keys": {"lfm2.attention.causal": False}}}, *BARE_LFM[1:]),
    "InternLM3ForCausalLM": ({**PLAIN, "model_type": "internlm3", "theta": 5e6, "bias": False, "qkv_bias": False, "how": {"class": "AutoModelForCausalLM"}}, llama_weights, ["default", "linear"]),
    "InternLM3ForCausalLM bias": ({**PLAIN, "model_type": "internlm3", "theta": 5e6, "bias": True, "qkv_bias": True, "how": {"class": "AutoModelForCausalLM"}}, llama_weights, ["default"]),
    "IQuestCoderForCausalLM": ({**PLAIN, "model_type": "iquestcoder", "theta": 5e5, "clip_qkv": None, "use_sliding_window": False, "how": {"class": "LlamaForCausalLM"}}, llama_weights, ["default"]),
    "KORMoForCausalLM": ({**PLAIN, "model_type": "kormo", "theta": 5e5, "attention_bias": False, "mlp_bias": False, "layout": kormo_layout, "how": {"class": "LlamaForCausalLM", "renamed": True}}, llama_weights,
                         ["default", "yarn"]),
    "SarvamMoEForCausalLM": (SARVAM, sarvam_weights, ["default"]),
    "Glm4MoeForCausalLM sarvam": ({**{key: value for key, value in SARVAM.items() if key not in ("num_experts", "num_shared_experts", "how")}, "n_routed_experts": N_EXPERT, "n_shared_experts": 1,
                                   "num_nextn_predict_layers": 0, "how": {"class": "AutoModelForCausalLM"}}, sarvam_weights, ["default"]),     # as transformers 5 writes it
    "Step3p5ForCausalLM": step(model_type="step3p5", how=SEEN),
    "Step3p5ForCausalLM guesses": step(guesses=1, model_type="step3p5", num_nextn_predict_layers=1, how=SEEN | {"guesses": "model.layers.4."}),
    "Step3p7ForConditionalGeneration": as_saved(step(model_type="step3p5", how={"sees": SEEN["sees"]}, write=beside_an_eye)),
}
