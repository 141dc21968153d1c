"""Folders of Phi 2, StableLM, Falcon, GPT-NeoX, MPT, OLMo and Mamba: more classes for ./folders.py, which hands itself over as f for its
sizes and the rotation. NAMES: where a class keeps its tensors; what a name lacks the family lacks."""
import math

from blocks import *
from statespace import mamba1

MODEL = {"embedding": "model.embed_tokens", "head": "lm_head", "norm": "model.norm", "layers": "model.layers."}
LLAMA = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj",
         "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj"}
DENSE = {"up": "mlp.dense_h_to_4h", "down": "mlp.dense_4h_to_h"}
NAMES = {
    "phi2": {**MODEL, **LLAMA, "norm": "model.final_layernorm", "norm1": "input_layernorm", "o": "self_attn.dense", "gate": None,
             "up": "mlp.fc1", "down": "mlp.fc2"},
    "stablelm": {**MODEL, **LLAMA, "norm1": "input_layernorm", "norm2": "post_attention_layernorm"},
    "stablelm-12b": {**MODEL, **LLAMA, "norm1": "input_layernorm"},
    "olmo": {**MODEL, **LLAMA, "norm1": "none", "norm2": "none", "norm": "none"},
    "gptneox": {"embedding": "gpt_neox.embed_in", "head": "embed_out", "norm": "gpt_neox.final_layer_norm", "layers": "gpt_neox.layers.",
                "norm1": "input_layernorm", "norm2": "post_attention_layernorm", "qkv": "attention.query_key_value",
                "o": "attention.dense", **DENSE},
    "falcon": {"embedding": "transformer.word_embeddings", "head": "lm_head", "norm": "transformer.ln_f", "layers": "transformer.h.",
               "norm1": "input_layernorm", "qkv": "self_attention.query_key_value", "o": "self_attention.dense", **DENSE},
    "mpt": {"embedding": "transformer.wte", "head": "lm_head", "norm": "transformer.norm_f", "layers": "transformer.blocks.",
            "norm1": "norm_1", "norm2": "norm_2", "qkv": "attn.Wqkv", "o": "attn.out_proj", "up": "ffn.up_proj", "down": "ffn.down_proj"},
}
NAMES["falcon-40b"] = {**NAMES["falcon"], "norm1": "ln_mlp", "ln_attn": "ln_attn"}
NAMES["gptneox-in-turn"] = NAMES["gptneox"]
IN_TURN = ("stablelm", "olmo", "gptneox-in-turn", "mpt")


def forward(c, w, n_ctx, f):
    kind, d, clip = c["kind"], f.N_EMBD // f.N_HEAD, c.get("clip_qkv", c.get("attn_config", {}).get("clip_qkv", math.inf))
    eps = 1e-5 if kind == "olmo" else f.EPS
    theta, mag = f.rotation(c, int(d * c.get("partial", 1.0)), n_ctx) if kind != "mpt" else (None, 1.0)
    top = NAMES[kind]

    def norm(x, name):
        return layer_norm(x, w.get(name + ".weight"), w.get(name + ".bias"), eps)

    def dense(x, name):
        return linear(x, w[name + ".weight"], w.get(name + ".bias"))

    x = w[top["embedding"] + ".weight"][f.TOKENS]
    for l in range(f.N_LAYER):
        p = {short: f"{top['layers']}{l}.{name}" for short, name in top.items() if name}
        h = norm(x, p["norm1"])
        g = norm(x, p["ln_attn"]) if "ln_attn" in p else h
        if "qkv" not in p:
            q, k, v = (np.clip(dense(g, p[n]), -clip, clip).reshape(len(x), -1, d) for n in "qkv")
        elif kind.startswith("gptneox"):  # head by head
            q, k, v = dense(g, p["qkv"]).reshape(len(x), f.N_HEAD, 3, d).transpose(2, 0, 1, 3)
        elif kind == "mpt":
            q, k, v = (split_heads(y, f.N_HEAD) for y in np.split(np.clip(dense(g, p["qkv"]), -clip, clip), 3, axis=-1))
        else:  # for each key head its queries, the key, the value
            y = dense(g, p["qkv"]).reshape(len(x), 1 if kind == "falcon" else f.N_KV, -1, d)
            q, k, v = y[:, :, :-2].reshape(len(x), f.N_HEAD, d), y[:, :, -2], y[:, :, -1]
        if kind == "stablelm-12b":
            own = f"{top['layers']}{l}.self_attn."
            q, k = (np.stack([norm(y[:, i], f"{own}{n}_layernorm.norms.{i}") for i in range(y.shape[1])], 1)
                    for y, n in ((q, "q"), (k, "k")))
        if kind == "mpt":
            a = attention(q, k, v, slopes=alibi_slopes(f.N_HEAD))
        else:
            a = attention(rotate(q, theta, True, mag), rotate(k, theta, True, mag), v)
        a = dense(merge_heads(a), p["o"])
        if kind in IN_TURN:
            h = norm(x + a, p["norm2"])
        elif kind == "gptneox":
            h = norm(x, p["norm2"])
        up = dense(h, p["up"])
        x = x + a + dense(silu(dense(h, p["gate"])) * up if "gate" in p else gelu(up), p["down"])
    head = top["head"] if top["head"] + ".weight" in w else top["embedding"]
    return dense(norm(x, top["norm"]), head)


def weights(c, w, f):
    kind, d, top = c["kind"], f.N_EMBD // f.N_HEAD, NAMES[c["kind"]]
    wide = 4 * f.N_EMBD if kind.split("-")[0] in ("falcon", "mpt") else f.N_FF
    matrix_bias = kind in ("phi2", "gptneox", "gptneox-in-turn")
    n_kv = {"falcon": 1, "falcon-40b": f.N_KV, "stablelm-12b": f.N_KV, "phi2": f.N_KV}.get(kind, f.N_HEAD)
    shapes = {"q": (f.N_EMBD, f.N_EMBD), "k": (n_kv * d, f.N_EMBD), "v": (n_kv * d, f.N_EMBD), "o": (f.N_EMBD, f.N_EMBD),
              "qkv": ((f.N_HEAD + 2 * n_kv) * d, f.N_EMBD), "gate": (wide, f.N_EMBD), "up": (wide, f.N_EMBD), "down": (f.N_EMBD, wide)}

    def norm(name):
        if not name.endswith("none"):
            w.vector(name + ".weight", f.N_EMBD, 1.0)
            if kind != "mpt":
                w.vector(name + ".bias", f.N_EMBD)

    w.matrix(top["embedding"] + ".weight", f.N_VOCAB, f.N_EMBD)
    if kind not in ("falcon", "mpt"):
        w.matrix(top["head"] + ".weight", f.N_VOCAB, f.N_EMBD)
    if kind == "phi2":
        w.vector(top["head"] + ".bias", f.N_VOCAB)
    norm(top["norm"])
    for l in range(f.N_LAYER):
        p = f"{top['layers']}{l}."
        for short in ("norm1", "norm2", "ln_attn"):
            if short in top:
                norm(p + top[short])
        for short, shape in shapes.items():
            if top.get(short):
                w.matrix(f"{p}{top[short]}.weight", *shape)
                if matrix_bias or kind == "stablelm" and short in "qkv":
                    w.vector(f"{p}{top[short]}.bias", shape[0])
        for i in range(f.N_HEAD if kind == "stablelm-12b" else 0):
            for n in "qk" if i < n_kv else "q":
                w.vector(f"{p}self_attn.{n}_layernorm.norms.{i}.weight", d, 1.0)


def classes(f):
    """As CLASSES of folders.py; what follows a space is no part of the class's name."""
    size = {"hidden_size": f.N_EMBD, "num_attention_heads": f.N_HEAD, "num_hidden_layers": f.N_LAYER, "vocab_size": f.N_VOCAB}
    llama = {**size, "intermediate_size": f.N_FF, "max_position_embeddings": 128, "theta": 10000.0}
    silu_, some = {"hidden_act": "silu"}, ["default", "linear", "yarn"]
    of = {
        "PhiForCausalLM": ("phi2", {**llama, "hidden_act": "gelu_new", "layer_norm_eps": f.EPS, "num_key_value_heads": f.N_KV, "partial": 0.5,
                                    "qk_layernorm": False}, some),
        "StableLmForCausalLM": ("stablelm", {**llama, **silu_, "layer_norm_eps": f.EPS, "num_key_value_heads": f.N_HEAD, "partial": 0.5,
                                             "use_qkv_bias": True, "qk_layernorm": False, "use_parallel_residual": False}, some),
        "StableLmForCausalLM 12b": ("stablelm-12b", {**llama, **silu_, "layer_norm_eps": f.EPS, "num_key_value_heads": f.N_KV, "partial": 0.5,
                                                     "qk_layernorm": True, "use_parallel_residual": True}, ["default"]),
        "OlmoForCausalLM": ("olmo", {**llama, **silu_, "clip_qkv": 0.8}, some),
        "GPTNeoXForCausalLM": ("gptneox", {**llama, "hidden_act": "gelu", "layer_norm_eps": f.EPS, "use_parallel_residual": True,
                                           "partial": 0.5, "tie_word_embeddings": False}, some),
        "GPTNeoXForCausalLM in turn": ("gptneox-in-turn", {**llama, "hidden_act": "gelu", "layer_norm_eps": f.EPS,
                                                           "use_parallel_residual": False, "partial": 0.5}, ["default"]),
        "FalconForCausalLM": ("falcon", {**size, "theta": 10000.0, "max_position_embeddings": 2048, "layer_norm_epsilon": f.EPS, "alibi": False, "bias": False,
                                         "multi_query": True, "parallel_attn": True, "new_decoder_architecture": False}, some),
        "FalconForCausalLM 40b": ("falcon-40b", {**size, "theta": 10000.0, "max_position_embeddings": 2048, "layer_norm_epsilon": f.EPS, "num_kv_heads": f.N_KV, "bias": False,
                                                 "new_decoder_architecture": True, "tie_word_embeddings": False}, ["default"]),
        "MPTForCausalLM": ("mpt", {"d_model": f.N_EMBD, "n_heads": f.N_HEAD, "n_layers": f.N_LAYER, "vocab_size": f.N_VOCAB, "max_seq_len": 64,
                                   "expansion_ratio": 4, "layer_norm_epsilon": f.EPS,
                                   "attn_config": {"alibi": True, "alibi_bias_max": 8, "clip_qkv": 0.8}}, [None]),
    }
    state_space = {"hidden_size": f.N_EMBD, "num_hidden_layers": f.N_LAYER, "vocab_size": f.N_VOCAB, "state_size": 8, "time_step_rank": 5,
                   "conv_kernel": 4, "intermediate_size": 2 * f.N_EMBD, "expand": 2, "layer_norm_epsilon": f.EPS, "hidden_act": "silu",
                   "use_bias": False, "use_conv_bias": True}
    recurrent = {name: ({"kind": "mamba", **state_space, **more}, lambda c, w, n_ctx: mamba(c, w, n_ctx, f),
                        lambda c, w: mamba_weights(c, w, f), [None])
                 for name, more in (("MambaForCausalLM", {}), ("FalconMambaForCausalLM", {"mixer_rms_eps": f.EPS}))}
    return recurrent | {name: ({"kind": kind, "d": f.N_EMBD // f.N_HEAD, **c}, lambda c, w, n_ctx: forward(c, w, n_ctx, f),
                   lambda c, w: weights(c, w, f), scalings) for name, (kind, c, scalings) in of.items()}


# --- Mamba 1, whose channels are folders.py's N_EMBD, 2 * N_EMBD within a layer


def mamba(c, w, n_ctx, f):
    x = w["backbone.embeddings.weight"][f.TOKENS]
    for l in range(f.N_LAYER):
        p = f"backbone.layers.{l}."
        tensors = {"in": "in_proj.weight", "conv1d": "conv1d.weight", "x": "x_proj.weight", "dt": "dt_proj.weight", "out": "out_proj.weight"}
        own = {f"ssm_{short}.weight": w[p + "mixer." + name] for short, name in tensors.items()}
        own |= {"ssm_conv1d.weight": own["ssm_conv1d.weight"][:, 0], "ssm_conv1d.bias": w[p + "mixer.conv1d.bias"],
                "ssm_dt.bias": w[p + "mixer.dt_proj.bias"], "ssm_a": -np.exp(w[p + "mixer.A_log"]), "ssm_d": w[p + "mixer.D"]}
        h = rms_norm(x, w[p + "norm.weight"], f.EPS)
        x = x + mamba1(lambda name, end=".weight": own.get(name + end), h, c["time_step_rank"], c["state_size"], f.EPS, "mixer_rms_eps" in c)
    return linear(rms_norm(x, w["backbone.norm_f.weight"], f.EPS), w["backbone.embeddings.weight"])


def mamba_weights(c, w, f):
    n, n_in, n_st, n_dt = f.N_EMBD, 2 * f.N_EMBD, c["state_size"], c["time_step_rank"]
    w.matrix("backbone.embeddings.weight", f.N_VOCAB, n)
    w.vector("backbone.norm_f.weight", n, 1.0)
    for l in range(f.N_LAYER):
        p = f"backbone.layers.{l}."
        w.vector(p + "norm.weight", n, 1.0)
        for name, *shape in (("in_proj.weight", 2 * n_in, n), ("conv1d.weight", n_in, 1, 4), ("x_proj.weight", n_dt + 2 * n_st, n_in),
                             ("dt_proj.weight", n_in, n_dt), ("out_proj.weight", n, n_in), ("A_log", n_in, n_st)):
            w.matrix(f"{p}mixer.{name}", *shape)
        for name in ("conv1d.bias", "dt_proj.bias", "D"):
            w.vector(f"{p}mixer.{name}", n_in, 1.0 if name == "D" else 0.0)
