"""Folders of Phi 2, StableLM, Falcon, GPT-NeoX, MPT, OLMo and Mamba: more classes for ./folders.py, which hands itself over as f for its
sizes. NAMES: where a class keeps its tensors; what a name lacks the family lacks."""

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
    recurrent = {name: ({"kind": "mamba", **state_space, **more}, lambda c, w: mamba_weights(c, w, f), [None])
                 for name, more in (("MambaForCausalLM", {}), ("FalconMambaForCausalLM", {"mixer_rms_eps": f.EPS}))}
    return recurrent | {name: ({"kind": kind, "d": f.N_EMBD // f.N_HEAD, **c}, lambda c, w: weights(c, w, f), scalings) for name, (kind, c, scalings) in of.items()}


# --- Mamba 1, whose channels are folders.py's N_EMBD, 2 * N_EMBD within a layer


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
