#!/usr/bin/env python3
"""Converts Hugging Face folders with layers that guess ahead.

    folders_ahead.py --dir FOLDER --convert LLM_CONVERT

In each folder, such a layer has the weights of one of the model's layers, under the names that published folders have. So in the GGUF file
its tensors must be that layer's, to the last bit, and the others those of the folder. Then the layer has to guess, from the file and from the
folder. Exit code 0, 1.
"""
import argparse
import json
import os
import shutil
import sys

import numpy as np

import folders
import folders_deepseek4
import folders_experts
import folders_indexed
import folders_more
import gguf
from folders import N_EMBD, N_LAYER, N_VOCAB, TOKENS, Weights, run, write_rotation, write_safetensors

BEHIND = {"eh_proj": ("eh_proj", 0), "enorm": ("enorm", 0), "hnorm": ("hnorm", 0), "shared_head.norm": ("shared_head_norm", 0),
          "shared_head.head": ("shared_head_head", 0), "embed_tokens": ("embed_tokens", 0)}
APART = {"fc": ("eh_proj", 0), "pre_fc_norm_embedding": ("enorm", 1), "pre_fc_norm_hidden": ("hnorm", 1), "norm": ("shared_head_norm", 1)}
ERNIE = {"mtp_linear_proj.0": ("eh_proj", 0), "mtp_emb_norm.0": ("enorm", 0), "mtp_hidden_norm.0": ("hnorm", 0)}
MIMO = {"eh_proj": ("eh_proj", 0), "enorm": ("enorm", 0), "hnorm": ("hnorm", 0), "final_layernorm": ("shared_head_norm", 0)}
LING = {"eh_proj": ("eh_proj", 0), "enorm": ("enorm", 0), "hnorm": ("hnorm", 0), "final_layernorm": (".layer_output_norm", 0)}
DEEPSEEK4 = {"enorm": ("enorm", 0), "hnorm": ("hnorm", 0), "norm": ("shared_head_norm", 0), "e_proj": (None, 0), "h_proj": (None, 0),
             "hc_head_fn": ("hc_head_fn", 0), "hc_head_base": ("hc_head_base", 0), "hc_head_scale": ("hc_head_scale", 0)}
# class: the layer that is repeated, the beginning of its names, that of the other tensors, these and their names in the file, what is added
CASES = {
    "BailingMoeV2ForCausalLM": (1, f"model.layers.{N_LAYER}.", f"model.layers.{N_LAYER}.", LING),
    "DeepseekV4ForCausalLM": (0, "mtp.0.", "mtp.0.", DEEPSEEK4),
    "DeepseekV3ForCausalLM": (1, f"model.layers.{N_LAYER}.", f"model.layers.{N_LAYER}.", BEHIND),
    "Glm4MoeForCausalLM": (1, f"model.layers.{N_LAYER}.", f"model.layers.{N_LAYER}.", BEHIND),
    "Ernie4_5ForCausalLM": (1, "model.mtp_block.0.", "model.", ERNIE),
    "Ernie4_5_MoeForCausalLM": (0, "model.mtp_block.0.", "model.", ERNIE),
    "MiMoV2FlashForCausalLM": (1, "model.mtp.layers.0.", "model.mtp.layers.0.", MIMO),
    "MiMoV2ForCausalLM": (1, "model.mtp.layers.0.", "model.mtp.layers.0.", MIMO),
    "Xing4_0ForCausalLM": (1, f"model.layers.{N_LAYER}.", f"model.layers.{N_LAYER}.", BEHIND),
    "Qwen3NextForCausalLM": (None, "mtp.layers.0.", "mtp.", APART),
    "Qwen3_5ForCausalLM": (None, "mtp.layers.0.", "mtp.", APART),
    "Qwen3_5MoeForCausalLM": (None, "mtp.layers.0.", "mtp.", APART),
}


def guesses(model, out):
    run(os.environ["TEST_OUTPUTS"], "-m", model, "--tokens", ",".join(map(str, TOKENS)), "--output", "guess", "--logits", out)
    return np.load(out)


def check(a, name):
    config, make, *_ = {**folders.CLASSES, **folders_experts.CLASSES, **folders_more.CLASSES, **folders_deepseek4.CLASSES, **folders_indexed.CLASSES}[name]
    like, begin, others, parts = CASES[name]
    wide = config.get("hidden_size", N_EMBD)
    folder, model = os.path.join(a.dir, f"ahead-{name}"), os.path.join(a.dir, f"ahead-{name}.gguf")
    c = {k: v for k, v in {**config, "rope": {}, **({"num_nextn_predict_layers": 1} if parts is LING else {})}.items() if not k.startswith("dspark")}
    w = Weights(len(name))
    make(c, w)
    for t in [t for t in w if t.startswith(begin)]:
        del w[t]
    n_layer = c.get("num_hidden_layers", N_LAYER)
    if like is None:  # the last one with attention
        like = max(l for l in range(n_layer) if f"model.layers.{l}.self_attn.q_proj.weight" in w)
    source = f"layers.{like}." if parts is DEEPSEEK4 else f"model.layers.{like}."
    named = (lambda t: t.replace("post_attention_layernorm", "pre_mlp_layernorm")) if parts is MIMO else lambda t: t
    w.update({begin + named(t[len(source):]): w[t] for t in list(w) if t.startswith(source) and "tid2eid" not in t and "_hc." not in t})
    if parts is DEEPSEEK4:  # whose first layer chooses experts by the token; this one does not
        w.vector(begin + "ffn.gate.bias", folders_deepseek4.N_EXPERT)
    theirs = {}
    for part in parts:
        shape = {"eh_proj": (wide, 2 * wide), "fc": (wide, 2 * wide), "mtp_linear_proj.0": (wide, 2 * wide), "embed_tokens": (N_VOCAB, wide), "shared_head.head": (N_VOCAB, wide),
                 "e_proj": (wide, wide), "h_proj": (wide, wide), "hc_head_fn": (folders_deepseek4.N_HC, folders_deepseek4.N_HC * wide),
                 "hc_head_base": (folders_deepseek4.N_HC,), "hc_head_scale": (1,)}
        theirs[part] = f"{others}{part}" + ("" if part.startswith("hc_head") else ".weight")
        w[theirs[part]] = w.random.normal(size=shape.get(part, (wide,))).astype(np.float32)
    os.makedirs(folder, exist_ok=True)
    write_safetensors(os.path.join(folder, "model.safetensors"), c.get("layout", dict)(w) if "layout" in c else w)
    own = {k: v for k, v in c.items() if k not in ("kind", "how", "d", "theta", "rope", "partial", "layout", "write", "type", "like")}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"architectures": [name], **c.get("write", dict)({**own, **write_rotation(c, 4)})}, f)
    run(a.convert, folder, "-o", model, "--type", "f32")
    keys, tensors = gguf.read(model)
    arch, faults = keys["general.architecture"], []
    if (keys.get(f"{arch}.block_count"), keys.get(f"{arch}.nextn_predict_layers")) != (n_layer + 1, 1):
        faults.append(f"block_count is {keys.get(f'{arch}.block_count')}, nextn_predict_layers {keys.get(f'{arch}.nextn_predict_layers')}")
    for t in [t for t in tensors if t.startswith(f"blk.{like}.") and "tid2eid" not in t and not (parts is BEHIND and ".hc_" in t)]:  # which has one row
        twin = tensors.get(t.replace(f"blk.{like}.", f"blk.{n_layer}."))
        if twin is None or not np.array_equal(twin, tensors[t]):
            faults.append(f"{t} is not repeated")
    for part, (to, plus) in parts.items():
        got = to and tensors.get(f"blk.{n_layer}{to if to.startswith('.') else '.nextn.' + to}.weight")
        if to and (got is None or not np.array_equal(got, w[theirs[part]] + np.float32(plus))):
            faults.append(f"nextn.{to} is not {others}{part}")
    if parts is DEEPSEEK4 and not np.array_equal(tensors[f"blk.{n_layer}.nextn.eh_proj.weight"], np.concatenate([w[theirs["e_proj"]], w[theirs["h_proj"]]], 1)):
        faults.append("nextn.eh_proj is not e_proj beside h_proj")
    if not faults and not np.array_equal(guesses(model, model + ".npy"), guesses(folder, model + ".npy")):
        faults.append("the folder guesses otherwise than its file")
    print(f"{name:24} {'; '.join(faults) or 'ok'}")
    shutil.rmtree(folder)
    os.unlink(model)
    return not faults


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--convert")
    p.add_argument("--dir", default=".")
    a = p.parse_args()
    os.makedirs(a.dir, exist_ok=True)
    failed = 0
    for name in CASES:
        try:
            failed += not check(a, name)
        except RuntimeError as e:
            failed += 1
            print(f"{name:24} FAILED: {e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
