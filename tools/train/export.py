"""Writes a checkpoint and its tokenizer as one GGUF file (version 3); FAMILIES lists the contents of each family's file.

    python3 export.py --work DIR --out model.gguf          matrices Q8_0, norms F32
    python3 export.py --work DIR --out model.gguf --f32    everything F32

Layout: header, keys, tensor infos, padding to 32, then each tensor's data at a multiple of 32. A matrix of
shape (rows, columns) has ne = {columns, rows}. Q8_0 stores 32 neighbours of a row in 34 bytes: a half-float
d = max|x| / 127 and 32 signed bytes round(x / d).
"""

import argparse
import json
import os
import struct
from dataclasses import dataclass, field

import numpy as np
import torch

ALIGN = 32
U32, I32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9              # value kinds of GGUF keys
F32, Q8_0 = 0, 8                                                   # tensor types
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6                          # token types
PACK = {U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<?"}


def string(s):
    data = s.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def value(kind, x):
    return string(x) if kind == STRING else struct.pack(PACK[kind], x)


def key(name, kind, x):
    if isinstance(x, list):
        body = struct.pack("<IQ", kind, len(x)) + b"".join(value(kind, v) for v in x)
        return string(name) + struct.pack("<I", ARRAY) + body
    return string(name) + struct.pack("<I", kind) + value(kind, x)


def q8_0(x):
    """x: (rows, columns) float32, columns a multiple of 32."""
    x = np.ascontiguousarray(x, np.float32).reshape(-1, 32)
    d = np.abs(x).max(1) / np.float32(127)
    inverse = np.where(d > 0, 1 / np.where(d > 0, d, 1), 0).astype(np.float32)
    y = x * inverse[:, None]
    out = np.empty(len(x), np.dtype([("d", "<f2"), ("q", "i1", 32)]))
    out["d"] = d
    out["q"] = np.trunc(y + np.copysign(np.float32(0.5), y))       # halves away from zero
    return out.tobytes()


def tokenizer_spm(folder):
    """The keys of a SentencePiece tokenizer, and the number of its tokens."""
    import sentencepiece as spm                                      # only this kind needs it
    sp = spm.SentencePieceProcessor(model_file=os.path.join(folder, "tokenizer.model"))
    pieces, scores, kinds = [], [], []
    for i in range(sp.get_piece_size()):
        pieces.append(sp.id_to_piece(i))
        scores.append(sp.get_score(i))
        kinds.append(UNKNOWN if sp.is_unknown(i) else CONTROL if sp.is_control(i) else
                     BYTE if sp.is_byte(i) else NORMAL)
    return [
        key("tokenizer.ggml.model", STRING, "llama"), key("tokenizer.ggml.pre", STRING, "default"),
        key("tokenizer.ggml.tokens", STRING, pieces), key("tokenizer.ggml.scores", FLOAT, scores),
        key("tokenizer.ggml.token_type", I32, kinds),
        key("tokenizer.ggml.bos_token_id", U32, 1), key("tokenizer.ggml.eos_token_id", U32, 2),
        key("tokenizer.ggml.unknown_token_id", U32, 0), key("tokenizer.ggml.add_bos_token", BOOL, True),
        key("tokenizer.ggml.add_eos_token", BOOL, False), key("tokenizer.ggml.add_space_prefix", BOOL, True),
    ], len(pieces)


def tokenizer_chat(tokens, template):
    """The keys of a tokenizer that tune.py extended by control tokens, and the number of its tokens."""
    with open(template, encoding="utf-8") as f:
        text = f.read().rstrip("\n")
    return [
        key("tokenizer.ggml.model", STRING, "llama"), key("tokenizer.ggml.pre", STRING, "default"),
        key("tokenizer.ggml.tokens", STRING, tokens["pieces"]), key("tokenizer.ggml.scores", FLOAT, tokens["scores"]),
        key("tokenizer.ggml.token_type", I32, tokens["kinds"]),
        key("tokenizer.ggml.bos_token_id", U32, 1), key("tokenizer.ggml.eos_token_id", U32, tokens["end"]),
        key("tokenizer.ggml.eot_token_id", U32, tokens["end"]),
        key("tokenizer.ggml.unknown_token_id", U32, 0), key("tokenizer.ggml.add_bos_token", BOOL, True),
        key("tokenizer.ggml.add_eos_token", BOOL, False), key("tokenizer.ggml.add_space_prefix", BOOL, True),
        key("tokenizer.chat_template", STRING, text),
    ], len(tokens["pieces"])


def tokenizer_bpe(folder):
    """The keys of a byte-level tokenizer, and the number of its tokens."""
    with open(os.path.join(folder, "bpe.json"), encoding="utf-8") as f:
        bpe = json.load(f)
    end = len(bpe["tokens"]) - 1                                     # <|endoftext|>
    return [
        key("tokenizer.ggml.model", STRING, "gpt2"), key("tokenizer.ggml.pre", STRING, bpe["pre"]),
        key("tokenizer.ggml.tokens", STRING, bpe["tokens"]),
        key("tokenizer.ggml.token_type", I32, [NORMAL] * end + [CONTROL]),
        key("tokenizer.ggml.merges", STRING, [" ".join(pair) for pair in bpe["merges"]]),
        key("tokenizer.ggml.bos_token_id", U32, end), key("tokenizer.ggml.eos_token_id", U32, end),
        key("tokenizer.ggml.add_bos_token", BOOL, False),
    ], end + 1


@dataclass
class Family:
    tokenizer: callable
    keys: list             # (name without the architecture, kind, field of the configuration)
    block: list            # the tensors of a layer, in the file's order
    first: list = field(default_factory=lambda: ["token_embd.weight"])
    last: list = field(default_factory=lambda: ["output_norm.weight"])     # the output matrix is token_embd


def weights(names):
    """ "a b+" -> a.weight, b.weight, b.bias"""
    return [f"{n.rstrip('+')}.{part}" for n in names.split() for part in ("weight", "bias")[:1 + n.endswith("+")]]


SHAPE = [("context_length", U32, "context"), ("embedding_length", U32, "embd"), ("block_count", U32, "layers"),
         ("feed_forward_length", U32, "ff"), ("attention.head_count", U32, "heads")]
GROUPED = [*SHAPE, ("attention.head_count_kv", U32, "kv_heads"), ("attention.layer_norm_rms_epsilon", FLOAT, "eps")]
BASE = ("rope.freq_base", FLOAT, "rope_base")
FFN = "ffn_norm ffn_gate ffn_up ffn_down"
FAMILIES = {
    "llama": Family(
        tokenizer_spm, [("vocab_size", U32, "vocab"), *GROUPED, ("rope.dimension_count", U32, "head"), BASE],
        weights("attn_norm attn_q attn_k attn_v attn_output " + FFN)),
    "gpt2": Family(
        tokenizer_bpe, [*SHAPE, ("attention.layer_norm_epsilon", FLOAT, "eps")],
        weights("attn_norm+ attn_qkv+ attn_output+ ffn_norm+ ffn_up+ ffn_down+"),
        weights("token_embd position_embd"), weights("output_norm+")),
    "qwen2": Family(
        tokenizer_bpe, [*GROUPED, BASE],
        weights("attn_norm attn_q+ attn_k+ attn_v+ attn_output " + FFN)),
    "qwen3": Family(
        tokenizer_bpe, [*GROUPED, ("attention.key_length", U32, "head"), ("attention.value_length", U32, "head"), BASE],
        weights("attn_norm attn_q attn_k attn_v attn_q_norm attn_k_norm attn_output " + FFN)),
}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--work", required=True, help="folder with ckpt.pt")
    ap.add_argument("--data", help="folder with the tokenizer, tokenizer.model or bpe.json; default: --work")
    ap.add_argument("--out", required=True)
    ap.add_argument("--name", default="stories")
    ap.add_argument("--license", default="CC0-1.0")
    ap.add_argument("--author", default="the project")
    ap.add_argument("--template", help="chat template, for a model of tune.py")
    ap.add_argument("--f32", action="store_true")
    args = ap.parse_args()
    state = torch.load(os.path.join(args.work, "ckpt.pt"), map_location="cpu")
    cfg, tensors, arch = state["config"], state["model"], state.get("family", "llama")
    family = FAMILIES[arch]
    if "tokenizer" in state:
        tokens, vocab = tokenizer_chat(state["tokenizer"], args.template)
    else:
        tokens, vocab = family.tokenizer(args.data or args.work)
    assert vocab == cfg["vocab"]

    keys = [
        key("general.architecture", STRING, arch), key("general.name", STRING, args.name),
        key("general.author", STRING, args.author), key("general.license", STRING, args.license),
        key("general.alignment", U32, ALIGN), key("general.file_type", U32, 0 if args.f32 else 7),
        key("general.quantization_version", U32, 2),
        *(key(f"{arch}.{name}", kind, cfg[f]) for name, kind, f in family.keys), *tokens,
    ]
    names = [*family.first, *(f"blk.{n}.{t}" for n in range(cfg["layers"]) for t in family.block), *family.last]
    assert sorted(names) == sorted(tensors)
    infos, data = b"", b""
    for name in names:
        w = tensors[name].float().numpy()
        kind = F32 if args.f32 or w.ndim == 1 or name.startswith("position_embd") else Q8_0
        ne = w.shape[::-1]
        infos += string(name) + struct.pack(f"<I{len(ne)}QIQ", len(ne), *ne, kind, len(data))
        data += w.astype("<f4").tobytes() if kind == F32 else q8_0(w)
        data += bytes(-len(data) % ALIGN)

    head = b"GGUF" + struct.pack("<IQQ", 3, len(names), len(keys)) + b"".join(keys) + infos
    os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
    with open(args.out, "wb") as f:
        f.write(head + bytes(-len(head) % ALIGN) + data)
    print(f"{args.out}: step {state['step']}, {os.path.getsize(args.out)} bytes")


if __name__ == "__main__":
    main()
