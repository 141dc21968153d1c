"""Writes a model that says given texts, so that a real server can be asked by real clients. Its weights lead from each piece of a text to the next
one; the chat template chooses the text by a token at the end of the prompt, from the state of the conversation:

    first   a user has asked, tools are offered, and no one has answered yet
    after   the last message is a tool's result
    again   a user goes on, after an answer
    plain   no tools are offered
"""
import os
import random
import struct
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(TESTS, "e2e"))
import gguf_file  # noqa: E402

STATES = ("first", "after", "again", "plain")
DIM = 128


def spelling():
    """How GPT-2's vocabulary writes each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}


def template():
    """Hermes' form of calls; the state's token ends a prompt."""
    return """{%- if tools -%}
<|im_start|>system
Tools: {{ tools | tojson }} Call one by <tool_call>{"name": .., "arguments": ..}</tool_call>.<|im_end|>
{% endif -%}
{%- set at = namespace(state='first' if tools else 'plain', answered=false) -%}
{%- for m in messages -%}
<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}
{{ '<tool_response>' ~ m.content ~ '</tool_response>' if m.role == 'tool' else m.content }}
{%- for call in m.tool_calls or [] -%}
<tool_call>{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor -%}
<|im_end|>
{% if m.role == 'assistant' %}{% set at.answered = true %}
{%- elif tools and m.role == 'tool' %}{% set at.state = 'after' %}
{%- elif tools and m.role == 'user' and at.answered %}{% set at.state = 'again' %}{% endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
<|{{ at.state }}|>{%- endif -%}
"""


def write(path, answers, context=131072, piece=3):
    """answers: a text for each of STATES."""
    rng = random.Random(7)
    known, _ = gguf_file.read_gguf(os.path.join(TESTS, "data", "stories-gpt2.gguf"))
    tokens, letters = list(known["tokenizer.ggml.tokens"][:-1]), spelling()
    special = ["<|im_start|>", "<|im_end|>", "<|end|>"] + [f"<|{s}|>" for s in STATES]
    taken, chains = set(tokens), []
    for state in STATES:
        data, chain, at = answers[state].encode(), [], 0
        while at < len(data): # a piece is a token of its own, which nothing else begins or follows
            n = piece
            while at + n < len(data) and "".join(letters[b] for b in data[at:at + n]) in taken:
                n += 1
            word = "".join(letters[b] for b in data[at:at + n])
            while word in taken: # the text ends like another piece
                word = chain.pop() + word
            taken.add(word)
            chain.append(word)
            at += n
        chains.append(chain)
    n_words = len(tokens)
    tokens += [w for chain in chains for w in chain] + special
    number = {t: i for i, t in enumerate(tokens)}
    seen = [[rng.choice((-1.0, 1.0)) for _ in range(DIM)] for _ in tokens]
    said = [[0.0] * DIM for _ in tokens]
    for state, chain in zip(STATES, chains):
        before = number[f"<|{state}|>"]
        for word in chain + ["<|end|>"]:
            now = number[word]
            said[now] = [a + b for a, b in zip(said[now], seen[before])]
            before = now
    floats = lambda rows: b"".join(struct.pack(f"<{len(r)}f", *r) for r in rows)
    zeros = lambda rows, n: bytes(4 * rows * n)
    ones = struct.pack(f"<{DIM}f", *[1.0] * DIM)
    tensors = [("token_embd.weight", "f32", [DIM, len(tokens)], floats(seen)), ("output.weight", "f32", [DIM, len(tokens)], floats(said)),
               ("output_norm.weight", "f32", [DIM], ones), ("blk.0.attn_norm.weight", "f32", [DIM], ones), ("blk.0.ffn_norm.weight", "f32", [DIM], ones)]
    tensors += [(f"blk.0.attn_{x}.weight", "f32", [DIM, DIM], zeros(DIM, DIM)) for x in ("q", "k", "v", "output")]
    tensors += [(f"blk.0.ffn_{x}.weight", "f32", [32, DIM] if x == "down" else [DIM, 32], zeros(DIM, 32)) for x in ("gate", "up", "down")]
    kind = {n_words + sum(map(len, chains)) + i: 3 for i in range(len(special))}
    keys = [("general.architecture", "string", "llama"), ("general.name", "string", "parrot"), ("llama.context_length", "u32", context),
            ("llama.embedding_length", "u32", DIM), ("llama.block_count", "u32", 1), ("llama.feed_forward_length", "u32", 32),
            ("llama.attention.head_count", "u32", 2), ("llama.attention.head_count_kv", "u32", 2), ("llama.rope.dimension_count", "u32", DIM // 2),
            ("llama.attention.layer_norm_rms_epsilon", "f32", 1e-6), ("tokenizer.ggml.model", "string", "gpt2"),
            ("tokenizer.ggml.pre", "string", "gpt-2"), ("tokenizer.ggml.tokens", "string", tokens),
            ("tokenizer.ggml.token_type", "i32", [kind.get(i, 1) for i in range(len(tokens))]),
            ("tokenizer.ggml.merges", "string", known["tokenizer.ggml.merges"]), ("tokenizer.ggml.eos_token_id", "u32", number["<|end|>"]),
            ("tokenizer.ggml.bos_token_id", "u32", number["<|end|>"]), ("tokenizer.ggml.add_bos_token", "bool", False),
            ("tokenizer.chat_template", "string", template())]
    with open(path, "wb") as f:
        f.write(gguf_file.gguf(keys, tensors))
    return path
