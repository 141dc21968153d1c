#!/usr/bin/env python3
"""places.py ROOT [NAME]: where a quantization type or an operator is defined. Each row of types.def and of ops.def must be named by every place of
its table below. With NAME, the lines of that type or operator are printed, which are what a new one like it needs."""
import os
import re
import sys

# Folders (of which one file is enough) and files. The ways to add one: docs/types.md and docs/ops.md.
TYPES = ["ggml-lite/quant/blocks.h", "ggml-lite/quant/*.c", "ggml-lite/quant/raw_scales.h", "backends/cpu/quant/quant_types.def",
         "backends/cpu/quant/unpack_tmpl.h", "backends/vulkan/shaders/types.glsl", "tests/unit/types_quant.c", "tests/numpy/weights.py", "docs/types.md"]
FOREIGN = [place for place in TYPES if "vulkan" not in place]  # types of forks (QUANT_FOREIGN)
OPERATORS = ["backends/reference/ops.def", "backends/cpu/ops.def", "backends/vulkan/ops.def"]
NOT_COMPUTED = {"input", "weight", "const", "param", "call"}  # leaves, and composites, which have rows of their own


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read().split("\n")


def files_of(root, place):
    folder, name = os.path.split(place)
    return [os.path.join(folder, f) for f in sorted(os.listdir(os.path.join(root, folder))) if f.endswith(name[1:])] if "*" in name else [place]


def lines_of(root, place, name):
    """The lines of a place that name a type or operator, in lower or upper case, perhaps within a longer identifier."""
    word = re.compile(rf"(?<![a-z0-9]){name}(?![a-z0-9])", re.I)
    return [f"{file}:{i + 1}: {line.strip()}" for file in files_of(root, place) for i, line in enumerate(read(os.path.join(root, file))) if word.search(line)]


def names(root, file, macros):
    return [m.group(1).lower() for line in read(os.path.join(root, file)) if (m := re.match(rf"(?:{macros})\((?:\d+, )?([A-Z]\w*),", line))]


def main(root, wanted=None):
    types = names(root, "ggml-lite/include/ggl/types.def", "QUANT|QUANT_READ")
    operators = [o for o in names(root, "ggml-lite/include/ggl/ops.def", r"\w+") if o not in NOT_COMPUTED]
    foreign = names(root, "ggml-lite/include/ggl/types.def", "QUANT_FOREIGN")
    missing = 0
    for name, places in [(t, TYPES) for t in types] + [(t, FOREIGN) for t in foreign] + [(o, OPERATORS) for o in operators]:
        for place in places:
            found = lines_of(root, place, name)
            if name == wanted:
                print("\n".join(found))
            if not found:
                print(f"{place} does not name {name}")
                missing += 1
    print(f"{len(types)} types in {len(TYPES)} places, {len(foreign)} in {len(FOREIGN)}, {len(operators)} operators in {len(OPERATORS)}")
    return 1 if missing or not types or not operators else 0


sys.exit(main(*sys.argv[1:]))
