"""Folders of packed types (compressed-tensors, NVFP4, FP8, GPTQ, AWQ, bitsandbytes, BitNet, MLX): a Llama of random codes and factors in each form, whose
numbers are computed here by the forms' definitions. Its file has these numbers, in blocks of the same codes where a type has them.

packed.py --tools FOLDER [--cli FILE --dir FOLDER]    the folder of the programs; the others are for the form of these tests' commands"""
import argparse, json, os, pathlib, sys

import numpy as np

import gguf
from block_types import E2M1, e4m3, e8m0, numbers_of

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
from checks import check, finish, path, runner, write_json, write_safetensors  # noqa: E402

PARSER = argparse.ArgumentParser()
for option in ("--tools", "--cli", "--dir"):
    PARSER.add_argument(option)
run = runner(PARSER.parse_args().tools)
DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB = 256, 512, 1, 4, 2, 96
KV = DIM // HEADS * KV_HEADS
MATRICES = {"self_attn.q_proj": [DIM, DIM], "self_attn.k_proj": [KV, DIM], "self_attn.v_proj": [KV, DIM], "self_attn.o_proj": [DIM, DIM],
            "mlp.gate_proj": [HIDDEN, DIM], "mlp.up_proj": [HIDDEN, DIM], "mlp.down_proj": [DIM, HIDDEN]}
CONFIG = {"architectures": ["LlamaForCausalLM"], "vocab_size": VOCAB, "hidden_size": DIM, "num_hidden_layers": LAYERS, "intermediate_size": HIDDEN,
          "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 64,
          "hidden_act": "silu", "tie_word_embeddings": False}
NUMPY = {"F32": np.float32, "F16": np.float16, "I32": np.int32, "I64": np.int64, "I8": np.int8, "U8": np.uint8, "U32": np.uint32, "F8_E4M3": np.uint8}


def tensor(dtype, x):
    """(type, shape, bytes), as write_safetensors takes it. BF16 of numbers that it holds."""
    x = np.asarray(x)
    if dtype == "BF16":
        return (dtype, x.shape, (np.ascontiguousarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes())
    return (dtype, x.shape, np.ascontiguousarray(x.astype(NUMPY[dtype])).tobytes())


def brain(x):
    """The nearest numbers of bf16."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)


def factors(rng, shape, dtype="BF16"):
    x = rng.uniform(0.002, 0.02, shape)
    return brain(x) if dtype == "BF16" else x.astype(np.float16).astype(np.float32) if dtype == "F16" else x.astype(np.float32)


def stream(codes, bits, unit=32):
    """Codes of each row one after the other from the lowest bit on, in units."""
    b = (codes[..., None] >> np.arange(bits) & 1).astype(np.uint8).reshape(*codes.shape[:-1], -1)
    b = np.concatenate([b, np.zeros((*b.shape[:-1], -b.shape[-1] % unit), np.uint8)], -1)
    return np.packbits(b, axis=-1, bitorder="little").view({8: np.uint8, 32: np.int32}[unit])


def with_gaps(codes, bits):
    """As many codes as fit in each word of 32 bits."""
    each = 32 // bits
    codes = np.concatenate([codes, np.zeros((codes.shape[0], -codes.shape[1] % each), codes.dtype)], 1).reshape(codes.shape[0], -1, each)
    return (codes.astype(np.uint64) << (bits * np.arange(each, dtype=np.uint64))).sum(-1).astype(np.uint32).view(np.int32)


def wide(x, n):
    return np.repeat(x, n, -1)


# --- the forms: tensors by their endings after the module's name, the numbers, and the type that matrices get --------------------

def packed_int(rng, rows, columns, bits=4, group=32, zeros=None, dtype="BF16", gaps=False):
    """compressed-tensors, pack-quantized."""
    codes, scale = rng.integers(0, 2 ** bits, (rows, columns)), factors(rng, (rows, columns // group), dtype)
    t = {".weight_packed": tensor("I32", with_gaps(codes, bits) if gaps else stream(codes, bits)), ".weight_scale": tensor(dtype, scale),
         ".weight_shape": tensor("I64", [rows, columns])}
    zero = 2 ** (bits - 1)
    if zeros:
        z = rng.integers(0, 2 ** bits, scale.shape)
        packed = (with_gaps(z.T, bits) if gaps else stream(z.T, bits)).T if zeros == "packed" else z - zero
        t[".weight_zero_point"] = tensor("I32" if zeros == "packed" else "I8", packed)
        zero = wide(z, group)
    return t, (codes - zero).astype(np.float32) * wide(scale, group)


def gptq(rng, rows, columns, bits=4, group=32, v2=False, order=False, sym=False):
    codes, scale = rng.integers(0, 2 ** bits, (rows, columns)), factors(rng, (-(-columns // group), rows), "F16")
    zero = np.full(scale.shape, 2 ** (bits - 1)) if sym else rng.integers(0, 2 ** bits, scale.shape)
    words = stream(zero, bits).view(np.uint32)
    if not v2 and bits == 3:  # 1 is subtracted from each zero
        words = stream(zero - 1 & 7, bits).view(np.uint32)
    elif not v2:  # in whole words: a zero of 0 borrows from the next one
        words = words - stream(np.ones(zero.shape, np.int64), bits).view(np.uint32)
    index = np.arange(columns) // group
    if order:
        rng.shuffle(index)
    t = {".qweight": tensor("I32", stream(codes.T.copy().T, bits).T), ".qzeros": ("I32", words.shape, words.tobytes()),
         ".scales": tensor("F16", scale), ".g_idx": tensor("I32", index), ".bias": tensor("F16", np.zeros(rows))}
    return t, (codes - zero[index].T).astype(np.float32) * scale[index].T


def awq(rng, rows, columns, group=64):
    order = np.array([0, 2, 4, 6, 1, 3, 5, 7])  # the row of each place in a word
    codes, scale = rng.integers(0, 16, (columns, rows)), factors(rng, (columns // group, rows), "F16")
    zero = rng.integers(0, 16, scale.shape)

    def words(x):
        return stream(x.reshape(x.shape[0], -1, 8)[..., order].reshape(x.shape), 4)

    t = {".qweight": tensor("I32", words(codes)), ".qzeros": tensor("I32", words(zero)), ".scales": tensor("F16", scale)}
    index = np.arange(columns) // group
    return t, ((codes - zero[index]).astype(np.float32) * scale[index]).T


def awq_rows(rng, rows, columns, group=64):
    """AutoAWQ's WQLinear_GEMV: factors and zeros of a row, and places left over after them."""
    codes, scale = rng.integers(0, 16, (rows, columns)), factors(rng, (rows, columns // group), "F16")
    zero, n = rng.integers(0, 16, scale.shape), {32: 4, 64: 2}.get(group, 1)
    words = -(-(-(-scale.shape[1] // 8)) // n) * n
    rest = ((0, 0), (0, 8 * words - scale.shape[1]))
    t = {".qweight": tensor("I32", stream(codes, 4)), ".qzeros": tensor("I32", stream(np.pad(zero, rest), 4)), ".scales": tensor("F16", np.pad(scale, rest))}
    return t, (codes - wide(zero, group)).astype(np.float32) * wide(scale, group)


def nvfp4(rng, rows, columns, names):
    codes, scale = rng.integers(0, 16, (rows, columns)), rng.integers(0x20, 0x70, (rows, columns // 16))
    each = np.float32(rng.uniform(0.001, 0.01))
    by = each if names[2] == "_scale_2" else np.float32(1) / (np.float32(1) / each)
    t = {names[0]: tensor("U8", stream(codes, 4, 8)), names[1]: tensor("F8_E4M3", scale),
         ".weight" + names[2]: tensor("F32", [each] if names[2] == "_scale_2" else [np.float32(1) / each]), ".input_scale": tensor("F32", [0.5])}
    return t, (E2M1[codes] * wide(e4m3(scale), 16) * by).astype(np.float32)


def mxfp4(rng, rows, columns):
    codes, scale = rng.integers(0, 16, (rows, columns)), rng.integers(118, 124, (rows, columns // 32))
    return ({".weight_packed": tensor("U8", stream(codes, 4, 8)), ".weight_scale": tensor("U8", scale)}, E2M1[codes] * wide(e8m0(scale), 32))


def fp8(rng, rows, columns, shape, name=".weight_scale", dtype="F32", group=None):
    codes = rng.integers(0, 0x70, (rows, columns)) | rng.integers(0, 2, (rows, columns)) << 7
    if group:
        scale = rng.integers(110, 116, (rows, columns // group))
        return {".weight": tensor("F8_E4M3", codes), name: tensor("U8", scale)}, e4m3(codes) * wide(e8m0(scale), group)
    scale = factors(rng, shape(rows), dtype)
    each = scale.reshape(-1, 1) if scale.size > 1 else scale.reshape(1, 1)
    return {".weight": tensor("F8_E4M3", codes), name: tensor(dtype, scale), ".input_scale": tensor("F32", [1])}, (e4m3(codes) * each).astype(np.float32)


def fp8_blocks(rng, rows, columns, down, across, name, four=False):
    codes = rng.integers(0, 0x70, (rows, columns)) | rng.integers(0, 2, (rows, columns)) << 7
    scale = factors(rng, (-(-rows // down), -(-columns // across)), "F32")
    each = np.repeat(np.repeat(scale, down, 0), across, 1)[:rows, :columns]
    shape = (scale.shape[0], 1, scale.shape[1], 1) if four else scale.shape
    return {".weight": tensor("F8_E4M3", codes), name: tensor("F32", scale.reshape(shape))}, (e4m3(codes) * each).astype(np.float32)


def integers(rng, rows, columns, shape=None, group=None, zeros=False):
    """compressed-tensors, int-quantized."""
    codes = rng.integers(-128, 128, (rows, columns))
    scale = factors(rng, (rows, columns // group) if group else shape(rows))
    each = wide(scale, group) if group else scale.reshape(-1, 1)
    t, zero = {".weight": tensor("I8", codes), ".weight_scale": tensor("BF16", scale)}, 0
    if zeros:
        z = rng.integers(-100, 100, scale.shape)
        t[".weight_zero_point"], zero = tensor("I8", z), wide(z, group) if group else z.reshape(-1, 1)
    return t, (codes - zero).astype(np.float32) * each


def bnb4(rng, rows, columns, kind="nf4", nested=True, dtype="bfloat16"):
    n, codes = rows * columns, rng.integers(0, 16, rows * columns)
    table = np.sort(rng.uniform(-1, 1, 16)).astype(np.float32)
    state = {"quant_type": kind, "blocksize": 64, "dtype": dtype, "shape": [rows, columns]}
    t = {".weight": tensor("U8", (codes[0::2] << 4 | codes[1::2])[:, None]), ".weight.quant_map": tensor("F32", table)}
    if nested:
        absmax, inner = rng.integers(0, 256, n // 64), rng.uniform(0.001, 0.01, -(-n // 64 // 256)).astype(np.float32)
        other = np.sort(rng.uniform(-1, 1, 256)).astype(np.float32)
        state.update(nested_blocksize=256, nested_dtype="float32", nested_offset=0.0234375)
        t.update({".weight.absmax": tensor("U8", absmax), ".weight.nested_absmax": tensor("F32", inner), ".weight.nested_quant_map": tensor("F32", other)})
        factor = (other[absmax] * np.repeat(inner, 256)[:absmax.size] + np.float32(0.0234375)).astype(np.float32)
    else:
        factor = factors(rng, n // 64, "F32")
        t[".weight.absmax"] = tensor("F32", factor)
    t[f".weight.quant_state.bitsandbytes__{kind}"] = tensor("U8", np.frombuffer(json.dumps(state).encode(), np.uint8))
    return t, (table[codes] * np.repeat(factor, 64)).astype(np.float32).reshape(rows, columns)


def bnb8(rng, rows, columns):
    codes, scale = rng.integers(-127, 128, (rows, columns)), rng.uniform(0.2, 2, rows).astype(np.float32)
    return ({".weight": tensor("I8", codes), ".SCB": tensor("F32", scale), ".weight_format": ("U8", (), b"\0")},
            (codes.astype(np.float32) * scale[:, None]) * np.float32(7.874015718698502e-3))


def ternary(rng, rows, columns, divide=True):
    codes, scale = rng.integers(0, 3, (rows, columns)), brain([rng.uniform(0.5, 2)])
    planes = codes.reshape(4, rows // 4, columns)
    t = {".weight": tensor("U8", sum(planes[k] << 2 * k for k in range(4))), ".weight_scale": tensor("BF16", scale)}
    return t, (codes - 1).astype(np.float32) * (np.float32(1) / scale[0] if divide else scale[0])


def mlx(rng, rows, columns, mode):
    codes = rng.integers(0, 256 if mode == "mxfp8" else 16, (rows, columns))
    codes = np.where((codes & 127) == 127, 5, codes)
    group = 16 if mode == "nvfp4" else 32
    scale = rng.integers(0x20, 0x70, (rows, columns // group)) if mode == "nvfp4" else rng.integers(108, 112, (rows, columns // group))
    t = {".weight": ("U32", (rows, columns // (4 if mode == "mxfp8" else 8)), stream(codes, 8 if mode == "mxfp8" else 4).tobytes()), ".scales": tensor("U8", scale)}
    return t, (e4m3(codes) if mode == "mxfp8" else E2M1[codes]) * wide(e4m3(scale) if mode == "nvfp4" else e8m0(scale), group)


Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, BF16, F16, F32, MXFP4, NVFP4, TQ2_0 = 2, 3, 6, 7, 8, 30, 1, 0, 39, 40, 35
CT = {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed", "ignore": ["lm_head"], "kv_cache_scheme": None,
      "global_compression_ratio": 1.5, "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group"}}}}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": True, "checkpoint_format": "gptq", "pack_dtype": "int32", "meta": {"quantizer": ["x:1"]}}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 64, "version": "gemm", "zero_point": True, "modules_to_not_convert": None}
BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True, "_load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": "nf4", "bnb_4bit_quant_storage": "uint8",
       "bnb_4bit_use_double_quant": True, "bnb_4bit_compute_dtype": "bfloat16", "llm_int8_threshold": 6.0, "llm_int8_skip_modules": None}
CT3 = {**CT, "config_groups": {"group_0": {"weights": {"num_bits": 3}}}}
# what, config, form, type of the matrices, what a note says
FORMS = [
    ("int4", CT, lambda *a: packed_int(*a), Q4_0, "7 tensors of 4-bit codes: q4_0, without loss"),
    ("int4, groups of 128", CT, lambda *a: packed_int(*a, group=128), Q4_0, "q4_0, without loss"),
    ("int4, f16", CT, lambda *a: packed_int(*a, dtype="F16"), Q4_0, "q4_0, without loss"),
    ("int4, zeros", CT, lambda *a: packed_int(*a, zeros="packed"), Q4_1, "q4_1, "),
    ("int4, zeros in bytes", CT, lambda *a: packed_int(*a, zeros="bytes"), Q4_1, "q4_1, "),
    ("int2", CT, lambda *a: packed_int(*a, bits=2), Q4_0, "2-bit codes: q4_0, without loss"),
    ("int3", CT3, lambda *a: packed_int(*a, bits=3), Q4_0, "3-bit codes: q4_0, without loss"),
    ("int3 with gaps", CT3, lambda *a: packed_int(*a, bits=3, gaps=True), Q4_0, "3-bit codes: q4_0, without loss"),
    ("int3 with gaps, zeros", CT3, lambda *a: packed_int(*a, bits=3, gaps=True, zeros="packed"), Q4_1, "3-bit codes: q4_1, "),
    ("int5", CT, lambda *a: packed_int(*a, bits=5), Q5_0, "5-bit codes: q5_0, without loss"),
    ("int5, zeros", CT, lambda *a: packed_int(*a, bits=5, zeros="packed"), Q5_1, "5-bit codes: q5_1, "),
    ("int6", CT, lambda *a: packed_int(*a, bits=6), Q8_0, "6-bit codes: q8_0, without loss"),
    ("int8, packed", CT, lambda *a: packed_int(*a, bits=8), Q8_0, "8-bit codes: q8_0, without loss"),
    ("int8, packed, zeros", CT, lambda *a: packed_int(*a, bits=8, zeros="packed"), None, "8-bit codes: "),
    ("int8 by rows", {**CT, "format": "int-quantized"}, lambda *a: integers(*a, shape=lambda r: (r, 1)), Q8_0, "q8_0, without loss"),
    ("int8 by tensor", {**CT, "format": "naive-quantized"}, lambda *a: integers(*a, shape=lambda r: (1,)), Q8_0, "q8_0, without loss"),
    ("int8 by groups", {**CT, "format": "int-quantized"}, lambda *a: integers(*a, group=64), Q8_0, "q8_0, without loss"),
    ("int8, zeros", {**CT, "format": "int-quantized"}, lambda *a: integers(*a, shape=lambda r: (r, 1), zeros=True), None, "8-bit codes: "),
    ("fp8 by rows", {**CT, "format": "float-quantized"}, lambda *a: fp8(*a, lambda r: (r, 1)), BF16, None),
    ("fp8 by rows, 1-D", {"quant_method": "modelopt", "quant_algo": "FP8"}, lambda *a: fp8(*a, lambda r: (r,)), BF16, None),
    ("fp8 by tensor, static", {"quant_method": "fp8", "activation_scheme": "static"}, lambda *a: fp8(*a, lambda r: ()), BF16, None),
    ("fp8 of Mistral", {"quant_method": "fp8", "activation_scheme": "static"}, lambda *a: fp8(*a, lambda r: (), ".qscale_weight"), BF16, None),
    ("fp8 in blocks", {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [96, 64]}, lambda *a: fp8_blocks(*a, 96, 64, ".weight_scale_inv"), BF16, None),
    ("fp8 in blocks of compressed-tensors", {**CT, "format": "float-quantized", "config_groups": {"group_0": {"weights": {"num_bits": 8, "strategy": "block",
     "block_structure": [150, 150]}}}}, lambda *a: fp8_blocks(*a, 150, 150, ".weight_scale"), BF16, None),
    ("fp8 in blocks of ModelOpt", {"quant_method": "modelopt", "quant_algo": "FP8_PB_WO"}, lambda *a: fp8_blocks(*a, 128, 128, ".weight_scale", True), BF16, None),
    ("mxfp8", {**CT, "format": "mxfp8-quantized"}, lambda *a: fp8(*a, None, group=32), BF16, None),
    ("mxfp4", {**CT, "format": "mxfp4-pack-quantized"}, lambda *a: mxfp4(*a), MXFP4, "7 tensors of 4-bit codes: mxfp4, without loss"),
    ("nvfp4", {**CT, "format": "nvfp4-pack-quantized"}, lambda *a: nvfp4(*a, [".weight_packed", ".weight_scale", "_global_scale"]), NVFP4, "4-bit codes: nvfp4, without loss"),
    ("nvfp4 of ModelOpt", {"quant_method": "modelopt", "quant_algo": "NVFP4", "producer": {"name": "modelopt"}},
     lambda *a: nvfp4(*a, [".weight", ".weight_scale", "_scale_2"]), NVFP4, "4-bit codes: nvfp4, without loss"),
    ("nvfp4, hf_quant_config.json", None, lambda *a: nvfp4(*a, [".weight", ".weight_scale", "_scale_2"]), NVFP4, "4-bit codes: nvfp4, without loss"),
    ("gptq", GPTQ, lambda *a: gptq(*a, sym=True), Q4_0, "q4_0, without loss"),
    ("gptq, zeros", {**GPTQ, "sym": False}, lambda *a: gptq(*a), Q4_1, "q4_1, "),
    ("gptq, zeros, version 2", {**GPTQ, "sym": False, "checkpoint_format": "gptq_v2"}, lambda *a: gptq(*a, v2=True), Q4_1, "q4_1, "),
    ("gptq, zeros, version 2 by format", {**{k: v for k, v in GPTQ.items() if k != "checkpoint_format"}, "sym": False, "format": "gptq_v2"},
     lambda *a: gptq(*a, v2=True), Q4_1, "q4_1, "),
    ("gptq, order", {**GPTQ, "desc_act": True}, lambda *a: gptq(*a, sym=True, order=True), F16, "4-bit codes: f16, the nearest type"),
    ("gptq, a group that ends with the row", {**GPTQ, "group_size": 96}, lambda *a: gptq(*a, group=96), Q4_1, "q4_1, "),
    ("gptq, 2 bits", {**GPTQ, "bits": 2}, lambda *a: gptq(*a, bits=2), Q4_1, "2-bit codes: q4_1, "),
    ("gptq, 3 bits", {**GPTQ, "bits": 3}, lambda *a: gptq(*a, bits=3), Q4_1, "3-bit codes: q4_1, "),
    ("gptq, 3 bits, version 2", {**GPTQ, "bits": 3, "checkpoint_format": "gptq_v2"}, lambda *a: gptq(*a, bits=3, v2=True), Q4_1, "3-bit codes: q4_1, "),
    ("gptq, 8 bits", {**GPTQ, "bits": 8}, lambda *a: gptq(*a, bits=8, sym=True), Q8_0, "8-bit codes: q8_0, without loss"),
    ("awq", AWQ, lambda *a: awq(*a), Q4_1, "q4_1, "),
    ("awq, rows", {**AWQ, "version": "gemv"}, lambda *a: awq_rows(*a), Q4_1, "q4_1, "),
    ("awq, rows of small groups", {**AWQ, "version": "gemv", "group_size": 32}, lambda *a: awq_rows(*a, group=32), Q4_1, "q4_1, "),
    ("awq, rows that are a group", {**AWQ, "group_size": -1, "format": "gemv"}, lambda r, rows, columns: awq_rows(r, rows, columns, columns), Q4_1, "q4_1, "),
    ("nf4, nested", BNB, lambda *a: bnb4(*a), BF16, None),
    ("nf4", BNB, lambda *a: bnb4(*a, nested=False, dtype="float16"), F16, None),
    ("fp4", {**BNB, "bnb_4bit_quant_type": "fp4"}, lambda *a: bnb4(*a, kind="fp4"), BF16, None),
    ("int8 of bitsandbytes", {**BNB, "load_in_8bit": True}, lambda *a: bnb8(*a), Q8_0, "8-bit codes: q8_0, the nearest type (relative error 0.000"),
    ("bitnet", {"quant_method": "bitnet", "linear_class": "bitlinear", "quantization_mode": "offline"}, lambda *a: ternary(*a), TQ2_0, "2-bit codes: tq2_0, without loss"),
    ("bitnet, multiplied", {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline"}, lambda *a: ternary(*a, False), TQ2_0,
     "2-bit codes: tq2_0, without loss"),
    ("mlx nvfp4", ("nvfp4", 16, 4), lambda *a: mlx(*a, "nvfp4"), NVFP4, "nvfp4, without loss"),
    ("mlx mxfp8", ("mxfp8", 32, 8), lambda *a: mlx(*a, "mxfp8"), BF16, None),
]


def folder(rng, form, config):
    """Writes a Llama whose matrices are of the form; returns the numbers of its tensors by GGUF's names."""
    to, numbers = {}, {}
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate",
             "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
    for name, shape in {"model.embed_tokens": [VOCAB, DIM], "lm_head": [VOCAB, DIM], "model.norm": [DIM], "model.layers.0.input_layernorm": [DIM],
                        "model.layers.0.post_attention_layernorm": [DIM]}.items():
        to[name + ".weight"] = tensor("F32", rng.uniform(-0.2, 0.2, shape) + (len(shape) < 2))
    for name, shape in MATRICES.items():
        tensors, x = form(rng, *shape)
        to.update({f"model.layers.0.{name}{end}": t for end, t in tensors.items()})
        heads = {"self_attn.q_proj": HEADS, "self_attn.k_proj": KV_HEADS}.get(name)
        if heads:  # llama's files have pairs of rows side by side
            x = x.reshape(heads, 2, -1, x.shape[1]).swapaxes(1, 2).reshape(x.shape)
        numbers[f"blk.0.{names[name]}.weight"] = x
    to["model.layers.0.self_attn.k_proj.k_scale"] = tensor("F32", [1])
    os.makedirs(path("folder"), exist_ok=True)
    write_safetensors(path("folder/model.safetensors"), to)
    if isinstance(config, tuple):
        q = {"mode": config[0], "group_size": config[1], "bits": config[2]}
        write_json(path("folder/config.json"), {**CONFIG, "quantization": q, "quantization_config": q})
    else:
        write_json(path("folder/config.json"), {**CONFIG, **({"quantization_config": config} if config else {})})
    return to, numbers


def test_forms():
    for seed, (what, config, form, kind, note) in enumerate(FORMS):
        rng = np.random.default_rng(seed)
        _, numbers = folder(rng, form, config)
        said = run("llm-convert", path("folder"), "-o", path("auto.gguf"), **({"has": note} if note else {}))
        run("llm-convert", path("folder"), "-o", path("f32.gguf"), "--type", "f32")
        auto, exact = gguf.read_blocks(path("auto.gguf"))[1], gguf.read_blocks(path("f32.gguf"))[1]
        for name, x in numbers.items():
            check(np.array_equal(numbers_of(exact[name]).reshape(x.shape), x), f"{what}: {name} differs in f32")
            got = numbers_of(auto[name]).reshape(x.shape)
            factor = auto.get(name.replace(".weight", ".scale"))
            check((factor is not None) == (kind == TQ2_0 or (kind == NVFP4 and "mlx" not in what)), f"{what}: {name} has a factor, or none")
            got = got * numbers_of(factor)[0] if factor else got
            check(kind is None or auto[name].kind == kind, f"{what}: {name} has type {auto[name].kind}", said)
            step = np.abs(x).max() / (200 if kind in (BF16, None) else 1500)
            check(np.array_equal(got, x) if "without loss" in (note or "") else np.abs(got - x).max() <= step, f"{what}: {name} differs", np.abs(got - x).max())
        logits = []
        for model in (path("folder"), path("auto.gguf")):
            run("llm-cli", "-m", model, "--tokens", "3,1,4,1,5,9,2,6", "-n", "0", "--logits", path("logits.npy"))
            logits.append(np.load(path("logits.npy")))
        check(np.array_equal(*logits), f"{what}: the logits of the folder and of its file differ")


def test_faults():
    """Damaged folders are refused with the name of what is wrong."""
    q = "model.layers.0.self_attn.q_proj"

    def wrong(form, config, change, words):
        to, _ = folder(np.random.default_rng(3), form, config)
        config = json.loads(json.dumps(config))
        change(to, config)
        write_safetensors(path("folder/model.safetensors"), to)
        write_json(path("folder/config.json"), {**CONFIG, "quantization_config": config})
        run("llm-convert", path("folder"), "-o", path("auto.gguf"), code=1, has=words)

    def put(end, dtype, x):
        return lambda t, c: t.update({q + end: tensor(dtype, x)})

    wrong(packed_int, CT, lambda t, c: t.pop(q + ".weight_shape"), f"{q}.weight_shape, the shape of {q}.weight_packed, is missing")
    wrong(packed_int, CT, put(".weight_shape", "I64", [DIM, DIM * 3]), "in which 768 columns of 1 to 8 bits do not fit")
    wrong(packed_int, CT, put(".weight_shape", "I64", [DIM, -5]), "is missing or not one")
    wrong(packed_int, CT, lambda t, c: t.pop(q + ".weight_scale"), f"here in a tensor that is missing: {q}.weight_scale")
    wrong(packed_int, CT, put(".weight_scale", "F32", np.ones((DIM, 7))), "does not have one factor for each group of a row")
    wrong(packed_int, CT, put(".weight_g_idx", "I32", np.full(DIM, 8)), "has the group 8;")
    wrong(packed_int, CT, put(".weight_zero_point", "I32", np.zeros((DIM, 8))), "does not have the zeros of")
    wrong(packed_int, CT, lambda t, c: c.update(format="marlin-24"), "the weights are quantized in a way that is not read")
    wrong(packed_int, CT, lambda t, c: c.update(transform_config={"config_groups": {"u": {"type": "hadamard"}}}), "quantization_config.transform_config")
    wrong(gptq, GPTQ, lambda t, c: t.pop(q + ".qzeros"), f"{q}.qzeros, the zeros of {q}.qweight, is missing")
    wrong(gptq, GPTQ, put(".g_idx", "I32", np.full(DIM, -1)), "has the group -1;")
    wrong(gptq, GPTQ, put(".scales", "F16", np.ones((8, DIM + 8))), "are neither GPTQ's, with 2, 3, 4 or 8 bits, nor AWQ's, with 4")
    wrong(awq_rows, {**AWQ, "version": "gemv"}, put(".scales", "F16", np.ones((8, DIM))), "do not have the rows of AWQ's form gemv")
    wrong(awq_rows, {**AWQ, "version": "gemv"}, lambda t, c: t.pop(q + ".qzeros"), "do not have the rows of AWQ's form gemv")
    wrong(awq_rows, {**AWQ, "version": "gemv"}, lambda t, c: c.update(group_size=8), "config.json's group_size does not fit")
    wrong(awq_rows, {**AWQ, "version": "gemv"}, lambda t, c: (put(".scales", "F16", np.ones((DIM, 4)))(t, c), put(".qzeros", "I32", np.ones((DIM, 0)))(t, c)), "0 factors and zeros")
    wrong(awq_rows, {**AWQ, "version": "gemm"}, lambda t, c: None, "are neither GPTQ's, with 2, 3, 4 or 8 bits, nor AWQ's, with 4")
    wrong(gptq, GPTQ, lambda t, c: c.update(checkpoint_format="marlin"), "quantization_config.checkpoint_format")
    wrong(bnb4, BNB, put(".weight.quant_state.bitsandbytes__nf4", "U8", np.frombuffer(b"{\"shape\": [1, 2", np.uint8)), "quant_state.bitsandbytes__nf4")
    wrong(bnb4, BNB, put(".weight.quant_map", "F32", np.ones(15)), "16 numbers of F32")
    wrong(bnb4, BNB, put(".weight.absmax", "U8", np.ones(5)), "does not have the factors")
    wrong(bnb4, BNB, lambda t, c: c.update(bnb_4bit_quant_storage="bfloat16"), "quantization_config.bnb_4bit_quant_storage")
    wrong(bnb8, BNB, put(".weight_format", "U8", [1]), "are not in rows")
    wrong(lambda *a: nvfp4(*a, [".weight", ".weight_scale", "_scale_2"]), CT, put(".weight_scale_2", "F32", [1, 2]), "is not one number")
    wrong(lambda *a: nvfp4(*a, [".weight", ".weight_scale", "_scale_2"]), CT, put(".pre_quant_scale", "F32", np.ones(DIM)), "read by no line")
    wrong(lambda *a: nvfp4(*a, [".weight", ".weight_scale", "_scale_2"]), CT, lambda t, c: t.pop(q + ".weight_scale_2"), "by which NVFP4 is multiplied or divided, is missing")
    wrong(lambda *a: nvfp4(*a, [".weight", ".weight_scale", "_scale_2"]), CT, put(".weight_scale_2", "F32", [np.inf]), "is inf, by which")
    wrong(packed_int, CT, lambda t, c: c["config_groups"]["group_0"]["weights"].update(symmetric=False), f"{q}.weight_zero_point, the zeros of")
    wrong(lambda *a: integers(*a, group=16), CT, put(".weight_scale", "F32", np.ones((16, 16))), "does not have one factor for each group of a row")
    wrong(lambda *a: integers(*a, group=16), CT, lambda t, c: c.update(rotation=True), "quantization_config.rotation")
    wrong(lambda *a: integers(*a, group=16), CT, lambda t, c: c.update(had={"online": True}), "quantization_config.had.online")
    wrong(lambda *a: fp8_blocks(*a, 64, 64, ".weight_scale"), {"quant_method": "fp8", "weight_block_size": [32, 32]}, lambda t, c: None, "does not have the factors for the blocks")
    wrong(ternary, {"quant_method": "fp8"}, lambda t, c: None, "has the type U8 with one factor, as BitNet has it")
    wrong(ternary, {"quant_method": "bitnet"}, lambda t, c: c.update(quantization_mode="online"), "quantization_config.quantization_mode")
    wrong(packed_int, {**CT, "quant_method": "quark"}, lambda t, c: None, "quantization_config.quant_method")


def test_adapter():
    """An adapter becomes the same file beside codes as beside numbers."""
    files = []
    for form, config in ((packed_int, CT), (gptq, GPTQ), (awq, AWQ), (None, None)):
        rng = np.random.default_rng(9)
        folder(rng, form or (lambda r, rows, columns: ({".weight": tensor("F32", np.ones((rows, columns)))}, np.ones((rows, columns)))), config)
        os.makedirs(path("adapter"), exist_ok=True)
        p, rng = "base_model.model.model.layers.0.self_attn.q_proj.lora_", np.random.default_rng(4)
        write_safetensors(path("adapter/adapter_model.safetensors"), {p + "A.weight": tensor("F32", rng.uniform(-1, 1, (4, DIM))), p + "B.weight": tensor("F32", rng.uniform(-1, 1, (DIM, 4)))})
        write_json(path("adapter/adapter_config.json"), {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"], "base_model_name_or_path": "x"})
        run("llm-convert", path("adapter"), "--base", path("folder"), "-o", path("adapter.gguf"))
        files.append(open(path("adapter.gguf"), "rb").read())
    check(files[0] == files[3] and files[1] == files[3] and files[2] == files[3], "adapters of quantized folders differ")


def test_mlx_objects():
    """MLX's object for a single module takes nothing from that for all others."""
    rng = np.random.default_rng(5)
    to, numbers = folder(rng, lambda *a: mlx(*a, "mxfp4"), ("mxfp4", 32, 4))
    q, codes = "model.layers.0.self_attn.o_proj", rng.integers(0, 256, (DIM, DIM))
    scale, bias = factors(rng, (DIM, DIM // 64)), factors(rng, (DIM, DIM // 64))
    to[q + ".weight"] = ("U32", (DIM, DIM // 4), codes.astype(np.uint8).tobytes())
    to[q + ".scales"], to[q + ".biases"] = tensor("BF16", scale), tensor("BF16", bias)
    write_safetensors(path("folder/model.safetensors"), to)
    form = {"mode": "mxfp4", "group_size": 32, "bits": 4, q: {"group_size": 64, "bits": 8}}
    write_json(path("folder/config.json"), {**CONFIG, "quantization": form, "quantization_config": form})
    run("llm-convert", path("folder"), "-o", path("f32.gguf"), "--type", "f32")
    got = gguf.read_blocks(path("f32.gguf"))[1]
    want = (codes.astype(np.float32) * wide(scale, 64) + wide(bias, 64)).astype(np.float32)
    check(np.array_equal(numbers_of(got["blk.0.attn_output.weight"]).reshape(DIM, DIM), want), "a module with its own form differs")
    check(np.array_equal(numbers_of(got["blk.0.ffn_up.weight"]).reshape(HIDDEN, DIM), numbers["blk.0.ffn_up.weight"]), "the others differ")


if __name__ == "__main__":
    test_forms()
    test_adapter()
    test_mlx_objects()
    test_faults()
    sys.exit(finish())
