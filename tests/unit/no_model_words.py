#!/usr/bin/env python3
"""The tensor library and its backends run graphs that need not be language models, so what they print, and what their public headers say,
is of batches, elements, nodes and groups.

    no_model_words.py ROOT  prints each string, and each line of a public header, that speaks of tokens, layers, prompts or logits; exit code 0:
                            there is none"""
import os
import re
import sys

WORDS = re.compile(r"\b(tokens?|layers?|prompts?|logits?)\b", re.I)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
VULKAN_LAYER = {"backends/vulkan/instance.c", "backends/vulkan/messages.c"}  # Vulkan's own word for what checks calls


def strings(text):
    """(line, string) for each literal outside of comments"""
    for match in COMMENT_OR_STRING.finditer(text):
        if match.group().startswith('"'):
            yield text.count("\n", 0, match.start()) + 1, match.group()


def check(path, text):
    lines = enumerate(text.splitlines(), 1) if "/include/" in path else strings(text)
    return [f"{path}:{line}: {part.strip()}" for line, part in lines if WORDS.search(part) and path not in VULKAN_LAYER]


def main():
    faults, n = [], 0
    for component in ("ggml-lite", "backends"):
        for folder, _, names in os.walk(os.path.join(sys.argv[1], component)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        faults += check(os.path.relpath(path, sys.argv[1]), file.read())
                    n += 1
    assert check("a/include/b.h", "/* a token */") and check("a/b.c", 'f("%d layers")') and not check("a/b.c", '/* "token" */ f(token)')
    print("\n".join(faults) or f"{n} files")
    return 1 if faults or n < 100 else 0


sys.exit(main())
