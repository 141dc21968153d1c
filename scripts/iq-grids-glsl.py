#!/usr/bin/env python3
"""Writes backends/vulkan/shaders/grids.glsl, the codebooks of the IQ types, from ggml-lite/quant/iq_grids.c.

    scripts/iq-grids-glsl.py < ggml-lite/quant/iq_grids.c > backends/vulkan/shaders/grids.glsl"""
import re
import sys

HEAD = """/* The codebooks of the IQ types (ggml-lite/quant/iq_grids.h), two entries to a word. Written by
 * scripts/iq-grids-glsl.py from iq_grids.c. */
"""

print(HEAD, end="")
for name, size, body in re.findall(r"uint16_t (\w+)\[(\d+)\] = \{(.*?)\}", sys.stdin.read(), re.S):
    code = [int(x, 16) for x in re.findall(r"0x[0-9a-f]+", body)]
    assert len(code) == int(size)
    words = [f"0x{a | b << 16:08x}u" for a, b in zip(code[::2], code[1::2])]
    print(f"\nconst uint {name}_words[{len(words)}] = {{")
    for i in range(0, len(words), 8):
        print("    " + ", ".join(words[i:i + 8]) + ",")
    print("};")
    print(f"uint {name}_grid(uint i) {{\n    return {name}_words[i >> 1] >> 16 * (i & 1) & 0xffff;\n}}")
