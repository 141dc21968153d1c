"""Folders of Llama's kin, for ./folders.py.

One forward pass reads a folder's own layout; `how` of a class says in what it differs from Llama. As in transformers, halves of
a head are rotated, but where `how` has pairs.
"""
import math

import numpy as np

from blocks import *
from folders import EPS, EVERY, N_EMBD, N_FF, N_HEAD, N_KV, N_LAYER, N_VOCAB, TOKENS, rotation

LLAMA = {"before_attention": "input_layernorm", "before_feed_forward": "post_attention_layernorm"}
GEMMA = {"before_attention": "input_layernorm", "after_attention": "post_attention_layernorm",
         "before_feed_forward": "pre_feedforward_layernorm", "after_feed_forward": "post_feedforward_layernorm"}
OLMO2 = {"after_attention": "post_attention_layernorm", "after_feed_forward": "post_feedforward_layernorm"}
GATED, PLAIN = ("gate_proj", "up_proj", "down_proj"), ("up_proj", "down_proj")


def feed_forward(how, w, p, h):
    act = {"silu": silu, "gelu": gelu, "relu2": lambda x: np.maximum(x, 0) ** 2}[how.get("act", "silu")]
    names = how.get("mlp", GATED)
    *up, down = ([w[f"{p}mlp.{name}.weight"], w.get(f"{p}mlp.{name}.bias")] for name in names)
    if len(names) == 3:
        h = act(linear(h, *up[0])) * linear(h, *up[1])
    elif how.get("fused"):
        gate, up = np.split(linear(h, *up[0]), 2, axis=-1)
        h = act(gate) * up
    else:
        h = act(linear(h, *up[0]))
    return linear(h, *down)


def forward(c, w, n_ctx):
    how, d = c["how"], c["d"]
    theta, mag = rotation(c, int(d * c.get("partial", 1.0)), n_ctx)
    local = inverse_frequencies(2 * len(theta), how.get("local", c["theta"]))
    norms, centre, one = how["norms"], how.get("centre", False), how.get("one", 0.0)

    def norm(x, name):
        weight, bias = w[name + ".weight"] + one, w.get(name + ".bias")
        return layer_norm(x, weight, bias, EPS) if centre else rms_norm(x, weight, EPS)

    def maybe(x, p, which):
        return norm(x, p + norms[which]) if which in norms else x

    x = w["model.embed_tokens.weight"][TOKENS] * how.get("embedding", 1.0)
    residual = how.get("residual", 1.0)
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        h = maybe(x, p, "before_attention")
        q, k, v = (linear(h, w[f"{p}self_attn.{n}_proj.weight"], w.get(f"{p}self_attn.{n}_proj.bias")) for n in "qkv")
        if how.get("qk_norm") == "row":
            q, k = norm(q, p + "self_attn.q_norm"), norm(k, p + "self_attn.k_norm")
        q, k, v = split_heads(q, N_HEAD), split_heads(k, N_KV), split_heads(v, N_KV)
        if how.get("qk_norm") in ("head", "heads"):
            q, k = norm(q, p + "self_attn.q_norm"), norm(k, p + "self_attn.k_norm")
        near = how.get("window") and (l + 1) % how["every"] != 0
        turns = {"all": True, "near": near, "far": not near}[how.get("turns", "all")]
        if how.get("no_positions"):
            turns = (l + 1) % how["no_positions"] != 0
        f, m = (local, 1.0) if near and how.get("local_unscaled") else (theta, mag)
        if turns:
            q, k = rotate(q, f, not how.get("pairs"), m), rotate(k, f, not how.get("pairs"), m)
        if "llama_4_scaling_beta" in c["rope"]:
            steps = np.arange(len(q)) // c["rope"]["original_max_position_embeddings"]
            q = q * (1 + c["rope"]["llama_4_scaling_beta"] * np.log1p(steps))[:, None, None]
        a = merge_heads(attention(q, k, v, scale=how.get("scale"), window=how["window"] if near else None))
        a = linear(a, w[p + "self_attn.o_proj.weight"], w.get(p + "self_attn.o_proj.bias"))
        if how.get("parallel"):
            x = x + a + feed_forward(how, w, p, h)
            continue
        x = x + residual * maybe(a, p, "after_attention")
        f = feed_forward(how, w, p, maybe(x, p, "before_feed_forward"))
        x = x + residual * maybe(f, p, "after_feed_forward")
    y = linear(norm(x, "model.norm"), w.get("lm_head.weight", w["model.embed_tokens.weight"])) * how.get("logits", 1.0)
    return y


def weights(c, w):
    how, d = c["how"], c["d"]
    about = 1.0 - how.get("one", 0.0)
    w.matrix("model.embed_tokens.weight", N_VOCAB, N_EMBD)
    names = ["model.norm"]
    if not c["tie_word_embeddings"]:
        w.matrix("lm_head.weight", N_VOCAB, N_EMBD)
    for l in range(c["num_hidden_layers"]):
        p = f"model.layers.{l}."
        names += [p + name for name in how["norms"].values()]
        for name, n, m in (("q", N_HEAD * d, N_EMBD), ("k", N_KV * d, N_EMBD), ("v", N_KV * d, N_EMBD), ("o", N_EMBD, N_HEAD * d)):
            w.matrix(f"{p}self_attn.{name}_proj.weight", n, m)
            if name in how.get("bias", ""):
                w.vector(f"{p}self_attn.{name}_proj.bias", n)
        for name, n in (("q", N_HEAD), ("k", N_KV)) if "qk_norm" in how else ():
            w.vector(f"{p}self_attn.{name}_norm.weight", {"row": n * d, "head": d, "heads": (n, d)}[how["qk_norm"]], about)
        mlp = how.get("mlp", GATED)
        for i, name in enumerate(mlp):
            n_ff = N_FF * (2 if how.get("fused") and i == 0 else 1)
            w.matrix(f"{p}mlp.{name}.weight", *((N_EMBD, N_FF) if i + 1 == len(mlp) else (n_ff, N_EMBD)))
            if how.get("mlp_bias"):
                w.vector(f"{p}mlp.{name}.bias", N_EMBD if i + 1 == len(mlp) else n_ff)
    for name in names:
        w.vector(name + ".weight", N_EMBD, about)
        if how.get("norm_bias"):
            w.vector(name + ".bias", N_EMBD)


def family(how, d=12, theta=10000.0, tied=True, scalings=EVERY, **more):
    config = {"how": how, "d": d, "theta": theta, "tie_word_embeddings": tied, "hidden_size": N_EMBD, "intermediate_size": N_FF,
              "num_attention_heads": N_HEAD, "num_key_value_heads": N_KV, "num_hidden_layers": N_LAYER, "vocab_size": N_VOCAB,
              "max_position_embeddings": 128, "rms_norm_eps": EPS, "hidden_act": "silu", **more}
    return {key: value for key, value in config.items() if value is not None}, weights, scalings, forward


PUBLISHED = {  # further values that the published config.json of these classes have; none of them changes anything
    "": {"attention_dropout": 0.0, "initializer_range": 0.02, "use_cache": True, "bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": 0,
         "torch_dtype": "bfloat16", "transformers_version": "4.50.0"},
    "Gemma3ForCausalLM": {"attention_bias": False, "attn_logit_softcapping": None, "final_logit_softcapping": None,
                          "cache_implementation": "hybrid", "use_bidirectional_attention": False},
    "CohereForCausalLM": {"attention_bias": False, "model_max_length": 256},
    "Cohere2ForCausalLM": {"attention_bias": False, "layer_switch": 2, "order_of_interleaved_layers": "local_attn_first",
                           "position_embedding_type": "rope_gptj", "use_embedding_sharing": True, "use_gated_activation": True,
                           "use_parallel_block": True, "use_parallel_embedding": False, "use_qk_norm": False},
    "GraniteForCausalLM": {"mlp_bias": False},
    "Olmo2ForCausalLM": {"attention_bias": False},
    "Olmo3ForCausalLM": {"attention_bias": False},
    "SmolLM3ForCausalLM": {"attention_bias": False, "mlp_bias": False, "layer_types": ["full_attention"] * 5, "max_window_layers": 28,
                           "pretraining_tp": 2, "sliding_window": None, "use_sliding_window": False},
    "SeedOssForCausalLM": {"residual_dropout": 0.1},
    "Starcoder2ForCausalLM": {"activation_function": "gelu", "attention_softmax_in_fp32": True, "embedding_dropout": 0.1,
                              "layer_norm_epsilon": 1e-5, "mlp_type": "default", "norm_type": "layer_norm", "residual_dropout": 0.1,
                              "scale_attention_softmax_in_fp32": True, "scale_attn_weights": True},
    "ExaoneForCausalLM": {"embed_dropout": 0.0, "head_dim": 12},
    "NemotronForCausalLM": {"kv_channels": 12},
    "ArceeForCausalLM": {"attention_bias": False, "mlp_bias": False},
    "InternLM2ForCausalLM": {"attn_implementation": "eager"},
}


def every_n(n, far="full_attention"):
    return [far if (l + 1) % n == 0 else "sliding_attention" for l in range(max(n + 1, N_LAYER))]


def exaone(w):
    """The names of EXAONE 3."""
    names = {"model.embed_tokens": "transformer.wte", "model.norm": "transformer.ln_f", "model.layers": "transformer.h",
             "input_layernorm": "ln_1", "post_attention_layernorm": "ln_2", "self_attn.o_proj": "attn.attention.out_proj",
             "self_attn": "attn.attention", "gate_proj": "c_fc_0", "up_proj": "c_fc_1", "down_proj": "c_proj"}
    out = {}
    for name, t in w.items():
        for old, new in names.items():
            name = name.replace(old, new)
        out[name] = t
    return out


def internlm2(w):
    """The names of InternLM 2; for each key head its query heads, the key and the value lie side by side."""
    names = {"embed_tokens": "tok_embeddings", "lm_head": "output", "self_attn.o_proj": "attention.wo", "input_layernorm": "attention_norm",
             "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3",
             "mlp.down_proj": "feed_forward.w2"}
    out = {}
    for name, t in w.items():
        if "q_proj" in name:
            q, k, v = (w[name.replace("q_proj", n + "_proj")].reshape(N_KV, -1, N_EMBD) for n in "qkv")
            out[name.replace("self_attn.q_proj", "attention.wqkv")] = np.concatenate([q, k, v], 1).reshape(-1, N_EMBD)
        elif "k_proj" not in name and "v_proj" not in name:
            for old, new in names.items():
                name = name.replace(old, new)
            out[name] = t
    return out


CLASSES = {
    "GemmaForCausalLM": family({"norms": LLAMA, "one": 1.0, "act": "gelu", "embedding": math.sqrt(N_EMBD)}, d=16, head_dim=16,
                               hidden_act="gelu"),
    "Gemma3ForCausalLM": family({"norms": GEMMA, "one": 1.0, "act": "gelu", "embedding": math.sqrt(N_EMBD), "qk_norm": "head",
                                 "window": 5, "every": 2, "local": 70.0, "local_unscaled": True}, d=16, theta=500.0, head_dim=16,
                                query_pre_attn_scalar=16, sliding_window=5, layer_types=every_n(2), hidden_act=None,
                                hidden_activation="gelu_pytorch_tanh", _sliding_window_pattern=2,
                                scalings=["default", "linear"]),
    "GraniteForCausalLM": family({"norms": LLAMA, "embedding": 3.0, "residual": 0.4, "scale": 0.3, "logits": 1 / 1.7, "bias": "qkvo"},
                                 attention_bias=True, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.3,
                                 logits_scaling=1.7, scalings=EVERY + ["llama3"]),
    "CohereForCausalLM": family({"norms": {"before_attention": "input_layernorm"}, "centre": True, "parallel": True, "pairs": True,
                                 "qk_norm": "heads", "logits": 0.5}, use_qk_norm=True, layer_norm_eps=EPS, rms_norm_eps=None,
                                logit_scale=0.5, scalings=["default"]),
    "Cohere2ForCausalLM": family({"norms": {"before_attention": "input_layernorm"}, "centre": True, "parallel": True, "pairs": True,
                                  "logits": 0.5, "window": 5, "every": 2, "turns": "near"}, d=16, head_dim=16, layer_norm_eps=EPS,
                                 rms_norm_eps=None, logit_scale=0.5, sliding_window=5, sliding_window_pattern=2, rotary_pct=1.0,
                                 layer_types=every_n(2), scalings=["default"]),
    "Olmo2ForCausalLM": family({"norms": OLMO2, "qk_norm": "row"}, tied=False),
    "Olmo3ForCausalLM": family({"norms": OLMO2, "qk_norm": "row", "window": 5, "every": 4, "local_unscaled": True},
                               tied=False, sliding_window=5, layer_types=every_n(4), num_hidden_layers=5,
                               scalings=["default", "yarn", "yarn-factors"]),
    "Glm4ForCausalLM": family({"norms": {"before_attention": "input_layernorm", "after_attention": "post_self_attn_layernorm",
                                         "before_feed_forward": "post_attention_layernorm", "after_feed_forward": "post_mlp_layernorm"},
                               "mlp": ("gate_up_proj", "down_proj"), "fused": True, "pairs": True, "bias": "qkv"}, d=16, head_dim=16,
                              tied=False, partial=0.5, attention_bias=True),
    "Ministral3ForCausalLM": family({"norms": LLAMA}, d=16, head_dim=16, tied=False, theta=1e6,
                                    scalings=["default", "ministral"]),
    "SmolLM3ForCausalLM": family({"norms": LLAMA, "no_positions": 4}, theta=2e6, num_hidden_layers=5,
                                 no_rope_layers=[1, 1, 1, 0, 1], no_rope_layer_interval=4),
    "SeedOssForCausalLM": family({"norms": LLAMA, "bias": "qkv"}, d=16, head_dim=16, tied=False, attention_bias=True,
                                 attention_out_bias=False, mlp_bias=False),
    "Starcoder2ForCausalLM": family({"norms": LLAMA, "centre": True, "norm_bias": True, "bias": "qkvo", "mlp": ("c_fc", "c_proj"),
                                     "mlp_bias": True, "act": "gelu", "window": 6, "every": 99}, norm_epsilon=EPS, rms_norm_eps=None,
                                    hidden_act="gelu_pytorch_tanh", use_bias=True, sliding_window=6),
    "Exaone4ForCausalLM": family({"norms": OLMO2, "qk_norm": "head", "window": 5, "every": 4, "turns": "near"}, d=16, head_dim=16,
                                 tied=False, sliding_window=5, sliding_window_pattern="LLLG", layer_types=every_n(4),
                                 num_hidden_layers=5, scalings=EVERY + ["llama3"]),
    "NemotronForCausalLM": family({"norms": LLAMA, "centre": True, "norm_bias": True, "one": 1.0, "mlp": PLAIN, "act": "relu2"}, d=12,
                                  head_dim=12, tied=False, partial=0.5, norm_eps=EPS, rms_norm_eps=None, hidden_act="relu2",
                                  attention_bias=False, mlp_bias=False, scalings=["default", "linear"]),
    "ArceeForCausalLM": family({"norms": LLAMA, "mlp": PLAIN, "act": "relu2"}, d=16, head_dim=16, tied=False, hidden_act="relu2",
                               scalings=EVERY + ["llama3"]),
    "InternLM2ForCausalLM": family({"norms": LLAMA, "layout": internlm2}, tied=False, bias=False, scalings=["default", "linear"]),
    "ExaoneForCausalLM": family({"norms": LLAMA, "layout": exaone}, tied=False, num_layers=N_LAYER, layer_norm_epsilon=EPS,
                                rms_norm_eps=None, hidden_act=None, activation_function="silu", scalings=EVERY + ["llama3"]),
}
for _name, (_config, *_) in CLASSES.items():
    _config.update({**PUBLISHED[""], **PUBLISHED.get(_name, {})})
