#!/usr/bin/env python3
"""Converts Hugging Face folders of models that guess for another one.

    folders_drafts.py --cli LLM_CLI --convert LLM_CONVERT --dir FOLDER [NAME ..]

Each folder has random weights and no tokenizer, as published ones. Every key and tensor of the file must be what llama.cpp's converter writes, which
is stated here once more. Then the draft has to guess the same from the folder and from the file, to the last bit, beside the model for which it
guesses, which is a folder or a file; llm-cli writes the same text with it as without. Exit code 0, 1.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

import folders_deepseek4 as v4
import gguf
from folders import Weights, run, write_safetensors

N_VOCAB, N_LAYER, WIDE, MASK = 300, 8, 48, 7  # of the model for which they guess
TOKENS = ",".join(map(str, [31, 170, 29, 5, 111, 238, 7, 7, 201, 1, 33, 140]))


def write_folder(path, config, w):
    os.makedirs(path, exist_ok=True)
    pathlib.Path(path, "config.json").write_text(json.dumps(config))
    write_safetensors(os.path.join(path, "model.safetensors"), w)


def write_tokenizer(path, n=N_VOCAB):
    """Of bytes, which the alphabet of GPT-2's tokenizer stands for, and of tokens that no text has."""
    printable = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    other = [b for b in range(256) if b not in printable]
    pieces = [chr(b) for b in printable] + [chr(256 + i) for i in range(len(other))] + [f"<x{i}>" for i in range(256, n - 2)]
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    ends = [{"id": n - 2 + i, "content": t, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i, t in enumerate(["<s>", "</s>"])]
    file = {"version": "1.0", "added_tokens": ends, "normalizer": None, "pre_tokenizer": step, "post_processor": None, "decoder": step,
            "model": {"type": "BPE", "vocab": {**{t: i for i, t in enumerate(pieces)}, "<s>": n - 2, "</s>": n - 1}, "merges": []}}
    pathlib.Path(path, "tokenizer.json").write_text(json.dumps(file))
    pathlib.Path(path, "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}))


def layer_weights(w, p, wide, n_in, heads, d, n_ff, norms, gated="mlp."):
    for name, n in (("q", heads[0]), ("k", heads[1]), ("v", heads[1])):
        w.matrix(f"{p}self_attn.{name}_proj.weight", n * d, n_in)
    w.matrix(p + "self_attn.o_proj.weight", wide, heads[0] * d)
    for name, shape in (("gate", (n_ff, wide)), ("up", (n_ff, wide)), ("down", (wide, n_ff))):
        w.matrix(f"{p}{gated}{name}_proj.weight", *shape)
    for name in norms:
        w.vector(f"{p}{name}.weight", wide, 1.0)


def llama(path, n=N_VOCAB):
    """The model for which they guess."""
    w = Weights(5)
    w.matrix("model.embed_tokens.weight", n, WIDE)
    w.matrix("lm_head.weight", n, WIDE)
    w.vector("model.norm.weight", WIDE, 1.0)
    for l in range(N_LAYER):
        layer_weights(w, f"model.layers.{l}.", WIDE, WIDE, (4, 2), 12, 56, ("input_layernorm", "post_attention_layernorm"))
    write_folder(path, {"architectures": ["LlamaForCausalLM"], "hidden_size": WIDE, "intermediate_size": 56, "num_attention_heads": 4, "num_key_value_heads": 2,
                        "num_hidden_layers": N_LAYER, "vocab_size": n, "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0}, w)
    write_tokenizer(path, n)


class Draft:
    """config, weights: of the folder. needs: the conversion needs the other model. keys: of the file, without the family's name. tensors: its names, each
    with a name in the folder, or with what is made of it. refused: changes of config.json, and words of the message. of: the model for which it guesses. beside: the folder has that
    model, too, of this family, which is what it is without the other one."""
    needs, of, beside = False, "llama", None
    refused = ()

    def __init__(self, name, family, config, seed, **more):
        self.name, self.family, self.config, self.w = name, family, config, Weights(seed)
        self.__dict__.update(more)


def pairs(x, n):
    return x.reshape(n, 2, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def layer_tensors(w, p, to, names):
    return {f"{to}{theirs}.weight": w[f"{p}{own}.weight"] for own, theirs in names.items()}


LAYER = {"self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
         "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


def some_tokens(w, n, seed):
    """The tokens that a draft scores, as folders have them: each less its index."""
    ids = np.sort(np.random.default_rng(seed).choice(N_VOCAB, n, replace=False)).astype(np.int64)
    w["d2t"] = ids - np.arange(n)
    w["t2d"] = np.isin(np.arange(N_VOCAB), ids).astype(np.float32)
    return ids


# --- EAGLE-3


def eagle3(name, form):
    d, wide, some = 12, 40, 60
    layer = {"hidden_size": wide, "intermediate_size": 52, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1, "vocab_size": N_VOCAB, "head_dim": d,
             "max_position_embeddings": 96, "rms_norm_eps": 1e-5, "hidden_act": "silu", "rope_theta": 5000.0}
    own = {"draft_vocab_size": some, "target_hidden_size": WIDE}
    if form == "speculators":
        config = {"architectures": ["Eagle3Speculator"], **own, "target_hidden_size": None, "eagle_aux_hidden_state_layer_ids": [1, 3, 6], "norm_before_residual": True, "norm_before_fc": True,
                  "transformer_layer_config": {**layer, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "speculators_config": {"algorithm": "eagle3"}, "speculators_model_type": "eagle3",
                  "speculators_version": "0.1"}
    else:
        config = {"architectures": ["LlamaForCausalLM" if form == "llama" else "LlamaForCausalLMEagle3"], **layer, **own, "tie_word_embeddings": False}
    if form in ("sglang", "headless"):
        config |= {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 4], "use_aux_hidden_state": True}, "draft_vocab_size": N_VOCAB, "hidden_size": WIDE}
        wide, some = WIDE, N_VOCAB
    draft = Draft(name, "eagle3", config, len(form), needs=form != "speculators")
    w, p = draft.w, "layers.0." if form == "speculators" else "midlayer."
    layer_weights(w, p, wide, 2 * wide, (4, 2), d, 52, ("input_layernorm", "hidden_norm", "post_attention_layernorm"))
    w.matrix("fc.weight", wide, 3 * WIDE)
    w.vector("norm.weight", wide, 1.0)
    w.matrix("lm_head.weight", some, wide)
    draft.tensors = {**layer_tensors(w, p, "blk.0.", {**LAYER, "hidden_norm": "attn_norm_2"}), "fc.weight": w["fc.weight"], "output_norm.weight": w["norm.weight"], "output.weight": w["lm_head.weight"],
                     "blk.0.attn_q.weight": pairs(w[p + "self_attn.q_proj.weight"], 4), "blk.0.attn_k.weight": pairs(w[p + "self_attn.k_proj.weight"], 2)}
    if form == "headless":  # it scores by the model's lm_head
        w.pop("lm_head.weight"), draft.tensors.pop("output.weight")
    if form not in ("sglang", "headless"):  # which read the model's embeddings, and scores all tokens
        w.matrix("embed_tokens.weight", N_VOCAB, wide)
        draft.tensors |= {"token_embd.weight": w["embed_tokens.weight"], "d2t": some_tokens(w, some, 3)}
    if form == "speculators":
        w.vector("input_norm.weight", 3 * WIDE, 1.0)
        draft.tensors["enc.output_norm.weight"] = w["input_norm.weight"]
    scaling = {"rope.scaling.type": "linear", "rope.scaling.factor": 2.0} if form == "speculators" else {}
    draft.keys = {"target_layers": [1, 3, 6] if form == "speculators" else [2, 4, 5], "target_hidden_size": WIDE, "norm_before_residual": form == "speculators", "norm_before_fc": form == "speculators",
                  "vocab_size": N_VOCAB, "block_count": 1, "context_length": 96, "embedding_length": wide, "feed_forward_length": 52, "attention.head_count": 4, "attention.head_count_kv": 2,
                  "attention.key_length": d, "attention.value_length": d, "attention.layer_norm_rms_epsilon": np.float32(1e-5), "rope.dimension_count": d, "rope.freq_base": 5000.0, **scaling}
    draft.refused = [({"norm_output": True}, "norm_output")] + ([] if form == "speculators" else [
        ({"hidden_act": "gelu"}, 'hidden_act = "gelu"'), ({"num_hidden_layers": 2}, "num_hidden_layers = 2"), ({"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "rope_type"),
        ({"eagle_aux_hidden_state_layer_ids": [1, 2]}, "another number of layers"), ({"draft_vocab_size": 61}, "draft_vocab_size = 61"),
        ({"eagle_config": {"use_aux_hidden_state": False}}, "use_aux_hidden_state = false"), ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [3, 4, 5]}}, "read differently")])
    if form == "headless":
        draft.refused += [({"draft_vocab_size": 60}, "no lm_head of its own")]
    return draft


# --- DFlash, DFlash 2, DSpark


def trunk(w, taken=2, norms=("input_layernorm", "post_attention_layernorm"), n_kv=2, own_values=True):
    """Two layers, and what the file's tensors are made from."""
    w.matrix("fc.weight", WIDE, taken * WIDE)
    w.vector("hidden_norm.weight", WIDE, 1.0)
    w.vector("norm.weight", WIDE, 1.0)
    tensors = {"fc.weight": w["fc.weight"], "enc.output_norm.weight": w["hidden_norm.weight"], "output_norm.weight": w["norm.weight"]}
    for l in range(2):
        p = f"layers.{l}."
        layer_weights(w, p, WIDE, WIDE, (4, n_kv), 12, 52, norms)
        for part in "qk":
            w.vector(f"{p}self_attn.{part}_norm.weight", 12, 1.0)
        if not own_values:
            del w[p + "self_attn.v_proj.weight"]
        names = {k: v for k, v in LAYER.items() if f"{p}{k}.weight" in w} | {f"self_attn.{part}_{end}": f"attn_{part}{to}" for part in "qk" for end, to in (("proj", ""), ("norm", "_norm"))}
        tensors |= layer_tensors(w, p, f"blk.{l}.", names)
    return tensors


def take(draft, names):
    draft.tensors |= {to: draft.w[own] for own, to in names.items()}


def dflash_config(name, **more):
    return {"architectures": [name], "hidden_size": WIDE, "intermediate_size": 52, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": N_VOCAB, "head_dim": 12,
            "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "hidden_act": "silu", "rope_theta": 5000.0, **more}


DFLASH_KEYS = {"vocab_size": N_VOCAB, "block_count": 2, "context_length": 96, "embedding_length": WIDE, "feed_forward_length": 52, "attention.head_count": 4, "attention.head_count_kv": 2,
               "attention.key_length": 12, "attention.value_length": 12, "attention.layer_norm_rms_epsilon": np.float32(1e-6), "rope.dimension_count": 12, "rope.freq_base": 5000.0, "block_size": 5, "target_layers": [2, 5]}


def dflash_draft(name, seed, config, keys, more=(), **how):
    draft = Draft(name, "dflash", config, seed, others={"tokenizer.ggml.mask_token_id": MASK})
    draft.tensors = trunk(draft.w, **how)
    draft.keys = {**DFLASH_KEYS, **keys}
    draft.refused = [({"hidden_size_of_images": 3}, "hidden_size_of_images"), *more]
    return draft


def interleaved(x):
    """Rows of adjacent pairs, of heads of 12, as rows of two halves."""
    return x.reshape(-1, 6, 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def dflash():
    return dflash_draft("dflash", 21, dflash_config("DFlashDraftModel", block_size=5, dflash_config={"mask_token_id": MASK, "target_layer_ids": [1, 4]}, use_sliding_window=True, sliding_window=4,
                        layer_types=["sliding_attention", "full_attention"], max_window_layers=2, num_target_layers=8, rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}),
                        {"attention.sliding_window": 4, "attention.sliding_window_pattern": [True, False], "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32},
                        [({"hidden_act": "relu"}, 'hidden_act = "relu"'), ({"layer_types": None}, "layer_types, which says which layers have the window, is missing"), ({"dflash_config": {"mask_token_id": MASK, "target_layer_ids": [1, 4], "anchors": 2}}, "dflash_config.anchors")])


def dflash2():
    own = {"block_size": 6, "mask_token_id": MASK, "target_layer_ids": [0, 5], "conv_kernel_size": 3, "conv_group_size": 12, "selector_rank": 6, "selector_top_k": 4, "output_multiplier": 0.5,
           "final_logit_softcapping": 4.0, "input_embedding_scale": 1.5, "attention_value_scale": 0.9, "use_swa": True, "swa_window_size": 6}
    keys = {"block_size": 6, "target_layers": [1, 6], "conv_kernel_size": 3, "conv_group_size": 12, "selector_rank": 6, "selector_top_k": 4, "logit_scale": 0.5, "final_logit_softcapping": 4.0, "embedding_scale": 1.5,
            "attention.value_scale": np.float32(0.9), "attention.sliding_window": 6, "attention.sliding_window_pattern": [True, True], "attention.causal": False, "rope.dimension_count": 6}
    draft = dflash_draft("dflash2", 22, dflash_config("DFlash2DraftModel", is_causal=False, rope_is_neox_style=False, partial_rotary_factor=0.5, dflash_config=own), keys)
    for t in list(draft.tensors):
        if ".attn_q" in t or ".attn_k" in t:
            draft.tensors[t] = interleaved(draft.tensors[t])
    for l in range(2):
        for part, to in (("attention", "attn"), ("mlp", "ffn")):
            draft.w.matrix(f"layers.{l}.{part}_conv.base_kernel", 2, 3, WIDE)
            draft.w.matrix(f"layers.{l}.{part}_conv.kernel_projection.weight", 2 * 3 * 4, WIDE)
            take(draft, {f"layers.{l}.{part}_conv.base_kernel": f"blk.{l}.{to}_conv_base", f"layers.{l}.{part}_conv.kernel_projection.weight": f"blk.{l}.{to}_conv_proj.weight"})
    for own, to, shape in (("candidate_selector.predecessor_codebook", "selector_predecessor.weight", (N_VOCAB, 6)), ("candidate_selector.successor_codebook", "selector_successor.weight", (N_VOCAB, 6)),
                           ("candidate_selector.hidden_projection.weight", "selector_hidden.weight", (6, WIDE)), ("embed_tokens.weight", "token_embd.weight", (N_VOCAB, WIDE)), ("lm_head.weight", "output.weight", (N_VOCAB, WIDE))):
        draft.w.matrix(own, *shape)
        take(draft, {own: to})
    return draft


def markov(draft, some=N_VOCAB, conf="confidence_head.proj"):
    draft.w.matrix("markov_head.markov_w1.weight", N_VOCAB, 7)
    draft.w.matrix("markov_head.markov_w2.weight", some, 7)
    take(draft, {f"markov_head.markov_w{i}.weight": f"markov_w{i}.weight" for i in (1, 2)})
    if conf:
        draft.w.matrix(conf + ".weight", 1, WIDE + 7)
        draft.w.vector(conf + ".bias", 1)
        take(draft, {f"{conf}.{end}": f"conf_proj.{end}" for end in ("weight", "bias")})


def dspark():
    config = dflash_config("Qwen3DSparkModel", target_layer_ids=[1, 4], mask_token_id=MASK, block_size=5, markov_rank=7, markov_head_type="vanilla")
    draft = dflash_draft("dspark", 23, config, {"sample_from_anchor": True, "has_confidence_head": True}, [({"markov_head_type": "gated"}, 'markov_head_type = "gated"')])
    markov(draft)
    for l in range(2):
        draft.w.vector(f"layers.{l}.self_attn.sinks", 4)
        take(draft, {f"layers.{l}.self_attn.sinks": f"blk.{l}.attn_sinks.weight"})
    draft.w.matrix("embed_tokens.weight", N_VOCAB, WIDE)
    draft.w.matrix("lm_head.weight", N_VOCAB, WIDE)  # the model's own scores are used
    take(draft, {"embed_tokens.weight": "token_embd.weight"})
    return draft


def dspark_speculators():
    layer = dflash_config("-", rope_theta=900.0, rope_scaling={"rope_type": "linear", "factor": 2.0})
    del layer["architectures"]
    config = {"architectures": ["DSparkSpeculator"], "aux_hidden_state_layer_ids": [2, 5], "mask_token_id": MASK, "block_size": 5, "draft_vocab_size": 60, "has_embed_tokens": False, "speculators_config": {"algorithm": "dspark"},
              "transformer_layer_config": layer}
    draft = dflash_draft("dspark-speculators", 24, config, {"sample_from_anchor": False, "has_confidence_head": False, "rope.freq_base": 900.0, "rope.scaling.type": "linear", "rope.scaling.factor": 2.0})
    markov(draft, 60, None)
    draft.w.matrix("embed_tokens.weight", N_VOCAB, WIDE)
    draft.w.matrix("lm_head.weight", 60, WIDE)
    draft.tensors |= {"output.weight": draft.w["lm_head.weight"], "d2t": some_tokens(draft.w, 60, 4)}
    renamed = {("" if k in ("d2t", "t2d") else "model.") + k: draft.w.pop(k) for k in list(draft.w)}
    draft.w.update(renamed)
    return draft


def gemma4_dspark():
    config = dflash_config("Gemma4DSparkModel", hidden_activation="gelu_pytorch_tanh", head_dim=8, global_head_dim=12, num_global_key_value_heads=1, attention_k_eq_v=True, layer_types=["full_attention"] * 2,
                           rope_parameters={"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 1000000.0}}, target_layer_ids=[1, 4], mask_token_id=MASK, block_size=5,
                           sliding_window=512, tie_word_embeddings=False)
    for name in ("hidden_act", "rope_theta"):
        del config[name]
    keys = {"attention.head_count_kv": 1, "attention.scale": 1.0, "hidden_activation": "gelu_pytorch_tanh", "embedding_scale": np.float32(math.sqrt(WIDE)), "rope.freq_base": 1000000.0, "sample_from_anchor": True, "has_confidence_head": True}
    refused = [({"attention_k_eq_v": False}, "attention_k_eq_v = false"), ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
               ({"rope_parameters": {"full_attention": {"rope_type": "default", "partial_rotary_factor": 0.5, "rope_theta": 1000000.0}}}, "rope_type is not proportional"), ({"final_logit_softcapping": 30.0}, "final_logit_softcapping = 30"),
               ({"enable_moe_block": True}, "enable_moe_block = true"), ({"hidden_activation": "silu"}, 'hidden_activation = "silu"'), ({"draft_vocab_size": 60}, "draft_vocab_size = 60")]
    draft = dflash_draft("gemma4-dspark", 25, config, keys, refused, norms=("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"), n_kv=1, own_values=False)
    markov(draft, conf="confidence_proj")
    for l in range(2):
        draft.w.vector(f"layers.{l}.layer_scalar", 1, 1.0)
        p, b = f"layers.{l}.", f"blk.{l}."
        take(draft, {p + "layer_scalar": b + "layer_output_scale.weight", p + "post_attention_layernorm.weight": b + "post_attention_norm.weight", p + "pre_feedforward_layernorm.weight": b + "ffn_norm.weight",
                     p + "post_feedforward_layernorm.weight": b + "post_ffw_norm.weight"})
    for own, to in (("embed_tokens.weight", "token_embd.weight"), ("lm_head.weight", "output.weight")):
        draft.w.matrix(own, N_VOCAB, WIDE)
        take(draft, {own: to})
    draft.tensors["rope_freqs.weight"] = np.array([1] * 3 + [1e30] * 3)
    return draft


def muse_glimmer():
    config = dflash_config("MuseGlimmerAssistantModel", sliding_window=6, layer_types=["sliding_attention"] * 2, block_size=4, mask_token_id=MASK, target_layer_ids=[1, 4])
    del config["vocab_size"]
    draft = dflash_draft("muse-glimmer", 26, config, {"block_size": 4, "attention.sliding_window": 6, "attention.sliding_window_pattern": [True, True]})
    draft.needs = True
    for old, new in (("fc", "encoder.fc"), ("hidden_norm", "encoder.output_norm_enc")):
        draft.w[new + ".weight"] = draft.w.pop(old + ".weight")
    return draft


# --- the assistant of Gemma 4

GEMMA4 = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "vocab_size": N_VOCAB, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh", "attention_k_eq_v": True,
          "sliding_window": 5, "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0, "rope_parameters": {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1000000.0},
                                                                                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}
GEMMA4_NORMS = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")


def gemma4_weights(w, wide, n_ff, kinds, shared):
    """kinds: of each layer, whether it has a window; the others have one head of keys of 16, which are the values, too. shared: queries only."""
    w.matrix("model.embed_tokens.weight", N_VOCAB, wide)
    w.vector("model.norm.weight", wide, 1.0)
    for l, near in enumerate(kinds):
        p, d = f"model.layers.{l}.", 8 if near else 16
        layer_weights(w, p, wide, wide, (4, 2 if near else 1), d, n_ff, GEMMA4_NORMS)
        for part in "qk":
            w.vector(f"{p}self_attn.{part}_norm.weight", d, 1.0)
        w.vector(p + "layer_scalar", 1, 1.0)
        for name in ("k_proj", "v_proj", "k_norm") if shared else () if near else ("v_proj",):
            del w[f"{p}self_attn.{name}.weight"]


def gemma4(path):
    w, kinds = Weights(6), [True, False, True, False]
    gemma4_weights(w, WIDE, 56, kinds, False)
    write_folder(path, {"architectures": ["Gemma4ForCausalLM"], **GEMMA4, "hidden_size": WIDE, "intermediate_size": 56, "num_hidden_layers": 4, "global_head_dim": 16, "num_global_key_value_heads": 1,
                        "layer_types": ["sliding_attention" if near else "full_attention" for near in kinds]}, w)
    write_tokenizer(path)


def gemma4_assistant(name, form):
    wide, kinds = 32, [True, True, True, False]
    own = {**GEMMA4, "hidden_size": wide, "intermediate_size": 40, "num_hidden_layers": 4, "num_kv_shared_layers": 4, "layer_types": ["sliding_attention"] * 3 + ["full_attention"], "final_logit_softcapping": None,
           "enable_moe_block": False, "use_double_wide_mlp": False}
    own |= {"per_layer_config": {"3": {"head_dim": 16, "num_key_value_heads": 1}}} if form == "new" else {"global_head_dim": 16, "num_global_key_value_heads": 1}
    config = {"architectures": ["Gemma4AssistantForCausalLM" if form == "new" else "Gemma4UnifiedAssistantForCausalLM"], "text_config": own, "backbone_hidden_size": WIDE, "use_ordered_embeddings": form == "new",
              "num_centroids": 10, "centroid_intermediate_top_k": 4, "tie_word_embeddings": True}
    draft = Draft(name, "gemma4-assistant", config, 31, of="gemma4")
    w = draft.w
    gemma4_weights(w, wide, 40, kinds, True)
    w.matrix("pre_projection.weight", wide, 2 * WIDE)
    w.matrix("post_projection.weight", WIDE, wide)
    draft.tensors = {}
    take(draft, {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight", "pre_projection.weight": "nextn.pre_projection.weight", "post_projection.weight": "nextn.post_projection.weight"})
    names = {"self_attn.q_proj": "attn_q", "self_attn.q_norm": "attn_q_norm", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm"}
    for l in range(4):
        draft.tensors |= layer_tensors(w, f"model.layers.{l}.", f"blk.{l}.", names)
        take(draft, {f"model.layers.{l}.layer_scalar": f"blk.{l}.layer_output_scale.weight"})
    draft.tensors["rope_freqs.weight"] = np.array([1.0] * 2 + [1e30] * 6)
    if form == "new":  # the scores of some tokens only, which are not used
        w.matrix("masked_embedding.centroids.weight", 10, wide)
        w["masked_embedding.token_ordering"] = np.arange(N_VOCAB)
    draft.keys = {"vocab_size": N_VOCAB, "block_count": 4, "context_length": 128, "embedding_length": wide, "embedding_length_out": WIDE, "embedding_length_per_layer_input": 0, "nextn_predict_layers": 4,
                  "feed_forward_length": 40, "attention.head_count": 4, "attention.head_count_kv": [2, 2, 2, 1], "attention.sliding_window": 5, "attention.sliding_window_pattern": kinds, "attention.key_length": 16,
                  "attention.value_length": 16, "attention.key_length_swa": 8, "attention.value_length_swa": 8, "attention.layer_norm_rms_epsilon": np.float32(1e-6), "attention.shared_kv_layers": 4,
                  "rope.freq_base": 1000000.0, "rope.freq_base_swa": 10000.0, "rope.dimension_count": 16, "rope.dimension_count_swa": 8}
    draft.refused = [({"text_config": {**own, change: value}}, words) for change, value, words in (
        ("hidden_activation", "silu", "hidden_activation"), ("num_kv_shared_layers", 2, "num_kv_shared_layers = 2"), ("enable_moe_block", True, "enable_moe_block = true"), ("final_logit_softcapping", 30.0, "softly capped"),
        ("rope_parameters", {**GEMMA4["rope_parameters"], "full_attention": {**GEMMA4["rope_parameters"]["full_attention"], "rope_type": "default"}}, "rope_type is not proportional"),
        ("hidden_size_per_layer_input", 8, "hidden_size_per_layer_input = 8"), ("use_bidirectional_attention", "all", "attention to later tokens"))]
    return draft


# --- DSpark of DeepSeek V4, whose layers are beside the model's in one folder

V4_CONFIG = {"architectures": ["DeepseekV4ForCausalLM"], **{k: v for k, v in v4.CONFIG.items() if k != "theta"}, "vocab_size": N_VOCAB, "rope_theta": 300.0, "dspark_target_layer_ids": [0, 2], "dspark_noise_token_id": MASK,
             "dspark_markov_rank": 7, "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 32, "beta_slow": 1}}


def deepseek4_weights(seed):
    w, v4.N_VOCAB = Weights(seed), N_VOCAB
    v4.weights(v4.CONFIG, w)
    del w["mtp.0.attn_norm.weight"]
    return w


def deepseek4(path):
    write_folder(path, V4_CONFIG, deepseek4_weights(7))
    write_tokenizer(path)


def dspark_deepseek4():
    draft, wide, n_hc = Draft("dspark-deepseek4", "dflash", V4_CONFIG, 0, of="deepseek4", others={"tokenizer.ggml.mask_token_id": MASK}, beside="deepseek4"), v4.WIDE, v4.N_HC
    w = draft.w = deepseek4_weights(7)
    names = {"attn.wq_a.weight": "attn_q_a", "attn.wq_b.weight": "attn_q_b", "attn.wkv.weight": "attn_kv", "attn.wo_a.weight": "attn_output_a", "attn.wo_b.weight": "attn_output_b", "attn.q_norm.weight": "attn_q_a_norm",
             "attn.kv_norm.weight": "attn_kv_a_norm", "attn.attn_sink": "attn_sinks", "attn_norm.weight": "attn_norm", "ffn_norm.weight": "ffn_norm", "ffn.gate.weight": "ffn_gate_inp",
             "ffn.shared_experts.w1.weight": "ffn_gate_shexp", "ffn.shared_experts.w2.weight": "ffn_down_shexp", "ffn.shared_experts.w3.weight": "ffn_up_shexp",
             **{f"hc_{part}_{end}": f"hc_{part}_{end}" for part in ("attn", "ffn") for end in ("fn", "base", "scale")}}
    draft.tensors = {}
    for l in range(2):
        for t in [t for t in w if t.startswith("layers.0.") and "tid2eid" not in t]:  # of a layer without summaries
            to = t.replace("layers.0.", f"mtp.{l}.")
            w[to] = np.float32(w[t].mean() + w[t].std() * w.random.normal(size=w[t].shape)).astype(np.float64)
        w.vector(f"mtp.{l}.ffn.gate.bias", v4.N_EXPERT)
        w.vector(f"mtp.{l}.ffn.gate.bias_vl", v4.N_EXPERT)  # of pictures, which a draft guesses nothing of
        take(draft, {f"mtp.{l}.{own}": f"blk.{l}.{to}.weight" for own, to in names.items()} | {f"mtp.{l}.ffn.gate.bias": f"blk.{l}.exp_probs_b.bias"})
        for own, to in (("w1", "gate"), ("w2", "down"), ("w3", "up")):
            draft.tensors[f"blk.{l}.ffn_{to}_exps.weight"] = np.stack([w[f"mtp.{l}.ffn.experts.{e}.{own}.weight"] for e in range(v4.N_EXPERT)])
    w.matrix("mtp.0.main_proj.weight", wide, 2 * wide)
    w.vector("mtp.0.main_norm.weight", wide, 1.0)
    w.vector("mtp.1.norm.weight", wide, 1.0)
    v4.mixing(w, "mtp.1.hc_head_", n_hc, 1)
    for i in (1, 2):
        w.matrix(f"mtp.1.markov_head.markov_w{i}.weight", N_VOCAB, 7)
    w.matrix("mtp.1.confidence_head.proj.weight", 1, wide + 7)
    take(draft, {"mtp.0.main_proj.weight": "fc.weight", "mtp.0.main_norm.weight": "enc.output_norm.weight", "mtp.1.norm.weight": "output_norm.weight", "mtp.1.confidence_head.proj.weight": "conf_proj.weight",
                 **{f"mtp.1.hc_head_{end}": f"output_hc_{end}.weight" for end in ("fn", "base", "scale")}, **{f"mtp.1.markov_head.markov_w{i}.weight": f"markov_w{i}.weight" for i in (1, 2)}})
    draft.keys = {"vocab_size": N_VOCAB, "block_count": 2, "context_length": 128, "embedding_length": wide, "attention.head_count": 4, "attention.head_count_kv": 1, "attention.key_length": v4.D, "attention.value_length": v4.D,
                  "attention.q_lora_rank": v4.R_Q, "attention.output_lora_rank": v4.R_O, "attention.output_group_count": v4.N_GROUP, "attention.sliding_window": 5, "attention.compress_ratios": [0, 0],
                  "attention.compress_rope_freq_base": 900.0, "attention.indexer.head_count": v4.N_INDEX, "attention.indexer.key_length": v4.D_INDEX, "attention.indexer.top_k": 2,
                  "attention.layer_norm_rms_epsilon": np.float32(v4.EPS), "rope.dimension_count": v4.ROT, "rope.freq_base": 300.0, "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32,
                  "rope.scaling.yarn_beta_fast": 32.0, "rope.scaling.yarn_beta_slow": 1.0, "expert_count": v4.N_EXPERT, "expert_used_count": v4.N_USED, "expert_shared_count": 1, "expert_feed_forward_length": v4.N_EACH,
                  "expert_weights_scale": 1.5, "expert_weights_norm": True, "expert_gating_func": 4, "hash_layer_count": 0, "swiglu_clamp_exp": [np.float32(0.9)] * 2, "swiglu_clamp_shexp": [np.float32(0.9)] * 2,
                  "hyper_connection.count": n_hc, "hyper_connection.sinkhorn_iterations": 20, "hyper_connection.epsilon": np.float32(1e-3), "target_layers": [1, 3], "block_size": 5}
    draft.refused = [({"scoring_func": "sigmoid"}, 'scoring_func = "sigmoid"'), ({"hidden_act": "gelu"}, 'hidden_act = "gelu"'), ({"dspark_heads": 2}, "dspark_heads")]
    return draft


DRAFTS = [eagle3("eagle3", "angel"), eagle3("eagle3-speculators", "speculators"), eagle3("eagle3-llama", "llama"), eagle3("eagle3-sglang", "sglang"), eagle3("eagle3-headless", "headless"),
          dflash(), dflash2(), dspark(), dspark_speculators(), gemma4_dspark(), muse_glimmer(),
          gemma4_assistant("gemma4-assistant", "new"), gemma4_assistant("gemma4-unified", "old"), dspark_deepseek4()]
MODELS = {"llama": llama, "gemma4": gemma4, "deepseek4": deepseek4}


# --- checks


def guesses(a, model, out):
    run(os.environ["TEST_OUTPUTS"], "-m", model, "--target", a.target, "--tokens", TOKENS, "--output", "guess", "--logits", out)
    return np.load(out).view(np.uint32)


def text(a, *more):
    done = subprocess.run([a.cli, "-m", a.target, "-p", "the fox", "-n", "24", "--temp", "0", "--ignore-eos", "-t", "1", *more], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace")
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout, [line.split()[:4] for line in done.stderr.splitlines() if line.startswith("guesses")]


def refused(a, folder, config, words, *more):
    pathlib.Path(folder, "config.json").write_text(json.dumps(config))
    done = subprocess.run([a.convert, folder, "-o", folder + ".gguf", *more], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return [] if done.returncode == 1 and words in done.stderr else [f"not refused with '{words}': {done.stderr.strip()[-300:]}"]


def same(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (isinstance(b, (float, np.float32)) and np.float32(a) == np.float32(b))


def compare(draft, keys, tensors):
    begin, faults = draft.family + ".", []
    own = {k[len(begin):]: v for k, v in keys.items() if k.startswith(begin)}
    own |= {k: v for k, v in keys.items() if k in getattr(draft, "others", {})}
    want = {**draft.keys, **getattr(draft, "others", {})}
    for k in sorted(set(own) | set(want)):
        if k not in own or k not in want or not same(own[k], want[k]):
            faults.append(f"key {k} is {own.get(k)!r}, not {want.get(k)!r}")
    for t in sorted(set(tensors) | set(draft.tensors)):
        x, y = tensors.get(t), draft.tensors.get(t)
        if x is None or y is None or x.shape != y.shape or not np.array_equal(x, np.float32(y)):
            faults.append(f"tensor {t} is {'missing' if x is None else x.shape}, not {'expected' if y is None else 'that of the folder'}")
    return faults


def check(a, draft):
    a.folder, a.target = a.models[draft.of]
    folder = os.path.join(a.dir, "draft-" + draft.name)
    file, out = folder + ".gguf", folder + ".npy"
    write_folder(folder, draft.config, draft.w)
    faults = []
    if draft.needs:
        faults += refused(a, folder, draft.config, "--target MODEL")
    for change, words in draft.refused:
        faults += refused(a, folder, {**draft.config, **change}, words, "--target", a.target)
    pathlib.Path(folder, "config.json").write_text(json.dumps(draft.config))
    for target in (a.target, a.folder):
        run(a.convert, folder, "--target", target, "-o", file, "--type", "f32")
        keys, tensors = gguf.read(file)
        faults += compare(draft, keys, tensors)
        lent = [k for k, v in gguf.read(a.target)[0].items() if k.startswith("tokenizer.") and k not in getattr(draft, "others", {}) and keys.get(k) != v]
        if lent:
            faults.append(f"{lent} are not the model's")
    by_file = guesses(a, file, out)
    if draft.name == "eagle3-headless":  # as with the model's own as its own
        write_folder(folder, draft.config, {**draft.w, "lm_head.weight": gguf.read(a.target)[1]["output.weight"]})
        if not np.array_equal(by_file, guesses(a, folder, out)):
            faults.append("it scores otherwise than by the model's lm_head")
        os.unlink(folder + "/model.safetensors")
        write_folder(folder, draft.config, draft.w)
    if not np.array_equal(by_file, guesses(a, folder, out)):
        faults.append("the folder guesses otherwise than its file")
    if draft.beside:
        run(a.convert, folder, "-o", file, "--type", "f32")
        if gguf.read(file)[0]["general.architecture"] != draft.beside:
            faults.append("without --target, the folder is not the model")
        run(a.convert, folder, "--target", folder, "-o", file, "--type", "f32", "--no-tokenizer")
    elif not draft.needs:  # else which layers it reads is not known
        run(a.convert, folder, "-o", file, "--type", "f32")
    if draft.beside or not draft.needs:
        if not np.array_equal(by_file, guesses(a, file, out)) or not text(a, "--draft", file, "--draft-p-min", "0")[1]:
            faults.append("a file without a tokenizer guesses otherwise")
    plain, with_file, with_folder = text(a), text(a, "--draft", file, "--draft-p-min", "0", "--guess-always"), text(a, "--draft", folder, "--draft-p-min", "0", "--guess-always")
    if with_folder != with_file or with_file[0] != plain[0] or not with_file[1]:
        faults.append(f"another text: {plain}, {with_file}, {with_folder}")
    print(f"{draft.name:24} {'; '.join(faults) or 'ok'}")
    shutil.rmtree(folder)
    for path in (file, out):
        os.unlink(path)
    return not faults


def check_others(a):
    """Models for which a draft is not, and folders that are none."""
    a.folder, a.target = a.models["llama"]
    faults, folder, other = [], os.path.join(a.dir, "draft-other"), os.path.join(a.dir, "draft-model")
    draft = DRAFTS[0]
    write_folder(folder, draft.config, draft.w)
    llama(other, N_VOCAB - 2)
    faults += refused(a, folder, draft.config, "it guesses for a model of 300 tokens, and ", "--target", other)
    run(a.convert, other, "-o", folder + ".gguf")
    done = subprocess.run([a.cli, "-m", folder + ".gguf", "--draft", folder, "-p", "x", "-n", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 1 or "--draft: " + folder + ": it guesses for a model of 300 tokens, and " not in done.stderr:
        faults.append(f"a folder for another model: {done.stderr}")
    config = json.loads(pathlib.Path(folder, "config.json").read_text())
    write_folder(folder, {**config, "target_hidden_size": 40}, {**draft.w, "fc.weight": draft.w["fc.weight"][:, :120]})
    done = subprocess.run([a.cli, "-m", a.target, "--draft", folder, "-p", "x", "-n", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 1 or f"--draft {folder}: the draft reads rows of 120 numbers, and the model's have 144: it is for another model" not in done.stderr:
        faults.append(f"a folder for a narrower model: {done.stderr}")
    write_folder(folder, draft.config, draft.w)
    os.unlink(folder + ".gguf")
    w = dict(draft.w)
    w["d2t"] = np.concatenate([[-1], draft.w["d2t"][1:]])
    write_folder(folder, draft.config, w)
    faults += refused(a, folder, draft.config, "tensor d2t: element 0 stands for the number -1", "--target", a.target)
    w["d2t"] = np.concatenate([draft.w["d2t"][:-1], [N_VOCAB - len(w["d2t"]) + 1]])
    write_folder(folder, draft.config, w)
    faults += refused(a, folder, draft.config, f"tensor d2t: element {len(w['d2t']) - 1} stands for the token {N_VOCAB}, but there are {N_VOCAB}", "--target", a.target)
    write_folder(folder, draft.config, draft.w)
    keys, tensors = gguf.read(a.target)
    for key, x, words in (("bos_token_id", 999, " is 999, but there are 300 tokens"), ("token_type", [1, 1], ""), ("model", "mine", "")):
        empty = {k: gguf.Typed(gguf.ARRAY, v, gguf.STRING) for k, v in keys.items() if v == []}
        gguf.write(folder + ".target", {**keys, **empty, "tokenizer.ggml." + key: x}, tensors)
        faults += refused(a, folder, draft.config, f"{folder}.target: tokenizer.ggml.{key}{words}", "--target", folder + ".target")
    os.unlink(folder + ".target")
    for name in ("eagle3", "gemma4-assistant"):  # they would make a file that is refused beside each model
        one = next(d for d in DRAFTS if d.name == name)
        write_folder(folder, one.config, {k: x for k, x in one.w.items() if "embed_tokens" not in k})
        faults += refused(a, folder, one.config, "no embeddings of its own", "--target", a.models[one.of][1])
    write_folder(folder, draft.config, draft.w)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        os.unlink(os.path.join(other, name))
    faults += refused(a, folder, draft.config, "has a tokenizer", "--target", other)
    done = subprocess.run([a.convert, a.folder, "-o", folder + ".gguf", "--target", a.target], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 1 or "--target is for models that guess for another one" not in done.stderr:
        faults.append(f"--target of a model that is no draft: {done.stderr}")
    gguf.write(folder + ".target", {"general.name": "none"}, {})
    faults += refused(a, folder, draft.config, "the key general.architecture is missing", "--target", folder + ".target")
    os.unlink(folder + ".target")
    pathlib.Path(folder, "mask_embedding.pt").write_text("")
    faults += refused(a, folder, dflash().config, "mask_embedding.pt", "--target", a.target)
    shutil.rmtree(folder)
    shutil.rmtree(other)
    print(f"{'others':24} {'; '.join(faults) or 'ok'}")
    return not faults


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--convert")
    p.add_argument("--dir", default=".")
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    os.makedirs(a.dir, exist_ok=True)
    a.models = {}
    for name, write in MODELS.items():
        folder = os.path.join(a.dir, "draft-for-" + name)
        a.models[name] = folder, folder + ".gguf"
        write(folder)
        run(a.convert, folder, "-o", folder + ".gguf", "--type", "f32")
    failed = 0
    for draft in DRAFTS:
        try:
            failed += bool(not a.names or draft.name in a.names) and not check(a, draft)
        except RuntimeError as e:
            failed += 1
            print(f"{draft.name:24} FAILED: {e}")
    failed += not check_others(a)
    for folder, file in a.models.values():
        shutil.rmtree(folder)
        os.unlink(file)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
