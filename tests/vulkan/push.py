#!/usr/bin/env python3
"""Structs of push constants in C, made from the block `Push` of each shader, so that the two cannot differ.

    push.py ROOT           compares backends/vulkan/push.h with the shaders, and the shaders' blocks with their committed SPIR-V:
                           number, offsets and strides of members; exit code 1: there is a fault
    push.py ROOT --write   makes push.h again

All members are words, or arrays and structs of words, so both languages place them one after another."""
import os
import re
import struct
import sys

HEAD = """/* The push constants of each shader, a union in vk_call. Made from the blocks `Push` of shaders/ by
 * `tests/vulkan/push.py . --write`, which also compares them with the SPIR-V; do not edit. */
#ifndef VULKAN_PUSH_H
#define VULKAN_PUSH_H

#include <stdint.h>

"""
C_TYPE = {"uint": "uint32_t", "int": "int32_t", "float": "float"}
PUSH_CONSTANT, ARRAY_STRIDE, OFFSET = 9, 6, 35  # SPIR-V: storage class, decorations


def rows(root):
    """(name, file, defines) of each shader."""
    with open(root + "/backends/vulkan/shaders.def") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    for name, source, defines in re.findall(r'^SHADER(?:_NEEDS)?\((\w+), "([^"]+)", "([^"]*)"', text, re.M):
        yield name.lower(), source, dict((d[2:].split("=") + ["1"])[:2] for d in defines.split())


def block_of(folder, source, defines):
    """(file, fields, structs) of the block that the shader includes; fields: (type, name, size of the array or 0)."""
    seen, todo = [], [source]
    while todo:
        name = todo.pop(0)
        if name in seen or not os.path.exists(folder + "/" + name):
            continue
        seen.append(name)
        with open(folder + "/" + name) as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        todo += re.findall(r'#include "([^"]+)"', text)
        match = re.search(r"layout\(push_constant\) uniform Push \{(.*?)\};", text, re.S)
        if match:
            structs = {n: fields(b, defines) for n, b in re.findall(r"^struct (\w+) \{(.*?)\};", text, re.S | re.M)}
            return name, fields(match.group(1), defines), structs
    return None


def fields(text, defines):
    out, skips = [], False
    for line in text.split("\n"):
        if line.strip().startswith("#ifdef"):
            skips = line.split()[1] not in defines
        elif line.strip().startswith("#endif"):
            skips = False
        elif not skips:
            out.append(line)
    found = []
    for declaration in filter(str.strip, " ".join(out).split(";")):
        kind, names = declaration.split(None, 1)
        for name in names.split(","):
            base, size = re.fullmatch(r"\s*(\w+)(?:\[(\w+)\])?\s*", name).groups()
            found.append((kind, base, int(defines.get(size, size)) if size else 0))
    return found


def words(kind, structs):
    return sum((n or 1) * words(k, structs) for k, _, n in structs[kind]) if kind in structs else 1


def c_fields(members, prefix, structs, indent):
    lines = []
    for kind, name, n in members:
        array = "[%d]" % n if n else ""
        if kind in structs:
            lines.append("%sstruct {" % indent)
            lines += c_fields(structs[kind], prefix, structs, indent + "    ")
            lines.append("%s} %s%s;" % (indent, name, array))
        else:
            lines.append("%s%s %s%s;" % (indent, C_TYPE[kind], name, array))
    return lines


def reflect(path):
    """Returns [(offset, array stride or 0)] of the members of the block of push constants."""
    with open(path, "rb") as f:
        data = f.read()
    word = struct.unpack("<%dI" % (len(data) // 4), data)
    at, pointer, arrays, stride, offset, block = 5, {}, {}, {}, {}, None
    while at < len(word):
        op, n = word[at] & 0xFFFF, word[at] >> 16
        arg = word[at + 1:at + n]
        if op == 71 and arg[1] == ARRAY_STRIDE:
            stride[arg[0]] = arg[2]
        elif op == 72 and arg[2] == OFFSET:
            offset.setdefault(arg[0], {})[arg[1]] = arg[3]
        elif op == 30:
            arrays[arg[0]] = arg[1:]
        elif op == 32:
            pointer[arg[0]] = arg[2]
        elif op == 59 and arg[2] == PUSH_CONSTANT:
            block = pointer[arg[0]]
        at += n
    return [(offset[block][i], stride.get(t, 0)) for i, t in enumerate(arrays[block])] if block else []


def expected(members, structs):
    at, out = 0, []
    for kind, _, n in members:
        size = 4 * words(kind, structs)
        out.append((at, size if n else 0))
        at += size * (n or 1)
    return out


def make(root):
    """Returns the text of push.h and the faults of the SPIR-V."""
    folder, blocks, faults = root + "/backends/vulkan/shaders", {}, []
    for name, source, defines in rows(root):
        found = block_of(folder, source, defines)
        if not found:
            faults.append("%s: no block Push" % source)
            continue
        blocks.setdefault(found[0], []).append((name,) + found[1:])
        if reflect("%s/backends/vulkan/spirv/%s.spv" % (root, name)) != expected(*found[1:]):
            faults.append("%s.spv: its push constants do not lie as %s declares them" % (name, found[0]))
    text, union = HEAD, []
    for source, shaders in sorted(blocks.items()):
        same = all(s[1:] == shaders[0][1:] for s in shaders)
        for name, members, structs in shaders[:1] if same else shaders:
            name = source.split(".")[0] if same else name
            n = sum((k or 1) * words(t, structs) for t, _, k in members)
            text += "typedef struct vk_push_%s {\n%s\n} vk_push_%s;\n" % (name, "\n".join(c_fields(members, name, structs, "    ")), name)
            text += "_Static_assert(sizeof(vk_push_%s) == %d, \"as in %s\");\n\n" % (name, 4 * n, source)
            union.append("    vk_push_%s %s;" % (name, name))
    return text + "typedef union vk_push {\n%s\n} vk_push;\n\n#endif\n" % "\n".join(union), faults


def main():
    root = sys.argv[1]
    path = root + "/backends/vulkan/push.h"
    text, faults = make(root)
    if "--write" in sys.argv:
        with open(path, "w") as f:
            f.write(text)
    with open(path) as f:
        if f.read() != text:
            faults.append("backends/vulkan/push.h is not what the shaders say: tests/vulkan/push.py . --write makes it again")
    print("\n".join(faults) or "push constants: %d structs as in the shaders and their SPIR-V" % text.count("typedef struct"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
