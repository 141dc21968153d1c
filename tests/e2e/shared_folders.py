#!/usr/bin/env python3
"""Folders with published config.json and tokenizers, and random weights of small shapes: opened directly, converted, quantized, measured, run.

shared_folders.py BIN-FOLDER    The folders come from hf/ of a folder in GGL_SHARED; exit code 77 if there is none.

Each folder of GGL_SHARED/hf keeps its config.json and tokenizer; only the sizes are reduced. Then the folder itself and the file that llm-convert
makes of it must give the same logits, to the last bit, also if both are quantized. Where there is a tokenizer, an importance matrix is collected, the
file is quantized with it, and llm-perplexity and llm-cli run the result."""
import json
import lzma
import os
import random
import shutil
import sys
import tempfile

from checks import check, finish, runner, write_json, write_safetensors

run = runner(os.path.abspath(sys.argv[1]))
HEADS, LAYERS = 4, 2
TOKENS = "3,17,29,5,11,38,7,7,20,1,33,14"
TEXT = "The quick brown fox jumps over the lazy dog, and then it sleeps until the sun is high. " * 24


# --- shapes ---------------------------------------------------------------------------------------------------------------------

def llama(c, n):
    """The tensors of Llama's family, by what config.json says; n: rows of a query's matrix and of a key's."""
    h, f, experts = c["hidden_size"], c["intermediate_size"], c.get("num_local_experts", 0)
    kind = c["model_type"]
    layer = {"input_layernorm.weight": [h], "post_attention_layernorm.weight": [h], "self_attn.o_proj.weight": [h, n[0]]}
    if kind == "phi3":
        layer |= {"self_attn.qkv_proj.weight": [n[0] + 2 * n[1], h], "mlp.gate_up_proj.weight": [2 * f, h], "mlp.down_proj.weight": [h, f]}
    else:
        for name, rows in (("q", n[0]), ("k", n[1]), ("v", n[1])):
            layer[f"self_attn.{name}_proj.weight"] = [rows, h]
            if kind == "qwen2":
                layer[f"self_attn.{name}_proj.bias"] = [rows]
    if kind == "mixtral":
        layer["block_sparse_moe.gate.weight"] = [experts, h]
        for e in range(experts):
            layer |= {f"block_sparse_moe.experts.{e}.w1.weight": [f, h], f"block_sparse_moe.experts.{e}.w2.weight": [h, f],
                      f"block_sparse_moe.experts.{e}.w3.weight": [f, h]}
    elif kind != "phi3":
        layer |= {"mlp.gate_proj.weight": [f, h], "mlp.up_proj.weight": [f, h], "mlp.down_proj.weight": [h, f]}
    if kind == "qwen3":
        layer |= {"self_attn.q_norm.weight": [n[0] // HEADS], "self_attn.k_norm.weight": [n[0] // HEADS]}
    if kind == "gemma2":
        layer |= {"pre_feedforward_layernorm.weight": [h], "post_feedforward_layernorm.weight": [h]}
    all_ = {"model.embed_tokens.weight": [c["vocab_size"], h], "model.norm.weight": [h]}
    if not c.get("tie_word_embeddings", kind == "gemma2"):
        all_["lm_head.weight"] = [c["vocab_size"], h]
    return all_ | {f"model.layers.{i}.{name}": shape for i in range(LAYERS) for name, shape in layer.items()}


def with_biases(shapes):
    """Each weight has a bias, as long as its rows are many; of a vector, the same."""
    return shapes | {name[:-len("weight")] + "bias": shape[:1] for name, shape in shapes.items()}


def gpt2(c):
    h = c["n_embd"]
    layer = {"ln_1.weight": [h], "ln_2.weight": [h], "attn.c_attn.weight": [h, 3 * h], "attn.c_proj.weight": [h, h], "mlp.c_fc.weight": [h, 4 * h],
             "mlp.c_proj.weight": [4 * h, h]}
    biases = {name[:-len("weight")] + "bias": shape[-1:] for name, shape in layer.items()}  # Conv1D: [in, out]
    return {"wte.weight": [c["vocab_size"], h], "wpe.weight": [c["n_positions"], h], "ln_f.weight": [h], "ln_f.bias": [h]} | {
        f"h.{i}.{name}": shape for i in range(LAYERS) for name, shape in (layer | biases).items()}


def bloom(c):
    h = c["hidden_size"]
    layer = {"input_layernorm.weight": [h], "post_attention_layernorm.weight": [h], "self_attention.query_key_value.weight": [3 * h, h],
             "self_attention.dense.weight": [h, h], "mlp.dense_h_to_4h.weight": [4 * h, h], "mlp.dense_4h_to_h.weight": [h, 4 * h]}
    rest = {"word_embeddings_layernorm.weight": [h], "ln_f.weight": [h]}
    return {"word_embeddings.weight": [c["vocab_size"], h]} | with_biases(
        rest | {f"h.{i}.{name}": shape for i in range(LAYERS) for name, shape in layer.items()})


def reduce(c, has_tokenizer):
    """Changes the sizes of config.json; returns the tensors' shapes."""
    if not has_tokenizer:
        c["vocab_size"] = 512
        c |= {key: 1 for key in ("bos_token_id", "eos_token_id", "pad_token_id") if c.get(key) is not None}
    h = 256 if c["vocab_size"] <= 32064 else 64  # rows of 256, for K types, where the vocabulary is not large
    d = h // HEADS
    if c["model_type"] == "gpt2":
        c |= {"n_embd": h, "n_head": HEADS, "n_layer": LAYERS}
        return gpt2(c)
    if c["model_type"] == "bloom":
        c |= {"hidden_size": h, "n_head": HEADS, "n_layer": LAYERS}
        return bloom(c)
    n_kv = HEADS if c["num_key_value_heads"] == c["num_attention_heads"] else HEADS // 2
    c |= {"hidden_size": h, "intermediate_size": 2 * h, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": n_kv}
    for key in ("head_dim", "query_pre_attn_scalar"):
        if key in c:
            c[key] = d
    for key in ("long_factor", "short_factor"):
        if key in (c.get("rope_scaling") or {}):
            c["rope_scaling"][key] = c["rope_scaling"][key][:d // 2]
    return llama(c, (HEADS * d, n_kv * d))


# --- files ----------------------------------------------------------------------------------------------------------------------

NUMBERS = bytes((0x3c, 0x3d, 0xbc, 0xbd)[i % 4] for i in range(256))  # the upper byte of BF16: 2^-7 to 2^-3, of both signs
FACTORS = bytes([0x3f]) * 256                                         # of norms: 1/2 to 2


def write_weights(path, shapes, seed):
    r = random.Random(seed)
    tensors = {}
    for name, shape in shapes.items():
        n = 1
        for x in shape:
            n *= x
        data = bytearray(r.randbytes(2 * n))
        norm = name.endswith("weight") and len(shape) == 1
        data[1::2] = bytes(data[1::2]).translate(FACTORS if norm else NUMBERS)
        tensors[name] = ("BF16", shape, data)
    write_safetensors(path, tensors)


def make_folder(source, folder):
    """Copies the files, and adds weights. Returns whether there is a tokenizer."""
    os.mkdir(folder)
    for name in os.listdir(source):
        path = os.path.join(source, name)
        if name.endswith(".index.json.xz") or name in ("tokens.json", "config.json"):
            continue
        if name.endswith(".xz"):
            with lzma.open(path) as f, open(os.path.join(folder, name[:-3]), "wb") as to:
                shutil.copyfileobj(f, to)
        else:
            shutil.copyfile(path, os.path.join(folder, name))
    with open(os.path.join(source, "config.json"), encoding="utf-8") as f:
        c = json.load(f)
    names = os.listdir(folder)
    tokenizer = "tokenizer.json" in names or "vocab.json" in names
    shapes = reduce(c, tokenizer)
    write_json(os.path.join(folder, "config.json"), c)
    write_weights(os.path.join(folder, "model.safetensors"), shapes, os.path.basename(source))
    return tokenizer


# --- checks ---------------------------------------------------------------------------------------------------------------------

def logits(model, out, *more):
    run("llm-cli", "-m", model, *more, "--tokens", TOKENS, "-n", "0", "-c", "64", "-t", "2", "--logits", out)
    with open(out, "rb") as f:
        return f.read()


def check_folder(source, tmp):
    name = os.path.basename(source)
    folder, model, small, npy, matrix, text = (os.path.join(tmp, name + end) for end in ("", ".gguf", "-q4.gguf", ".npy", ".imatrix.gguf", ".txt"))
    tokenizer = make_folder(source, folder)
    run("llm-convert", "-q", folder, "-o", model)
    direct = logits(folder, npy)
    check(len(direct) > 1000, name + ": no logits")
    check(direct == logits(model, npy), name + ": the folder has other logits than its file")
    run("llm-quantize", "-q", "--no-search", model, small, "Q4_K_M")
    quantized = logits(small, npy)
    check(quantized != direct, name + ": quantizing changes nothing")
    check(quantized == logits(folder, npy, "--type", "q4_k_m"), name + ": --type q4_k_m has other logits than llm-quantize")
    if tokenizer:
        with open(text, "w", encoding="utf-8") as f:
            f.write(TEXT)
        run("llm-imatrix", "-q", "-m", folder, "-f", text, "-c", "64", "-o", matrix)
        run("llm-quantize", "-q", "--imatrix", matrix, model, small, "IQ3_S")
        of_folder, of_file, of_small = (json.loads(run("llm-perplexity", "-m", m, "-f", text, "-c", "64", "-o", "json"))["ppl"] for m in (folder, model, small))
        check(of_folder == of_file and of_small > 1 and of_small != of_file, name + ": perplexity", (of_folder, of_file, of_small))
        run("llm-cli", "-q", "-m", small, "-p", "The quick", "-n", "8", "--temp", "0")
    for path in (model, small, npy, matrix, text):
        if os.path.exists(path):
            os.unlink(path)
    shutil.rmtree(folder)
    print(name, "with its tokenizer" if tokenizer else "without a tokenizer")


def check_checkpoint(models, tmp):
    """llama2.c's published checkpoint: the same logits as the file that others have made of it."""
    source, known = os.path.join(models, "stories260K.bin"), os.path.join(models, "stories260K-f32.gguf")
    model, npy = os.path.join(tmp, "c.gguf"), os.path.join(tmp, "c.npy")
    run("llm-convert", "-q", source, "-o", model)
    direct = logits(source, npy)
    check(direct == logits(model, npy) == logits(known, npy), "stories260K.bin has other logits than its file, or than the known one")
    print("stories260K.bin")


shared = next((f for f in os.environ.get("GGL_SHARED", "").split(":") if f and os.path.isdir(os.path.join(f, "hf"))), None)
if not shared:
    print("skipped: published folders: not part of the repository, and found in no folder GGL_SHARED")
    sys.exit(77)
with tempfile.TemporaryDirectory() as tmp:
    for entry in sorted(os.scandir(os.path.join(shared, "hf")), key=lambda e: e.name):
        if entry.is_dir():
            check_folder(entry.path, tmp)
    if os.path.exists(os.path.join(shared, "models/stories260K.bin")):
        check_checkpoint(os.path.join(shared, "models"), tmp)
sys.exit(finish())
