#!/usr/bin/env python3
"""Speech models in both forms in which they are published, a folder and a file in ggml's format before GGUF: seeded nano models of random weights, converted and
opened directly. Rows of the spectrogram -> the encoder's rows and the tokens' logits must be within 5e-6 of the range of a forward pass in float64 (on the cpu, 1e-4);
tokens, merges and keys those that were put in; quantized tensors keep their bits.

    folders_speech.py --cli LLM_CLI --dir FOLDER ROWS [MEDIA]

ROWS is the program test-rows. MEDIA has recorded spectrograms, rows and logits of a larger model, if there is such a folder: they must agree within 1e-4.
Exit code 0, 1.
"""
import argparse
import base64
import gzip
import io
import json
import lzma
import math
import os
import shutil
import struct
import subprocess
import sys

import numpy as np

import mutate
import sums
import today
import weights
from gguf import read_blocks

HERE = os.path.dirname(os.path.abspath(__file__))
DESCRIPTOR = os.path.join(HERE, "..", "..", "models", "archs", "whisper.arch")
LIMITS = {"reference": 5e-6, "cpu": 1e-4}
LANGUAGES = ("en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk "
             "br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su").split()
TASKS = "translate transcribe startoflm startofprev nospeech notimestamps".split()
# a folder's name of a layer's part, and the other file's
PARTS = {"self_attn_layer_norm": "attn_ln", "self_attn.q_proj": "attn.query", "self_attn.k_proj": "attn.key", "self_attn.v_proj": "attn.value",
         "self_attn.out_proj": "attn.out", "encoder_attn_layer_norm": "cross_attn_ln", "encoder_attn.q_proj": "cross_attn.query",
         "encoder_attn.k_proj": "cross_attn.key", "encoder_attn.v_proj": "cross_attn.value", "encoder_attn.out_proj": "cross_attn.out",
         "final_layer_norm": "mlp_ln", "fc1": "mlp.0", "fc2": "mlp.2"}


# --- the forward pass


def norm(x, w, name):
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return y * w[name + ".weight"] + w[name + ".bias"]


def line(x, w, name):
    return x @ w[name + ".weight"].T + w.get(name + ".bias", 0)


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(x, of, w, p, n_head, causal=False, shares=None):
    d = x.shape[1] // n_head
    out = np.zeros_like(x)
    q, k, v = line(x, w, p + ".q_proj"), line(of, w, p + ".k_proj"), line(of, w, p + ".v_proj")
    for h in range(n_head):
        at = slice(h * d, h * d + d)
        s = q[:, at] @ k[:, at].T / math.sqrt(d)
        s = np.where(np.arange(len(x))[:, None] >= np.arange(len(of)), s, -np.inf) if causal else s
        out[:, at] = softmax(s) @ v[:, at]
        if shares is not None:
            shares.append(softmax(s))
    return line(out, w, p + ".out_proj")


def convolve(x, w, name, every):
    """As torch.nn.Conv1d with 3 taps and a padding of 1; x [rows, channels]."""
    taps, rows = w[name + ".weight"], np.pad(x, ((1, 1), (0, 0)))
    return np.array([sum(taps[:, :, k] @ rows[i + k] for k in range(3)) for i in range(0, len(x), every)]) + w[name + ".bias"]


ACTIVE = {"erf": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
          "tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))}


def feed(x, w, p, active):
    return x + line(active(line(norm(x, w, p + ".final_layer_norm"), w, p + ".fc1")), w, p + ".fc2")


def encode(c, w, mel, active):
    x = active(convolve(active(convolve(mel, w, "encoder.conv1", 1)), w, "encoder.conv2", 2))
    x = x + w["encoder.embed_positions.weight"][: len(x)]
    for l in range(c["n_enc"]):
        p = f"encoder.layers.{l}"
        y = norm(x, w, p + ".self_attn_layer_norm")
        x = feed(x + attend(y, y, w, p + ".self_attn", c["n_head"]), w, p, active)
    return norm(x, w, "encoder.layer_norm")


def decode(c, w, heard, tokens, active, shares=None):
    x = w["decoder.embed_tokens.weight"][tokens] + w["decoder.embed_positions.weight"][: len(tokens)]
    for l in range(c["n_dec"]):
        p = f"decoder.layers.{l}"
        y = norm(x, w, p + ".self_attn_layer_norm")
        x = x + attend(y, y, w, p + ".self_attn", c["n_head"], True)
        x = x + attend(norm(x, w, p + ".encoder_attn_layer_norm"), heard, w, p + ".encoder_attn", c["n_head"], shares=shares)
        x = feed(x, w, p, active)
    return norm(x, w, "decoder.layer_norm") @ w["decoder.embed_tokens.weight"].T


# --- tokens


def alphabet():
    """The bytes in the order of their ids, and their spellings."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in shown]
    return shown + rest, {**{b: chr(b) for b in shown}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def train(g, n):
    """Tokens of n bytes and merges, in order, and the merges."""
    order, _ = alphabet()
    tokens, merges = [bytes([b]) for b in order], []
    syllables = [bytes(g.choice(list("abcdeéß".encode()), int(g.integers(1, 4)))) for _ in range(12)]
    words = [[bytes([b]) for b in b" " + b"".join(syllables[int(i)] for i in g.integers(0, 12, int(g.integers(1, 5))))] for _ in range(300)]
    while len(tokens) < n:
        count = {}
        for word in words:
            for pair in zip(word, word[1:]):
                count[pair] = count.get(pair, 0) + 1
        pair = max((p for p in count if p[0] + p[1] not in tokens), key=lambda p: (count[p], p))
        tokens.append(pair[0] + pair[1])
        merges.append(pair)
        for word in words:
            i = 0
            while i + 1 < len(word):
                if (word[i], word[i + 1]) == pair:
                    word[i : i + 2] = [pair[0] + pair[1]]
                i += 1
    return tokens, merges


def specials():
    return [f"<|{name}|>" for name in ["endoftext", "startoftranscript", *LANGUAGES, *TASKS]] + [f"<|{i * 2 // 100}.{i * 2 % 100:02}|>" for i in range(1501)]


# --- files


def slaney(n_mel):
    """The usual bands: triangles over hertz whose corners are even in mel, each of area 1."""
    step = math.log(6.4) / 27
    mel = lambda f: f * 3 / 200 if f < 1000 else 15 + math.log(f / 1000) / step
    hertz = lambda m: m * 200 / 3 if m < 15 else 1000 * math.exp((m - 15) * step)
    f = np.array([hertz(m) for m in np.linspace(0, mel(8000), n_mel + 2)])
    bins = np.linspace(0, 8000, 201)
    bank = np.array([np.maximum(0, np.minimum((bins - f[b]) / (f[b + 1] - f[b]), (f[b + 2] - bins) / (f[b + 2] - f[b + 1]))) for b in range(n_mel)])
    return (bank.astype(np.float32) * (2 / (f[2:] - f[:-2]))[:, None].astype(np.float32)).astype(np.float32)


def legacy_name(name):
    words = name.split(".")
    if words[1] == "layers":
        return ".".join([words[0], "blocks", words[2], PARTS[".".join(words[3:-1])], words[-1]])
    return {"encoder.embed_positions.weight": "encoder.positional_embedding", "decoder.embed_positions.weight": "decoder.positional_embedding",
            "decoder.embed_tokens.weight": "decoder.token_embedding.weight", "encoder.layer_norm": "encoder.ln_post",
            "decoder.layer_norm": "decoder.ln"}.get(name, name.replace("encoder.layer_norm", "encoder.ln_post").replace("decoder.layer_norm", "decoder.ln"))


# where blocks have halves
SCALES = {"q4_0": [0], "q4_1": [0, 2], "q5_0": [0], "q5_1": [0, 2], "q8_0": [0], "q2_k": [80, 82], "q3_k": [108], "q4_k": [0, 2], "q5_k": [0, 2], "q6_k": [208]}


def random_blocks(g, name, shape):
    """Bytes of blocks, and the numbers that they mean."""
    _, n, size, _ = weights.TYPES[name]
    b = g.integers(0, 256, (int(np.prod(shape)) // n, size), np.uint8)
    for scale in (1, 0):  # first to see how large the numbers are
        scale = scale or 0.5 / math.sqrt(shape[-1]) / sums.std(weights.decode(name, b))
        for at in SCALES[name]:
            b[:, at : at + 2] = (g.uniform(0.5, 1.5, (len(b), 1)) * scale).astype("<f2").view(np.uint8)
    return b.tobytes(), weights.decode(name, b).reshape(shape)


def legacy_file(c, w, tokens, bank, kind, g):
    """The file, and its weights as they are in it. kind: of the matrices."""
    number = {"f32": 0, "f16": 1}.get(kind) if kind in ("f32", "f16") else weights.TYPES[kind][0]
    file_type = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 8, "q5_1": 9, "q8_0": 7, "q2_k": 10, "q3_k": 11, "q4_k": 12, "q5_k": 13, "q6_k": 14}[kind]
    out = [b"lmgg", struct.pack("<11i", c["n_vocab"], c["n_sound"], c["d"], c["n_head"], c["n_enc"], c["n_text"], c["d"], c["n_head"], c["n_dec"], c["n_mel"],
                                file_type + (2000 if number > 1 else 0)), struct.pack("<2i", *bank.shape), bank.tobytes(), struct.pack("<i", len(tokens))]
    out += [struct.pack("<i", len(t)) + t for t in tokens]
    stored, blocks = {}, {}
    for name, x in w.items():
        is_conv = "conv" in name and x.ndim == 3
        plain = x.ndim < 2 or "embed_positions" in name or number == 0
        if not plain and not is_conv and number > 1:
            data, stored[name] = random_blocks(g, kind, x.shape)
            type_number = number
            blocks[name] = data
        else:
            half = not plain
            y = x.astype("<f2" if half else "<f4")
            data, type_number, stored[name] = y.tobytes(), int(half), y.astype(np.float32)
        ne = list(x.shape[::-1]) if not (x.ndim == 1 and "conv" in name) else [1, len(x)]
        text = legacy_name(name).encode()
        out.append(struct.pack(f"<3i{len(ne)}i", len(ne), len(text), type_number, *ne) + text + data)
    return b"".join(out), stored, blocks


def write_safetensors(path, tensors):
    head, at = {}, 0
    for name, x in tensors.items():
        head[name] = {"dtype": {"<f4": "F32", "<f2": "F16"}[x.dtype.str], "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(x.tobytes() for x in tensors.values()))


def suppressed(c):
    return [1, 2, 7, c["end"] + 1]


def config_of(c, form):
    """As published: "small" for the first models, "large" with what came with large-v3."""
    a = {"_name_or_path": "openai/whisper-nano", "activation_dropout": 0.0, "activation_function": "gelu", "architectures": ["WhisperForConditionalGeneration"],
         "attention_dropout": 0.0, "begin_suppress_tokens": [220, c["end"]], "bos_token_id": c["end"], "d_model": c["d"], "decoder_attention_heads": c["n_head"],
         "decoder_ffn_dim": c["n_ff"], "decoder_layerdrop": 0.0, "decoder_layers": c["n_dec"], "decoder_start_token_id": c["end"] + 1, "dropout": 0.0,
         "encoder_attention_heads": c["n_head"], "encoder_ffn_dim": c["n_ff"], "encoder_layerdrop": 0.0, "encoder_layers": c["n_enc"], "eos_token_id": c["end"],
         "forced_decoder_ids": [[1, 50259], [2, 50359], [3, 50363]], "init_std": 0.02, "is_encoder_decoder": True, "max_length": c["n_text"],
         "max_source_positions": c["n_sound"], "max_target_positions": c["n_text"], "model_type": "whisper", "num_hidden_layers": c["n_enc"],
         "num_mel_bins": c["n_mel"], "pad_token_id": c["end"], "scale_embedding": False, "suppress_tokens": suppressed(c), "torch_dtype": "float32",
         "transformers_version": "4.27.0.dev0", "use_cache": True, "vocab_size": c["n_vocab"]}
    if form == "large":
        a |= {"apply_spec_augment": False, "classifier_proj_size": 256, "mask_feature_length": 10, "mask_feature_min_masks": 0, "mask_feature_prob": 0.0,
              "mask_time_length": 10, "mask_time_min_masks": 2, "mask_time_prob": 0.05, "median_filter_width": 7, "use_weighted_layer_sum": False,
              "torch_dtype": "float16", "transformers_version": "4.46.0.dev0"}
        for name in ("forced_decoder_ids", "suppress_tokens", "begin_suppress_tokens", "max_length"):
            del a[name]
    return a


def write_folder(path, c, w, tokens, merges, form):
    os.mkdir(path)
    config = config_of(c, form)
    half = form == "large"
    prefix = "model." if form != "bare" else ""
    if form == "bare":
        config["architectures"] = ["WhisperModel"]
    stored = {name: x.astype("<f2" if half else "<f4") for name, x in w.items()}
    write_safetensors(os.path.join(path, "model.safetensors"), {prefix + name: x for name, x in stored.items()})
    _, spelling = alphabet()
    spell = lambda t: "".join(spelling[b] for b in t)
    vocab, added = {spell(t): i for i, t in enumerate(tokens)}, {name: c["end"] + i for i, name in enumerate(specials())}
    pairs = [f"{spell(a)} {spell(b)}" for a, b in merges]
    files = {"config.json": config, "normalizer.json": {"accessorise": "accessorize"},
             "special_tokens_map.json": {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"},
             "tokenizer_config.json": {"tokenizer_class": "WhisperTokenizer", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "errors": "replace",
                                       "unk_token": "<|endoftext|>", "model_max_length": 1024, "add_prefix_space": False, "add_bos_token": False},
             "preprocessor_config.json": {"feature_size": c["n_mel"], "sampling_rate": 16000}, "vocab.json": vocab, "added_tokens.json": added}
    if form != "bare":
        files["generation_config.json"] = {"alignment_heads": [[1, 0], [c["n_dec"] - 1, 2]], "begin_suppress_tokens": [220, c["end"]], "is_multilingual": True,
                                           "decoder_start_token_id": c["end"] + 1, "eos_token_id": c["end"], "suppress_tokens": suppressed(c),
                                           "lang_to_id": {"<|en|>": c["end"] + 2}, "max_initial_timestamp_index": 50}
    if form == "large":
        files["tokenizer.json"] = {
            "version": "1.0", "added_tokens": [{"id": i, "content": name, "special": "." not in name, "normalized": False} for name, i in added.items()],
            "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|startoftranscript|>", "type_id": 0}},
                                                                         {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}},
            "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "dropout": None, "unk_token": None, "vocab": vocab, "merges": pairs}}
    for name, value in files.items():
        with open(os.path.join(path, name), "w", encoding="utf-8") as f:
            json.dump(value, f, ensure_ascii=False)
    with open(os.path.join(path, "merges.txt"), "w", encoding="utf-8") as f:
        f.write("#version: 0.2\n" + "\n".join(pairs) + "\n")
    return {name: x.astype(np.float32) for name, x in stored.items()}


def ct2_name(name):
    """CTranslate2's name of a tensor that it does not join with others."""
    words, last = name.split("."), {"weight": "weight", "bias": "bias"}
    if words[1] == "layers":
        part = {"fc1": "ffn/linear_0", "fc2": "ffn/linear_1", "final_layer_norm": "ffn/layer_norm", "self_attn_layer_norm": "self_attention/layer_norm",
                "encoder_attn_layer_norm": "attention/layer_norm", "self_attn.out_proj": "self_attention/linear_1", "encoder_attn.q_proj": "attention/linear_0",
                "encoder_attn.out_proj": "attention/linear_2"}[".".join(words[3:-1])]
        words = [words[0], "layer_" + words[2], part, words[-1]]
    if "layer_norm" in words[-2]:
        last = {"weight": "gamma", "bias": "beta"}
    return {"encoder.embed_positions.weight": "encoder/position_encodings/encodings", "decoder.embed_positions.weight": "decoder/position_encodings/encodings",
            "decoder.embed_tokens.weight": "decoder/embeddings/weight"}.get(name, "/".join([*words[:-1], last[words[-1]]]))


def ct2_variables(c, w):
    """As CTranslate2's converter joins them: queries, keys and values of the same rows; and what it says of the model."""
    out, zero = {}, np.zeros(c["d"], np.float32)
    for name, x in w.items():
        if not any(p in name for p in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "encoder_attn.k_proj", "encoder_attn.v_proj")):
            out[ct2_name(name)] = x
    for side, n in (("encoder", c["n_enc"]), ("decoder", c["n_dec"])):
        for l in range(n):
            for part, to, kinds in (("self_attn", "self_attention/linear_0", "qkv"), ("encoder_attn", "attention/linear_1", "kv")):
                p = f"{side}.layers.{l}.{part}"
                if p + ".k_proj.weight" in w:
                    for end in ("weight", "bias"):
                        out[f"{side}/layer_{l}/{to}/{end}"] = np.concatenate([w.get(f"{p}.{k}_proj.{end}", zero) for k in kinds])
    i8, i16 = (lambda x: np.array(x, np.int8)), (lambda x: np.array(x, np.int16))
    return out | {"decoder/activation": i8(3), "decoder/alibi": i8(0), "decoder/pre_norm": i8(1), "decoder/scale_embeddings": i8(0), "decoder/num_heads": i16(c["n_head"]),
                  "encoder/num_heads": i16(c["n_head"]), "decoder/start_from_zero_embedding": i8(0), "decoder/alignment_layer": i16(-1)}


def ct2_quantize(name, x, kind):
    """(numbers, what they were multiplied by or None) as the converter stores a variable, and what they mean."""
    if x.ndim == 0:
        return x, None, x
    plain = x.astype("<f2") if kind in ("float16", "int8_float16") else x
    if not kind.startswith("int") or not name.endswith("weight"):
        return plain, None, plain.astype(np.float32)
    flat = x.reshape(len(x), -1)
    top = np.abs(flat).max(1) if kind != "int16" else np.abs(flat).max()
    scale = (np.float32(127) / np.where(top == 0, np.float32(127), top) if kind != "int16" else np.float32(2**10) / top).astype(np.float32)
    codes = np.rint(flat * (scale[:, None] if kind != "int16" else scale)).astype(np.int8 if kind != "int16" else np.int16)
    factor = np.float32(1) / scale
    return codes.reshape(x.shape), scale, (codes.astype(np.float32) * (factor[:, None] if kind != "int16" else factor)).reshape(x.shape)


def ct2_bytes(variables, aliases, version=6, kind="WhisperSpec"):
    text = lambda s: struct.pack("<H", len(s) + 1) + s.encode() + b"\0"
    types = {np.dtype(t): i for i, t in enumerate(("<f4", "i1", "<i2", "<i4", "<f2"))}
    out = [struct.pack("<I", version), text(kind), struct.pack("<2I", 3, len(variables))]
    for name, x in sorted(variables.items()):
        first, size = (types[x.dtype], x.nbytes) if version >= 4 else (x.itemsize, x.size)
        out += [text(name), struct.pack("<B", x.ndim), struct.pack(f"<{x.ndim}I", *x.shape), struct.pack("<BI", first, size), x.tobytes()]
    if version >= 3:
        out += [struct.pack("<I", len(aliases))] + [text(a) + text(b) for a, b in aliases]
    return b"".join(out)


def write_ct2(path, c, w, text, merges, kind, tokens_in):
    """Returns the numbers that are stored, with the folder's names."""
    os.mkdir(path)
    variables, meant = {}, {}
    for name, x in ct2_variables(c, w).items():
        variables[name], scale, meant[name] = ct2_quantize(name, x, kind)
        if scale is not None:
            variables[name + "_scale"] = np.asarray(scale)
    aliases = [("decoder/projection/weight", "decoder/embeddings/weight")]
    for name in sorted(variables):  # as in new models: vectors that are equal are stored once
        first = next(n for n in sorted(variables) if variables[n].shape == variables[name].shape and variables[n].dtype == variables[name].dtype and (variables[n] == variables[name]).all())
        if first != name and variables[name].ndim == 1 and not name.endswith("_scale"):
            aliases.append((name, first))
    for name, _ in aliases[1:]:
        del variables[name]
    _, spelling = alphabet()
    spell = lambda t: "".join(spelling[b] for b in t)
    files = {"config.json": {"alignment_heads": [[1, 0], [c["n_dec"] - 1, 2]], "lang_ids": [c["end"] + 2 + i for i in range(len(LANGUAGES))], "suppress_ids": suppressed(c),
                             "suppress_ids_begin": [220, c["end"]]}}
    names = [spell(t) for t in text] + specials()
    if tokens_in == "tokenizer.json":  # without times, as published folders have it
        files[tokens_in] = {"version": "1.0", "added_tokens": [{"id": c["end"] + i, "content": n, "special": True} for i, n in enumerate(specials()[:-1501])],
                            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"},
                            "model": {"type": "BPE", "vocab": {spell(t): i for i, t in enumerate(text)}, "merges": [f"{spell(a)} {spell(b)}" for a, b in merges]}}
    elif tokens_in == "vocabulary.json":
        files[tokens_in] = names
    for name, value in files.items():
        with open(os.path.join(path, name), "w", encoding="utf-8") as f:
            json.dump(value, f, ensure_ascii=False)
    if tokens_in == "vocabulary.txt":
        with open(os.path.join(path, tokens_in), "w", encoding="utf-8") as f:
            f.write("\n".join(names) + "\n")
    with open(os.path.join(path, "model.bin"), "wb") as f:
        f.write(ct2_bytes(variables, aliases))
    stored = {name: meant[ct2_name(name)] for name in w if not any(f"attn.{q}_proj" in name for q in "qkv") or "encoder_attn.q_proj" in name}
    for side, n in (("encoder", c["n_enc"]), ("decoder", c["n_dec"])):
        for l in range(n):
            for part, to, kinds in (("self_attn", "self_attention/linear_0", "qkv"), ("encoder_attn", "attention/linear_1", "kv")):
                for end in ("weight", "bias") if part == "self_attn" or side == "decoder" else ():
                    for q, x in zip(kinds, np.split(meant[f"{side}/layer_{l}/{to}/{end}"], len(kinds))):
                        stored[f"{side}.layers.{l}.{part}.{q}_proj.{end}"] = x
    return {name: x for name, x in stored.items() if not name.endswith("k_proj.bias")}


# --- the tests


class Tester:
    def __init__(self, a):
        self.rows, self.failed = a.rows, 0
        self.convert_tool = os.path.join(os.path.dirname(a.cli), "llm-convert")
        self.dir = os.path.join(a.dir, f"speech-{os.getpid()}")
        os.mkdir(self.dir)

    def at(self, name):
        return os.path.join(self.dir, name)

    def tell(self, name, ok, what=""):
        self.failed += not ok
        print(f"{name:44} {'ok' if ok else 'FAILED'} {what}")

    def run(self, *command, code=0):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != code or "runtime error" in done.stderr:
            raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
        return done.stderr

    def put(self, name, data):
        with open(self.at(name), "wb") as f:
            f.write(data)
        return self.at(name)

    def convert(self, source, *words, code=0):
        return self.run(self.convert_tool, source, "-o", self.at("model.gguf"), *words, code=code)

    def compute(self, model, rows, words, backend="cpu"):
        np.ascontiguousarray(rows, np.float32).tofile(self.at("rows"))
        words = [self.at("rows") if w is None else w for w in words]
        self.run(self.rows, "-m", model, "--arch", DESCRIPTOR, "--backend", backend, "--out", self.at("out"), *words)
        return np.fromfile(self.at("out"), np.float32)

    def compare(self, what, model, rows, tokens, want, backends=("reference", "cpu")):
        """want: the encoder's rows and the logits."""
        n = str(len(rows))
        ids = ",".join(map(str, tokens))
        for backend in backends:
            got = [self.compute(model, rows, ["--rows", None, n, "--only", "enc"], backend), self.compute(model, rows, ["--tokens", ids, "--read", None, n], backend)]
            far = [np.abs(g.reshape(x.shape) - x).max() / (x.max() - x.min()) for g, x in zip(got, want)]
            self.tell(f"{what}, {backend}", max(far) <= LIMITS[backend], "rows %.1e, logits %.1e" % tuple(far))


def shape_of(g, block=0):
    n_head = int(g.integers(3, 5)) if not block else 4
    c = {"n_head": n_head, "d": block or n_head * 2 * int(g.integers(1, 5)), "n_enc": int(g.integers(1, 4)), "n_dec": int(g.integers(1, 4)),
         "n_sound": int(g.integers(3, 30)), "n_text": int(g.integers(12, 30)), "n_mel": int(g.choice([80, 128])), "end": 300, "n_vocab": 300 + len(specials())}
    return c | {"n_ff": 4 * c["d"]}


def weights_of(c, g):
    w = {}
    put = lambda name, *shape: w.update({name: (g.standard_normal(shape) * (0.5 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.1)).astype(np.float32)})

    def dense(name, rows, columns, bias=True):
        put(name + ".weight", rows, columns)
        if bias:
            put(name + ".bias", rows)

    def normed(name):
        put(name + ".bias", c["d"])
        w[name + ".weight"] = (1 + 0.1 * g.standard_normal(c["d"])).astype(np.float32)

    for k, n in ((1, c["n_mel"]), (2, c["d"])):
        w[f"encoder.conv{k}.weight"] = (g.standard_normal((c["d"], n, 3)) / math.sqrt(3 * n)).astype(np.float32)
        put(f"encoder.conv{k}.bias", c["d"])
    for side, n, most in (("encoder", c["n_enc"], c["n_sound"]), ("decoder", c["n_dec"], c["n_text"])):
        put(side + ".embed_positions.weight", most, c["d"])
        for l in range(n):
            for part in ["self_attn", *(["encoder_attn"] if side == "decoder" else [])]:
                p = f"{side}.layers.{l}.{part}"
                normed(p + "_layer_norm")
                for q in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    dense(f"{p}.{q}", c["d"], c["d"], q != "k_proj")
            p = f"{side}.layers.{l}"
            normed(p + ".final_layer_norm")
            dense(p + ".fc1", c["n_ff"], c["d"])
            dense(p + ".fc2", c["d"], c["n_ff"])
        normed(side + ".layer_norm")
    put("decoder.embed_tokens.weight", c["n_vocab"], c["d"])
    return w


def aligned(c, w, rows, tokens, form, heads):
    """Of each token, the shares of attention of these (layer, head)."""
    shares, w = [], {name: x.astype(np.float64) for name, x in w.items()}
    decode(c, w, encode(c, w, rows.astype(np.float64), ACTIVE[form]), tokens, ACTIVE[form], shares)
    return np.array([shares[l * c["n_head"] + h] for l, h in heads]).transpose(1, 0, 2)


def passed(c, w, rows, tokens, form):
    w = {name: x.astype(np.float64) for name, x in w.items()}
    heard = encode(c, w, rows.astype(np.float64), ACTIVE[form])
    return heard, decode(c, w, heard, tokens, ACTIVE[form])


def keys_of(path):
    return {name: v.value if hasattr(v, "value") else v for name, v in read_blocks(path)[0].items()}


def check_keys(t, what, c, tokens, merges, form):
    """The keys of t's model.gguf. form: of the folder; None: it comes from the other kind of file."""
    _, spelling = alphabet()
    spell = lambda x: "".join(spelling[b] for b in x)
    k, wrong = keys_of(t.at("model.gguf")), []
    want = {"tokenizer.ggml.tokens": [spell(x) for x in tokens] + specials(), "tokenizer.ggml.merges": [f"{spell(a)} {spell(b)}" for a, b in merges],
            "tokenizer.ggml.eos_token_id": c["end"], "tokenizer.ggml.pre": "gpt-2", "whisper.decoder_start_token_id": c["end"] + 1,
            "whisper.audio.mel_count": c["n_mel"], "whisper.audio.context_length": c["n_sound"], "whisper.decoder_block_count": c["n_dec"]}
    if form:
        want["whisper.suppress_tokens"] = suppressed(c)
        want["whisper.begin_suppress_tokens"] = [220, c["end"]]
        want["whisper.alignment_heads"] = [1, 0, c["n_dec"] - 1, 2] if form != "bare" else None
        want["whisper.multilingual"] = True if form in ("small", "large") else None
    else:
        want["whisper.hidden_activation"] = "gelu_tanh"
        want["tokenizer.ggml.token_type"] = [1] * c["end"] + [3] * len(specials())
    for name, value in want.items():
        if k.get(name) != value:
            wrong.append(f"{name}: {str(k.get(name))[:200]}, not {str(value)[:200]}")
    t.tell(f"{what}, keys", not wrong, "; ".join(wrong))


def test_folders(t, seed):
    g = np.random.default_rng(seed)
    for form in ("small", "large", "bare"):
        c = shape_of(g)
        w = weights_of(c, g)
        text, merges = train(g, c["end"] - 1)
        text.append(b"")  # as the vocabulary of several languages has it
        folder = t.at(form)
        stored = write_folder(folder, c, w, text, merges, form)
        rows = g.standard_normal((2 * c["n_sound"] - int(g.integers(0, 3)), c["n_mel"])).astype(np.float32)
        tokens = [int(x) for x in g.integers(0, c["n_vocab"], 9)]
        want = passed(c, stored, rows, tokens, "erf")
        t.convert(folder)
        t.compare(f"folder {seed} {form}", t.at("model.gguf"), rows, tokens, want)
        check_keys(t, f"folder {seed} {form}", c, text, merges, form)
        shutil.rmtree(folder)


def test_legacy(t, seed):
    g = np.random.default_rng(seed)
    kinds = ["f32", "f16", g.choice(["q4_0", "q4_1", "q5_0", "q5_1", "q8_0"]), g.choice(["q2_k", "q3_k", "q4_k", "q5_k", "q6_k"])]
    for kind in map(str, kinds):
        c = shape_of(g, 256 if "k" in kind else 32 if kind[0] == "q" else 0)
        w, bank = weights_of(c, g), slaney(c["n_mel"])
        text, merges = train(g, c["end"] - 1)
        text.append(b"")
        if kind == "f16":
            bank = (bank * 1.001).astype(np.float32)
        data, stored, blocks = legacy_file(c, w, text, bank, kind, g)
        file = t.put("model.bin", data)
        rows = g.standard_normal((2 * c["n_sound"], c["n_mel"])).astype(np.float32)
        tokens = [int(x) for x in g.integers(0, c["n_vocab"], 9)]
        note = t.convert(file)
        t.compare(f"file {seed} {kind}", t.at("model.gguf"), rows, tokens, passed(c, stored, rows, tokens, "tanh"),
                  ("reference", "cpu") if not blocks else ("reference",))
        check_keys(t, f"file {seed} {kind}", c, text, merges, None)
        made = read_blocks(t.at("model.gguf"))[1]
        kept = [x.data for x in made.values() if x.kind > 1]
        t.tell(f"file {seed} {kind}, blocks", sorted(kept) == sorted(blocks.values()) and "note" not in note, note.strip() if "note" in note else "")
        filters = made.get("mel_filters.weight")
        t.tell(f"file {seed} {kind}, bands", (filters is not None and filters.data == bank.tobytes()) if kind == "f16" else filters is None)
        words = ["--tokens", ",".join(map(str, tokens)), "--read", None, str(len(rows))]
        same = [t.compute(x, rows, words) for x in (file, t.at("model.gguf"))]
        t.tell(f"file {seed} {kind}, opened directly", same[0].tobytes() == same[1].tobytes())
        if blocks:
            t.convert(file, "--type", "f32")
            t.compare(f"file {seed} {kind} as f32", t.at("model.gguf"), rows, tokens, passed(c, stored, rows, tokens, "tanh"), ("reference",))


def test_ctranslate2(t, seed):
    """Folders of CTranslate2, in each way to store weights, with each file of tokens."""
    g = np.random.default_rng(seed)
    for kind, tokens_in in (("float32", "vocabulary.txt"), ("float16", "tokenizer.json"), ("int8", "vocabulary.json"), ("int8_float16", "tokenizer.json"), ("int16", "vocabulary.txt")):
        c = shape_of(g)
        w = weights_of(c, g)
        text, merges = train(g, c["end"])
        folder, what = t.at("ct2"), f"CTranslate2 {seed} {kind}, {tokens_in}"
        stored = write_ct2(folder, c, w, text, merges, kind, tokens_in)
        rows = g.standard_normal((2 * c["n_sound"], c["n_mel"])).astype(np.float32)
        tokens = [int(x) for x in g.integers(0, c["n_vocab"], 9)]
        t.convert(folder)
        t.compare(what, t.at("model.gguf"), rows, tokens, passed(c, stored, rows, tokens, "erf"))
        check_keys(t, what, c, text, merges, "CTranslate2")
        words = ["--tokens", ",".join(map(str, tokens)), "--read", None, str(len(rows))]
        same = [t.compute(x, rows, words) for x in (folder, os.path.join(folder, "model.bin"), t.at("model.gguf"))]
        t.tell(what + ", opened directly", same[0].tobytes() == same[1].tobytes() == same[2].tobytes())
        made = read_blocks(t.at("model.gguf"))[1]
        got = np.frombuffer(made["token_embd.weight"].data, "<f2" if kind == "float16" else "<f4").astype(np.float32)
        t.tell(what + ", numbers", got.tobytes() == stored["decoder.embed_tokens.weight"].astype(np.float32).tobytes())
        shutil.rmtree(folder)


# What preprocessor_config.json of a folder says as published, and values that transformers' feature extractor (or, beside them, faster-whisper's) would make other rows of.
SAID = {"chunk_length": 2, "dither": 0.0, "do_normalize": False, "feature_extractor_type": "WhisperFeatureExtractor", "hop_length": 160, "mel_filters": [[0.0] * 201] * 80,
        "n_fft": 400, "n_samples": 480000, "nb_max_frames": 3000, "padding_side": "right", "padding_value": 0.0, "return_attention_mask": False, "sampling_rate": 16000}
OTHER = [("chunk_length", 30, "2"), ("hop_length", 128, "160"), ("n_fft", 512, "400"), ("sampling_rate", 8000, "16000"), ("feature_size", 81, None)]
OTHER_THERE = [("dither", 0.01, "0"), ("padding_value", 0.5, "0"), ("padding_side", "left", '"right"'), ("feature_extractor_type", "ASTFeatureExtractor", '"WhisperFeatureExtractor"')]
WITHOUT_EFFECT = [("do_normalize", True), ("return_attention_mask", True), ("n_samples", 16000), ("nb_max_frames", 100), ("win_length", 320)]


def test_processors(t):
    """Values of preprocessor_config.json, or of feature_extractor in processor_config.json, which change the rows are refused with the file, the value and what is accepted; others are not."""
    g = np.random.default_rng(4)
    c = shape_of(g) | {"n_sound": 100}
    w, (text, merges) = weights_of(c, g), train(g, c["end"])
    for form in ("folder", "ct2"):
        folder = t.at(form)
        write_folder(folder, c, w, text, merges, "small") if form == "folder" else write_ct2(folder, c, w, text, merges, "int8", "tokenizer.json")
        more = OTHER_THERE if form == "folder" else [(key, value, None) for key, value, _ in OTHER_THERE]
        cases = [("sampling_rate", 16000, False, None)] + [(key, value, True, right or str(c["n_mel"])) for key, value, right in OTHER]
        cases += [(key, value, form == "folder", right) for key, value, right in more] + [(key, value, False, None) for key, value in WITHOUT_EFFECT]
        for nested in (False, True) if form == "folder" else (False,):
            name, path = ("processor_config.json", "feature_extractor.") if nested else ("preprocessor_config.json", "")
            for other in os.listdir(folder):
                if other.endswith("processor_config.json"):
                    os.unlink(os.path.join(folder, other))
            for key, value, is_refused, right in cases:
                of = SAID | {"feature_size": c["n_mel"], key: value}
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    json.dump({"feature_extractor": of} if nested else of, f)
                said = t.convert(folder, code=int(is_refused))
                ok = not is_refused or (f"{name}: {path}{key} = {json.dumps(value)}: " in said and f"; accepted: {right}\n" in said)
                t.tell(f"{form}: {path}{key} of {value}", ok, "" if ok else said.strip())
        shutil.rmtree(folder)


def test_ctranslate2_faults(t):
    g = np.random.default_rng(2)
    c = shape_of(g)
    w, (text, merges) = weights_of(c, g), train(g, c["end"])
    folder = t.at("ct2")
    write_ct2(folder, c, w, text, merges, "int8", "tokenizer.json")
    with open(os.path.join(folder, "model.bin"), "rb") as f:
        data = f.read()
    at = data.index(b"decoder/embeddings/weight\0") + 26  # n_dims, two dimensions, type, bytes
    cases = [(data[:-9], "the file is truncated or damaged"), (data[:5000], "the file may be truncated"), (data + b"x", "1 bytes follow its end"),
             (struct.pack("<I", 9) + data[4:], "version 9"), (data[:at] + b"\x09" + data[at + 1 :], "9 dimensions"),
             (data[: at + 1] + struct.pack("<I", 2**31) + data[at + 5 :], "does not fit into the file"), (data[: at + 9] + b"\x09" + data[at + 10 :], "the type 9"),
             (data[: at + 10] + struct.pack("<I", 3) + data[at + 14 :], "it has 3 bytes"), (data[:40] + data[41:], "model.bin: "),
             (data.replace(b"decoder/embeddings/weight\0", b"decoder/embeddings/weighs\0", 1), "is missing"),
             (data.replace(b"WhisperSpec", b"WhisparSpec", 1), "did you mean 'WhisperSpec'")]
    for k, (bad, words) in enumerate(cases):
        with open(os.path.join(folder, "model.bin"), "wb") as f:
            f.write(bad)
        said = t.convert(folder, code=1)
        t.tell(f"CTranslate2, fault {k}", words in said and "ct2" in said, said.strip() if words not in said else "")
    with open(os.path.join(folder, "model.bin"), "wb") as f:
        f.write(data)
    name = os.path.join(folder, "tokenizer.json")
    with open(name, encoding="utf-8") as f:
        whole = json.load(f)
    with open(name, "w", encoding="utf-8") as f:  # three tokens fewer: the rows that are left are not those of times
        json.dump({**whole, "added_tokens": [{**x, "id": x["id"] - 3} for x in whole["added_tokens"][3:]]}, f)
    said = t.convert(folder, code=1)
    t.tell("CTranslate2, times that are not 1501", "<|0.00|> to <|30.00|>, are missing" in said and "1504" in said, said.strip())
    shutil.rmtree(folder)


def test_mutants(t):
    """Descriptors with a line, a dimension or an operand changed are refused, or give other logits or alignments. What most of the others change means the same."""
    g, models = np.random.default_rng(3), []
    for form in ("erf", "tanh"):
        c = shape_of(g) | {"n_enc": 2, "n_dec": 3, "n_sound": 9, "n_text": 14}
        w, (text, merges) = weights_of(c, g), train(g, c["end"])
        if form == "erf":
            stored = write_folder(t.at("folder"), c, w, text, merges, "small")
            t.convert(t.at("folder"))
            shutil.rmtree(t.at("folder"))
        else:
            data, stored, _ = legacy_file(c, w, text, (slaney(c["n_mel"]) * 1.01).astype(np.float32), "f16", g)
            t.convert(t.put("model.bin", data))
        os.rename(t.at("model.gguf"), t.at(form))
        rows, tokens = g.standard_normal((18, c["n_mel"])).astype(np.float32), [int(x) for x in g.integers(0, c["n_vocab"], 9)]
        rows.tofile(t.at(form + ".rows"))
        heads = [(1, 0), (2, 2)] if form == "erf" else [(l, h) for l in (1, 2) for h in range(c["n_head"])]
        models.append((t.at(form), tokens, passed(c, stored, rows, tokens, form)[1], aligned(c, stored, rows, tokens, form, heads)))

    def is_found(text):
        t.put("mutant.arch", text.encode())
        for model, tokens, *both in models:
            done = subprocess.run([t.rows, "-m", model, "--arch", t.at("mutant.arch"), "--out", t.at("out"), "--tokens", ",".join(map(str, tokens)),
                                   "--read", model + ".rows", "18", "--align", t.at("shares")], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if done.returncode not in (0, 1) or "runtime error" in done.stderr:
                raise RuntimeError(f"exit code {done.returncode}: {done.stderr}\n{text}")
            for name, want in zip(("out", "shares"), both):
                got = np.fromfile(t.at(name), np.float32) if done.returncode == 0 else np.zeros(0)
                if got.size != want.size or not np.abs(got.reshape(want.shape) - want).max() <= 1e-3 * want.std():
                    return True
        return False

    d = mutate.Descriptor(DESCRIPTOR)
    d.n_names = 4
    some = today.sample("mutants", list(mutate.mutants(d)), 100)
    found = sum(is_found(text) for *_, text in some)
    t.tell("mutants", not is_found("\n".join(d.lines) + "\n") and found >= 0.9 * len(some), f"{found} of {len(some)} are found")


def test_specials(t):
    """The ids of special tokens in the three published vocabularies, and those that the merges cannot make."""
    g = np.random.default_rng(1)
    for n_vocab, ids in ((51864, {"endoftext": 50256, "startoftranscript": 50257, "en": 50258, "su": 50356, "translate": 50357, "notimestamps": 50362, "0.00": 50363}),
                         (51865, {"endoftext": 50257, "startoftranscript": 50258, "en": 50259, "su": 50357, "translate": 50358, "nospeech": 50362, "0.00": 50364}),
                         (51866, {"endoftext": 50257, "en": 50259, "yue": 50358, "translate": 50359, "transcribe": 50360, "startoflm": 50361, "startofprev": 50362,
                                  "nospeech": 50363, "notimestamps": 50364, "0.00": 50365, "29.98": 51864, "30.00": 51865})):
        c = shape_of(g) | {"n_vocab": n_vocab}
        text = [bytes([b]) for b in alphabet()[0]] + [b"ab", b"abcd", b"abc", b"ab", b"abcde", b""]  # abcd is not two of those before it
        file = t.put("specials.bin", legacy_file(c, {}, text, slaney(c["n_mel"]), "f32", g)[0])
        note = t.convert(file, "--vocab-only")
        k = keys_of(t.at("model.gguf"))
        got, types = k["tokenizer.ggml.tokens"], k["tokenizer.ggml.token_type"]
        wrong = [f"{name}: {got.index(f'<|{name}|>')}" for name, i in ids.items() if got[i] != f"<|{name}|>"]
        wrong += [] if len(set(got[ids["endoftext"]:])) == n_vocab - ids["endoftext"] and set(types[ids["endoftext"]:]) == {3} else ["names"]
        wrong += [] if k["tokenizer.ggml.merges"] == ["a b", "ab c", "abcd e"] and "1 of the file's tokens are the same" in note else [str(k["tokenizer.ggml.merges"])]
        wrong += [] if "1 of the file's tokens are not made of two earlier ones" in note and got[262] == "[PAD262]" and types[262] == 5 else [note]
        t.tell(f"special tokens of {n_vocab}", not wrong and k["tokenizer.ggml.eos_token_id"] == ids["endoftext"], str(wrong) if wrong else "")


# heads of attention that show when a token is heard, a truth value for each of all layers, as openai/whisper publishes them: packed, in base 85
SHOWING = {(4, 6, 384, 51864): b"ABzY8J1N>@0{>%R00Bk>$p{7v037`oCl~+#00", (4, 6, 384, 51865): b"ABzY8bu8Lr0{>%RKn9Fp%m@SkK7Kt=7ytkO",
           (6, 8, 512, 51864): b"ABzY8;40c<0{>%RzzG;p*o+Vo09|#PsxSZm00", (6, 8, 512, 51865): b"ABzY8KQ!870{>%RzyTQH3`Q^yNP!>##QT-<FaQ7m",
           (12, 12, 768, 51864): b"ABzY8>?_)10{>%RpeA61k&I|OI3I$65C{;;pbCHh0B{qLQ;+}v00", (12, 12, 768, 51865): b"ABzY8DmU6=0{>%Rpa?J`kvJ6qF(V^F86#Xh7JUGMK}P<N0000",
           (24, 16, 1024, 51864): b"ABzY8usPae0{>%R7<zz_OvQ{)4kMa0BMw6u5rT}kRKX;$NfYBv00*Hl@qhsU00", (24, 16, 1024, 51865): b"ABzY8B0Jh+0{>%R7}kK1fFL7w6%<-Pf*t^=N)Qr&0RR9",
           (32, 20, 1280, 51865): b"ABzY8zd+h!0{>%R7=D0pU<_bnWW*tkYAhobTNnu$jnkEkXqp)j;w1Tzk)UH3X%SZd&fFZ2fC2yj",
           (32, 20, 1280, 51866): b"ABzY8gWO1E0{>%R7(9S+Kn!D~%ngiGaR?*L!iJG9p-nab0JQ=-{D1-g00", (4, 20, 1280, 51866): b"ABzY8j^C+e0{>%RARaKHP%t(lGR*)0g!tONPyhe`"}


def test_heads(t):
    """Files of the published sizes get the key alignment_heads, others do not."""
    text, wrong = [bytes([b]) for b in alphabet()[0]], []
    for (n_layer, n_head, d, n_vocab), packed in [*SHOWING.items(), ((2, 20, 1280, 51865), None), ((6, 8, 512, 51866), None), ((4, 3, 384, 51864), None)]:
        c = {"n_vocab": n_vocab, "n_sound": 8, "d": d, "n_head": n_head, "n_enc": 1, "n_text": 16, "n_dec": n_layer, "n_mel": 80, "n_ff": 4 * d, "end": 50257 - (n_vocab == 51864)}
        t.convert(t.put("heads.bin", legacy_file(c, {}, text, slaney(80), "f32", None)[0]), "--vocab-only")
        shows = np.frombuffer(gzip.decompress(base64.b85decode(packed)), bool).reshape(n_layer, n_head) if packed else None
        want = [int(x) for x in np.argwhere(shows).ravel()] if packed else None
        if keys_of(t.at("model.gguf")).get("whisper.alignment_heads") != want:
            wrong.append(str((n_layer, d, n_vocab)))
    t.tell("heads of attention of published sizes", not wrong, "; ".join(wrong))


def test_faults(t):
    """Files that are no such model, or damaged: a line that says what is wrong."""
    g = np.random.default_rng(1)
    c = shape_of(g)
    w, (tokens, _), bank = weights_of(c, g), train(g, c["end"]), slaney(c["n_mel"])
    data, _, _ = legacy_file(c, w, tokens, bank, "f16", g)
    at_tokens = 56 + bank.nbytes
    at_tensor = at_tokens + 4 + sum(4 + len(x) for x in tokens)
    patched = lambda at, *x: data[:at] + struct.pack(f"<{len(x)}i", *x) + data[at + 4 * len(x) :]
    cases = [(data[:-7], "bytes of type f"), (data[: at_tensor + 14], "in the name of a tensor"), (data[: at_tensor + 3], "too few for another one"),
             (data[:50], "its header is not that of one"), (data[: at_tokens + 9], "the file ends at token"), (data[:200], "the bands of the spectrogram have"),
             (patched(4, -1), "the header's n_vocab is -1"), (patched(16, 0), "the header's n_audio_head is 0"), (patched(40, 7), "its header is not that of one"),
             (patched(44, 1008), "quantized in version 1"), (patched(52, 200), f"bands of 200 numbers; it should have {c['n_mel']}"),
             (patched(at_tokens, c["n_vocab"] + 1), f"has {c['n_vocab'] + 1} tokens"), (patched(at_tokens + 4, 300), "token 0 has 300 bytes"),
             (patched(at_tensor, 5), "dimensions and a name of"), (patched(at_tensor + 8, 4), "has the type 4, which is unknown"),
             (patched(at_tensor + 8, 26), "has the type 26"), (patched(at_tensor + 12, -5), "is not positive"),
             (patched(at_tensor + 8, 12, 0x7FFFFF01), "no whole blocks of q4_k"), (patched(at_tensor + 12, 2**31 - 1, 2**31 - 1, 2**31 - 1), "too large"),
             (data[:at_tensor], "the source of enc.conv1.weight")]
    for k, (bad, words) in enumerate(cases):
        said = t.convert(t.put("bad.bin", bad), code=1)
        t.tell(f"fault {k}", words in said and "bad.bin" in said and (len(said.strip().splitlines()) == 1 or ".arch" in said), said.strip() if words not in said else "")
    c["n_vocab"] = 51867
    said = t.convert(t.put("bad.bin", legacy_file(c, weights_of(c, g), tokens, bank, "f16", g)[0]), code=1)
    t.tell("fault: unknown special tokens", "among 51867 tokens (n_vocab) are not known" in said, said.strip())
    once = struct.pack("<3i2i", 2, 1, 0, 1, 1) + b"x" + bytes(4)
    said = t.convert(t.put("bad.bin", data + once + once), code=1)
    t.tell("fault: a tensor twice", "tensor 'x' occurs twice" in said, said.strip())
    said = t.convert(t.put("bad.bin", data + once), code=1)
    t.tell("fault: a tensor that nothing reads", "x" in said and "bad.bin" in said, said.strip()[:200])


def test_layers(t):
    """Of more layers than config.json says, the message has the names that this file has for their numbers."""
    g = np.random.default_rng(2)
    c = shape_of(g) | {"n_enc": 3, "n_dec": 2}
    w, (text, merges), folder = weights_of(c, g), train(g, c["end"]), t.at("folder")
    write_folder(folder, c, w, text, merges, "small")
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    for key, n, layer in (("encoder_layers", 2, "encoder.layers.2"), ("decoder_layers", 1, "decoder.layers.1")):
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config | {key: n}, f)
        with open(os.path.join(folder, "generation_config.json"), "w", encoding="utf-8") as f:
            f.write("{}")
        said, counts = t.convert(folder, code=1), {"encoder_layers": 3, "decoder_layers": 2} | {key: n}
        ok = f"Nothing of model.{layer}.* is read" in said and f"too small: {folder}/config.json: encoder_layers = {counts['encoder_layers']}, decoder_layers = {counts['decoder_layers']}\n" in said
        t.tell(f"fault: {key} of {n}", ok, "" if ok else said.strip())
    shutil.rmtree(folder)


def test_recorded(t, media):
    """A model of real sizes of its sound and vocabulary, and what float64 gives for two recorded sounds."""
    load = lambda name: np.load(io.BytesIO(lzma.open(os.path.join(media, name + ".npy.xz")).read())).astype(np.float64)
    name = "whisper-80-f16"
    with lzma.open(os.path.join(media, name + ".bin.xz")) as f:
        file = t.put("recorded.bin", f.read())
    tokens = [50258, 50259, 50359, 50363, 440, 1359, 2848, 15700, 257, 2099, 8174, 11]
    t.convert(file)
    for model in (file, t.at("model.gguf")):
        for sound in ("44k", "31s"):
            rows = np.zeros((3000, 80), np.float32)
            mel = load(f"{name}.{sound}.mel").T[:3000]
            rows[: len(mel)] = mel
            t.compare(f"recorded {sound} {model[-4:]}", model, rows, tokens, (load(f"{name}.{sound}.enc0"), load(f"{name}.{sound}.logits0")), ("cpu",))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("rows")
    p.add_argument("media", nargs="?", default="")
    a = p.parse_args()
    t = Tester(a)
    try:
        for seed in today.sample("models", range(20), 1):
            test_folders(t, seed)
            test_legacy(t, seed)
            test_ctranslate2(t, seed)
        test_mutants(t)
        test_specials(t)
        test_heads(t)
        test_faults(t)
        test_layers(t)
        test_processors(t)
        test_ctranslate2_faults(t)
        if os.path.isdir(a.media):
            test_recorded(t, a.media)
        else:
            print("skipped: recorded sounds (no folder of them)")
    finally:
        shutil.rmtree(t.dir)
    return int(t.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
