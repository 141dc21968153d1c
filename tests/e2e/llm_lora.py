#!/usr/bin/env python3
"""llm-lora on the built-in model: merged weights write what the adapter writes, and mistakes are named. llm_lora.py TOOLS MODEL

tests/numpy/lora.py compares the numbers."""
import json
import os
import random
import struct
import sys

from checks import TMP, check, finish, runner, write_json, write_safetensors
from gguf_file import gguf

BIN, MODEL = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
run_tool = runner(BIN)


def adapter(path, seed, names, alpha=None, arch="llama", kind="lora", rank=2, number=None):
    """Writes an adapter for weights: name -> (in, out), of random numbers or of one number."""
    r = random.Random(seed)
    keys = [("general.type", "string", "adapter"), ("adapter.type", "string", kind), ("general.architecture", "string", arch)]
    tensors = []
    for name, (n_in, n_out) in names.items():
        for half, shape in (("a", (n_in, rank)), ("b", (rank, n_out))):
            n = shape[0] * shape[1]
            data = struct.pack(f"<{n}f", *(r.gauss(0, 0.3) if number is None else number for _ in range(n)))
            tensors.append((f"{name}.lora_{half}", "f32", shape, data))
    with open(path, "wb") as f:
        f.write(gguf(keys + ([] if alpha is None else [("adapter.lora.alpha", "f32", alpha)]), tensors))


def run(code, words, tool, *args):
    return run_tool(tool, *args, code=code, said=words)


def convert():
    """Adapters keep the type of their numbers."""
    os.makedirs("base", exist_ok=True)
    write_json("base/config.json", {
        "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 32,
        "num_attention_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "hidden_act": "silu"})
    for dtype, size, name in (("F32", 4, "f32"), ("F16", 2, "f16"), ("BF16", 2, "bf16")):
        os.makedirs("numbers", exist_ok=True)
        zeros, stem = bytes(2 * 32 * size), "base_model.model.model.layers.0.self_attn.q_proj.lora_"
        write_safetensors("numbers/adapter_model.safetensors",
                          {stem + "A.weight": (dtype, [2, 32], zeros), stem + "B.weight": (dtype, [32, 2], zeros)})
        write_json("numbers/adapter_config.json", {"peft_type": "LORA", "r": 2, "lora_alpha": 2})
        run(0, "", "llm-lora", "convert", "numbers", "--base", "base", "-o", "numbers.gguf")
        types = json.loads(run(0, "", "llm-gguf", "show", "numbers.gguf", "--json"))["types"]
        check([(t["type"], t["tensors"]) for t in types] == [(name, 2)], f"an adapter of {dtype} becomes {types}")


def story(model, *more):
    return run(0, "", "llm-cli", "-m", model, "-p", "Once upon a time there was", "-n", "24", "--temp", "0", "-q", *more)


def main():
    q, up = {"blk.1.attn_q.weight": (128, 128)}, {"blk.3.ffn_up.weight": (128, 352), "output.weight": (128, 2048)}
    adapter("one.gguf", 1, q, alpha=4.0)
    adapter("two.gguf", 2, up)
    run(0, "", "llm-quantize", "--allow-requantize", "--pure", MODEL, "f32.gguf", "F32")
    run(0, "m.gguf: 3 of 47 tensors changed", "llm-lora", "merge", "f32.gguf", "one.gguf=0.5", "two.gguf:1.5", "-o", "m.gguf")
    wanted = story("f32.gguf", "--lora", "one.gguf:0.5,two.gguf:1.5")
    check(story("m.gguf") == wanted != story("f32.gguf"), f"the merged model writes {story('m.gguf')!r}, the model with adapters {wanted!r}")
    check("output.weight" in run(0, "", "llm-gguf", "m.gguf", "--tensors", "^output"), "the merged model has no matrix for the output")
    run(0, "", "llm-lora", "merge", MODEL, "one.gguf", "-o", "q.gguf")  # q8_0 stays q8_0
    check("~ blk.1.attn_q.weight" in run(1, "46 the same, 1 different", "llm-gguf", "diff", MODEL, "q.gguf"),
          "merging changes other tensors than those of the adapter")
    run(0, "nothing is wrong", "llm-gguf", "check", "one.gguf")
    run(0, "an adapter for llama, 1 pair, rank 2", "llm-lora", "show", "one.gguf")
    run(0, "alpha 4", "llm-lora", "show", "one.gguf")
    run(0, "", "llm-lora", "merge", "f32.gguf", "one.gguf", "-o", "n.gguf")
    run(0, "e.gguf: 1 pair, 100.00 %", "llm-lora", "extract", "f32.gguf", "n.gguf", "-o", "e.gguf", "-r", "2")
    check(story("n.gguf") == story("f32.gguf", "--lora", "e.gguf"), "an extracted adapter does not write what the tuned model writes")
    # a rank for which the products of two ranks would need hundreds of gigabytes; n: the norm of n ones
    for n_in, n_out, rank in ((1, 1, 300000), (300000, 1, 3), (2, 3, 100000), (1, 300000, 1)):
        adapter("rank.gguf", 1, {"blk.1.attn_q.weight": (n_in, n_out)}, rank=rank, number=1.0)
        run(0, f"norm {rank * (n_in * n_out) ** 0.5:.4g}", "llm-lora", "show", "rank.gguf")
    # mistakes
    adapter("nan.gguf", 1, q, number=float("nan"))
    run(0, "norm nan", "llm-lora", "show", "nan.gguf")
    run(0, "warning: 1 pair is of no use, because numbers of it are NaN or infinite: `llm-gguf check 'nan.gguf'` finds them", "llm-lora", "show", "nan.gguf")
    run(2, "-o: builtin:shapes is a built-in model, which cannot be written; a file is needed here, such as shapes.gguf", "llm-lora", "merge", "f32.gguf", "one.gguf", "-o", "builtin:shapes")
    with open("f32.gguf", "rb") as f, open("cut.gguf", "wb") as cut:
        cut.write(f.read(100000))
    with open("qwen3.gguf", "wb") as f:
        f.write(gguf([("general.architecture", "string", "qwen3")], []))
    os.mkdir("peft")
    with open("peft/adapter_config.json", "w", encoding="utf-8") as f:
        f.write("{}")
    adapter("other.gguf", 1, q, arch="gpt2")
    adapter("shape.gguf", 1, {"blk.1.attn_q.weight": (64, 128)})
    adapter("kind.gguf", 1, q, kind="control_vector")
    adapter("norm.gguf", 1, {"blk.1.attn_norm.weight": (128, 1)})
    for words, name in (("gpt2", "other.gguf"), ("does not fit", "shape.gguf"), ("is not a LoRA adapter", "kind.gguf"), ("blk.1.attn_norm.weight", "norm.gguf"),
                        ("is missing", MODEL), ("No such file", "none.gguf")):
        run(1, words, "llm-lora", "merge", "f32.gguf", name, "-o", "x.gguf")
    run(2, "'x' is not a number: the scale of one.gguf", "llm-lora", "merge", "f32.gguf", "one.gguf=x", "-o", "x.gguf")
    run(2, "'0.5x' is not a number", "llm-lora", "merge", "f32.gguf", "one.gguf:0.5x", "-o", "x.gguf")
    run(1, "a merged weight is NaN or infinite in q8_0, in rows 0 to ", "llm-lora", "merge", MODEL, "one.gguf=1e30", "-o", "x.gguf")  # finite, but not as a scale of f16
    run(1, "no matrix of n.gguf differs from that of n.gguf", "llm-lora", "extract", "n.gguf", "n.gguf", "-o", "x.gguf")
    run(1, "n.gguf has the architecture 'llama', qwen3.gguf 'qwen3'", "llm-lora", "extract", "n.gguf", "qwen3.gguf", "-o", "x.gguf")
    with open("nameless.gguf", "wb") as f:
        f.write(gguf([("general.name", "string", "x")], []))
    for pair in (["n.gguf", "nameless.gguf"], ["nameless.gguf", "n.gguf"]):
        run(1, "the key general.architecture is missing in nameless.gguf\n", "llm-lora", "extract", *pair, "-o", "x.gguf")
    run(1, "cut.gguf: the file is truncated", "llm-lora", "extract", "n.gguf", "cut.gguf", "-o", "x.gguf")
    for flag in ("-m", "--lora"):
        for words in ([flag, "x"], ["merge", flag, "x"]):
            run(2, f"there is no flag '{flag}': `llm-lora merge MODEL ADAPTER=SCALE -o OUT`", "llm-lora", *words)
    for words in (["merge", "f32.gguf", "peft", "-o", "x.gguf"], ["show", "peft"]):
        run(1, "peft is an adapter of PEFT; this makes a GGUF file of it: llm-lora convert 'peft'", "llm-lora", *words)
    for words in (["show", "one.gguf"], ["extract", "f32.gguf", "n.gguf", "-o", "e.gguf"]):
        check(max(map(len, run(0, "", "llm-lora", *words).split("\n"))) <= 80, f"llm-lora {words[0]} prints more than 80 columns")
    run(2, "-o OUT is missing", "llm-lora", "merge", "f32.gguf", "one.gguf")
    run(2, "an argument is missing", "llm-lora", "merge", "f32.gguf", "-o", "x.gguf")
    run(2, "did you mean 'merge'", "llm-lora", "marge")
    run(2, "--rank: '0' is neither", "llm-lora", "extract", "f32.gguf", "n.gguf", "-o", "x.gguf", "-r", "0")
    run(2, "--base MODEL_FOLDER is missing", "llm-lora", "convert", ".", "-o", "x.gguf")
    run(1, "No such file", "llm-lora", "convert", ".", "--base", ".", "-o", "x.gguf")
    check(not os.path.exists("x.gguf") and not [f for f in os.listdir(".") if "tmp-" in f], f"a failure leaves {os.listdir('.')}")


os.chdir(TMP.name)
main()
convert()
os.chdir("/")
sys.exit(finish())
