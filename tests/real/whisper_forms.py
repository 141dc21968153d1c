"""Weights of Whisper in a folder of CTranslate2 (model.bin, tokenizer.json, config.json) written as files of openai-whisper and of whisper.cpp, with the same numbers."""
import json
import os
import struct

import numpy as np

TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}
PAIR = (("weight", "weight"), ("bias", "bias"))
NORM = (("gamma", "weight"), ("beta", "bias"))


def read_model(path):
    """{name: array} of a model.bin (version 6: a name, the shape, a type and the bytes of each)."""
    with open(path, "rb") as f:
        data, at = f.read(), 0

    def number(form):
        nonlocal at
        at += struct.calcsize("<" + form)
        return struct.unpack_from("<" + form, data, at - struct.calcsize("<" + form))[0]

    def text():
        nonlocal at
        n = number("H")
        at += n
        return data[at - n : at].rstrip(b"\0").decode()

    if number("I") != 6 or text() != "WhisperSpec":
        raise ValueError(f"{path}: not version 6 of a WhisperSpec")
    number("I")
    arrays = {}
    for _ in range(number("I")):
        name = text()
        shape = [number("I") for _ in range(number("B"))]
        kind, size = np.dtype(TYPES[number("B")]), number("I")
        arrays[name] = np.frombuffer(data, kind, size // kind.itemsize, at).reshape(shape)
        at += size
    return arrays


def weights(model):
    """The arrays under openai-whisper's names, and its sizes."""
    width, out = model["encoder/conv1/weight"].shape[0], {}

    def take(to, of, names=PAIR):
        for a, b in names:
            if model[f"{of}/{a}"].dtype not in (np.float16, np.float32):
                raise ValueError(f"{of} is {model[f'{of}/{a}'].dtype}; only models in float16 and float32 are read")
            out[f"{to}.{b}"] = model[f"{of}/{a}"]

    def attention(to, of, is_cross):  # linear_0 has query, key and value one below the other; the other layer apart from the query in a second matrix
        n = 2 if is_cross else 1
        for kind in "weight", "bias":
            rows = np.concatenate([model[f"{of}/linear_{k}/{kind}"] for k in range(n)])
            for k, name in enumerate(("query", "key", "value")):
                if (name, kind) != ("key", "bias"):
                    out[f"{to}.{name}.{kind}"] = rows[k * width : (k + 1) * width]
                elif np.any(rows[width : 2 * width]):
                    raise ValueError(f"{of}: keys have a bias")
        take(f"{to}.out", f"{of}/linear_{n}")

    layers = {}
    for side in "encoder", "decoder":
        layers[side] = n = sum(f"{side}/layer_{k}/ffn/linear_0/weight" in model for k in range(100))
        out[f"{side}.positional_embedding"] = model[f"{side}/position_encodings/encodings"]
        take(f"{side}.ln_post" if side == "encoder" else f"{side}.ln", f"{side}/layer_norm", NORM)
        for k in range(n):
            of, to = f"{side}/layer_{k}", f"{side}.blocks.{k}"
            for part, name in (("self_attention", "attn"), ("attention", "cross_attn"))[: 1 if side == "encoder" else 2]:
                take(f"{to}.{name}_ln", f"{of}/{part}/layer_norm", NORM)
                attention(f"{to}.{name}", f"{of}/{part}", part == "attention")
            take(f"{to}.mlp_ln", f"{of}/ffn/layer_norm", NORM)
            take(f"{to}.mlp.0", f"{of}/ffn/linear_0")
            take(f"{to}.mlp.2", f"{of}/ffn/linear_1")
    for k in "conv1", "conv2":
        take(f"encoder.{k}", f"encoder/{k}")
    out["decoder.token_embedding.weight"] = embedding = model["decoder/embeddings/weight"]
    sizes = {"n_mels": model["encoder/conv1/weight"].shape[1], "n_vocab": embedding.shape[0], "n_text_ctx": out["decoder.positional_embedding"].shape[0],
             "n_audio_ctx": out["encoder.positional_embedding"].shape[0]}
    for name, side in ("audio", "encoder"), ("text", "decoder"):
        sizes |= {f"n_{name}_state": width, f"n_{name}_head": int(model[f"{side}/num_heads"]), f"n_{name}_layer": layers[side]}
    return out, sizes


def write_whisper_pt(folder, to):
    """A checkpoint of openai-whisper."""
    import torch
    out, sizes = weights(read_model(os.path.join(folder, "model.bin")))
    torch.save({"dims": sizes, "model_state_dict": {k: torch.from_numpy(v.astype(np.float32)) for k, v in out.items()}}, to)


def vocabulary(folder):
    """The bytes of each token of text, by id (the bytes stand in tokenizer.json as characters that can be seen, as in GPT-2)."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte = {chr(b): b for b in seen} | {chr(256 + k): b for k, b in enumerate(sorted(set(range(256)) - set(seen)))}
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as f:
        tokens = json.load(f)["model"]["vocab"]
    tokens = sorted((i, text) for text, i in tokens.items() if not text.startswith("<|"))
    return [bytes(byte[c] for c in text) for _, text in tokens]


def write_whisper_cpp(folder, to):
    """A ggml .bin in f16 of whisper.cpp; the filters of the spectrogram are those of openai-whisper's package."""
    import importlib.util
    out, sizes = weights(read_model(os.path.join(folder, "model.bin")))
    assets = os.path.join(os.path.dirname(importlib.util.find_spec("whisper").origin), "assets")
    filters = np.load(os.path.join(assets, "mel_filters.npz"))[f"mel_{sizes['n_mels']}"].astype("<f4")
    tokens = vocabulary(folder)
    with open(to, "wb") as f:
        f.write(struct.pack("<12i", 0x67676D6C, *(sizes[f"n_{k}"] for k in ("vocab", "audio_ctx", "audio_state", "audio_head", "audio_layer", "text_ctx", "text_state",
                                                                            "text_head", "text_layer", "mels")), 1))
        f.write(struct.pack("<2i", *filters.shape) + filters.tobytes() + struct.pack("<i", len(tokens)))
        for token in tokens:
            f.write(struct.pack("<i", len(token)) + token)
        for name, x in out.items():
            x = x.reshape(-1, 1) if name in ("encoder.conv1.bias", "encoder.conv2.bias") else x
            is_half = x.ndim > 1 and "bias" not in name and "positional" not in name
            f.write(struct.pack("<3i", x.ndim, len(name), is_half) + struct.pack(f"<{x.ndim}i", *reversed(x.shape)) + name.encode())
            f.write(np.ascontiguousarray(x, "<f2" if is_half else "<f4").tobytes())
