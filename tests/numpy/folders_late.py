"""Folders of classes whose rows in ./recorded.txt transformers gave (../real/folder_logits.py). For ./folders.py; small models laid out as their classes have them."""
import math

from folders import CLASSES as FIRST
from folders import EPS, N_EMBD, N_FF, N_HEAD, N_KV, N_VOCAB
from folders_experts import CLASSES as EXPERTS
from folders_experts import N_EACH, N_EXPERT
from folders_more import CLASSES as MORE
from folders_more import lfm2_weights, nested

SIZE = {"vocab_size": N_VOCAB, "hidden_size": N_EMBD, "num_attention_heads": N_HEAD, "num_key_value_heads": N_KV, "max_position_embeddings": 128}
FEED = {"mlp.gate_proj": (N_FF, N_EMBD), "mlp.up_proj": (N_FF, N_EMBD), "mlp.down_proj": (N_EMBD, N_FF)}


def put(w, p, shapes):
    """Matrices, and vectors about 1 (biases: 0), by their names after p. To a name without '!' belongs .weight."""
    for name, shape in shapes.items():
        full = p + (name[:-1] if name.endswith("!") else name + ".weight")
        if isinstance(shape, int):
            w.vector(full, shape, 0.0 if "bias" in name else 1.0)
        else:
            w.matrix(full, *shape)


def attention(d, n_kv=N_KV, of="self_attn.", out="o_proj"):
    return {of + "q_proj": (N_HEAD * d, N_EMBD), of + "k_proj": (n_kv * d, N_EMBD), of + "v_proj": (n_kv * d, N_EMBD), of + out: (N_EMBD, N_HEAD * d)}


def without(w, *names):
    for name in names:
        del w[name + ".weight"]


# --- Gemma 3n and 4: layers with and without a window, layers that read the keys and values of others, a vector for each token and layer

NEAR = ["sliding_attention", "full_attention"]
N_ROW = 8  # numbers of a token for each layer
GEMMA_NORMS = dict.fromkeys(("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"), N_EMBD)
EACH = {"per_layer_input_gate": (N_ROW, N_EMBD), "per_layer_projection": (N_EMBD, N_ROW), "post_per_layer_input_norm": N_EMBD}


def rows_for_layers(w, c):
    n = len(c["layer_types"])
    put(w, "model.", {"embed_tokens_per_layer": (c["vocab_size_per_layer_input"], n * N_ROW), "per_layer_model_projection": (n * N_ROW, N_EMBD),
                      "per_layer_projection_norm": N_ROW})


def gemma4_weights(c, w):
    n = len(c["layer_types"])
    put(w, "model.", {"embed_tokens": (N_VOCAB, N_EMBD), "norm": N_EMBD})
    if not c["tie_word_embeddings"]:
        put(w, "", {"lm_head": (N_VOCAB, N_EMBD)})
    if c.get("hidden_size_per_layer_input"):
        rows_for_layers(w, c)
    for l, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{l}."
        far, reads = kind == "full_attention", l >= n - c["num_kv_shared_layers"]
        d = 24 if far else 16
        put(w, p, GEMMA_NORMS | attention(d, 1 if far and c["like"]["k_is_v"] else N_KV) | {"self_attn.q_norm": d, "self_attn.k_norm": d, "layer_scalar!": 1})
        if reads:
            without(w, *(f"{p}self_attn.{name}" for name in ("k_proj", "v_proj", "k_norm")))
        elif far and c["like"]["k_is_v"]:
            without(w, p + "self_attn.v_proj")
        wide = N_FF * (2 if reads and c.get("use_double_wide_mlp") else 1)
        put(w, p, {"mlp.gate_proj": (wide, N_EMBD), "mlp.up_proj": (wide, N_EMBD), "mlp.down_proj": (N_EMBD, wide)})
        if c.get("hidden_size_per_layer_input"):
            put(w, p, EACH)
        if c.get("enable_moe_block"):
            put(w, p, {"router.proj": (N_EXPERT, N_EMBD), "router.scale!": N_EMBD, "router.per_expert_scale!": N_EXPERT,
                       "experts.gate_up_proj!": (N_EXPERT, 2 * N_EACH, N_EMBD), "experts.down_proj!": (N_EXPERT, N_EMBD, N_EACH),
                       "pre_feedforward_layernorm_2": N_EMBD, "post_feedforward_layernorm_1": N_EMBD, "post_feedforward_layernorm_2": N_EMBD})


def gemma4(like=None, **more):
    config = {**SIZE, "model_type": "gemma4_text", "intermediate_size": N_FF, "num_hidden_layers": 5, "head_dim": 16, "global_head_dim": 24, "sliding_window": 5, "rms_norm_eps": EPS,
              "layer_types": NEAR * 2 + NEAR[1:], "num_kv_shared_layers": 0, "hidden_size_per_layer_input": 0, "hidden_activation": "gelu_pytorch_tanh",
              "tie_word_embeddings": True, "vocab_size_per_layer_input": N_VOCAB, "attention_k_eq_v": False, "like": like or {"k_is_v": False},
              "rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 900.0, "rope_type": "proportional"},
                                  "sliding_attention": {"rope_theta": 50.0, "rope_type": "default"}}, **more}
    return {key: value for key, value in config.items() if value is not None}, gemma4_weights, [None]


SMALL = {"hidden_size_per_layer_input": N_ROW, "num_kv_shared_layers": 2, "use_double_wide_mlp": True, "final_logit_softcapping": 4.0}
SAME = {"like": {"k_is_v": True}, "attention_k_eq_v": True}
PER_LAYER = {str(l): {"head_dim": 24, "num_key_value_heads": 1} for l in (1, 3, 4)}  # as transformers 5.24 writes it
MIXED = {"enable_moe_block": True, "num_experts": N_EXPERT, "top_k_experts": 2, "moe_intermediate_size": N_EACH}
TOWERS = {"boi_token_id": 5, "eoi_token_id": 6, "boa_token_id": 7, "eoa_token_index": 8, "audio_config": None}


def gemma3n_weights(c, w):
    n = len(c["layer_types"])
    put(w, "model.", {"embed_tokens": (N_VOCAB, N_EMBD), "norm": N_EMBD})
    rows_for_layers(w, c)
    put(w, "model.", {f"{name}.{i}": (N_EMBD, N_EMBD) for i in range(3) for name in ("altup_projections", "altup_unembed_projections")})
    for l in range(n):
        p = f"model.layers.{l}."
        put(w, p, GEMMA_NORMS | attention(16) | {"self_attn.q_norm": 16, "self_attn.k_norm": 16} | EACH | FEED)
        put(w, p, {"altup.modality_router": (4, N_EMBD), "altup.router_norm": N_EMBD, "altup.prediction_coefs": (16, 4), "altup.correction_coefs": (4, 4),
                   "altup.correct_output_scale!": N_EMBD, "laurel.linear_left": (6, N_EMBD), "laurel.linear_right": (N_EMBD, 6), "laurel.post_laurel_norm": N_EMBD})
        if l >= n - c["num_kv_shared_layers"]:
            without(w, *(f"{p}self_attn.{name}" for name in ("k_proj", "v_proj", "k_norm")))


def gemma3n(sparse=0, rows=N_VOCAB, **more):
    """sparse: layers whose gates keep 5 %."""
    return {**SIZE, "model_type": "gemma3n_text", "intermediate_size": [N_FF] * 6, "num_hidden_layers": 6, "head_dim": 16, "sliding_window": 5, "rms_norm_eps": EPS,
            "layer_types": NEAR * 3, "num_kv_shared_layers": 2, "hidden_size_per_layer_input": N_ROW, "hidden_activation": "gelu_pytorch_tanh", "laurel_rank": 6,
            "vocab_size_per_layer_input": rows, "altup_num_inputs": 4, "altup_active_idx": 0, "altup_correct_scale": True, "altup_coef_clip": 120.0,
            "final_logit_softcapping": 4.0, "activation_sparsity_pattern": [0.95] * sparse + [0.0] * (6 - sparse), "tie_word_embeddings": True,
            "rope_parameters": {"full_attention": {"rope_theta": 900.0, "rope_type": "default"}, "sliding_attention": {"rope_theta": 50.0, "rope_type": "default"}},
            **more}, gemma3n_weights, [None]


# --- LFM 2 with experts


def lfm2moe_weights(c, w):
    lfm2_weights(c, w)
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}.feed_forward."
        without(w, p + "w1", p + "w2", p + "w3")
        if l < c["num_dense_layers"]:
            put(w, p, {"w1": (N_FF, N_EMBD), "w3": (N_FF, N_EMBD), "w2": (N_EMBD, N_FF)})
            continue
        put(w, p, {"gate": (N_EXPERT, N_EMBD), "expert_bias!": N_EXPERT})
        for e in range(N_EXPERT):
            put(w, f"{p}experts.{e}.", {"w1": (N_EACH, N_EMBD), "w3": (N_EACH, N_EMBD), "w2": (N_EMBD, N_EACH)})


# --- state spaces beside attention: Nemotron-H, where each layer is one part, and Jamba


def nemotron_h_weights(c, w):
    n_in, n_bc, n_h = c["mamba_num_heads"] * c["mamba_head_dim"], c["n_groups"] * c["ssm_state_size"], c["mamba_num_heads"]
    wide = c.get("moe_latent_size") or N_EMBD
    parts = {
        "M": {"in_proj": (2 * n_in + 2 * n_bc + n_h, N_EMBD), "conv1d": (n_in + 2 * n_bc, 1, 4), "conv1d.bias!": n_in + 2 * n_bc, "dt_bias!": n_h, "A_log!": n_h, "D!": n_h,
              "norm": n_in, "out_proj": (N_EMBD, n_in)},
        "*": attention(c["head_dim"], of=""),
        "-": {"up_proj": (N_FF, N_EMBD), "down_proj": (N_EMBD, N_FF)},
        "E": {"gate": (N_EXPERT, N_EMBD), "gate.e_score_correction_bias!": N_EXPERT, "shared_experts.up_proj": (28, N_EMBD), "shared_experts.down_proj": (N_EMBD, 28),
              **{f"experts.{e}.{name}": shape for e in range(N_EXPERT) for name, shape in (("up_proj", (N_EACH, wide)), ("down_proj", (wide, N_EACH)))},
              **({"fc1_latent_proj": (wide, N_EMBD), "fc2_latent_proj": (N_EMBD, wide)} if wide != N_EMBD else {})}}
    put(w, "", {"backbone.embeddings": (N_VOCAB, N_EMBD), "backbone.norm_f": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l, part in enumerate(c["like"]["layers"]):
        put(w, f"backbone.layers.{l}.", {"norm": N_EMBD})
        put(w, f"backbone.layers.{l}.mixer.", {name: tuple(c["like"].get("each", {}).get(l, n) if n == N_EACH else n for n in shape) if "experts." in name and isinstance(shape, tuple) else shape
                                               for name, shape in parts[part].items()})


def nemotron_h(layers, listed=False, **more):
    words = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
    kinds = {"layers_block_type": [words[k] for k in layers]} if listed else {"hybrid_override_pattern": layers, "num_hidden_layers": len(layers)}
    return {**SIZE, "model_type": "nemotron_h", "intermediate_size": N_FF, "head_dim": 16, "ssm_state_size": 8, "mamba_num_heads": 8, "mamba_head_dim": 12, "n_groups": 2,
            "conv_kernel": 4, "expand": 2, "layer_norm_epsilon": EPS, "mlp_hidden_act": "relu2", "mamba_hidden_act": "silu", "tie_word_embeddings": False,
            "time_step_limit": [0.0, {"__float__": "Infinity"}] if listed else [0.0, math.inf], "like": {"layers": layers}, **kinds, **more}, nemotron_h_weights, [None]


SPARSE = {"n_routed_experts": N_EXPERT, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": N_EACH, "moe_shared_expert_intermediate_size": 28,
          "routed_scaling_factor": 2.5, "norm_topk_prob": True, "n_group": 1, "topk_group": 1}


def jamba_weights(c, w):
    n_in, n_dt, n_st = 2 * N_EMBD, c["like"]["dt"], c["mamba_d_state"]
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.final_layernorm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "pre_ff_layernorm": N_EMBD})
        put(w, p, attention(12) if l % 2 else {f"mamba.{name}": shape for name, shape in {
            "in_proj": (2 * n_in, N_EMBD), "conv1d": (n_in, 1, 4), "conv1d.bias!": n_in, "x_proj": (n_dt + 2 * n_st, n_in), "dt_layernorm": n_dt, "b_layernorm": n_st,
            "c_layernorm": n_st, "dt_proj": (n_in, n_dt), "dt_proj.bias!": n_in, "A_log!": (n_in, n_st), "D!": n_in, "out_proj": (N_EMBD, n_in)}.items()})
        feed = {name.removeprefix("mlp."): shape for name, shape in FEED.items()}
        put(w, p + "feed_forward.", {"router": (N_EXPERT, N_EMBD)} | {f"experts.{e}.{name}": shape for e in range(N_EXPERT) for name, shape in feed.items()} if l % 2 else feed)


# --- others


def glm_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD} | attention(16)
            | {f"self_attn.{n}_proj.bias!": rows * 16 for n, rows in (("q", N_HEAD), ("k", N_KV), ("v", N_KV))}
            | {"mlp.gate_up_proj": (2 * N_FF, N_EMBD), "mlp.down_proj": (N_EMBD, N_FF)})


def glm4_lite_weights(c, w):
    EXPERTS["DeepseekV3ForCausalLM"][1](c, w)
    without(w, "model.layers.3.enorm")  # DeepSeek's draft layer


def solar_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    each = {"gate_proj": (N_EACH, N_EMBD), "up_proj": (N_EACH, N_EMBD), "down_proj": (N_EMBD, N_EACH)}
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD} | attention(16))
        put(w, f"model.layers.{l}.mlp.", {"gate": (N_EXPERT, N_EMBD), "gate.e_score_correction_bias!": N_EXPERT} | {
            f"{of}.{name}": shape for of in ("shared_experts", *(f"experts.{e}" for e in range(N_EXPERT))) for name, shape in each.items()})


def granite_weights(c, w):
    config, weights, *_ = MORE["GraniteMoeHybridForCausalLM"]
    weights({**c, "layer_types": config["layer_types"]}, w)


def bitnet_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD})
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD, "self_attn.attn_sub_norm": N_EMBD, "mlp.ffn_sub_norm": N_FF} | attention(12) | FEED)


# --- embedders that are a text model without its output: names without "model."


def bare(of, kind):
    config, weights, scalings, *_ = of
    how = {**config.get("how", {}), "output": "none"}
    return ({**config, "model_type": kind, "how": how, "layout": lambda w: {name.removeprefix("model."): t for name, t in w.items() if not name.startswith("lm_head")}},
            weights, scalings[:1])


CLASSES = {
    "Gemma4ForCausalLM": gemma4(**SMALL),
    "Gemma4ForCausalLM experts": gemma4(**SAME, **MIXED, num_global_key_value_heads=1, tie_word_embeddings=False),
    "Gemma4ForCausalLM layers": gemma4(**SAME, global_head_dim=None, per_layer_config=PER_LAYER, use_bidirectional_attention="vision"),
    "Gemma4ForConditionalGeneration": nested(gemma4(**SMALL), old=False, model_type="gemma4", **TOWERS),
    "Gemma4UnifiedForConditionalGeneration": nested(gemma4(**SAME, num_global_key_value_heads=1, vocab_size_per_layer_input=None, hidden_size_per_layer_input=None), old=False,
                                                    sees="vision_embedder", model_type="gemma4_unified", **TOWERS),
    "Gemma3nForCausalLM": gemma3n(),
    "Gemma3nForCausalLM sparse": gemma3n(sparse=2),
    "Gemma3nForConditionalGeneration": nested(gemma3n(rows=30), old=False, model_type="gemma3n", eoa_token_id=8, vision_soft_tokens_per_image=4),
    "Lfm2MoeForCausalLM": ({**{key: value for key, value in MORE["Lfm2ForCausalLM"][0].items() if "block" not in key}, "model_type": "lfm2_moe", "intermediate_size": N_FF, "num_dense_layers": 1,
                            "num_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "routed_scaling_factor": 1.5, "norm_topk_prob": True,
                            "use_expert_bias": True}, lfm2moe_weights, ["default", "yarn"]),
    "Qwen3Model": bare(FIRST["Qwen3ForCausalLM"], "qwen3"),
    "Qwen2Model": bare(FIRST["Qwen2ForCausalLM"], "qwen2"),
    "LlamaModel": bare(FIRST["LlamaForCausalLM"], "llama"),
    "Lfm2Model": bare(MORE["Lfm2ForCausalLM"], "lfm2"),
    "NemotronHForCausalLM": nemotron_h("M-*-"),
    "NemotronHForCausalLM experts": nemotron_h("ME*EM", listed=True, **SPARSE),
    "NemotronHForCausalLM latent": nemotron_h("ME*E", moe_latent_size=24, **SPARSE),
    "JambaForCausalLM": ({**SIZE, "model_type": "jamba", "intermediate_size": N_FF, "num_hidden_layers": 4, "attn_layer_offset": 1, "attn_layer_period": 2, "expert_layer_offset": 1,
                          "expert_layer_period": 2, "num_experts": N_EXPERT, "num_experts_per_tok": 2, "mamba_d_state": 8, "mamba_d_conv": 4, "mamba_dt_rank": 5, "mamba_expand": 2,
                          "mamba_conv_bias": True, "mamba_proj_bias": False, "use_mamba_kernels": False, "rms_norm_eps": EPS, "tie_word_embeddings": False, "like": {"dt": 5}},
                         jamba_weights, [None]),
    "GlmForCausalLM": ({**SIZE, "model_type": "glm", "intermediate_size": N_FF, "num_hidden_layers": 3, "head_dim": 16, "rms_norm_eps": EPS, "attention_bias": True, "pad_token_id": 0,
                        "d": 16, "theta": 10000.0, "partial": 0.5, "tie_word_embeddings": False}, glm_weights, ["default", "yarn"]),
    "BitNetForCausalLM": ({**SIZE, "model_type": "bitnet", "intermediate_size": N_FF, "num_hidden_layers": 3, "rms_norm_eps": EPS, "d": 12, "theta": 5e5, "hidden_act": "relu2",
                           "tie_word_embeddings": True}, bitnet_weights, ["default"]),
    "Glm4MoeLiteForCausalLM": ({**{key: value for key, value in EXPERTS["DeepseekV3ForCausalLM"][0].items() if key not in ("scoring_func", "topk_method", "num_nextn_predict_layers")},
                                "model_type": "glm4_moe_lite", "rms_norm_eps": 1e-6, "num_key_value_heads": N_HEAD}, glm4_lite_weights, ["default", "yarn-latent"]),
    "SolarOpenForCausalLM": ({**SIZE, **{key: value for key, value in SPARSE.items() if "shared_expert_" not in key}, "model_type": "solar_open", "num_hidden_layers": 3, "head_dim": 16,
                              "rms_norm_eps": EPS, "d": 16, "theta": 1e6, "tie_word_embeddings": False, "pad_token_id": 0}, solar_weights, ["default", "yarn"]),
    "GraniteMoeHybridForCausalLM 5": ({**MORE["GraniteMoeHybridForCausalLM"][0], "model_type": "granitemoehybrid", "layer_types": ["linear_attention", "full_attention", "linear_attention"],
                                       "time_step_limit": [0.0, {"__float__": "Infinity"}]}, granite_weights, ["default"]),
}
