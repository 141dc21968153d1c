"""Models that give one fixed answer to each conversation, so that any answer of any family can be staged: a small llama file whose
weights make a fixed chain of tokens. Its template shows the marks of a family in a branch that is never taken."""
import random
import struct

from gguf_file import gguf

TEMPLATE = ("{%% for m in messages %%}[{{ m.role }}]{{ m.content }}{%% endfor %%}{%% if tools %%}{{ tools|tojson }}{%% endif %%}"
            "{%% if false %%}%s{%% endif %%}{%% if add_generation_prompt %%}%s{%% endif %%}")
WIDTH = 256


def letters():
    """How GPT-2's vocabularies write each byte."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in shown]
    return {**{b: chr(b) for b in shown}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def cut(data, piece):
    """Cuts into pieces of so many bytes, each of which comes once: one that came before grows."""
    pieces, at = [], 0
    while at < len(data):
        n = piece
        while at + n < len(data) and data[at:at + n] in pieces:
            n += 1
        if data[at:at + n] in pieces:
            return cut(data, piece + 1)
        pieces.append(data[at:at + n])
        at += n
    return pieces


def write(path, template, tokens, types, merges, chains, eos, context=4096):
    """Writes a file. chains: (token, [token ..]): behind the first one come the others, and then the end; no token but the first ones is in two of
    them."""
    dice = random.Random(7)
    rows = [[dice.choice((-1.0, 1.0)) for _ in range(WIDTH)] for _ in tokens]
    out = [[0.0] * WIDTH for _ in tokens]
    number = {t: i for i, t in enumerate(tokens)}
    for begin, chain in chains:
        last = number[begin]
        for word in [*chain, eos]:
            now = number[word]
            out[now] = [a + b for a, b in zip(out[now], rows[last])]
            last = now
    floats = lambda table: struct.pack(f"<{sum(map(len, table))}f", *(x for row in table for x in row))
    zero = lambda n, m: bytes(4 * n * m)
    one = floats([[1.0] * WIDTH])
    keys = [("general.architecture", "string", "llama"), ("general.name", "string", "parrot"), ("llama.context_length", "u32", context),
            ("llama.embedding_length", "u32", WIDTH), ("llama.block_count", "u32", 1), ("llama.feed_forward_length", "u32", 32),
            ("llama.vocab_size", "u32", len(tokens)), ("llama.attention.head_count", "u32", 4), ("llama.attention.head_count_kv", "u32", 4),
            ("llama.rope.dimension_count", "u32", 64), ("llama.attention.layer_norm_rms_epsilon", "f32", 1e-6),
            ("tokenizer.ggml.model", "string", "gpt2"), ("tokenizer.ggml.pre", "string", "gpt-2"), ("tokenizer.ggml.tokens", "string", tokens),
            ("tokenizer.ggml.token_type", "i32", types), ("tokenizer.ggml.merges", "string", merges),
            ("tokenizer.ggml.eos_token_id", "u32", number[eos]), ("tokenizer.ggml.bos_token_id", "u32", number[eos]),
            ("tokenizer.ggml.add_bos_token", "bool", False), ("tokenizer.chat_template", "string", template)]
    tensors = [("token_embd.weight", "f32", [WIDTH, len(tokens)], floats(rows)), ("output.weight", "f32", [WIDTH, len(tokens)], floats(out)),
               ("output_norm.weight", "f32", [WIDTH], one), ("blk.0.attn_norm.weight", "f32", [WIDTH], one),
               ("blk.0.ffn_norm.weight", "f32", [WIDTH], one), ("blk.0.ffn_gate.weight", "f32", [WIDTH, 32], zero(WIDTH, 32)),
               ("blk.0.ffn_up.weight", "f32", [WIDTH, 32], zero(WIDTH, 32)), ("blk.0.ffn_down.weight", "f32", [32, WIDTH], zero(32, WIDTH))]
    tensors += [(f"blk.0.attn_{x}.weight", "f32", [WIDTH, WIDTH], zero(WIDTH, WIDTH)) for x in ("q", "k", "v", "output")]
    with open(path, "wb") as f:
        f.write(gguf(keys, tensors))
    return path


def parrot(path, answer, marks="", piece=3, begun=""):
    """Writes a model with one answer. begun: the text with which the prompt ends; `answer` comes in pieces of about so many bytes."""
    spell = letters()
    pieces = cut(answer.encode(), piece)
    if begun.encode()[-1:] in pieces:  # behind it the answer begins, and nothing else
        return parrot(path, answer, marks, piece + 1, begun)
    words = ["".join(spell[b] for b in p) for p in pieces]
    tokens = [spell[b] for b in range(256)] + ["<|eos|>", "<|go|>"]
    types = [1] * 256 + [3, 3]
    more = [w for w in dict.fromkeys(words) if w not in tokens]
    begin = spell[begun.encode()[-1]] if begun else "<|go|>"
    write(path, TEMPLATE % (marks, begun or "<|go|>"), tokens + more, types + [1] * len(more), [], [(begin, words)], "<|eos|>")
