#!/usr/bin/env python3
"""Reads the #include lines of the product's sources. Folders ("rooms") have an order, from the bottom up, and a file may include
only its own room and rooms below it; and no circle leads from a file back to itself.

    rooms.py ROOT [BUILD]  prints each fault; exit code 0: there is none. With the folder of a build, calls are held to the same order:
                           a header can declare what a room further up defines
    rooms.py --circles ROOT BUILD [--write]   compares the circles of calls, by the symbols of the object files, with circles.txt, a list that
                           may only shrink, and that says why each circle is there; --write makes it again, to remove what is gone
    rooms.py --test        shows that faults are found

A source file and the headers NAME.h and NAME_impl.h beside it are one file here. Headers in include (ggl/NAME.h, llm/NAME.h, and
internal/NAME.h below these) are files of their own, in the room that the table names. A header that defines static functions, to be included by each instruction set's file, is called
NAME_tmpl.h, and no other is. No file includes a header of POSIX for which the project has a replacement."""
import os
import re
import subprocess
import sys

# Components, and the rooms of each from the bottom up. A room may include those before it in its component, and the components that
# `below` lists. Rooms on one line stand side by side: they don't include each other.
ROOMS = {
    "ggml-lite": ["base", "quant", "gguf", "graph", "plan", "sched"],
    "backends": ["common", "reference cpu vulkan shadow trace ranks mpi", "."],
    "models": ["common", "text", "sample grammar", "calls", "template", "language", "compile", "made_up", "quant", "convert", "load", "run", "guess", "serve", "small"],
    "library": ["builtin place hub measure sound picture speech glibc", "."],
    "train": ["gradient vocabulary", "trainer", "training", "."],
    "small": ["."],
    "tools": ["common", "conform", "llm-arch llm-bench llm-cli llm-convert llm-embed llm-gguf llm-grammar llm-imatrix llm-lora llm-perplexity llm-quantize llm-server llm-tokenize llm-train llm-transcribe"],
}
BELOW = {"ggml-lite": [], "backends": ["ggml-lite"], "models": ["ggml-lite"], "library": ["ggml-lite", "backends", "models"],
         "train": ["ggml-lite", "backends", "models", "library"], "small": ["ggml-lite", "backends", "models"],
         "tools": ["ggml-lite", "backends", "models", "library", "train"]}
# What may include a backend's own headers: llm-bench measures kernels, and the runtime for boards consists of the portable ones.
KNOW_BACKENDS = {"tools/llm-bench", "small/."}
# Which private headers of the library each folder of tools may include, besides llm/llm.h, and which train/ may. Only the latter knows what a context consists of. This table may
# only shrink: a tool generates and measures by the calls of llm.h, as programs do.
KNOW_LIBRARY = {
    "tools/common": "adapter_list builtin/builtin hub/hub loading open_params opening place/fit place/placement",
    "tools/conform": "measure/node_run",
    "tools/llm-arch": "measure/verify opening",
    "tools/llm-bench": "opening",
    "tools/llm-cli": "job_rules opening prompt_file",
    "tools/llm-imatrix": "importance",
    "tools/llm-quantize": "builtin/builtin importance measure/imatrix measure/imatrix_sketch measure/log_softmax measure/ppl_stats opening",
    "train": "builtin/builtin context file_senses opening speech/word_split",
    "tools/llm-server": "cache_settings job_parts job_rules model_facts opening stopped_text",
}
# Headers of POSIX that other systems lack, and what to include instead.
REPLACED = {"regex.h": "common/pattern.h", "fnmatch.h": "common/glob.h"}
# Headers in include by room; internal/NAME.h belongs to the same room as NAME.h.
PUBLIC = {
    "ggml-lite": {"base": "alloc bytes disk_left file file_lock index math memory_left nearest number os_attempt os_child os_clock os_cpus os_fs os_library os_process os_socket os_stream os_terminal os_thread os_watch params pass show status steps str text version xxh64", "quant": "types", "gguf": "gguf",
                  "graph": "compose divide graph image op_args ops", "plan": "backend fold program turns composites", "sched": "repacked sched"},
    "backends": {"common": "backends transport"},
    "library": {".": "context llm measure senses small steps"},
    "train": {"gradient": "gradient", "vocabulary": "tokenizer_trainer", "trainer": "trainer", "training": "train"},
    "models": {"language": "arch", "compile": "adapter adapter_pairs rows_gather", "text": "tokenizer", "sample": "file_sampling logprobs sampler samplers stop token_list", "grammar": "grammar", "template": "chat talk template", "calls": "calls", "convert": "convert lora_folder", "load": "load mtp", "guess": "guess", "serve": "engine prompt_folder",
               "small": "small", "run": "beams diffuse embed guesser head label_tokens labels text_inputs media model pooling prompt_cache session stage_rows"},
}
# A definition of a static function, also in a macro that generates some; `static inline` is what any header may have.
STATIC = re.compile(r"^ *static (?!inline\b)[^=;{]*\([^;{]*\) *(\\\n *)?\{", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
SYSTEM = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.M)


def public_rooms():
    rooms = {}
    for component, table in PUBLIC.items():
        for room, names in table.items():
            rooms.update({(component, name): room for name in names.split()})
    return rooms


PUBLIC_ROOM = public_rooms()


def unit_of(path):
    """(component, room, name) of a source file; "models/text/pretok.c" -> ("models", "text", "pretok")."""
    parts = path.split("/")
    if path.startswith("train/llm-train/"):  # a tool, whose folder is not in tools/
        parts[0] = "tools"
    component, name = parts[0], re.sub(r"(_impl)?\.[ch]$", "", parts[-1])
    if len(parts) > 2 and parts[1] == "include":
        return component, PUBLIC_ROOM.get((component, name.removesuffix(".def"))), "include/" + name
    room = parts[1] if len(parts) > 2 else "."
    return component, room, "/".join(parts[2:-1] + [name])


def level(component, room):
    for k, line in enumerate(ROOMS[component]):
        if room in line.split():
            return k
    return None


def arrow_fault(a, b):
    """Why unit a may not include unit b; None: it may."""
    if a[0] != b[0]:
        return None if b[0] in BELOW[a[0]] else f"{a[0]} must not know {b[0]}"
    if a[1] == b[1] or level(*b[:2]) < level(*a[:2]):
        return None
    return f"{a[0]}/{a[1]} must not know {b[0]}/{b[1]}"


def private_fault(a, b):
    """Why unit a may not include unit b, a backend's own header; None: it may, or b is none."""
    if a[0] == "backends" or b[0] != "backends" or b[1] == "common" or b[2].startswith("include/") or {"/".join(a[:2]), "/".join(a)} & KNOW_BACKENDS:
        return None
    return "this header is the backend's own; backends/include has the public ones"


def library_faults(includes):
    """Private headers of the library that tools include although KNOW_LIBRARY does not list them, or that it lists although none does."""
    known = {(folder, f"library/{name}.h") for folder, names in KNOW_LIBRARY.items() for name in names.split()}
    used = {("/".join(path.split("/")[:2]) if path.startswith("tools/") else "train", re.sub(r"\.def$", ".h", target)): path for path, targets in includes.items()
            if path.startswith(("tools/", "train/")) for target in targets if target.startswith("library/") and not target.startswith("library/include/")}
    return sorted([f"{used[one]} includes {one[1]}, which is the library's own: call llm/llm.h" for one in used.keys() - known] +
                  [f"{folder} does not include {header} any more: remove it from KNOW_LIBRARY" for folder, header in known - used.keys()])


def circles(edges):
    """Strongly connected sets of more than one unit (Tarjan's algorithm, without recursion)."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for root in edges:
        work = [(root, iter(sorted(edges[root])))] if root not in index else []
        if work:
            index[root] = low[root] = len(index)
            stack.append(root)
            on.add(root)
        while work:
            v, rest = work[-1]
            for w in rest:
                if w not in index:
                    index[w] = low[w] = len(index)
                    stack.append(w)
                    on.add(w)
                    work.append((w, iter(sorted(edges.get(w, ())))))
                    break
                if w in on:
                    low[v] = min(low[v], index[w])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[v])
                if low[v] == index[v]:
                    members = [stack.pop()]
                    while members[-1] != v:
                        members.append(stack.pop())
                    on.difference_update(members)
                    if len(members) > 1:
                        found.append(sorted(members))
    return found


def check(includes):
    """includes: {path: [paths that it includes]}; returns the faults, sorted."""
    faults, edges = [], {}
    for path, targets in includes.items():
        a = unit_of(path)
        if a[1] is None or level(*a[:2]) is None:
            faults.append(f"{path}: this folder has no place in the order of rooms")
            continue
        edges.setdefault(a, set())
        for target in targets:
            b = unit_of(target)
            if b[1] is None or level(*b[:2]) is None:
                continue  # reported as a path of its own
            fault = arrow_fault(a, b) or private_fault(a, b)
            if fault:
                faults.append(f"{path} includes {target}: {fault}")
            if a != b:
                edges[a].add(b)
    for members in circles(edges):
        faults.append("a circle of includes: " + ", ".join("/".join(m) for m in members))
    return sorted(faults)


def template_fault(path, text):
    """Why a header with this text may not have this name; None: it may."""
    if not path.endswith(".h") or path.endswith("_tmpl.h") == bool(STATIC.search(text)):
        return None
    return f"{path}: " + ("it defines no static function, so it is no _tmpl.h" if path.endswith("_tmpl.h") else
                          "it defines static functions: call it " + path[:-2] + "_tmpl.h")


def system_faults(path, text):
    """Why a file with this text cannot be compiled on every system."""
    return [f"{path}: not every system has <{name}>; {REPLACED[name]} does the same" for name in SYSTEM.findall(text) if name in REPLACED]


def threads_fault(path, text):
    """Why a public header with this text is incomplete; None: it is not."""
    if "/include/" not in path or not path.endswith(".h") or "thread" in text.split("#ifndef")[0].lower():
        return None
    return f"{path}: its first comment does not say what threads may do at the same time"


def read(root):
    """({path: [paths that it includes]}, faults of names)"""
    files = set()
    for component in ROOMS:
        for folder, _, names in os.walk(os.path.join(root, component)):
            files |= {os.path.relpath(os.path.join(folder, n), root) for n in names if n.endswith((".c", ".h", ".def"))}
    includes, faults = {}, []
    for path in files:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read()
        faults += filter(None, [template_fault(path, text), threads_fault(path, text), *system_faults(path, text)])
        places = [os.path.dirname(path), path.split("/")[0]] + [c + "/include" for c in ROOMS] + list(ROOMS)
        found = []
        for name in INCLUDE.findall(text):
            hits = [os.path.normpath(os.path.join(p, name)) for p in places]
            found += [h for h in hits if h in files][:1]  # generated headers are none of them
        includes[path] = found
    return includes, sorted(faults)


def symbols(paths):
    """{object file: (what it defines, what it needs)}"""
    found = {path: (set(), set()) for path in paths}
    lines = subprocess.run(["nm", "-A", *paths], check=True, capture_output=True, text=True).stdout if paths else ""
    for line in lines.splitlines():
        path, rest = line.split(":", 1)
        kind, name = rest.split()[-2:]
        if kind == "U" or kind in "TDBRVWC":
            found[path][kind == "U"].add(name)
    return found


def check_calls(objects):
    """objects: {path of the source: (what it defines, what it needs)}; returns the faults."""
    home = {name: path for path, (defined, _) in objects.items() for name in defined}
    faults = []
    for path, (_, needed) in objects.items():
        for name in needed & home.keys():
            fault = arrow_fault(unit_of(path), unit_of(home[name]))
            if fault:
                faults.append(f"{path} needs {name} of {home[name]}: {fault}")
    return sorted(faults)


def read_objects(root, build):
    """The object files of today's sources. One that several targets compile counts once, with all that its objects define and need."""
    source = {}
    for component in ROOMS:
        for place, _, names in os.walk(os.path.join(build, component)):
            folder, found, inside = place.partition("/CMakeFiles/")
            for name in names if found and ".dir" in inside else []:
                below = inside.partition(".dir")[2].lstrip("/")
                path = os.path.normpath(os.path.join(os.path.relpath(folder, build), below, name[:-2]))
                if name.endswith(".c.o") and os.path.exists(os.path.join(root, path)):
                    source[os.path.join(place, name)] = path
    objects = {path: (set(), set()) for path in source.values()}
    for path, (defined, needed) in symbols(list(source)).items():
        objects[source[path]][0].update(defined)
        objects[source[path]][1].update(needed)
    return objects


# --- circles of calls

REASON = re.compile(r"(recursion|table): \S.*")
CIRCLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "circles.txt")


def call_circles(objects):
    """Sets of files that need each other's symbols, directly or not."""
    home = {}
    for path, (defined, _) in sorted(objects.items()):
        for name in defined:
            home.setdefault(name, set()).add(path)
    edges = {path: {b for name in needed - defined for b in home.get(name, ()) if len(home[name]) == 1} - {path}
             for path, (defined, needed) in objects.items()}
    return sorted(circles(edges))


def circle_faults(found, listed, there):
    """found: a sorted list of files for each circle; listed: {tuple of these: its reason}; there: the files that this build compiles. A listed circle is
    looked for only if all of its files are compiled here."""
    faults = [f"this circle has no reason: write 'recursion: WHY: FILES' if its functions call each other by turns, or 'table: WHY: FILES' if a table "
              f"and its entries know each other; else let one of the files not know the other\n  {' '.join(members)}"
              for members, reason in listed.items() if not REASON.fullmatch(reason)]
    listed = [list(members) for members in listed]
    for members in found:
        if members not in listed:
            within = [c for c in listed if set(members) <= set(c)]
            faults.append(("a circle has become smaller: rooms.py --circles ROOT BUILD --write\n  " if within else
                           "files that call each other in a circle, which circles.txt does not list: let one of them not know the other\n  ")
                          + " ".join(members))
    for members in listed:
        if set(members) <= there and not any(set(c) & set(members) for c in found):
            faults.append("this circle is gone: rooms.py --circles ROOT BUILD --write removes it from circles.txt\n  " + " ".join(members))
    return faults


def read_circles():
    """{files of a circle: its reason}"""
    circle = {}
    with open(CIRCLES, encoding="utf-8") as file:
        for line in file:
            reason, _, files = line.strip().rpartition(": ")
            if not line.startswith("#"):
                circle[tuple(files.split())] = reason
    return circle


def check_circles(root, build, write):
    objects = read_objects(root, build)
    found, listed = call_circles(objects), read_circles()
    if write:
        with open(CIRCLES, "w", encoding="utf-8") as file:
            file.write("# Files that need each other's symbols: in each line the reason, and a circle. This list may only shrink (rooms.py --circles).\n")
            for members in found:
                reasons = [r for c, r in listed.items() if r and set(members) <= set(c)]
                file.write(": ".join(reasons[:1] + [" ".join(members)]) + "\n")
        listed = read_circles()
    faults = circle_faults(found, listed, set(objects))
    if len(objects) < 400:
        faults.append(f"only {len(objects)} objects were found")
    print("\n".join(faults) if faults else f"{len(objects)} objects, {len(found)} circles with {sum(map(len, found))} files, all listed")
    return 1 if faults else 0


def self_test():
    up = {"models/text/a.c": ["models/run/b.h"], "models/run/b.h": []}
    aside = {"tools/llm-cli/a.c": ["tools/llm-arch/b.h"], "tools/llm-arch/b.h": []}
    component = {"backends/cpu/a.c": ["models/run/b.h"], "models/run/b.h": []}
    circle = {"models/text/a.c": ["models/text/b.h"], "models/text/b.c": ["models/text/a.h"], "models/text/a.h": [], "models/text/b.h": []}
    longer = {"models/text/a.h": ["models/text/b.h"], "models/text/b.h": ["models/text/c.h"], "models/text/c.h": ["models/text/a.h"]}
    private = {"library/open.c": ["backends/cpu/cores.h"], "backends/cpu/cores.h": []}
    homeless = {"models/a.c": []}
    public = {"ggml-lite/base/a.c": ["ggml-lite/include/ggl/sched.h"], "ggml-lite/include/ggl/sched.h": []}
    for case in (up, aside, component, circle, longer, private, homeless, public):
        assert len(check(case)) == 1, (case, check(case))
    all_known = {f"{folder}/a.c": [f"library/{name}.h" for name in names.split()] for folder, names in KNOW_LIBRARY.items()}
    assert library_faults(all_known) == [], library_faults(all_known)
    assert len(library_faults({**all_known, "tools/llm-cli/b.c": ["library/context.h", "library/include/llm/llm.h"]})) == 1
    assert len(library_faults({**all_known, "tools/llm-bench/a.c": []})) == 1
    upward = {"models/text/a.c": ({"f"}, {"g", "malloc"}), "models/run/b.c": ({"g"}, {"f"})}
    assert len(check_calls(upward)) == 1, check_calls(upward)
    ring = call_circles({"a.c": ({"f"}, {"g"}), "b.c": ({"g"}, {"h"}), "c.c": ({"h"}, {"f"}), "d.c": ({"k"}, {"f"})})
    assert ring == [["a.c", "b.c", "c.c"]], ring
    all_of = {"a.c", "b.c", "c.c", "d.c"}
    listed = {tuple(ring[0]): "recursion: f calls g, and g calls h, which calls f"}
    assert not circle_faults(ring, listed, all_of) and "does not list" in circle_faults(ring, {}, all_of)[0]
    assert "is gone" in circle_faults([], listed, all_of)[0] and not circle_faults([], listed, {"a.c"})
    assert "smaller" in circle_faults([["a.c", "b.c"]], listed, all_of)[0]
    for reason in ("", "recursion", "recursion: ", "habit: it was always so"):
        assert "no reason" in circle_faults(ring, {tuple(ring[0]): reason}, all_of)[0], reason
    define, declare = "static int f(int a,\n             int b) {\n", "static inline int g(int a) {\n}\nint h(void);\n"
    assert template_fault("a.h", define) and template_fault("a_tmpl.h", declare)
    assert not template_fault("a_tmpl.h", define) and not template_fault("a.h", declare)
    assert threads_fault("models/include/llm/a.h", "/* a */\n#ifndef A\n/* thread */") and not threads_fault("models/run/a.h", "")
    assert not threads_fault("models/include/llm/a.h", "/* Threads: one. */\n#ifndef A")
    assert len(system_faults("tools/a.c", "#include <regex.h>\n# include<fnmatch.h>\n#include <stdio.h>\n")) == 2
    assert not system_faults("models/grammar/a.c", '#include "regex.h"\n')
    right = {"models/run/b.h": ["models/text/a.h"], "models/text/a.h": [], "models/text/a.c": ["models/text/a.h"]}
    assert check(right) == [], check(right)


def main():
    if sys.argv[1:] == ["--test"]:
        self_test()
        return 0
    if sys.argv[1:2] == ["--circles"]:
        return check_circles(*sys.argv[2:4], "--write" in sys.argv)
    includes, faults = read(sys.argv[1])
    faults += check(includes) + library_faults(includes)
    objects = read_objects(*sys.argv[1:3]) if len(sys.argv) > 2 else {}
    faults += check_calls(objects)
    if len(includes) < 100 or (len(sys.argv) > 2 and len(objects) < 60):
        faults.append(f"only {len(includes)} sources and {len(objects)} objects were found")
    print("\n".join(faults) if faults else f"{len(includes)} sources, {len(objects)} objects: every arrow points down, no circle")
    return 1 if faults else 0


sys.exit(main())
