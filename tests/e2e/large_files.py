#!/usr/bin/env python3
"""llm-convert and llm-quantize on a model of 320 MiB, of which the disk has little: memory stays small. large_files.py BIN-FOLDER"""
import json
import os
import struct
import sys
import tempfile

BIN = os.path.abspath(sys.argv[1])
LIMIT = 200  # MiB
WIDTH, FF, VOCAB = 256, 512, 655360
SHAPES = {"model.embed_tokens.weight": [VOCAB, WIDTH], "model.norm.weight": [WIDTH]}
SHAPES |= {f"model.layers.0.{name}.weight": shape for name, shape in (
    ("input_layernorm", [WIDTH]), ("post_attention_layernorm", [WIDTH]), ("self_attn.q_proj", [WIDTH, WIDTH]),
    ("self_attn.k_proj", [WIDTH, WIDTH]), ("self_attn.v_proj", [WIDTH, WIDTH]), ("self_attn.o_proj", [WIDTH, WIDTH]),
    ("mlp.gate_proj", [FF, WIDTH]), ("mlp.up_proj", [FF, WIDTH]), ("mlp.down_proj", [WIDTH, FF]))}
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH, "intermediate_size": FF, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": VOCAB, "rms_norm_eps": 1e-5, "max_position_embeddings": 512,
          "rope_theta": 10000.0, "tie_word_embeddings": True, "hidden_act": "silu", "torch_dtype": "bfloat16"}


def write_folder(folder):
    table, at = {}, 0
    for name, shape in SHAPES.items():
        n = 2
        for x in shape:
            n *= x
        table[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(table).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(CONFIG, f)


def run(*command):
    """Runs it in a process of its own, and returns its peak of resident memory in MiB."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.execv(os.path.join(BIN, command[0]), command)
    _, status, used = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"FAILED: {' '.join(command)}: status {status}")
    return used.ru_maxrss / 1024


fault = False
with tempfile.TemporaryDirectory() as folder:
    write_folder(folder)
    for command in (["llm-convert", "-q", folder, "-o", "a.gguf"], ["llm-convert", "-q", "--type", "f16", folder, "-o", "b.gguf"],
                    ["llm-quantize", "-q", "-t", "2", "a.gguf", "c.gguf", "Q8_0"], ["llm-quantize", "-q", "a.gguf", "c.gguf", "COPY"]):
        command = [os.path.join(folder, word) if word.endswith(".gguf") else word for word in command]
        used = run(*command)
        if used > LIMIT:
            print(f"FAILED: {' '.join(command)}: {used:.0f} MiB of resident memory")
            fault = True
sys.exit(fault)
