#!/usr/bin/env python3
"""Structs of push constants and of specialization constants in C, made from the shaders, so that the two cannot differ.

    push.py ROOT           compares backends/vulkan/push.h and spec.h with the shaders, and the shaders with their committed SPIR-V:
                           number, offsets and strides of push constants; ids, types and defaults of specialization constants;
                           exit code 1: there is a fault
    push.py ROOT --write   makes push.h and spec.h again
    push.py ROOT --test    shows that faults are found, in copies of the shaders and headers

Push constants are the block `Push` of a shader. All members are words, or arrays and structs of words, so both languages place them one
after another. Specialization constants are the lines `layout(constant_id = N)`; each is a word, and constant N is word N. local is the
workgroup's size, by `layout(local_size_x_id = N)`."""
import os
import re
import shutil
import struct
import sys
import tempfile

HEAD = """/* %s Made from shaders/ by
 * `tests/vulkan/push.py . --write`, which also compares them with the SPIR-V; do not edit. */
#ifndef VULKAN_%s_H
#define VULKAN_%s_H

#include <stdint.h>

"""
PUSH_HEAD = HEAD % ("The push constants of each shader, a union in vk_call.", "PUSH", "PUSH")
SPEC_HEAD = HEAD % ("The specialization constants of each shader, a union in vk_call.", "SPEC", "SPEC")
C_TYPE = {"uint": "uint32_t", "int": "int32_t", "float": "float"}
PUSH_CONSTANT, SPEC_ID, ARRAY_STRIDE, OFFSET = 9, 1, 6, 35  # SPIR-V: storage class, decorations
SPEC_OP = {48: "true", 49: "false", 50: "uint"}  # OpSpecConstantTrue, -False, OpSpecConstant


def rows(root):
    """(name, file, defines) of each shader."""
    with open(root + "/backends/vulkan/shaders.def") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    for name, source, defines in re.findall(r'^SHADER(?:_NEEDS)?\((\w+), "([^"]+)", "([^"]*)"', text, re.M):
        yield name.lower(), source, dict((d[2:].split("=") + ["1"])[:2] for d in defines.split())


def holds(line, defines):
    """True if the condition of a line #if, #ifdef or #ifndef holds."""
    word, condition = line.split(None, 1)
    if word != "#if":
        return (condition.strip() in defines) == (word == "#ifdef")
    condition = re.sub(r"defined\((\w+)\)", lambda m: str(int(m.group(1) in defines)), condition).replace("||", " or ").replace("&&", " and ")
    return bool(eval(re.sub(r"\b[A-Z]\w*", lambda m: defines.get(m.group(), "0"), condition)))  # of this repository's own shaders


def preprocess(path, defines):
    """The text of a file without comments and without what its conditions exclude."""
    with open(path) as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    kept, stack = [], []
    for line in text.split("\n"):
        if line.startswith("#if"):
            stack.append(holds(line, defines))
        elif line.startswith("#else"):
            stack[-1] = not stack[-1]
        elif line.startswith("#endif"):
            stack.pop()
        elif all(stack):
            kept.append(line)
    return "\n".join(kept)


def texts(folder, source, defines):
    """{file: preprocessed text} of a shader and all that it includes from its folder."""
    found, todo = {}, [source]
    while todo:
        name = todo.pop(0)
        if name not in found and os.path.exists(folder + "/" + name):
            found[name] = preprocess(folder + "/" + name, defines)
            todo += re.findall(r'#include "([^"]+)"', found[name])
    return found


def block_of(files, defines):
    """(file, fields, structs) of the block that the shader includes; fields: (type, name, size of the array or 0)."""
    for name, text in files.items():
        match = re.search(r"layout\(push_constant\) uniform Push \{(.*?)\};", text, re.S)
        if match:
            structs = {n: fields(b, defines) for n, b in re.findall(r"^struct (\w+) \{(.*?)\};", text, re.S | re.M)}
            return name, fields(match.group(1), defines), structs
    return None


def fields(text, defines):
    found = []
    for declaration in filter(str.strip, text.replace("\n", " ").split(";")):
        kind, names = declaration.split(None, 1)
        for name in names.split(","):
            base, size = re.fullmatch(r"\s*(\w+)(?:\[(\w+)\])?\s*", name).groups()
            found.append((kind, base, int(defines.get(size, size)) if size else 0))
    return found


def constants_of(files):
    """{file: {id: (name, type, default)}} of the specialization constants that each file declares."""
    found = {}
    for name, text in files.items():
        of = {int(i): ("local", "uint", "1") for i in re.findall(r"layout\(local_size_x_id = (\d+)\)", text)}
        of.update((int(i), (n.lower(), t, d)) for i, t, n, d in re.findall(r"layout\(constant_id = (\d+)\) const (\w+) (\w+) = (\w+);", text))
        if of:
            found[name] = of
    return found


def joined(constants):
    """{id: (name, type, default)} of all files."""
    return dict(sorted((i, c) for of in constants.values() for i, c in of.items()))


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
    """Returns [(offset, array stride or 0)] of the members of the block of push constants, and {id: (type, default)} of the specialization
    constants."""
    with open(path, "rb") as f:
        data = f.read()
    word = struct.unpack("<%dI" % (len(data) // 4), data)
    at, pointer, arrays, stride, offset, block, spec, value = 5, {}, {}, {}, {}, None, {}, {}
    while at < len(word):
        op, n = word[at] & 0xFFFF, word[at] >> 16
        arg = word[at + 1:at + n]
        if op == 71 and arg[1] == ARRAY_STRIDE:
            stride[arg[0]] = arg[2]
        elif op == 71 and arg[1] == SPEC_ID:
            spec[arg[2]] = arg[0]
        elif op in SPEC_OP:
            value[arg[1]] = ("uint", arg[2]) if op == 50 else ("bool", SPEC_OP[op])
        elif op == 72 and arg[2] == OFFSET:
            offset.setdefault(arg[0], {})[arg[1]] = arg[3]
        elif op == 30:
            arrays[arg[0]] = arg[1:]
        elif op == 32:
            pointer[arg[0]] = arg[2]
        elif op == 59 and arg[2] == PUSH_CONSTANT:
            block = pointer[arg[0]]
        at += n
    pushed = [(offset[block][i], stride.get(t, 0)) for i, t in enumerate(arrays[block])] if block else []
    return pushed, {i: value[of] for i, of in spec.items()}


def expected(members, structs):
    at, out = 0, []
    for kind, _, n in members:
        size = 4 * words(kind, structs)
        out.append((at, size if n else 0))
        at += size * (n or 1)
    return out


def numbers(folder):
    """{name: number} of the constants of kinds.h, which are defaults."""
    with open(folder + "/kinds.h") as f:
        return {n: int(v) for n, v in re.findall(r"^#define (\w+)\s+(\d+)", f.read(), re.M)}


def spec_struct(name, constants, source):
    """The C struct of specialization constants; ids that the shader lacks are members unused_ID."""
    n = max(constants) + 1
    lines = ["    uint32_t %s;" % (constants[i][0] if i in constants else "unused_%d" % i) for i in range(n)]
    return ("typedef struct vk_spec_%s {\n%s\n} vk_spec_%s;\n_Static_assert(sizeof(vk_spec_%s) == %d, \"as in %s\");\n\n"
            % (name, "\n".join(lines), name, name, 4 * n, source))


def push_struct(name, members, structs, source):
    n = sum((k or 1) * words(t, structs) for t, _, k in members)
    return ("typedef struct vk_push_%s {\n%s\n} vk_push_%s;\n_Static_assert(sizeof(vk_push_%s) == %d, \"as in %s\");\n\n"
            % (name, "\n".join(c_fields(members, name, structs, "    ")), name, name, 4 * n, source))


def header(kind, head, blocks, make_struct, first):
    """blocks: {file: [(shader, ..)]}; a file whose shaders have the same constants has one struct, which is called like the file."""
    text, union = head, first
    for source, shaders in sorted(blocks.items()):
        same = all(s[1:] == shaders[0][1:] for s in shaders)
        for name, *of in shaders[:1] if same else shaders:
            name = source.split(".")[0] if same else name
            text += make_struct(name, *of, source)
            union.append("    vk_%s_%s %s;" % (kind, name, name))
    return text + "typedef union vk_%s {\n%s\n} vk_%s;\n\n#endif\n" % (kind, "\n".join(union), kind)


def make(root):
    """Returns {header: text} and the faults of the SPIR-V."""
    folder, pushed, special, faults, most = root + "/backends/vulkan/shaders", {}, {}, [], 0
    number = numbers(folder)
    for name, source, defines in rows(root):
        files = texts(folder, source, defines)
        found, constants = block_of(files, defines), constants_of(files)
        if not found:
            faults.append("%s: no block Push" % source)
            continue
        members, structs = found[1:]
        pushed.setdefault(found[0], []).append((name, members, structs))
        special.setdefault(source, []).append((name, joined(constants)))
        for file in constants.keys() - {source}:
            if constants[file].keys() != {0}:  # several shaders share more than the workgroup's size
                special.setdefault(file, []).append((name, constants[file]))
        most = max(most, *joined(constants))
        offsets, ids = reflect("%s/backends/vulkan/spirv/%s.spv" % (root, name))
        if offsets != expected(members, structs):
            faults.append("%s.spv: its push constants do not lie as %s declares them" % (name, found[0]))
        declared = {i: (t, int(number.get(d, d)) if t == "uint" else d) for i, (_, t, d) in joined(constants).items()}
        for i in sorted(ids.keys() | declared.keys()):
            if ids.get(i) != declared.get(i):
                faults.append("%s.spv: specialization constant %d is %s, but %s declares %s" % (name, i, ids.get(i), source, declared.get(i)))
    head = SPEC_HEAD + "enum { VK_MAX_SPEC = %d };\n\n" % (most + 1)
    return {"push.h": header("push", PUSH_HEAD, pushed, push_struct, []),
            "spec.h": header("spec", head, special, spec_struct, ["    uint32_t word[VK_MAX_SPEC];"])}, faults


def check(root, write=False):
    """Returns the faults, and the number of structs."""
    made, faults = make(root)
    for name, text in made.items():
        path = "%s/backends/vulkan/%s" % (root, name)
        if write:
            with open(path, "w") as f:
                f.write(text)
        with open(path) as f:
            if f.read() != text:
                faults.append("backends/vulkan/%s is not what the shaders say: tests/vulkan/push.py . --write makes it again" % name)
    return faults, sum(text.count("typedef struct") for text in made.values())


MUTANTS = [  # file of backends/vulkan, what is replaced, by what; a part of the fault
    ("shaders/topk.comp", "uint rows, n, k,", "uint rows, n,", "topk.spv: its push constants"),
    ("shaders/topk.comp", "uint rows, n, k,", "uint rows[2], n, k,", "topk.spv: its push constants"),
    ("shaders/topk.comp", "uint rows, n, k,", "uint n, rows, k,", "push.h is not"),
    ("push.h", "    uint32_t k;\n", "", "push.h is not"),
    ("shaders/linear_tiles.glsl", "constant_id = 11", "constant_id = 16", "linear_mat.spv: specialization constant 11"),
    ("shaders/linear.glsl", "const bool X4 = false", "const uint X4 = 0", "linear_vec.spv: specialization constant 5"),
    ("shaders/pick.comp", "layout(constant_id = 2) const bool ALIGNED = false;", "", "pick.spv: specialization constant 2"),
    ("shaders/rank.comp", "layout(local_size_x_id = 0) in;", "layout(local_size_x_id = 0) in;\nlayout(constant_id = 1) const uint MORE = 0;",
     "rank.spv: specialization constant 1"),
    ("shaders/elementwise.comp", "#ifdef GATED\nlayout", "#ifndef GATED\nlayout", "gated.spv: specialization constant 3"),
    ("shaders/attend_matrix.comp", "const uint N = 16", "const uint M = 16", "spec.h is not"),
    ("spec.h", "    uint32_t unused_6;\n", "", "spec.h is not"),
]


def self_test(root):
    for file, old, new, fault in MUTANTS:
        with tempfile.TemporaryDirectory() as folder:
            copy = folder + "/backends/vulkan"
            shutil.copytree(root + "/backends/vulkan", copy)
            assert check(folder)[0] == [], check(folder)[0]
            with open(copy + "/" + file) as f:
                text = f.read()
            assert old in text, (file, old)
            with open(copy + "/" + file, "w") as f:
                f.write(text.replace(old, new, 1))
            found = check(folder)[0]
            assert any(fault in f for f in found), (file, old, new, found)
    print("%d faults were found" % len(MUTANTS))


def main():
    if "--test" in sys.argv:
        self_test(sys.argv[1])
        return 0
    faults, n = check(sys.argv[1], "--write" in sys.argv)
    print("\n".join(faults) or "constants: %d structs as in the shaders and their SPIR-V" % n)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
