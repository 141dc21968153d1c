#!/usr/bin/env python3
"""Quantized folders, made by the libraries whose formats they are, and what these libraries read of them, beside llm-convert: every matrix of a small Llama
in every form.

    folders.py --bin FOLDER [--seed N]

Needs torch and safetensors; compressed-tensors, gptqmodel, bitsandbytes, mlx and transformers each for its own forms. A form whose library is missing is
named, and the exit code is 1. Numbers in f32 must be the library's to the last bit after rounding to the type that it computes in; blocks of the same codes, where
llm-convert makes them, within what it says of rounded factors."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "numpy"))
import gguf  # noqa: E402
from block_types import numbers_of  # noqa: E402

del sys.path[0]  # it has modules of the same names as libraries

DIM, HIDDEN, HEADS, KV_HEADS, VOCAB = 256, 512, 4, 2, 96
SHAPES = {"self_attn.q_proj": ("attn_q", DIM, DIM, HEADS), "self_attn.k_proj": ("attn_k", DIM // 2, DIM, KV_HEADS), "self_attn.v_proj": ("attn_v", DIM // 2, DIM, 0),
          "self_attn.o_proj": ("attn_output", DIM, DIM, 0), "mlp.gate_proj": ("ffn_gate", HIDDEN, DIM, 0), "mlp.up_proj": ("ffn_up", HIDDEN, DIM, 0),
          "mlp.down_proj": ("ffn_down", DIM, HIDDEN, 0)}
CONFIG = {"architectures": ["LlamaForCausalLM"], "vocab_size": VOCAB, "hidden_size": DIM, "num_hidden_layers": 1, "intermediate_size": HIDDEN, "num_attention_heads": HEADS,
          "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 64, "hidden_act": "silu", "tie_word_embeddings": False}


# --- forms: weight [rows, columns] -> tensors by their endings, the library's numbers; and the object of config.json --------------


def compressed(name, **weights):
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams
    args = QuantizationArgs(**weights)
    scheme = QuantizationScheme(targets=["Linear"], weights=args, format=name)
    compressor = BaseCompressor.get_value_from_registry(name)

    def make(w):
        w = w.to(torch.bfloat16)
        group = weights.get("group_size")
        blocks = w.reshape(w.shape[0], -1, group) if group else w.reshape(w.shape[0], 1, -1)
        if weights["strategy"] == "tensor":
            blocks = w.reshape(1, 1, -1)
        low, high = blocks.amin(-1), blocks.amax(-1)
        state, more = {"weight": w}, {}
        if weights["strategy"] == "tensor_group":
            more["global_scale"] = (448 * 6 / w.abs().amax().float()).reshape(1)
            state["weight_global_scale"] = more["global_scale"]
        scale, zero = calculate_qparams(low, high, args, **more)
        if weights["strategy"] == "tensor":
            scale, zero = scale.reshape(1), zero.reshape(1)
        state["weight_scale"] = scale
        if not weights.get("symmetric", True):
            state["weight_zero_point"] = zero
        packed = compressor.compress(state, scheme)
        return {k: v for k, v in packed.items() if v is not None}, compressor.decompress(dict(packed), scheme)["weight"]

    return make, {"quant_method": "compressed-tensors", "format": name, "quantization_status": "compressed", "ignore": ["lm_head"],
                  "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


def gptq(bits, group, v1, order=False, sym=True):
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear
    from gptqmodel.utils.model import convert_gptq_v2_to_v1_format_module

    def make(w):
        w = w.float()
        rows, columns = w.shape
        index = torch.arange(columns) // group
        if order:
            index = index[torch.randperm(columns)]
        most, n = 2 ** bits - 1, columns // group
        scales, zeros = torch.zeros(rows, n), torch.zeros(rows, n)
        for g in range(n):
            part = w[:, index == g]
            low, high = part.amin(1).clamp(max=0), part.amax(1).clamp(min=0)
            scales[:, g] = 2 * part.abs().amax(1) / most if sym else (high - low) / most
            zeros[:, g] = (most + 1) // 2 if sym else torch.round(-low / scales[:, g]).clamp(0, most)
        scales = scales.half().float()
        q = torch.round(w / scales[:, index] + zeros[:, index]).clamp(0, most)
        linear = torch.nn.Linear(columns, rows, bias=False)
        linear.weight.data = (q - zeros[:, index]) * scales[:, index]
        module = TorchLinear(bits=bits, group_size=group, sym=sym, desc_act=order, in_features=columns, out_features=rows, bias=False, register_buffers=True)
        module.pack_original(linear, scales.clone(), zeros.clone(), index.to(torch.int32))
        module.post_init()
        read = module.dequantize_weight().T.float()
        if v1:
            convert_gptq_v2_to_v1_format_module(module, argparse.Namespace(bits=bits, pack_dtype=torch.int32))
        return {k: getattr(module, k).data for k in ("qweight", "qzeros", "scales", "g_idx")}, read.half()

    return make, {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": order, "sym": sym, "checkpoint_format": "gptq" if v1 else "gptq_v2", "pack_dtype": "int32"}


def awq(group):
    from gptqmodel.nn_modules.qlinear.torch_awq import AwqTorchLinear
    from gptqmodel.quantization.awq.utils.packing_utils import dequantize_gemm

    def make(w):
        w = w.float()
        rows, columns = w.shape
        blocks = w.reshape(rows, -1, group)
        low, high = blocks.amin(-1).clamp(max=0), blocks.amax(-1).clamp(min=0)
        scales = ((high - low) / 15).half()
        zeros = torch.round(-low / scales.float()).clamp(0, 15)
        q = torch.round(w / scales.float().repeat_interleave(group, 1) + zeros.repeat_interleave(group, 1)).clamp(0, 15)
        linear = torch.nn.Linear(columns, rows, bias=False)
        linear.weight.data = ((q - zeros.repeat_interleave(group, 1)) * scales.float().repeat_interleave(group, 1))
        module = AwqTorchLinear(bits=4, group_size=group, sym=False, desc_act=False, in_features=columns, out_features=rows)
        module.pack(linear, scales, zeros)
        t = {k: getattr(module, k).data for k in ("qweight", "qzeros", "scales")}
        return t, dequantize_gemm(t["qweight"], t["qzeros"], t["scales"], 4, group).T

    return make, {"quant_method": "awq", "bits": 4, "group_size": group, "version": "gemm", "zero_point": True}


def bnb4(kind, nested, dtype):
    import bitsandbytes.functional as F

    def make(w):
        q, state = F.quantize_4bit(w.to(dtype), quant_type=kind, compress_statistics=nested)
        t = {"weight": q, **{"weight." + k: v for k, v in state.as_dict(packed=True).items()}}
        return t, F.dequantize_4bit(q, state)

    return make, {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind, "bnb_4bit_use_double_quant": nested, "bnb_4bit_quant_storage": "uint8"}


def bnb8():
    import bitsandbytes.functional as F

    def make(w):
        q, scale, _ = F.int8_vectorwise_quant(w.half())
        return {"weight": q, "SCB": scale, "weight_format": torch.tensor(0, dtype=torch.uint8)}, F.int8_vectorwise_dequant(q, scale)

    return make, {"quant_method": "bitsandbytes", "load_in_8bit": True}


def mlx(mode, group, bits):
    import mlx.core as mx

    def make(w):
        parts = mx.quantize(mx.array(w.float().numpy()).astype(mx.bfloat16), group_size=group, bits=bits, mode=mode)
        read = mx.dequantize(*parts, group_size=group, bits=bits, mode=mode).astype(mx.float32)
        def tensor(x):
            if x.dtype == mx.bfloat16:
                return torch.from_numpy(np.array(x.astype(mx.float32))).to(torch.bfloat16)
            return torch.from_numpy(np.array(x))
        return {n: tensor(x) for n, x in zip(("weight", "scales", "biases"), parts)}, torch.from_numpy(np.array(read)).to(torch.bfloat16)

    return make, ("quantization", {"group_size": group, "bits": bits, **({"mode": mode} if mode != "affine" else {})})


def bitnet():
    from transformers.integrations.bitnet import pack_weights, unpack_weights

    def make(w):
        scale = (1 / w.float().abs().mean()).reshape(1).to(torch.bfloat16)
        q = torch.round(w.float() * scale.float()).clamp(-1, 1)
        packed = pack_weights(q)
        return {"weight": packed, "weight_scale": scale}, unpack_weights(packed, torch.float32) / scale.float()

    return make, {"quant_method": "bitnet", "linear_class": "bitlinear", "quantization_mode": "offline"}


INT = {"type": "int", "symmetric": True}
FORMS = {
    "compressed-tensors pack-quantized, 4 bits, 128": (compressed, "pack-quantized", {**INT, "num_bits": 4, "strategy": "group", "group_size": 128}),
    "compressed-tensors pack-quantized, 4 bits, rows": (compressed, "pack-quantized", {**INT, "num_bits": 4, "strategy": "channel"}),
    "compressed-tensors pack-quantized, 4 bits, zeros": (compressed, "pack-quantized", {**INT, "num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": False}),
    **{f"compressed-tensors pack-quantized, {b} bits": (compressed, "pack-quantized", {**INT, "num_bits": b, "strategy": "group", "group_size": 64}) for b in (2, 3, 5, 6, 7, 8)},
    "compressed-tensors int-quantized, rows": (compressed, "int-quantized", {**INT, "num_bits": 8, "strategy": "channel"}),
    "compressed-tensors int-quantized, tensor": (compressed, "int-quantized", {**INT, "num_bits": 8, "strategy": "tensor"}),
    "compressed-tensors int-quantized, zeros": (compressed, "int-quantized", {**INT, "num_bits": 8, "strategy": "channel", "symmetric": False}),
    "compressed-tensors naive-quantized": (compressed, "naive-quantized", {**INT, "num_bits": 8, "strategy": "group", "group_size": 128}),
    "compressed-tensors float-quantized, rows": (compressed, "float-quantized", {"type": "float", "num_bits": 8, "strategy": "channel", "symmetric": True}),
    "compressed-tensors float-quantized, tensor": (compressed, "float-quantized", {"type": "float", "num_bits": 8, "strategy": "tensor", "symmetric": True}),
    "compressed-tensors nvfp4-pack-quantized": (compressed, "nvfp4-pack-quantized", {"type": "float", "num_bits": 4, "strategy": "tensor_group", "group_size": 16, "symmetric": True}),
    "compressed-tensors mxfp4-pack-quantized": (compressed, "mxfp4-pack-quantized", {"type": "float", "num_bits": 4, "strategy": "group", "group_size": 32, "symmetric": True,
                                                                                   "scale_dtype": "torch.uint8"}),
    "compressed-tensors mxfp8-quantized": (compressed, "mxfp8-quantized", {"type": "float", "num_bits": 8, "strategy": "group", "group_size": 32, "symmetric": True,
                                                                          "scale_dtype": "torch.uint8"}),
    **{f"gptqmodel, {b} bits, version {2 - v1}{', order' * order}{', zeros' * (not sym)}": (gptq, b, 64, v1, order, sym)
       for b in (2, 3, 4, 8) for v1 in (True, False) for order in (False, True) for sym in (True, False)},
    "gptqmodel, awq": (awq, 128),
    **{f"bitsandbytes {kind}{', double' * nested}, {dtype}": (bnb4, kind, nested, dtype) for kind in ("nf4", "fp4") for nested in (False, True)
       for dtype in (torch.float16, torch.bfloat16)},
    "bitsandbytes int8": (bnb8,),
    **{f"mlx affine, {b} bits": (mlx, "affine", 64, b) for b in (2, 3, 4, 5, 6, 8)},
    "mlx mxfp4": (mlx, "mxfp4", 32, 4), "mlx nvfp4": (mlx, "nvfp4", 16, 4), "mlx mxfp8": (mlx, "mxfp8", 32, 8),
    "transformers bitnet": (bitnet,),
}


def often(what):
    """How many numbers may be the next ones: of NVFP4 compressed-tensors rounds the product of the factors to bf16, and of integers MLX the product before it adds."""
    return 0.1 if "nvfp4-pack" in what else 1 if "mlx affine" in what else 0.02


def rounded(x, dtype):
    return torch.from_numpy(x).to(dtype).float().numpy()


def compare(a, what, form, work):
    """Returns what differs; None: nothing."""
    make, config = form[0](*form[1:-1], **form[-1]) if isinstance(form[-1], dict) else form[0](*form[1:])
    torch.manual_seed(a.seed)
    tensors = {n + ".weight": torch.randn(s) * 0.1 + (len(s) < 2) for n, s in (("model.embed_tokens", (VOCAB, DIM)), ("lm_head", (VOCAB, DIM)), ("model.norm", (DIM,)),
               ("model.layers.0.input_layernorm", (DIM,)), ("model.layers.0.post_attention_layernorm", (DIM,)))}
    wanted, folder = {}, work / "folder"
    for name, (short, rows, columns, heads) in SHAPES.items():
        parts, read = make(torch.randn(rows, columns) * 0.05)
        tensors.update({f"model.layers.0.{name}.{k}": v.contiguous() for k, v in parts.items()})
        x = read.float().numpy()
        if heads:
            x = x.reshape(heads, 2, -1, columns).swapaxes(1, 2).reshape(x.shape)
        wanted[f"blk.0.{short}.weight"] = x, read.dtype
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    key, value = config if isinstance(config, tuple) else ("quantization_config", config)
    (folder / "config.json").write_text(json.dumps({**CONFIG, key: value}))
    types = set()
    for flags, exact in ((["--type", "f32"], True), ([], False)):
        done = subprocess.run([os.path.join(a.bin, "llm-convert"), folder, "-o", work / "out.gguf", *flags], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return done.stderr[-400:]
        got = gguf.read_blocks(work / "out.gguf")[1]
        for name, (x, dtype) in wanted.items():
            factor = got.get(name.replace(".weight", ".scale"))
            y = numbers_of(got[name]).reshape(x.shape) * (numbers_of(factor)[0] if factor else 1)
            if exact and not np.array_equal(rounded(y, dtype), x):
                off = np.abs(rounded(y, dtype) - x)
                # the next number, where the library rounds more than once
                if (off > (np.abs(x).max() * 2.0 ** -7 if "mlx affine" in what else np.abs(x) * 2.0 ** (-7 if dtype == torch.bfloat16 else -10))).any() or (off > 0).mean() > often(what):
                    return f"{name} in f32: {(off > 0).sum()} of {x.size} numbers differ, at most by {off.max():.3g} of {np.abs(x).max():.3g}"
            if not exact:
                types.add(got[name].kind)
                if np.sqrt(((y - x) ** 2).sum() / (x ** 2).sum()) > 2.0 ** (-7 if "mlx affine" in what else -8):
                    return f"{name} of type {got[name].kind} differs: {np.sqrt(((y - x) ** 2).sum() / (x ** 2).sum()):.3g}"
    print(f"{what}: agrees; types {sorted(types)}", flush=True)
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("form", nargs="*", help="only forms whose names hold one of these")
    a = p.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        for what, form in FORMS.items():
            if a.form and not any(x in what for x in a.form):
                continue
            try:
                why = compare(a, what, form, pathlib.Path(work))
            except ImportError as error:
                why = f"not compared: {error}"
            if why:
                print(f"{what}: {why}", flush=True)
                failed += 1
    print(f"{failed} forms differ or were not compared" if failed else "all forms agree")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
