"""Writes a model that says given texts, so that a real server can be asked by real clients. Its weights lead from each piece of a text to the next
one; the chat template chooses the text by a token at the end of the prompt, from the state of the conversation:

    first   a user has asked, tools are offered, and no one has answered yet
    after   the last message is a tool's result
    again   a user goes on, after an answer
    plain   no tools are offered
"""
import os
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(TESTS, "e2e"))
import gguf_file  # noqa: E402
import parrot_file  # noqa: E402

STATES = ("first", "after", "again", "plain")


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


def write(path, answers, context=131072):
    """answers: a text for each of STATES."""
    known, _ = gguf_file.read_gguf(os.path.join(TESTS, "data", "stories-gpt2.gguf"))
    tokens, letters = list(known["tokenizer.ggml.tokens"][:-1]), parrot_file.letters()
    special = ["<|im_start|>", "<|im_end|>", "<|end|>"] + [f"<|{s}|>" for s in STATES]
    types, taken, chains = [1] * len(tokens), set(tokens), []
    for state in STATES:
        data, chain, at = answers[state].encode(), [], 0
        while at < len(data): # a piece is a token of its own, which nothing else begins or follows
            n = 3
            while at + n < len(data) and "".join(letters[b] for b in data[at:at + n]) in taken:
                n += 1
            word = "".join(letters[b] for b in data[at:at + n])
            while word in taken: # the text ends like another piece
                word = chain.pop() + word
            taken.add(word)
            chain.append(word)
            at += n
        chains.append((f"<|{state}|>", chain))
    more = [w for _, chain in chains for w in chain]
    return parrot_file.write(path, template(), tokens + more + special, types + [1] * len(more) + [3] * len(special),
                             known["tokenizer.ggml.merges"], chains, "<|end|>", context)
