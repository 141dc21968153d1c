"""Writes what ears.py or eyes.py trained as GGUF files: matrices Q8_0, convolutions and positions F16, the rest F32.

    python3 export_senses.py --ears --work DIR --out words.gguf
    python3 export_senses.py --eyes --work DIR --out shapes.gguf --eye shapes-eye.gguf --template shapes.jinja
"""

import argparse
import json
import os
import struct

import numpy as np
import torch

import export
from export import ALIGN, BOOL, CONTROL, FLOAT, I32, NORMAL, STRING, U32, key

F16 = 1


def write(path, keys, tensors):
    """tensors: arrays of float32 by name, numpy order."""
    infos, data = b"", b""
    for name, w in tensors.items():
        w = np.asarray(w, np.float32)
        is_matrix = w.ndim == 2 and w.shape[1] % 32 == 0 and not name.endswith("position_embd.weight")
        kind = export.F32 if w.ndim == 1 else export.Q8_0 if is_matrix else F16
        infos += export.string(name) + struct.pack(f"<I{w.ndim}QIQ", w.ndim, *w.shape[::-1], kind, len(data))
        data += export.q8_0(w) if kind == export.Q8_0 else w.astype("<f4" if kind == export.F32 else "<f2").tobytes()
        data += bytes(-len(data) % ALIGN)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + infos
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % ALIGN) + data)
    print(f"{path}: {os.path.getsize(path)} bytes")


def general(arch, name):
    return [key("general.architecture", STRING, arch), key("general.name", STRING, name), key("general.author", STRING, "the project"),
            key("general.license", STRING, "CC0-1.0"), key("general.alignment", U32, ALIGN), key("general.file_type", U32, 7),
            key("general.quantization_version", U32, 2)]


def arrays(state):
    return {n: w.float().numpy() for n, w in state.items()}


def ears(args, state):
    import sounds
    c, w = state["config"], arrays(state["model"])
    for name in ("word.weight", "word.bias"):                        # of the training alone
        del w[name]
    shape = [("embedding_length", c["embd"]), ("feed_forward_length", c["ff"]), ("block_count", c["layers"]), ("decoder_block_count", c["dec_layers"]),
             ("attention.head_count", c["heads"]), ("context_length", c["context"]), ("audio.context_length", sounds.N_ROWS), ("audio.mel_count", 80),
             ("vocab_size", len(sounds.TOKENS)), ("decoder_start_token_id", sounds.START)]
    n_words = sounds.END
    keys = [*general("whisper", "words"), *(key("whisper." + k, U32, v) for k, v in shape), key("whisper.multilingual", BOOL, False),
            key("whisper.suppress_tokens", I32, [sounds.SILENT]), key("tokenizer.ggml.model", STRING, "gpt2"), key("tokenizer.ggml.pre", STRING, "llama-bpe"),
            # by this pre-tokenizer a word is a token, without merges
            key("tokenizer.ggml.tokens", STRING, sounds.TOKENS), key("tokenizer.ggml.token_type", I32, [NORMAL] * n_words + [CONTROL] * (len(sounds.TOKENS) - n_words)),
            key("tokenizer.ggml.merges", STRING, []), key("tokenizer.ggml.eos_token_id", U32, sounds.END), key("tokenizer.ggml.add_bos_token", BOOL, False)]
    write(args.out, keys, w)


def eyes(args, state):
    import eyes as trained
    c, e, w = state["config"], state["eye"], arrays(state["model"])
    with open(os.path.join(args.work, "bpe.json"), encoding="utf-8") as f:
        bpe = json.load(f)
    with open(args.template, encoding="utf-8") as f:
        template = f.read().rstrip("\n")
    tokens, n_control = bpe["tokens"], len(trained.CONTROL)
    end = tokens.index("<|end|>")
    shape = [("vocab_size", c["vocab"]), ("context_length", c["context"]), ("embedding_length", c["embd"]), ("block_count", c["layers"]),
             ("feed_forward_length", c["ff"]), ("attention.head_count", c["heads"]), ("attention.head_count_kv", c["kv_heads"]), ("rope.dimension_count", c["head"])]
    keys = [*general("llama", "shapes"), key("general.max_images", U32, 1), *(key("llama." + k, U32, v) for k, v in shape), key("llama.attention.layer_norm_rms_epsilon", FLOAT, c["eps"]),
            key("llama.rope.freq_base", FLOAT, c["rope_base"]), key("tokenizer.ggml.model", STRING, "gpt2"), key("tokenizer.ggml.pre", STRING, bpe["pre"]),
            key("tokenizer.ggml.tokens", STRING, tokens), key("tokenizer.ggml.token_type", I32, [NORMAL] * (len(tokens) - n_control) + [CONTROL] * n_control),
            key("tokenizer.ggml.merges", STRING, [" ".join(m) for m in bpe["merges"]]), key("tokenizer.ggml.bos_token_id", U32, tokens.index("<|endoftext|>")),
            key("tokenizer.ggml.eos_token_id", U32, end), key("tokenizer.ggml.eot_token_id", U32, end), key("tokenizer.ggml.add_bos_token", BOOL, False),
            key("tokenizer.chat_template", STRING, template)]
    write(args.out, keys, {n[5:]: x for n, x in w.items() if n.startswith("text.")})

    n = e["n"]
    eye = {"v.patch_embd.weight": w["eye.patch_embd.weight"].reshape(n, 3, trained.PATCH, trained.PATCH), "v.patch_embd.bias": w["eye.patch_embd.bias"],
           "v.position_embd.weight": w["eye.position_embd"]}
    eye |= {"v." + k[4:]: x for k, x in w.items() if k.startswith(("eye.blk.", "eye.post_ln."))}
    eye |= {f"mm.{k}.{part}": w[f"eye.mm{k}.{part}"] for k in (0, 2) for part in ("weight", "bias")}
    shape = [("image_size", trained.SIDE), ("patch_size", trained.PATCH), ("embedding_length", n), ("feed_forward_length", e["ff"]), ("block_count", e["layers"]),
             ("attention.head_count", e["heads"]), ("projection_dim", c["embd"])]
    keys = [*general("clip", "shapes-eye"), key("general.type", STRING, "mmproj"), key("clip.has_vision_encoder", BOOL, True), key("clip.projector_type", STRING, "mlp"),
            key("clip.use_gelu", BOOL, True), *(key("clip.vision." + k, U32, v) for k, v in shape), key("clip.vision.attention.layer_norm_epsilon", FLOAT, 1e-5),
            key("clip.vision.feature_layer", I32, [e["layers"]]), key("clip.vision.image_fit", STRING, "pad"),
            key("clip.vision.image_resample", STRING, "pil_cubic"), key("clip.vision.image_mean", FLOAT, [0.5] * 3), key("clip.vision.image_std", FLOAT, [0.5] * 3)]
    write(args.eye, keys, eye)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    kind = ap.add_mutually_exclusive_group(required=True)
    kind.add_argument("--ears", dest="make", action="store_const", const=ears)
    kind.add_argument("--eyes", dest="make", action="store_const", const=eyes)
    ap.add_argument("--work", required=True, help="folder with ckpt.pt")
    ap.add_argument("--out", required=True)
    ap.add_argument("--eye")
    ap.add_argument("--template")
    args = ap.parse_args()
    state = torch.load(os.path.join(args.work, "ckpt.pt"), map_location="cpu")
    print(f"step {state['step']}, {state['spent'] / 60:.0f} minutes of training")
    args.make(args, state)


if __name__ == "__main__":
    main()
