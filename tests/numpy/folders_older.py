"""Folders of classes that transformers does not have, for ./folders.py: rows in ./recorded.txt are what this engine gives for the file that llama.cpp's converter
(0.5.0) made of the folder, whose tensors were those of llm-convert's file, number by number. Of classes that transformers has, they are its own."""
import numpy as np

from folders import CLASSES as FIRST
from folders import EPS, N_EMBD, N_FF, N_HEAD, N_KV, N_VOCAB
from folders_experts import N_EACH, N_EXPERT
from folders_late import FEED, SIZE, SPARSE, attention, nemotron_h, put
from folders_mixed import CLASSES as MIXED
from folders_more import CLASSES as MORE
from folders_named import CLASSES as NAMED
from folders_readers import CLASSES as READERS

MAMBA = FIRST["MambaForCausalLM"][1]
GATED = {"gate_proj": (N_EACH, N_EMBD), "up_proj": (N_EACH, N_EMBD), "down_proj": (N_EMBD, N_EACH)}
OWN = {**SIZE, "num_hidden_layers": 3, "intermediate_size": N_FF, "rms_norm_eps": EPS, "hidden_act": "silu", "tie_word_embeddings": False, "d": 12, "theta": 900.0}
NORMS = {"input_layernorm": N_EMBD, "post_attention_layernorm": N_EMBD}


def ends(w, c, embedding="model.embed_tokens", norm="model.norm"):
    put(w, "", {embedding: (N_VOCAB, N_EMBD), norm: N_EMBD} | ({} if c["tie_word_embeddings"] else {"lm_head": (N_VOCAB, N_EMBD)}))


def usual(d=12, n_kv=N_KV, more={}, feed=FEED):
    """A layer of Llama's kind."""
    def weights(c, w):
        ends(w, c)
        for l in range(c["num_hidden_layers"]):
            put(w, f"model.layers.{l}.", NORMS | attention(d, n_kv) | feed | more)
    return weights


def ling_weights(c, w):
    ends(w, c, "model.word_embeddings")
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | {"attention.query_key_value": ((N_HEAD + 2 * N_KV) * 12, N_EMBD), "attention.dense": (N_EMBD, N_HEAD * 12)}
            | {"mlp.gate": (N_EXPERT, N_EMBD)}
            | {f"mlp.experts.{e}.{name}": shape for e in range(N_EXPERT) for name, shape in GATED.items()}
            | {f"mlp.shared_experts.{name}": tuple(2 * n if n == N_EACH else n for n in shape) for name, shape in GATED.items()})


def thinker_weights(c, w):
    ends(w, c)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | attention(16) | {"block_sparse_moe.primary_router": (N_EXPERT, N_EMBD)}
            | {f"block_sparse_moe.experts.{e}.{name[: -len('_proj')]}": shape for e in range(N_EXPERT) for name, shape in GATED.items()})


def mellum_weights(c, w):
    ends(w, c)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | attention(16) | {"self_attn.q_norm": 16, "self_attn.k_norm": 16, "mlp.gate": (N_EXPERT, N_EMBD)}
            | {f"mlp.experts.{e}.{name}": shape for e in range(N_EXPERT) for name, shape in GATED.items()})


def openelm_weights(c, w):
    put(w, "transformer.", {"token_embeddings": (N_VOCAB, N_EMBD), "norm": N_EMBD})
    for l, (n_head, n_kv, n_ff) in enumerate(zip(c["num_query_heads"], c["num_kv_heads"], (32, 64, 80))):
        put(w, f"transformer.layers.{l}.", {"attn_norm": N_EMBD, "attn.qkv_proj": ((n_head + 2 * n_kv) * 12, N_EMBD), "attn.q_norm": 12, "attn.k_norm": 12, "attn.out_proj": (N_EMBD, n_head * 12),
                                            "ffn_norm": N_EMBD, "ffn.proj_1": (2 * n_ff, N_EMBD), "ffn.proj_2": (N_EMBD, n_ff)})


def plamo_weights(c, w):
    ends(w, c)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.layers.{l}.", {"norm": N_EMBD, "self_attn.q_proj": (N_EMBD, N_EMBD), "self_attn.k_proj": (6 * 2, N_EMBD), "self_attn.v_proj": (6 * 2, N_EMBD), "self_attn.o_proj": (N_EMBD, N_EMBD)} | FEED)


def plamo_norms(w, p, shift=True):
    """Stored as distances from 1, 1/5, 1 and 5 ** -1.5."""
    for name in ("pre_mixer_norm", "post_mixer_norm", "pre_mlp_norm", "post_mlp_norm"):
        w.vector(f"{p}{name}.weight", N_EMBD)
    put(w, p, {"mlp.gate_up_proj": (2 * N_FF, N_EMBD), "mlp.down_proj": (N_EMBD, N_FF)})


def plamo2_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD)})
    w.vector("model.norm.weight", N_EMBD)
    for l in range(c["num_hidden_layers"]):
        p, n, st, n_in = f"model.layers.layers.{l}.", 4, 6, 48
        plamo_norms(w, p)
        if l % 2 == 0:
            put(w, p + "mixer.", {"in_proj": (2 * n_in, N_EMBD), "conv1d": (n_in, 1, 4), "bcdt_proj": (64 + 2 * st, n_in), "dt_proj": (n, 64), "dt_bias!": n, "A_log!": n, "D!": n, "out_proj": (N_EMBD, n_in),
                                  "B_norm_weight!": st, "C_norm_weight!": st, "dt_norm_weight!": 64})
        else:
            put(w, p + "mixer.", {"qkv_proj": ((N_HEAD + 2 * N_KV) * 12, N_EMBD), "q_weight!": (N_HEAD, 12), "k_weight!": (N_KV, 12), "o_proj": (N_EMBD, N_HEAD * 12)})


def plamo3_weights(c, w):
    put(w, "", {"model.embed_tokens": (N_VOCAB, N_EMBD)})
    w.vector("model.norm.weight", N_EMBD)
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.layers.{l}."
        plamo_norms(w, p)
        put(w, p + "mixer.", {"qkv_proj": ((N_HEAD + 2 * N_KV) * 12, N_EMBD), "o_proj": (N_EMBD, N_HEAD * 12)})
        for name in ("q_norm", "k_norm"):
            w.vector(f"{p}mixer.{name}.weight", 12)


def biased(w, names):
    for name in names:
        w.vector(name + ".bias", len(w[name + ".weight"]))


def jais_weights(c, w):
    put(w, "transformer.", {"wte": (N_VOCAB, N_EMBD), "ln_f": N_EMBD, "ln_f.bias!": N_EMBD})
    put(w, "", {"lm_head": (N_VOCAB, N_EMBD)})
    w["transformer.relative_pe.slopes"] = np.array([0.25, 0.0625, 0.015625, 0.00390625]).reshape(4, 1, 1)
    for l in range(c["n_layer"]):
        p = f"transformer.h.{l}."
        put(w, p, {"ln_1": N_EMBD, "ln_1.bias!": N_EMBD, "ln_2": N_EMBD, "ln_2.bias!": N_EMBD, "attn.c_attn": (N_EMBD, 3 * N_EMBD), "attn.c_attn.bias!": 3 * N_EMBD, "attn.c_proj": (N_EMBD, N_EMBD),
                   "attn.c_proj.bias!": N_EMBD, "mlp.c_fc": (N_EMBD, N_FF), "mlp.c_fc.bias!": N_FF, "mlp.c_fc2": (N_EMBD, N_FF), "mlp.c_fc2.bias!": N_FF, "mlp.c_proj": (N_FF, N_EMBD), "mlp.c_proj.bias!": N_EMBD})


def jais2_weights(c, w):
    ends(w, c)
    biased(w, ["model.norm"])
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, NORMS | attention(16) | {"mlp.up_proj": (N_FF, N_EMBD), "mlp.down_proj": (N_EMBD, N_FF)})
        biased(w, [p + name for name in (*NORMS, *(f"self_attn.{part}_proj" for part in "qkvo"), "mlp.up_proj", "mlp.down_proj")])


def plm_weights(c, w):
    ends(w, c)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | {"self_attn.q_proj": (N_HEAD * 18, N_EMBD), "self_attn.kv_a_proj_with_mqa": (28, N_EMBD), "self_attn.kv_a_layernorm": 20, "self_attn.kv_b_proj": (N_HEAD * 24, 20),
                                              "self_attn.o_proj": (N_EMBD, N_HEAD * 14), "mlp.up_proj": (N_FF, N_EMBD), "mlp.down_proj": (N_EMBD, N_FF)})


def pangu_weights(c, w):
    usual()(c, w)
    biased(w, [f"model.layers.{l}.self_attn.{part}_proj" for l in range(c["num_hidden_layers"]) for part in "qkvo"])


def arctic_weights(c, w):
    ends(w, c)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | attention(12) | {"residual_layernorm": N_EMBD, "block_sparse_moe.gate": (N_EXPERT, N_EMBD)} | {f"residual_mlp.w{i}": (N_EMBD, N_EMBD) for i in (1, 2, 3)}
            | {f"block_sparse_moe.experts.{e}.{name}": shape for e in range(N_EXPERT) for name, shape in (("w1", (N_FF, N_EMBD)), ("w2", (N_EMBD, N_FF)), ("w3", (N_FF, N_EMBD)))})


def codeshell_weights(c, w):
    put(w, "transformer.", {"wte": (N_VOCAB, N_EMBD), "ln_f": N_EMBD, "ln_f.bias!": N_EMBD})
    put(w, "", {"lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["n_layer"]):
        p = f"transformer.h.{l}."
        put(w, p, {"ln_1": N_EMBD, "ln_2": N_EMBD, "attn.c_attn": ((N_HEAD + 2 * N_KV) * 12, N_EMBD), "attn.c_proj": (N_EMBD, N_EMBD), "mlp.c_fc": (4 * N_EMBD, N_EMBD), "mlp.c_proj": (N_EMBD, 4 * N_EMBD)})
        biased(w, [p + name for name in ("ln_1", "ln_2", "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")])


def refact_weights(c, w):
    put(w, "", {"transformer.wte": (N_VOCAB, N_EMBD), "ln_f": N_EMBD, "lm_head": (N_VOCAB, N_EMBD)})
    for l in range(c["n_layer"]):
        put(w, f"transformer.h.{l}.", {"ln_1": N_EMBD, "ln_2": N_EMBD, "attn.q": (N_EMBD, N_EMBD), "attn.kv": (24, N_EMBD), "attn.c_proj": (N_EMBD, N_EMBD), "mlp.gate_up_proj": (512, N_EMBD), "mlp.c_proj": (N_EMBD, 256)})


def chameleon_weights(c, w):
    ends(w, c)
    w.matrix("model.vqmodel.quantize.embedding.weight", 4, 4)
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.layers.{l}.", NORMS | attention(12, N_HEAD) | FEED)
        for part in ("q_norm", "k_norm"):
            for end, about in (("weight", 1.0), ("bias", 0.0)):
                w.vector(f"model.layers.{l}.self_attn.{part}.{end}", (N_HEAD, 12), about)


def qrwkv_weights(c, w):
    ends(w, c)
    r, r_decay, d = c["lora_rank_tokenshift"], c["lora_rank_decay"], N_EMBD // N_HEAD
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        put(w, p, NORMS | FEED | {f"self_attn.{part}_proj": (n * d, N_EMBD) for part, n in (("q", N_HEAD), ("k", N_KV), ("v", N_KV), ("o", N_HEAD))} | {"self_attn.gate": (N_EMBD, N_EMBD)})
        put(w, p + "self_attn.", {"time_maa_w1!": (N_EMBD, 5 * r), "time_maa_w2!": (5, r, N_EMBD), "time_decay_w1!": (N_EMBD, r_decay), "time_decay_w2!": (r_decay, N_EMBD), "time_decay!": (1, 1, N_EMBD)}
            | {f"time_maa_{part}!": (1, 1, N_EMBD) for part in "xwkvrg"})
        biased(w, [p + f"self_attn.{part}_proj" for part in "qkv"])


def talkie_weights(c, w):
    put(w, "", {"model.embed": (N_VOCAB, N_EMBD), "lm_head": (N_VOCAB, N_EMBD), "lm_head_gain.w_g!": 1})
    for l in range(c["num_hidden_layers"]):
        put(w, f"model.blocks.{l}.", {f"attn.attn_{part}": (N_HEAD * 12, N_EMBD) for part in ("query", "key", "value")} | {"attn.attn_resid": (N_EMBD, N_HEAD * 12), "attn.head_gain.head_g!": N_HEAD, "attn_gain.a_g!": 1,
            "mlp_gain.a_g!": 1, "embed_skip.a_g!": 1, "mlp.mlp_gate": (N_FF, N_EMBD), "mlp.mlp_linear": (N_FF, N_EMBD), "mlp.mlp_resid": (N_EMBD, N_FF)})


def own_mamba_weights(c, w):
    """As the authors' program writes it."""
    MAMBA(c | {"state_size": 16, "time_step_rank": 3}, w)
    w["lm_head.weight"] = w["backbone.embedding.weight"] = w.pop("backbone.embeddings.weight")


def spelled(of, **more):
    """Another name of a class; of: its configuration, weights, ways to scale, and forward pass, if it has one."""
    return ({**of[0], **more}, *of[1:])


def bare(w):
    return {name.replace("transformer.", ""): t for name, t in w.items()}


def in_blocks():
    """Nemotron 3 Puzzle: experts' widths and numbers are of each layer."""
    config, weights, scalings = nemotron_h("ME*E", moe_latent_size=24, **SPARSE)
    config = {name: value for name, value in config.items() if name not in ("hybrid_override_pattern", "num_experts_per_tok", "moe_intermediate_size")}
    blocks = [{"block_type": "mamba"}, {"block_type": "moe", "num_experts_per_tok": 3, "moe_intermediate_size": 16}, {"block_type": "attention"},
              {"block_type": "moe", "num_experts_per_tok": 1, "moe_intermediate_size": N_EACH}]
    return {**config, "mamba_head_dim": 8, "like": {"layers": "ME*E", "each": {1: 16}}, "block_configs": blocks, "num_nextn_predict_layers": 1, "mtp_block_configs": [{"block_type": "attention"}]}, weights, scalings


LING = {**OWN, "model_type": "bailing_moe", "num_experts": N_EXPERT, "num_experts_per_tok": 2, "num_shared_experts": 2, "moe_intermediate_size": N_EACH, "norm_topk_prob": True,
        "first_k_dense_replace": 0, "norm_head": False, "norm_softmax": False, "use_bias": False, "use_qkv_bias": False, "multi_gate": False, "max_window_layers": 3, "use_sliding_window": False}
THINKER = {**{name: value for name, value in OWN.items() if name not in ("intermediate_size", "hidden_act")}, "model_type": "smallthinker", "num_hidden_layers": 5, "head_dim": 16, "d": 16, "moe_ffn_hidden_size": N_EACH, "moe_num_primary_experts": N_EXPERT,
           "moe_num_active_primary_experts": 2, "norm_topk_prob": True, "rope_layout": [0, 1, 1, 1, 0], "sliding_window_layout": [0, 1, 1, 1, 0], "sliding_window_size": 5, "model_name": "small"}
MELLUM = {**OWN, "model_type": "mellum", "head_dim": 16, "d": 16, "num_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_intermediate_size": N_EACH, "norm_topk_prob": True, "sliding_window": 5,
          "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "attention_bias": False,
          "rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 900.0, "factor": 4.0, "original_max_position_embeddings": 32},
                              "sliding_attention": {"rope_type": "default", "rope_theta": 900.0}}}
OPENELM = {"model_type": "openelm", "vocab_size": N_VOCAB, "num_transformer_layers": 3, "model_dim": N_EMBD, "head_dim": 12, "max_context_length": 128, "num_query_heads": [4, 4, 6], "num_kv_heads": [2, 2, 3],
           "ffn_multipliers": [0.7, 1.3, 1.6], "ffn_dim_divisor": 16, "ffn_with_glu": True, "activation_fn_name": "swish", "normalization_layer_name": "rms_norm", "normalize_qk_projections": True,
           "num_gqa_groups": 2, "qkv_multipliers": [0.5, 1.0], "rope_freq_constant": 900, "rope_max_length": 4096, "share_input_output_layers": True}
HALF = ["default", "yarn"]
PIECES = {"<image>": 3} | {f"IMGIMG{chr(65 + i // 26)}{chr(65 + i % 26)}Z": 4 + i for i in range(N_VOCAB - 4)}  # of pictures: tokens that are never chosen
PLAMO2 = {**{name: value for name, value in OWN.items() if name not in ("hidden_act", "theta")}, "model_type": "plamo2", "num_hidden_layers": 4, "tie_word_embeddings": True, "hidden_size_per_head": 12, "mamba_d_conv": 4,
          "mamba_d_state": 6, "mamba_num_heads": 4, "mamba_step": 2, "mamba_enabled": True, "mamba_chunk_size": 16, "rope_theta": 900.0, "max_position_embeddings": 128, "attention_window_size": 64}
PLAMO3 = {**{name: value for name, value in OWN.items() if name not in ("hidden_act", "theta")}, "model_type": "plamo3", "tie_word_embeddings": True, "head_dim": 12, "window_size": 5, "sliding_window_pattern": 2,
          "rope_theta": 900.0, "rope_local_theta": 50.0, "initial_context_length": 32, "rope_scaling_factor": 4}
GPT = {"vocab_size": N_VOCAB, "n_layer": 3, "n_head": N_HEAD, "n_embd": N_EMBD, "n_positions": 128, "layer_norm_epsilon": EPS, "tie_word_embeddings": False}
JAIS = {**GPT, "model_type": "jais", "n_inner": N_FF, "activation_function": "swiglu", "position_embedding_type": "alibi", "mup_embeddings_scale": 3.0, "mup_output_alpha": 1.6, "mup_width_scale": 0.25,
        "mup_scale_qk_dot_by_d": True, "scale_attn_weights": True}
CLASSES = {
    "XverseForCausalLM": ({**OWN, "model_type": "xverse", "num_key_value_heads": N_HEAD, "max_tokenizer_truncation": 100}, usual(n_kv=N_HEAD), HALF),
    "BailingMoeForCausalLM": (LING, ling_weights, HALF),
    "SmallThinkerForCausalLM": (THINKER, thinker_weights, HALF),
    "SmallThinkerForCausalLM whole": ({**THINKER, "num_hidden_layers": 2, "rope_layout": [1, 1], "sliding_window_layout": [0, 0], "moe_primary_router_apply_softmax": True, "tie_word_embeddings": True}, thinker_weights, ["default"]),
    "MellumForCausalLM": (MELLUM, mellum_weights, [None]),
    "NanbeigeForCausalLM": ({**OWN, "model_type": "nanbeige", "head_dim": 16, "d": 16, "num_hidden_layers": 2, "num_loops": 2, "loop_loss_weights": [], "skip_loop_final_norm": False, "kv_channels": 16, "attention_bias": False},
                            usual(16), HALF),
    "OpenELMForCausalLM": (OPENELM, openelm_weights, [None]),
    "PlamoForCausalLM": ({**{name: value for name, value in OWN.items() if name != "theta"}, "model_type": "plamo", "hidden_size": N_EMBD, "num_attention_heads": 24, "n_shared_head": 4}, plamo_weights, [None]),
    "Plamo2ForCausalLM": (PLAMO2, plamo2_weights, [None]),
    "Plamo3ForCausalLM": (PLAMO3, plamo3_weights, [None]),
    "JAISLMHeadModel": (JAIS, jais_weights, [None]),
    "JAISLMHeadModel own": ({**{name: value for name, value in JAIS.items() if not name.startswith("mup_")}, "embeddings_scale": 2.0, "width_scale": 0.5}, jais_weights, [None]),
    "Jais2ForCausalLM": ({**{name: value for name, value in OWN.items() if name != "rms_norm_eps"}, "model_type": "jais2", "hidden_act": "relu2", "layer_norm_eps": EPS, "head_dim": 16, "d": 16, "attention_bias": True,
                          "mlp_bias": True}, jais2_weights, HALF),
    "PLMForCausalLM": ({**OWN, "model_type": "plm", "hidden_act": "relu2", "tie_word_embeddings": True, "num_key_value_heads": N_HEAD, "q_lora_rank": None, "kv_lora_rank": 20, "qk_nope_head_dim": 10, "qk_rope_head_dim": 8,
                        "v_head_dim": 14, "d": 8, "attention_bias": False}, plm_weights, ["default"]),
    "PanguEmbeddedForCausalLM": ({**OWN, "model_type": "PanguEmbedded", "bias": True}, pangu_weights, HALF),
    "ArcticForCausalLM": ({**OWN, "model_type": "arctic", "num_local_experts": N_EXPERT, "num_experts_per_tok": 2, "moe_layer_frequency": 1, "use_residual": True, "parallel_attn_mlp_res": True,
                           "moe_train_capacity_factor": 1, "enable_expert_tensor_parallelism": False}, arctic_weights, HALF),
    "MaincoderForCausalLM": ({**OWN, "model_type": "maincoder", "head_dim": 16, "d": 16, "use_qk_norm": True, "attention_bias": False}, usual(16, more={"self_attn.q_norm": 16, "self_attn.k_norm": 16}), HALF),
    "CodeShellForCausalLM": ({**GPT, "model_type": "codeshell", "activation_function": "gelu_pytorch_tanh", "num_query_groups": N_KV, "group_query_attention": True, "position_embedding_type": "rope", "scale_attn_weights": True,
                              "attention_softmax_in_fp32": True, "n_inner": None}, codeshell_weights, [None]),
    "GPTRefactForCausalLM": ({**GPT, "model_type": "gpt_refact", "multi_query": True, "attention_softmax_in_fp32": False}, refact_weights, [None]),
    "ChameleonForConditionalGeneration": ({**OWN, "model_type": "chameleon", "num_key_value_heads": N_HEAD, "swin_norm": False, "vocabulary_map": PIECES, "vq_config": {"embed_dim": 4}}, chameleon_weights, ["default"]),
    "ChameleonForConditionalGeneration after": ({**OWN, "model_type": "chameleon", "num_key_value_heads": N_HEAD, "swin_norm": True, "vocabulary_map": PIECES, "vq_config": {"embed_dim": 4}}, chameleon_weights, ["default"]),
    "RWKV6Qwen2ForCausalLM": ({**OWN, "model_type": "rwkv6qwen2", "lora_rank_tokenshift": 6, "lora_rank_decay": 7}, qrwkv_weights, ["default"]),
    "TalkieForCausalLM": ({**{name: value for name, value in OWN.items() if name not in ("rms_norm_eps", "hidden_act")}, "model_type": "talkie", "num_key_value_heads": N_HEAD, "head_dim": 12}, talkie_weights, ["default"]),
    "NemotronHPuzzleForCausalLM": in_blocks(),
    "MambaLMHeadModel": ({"d_model": N_EMBD, "n_layer": 3, "vocab_size": N_VOCAB - 3, "pad_vocab_size_multiple": 8, "ssm_cfg": {}, "rms_norm": True, "residual_in_fp32": True, "fused_add_norm": True},
                         own_mamba_weights, [None]),
    "LLaMAForCausalLM": spelled(FIRST["LlamaForCausalLM"]),
    "OLMoForCausalLM": spelled(FIRST["OlmoForCausalLM"], how={"class": "OlmoForCausalLM"}),
    "BloomModel": spelled(FIRST["BloomForCausalLM"], layout=bare),
    "LFM2ForCausalLM": spelled(MORE["Lfm2ForCausalLM"], how={"class": "Lfm2ForCausalLM"}),
    "KimiLinearModel": spelled(MIXED["KimiLinearForCausalLM"], how={"class": "KimiLinearForCausalLM"}),
    "modeling_sarvam_moe.SarvamMoEForCausalLM": spelled(NAMED["SarvamMoEForCausalLM"]),
    "UMT5Model": spelled(READERS["UMT5ForConditionalGeneration"], how={**READERS["UMT5ForConditionalGeneration"][0].get("how", {}), "class": "UMT5ForConditionalGeneration"}),
}
