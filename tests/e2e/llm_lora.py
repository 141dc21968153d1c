#!/usr/bin/env python3
"""llm-lora on the built-in model: merged weights write what the adapter writes, and mistakes are named. llm_lora.py TOOLS MODEL

tests/numpy/lora.py compares the numbers."""
import json
import os
import random
import shutil
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


def model_folder(folder, **more):
    """A llama of one layer, in two files of bf16. Returns the tensors: name -> (rows, columns, numbers)."""
    os.makedirs(folder, exist_ok=True)
    r, layer = random.Random(3), "model.layers.0."
    shapes = {"model.embed_tokens": (64, 32), "model.norm": (32,), layer + "input_layernorm": (32,), layer + "post_attention_layernorm": (32,),
              **{f"{layer}self_attn.{n}_proj": (32, 32) for n in "qkvo"}, layer + "mlp.gate_proj": (48, 32), layer + "mlp.up_proj": (48, 32), layer + "mlp.down_proj": (32, 48)}
    parts = [{}, {}]
    for k, (name, shape) in enumerate(shapes.items()):
        n = shape[0] * (shape + (1,))[1]
        bits = [struct.unpack("<I", struct.pack("<f", r.gauss(0, 0.3)))[0] >> 16 for _ in range(n)]
        parts[k % 2][name + ".weight"] = ("BF16", shape, struct.pack(f"<{n}H", *bits))
    files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    for file, tensors in zip(files, parts):
        write_safetensors(f"{folder}/{file}", tensors)
    write_json(f"{folder}/model.safetensors.index.json", {"metadata": {}, "weight_map": {n: f for f, t in zip(files, parts) for n in t}})
    write_json(f"{folder}/config.json", {
        "architectures": ["LlamaForCausalLM"], "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 48, "tie_word_embeddings": True,
        "num_attention_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "hidden_act": "silu", **more})
    return {**parts[0], **parts[1]}


def numbers(path):
    """name -> (type, shape, bytes) of a file of safetensors."""
    with open(path, "rb") as f:
        data = f.read()
    n = int.from_bytes(data[:8], "little")
    return {k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0] : 8 + n + v["data_offsets"][1]]) for k, v in json.loads(data[8 : 8 + n]).items() if k != "__metadata__"}


def floats(tensor):
    """The numbers of a tensor of f32 or bf16: (type, shape, bytes)."""
    dtype, _, data = tensor
    if dtype == "F32":
        return struct.unpack(f"<{len(data) // 4}f", data)
    return struct.unpack(f"<{len(data) // 2}f", b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2)))


def share_of(before, after, a, b, scale):
    """How much of scale * B A is left in a weight."""
    rank, n_in = a[1]
    n_out = b[1][0]
    w, q, a, b = map(floats, (before, after, a, b))
    change = lost = 0
    for o in range(n_out):
        for i in range(n_in):
            d = scale * sum(b[o * rank + r] * a[r * n_in + i] for r in range(rank))
            change += d * d
            lost += (q[o * n_in + i] - w[o * n_in + i] - d) ** 2
    return change, lost


def kept(stored, merged, given, scales):
    """The line that llm-lora prints: {module: scale}."""
    all_change = all_lost = 0
    shares = {}
    for module, scale in scales.items():
        name, pair = f"model.layers.0.{module}", f"base_model.model.model.layers.0.{module}.lora_"
        change, lost = share_of(stored[name + ".weight"], merged[name + ".weight"], given[pair + "A.weight"], given[pair + "B.weight"], scale)
        shares[name + ".weight"] = max(0, 1 - lost / change)
        all_change, all_lost = all_change + change, all_lost + lost
    least = min(shares, key=shares.get)
    return f"rounding keeps {100 * max(0, 1 - all_lost / all_change):.1f} % of the change; the least, {100 * shares[least]:.1f} %, of {least}"


def folders():
    """Adapters go back to PEFT, and into the model's folder. tests/numpy/peft.py does that for all families."""
    stored = model_folder("llama", _model_name_or_path="read from a GGUF file")  # as transformers writes it
    os.makedirs("llama/1_Pooling")
    os.makedirs("given")
    for file in ("llama/1_Pooling/config.json", "llama/1_Pooling/model.safetensors", "llama/LICENSE", "llama/pytorch_model.bin", "llama/consolidated.safetensors"):
        with open(file, "w", encoding="utf-8") as f:
            f.write("text")
    r, given = random.Random(5), {}
    for module, n_in, n_out, rank in (("self_attn.q_proj", 32, 32, 2), ("mlp.down_proj", 48, 32, 3)):
        for half, shape in (("A", (rank, n_in)), ("B", (n_out, rank))):
            n = shape[0] * shape[1]
            given[f"base_model.model.model.layers.0.{module}.lora_{half}.weight"] = ("F32", list(shape), struct.pack(f"<{n}f", *(r.gauss(0, 0.3) for _ in range(n))))
    write_safetensors("given/adapter_model.safetensors", given)
    write_json("given/adapter_config.json", {"peft_type": "LORA", "r": 2, "lora_alpha": 8, "rank_pattern": {"down_proj": 3}})
    run(0, "", "llm-lora", "convert", "given", "--base", "llama", "-o", "given.gguf")
    run(0, "out/back: 2 modules", "llm-lora", "export", "given.gguf", "--base", "llama", "-o", "out/back", "--base-name", "some/llama")
    check(numbers("out/back/adapter_model.safetensors") == given, "an adapter does not come back from GGUF with its numbers")
    with open("out/back/adapter_config.json", encoding="utf-8") as f:
        config = json.load(f)
    wanted = {"peft_type": "LORA", "r": 2, "lora_alpha": 8, "rank_pattern": {"model.layers.0.mlp.down_proj": 3}, "alpha_pattern": {}, "base_model_name_or_path": "some/llama",
              "task_type": "CAUSAL_LM", "use_dora": False, "fan_in_fan_out": False, "bias": "none", "modules_to_save": None, "target_modules": ["q_proj", "down_proj"]}
    check({k: config[k] if k != "target_modules" else sorted(config[k], reverse=True) for k in wanted} == wanted, f"adapter_config.json: {config}")
    run(0, "", "llm-lora", "export", "given.gguf", "--base", "llama", "-o", "out/half/", "--type", "f16")
    check({t for t, *_ in numbers("out/half/adapter_model.safetensors").values()} == {"F16"}, "--type f16 writes other types")
    run(0, "into: 2 of 11 tensors changed", "llm-lora", "merge", "llama", "given.gguf=0.5", "-o", "into")
    again = run(0, "2 files with the weights as they were are left out, such as consolidated.safetensors", "llm-lora", "merge", "llama", "given.gguf:0.5", "-o", "again", "-t", "3")
    check("again" in again and sorted(os.listdir("into")) == sorted(set(os.listdir("llama")) - {"pytorch_model.bin", "consolidated.safetensors"}) and sorted(os.listdir("into/1_Pooling")) == ["config.json", "model.safetensors"],
          f"merging leaves {os.listdir('into')}")
    files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    merged = {k: v for file in files for k, v in numbers(f"into/{file}").items()}
    check(merged == {k: v for file in files for k, v in numbers(f"again/{file}").items()}, "merging depends on the number of threads")
    check(kept(stored, merged, given, {"self_attn.q_proj": 2, "mlp.down_proj": 4 / 3}) in again, f"llm-lora merge prints {again}")
    faint = run(0, "warning: rounding to the types of the tensors loses ", "llm-lora", "merge", "llama", "given.gguf:0.0002", "-o", "faint")
    few = {k: v for file in files for k, v in numbers(f"faint/{file}").items()}
    check(kept(stored, few, given, {"self_attn.q_proj": 0.0008, "mlp.down_proj": 0.0016 / 3}) in faint, f"llm-lora merge prints {faint}")
    changed = sorted(n for n in stored if merged[n][2] != stored[n][2])
    check(changed == ["model.layers.0.mlp.down_proj.weight", "model.layers.0.self_attn.q_proj.weight"], f"merging changes {changed}")
    for out, base in (("a.gguf", "llama"), ("b.gguf", "into")):
        run(0, "", "llm-convert", base, "-o", out, "--type", "bf16")
    for base, out in (("llama", "cancelled"), ("a.gguf", "cancelled.gguf")):  # changes that cancel are none, of which nothing is lost
        said = run(0, "2 of 11 tensors changed", "llm-lora", "merge", base, "given.gguf=0.7", "given.gguf=-0.5", "given.gguf=-0.2", "-o", out)
        check("rounding keeps" not in said, f"changes that cancel: {said}")
    run(0, "11 the same, 0 different", "llm-gguf", "diff", "a.gguf", "cancelled.gguf")
    run(0, "2 of 11 tensors changed", "llm-lora", "merge", "a.gguf", "given.gguf:0.5", "-o", "m.gguf")
    run(1, "11 the same, 0 different", "llm-gguf", "diff", "m.gguf", "b.gguf")  # they have other names
    run(0, "2 of 11 tensors changed", "llm-lora", "merge", "llama", "given.gguf", "-o", "from-folder.gguf")  # a file, by its name
    os.makedirs("llama/a/b/c/d/e/f")
    with open("llama/a/b/c/d/e/f/deep", "w", encoding="utf-8") as f:
        f.write("text")
    run(0, "2 of 11 tensors changed", "llm-lora", "merge", "llama", "given.gguf", "-o", "llama/inner")
    check(os.path.exists("llama/inner/a/b/c/d/e/f/deep"), "merging loses files of inner folders")
    check(not os.path.exists("llama/inner/inner"), "merging into a folder of the model's own copies the result into itself")
    shutil.rmtree("llama/inner")
    # mistakes
    os.mkfifo("llama/pipe")
    run(1, "llama/pipe: it is no file that can be read", "llm-lora", "merge", "llama", "given.gguf", "-o", "piped")
    os.remove("llama/pipe")
    os.symlink(".", "llama/1_Pooling/circle")
    run(1, "more than 16 folders within each other", "llm-lora", "merge", "llama", "given.gguf", "-o", "circle")
    os.remove("llama/1_Pooling/circle")
    run(2, "--base MODEL_FOLDER is missing", "llm-lora", "export", "given.gguf", "-o", "x")
    run(2, "-o PEFT_FOLDER is missing", "llm-lora", "export", "given.gguf", "--base", "llama")
    for out in (["llm-lora", "export", "given.gguf", "--base", "llama", "-o", "out/back"], ["llm-gguf", "extract", "given.gguf", ".", "--npy", "-o", "out/back"]):
        before = numbers("out/back/adapter_model.safetensors")
        run(1, "out/back is not empty: it has adapter_config.json; give a new folder, or empty it", *out)
        check(sorted(os.listdir("out/back")) == ["adapter_config.json", "adapter_model.safetensors"] and numbers("out/back/adapter_model.safetensors") == before, "a refused command changes the folder")
    run(1, "into is not empty: it has ", "llm-lora", "merge", "llama", "given.gguf", "-o", "into")
    run(1, "llama is the model's own folder; give another one", "llm-lora", "merge", "llama", "given.gguf", "-o", "llama")
    run(1, "llama is the model's own folder; give another one", "llm-lora", "export", "given.gguf", "--base", "llama", "-o", "./llama")
    run(1, "given.gguf: cannot make this folder", "llm-lora", "export", "given.gguf", "--base", "llama", "-o", "given.gguf")
    run(2, "--type is for GGUF files; the weights of a folder keep their type", "llm-lora", "merge", "llama", "given.gguf", "-o", "x", "--type", "f32")
    run(1, "the scale of given.gguf must be finite", "llm-lora", "merge", "llama", "given.gguf=1e999", "-o", "x")
    run(1, "a merged weight is NaN or infinite in bf16, in model.layers.0.", "llm-lora", "merge", "llama", "given.gguf=1e39", "-o", "infinite")
    os.makedirs("there")
    run(1, "a merged weight is NaN or infinite", "llm-lora", "merge", "llama", "given.gguf=1e39", "-o", "there")
    check(os.listdir("there") == [], f"a failed merge leaves {os.listdir('there')}")
    left = [name for name in os.listdir(".") if name in ("infinite", "piped", "circle") or "tmp-" in name]
    check(not left, f"failed merges leave {left}")
    run(0, "2 of 11 tensors changed", "llm-lora", "merge", "llama", "given.gguf", "-o", "there")
    run(0, "2 of 11 tensors changed", "llm-lora", "merge", "llama", "given.gguf", "-o", "there/../beside/")
    for name, shape, words in (("output.weight", (32, 64), "has a pair for output.weight, but the output of llama is its embedding"),
                               ("blk.0.attn_q.weight", (32, 48), "the pair of blk.0.attn_q.weight is for a matrix of [32, 48, 1], but that of llama has [32, 32, 1]"),
                               ("blk.7.attn_q.weight", (32, 32), "has a pair for blk.7.attn_q.weight, which is made from no weight of llama")):
        adapter("wrong.gguf", 1, {name: shape})
        run(1, words, "llm-lora", "export", "wrong.gguf", "--base", "llama", "-o", "x")
        run(1, words, "llm-lora", "merge", "llama", "wrong.gguf", "-o", "x")
    adapter("wrong.gguf", 1, {"blk.0.attn_q.weight": (32, 32)}, arch="qwen3")
    run(1, "wrong.gguf is for the architecture qwen3; llama has llama", "llm-lora", "export", "wrong.gguf", "--base", "llama", "-o", "x")
    with open("wrong.gguf", "wb") as f:
        f.write(gguf([("general.type", "string", "adapter"), ("adapter.type", "string", "lora"), ("general.architecture", "string", "llama")],
                     [("token_embd.weight.lora_a", "f32", (2, 64), bytes(512)), ("token_embd.weight.lora_b", "f32", (2, 32), bytes(256))]))
    run(1, "model.embed_tokens: PEFT has no form for this pair: the model also makes its output from this embedding", "llm-lora", "export", "wrong.gguf", "--base", "llama", "-o", "x")
    run(0, "1 of 11 tensors changed", "llm-lora", "merge", "llama", "wrong.gguf", "-o", "embedded")
    os.makedirs("empty")
    run(1, "config.json", "llm-lora", "export", "given.gguf", "--base", "empty", "-o", "x")
    run(1, "llama/config.json", "llm-lora", "export", "given.gguf", "--base", "llama/config.json", "-o", "x")
    check(not os.path.exists("x"), "a failure leaves a folder")


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
    # small changes, which the type of the weights cannot express
    adapter("faint.gguf", 1, q, number=0.001)
    run_tool("llm-lora", "merge", MODEL, "faint.gguf", "-o", "faint-q.gguf", said="rounding keeps 0.0 % of the change; the least, 0.0 %, of blk.1.attn_q.weight\n",
             has="warning: rounding to the types of the tensors loses 100.0 % of what the adapters change: --type f16 gives changed tensors a type with more digits, and --lora applies")
    run_tool("llm-lora", "merge", MODEL, "faint.gguf", "-o", "faint-f.gguf", "--type", "f32", said="rounding keeps 100.0 % of the change", lacks="warning")
    run_tool("llm-lora", "merge", MODEL, "faint.gguf", "-o", "faint-f.gguf", "--type", "f16", has="loses ", said="--type f32 gives changed tensors a type with all digits")
    run_tool("llm-lora", "merge", MODEL, "one.gguf", "-o", "q1.gguf", "-t", "1", said="rounding keeps 100.0 %", lacks="warning")
    run_tool("llm-lora", "merge", MODEL, "one.gguf=0", "-o", "q0.gguf", lacks="rounding")
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
folders()
os.chdir("/")
sys.exit(finish())
