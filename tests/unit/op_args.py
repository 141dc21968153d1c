#!/usr/bin/env python3
"""Names of operators' arguments in C, made from the signatures in ops.def: ATTEND_POS is the index in src[] of the argument
@pos of ATTEND, and ATTEND_WINDOW that of #window in num[].

    op_args.py ROOT           compares ggml-lite/include/ggl/internal/op_args.h with ops.def; exit code 1: they differ
    op_args.py ROOT --write   makes it again"""
import re
import sys

HEAD = """/* The indices of operators' arguments: in src[] of a node or step and, for those that a signature writes with #, in num[].
 * Constants, so any thread may use them. Made from ops.def by `tests/unit/op_args.py . --write`; do not edit. */
#ifndef GGL_INTERNAL_OP_ARGS_H
#define GGL_INTERNAL_OP_ARGS_H

"""


def enums(ops):
    for name, signature, kind in re.findall(r'^OP\((\w+), "[^"]*", "([^"]*)", \w+, \w+, \w+, (\w+)', ops, re.M):
        src, num = [], []
        for word in signature.split():
            mark, arg = re.match(r"([#@]?)(\w+)", word).groups()
            (num if mark == "#" else src).append(arg.upper())
        if name == "LINEAR":
            src.append("INDEX")  # of a step that gathers (ggl/program.h)
        rows = ["%s_%s = %d" % (name, arg, i) for args in (src, num) for i, arg in enumerate(args)]
        line = "enum { %s };\n" % ", ".join(rows)
        if len(rows) > 1 and kind != "ELEMENT":  # as clang-format has them
            yield line if len(line) <= 101 else "enum {\n    %s\n};\n" % ",\n    ".join(rows)


def main():
    root, write = sys.argv[1], "--write" in sys.argv
    path = root + "/ggml-lite/include/ggl/internal/op_args.h"
    with open(root + "/ggml-lite/include/ggl/ops.def") as f:
        text = HEAD + "".join(enums(f.read())) + "\n#endif\n"
    if write:
        with open(path, "w") as f:
            f.write(text)
        return 0
    with open(path) as f:
        same = f.read() == text
    if not same:
        print("ggl/internal/op_args.h is not what ops.def says: tests/unit/op_args.py . --write makes it again")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
