"""Folders of OPT, Galactica, GPT-Neo and CodeGen, for ./folders.py: config.json and tensors as published, after modeling_opt.py, modeling_gpt_neo.py and modeling_codegen.py of transformers, and Salesforce's own for CodeGen 2."""
from folders import *

N_POS, OPT_EPS = 32, 1e-5  # torch's epsilon


def put(w, name, n, m, bias):
    w.matrix(name + ".weight", n, m)
    if bias:
        w.vector(name + ".bias", n)


def put_norms(w, *names):
    for name in names:
        w.vector(name + ".weight", N_EMBD, 1.0)
        w.vector(name + ".bias", N_EMBD)


# --- OPT


def opt_weights(c, w):
    decoder, wide, bias = "model.decoder.", c["word_embed_proj_dim"], c["enable_bias"]
    w.matrix(decoder + "embed_tokens.weight", N_VOCAB, wide)
    w.matrix(decoder + "embed_positions.weight", N_POS + 2, N_EMBD)
    if wide != N_EMBD:
        put(w, decoder + "project_in", N_EMBD, wide, False)
        put(w, decoder + "project_out", wide, N_EMBD, False)
    norms = [decoder + "final_layer_norm"] if c["do_layer_norm_before"] and not c["_remove_final_layer_norm"] else []
    for l in range(N_LAYER):
        p = f"{decoder}layers.{l}."
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            put(w, f"{p}self_attn.{name}", N_EMBD, N_EMBD, bias)
        put(w, p + "fc1", N_FF, N_EMBD, bias)
        put(w, p + "fc2", N_EMBD, N_FF, bias)
        norms += [p + "self_attn_layer_norm", p + "final_layer_norm"]
    if c["layer_norm_elementwise_affine"]:
        put_norms(w, *norms)


def of_the_model(w):
    """The names of a saved OPTModel, as in the first files of the hub."""
    return {name[len("model."):]: x for name, x in w.items()}


def opt_config(**more):
    return {"kind": "opt", "hidden_size": N_EMBD, "word_embed_proj_dim": N_EMBD, "ffn_dim": N_FF, "num_attention_heads": N_HEAD,
            "num_hidden_layers": N_LAYER, "vocab_size": N_VOCAB, "max_position_embeddings": N_POS, "activation_function": "relu",
            "activation_dropout": 0.0, "attention_dropout": 0.0, "dropout": 0.1, "layerdrop": 0.0, "init_std": 0.02, "use_cache": True,
            "bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 1, "prefix": "</s>", "model_type": "opt", "torch_dtype": "float16",
            "do_layer_norm_before": True, "_remove_final_layer_norm": False, "enable_bias": True, "layer_norm_elementwise_affine": True, **more}


# --- GPT-Neo


def gpt_neo_weights(c, w):
    n_ff = c["intermediate_size"] or 4 * N_EMBD
    w.matrix("transformer.wte.weight", N_VOCAB, N_EMBD)
    w.matrix("transformer.wpe.weight", N_POS, N_EMBD)
    put_norms(w, "transformer.ln_f")
    for l in range(N_LAYER):
        p = f"transformer.h.{l}."
        put_norms(w, p + "ln_1", p + "ln_2")
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            put(w, f"{p}attn.attention.{name}", N_EMBD, N_EMBD, name == "out_proj")
        put(w, p + "mlp.c_fc", n_ff, N_EMBD, True)
        put(w, p + "mlp.c_proj", N_EMBD, n_ff, True)


def with_masks(w):
    """The buffers that older versions saved."""
    out = {**w, "lm_head.weight": w["transformer.wte.weight"]}
    for l in range(N_LAYER):
        out[f"transformer.h.{l}.attn.attention.bias"] = np.tril(np.ones((1, 1, N_POS, N_POS)))
        out[f"transformer.h.{l}.attn.attention.masked_bias"] = np.array([-1e9])
    return out


def gpt_neo_config(types, **more):
    layers = [kind for part, times in types for _ in range(times) for kind in part]
    return {"kind": "gptneo", "hidden_size": N_EMBD, "num_heads": N_HEAD, "num_layers": N_LAYER, "vocab_size": N_VOCAB,
            "max_position_embeddings": N_POS, "window_size": 5, "intermediate_size": None, "attention_types": types, "attention_layers": layers,
            "activation_function": "gelu_new", "layer_norm_epsilon": EPS, "model_type": "gpt_neo", "tokenizer_class": "GPT2Tokenizer",
            "attention_dropout": 0, "embed_dropout": 0, "resid_dropout": 0, "gradient_checkpointing": False, "initializer_range": 0.02,
            "summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
            "summary_use_proj": True, "bos_token_id": 50256, "eos_token_id": 50256, "use_cache": True, **more}


# --- CodeGen


def codegen_weights(c, w):
    n_ff = c["n_inner"] or 4 * N_EMBD
    w.matrix("transformer.wte.weight", N_VOCAB, N_EMBD)
    put(w, "lm_head", N_VOCAB, N_EMBD, True)
    put_norms(w, "transformer.ln_f")
    for l in range(N_LAYER):
        p = f"transformer.h.{l}."
        put_norms(w, p + "ln_1")
        put(w, p + "attn.qkv_proj", 3 * N_EMBD, N_EMBD, False)
        put(w, p + "attn.out_proj", N_EMBD, N_EMBD, False)
        put(w, p + "mlp.fc_in", n_ff, N_EMBD, True)
        put(w, p + "mlp.fc_out", N_EMBD, n_ff, True)


def with_causal_masks(w):
    return {**w, **{f"transformer.h.{l}.attn.causal_mask": np.tril(np.ones((1, 1, N_POS, N_POS))) for l in range(N_LAYER)}}


def codegen_config(**more):
    return {"kind": "codegen", "n_embd": N_EMBD, "n_head": 8, "n_layer": N_LAYER, "n_inner": None, "n_positions": N_POS, "n_ctx": N_POS,
            "rotary_dim": 4, "vocab_size": N_VOCAB, "activation_function": "gelu_new", "layer_norm_epsilon": EPS, "scale_attn_weights": True,
            "tie_word_embeddings": False, "model_type": "codegen", "tokenizer_class": "GPT2Tokenizer", "attn_pdrop": 0.0, "embd_pdrop": 0.0,
            "resid_pdrop": 0.0, "gradient_checkpointing": False, "initializer_range": 0.02, "summary_type": "cls_index", "use_cache": True,
            "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50, "temperature": 1.0}},
            "bos_token_id": 1, "eos_token_id": 50256, "layout": with_causal_masks, **more}


CLASSES = {
    "OPTForCausalLM": (opt_config(), opt_weights, [None]),
    "OPTForCausalLM 350m": (opt_config(word_embed_proj_dim=20, do_layer_norm_before=False, layout=of_the_model), opt_weights, [None]),
    "OPTForCausalLM old": (opt_config(_remove_final_layer_norm=True, tie_word_embeddings=True), opt_weights, [None]),
    "OPTForCausalLM Galactica": (opt_config(activation_function="gelu", enable_bias=False, layer_norm_elementwise_affine=False, bos_token_id=0,
                                            learned_embeddings=True, scale_embeddings=False), opt_weights, [None]),
    "GPTNeoForCausalLM": (gpt_neo_config([[["local", "global"], 1], [["local"], 1]], layout=with_masks), gpt_neo_weights, [None]),
    "GPTNeoForCausalLM far": (gpt_neo_config([[["global"], 3]], intermediate_size=N_FF), gpt_neo_weights, [None]),
    "CodeGenForCausalLM": (codegen_config(), codegen_weights, [None]),
    "CodeGenForCausalLM 2": (codegen_config(head_dim=6, n_inner=N_FF), codegen_weights, [None]),
}
