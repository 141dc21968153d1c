"""A small Dream (a model that writes by diffusion) with random weights, whose tokens are bytes and a few words."""
import random
import struct

import gguf_file

DIM, FF, LAYERS, CONTEXT, MASK = 32, 64, 2, 64, 3
TOKENS = ["<unk>", "<s>", "</s>", "<mask>"] + [f"<0x{b:02X}>" for b in range(256)] + ["\u2581" + w for w in "the a fox cat dog sat ran on mat".split()]


def write(path, has_bytes=True, context=CONTEXT):
    """Writes the file, and returns its path. has_bytes False: other words in place of bytes, so that all texts are UTF-8."""
    words = TOKENS if has_bytes else [t if not t.startswith("<0x") else f"\u2581w{t[3:5].lower()}" for t in TOKENS]
    rng, tensors = random.Random(7), []

    def add(name, *shape, centre=0.0):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors.append((name + ".weight", "f32", list(shape), struct.pack(f"<{n}f", *(rng.gauss(centre, 0.3) for _ in range(n)))))

    for name in ("token_embd", "output"):
        add(name, DIM, len(TOKENS))
    add("output_norm", DIM, centre=1.0)
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{name}", DIM, DIM)
        for name, shape in (("ffn_gate", (DIM, FF)), ("ffn_up", (DIM, FF)), ("ffn_down", (FF, DIM))):
            add(f"blk.{layer}.{name}", *shape)
        for name in ("attn_norm", "ffn_norm"):
            add(f"blk.{layer}.{name}", DIM, centre=1.0)
    keys = [("general.architecture", "string", "dream"), ("dream.context_length", "u32", context), ("dream.embedding_length", "u32", DIM),
            ("dream.block_count", "u32", LAYERS), ("dream.feed_forward_length", "u32", FF), ("dream.attention.head_count", "u32", 4),
            ("dream.attention.layer_norm_rms_epsilon", "f32", 1e-6), ("dream.attention.causal", "bool", False),
            ("diffusion.shift_logits", "bool", True), ("tokenizer.ggml.model", "string", "llama"),
            ("tokenizer.ggml.tokens", "string", words), ("tokenizer.ggml.scores", "f32", [-float(i) for i in range(len(TOKENS))]),
            ("tokenizer.ggml.token_type", "i32", [2, 3, 3, 3] + [6 if has_bytes else 1] * 256 + [1] * (len(TOKENS) - 260)),
            ("tokenizer.ggml.bos_token_id", "u32", 1), ("tokenizer.ggml.eos_token_id", "u32", 2),
            ("tokenizer.ggml.unknown_token_id", "u32", 0), ("tokenizer.ggml.mask_token_id", "u32", MASK)]
    with open(path, "wb") as f:
        f.write(gguf_file.gguf(keys, tensors))
    return path
