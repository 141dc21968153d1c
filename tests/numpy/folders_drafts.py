#!/usr/bin/env python3
"""Converts Hugging Face folders of models that guess for another one.

    folders_drafts.py --cli LLM_CLI --convert LLM_CONVERT --dir FOLDER [NAME ..]

Each folder has random weights and no tokenizer, as published ones. Every key and tensor of the file must be what llama.cpp's converter writes, which
is stated here once more. Then the draft has to guess the same from the folder and from the file, to the last bit, beside the model for which it
guesses, which is a folder or a file; llm-cli writes the same text with it as without. Exit code 0, 1.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np

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
    with a name in the folder, or with what is made of it. refused: changes of config.json, and words of the message."""
    needs = False
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
    if form == "sglang":
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
    if form != "sglang":  # which reads the model's embeddings, and scores all tokens
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
    return draft


DRAFTS = [eagle3("eagle3", "angel"), eagle3("eagle3-speculators", "speculators"), eagle3("eagle3-llama", "llama"), eagle3("eagle3-sglang", "sglang")]


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
    if not np.array_equal(by_file, guesses(a, folder, out)):
        faults.append("the folder guesses otherwise than its file")
    if not draft.needs:  # else which layers it reads is not known
        run(a.convert, folder, "-o", file, "--type", "f32")
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
    faults, folder, other = [], os.path.join(a.dir, "draft-other"), os.path.join(a.dir, "draft-model")
    draft = DRAFTS[0]
    write_folder(folder, draft.config, draft.w)
    llama(other, N_VOCAB - 2)
    faults += refused(a, folder, draft.config, "it guesses for a model of 300 tokens, and ", "--target", other)
    run(a.convert, other, "-o", folder + ".gguf")
    done = subprocess.run([a.cli, "-m", folder + ".gguf", "--draft", folder, "-p", "x", "-n", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 1 or "--draft: " + folder + ": it guesses for a model of 300 tokens, and " not in done.stderr:
        faults.append(f"a folder for another model: {done.stderr}")
    os.unlink(folder + ".gguf")
    w = dict(draft.w)
    w["d2t"] = np.concatenate([[-1], draft.w["d2t"][1:]])
    write_folder(folder, draft.config, w)
    faults += refused(a, folder, draft.config, "tensor d2t: element 0 stands for the number -1", "--target", a.target)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        os.unlink(os.path.join(other, name))
    faults += refused(a, folder, draft.config, "has a tokenizer", "--target", other)
    done = subprocess.run([a.convert, a.folder, "-o", folder + ".gguf", "--target", a.target], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 1 or "--target is for models that guess for another one" not in done.stderr:
        faults.append(f"--target of a model that is no draft: {done.stderr}")
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
    a.folder = os.path.join(a.dir, "draft-target")
    a.target = a.folder + ".gguf"
    llama(a.folder)
    run(a.convert, a.folder, "-o", a.target, "--type", "f32")
    failed = 0
    for draft in DRAFTS:
        try:
            failed += bool(not a.names or draft.name in a.names) and not check(a, draft)
        except RuntimeError as e:
            failed += 1
            print(f"{draft.name:24} FAILED: {e}")
    failed += not check_others(a)
    shutil.rmtree(a.folder)
    os.unlink(a.target)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
