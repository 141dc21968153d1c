"""Folders of classes of autumn 2026, as ./folders_late.py has them: rows in ./recorded.txt are transformers' where it has the class."""
import numpy as np

from folders import EPS, N_EMBD, N_FF, N_HEAD, N_KV, N_VOCAB
from folders_encoders import modules, pooling
from folders_experts import N_EACH, N_EXPERT
from folders_late import FEED, GEMMA_NORMS, SIZE, attention, put

# --- Granite with windows: sinks, a window and positions in some layers

KINDS = ["full_attention", "sliding_attention", "sliding_attention"]
GRANITE = {**SIZE, "intermediate_size": N_FF, "num_hidden_layers": 3, "rms_norm_eps": EPS, "d": 12, "theta": 1e4, "hidden_act": "silu", "sliding_window": 5, "layer_types": KINDS,
           "attention_multiplier": 0.3, "embedding_multiplier": 6.0, "logits_scaling": 0.5, "residual_multiplier": 0.6, "attention_bias": False}
N_ALL = 20  # the width of the expert that all tokens pass


def granite_swa_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD})
    if not c["tie_word_embeddings"]:
        put(w, "", {"lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD, "self_attn.sinks!": N_HEAD} | attention(12))
        if "num_local_experts" not in c:
            put(w, p, FEED)
            continue
        put(w, p + "block_sparse_moe.", {"router": (N_EXPERT, N_EMBD), "experts.gate_up_proj!": (N_EXPERT, 2 * N_FF, N_EMBD), "experts.down_proj!": (N_EXPERT, N_EMBD, N_FF)})
        if c["shared_intermediate_size"]:
            put(w, p + "shared_mlp.", {"input_linear": (2 * N_ALL, N_EMBD), "output_linear": (N_EMBD, N_ALL)})


def older(w):
    """The names before transformers 5.24."""
    names = {"router.weight": "router.layer.weight", "experts.gate_up_proj": "input_linear.weight", "experts.down_proj": "output_linear.weight"}
    for new, old in names.items():
        w = {name.replace("block_sparse_moe." + new, "block_sparse_moe." + old): t for name, t in w.items()}
    return w


def no_rope_layers(config):
    return {**{key: value for key, value in config.items() if key != "layer_rope_theta"}, "no_rope_layers": [int(theta != 0) for theta in config["layer_rope_theta"]]}


MIXED = {"model_type": "granitemoe_swa", "num_local_experts": N_EXPERT, "num_experts_per_tok": 2, "tie_word_embeddings": False}

# --- Spark X2.5 and Maple: transformers lacks both; the rows are those of ./twins with the tensors' names changed


def spark_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD, "self_attn.q_k_v_proj": ((N_HEAD + 2 * N_KV) * 16, N_EMBD),
                                      "self_attn.g_proj": (N_HEAD, N_EMBD), "self_attn.o_proj": (N_EMBD, N_HEAD * 16)} | FEED)


def maple_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD, "self_attn.q_norm": 16, "self_attn.k_norm": 16, "mlp.gate": (N_EXPERT, N_EMBD)} | attention(16))
        for e in range(N_EXPERT):
            put(w, f"{p}mlp.experts.{e}.", {"gate_proj": (N_EACH, N_EMBD), "up_proj": (N_EACH, N_EMBD), "down_proj": (N_EMBD, N_EACH)})
            for part in ("gate", "up"):
                w[f"{p}mlp.experts.{e}.{part}_proj.weight"] *= 8  # so that the limit is met



# --- MiniMax Text-01


def minimax_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD, "block_sparse_moe.gate": (N_EXPERT, N_EMBD)})
        put(w, p + "self_attn.", attention(16, of="") if kind == "full_attention" else {"qkv_proj": (3 * N_HEAD * 16, N_EMBD), "output_gate": (N_HEAD * 16, N_EMBD), "norm": N_HEAD * 16,
                                                                                      "out_proj": (N_EMBD, N_HEAD * 16)})
        for e in range(N_EXPERT):
            put(w, f"{p}block_sparse_moe.experts.{e}.", {"w1": (N_FF, N_EMBD), "w3": (N_FF, N_EMBD), "w2": (N_EMBD, N_FF)})


def with_decays(w):
    """Besides, what transformers 5 stores of the fixed decays."""
    out, n, size = dict(w), 4, np.arange(5) + 1.0
    for l in (l for l in range(n) if f"model.layers.{l}.self_attn.qkv_proj.weight" in w):
        rate = (2.0 ** (-8 * (np.arange(N_HEAD) + 1) / N_HEAD) * (1 - l / (n - 1 + 1e-5) + 1e-5)).reshape(-1, 1, 1)
        far = size[:, None] - size
        with np.errstate(over="ignore"):
            out |= {f"model.layers.{l}.self_attn.{name}": t for name, t in {
                "slope_rate": rate, "query_decay": np.exp(-rate * size[:, None]), "key_decay": np.exp(-rate * (5 - size[:, None])),
                "diagonal_decay": np.where(far >= 0, np.exp(-rate * far), 0)[None]}.items()}
    return out


def as_authors_have_it(config):
    """The names of values in the authors' own class."""
    out = {key: value for key, value in config.items() if not key.endswith(("alpha_factor", "beta_factor")) and key not in ("layer_types", "block_size", "partial_rotary_factor", "rope_parameters")}
    for part in ("full_attention", "linear_attention", "mlp"):
        out |= {f"layernorm_{part}_alpha": ALPHA, f"layernorm_{part}_beta": 1.0}
    return {**out, "attn_type_list": [int(kind == "full_attention") for kind in config["layer_types"]], "postnorm": True, "rotary_dim": 8, "shared_intermediate_size": 0, "shared_moe_mode": "sigmoid",
            "rope_theta": 500.0, "rope_scaling": None}


ALPHA = 3.5
LIGHTNING = {**SIZE, "model_type": "minimax", "intermediate_size": N_FF, "num_hidden_layers": 4, "head_dim": 16, "rms_norm_eps": 1e-6, "hidden_act": "silu", "num_local_experts": N_EXPERT,
             "num_experts_per_tok": 2, "layer_types": ["linear_attention"] * 2 + ["full_attention", "linear_attention"], "block_size": 5, "d": 16, "theta": 500.0,
             "tie_word_embeddings": False, **{f"{part}_{factor}_factor": value for part in ("full_attn", "linear_attn", "mlp") for factor, value in (("alpha", ALPHA), ("beta", 1))}}

# --- HRM-Text


def hrm_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.z_L_init!": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for stack in "LH":
        for l in range(2):
            put(w, f"model.{stack}_module.layers.{l}.", {"attn.gqkv_proj": (4 * N_HEAD * 16, N_EMBD), "attn.o_proj": (N_EMBD, N_HEAD * 16), "mlp.gate_up_proj": (2 * N_FF, N_EMBD),
                                                       "mlp.down_proj": (N_EMBD, N_FF)})


CYCLES = {**{key: value for key, value in SIZE.items() if key != "num_key_value_heads"}, "model_type": "hrm_text", "intermediate_size": N_FF, "head_dim": 16, "rms_norm_eps": EPS, "hidden_act": "silu",
          "H_cycles": 2, "L_cycles": 3, "L_bp_cycles": [2], "prefix_lm": True, "d": 16, "theta": 500.0, "tie_word_embeddings": False}

# --- LFM 3


def lfm3_weights(c, w):
    put(w, "model.", {"embed_tokens": (N_VOCAB, N_EMBD), "embedding_norm": N_EMBD})
    if not c["tie_word_embeddings"]:
        put(w, "", {"lm_head": (N_VOCAB, N_EMBD)})
    for l, kind in enumerate(c["layer_types"]):
        p = f"model.layers.{l}."
        put(w, p, dict.fromkeys(("operator_norm", "ffn_norm"), N_EMBD) | {"feed_forward.w1": (N_FF, N_EMBD), "feed_forward.w3": (N_FF, N_EMBD), "feed_forward.w2": (N_EMBD, N_FF)})
        if c["use_sandwich_norm"]:
            put(w, p, dict.fromkeys(("post_operator_norm", "post_ffn_norm"), N_EMBD))
        put(w, p, {"conv.in_proj": (3 * N_EMBD, N_EMBD), "conv.conv": (N_EMBD, 1, c["conv_L_cache"]), "conv.out_proj": (N_EMBD, N_EMBD)} if kind == "conv" else
            attention(16) | {"self_attn.q_norm": 16, "self_attn.k_norm": 16} | ({"self_attn.gate_proj": (N_HEAD, N_EMBD)} if c["use_attention_gate"] else {}))


LFM = {**SIZE, "model_type": "lfm3", "intermediate_size": N_FF, "num_hidden_layers": 4, "head_dim": 16, "norm_eps": EPS, "sliding_window": 5, "conv_L_cache": 7, "conv_bias": False,
       "layer_types": ["conv", "sliding_attention", "full_attention", "conv"], "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "use_sandwich_norm": True, "use_attention_gate": True,
       "tie_word_embeddings": True, "rope_parameters": {"full_attention": {"partial_rotary_factor": 0.5, "rope_theta": 500.0, "rope_type": "proportional"},
                                                        "sliding_attention": {"rope_theta": 50.0, "rope_type": "default"}}}

# --- EmbeddingGemma 2


def embedder_weights(c, w):
    """As the text model has them; of the whole model behind language_model."""
    n, rows = len(c["layer_types"]), c["hidden_size_per_layer_input"]
    put(w, "", {"embed_tokens": (N_VOCAB, N_EMBD), "norm": N_EMBD, "embedding_projection": (c["embedding_dim"], N_EMBD), "ple.per_layer_model_projection": (n * rows, N_EMBD),
                "ple.per_layer_projection_norm": rows})
    for l, kind in enumerate(c["layer_types"]):
        d, n_kv = (24, 1) if kind == "full_attention" else (16, N_KV)
        put(w, f"layers.{l}.", GEMMA_NORMS | attention(d, n_kv) | FEED | {"self_attn.q_norm": d, "self_attn.k_norm": d, "layer_scalar!": 1})
        put(w, f"layers.{l}.ple_block.", {"per_layer_input_gate": (rows, N_EMBD), "per_layer_projection": (N_EMBD, rows), "post_per_layer_input_norm": N_EMBD})


EMBEDDER = {**SIZE, "model_type": "embedding_gemma2_text", "intermediate_size": N_FF, "num_hidden_layers": 3, "head_dim": 16, "rms_norm_eps": EPS, "sliding_window": 2, "hidden_size_per_layer_input": 8,
            "embedding_dim": 20, "layer_types": ["sliding_attention"] * 2 + ["full_attention"], "per_layer_config": {"2": {"head_dim": 24, "num_key_value_heads": 1}},
            "hidden_activation": "gelu_pytorch_tanh", "attention_bias": False, "how": {"output": "none"},
            "rope_parameters": {"full_attention": {"rope_theta": 900.0, "rope_type": "default"}, "sliding_attention": {"rope_theta": 50.0, "rope_type": "default"}}}


PROMPTED = {"modules.json": modules("Transformer", "Pooling", "Normalize"), "1_Pooling/config.json": pooling(pooling_mode_mean_tokens=True),
            "config_sentence_transformers.json": {"prompts": {"query": "task: search result | query: ", "document": "title: none | text: "}, "similarity_fn_name": "cosine"}}


def with_towers(config):
    """The configuration of the model that also sees and hears."""
    return {"model_type": "embedding_gemma2", "text_config": config, "vision_config": None, "audio_config": None, "boi_token_id": 255999, "image_token_id": 258880, "eoa_token_index": 258883}


# --- Muse Spark

N_SHORT = 26


def muse_spark_weights(c, w):
    put(w, "", {"model.language_model.embed_tokens": (N_VOCAB, N_EMBD), "model.language_model.norm": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l, kind in enumerate(c["mlp_layer_types"]):
        p = f"model.language_model.layers.{l}."
        put(w, p, attention(16) | {"self_attn.gate_proj": (N_HEAD * 16, N_EMBD)})
        for name in ("input_layernorm.weight", "pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight", "post_attention_residual_gate.gate", "post_feedforward_residual_gate.gate"):
            w.vector(p + name, N_EMBD)
        w[p + "post_attention_residual_gate.gate"][:2] = 4.0, -4.0  # where the smallest alpha counts, and its opposite
        if kind == "dense":
            put(w, p, FEED)
            continue
        put(w, p + "mlp.", {"gate": (N_EXPERT, N_EMBD), "gate.e_score_correction_bias!": N_EXPERT, "pre_expert_proj": (N_SHORT, N_EMBD), "post_expert_proj": (N_EMBD, N_SHORT),
                            "experts.gate_up_proj!": (N_EXPERT, 2 * N_EACH, N_SHORT), "experts.down_proj!": (N_EXPERT, N_SHORT, N_EACH)})
        for name in ("pre_expert_norm", "experts.post_expert_norm"):
            w.vector(f"{p}mlp.{name}.weight", N_SHORT)


def spark_with_towers(config):
    """The configuration of the whole model, whose eye and ear this folder lacks."""
    return {"model_type": "muse_spark", "text_config": config, "image_token_id": 35, "video_token_id": 36, "audio_token_id": 37, "out_hidden_size": 16, "projector_hidden_size": 16,
            "vision_config": {"num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2},
            "audio_config": {"hidden_sizes": [8] * 4, "depths": [1] * 4, "out_hidden_size": N_EMBD}}


SPARK = {**SIZE, "model_type": "muse_spark_text", "intermediate_size": N_FF, "num_hidden_layers": 3, "head_dim": 16, "rms_norm_eps": EPS, "post_norm_eps": 1e-3, "sliding_window": 5,
         "layer_types": ["sliding_attention"] * 2 + ["full_attention"], "layer_rope_theta": [500.0, 500.0, 0], "mlp_layer_types": ["dense", "sparse", "sparse"], "moe_intermediate_size": N_EACH,
         "num_local_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_hidden_size": N_SHORT, "routed_scaling_factor": 1.5, "residual_gate_temperature": 0.3, "qk_scale_factor": 3.0,
         "output_multiplier": 0.4, "final_logit_softcapping": 4.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "attention_bias": False, "tie_word_embeddings": False,
         "d": 16, "theta": 500.0, "write": spark_with_towers}

# --- Granite Switch: transformers lacks it; the rows are those of ./twins with the tensors' names changed

N_RANK, CALLS = 3, [29, 38]  # two of TOKENS


def switch_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD), "model.norm": N_EMBD})
    n_head, n_kv = N_HEAD * 12, N_KV * 12
    for l in range(c["num_hidden_layers"] - 1):
        p = f"model.layers.{l}."
        put(w, p, {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD, "self_attn.qkv_proj.base_layer": (n_head + 2 * n_kv, N_EMBD), "self_attn.o_proj.base_layer": (N_EMBD, n_head),
                   "shared_mlp.input_linear.base_layer": (2 * N_FF, N_EMBD), "shared_mlp.output_linear.base_layer": (N_EMBD, N_FF)})
        for name, n_in, outs in (("self_attn.qkv_proj.", N_EMBD, (n_head, n_kv, n_kv)), ("self_attn.o_proj.", n_head, (N_EMBD,)), ("shared_mlp.input_linear.", N_EMBD, (N_FF, N_FF)),
                                 ("shared_mlp.output_linear.", N_FF, (N_EMBD,))):
            for k, n_out in enumerate(outs):
                which = f"_slices.{k}" if len(outs) > 1 else ""
                w.matrix(f"{p}{name}lora_A{which}", len(CALLS), 1, N_RANK, n_in)
                w.matrix(f"{p}{name}lora_B{which}", len(CALLS), 1, n_out, N_RANK)
    w["model.switch.adapter_token_ids"] = np.array(CALLS, dtype=float)


SWITCH = {**GRANITE, "model_type": "granite_switch", "num_hidden_layers": 3, "intermediate_size": 17, "shared_intermediate_size": N_FF, "layer_types": ["attention"] * 3, "num_local_experts": 0,
          "num_experts_per_tok": 10, "num_adapters": 2, "max_lora_rank": N_RANK, "adapter_token_ids": CALLS, "adapter_substitute_token_ids": [9, 10], "control_token_gain": 15.0,
          "tie_word_embeddings": True}

TURNS = {"full_attention": {"partial_rotary_factor": 0.5, "rope_theta": 500.0, "rope_type": "default"},
         "sliding_attention": {"partial_rotary_factor": 1.0, "rope_theta": 50.0, "rope_type": "default"}}
OWN = {**SIZE, "num_hidden_layers": 3, "head_dim": 16, "rms_norm_eps": EPS, "sliding_window": 5, "layer_types": KINDS, "tie_word_embeddings": False}

CLASSES = {
    "HrmTextForCausalLM": ({**CYCLES, "num_hidden_layers": 16, "num_layers_per_stack": 2, "embedding_scale": 4.0}, hrm_weights, ["default", "yarn"]),
    "HrmTextForCausalLM stack": ({**CYCLES, "num_hidden_layers": 2, "L_cycles": 1, "initializer_range": 0.1}, hrm_weights, ["default"]),
    "Lfm3ForCausalLM": (LFM, lfm3_weights, [None]),
    "Lfm3ForCausalLM plain": ({**LFM, "conv_L_cache": 3, "use_sandwich_norm": False, "use_attention_gate": False, "tie_word_embeddings": False, "rope_parameters": {
        kind: {"rope_theta": 500.0, "rope_type": "default"} for kind in ("full_attention", "sliding_attention")}}, lfm3_weights, [None]),
    "EmbeddingGemma2TextModel": (EMBEDDER, embedder_weights, [None]),
    "EmbeddingGemma2Model": ({**EMBEDDER, "write": with_towers, "how": {"output": "none", "files": PROMPTED, "keys": {
        "gemma-embedding2.pooling_type": 1, "sentence_transformers.prompt.query": "task: search result | query: ", "gemma-embedding2.attention.sliding_window": 4}}, "layout": lambda w: {**{"language_model." + name: t for name, t in w.items()}, "vision_tower.x": np.zeros(4)}}, embedder_weights, [None]),
    "MuseSparkForConditionalGeneration": (SPARK, muse_spark_weights, ["default", "yarn"]),
    "MiniMaxForCausalLM": ({**LIGHTNING, "layout": with_decays}, minimax_weights, ["default", "yarn"]),
    "MiniMaxText01ForCausalLM": ({**LIGHTNING, "model_type": "minimax_text_01", "write": as_authors_have_it}, minimax_weights, ["default"]),
    "Spark2_5ForCausalLM": ({**OWN, "model_type": "spark2_5", "intermediate_size": N_FF, "hidden_act": "gelu", "gate_attn_act_mode": "sigmoid", "headwise_attn_output_gate": True,
                             "rope_parameters": TURNS}, spark_weights, [None]),
    "MapleForCausalLM": ({**OWN, "model_type": "maple", "hidden_act": "silu", "num_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "norm_topk_prob": True,
                          "num_shared_experts": 0, "nope_on_global_attention": True, "d": 16, "theta": 500.0, "partial": 0.5}, maple_weights, ["default", "yarn"]),
    "GraniteSWAForCausalLM": ({**GRANITE, "model_type": "granite_swa", "tie_word_embeddings": True}, granite_swa_weights, ["default", "linear", "yarn", "llama3"]),
    "GraniteSWAForCausalLM bases": ({**GRANITE, "model_type": "granite_swa", "tie_word_embeddings": False, "layer_rope_theta": [0, 500.0, 500.0], "layer_types": None}, granite_swa_weights, ["default"]),
    "GraniteSwitchForCausalLM": ({key: value for key, value in SWITCH.items() if key != "sliding_window"}, switch_weights, ["default"]),
    "GraniteMoeSWAForCausalLM": ({**GRANITE, **MIXED, "shared_intermediate_size": N_ALL}, granite_swa_weights, ["default"]),
    "GraniteMoeSWAForCausalLM older": ({**GRANITE, **MIXED, "shared_intermediate_size": 0, "layer_rope_theta": [1e4, 0, 1e4], "layout": older, "write": no_rope_layers}, granite_swa_weights, ["default"]),
}
