#!/usr/bin/env python3
"""Models that read a text and write another, as users of llm-cli run them: a small Marian, as a folder with its tokenizer.

reads_text.py TOOLS    TOOLS: the folder of the programs"""
import json
import random
import struct
import sys

from checks import TMP, check, finish, path, put, runner, write_json, write_safetensors
from encoder_file import read_npy
from sentencepiece import SOURCE, TOKENS, UNIGRAM, model

run = runner(sys.argv[1], cwd=TMP.name)

N, N_FF, N_LAYER, PAD = 16, 24, 1, len(TOKENS) - 1


def folder():
    """Writes a small Marian with random weights."""
    rng, tensors = random.Random(6), {}

    def add(name, *shape, centre=0.0):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[name] = ("F32", list(shape), struct.pack(f"<{n}f", *(rng.gauss(centre, 0.4) for _ in range(n))))

    def norm(name):
        add(name + ".weight", N, centre=1.0)
        add(name + ".bias", N)

    add("model.shared.weight", len(TOKENS), N)
    add("final_logits_bias", 1, len(TOKENS))
    for side in ("encoder", "decoder"):
        for l in range(N_LAYER):
            p = f"model.{side}.layers.{l}."
            for part in ("self_attn", "encoder_attn") if side == "decoder" else ("self_attn",):
                norm(f"{p}{part}_layer_norm")
                for w in "qkv":
                    add(f"{p}{part}.{w}_proj.weight", N, N)
                    add(f"{p}{part}.{w}_proj.bias", N)
                add(f"{p}{part}.out_proj.weight", N, N)
                add(f"{p}{part}.out_proj.bias", N)
            norm(p + "final_layer_norm")
            for w, rows, columns in (("fc1", N_FF, N), ("fc2", N, N_FF)):
                add(f"{p}{w}.weight", rows, columns)
                add(f"{p}{w}.bias", rows)
    put("marian/source.spm", model(SOURCE, UNIGRAM, remove=1))
    write_safetensors(path("marian/model.safetensors"), tensors)
    write_json(path("marian/vocab.json"), {t: i for i, t in enumerate(TOKENS)})
    write_json(path("marian/config.json"), {
        "architectures": ["MarianMTModel"], "model_type": "marian", "activation_function": "swish", "d_model": N, "vocab_size": len(TOKENS),
        "encoder_layers": N_LAYER, "decoder_layers": N_LAYER, "encoder_ffn_dim": N_FF, "decoder_ffn_dim": N_FF, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "max_position_embeddings": 32, "scale_embedding": True, "decoder_start_token_id": PAD, "pad_token_id": PAD,
        "eos_token_id": 0, "bos_token_id": 0})


def cli(*args, **more):
    return run("llm-cli", "-m", "marian.gguf", *args, **more)


def answers():
    """What is written for a text is what each step's logits say, of the tokens that its pieces have."""
    read = json.loads(run("llm-tokenize", "-m", "marian.gguf", "--ids", "-p", "banana b"))
    said = json.loads(cli("-p", "banana b", "-n", "6", "--temp", "0", "--json-output"))
    ids, written = said["ids"], [PAD]
    for token in ids:
        cli("--encode-tokens", ",".join(map(str, read)), "--tokens", ",".join(map(str, written)), "-n", "0", "--logits", "l.npy")
        rows = read_npy(path("l.npy"))[2]
        check(len(rows) == len(written), f"{len(rows)} rows for {written}")
        check(rows[-1].index(max(rows[-1])) == token, f"{token} after {written} is not the likeliest", rows[-1])
        check(all(row[PAD] == float("-inf") for row in rows), "padding could be written", rows)
        written.append(token)
    check(ids and PAD not in ids, "no answer", ids)
    check(said["text"] == run("llm-tokenize", "-m", "marian.gguf", "--decode", ",".join(map(str, [t for t in ids if t]))).lstrip("\n"), "another text", said)
    # the prompt is the text to read: of the answer one token runs
    cli("-p", "banana b", "-n", "0", "--logits", "l.npy")
    check(len(read_npy(path("l.npy"))[2]) == 1, "rows of a text that is read")
    first = json.loads(cli("-p", "banana b", "-n", "3", "--temp", "2", "-s", "1", "--json-output", "--override-kv", "marian.forced_bos_token_id=int:5"))
    check(first["ids"][0] == 5, "another first token", first["ids"])


if __name__ == "__main__":
    folder()
    run("llm-convert", "marian", "-o", "marian.gguf")
    answers()
    sys.exit(finish())
