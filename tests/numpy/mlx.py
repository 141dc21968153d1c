"""MLX folders: a Llama of random weights, quantized here as MLX does it, compared with the folder of the numbers that the codes stand for.

mlx.py --tools FOLDER [--cli FILE --dir FOLDER]    the folder of the programs; the others are for the form of these tests' commands"""
import argparse, os, pathlib, sys

import numpy as np

import gguf
from block_types import numbers_of

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
from checks import check, finish, path, runner, write_json, write_safetensors  # noqa: E402

PARSER = argparse.ArgumentParser()
for option in ("--tools", "--cli", "--dir"):
    PARSER.add_argument(option)
run = runner(PARSER.parse_args().tools)
DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB = 128, 256, 2, 4, 2, 96
KV = DIM // HEADS * KV_HEADS
LAYER = {"input_layernorm": [DIM], "self_attn.q_proj": [DIM, DIM], "self_attn.k_proj": [KV, DIM], "self_attn.v_proj": [KV, DIM],
         "self_attn.o_proj": [DIM, DIM], "post_attention_layernorm": [DIM], "mlp.gate_proj": [HIDDEN, DIM], "mlp.up_proj": [HIDDEN, DIM],
         "mlp.down_proj": [DIM, HIDDEN]}
CONFIG = {"architectures": ["LlamaForCausalLM"], "vocab_size": VOCAB, "hidden_size": DIM, "num_hidden_layers": LAYERS,
          "intermediate_size": HIDDEN, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-5,
          "rope_theta": 10000.0, "max_position_embeddings": 64, "hidden_act": "silu", "tie_word_embeddings": False}


# --- folders --------------------------------------------------------------------------------------------------------------------

def rounded(x, dtype):
    """f32 numbers that the type holds."""
    if dtype == "F16":
        return x.astype(np.float16).astype(np.float32)
    if dtype == "BF16":
        bits = x.astype(np.float32).view(np.uint32)
        return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)
    return x.astype(np.float32)


def stored(x, dtype):
    if dtype == "BF16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return x.astype(np.float16 if dtype == "F16" else np.float32).tobytes()


def weights():
    rng = np.random.default_rng(5)
    names = {"model.embed_tokens": [VOCAB, DIM], "model.norm": [DIM], "lm_head": [VOCAB, DIM]}
    for k in range(LAYERS):
        names.update({f"model.layers.{k}.{name}": shape for name, shape in LAYER.items()})
    return {name: (rng.uniform(-0.2, 0.2, shape) if len(shape) > 1 else 1 + rng.uniform(-0.1, 0.1, shape)).astype(np.float32)
            for name, shape in names.items()}


def quantize(x, bits, group, dtype):
    """Codes [rows, columns], and scales and biases [rows, columns / group]: even steps between the least and the largest of a group."""
    g = x.reshape(*x.shape[:-1], -1, group)
    low, high = g.min(-1), g.max(-1)
    scale = rounded((high - low) / (2 ** bits - 1), dtype)
    bias = rounded(low, dtype)
    codes = np.clip(np.rint((g - bias[..., None]) / scale[..., None]), 0, 2 ** bits - 1).astype(np.uint32)
    return codes.reshape(x.shape), scale, bias


def packed(codes, bits):
    """A stream of bits from the lowest bit of the first byte on, as 32-bit words."""
    stream = (codes[..., None] >> np.arange(bits, dtype=np.uint32) & 1).astype(np.uint8)
    return np.packbits(stream.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


def numbers(codes, scale, bias, group):
    g = codes.reshape(*codes.shape[:-1], -1, group).astype(np.float32)
    return (scale[..., None] * g + bias[..., None]).astype(np.float32).reshape(codes.shape)


def write(name, tensors, config):
    os.makedirs(path(name), exist_ok=True)
    write_safetensors(path(name + "/model.safetensors"), tensors)
    write_json(path(name + "/config.json"), config)
    return path(name)


def apart(name, x):
    """The tensors of the original folder that MLX stacked: names and numbers, one for each expert."""
    if x.ndim < 3:
        return [(name, x)]
    before, after = name.split("switch_mlp.")
    if "block_sparse_moe" in before:
        after = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}[after]
    return [(f"{before}experts.{e}.{after}", x[e]) for e in range(x.shape[0])]


def make(w, form, dtype, own=None, change=None, config=CONFIG):
    """The folder "mlx", quantized, and the folder "plain", with the numbers in f32. form(name): (bits, group) of a matrix."""
    mlx, plain = {}, {}
    for name, x in w.items():
        if x.ndim == 1:
            mlx[name + ".weight"] = (dtype, x.shape, stored(rounded(x, dtype), dtype))
            x = rounded(x, dtype)
        else:
            bits, group = form(name)
            codes, scale, bias = quantize(x, bits, group, dtype)
            words = packed(codes, bits)
            mlx[name + ".weight"] = ("U32", (*x.shape[:-1], words.shape[-1] // 4), words.tobytes())
            mlx[name + ".scales"] = (dtype, scale.shape, stored(scale, dtype))
            mlx[name + ".biases"] = (dtype, bias.shape, stored(bias, dtype))
            x = numbers(codes, scale, bias, group)
        plain.update({key + ".weight": ("F32", one.shape, one.tobytes()) for key, one in apart(name, x)})
    bits, group = form("")
    quantization = {"group_size": group, "bits": bits, **(own or {})}
    if change:
        change(mlx, quantization)
    return (write("mlx", mlx, {**config, "quantization": quantization, "quantization_config": quantization}),
            write("plain", plain, config))


# --- files ----------------------------------------------------------------------------------------------------------------------

def tensors(file):
    """The types and the numbers of a GGUF file's tensors."""
    return {name: (t.kind, numbers_of(t)) for name, t in gguf.read_blocks(file)[1].items()}


# --- the tests ------------------------------------------------------------------------------------------------------------------

def compare(w, form, dtype, kind, note, own=None, config=CONFIG):
    """Converts both folders. kind: the type of all matrices, whose numbers must be the same, or, of f16 and bf16, the nearest."""
    what = f"{config['architectures'][0]} {form('')} {dtype}"
    mlx, plain = make(w, form, dtype, own, config=config)
    run("llm-convert", mlx, "-o", path("mlx.gguf"), has=note)
    run("llm-convert", plain, "-o", path("plain.gguf"))
    got, want = tensors(path("mlx.gguf")), tensors(path("plain.gguf"))
    check(sorted(got) == sorted(want), what + ": other tensors")
    for name, (one, x) in got.items():
        y = want[name][1]
        if "norm" in name or "ffn_gate_inp" in name:
            check(one == 0 and np.array_equal(x, y), f"{what}: {name}")
            continue
        check(one == kind, f"{what}: {name} has type {one}")
        check(np.array_equal(x, y if kind in (0, 3, 7) else rounded(y, "F16" if kind == 1 else "BF16")), f"{what}: {name} differs")
    run("llm-convert", mlx, "-o", path("f32.gguf"), "--type", "f32")
    check(run("llm-gguf", "hash", path("f32.gguf")).replace("f32.gguf", "") == run("llm-gguf", "hash", path("plain.gguf")).replace("plain.gguf", "")
          or all(np.array_equal(a[1], b[1]) for a, b in zip(tensors(path("f32.gguf")).values(), want.values())), what + ": f32 differs")


def test_bits(w):
    for bits, group, dtype, kind, note in (
            (4, 64, "F16", 3, "16 tensors of 4-bit codes: q4_1, without loss"), (4, 32, "BF16", 3, "q4_1, without loss"),
            (4, 128, "BF16", 3, "without loss"), (2, 64, "F16", 3, "2-bit codes: q4_1, without loss"),
            (3, 64, "BF16", 3, "3-bit codes: q4_1, without loss"), (5, 32, "F16", 7, "5-bit codes: q5_1, without loss"),
            (5, 64, "BF16", 7, "without loss"), (6, 64, "BF16", 1, "6-bit codes: f16, the nearest type (relative error 0.000"),
            (8, 64, "F16", 1, "8-bit codes: f16, the nearest type"), (8, 32, "BF16", 1, "f16, the nearest"),
            (4, 64, "F32", 0, "4-bit codes: f32, without loss"), (8, 128, "F32", 0, "8-bit codes: f32, without loss")):
        compare(w, lambda name: (bits, group), dtype, kind, note)


def test_range(w):
    """Scales that f16 cannot hold: the numbers become bf16 or f16."""
    tiny = {k: x * 2.0 ** -14 if x.ndim > 1 else x for k, x in w.items()}
    compare(tiny, lambda name: (4, 64), "BF16", 30, "4-bit codes: bf16, the nearest type")
    huge = {k: x * 2.0 ** 20 if x.ndim > 1 else x for k, x in w.items()}
    compare(huge, lambda name: (4, 64), "BF16", 30, "4-bit codes: bf16, the nearest type")
    # one large group, which is not among those that are looked at first
    q = "model.layers.0.self_attn.q_proj"
    one = {k: x.copy() for k, x in w.items()}
    one[q][0, 64:] *= 2.0 ** 22
    mlx, plain = make(one, lambda name: (8, 64), "BF16")
    run("llm-convert", mlx, "-o", path("mlx.gguf"), has="1 tensor of 8-bit codes: bf16, the nearest type")
    run("llm-convert", plain, "-o", path("plain.gguf"))
    got, want = (tensors(path(f))["blk.0.attn_q.weight"] for f in ("mlx.gguf", "plain.gguf"))
    check(got[0] == 30 and np.array_equal(got[1], rounded(want[1], "BF16")), "a large group", got[0])


def test_mixed(w):
    """Tensors of their own form, as quantization with several bit widths writes them."""
    form = lambda name: (8, 32) if "embed" in name or "lm_head" in name else (4, 64)
    own = {name: {"group_size": 32, "bits": 8} for name in ("model.embed_tokens", "lm_head")}
    own["model.layers.0.mlp.up_proj"] = True
    mlx, plain = make(w, form, "BF16", own)
    run("llm-convert", mlx, "-o", path("mlx.gguf"), has="14 tensors of 4-bit codes: q4_1, without loss")
    run("llm-convert", mlx, "-o", path("mlx.gguf"), has="2 tensors of 8-bit codes: f16, the nearest type")
    run("llm-convert", plain, "-o", path("plain.gguf"))
    got, want = tensors(path("mlx.gguf")), tensors(path("plain.gguf"))
    for name, (kind, x) in got.items():
        check(np.array_equal(x, rounded(want[name][1], "F16") if kind == 1 else want[name][1]), f"mixed: {name}")


EXPERTS = 4


def stacked(w, block, router):
    """The same model with a router and stacked experts in place of each layer's feed forward."""
    rng = np.random.default_rng(6)
    w = {name: x for name, x in w.items() if ".mlp." not in name}
    for k in range(LAYERS):
        p = f"model.layers.{k}.{block}."
        shapes = {router: [EXPERTS, DIM], "switch_mlp.gate_proj": [EXPERTS, HIDDEN, DIM], "switch_mlp.up_proj": [EXPERTS, HIDDEN, DIM],
                  "switch_mlp.down_proj": [EXPERTS, DIM, HIDDEN]}
        w.update({p + name: rng.uniform(-0.2, 0.2, shape).astype(np.float32) for name, shape in shapes.items()})
    return w


def test_experts(w):
    """MLX has the experts of a layer in one tensor, under another name."""
    more = {"num_experts_per_tok": 2, "num_local_experts": EXPERTS}
    mixtral = {**CONFIG, **more, "architectures": ["MixtralForCausalLM"], "sliding_window": None}
    compare(stacked(w, "block_sparse_moe", "gate"), lambda name: (4, 64), "BF16", 3, "16 tensors of 4-bit codes: q4_1, without loss",
            config=mixtral)
    more = {"num_experts_per_tok": 2, "num_experts": EXPERTS, "moe_intermediate_size": HIDDEN, "norm_topk_prob": True,
            "head_dim": DIM // HEADS, "decoder_sparse_step": 1, "mlp_only_layers": []}
    qwen = {**CONFIG, **more, "architectures": ["Qwen3MoeForCausalLM"]}
    w = stacked(w, "mlp", "gate")
    w.update({f"model.layers.{k}.self_attn.{x}_norm": np.ones(DIM // HEADS, np.float32) for k in range(LAYERS) for x in "qk"})
    own = {f"model.layers.{k}.mlp.gate": {"group_size": 64, "bits": 8} for k in range(LAYERS)}  # as mlx-lm does
    compare(w, lambda name: (8, 64) if name.endswith("mlp.gate") else (5, 32), "F16", 7, "5-bit codes: q5_1, without loss", own, qwen)
    # one expert too few
    name = "model.layers.1.mlp.switch_mlp.up_proj"
    mlx, _ = make({**w, name: w[name][1:]}, lambda name: (4, 64), "F16", config=qwen)
    run("llm-convert", mlx, "-o", path("mlx.gguf"), code=1, has="blk.1.ffn_up_exps")


def test_mxfp4(w):
    """gpt-oss: MLX has MXFP4 in words, gates and ups apart; the published folder has blocks of bytes, in which they alternate."""
    rng = np.random.default_rng(7)
    config = {**{k: v for k, v in CONFIG.items() if k != "rms_norm_eps"}, "architectures": ["GptOssForCausalLM"], "rms_norm_eps": 1e-5,
              "head_dim": DIM // HEADS, "num_local_experts": EXPERTS, "num_experts_per_tok": 2, "sliding_window": 16,
              "layer_types": ["sliding_attention", "full_attention"], "attention_bias": True}
    both = {name + ".weight": ("F32", x.shape, x.tobytes()) for name, x in w.items() if ".mlp." not in name}
    mlx, plain = {}, {}

    def put(to, name, x, dtype):
        to[name] = (dtype, x.shape, x.tobytes())

    for k in range(LAYERS):
        p = f"model.layers.{k}."
        for name, n in (("q_proj", DIM), ("k_proj", KV), ("v_proj", KV), ("o_proj", DIM)):
            put(both, f"{p}self_attn.{name}.bias", rng.uniform(-0.1, 0.1, n).astype(np.float32), "F32")
        put(both, p + "self_attn.sinks", rng.uniform(-1, 1, HEADS).astype(np.float32), "F32")
        put(both, p + "mlp.router.weight", rng.uniform(-1, 1, (EXPERTS, DIM)).astype(np.float32), "F32")
        put(both, p + "mlp.router.bias", rng.uniform(-1, 1, EXPERTS).astype(np.float32), "F32")
        part = {}
        for name, rows, columns in (("gate", HIDDEN, DIM), ("up", HIDDEN, DIM), ("down", DIM, HIDDEN)):
            codes = rng.integers(0, 256, (EXPERTS, rows, columns // 2)).astype(np.uint8)
            part[name] = codes, rng.integers(118, 128, (EXPERTS, rows, columns // 32)).astype(np.uint8), \
                rng.uniform(-1, 1, (EXPERTS, rows)).astype(np.float32)
            put(mlx, f"{p}mlp.experts.{name}_proj.weight", np.ascontiguousarray(codes).view(np.uint32), "U32")
            put(mlx, f"{p}mlp.experts.{name}_proj.scales", part[name][1], "U8")
            put(mlx, f"{p}mlp.experts.{name}_proj.bias", part[name][2], "F32")
        part["gate_up"] = [np.stack([a, b], 2).reshape(EXPERTS, 2 * HIDDEN, *a.shape[2:]) for a, b in zip(part["gate"], part["up"])]
        for name in ("gate_up", "down"):
            codes, scales, bias = part[name]
            put(plain, f"{p}mlp.experts.{name}_proj_blocks", codes.reshape(*scales.shape, 16), "U8")
            put(plain, f"{p}mlp.experts.{name}_proj_scales", scales, "U8")
            put(plain, f"{p}mlp.experts.{name}_proj_bias", bias, "F32")
    form = {"group_size": 32, "bits": 4, "mode": "mxfp4"}
    folder = write("mlx", {**both, **mlx}, {**config, "quantization": form, "quantization_config": form})
    run("llm-convert", folder, "-o", path("mlx.gguf"))
    run("llm-convert", write("plain", {**both, **plain}, {**config, "quantization_config": {"quant_method": "mxfp4"}}), "-o", path("plain.gguf"))
    got, want = (tensors(path(f)) for f in ("mlx.gguf", "plain.gguf"))
    check(sorted(got) == sorted(want) and "blk.1.ffn_up_exps.weight" in got, "gpt-oss: other tensors", sorted(got))
    for name, (kind, x) in got.items():
        check(kind == want[name][0] and np.array_equal(x, want[name][1]), f"gpt-oss: {name} differs")
        check(kind == 39 or "exps.weight" not in name, f"gpt-oss: {name} has type {kind}")
    name = "model.layers.0.mlp.experts.up_proj.scales"
    short = {**both, **mlx, name: ("U8", (EXPERTS, HIDDEN, 2), b"x" * (EXPERTS * HIDDEN * 2))}
    run("llm-convert", write("mlx", short, {**config, "quantization": form}), "-o", path("mlx.gguf"), code=1, has="are not MLX's mxfp4")


def test_adapter(w):
    """An adapter becomes the same file with the quantized model's folder as with the original one."""
    rng = np.random.default_rng(8)
    mlx, plain = make(w, lambda name: (4, 64), "BF16")
    names = ["model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj"]

    def adapter(wider=0):
        pairs = {}
        for name in names:
            rows, columns = w[name].shape
            for half, shape in (("A", (4, columns + wider)), ("B", (rows, 4))):
                x = rng.uniform(-1, 1, shape).astype(np.float32)
                pairs[f"base_model.model.{name}.lora_{half}.weight"] = ("F32", shape, x.tobytes())
        folder = write("adapter", pairs, {})
        os.replace(folder + "/model.safetensors", folder + "/adapter_model.safetensors")
        os.remove(folder + "/config.json")
        write_json(folder + "/adapter_config.json",
                   {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "down_proj"], "bias": "none"})
        return folder

    folder = adapter()
    files = []
    for base in (mlx, plain):
        run("llm-convert", folder, "--base", base, "-o", path("adapter.gguf"))
        files.append(open(path("adapter.gguf"), "rb").read() if os.path.exists(path("adapter.gguf")) else base)
    check(files[0] == files[1], "the adapter for a quantized model differs")
    for base in (mlx, plain):
        run("llm-convert", adapter(wider=64), "--base", base, "-o", path("adapter.gguf"), code=1,
            has=f"is for a matrix of {DIM} rows of {DIM + 64}, but the model's has {DIM} of {DIM}")


def test_direct(w):
    """The folder opened directly tells what its file tells; --type quantizes its numbers."""
    mlx, _ = make(w, lambda name: (4, 64), "BF16")
    letters = [chr(33 + i) for i in range(VOCAB - 2)] + ["\u0120", "\u010a"]  # all ASCII, a space and a line feed as byte-level BPE spells them
    write_json(path("mlx/tokenizer.json"),
               {"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(letters)}, "merges": []}})
    with open(path("text"), "w") as f:
        f.write("some text of letters, twice. " * 12)
    run("llm-convert", mlx, "-o", path("mlx.gguf"))
    say = ["-p", "abc", "-n", "24", "--temp", "0", "-t", "2", "--ignore-eos"]
    check(run("llm-cli", "-m", mlx, *say) == run("llm-cli", "-m", path("mlx.gguf"), *say), "the folder and its file differ")
    measure = ["-f", path("text"), "-c", "32", "-t", "2"]
    one, two = (run("llm-perplexity", "-m", m, *measure).replace(m, "") for m in (mlx, path("mlx.gguf")))
    check("PPL" in one and one == two, "the perplexities differ", (one, two))
    os.remove(path("mlx/tokenizer.json"))
    # --type rounds the numbers of MLX's formula once, not first to f16
    mlx, _ = make(w, lambda name: (4, 64), "F16")
    run("llm-convert", mlx, "-o", path("numbers.gguf"), "--type", "f32")
    for kind in ("q4_k_m", "q8_0", "q4_1"):
        run("llm-quantize", "--no-search", path("numbers.gguf"), path("small.gguf"), kind)
        logits = []
        for model in ((mlx, "--type", kind), (path("small.gguf"),)):
            run("llm-cli", "-m", *model, "--tokens", "3,1,4,1,5,9,2,6", "-n", "0", "--logits", path("logits.npy"), lacks="quantized already")
            logits.append(np.load(path("logits.npy")))
        check(np.array_equal(*logits), f"{kind}: the logits of the folder and of its file differ", np.abs(logits[0] - logits[1]).max())


def test_fp8(w):
    """An FP8 folder with factors that bf16 does not hold: --type quantizes the numbers, not their roundings to bf16."""
    rng = np.random.default_rng(8)
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, codes & 7
    table = np.where(exponent > 0, (1 + fraction / 8) * 2.0 ** (exponent - 7.0), fraction / 8 * 2.0 ** -6) * np.where(codes > 127, -1, 1)
    fp8, plain = {}, {}
    for name, x in w.items():
        key = name + ".weight"
        if "proj" not in name:
            fp8[key] = ("F32", x.shape, x.tobytes())
            x = x.astype(np.float32)
        else:
            code = (rng.integers(0, 0x70, x.shape) | rng.integers(0, 2, x.shape) << 7).astype(np.uint8)
            factor = rng.uniform(0.001, 0.003, [-(-n // 64) for n in x.shape]).astype(np.float32)
            fp8[key], fp8[key + "_scale_inv"] = ("F8_E4M3", x.shape, code.tobytes()), ("F32", factor.shape, factor.tobytes())
            wide = np.repeat(np.repeat(factor, 64, 0), 64, 1)[: x.shape[0], : x.shape[1]]
            x = (table[code].astype(np.float32) * wide).astype(np.float32)
        plain[key] = ("F32", x.shape, x.tobytes())
    quantization = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [64, 64]}
    folder, exact = write("fp8", fp8, {**CONFIG, "quantization_config": quantization}), write("fp8-numbers", plain, CONFIG)
    run("llm-convert", folder, "-o", path("numbers.gguf"), "--type", "f32")
    run("llm-convert", folder, "-o", path("short.gguf"))
    for kind in ("q8_0", "q4_k_m", "q4_0"):
        logits = []
        for f in ("numbers.gguf", "short.gguf"):
            run("llm-quantize", "--no-search", path(f), path("small-" + f), kind)
        for model in ((folder, "--type", kind), (path("small-numbers.gguf"),), (exact, "--type", kind), (path("small-short.gguf"),)):
            run("llm-cli", "-m", *model, "--tokens", "3,1,4,1,5,9,2,6", "-n", "0", "--logits", path("logits.npy"))
            logits.append(np.load(path("logits.npy")))
        check(np.array_equal(logits[0], logits[1]), f"{kind}: the logits of the FP8 folder and of its f32 file differ")
        check(np.array_equal(logits[0], logits[2]), f"{kind}: the logits of the FP8 folder and of its numbers differ")
        check(not np.array_equal(logits[0], logits[3]), f"{kind}: the numbers were rounded to bf16")


def test_faults(w):
    four = lambda name: (4, 64)
    q = "model.layers.0.self_attn.q_proj"

    def wrong(change, words, code=1):
        mlx, _ = make(w, four, "F16", change=change)
        run("llm-convert", mlx, "-o", path("mlx.gguf"), code=code, has=words)

    wrong(lambda t, c: t.pop(q + ".scales"), "is missing")
    wrong(lambda t, c: t.pop(q + ".biases"), f"tensors {q}.weight, .scales and .biases are not MLX's")
    wrong(lambda t, c: c.update(bits=8), "rows of 8-bit codes in words")
    wrong(lambda t, c: c.update(group_size=32), "for each 32")
    wrong(lambda t, c: c.update(bits=7), "2, 3, 4, 5, 6 or 8 bits")
    wrong(lambda t, c: c.pop("group_size"), "no \"quantization\" with a group_size")
    wrong(lambda t, c: c.update(mode="nvfp4"), "but config.json has the mode nvfp4")
    wrong(lambda t, c: c.update(mode="trellis"), "the weights are quantized in a way that is not read")
    wrong(lambda t, c: c.update(quant_method="exl3"), "the weights are quantized in a way that is not read")
    kind, shape, data = "F16", (DIM, DIM // 64), b"\0\x7e" * (DIM * DIM // 64)
    wrong(lambda t, c: t.update({q + ".scales": (kind, shape, data)}), "weights are NaN or infinite")


if __name__ == "__main__":
    all_weights = weights()
    test_bits(all_weights)
    test_range(all_weights)
    test_mixed(all_weights)
    test_experts(all_weights)
    test_mxfp4(all_weights)
    test_adapter(all_weights)
    test_direct(all_weights)
    test_fp8(all_weights)
    test_faults(all_weights)
    sys.exit(finish())
