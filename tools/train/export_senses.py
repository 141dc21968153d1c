"""Writes what ears.py trained as a GGUF file: matrices Q8_0, convolutions and positions F16, the rest F32.

    python3 export_senses.py --work DIR --out words.gguf
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


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--work", required=True, help="folder with ckpt.pt")
    ap.add_argument("--out", required=True)
    args = ap.parse_args()
    state = torch.load(os.path.join(args.work, "ckpt.pt"), map_location="cpu")
    print(f"step {state['step']}, {state['spent'] / 60:.0f} minutes of training")
    ears(args, state)


if __name__ == "__main__":
    main()
