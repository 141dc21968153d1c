#!/usr/bin/env python3
"""Names that other programs' files have for families known here: a small model under each name, with that program's keys and tensors, has the logits
of the same model under the usual name. And files that say another family than they are: refused, with what they are.

    spellings.py TOOLS"""
import os
import random
import struct
import sys

from checks import TMP, check, finish, path, runner
from encoder_file import read_npy
import gguf_file

TOOLS = sys.argv[1]
run_tool = runner(TOOLS, cwd=TMP.name)
VOCAB, EMBD, FF = 40, 32, 48


class Weights:
    """Random tensors by their shapes; two files that ask for the same name get the same numbers."""

    def __init__(self, seed):
        self.seed, self.tensors = seed, {}

    def put(self, name, *shape):
        n = 1
        for k in shape:
            n *= k
        rng = random.Random(f"{self.seed} {name}")
        centre = 1.0 if "norm" in name else 0.0
        self.tensors[name] = (list(shape), [rng.gauss(centre, 0.3) for _ in range(n)])


def write(name, arch, keys, tensors):
    """keys: below {arch}., as (name, kind, value), or with "!" whole names."""
    table = [("general.architecture", "string", arch), (f"{arch}.vocab_size", "u32", VOCAB), (f"{arch}.context_length", "u32", 64)]
    table += [(k[1:] if k[0] == "!" else f"{arch}.{k}", kind, value) for k, kind, value in keys]
    rows = [(t, "f32", shape, struct.pack(f"<{len(x)}f", *x)) for t, (shape, x) in tensors.items()]
    with open(path(name), "wb") as f:
        f.write(gguf_file.gguf(table, rows))
    return name


def logits(name):
    run_tool("llm-cli", "-m", name, "--tokens", "1,7,3,20,5", "-n", "0", "--logits", "out.npy")
    rows = read_npy(path("out.npy"))[2]
    os.remove(path("out.npy"))
    return rows


def same(usual, other):
    a, b = logits(usual), logits(other)
    size = max(abs(x) for row in a for x in row)
    check(size > 0.1 and a == b, f"{other} is {usual}", [a[0][:4], b[0][:4]])


def common(layers):
    return [("block_count", "u32", layers), ("embedding_length", "u32", EMBD), ("feed_forward_length", "u32", FF), ("attention.head_count", "u32", 4)]


def without(keys, *names):
    return [k for k in keys if k[0] not in names]


def glm():
    w, layers = Weights(1), 2
    for l in range(layers):
        b = f"blk.{l}."
        for name, out in (("attn_q", EMBD), ("attn_k", EMBD // 2), ("attn_v", EMBD // 2), ("attn_output", EMBD), ("ffn_up", 2 * FF)):
            w.put(f"{b}{name}.weight", EMBD, out)
        w.put(b + "ffn_down.weight", FF, EMBD)
        for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            w.put(f"{b}{name}.weight", EMBD)
    w.put("token_embd.weight", EMBD, VOCAB)
    w.put("output.weight", EMBD, VOCAB)
    w.put("output_norm.weight", EMBD)
    keys = common(layers) + [("attention.head_count_kv", "u32", 2), ("attention.layer_norm_rms_epsilon", "f32", 1e-5), ("rope.freq_base", "f32", 10000.0)]
    usual = write("glm4.gguf", "glm4", keys + [("rope.dimension_sections", "i32", [2, 1, 1, 0])], w.tensors)
    for first in (False, True):                           # the first files have other names
        parts = {}
        for name, (shape, x) in w.tensors.items():
            if "ffn_up" in name:                          # the gate, then up
                parts[name.replace("ffn_up", "ffn_gate")] = ([EMBD, FF], x[:EMBD * FF])
                parts[name] = ([EMBD, FF], x[EMBD * FF:])
                continue
            for a, b in (("attn_output", "attn_out"), ("post_attention_norm", "post_attn_norm"), ("post_ffw_norm", "post_ffn_norm")) if first else ():
                name = name.replace(a, b)
            parts[name] = (shape, x)
        other = keys + [("rope.mrope_section", "i32", [2, 1, 1]), ("rope.partial_rotary_factor", "f32", 1.0), ("image_token_id", "u32", 3), ("vision.block_count", "u32", 2)]
        same(usual, write(f"glmocr{first}.gguf", "glmocr", other, parts))
    odd = write("odd.gguf", "glmocr", without(other, "rope.partial_rotary_factor") + [("rope.partial_rotary_factor", "f32", 0.5)], parts)
    run_tool("llm-cli", "-m", odd, "--tokens", "1", "-n", "0", code=1, has="a part of each head is rotated")
    odd = write("odd.gguf", "glmocr", [*other, ("!tokenizer.ggml.pre", "string", "llama-bpe")], parts)
    run_tool("llm-cli", "-m", odd, "--tokens", "1", "-n", "0", code=1, has="--override-kv tokenizer.ggml.pre=str:chatglm-bpe")


def deepseek():
    w, each, shared, experts = Weights(2), 16, 32, 4
    for l in range(2):
        b = f"blk.{l}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            w.put(f"{b}{name}.weight", EMBD, EMBD)
        for name in ("attn_norm", "ffn_norm"):
            w.put(f"{b}{name}.weight", EMBD)
    for name, wide, more, at in (("", FF, (), 0), ("_exps", each, (experts,), 1), ("_shexp", shared, (), 1)):
        for part in ("gate", "up"):
            w.put(f"blk.{at}.ffn_{part}{name}.weight", EMBD, wide, *more)
        w.put(f"blk.{at}.ffn_down{name}.weight", wide, EMBD, *more)
    w.put("blk.1.ffn_gate_inp.weight", EMBD, experts)
    w.put("token_embd.weight", EMBD, VOCAB)
    w.put("output_norm.weight", EMBD)
    keys = common(2) + [("expert_count", "u32", experts), ("expert_used_count", "u32", 2), ("leading_dense_block_count", "u32", 1),
                        ("attention.head_count_kv", "u32", 4)]
    usual = write("deepseek2-ocr.gguf", "deepseek2-ocr", keys + [("attention.layer_norm_rms_epsilon", "f32", 1e-6), ("expert_feed_forward_length", "u32", each),
                                                                  ("expert_shared_count", "u32", shared // each)], w.tensors)
    same(usual, write("deepseekocr.gguf", "deepseekocr", keys + [("sam.block_count", "u32", 12), ("vision.block_count", "u32", 24)], w.tensors))


def cohere():
    w, each, experts = Weights(3), 16, 4
    for l in range(3):
        b = f"blk.{l}."
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            w.put(f"{b}{name}.weight", EMBD, EMBD)
        w.put(b + "attn_norm.weight", EMBD)
        stem, more = ("", ()) if l == 0 else ("_exps", (experts,))
        wide = each if l else FF
        w.put(f"{b}ffn_gate{stem}.weight", EMBD, wide, *more)
        w.put(f"{b}ffn_up{stem}.weight", EMBD, wide, *more)
        w.put(f"{b}ffn_down{stem}.weight", wide, EMBD, *more)
        if l:
            w.put(b + "ffn_gate_inp.weight", EMBD, experts)
    w.put("token_embd.weight", EMBD, VOCAB)
    w.put("output_norm.weight", EMBD)
    keys = common(3) + [("attention.layer_norm_rms_epsilon", "f32", 1e-5), ("attention.sliding_window", "u32", 4), ("logit_scale", "f32", 0.5),
                        ("attention.sliding_window_pattern", "bool", [False, True, False]), ("leading_dense_block_count", "u32", 1),
                        ("expert_count", "u32", experts), ("expert_used_count", "u32", 2), ("expert_feed_forward_length", "u32", each), ("expert_gating_func", "u32", 2)]
    same(write("cohere2moe.gguf", "cohere2moe", keys, w.tensors), write("cohere2_moe.gguf", "cohere2_moe", keys, w.tensors))


def bitnet():
    w = Weights(4)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        w.put(f"blk.0.{name}.weight", EMBD, EMBD)
    for name in ("attn_norm", "attn_sub_norm", "ffn_norm"):
        w.put(f"blk.0.{name}.weight", EMBD)
    w.put("blk.0.ffn_sub_norm.weight", FF)
    w.put("blk.0.ffn_gate.weight", EMBD, FF)
    w.put("blk.0.ffn_up.weight", EMBD, FF)
    w.put("blk.0.ffn_down.weight", FF, EMBD)
    w.put("token_embd.weight", EMBD, VOCAB)
    w.put("output_norm.weight", EMBD)
    keys = common(1) + [("attention.layer_norm_rms_epsilon", "f32", 1e-5)]
    same(write("b158.gguf", "bitnet-b1.58", keys, w.tensors), write("b25.gguf", "bitnet-25", keys, w.tensors))
    decision = write("decision.gguf", "bitnet-25", keys + [("decision.type", "string", "choice"), ("decision.block_count", "u32", 2)], w.tensors)
    for tool in ("llm-cli", "llm-embed"):
        run_tool(tool, "-m", decision, "--tokens", "1", *(["-n", "0"] if tool == "llm-cli" else []), code=1, has="bitnet-25.decision.type = \"choice\": a decision model")


def embedding_gemma():
    """Ollama's EmbeddingGemma says gemma3; only its dense layers tell."""
    keys = common(1) + [("attention.head_count_kv", "u32", 2), ("attention.key_length", "u32", 8), ("pooling_type", "u32", 1), ("attention.sliding_window", "u32", 16)]
    w = Weights(5)
    for name in ("token_embd.weight", "dense.0.weight", "dense.1.weight"):
        w.put(name, EMBD, VOCAB)
    file = write("gemma3.gguf", "gemma3", keys, w.tensors)
    run_tool("llm-embed", "-m", file, "--tokens", "1", code=1, has="take a file whose general.architecture is gemma-embedding")


for part in (glm, deepseek, cohere, bitnet, embedding_gemma):
    part()
sys.exit(finish())
