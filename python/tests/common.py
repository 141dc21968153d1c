"""What the tests share. They test the package that Python finds; the variable LLM_CLI names the program to compare with."""
import importlib.util
import json
import os
import random
import struct
import subprocess
import unittest

CLI = os.environ.get("LLM_CLI", "")
STORY = "Once upon a time"

needs_cli = unittest.skipUnless(CLI, "the variable LLM_CLI does not name the program llm-cli")
needs_numpy = unittest.skipUnless(importlib.util.find_spec("numpy"), "this python has no numpy")


def cli_environment():
    """The variables for llm-cli: all but a sanitizer's library, which is for python alone."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def run_cli(*arguments: str) -> str:
    """What llm-cli prints, without the newline at its end."""
    done = subprocess.run([CLI, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False, env=cli_environment())
    if done.returncode:
        raise AssertionError(f"llm-cli {' '.join(arguments)}: {done.stderr.decode(errors='replace')[-500:]}")
    text = done.stdout.decode()
    return text[:-1] if text.endswith("\n") else text


def write_adapter(path):
    """A LoRA adapter for one weight of the built-in models, with random numbers."""

    def text(given):
        return struct.pack("<Q", len(given)) + given

    keys = ((b"general.type", b"adapter"), (b"adapter.type", b"lora"), (b"general.architecture", b"llama"))
    shapes = ((b"blk.1.attn_q.weight.lora_a", (128, 2)), (b"blk.1.attn_q.weight.lora_b", (2, 128)))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(keys))
    head += b"".join(text(key) + struct.pack("<I", 8) + text(value) for key, value in keys)
    for k, (name, shape) in enumerate(shapes):
        head += text(name) + struct.pack("<IQQIQ", 2, *shape, 0, k * 128 * 2 * 4)
    numbers = random.Random(1)
    data = b"".join(struct.pack("<f", numbers.gauss(0, 0.5)) for _ in range(2 * 128 * 2))
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + data)


def write_control_vector(path, n_embd=128, layers=range(1, 5), seed=1):
    """A control vector for the built-in models, with random numbers."""

    def text(given):
        return struct.pack("<Q", len(given)) + given

    numbers = random.Random(seed)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(layers), 1) + text(b"general.architecture") + struct.pack("<I", 8) + text(b"controlvector")
    data = b""
    for layer in layers:
        head += text(f"direction.{layer}".encode()) + struct.pack("<IQIQ", 1, n_embd, 0, len(data))
        data += b"".join(struct.pack("<f", numbers.gauss(0, 0.5)) for _ in range(n_embd))
        data += bytes(-len(data) % 32)
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32) + data)


def write_model_folder(folder):
    """A Hugging Face folder of the shape of the built-in models, of two layers of zeros in f16."""
    layer = {"input_layernorm": (128,), "post_attention_layernorm": (128,), "mlp.gate_proj": (352, 128), "mlp.up_proj": (352, 128), "mlp.down_proj": (128, 352)}
    layer.update({f"self_attn.{name}_proj": (128, 128) for name in "qkvo"})
    shapes = {"model.embed_tokens": (64, 128), "model.norm": (128,), **{f"model.layers.{k}.{name}": shape for k in (0, 1) for name, shape in layer.items()}}
    head, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        head[name + ".weight"] = {"dtype": "F16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(head).encode()
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + bytes(at))
    config = {"architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 128, "num_hidden_layers": 2, "intermediate_size": 352, "hidden_act": "silu"}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({**config, "num_attention_heads": 4, "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "tie_word_embeddings": True}, file)
