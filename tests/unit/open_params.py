#!/usr/bin/env python3
"""The rows of open_params.def are all that there is to write about an option of opening a model, besides what it does.

    open_params.py ROOT           the struct of llm/context.h has the rows' members, in their order and kinds; Python's arguments and the table of
                                  docs/python.md are what the rows say; each flag is on a page of docs; and few files name a member
    open_params.py ROOT --write   writes what Python and the page have of the rows
    open_params.py ROOT TOOLS     each program has the flags of its rows, with their help, in --help, --man and --completion
    open_params.py ROOT --new CC  with a row more, the library and the programs compile, and Python and the page have it
    open_params.py --test         shows that faults are found"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

from sampler_rows import rows

ROWS = "library/open_params.def"
HEADER = "library/include/llm/context.h"
PYTHON = "python/src/ggml_lite/_open_params.py"
PAGE = "docs/python.md"
PAGES = ["docs/tools.md", "docs/server.md", "docs/cluster.md", "docs/templates.md", "docs/replicas.md"]
C_TYPE = {"BOOL": "bool", "INT": "int64_t", "FLOAT": "double", "TEXT": "const char *", "PATH": "const char *", "MAYBE": "const char *", "WORD": "const char *",
          "TEXTS": "const char *const *", "LORAS": "const llm_lora *", "COUNT": "size_t"}
LETTER = {"BOOL": "?", "INT": "q", "FLOAT": "d", "TEXT": "s", "PATH": "s", "MAYBE": "s", "WORD": "s", "TEXTS": "texts", "LORAS": "loras", "COUNT": "z"}
CALLS = {"progress": "call", "note": "says", "user": "p"}
PYTHON_TYPE = {"BOOL": "bool", "INT": "Optional[int]", "FLOAT": "float", "TEXT": "Optional[str]", "PATH": "Optional[Path]", "MAYBE": "Optional[Path]",
               "WORD": "Optional[str]", "TEXTS": "Sequence[str]", "LORAS": "ScaledFiles",
               "override": "Mapping[str, Union[bool, int, float, str]]", "progress": "Optional[Callable[[int, int], Optional[bool]]]",
               "note": "Optional[Callable[[str], object]]"}
NUMBERS = {"INT64_MAX": 2**63 - 1, "INT32_MAX": 2**31 - 1, "INT64_C(1) << 30": 2**30}
# The most files of the product that name a member: the rows, the header, what Python has of them, and two that do what it says.
MOST_FILES = 5
# Members whose names are words of other things, or that many parts know, each with the reason. The list may only shrink.
COMMON = {"type arch override split fit place strict draft lookup words adapter pooling embeddings progress note user device offline": "words of many things",
          "n_ctx n_ubatch n_parallel n_threads n_threads_batch n_expected n_guess n_override n_adapters": "also members of other structs",
          "no_mmap mlock chat_template no_chat_bos cache_type_k cache_type_v no_repack repack_late repack_cache f16_as_bf16 cpu_moe n_cpu_moe": "also members of what does it",
          "n_gpu_layers mmproj prompt_folder prompt_folder_size image_min_tokens image_max_tokens": "also members of what does it"}
PROGRAMS = {"CLI": "llm-cli", "SERVER": "llm-server", "BENCH": "llm-bench", "IMATRIX": "llm-imatrix", "PERPLEXITY": "llm-perplexity", "EMBED": "llm-embed",
            "TRANSCRIBE": "llm-transcribe"}
SETS = {"WRITES": "CLI SERVER", "GUESSES": "CLI SERVER BENCH", "SEES": "CLI SERVER EMBED", "MEASURES": "IMATRIX PERPLEXITY", "RUNS": "CLI SERVER IMATRIX PERPLEXITY EMBED",
        "LOADS": "CLI SERVER IMATRIX PERPLEXITY EMBED TRANSCRIBE BENCH"}


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as f:
        return f.read()


class Row:
    def __init__(self, a):
        self.kind, self.member, self.part, self.least, self.most, _, self.unset, self.python, self.otherwise, self.what = a[:10]
        self.programs, self.flag, self.also = a[11:14]
        self.what, self.otherwise = (t.replace('\\"', '"') for t in (self.what, self.otherwise))
        self.help = help_of(a)
        self.argument, self.inverted = self.python.lstrip("!"), self.python.startswith("!")

    def default(self):
        return {"BOOL": str(self.inverted), "INT": "0", "FLOAT": self.unset, "TEXTS": "()", "LORAS": "()"}.get(self.kind, "None") if self.member != "override" else "{}"


def help_of(a):
    found = [x[len(".help = ") :] for x in a if x.startswith(".help = ")]
    return found[0].strip('"') if found else ""


def read_rows(text):
    return [Row(a) for a in rows(text, "OPEN_PARAM")]


def flags_of(text):
    """[(programs, spellings, help)] of all rows that programs have."""
    of = [(a[11], a[12], a[13], help_of(a)) for a in rows(text, "OPEN_PARAM")]
    of += [(a[4], a[5], a[6], help_of(a)) for macro in ("OPEN_OWN", "OPEN_ALSO") for a in rows(text, macro)]
    of += [("LOADS", a[6], "", help_of(a)) for a in rows(text, "OPEN_ROPE")]
    return [(programs_of(p), [flag, *also.split()], help) for p, flag, also, help in of if p != "0"]


def programs_of(text):
    found = set()
    for k, part in enumerate(text.replace("&", "|").split("|")):
        part = part.strip()
        names = set(SETS.get(part.lstrip("~"), part.lstrip("~")).split())
        found = found - names if part.startswith("~") else found | names
    return {PROGRAMS[n] for n in found}


def members(text):
    """[(member, C type)] of rows, in order."""
    found = []
    for m in re.finditer(r"^OPEN_(PARAM|COUNT)\(((\w+), )?(\w+)", text, re.M):
        kind, name = (m[3], m[4]) if m[1] == "PARAM" else ("COUNT", m[3])
        found.append((name, None if kind == "CALL" else C_TYPE[kind]))
    return found


def struct_members(header):
    body = re.search(r"typedef struct llm_open_params \{(.*?)\n\} llm_open_params;", re.sub(r"/\*.*?\*/", "", header, flags=re.S), re.S)[1]
    found = []
    for part in filter(None, (re.sub(r"\s+", " ", p).strip() for p in body.split(";"))):
        call = re.search(r"\(\*(\w+)\)\(", part)
        if call or part == "void *user":
            found.append((call[1] if call else "user", None))
            continue
        first, *further = part.split(", ")
        kind, name = re.fullmatch(r"(.*?)(\w+)", first).groups()
        found += [(n.lstrip("*"), kind.strip()) for n in (name, *further)]
    return found[1:]  # without size


def header_faults(text, header):
    want, have = members(text), struct_members(header)
    return [f"{HEADER}: llm_open_params has {h}, but {ROWS} {w}" for w, h in zip(want, have) if w != h][:1] or (
        [] if len(want) == len(have) else [f"{HEADER}: llm_open_params has {len(have)} members, and {ROWS} {len(want)}"])


def plain(text):
    """Without links and marks."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "")


def python_file(text):
    all_rows = [r for r in read_rows(text) if r.argument]
    widest = max(len(r.argument) for r in all_rows)
    letters = [(m[4] if m[1] == "PARAM" else m[3], CALLS.get(m[4]) if m[3] == "CALL" else LETTER[m[3] if m[1] == "PARAM" else "COUNT"])
               for m in re.finditer(r"^OPEN_(PARAM|COUNT)\(((\w+), )?(\w+)", text, re.M)]
    out = ['"""The arguments of Model() and the struct that is made of them, as library/open_params.def has them. Written by tests/unit/open_params.py --write."""',
           "from __future__ import annotations", "", "import os",
           "from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Tuple, TypedDict, Union", "",
           'Path = Union[str, "os.PathLike[str]"]', "ScaledFiles = Union[Path, Tuple[Path, float], Mapping[Any, float], Sequence[Union[Path, Tuple[Path, float]]]]", "",
           'FIELDS = """size:z']
    line = ""
    for name, letter in letters:
        word = f"{name}:{letter}"
        if len(line) + len(word) > 100:
            out.append(line.rstrip())
            line = ""
        line += word + " "
    out += [line.rstrip() + '"""', "", "", "class Opening(TypedDict, total=False):", '    """Arguments of Model(), all by their names. None is the default.', ""]
    for r in all_rows:
        words = plain(r.what) + (f"; default: {plain(r.otherwise)}" if r.otherwise else "")
        out += textwrap.wrap(words, 145, initial_indent=f"    {r.argument:{widest}} ", subsequent_indent=" " * (widest + 5))
    out[-1] += '"""'
    out.append("")
    out += [f"    {r.argument}: {PYTHON_TYPE.get(r.member, PYTHON_TYPE.get(r.kind))}" for r in all_rows]
    out += ["", "", "class Row(NamedTuple):", "    argument: str", "    member: str", "    kind: str", "    is_opposite: bool", "    most: int", "    default: Any", "", "",
            "ROWS = ["]
    for r in all_rows:
        most = NUMBERS.get(r.most, r.most) if r.kind == "INT" else 0
        out.append(f'    Row("{r.argument}", "{r.member}", "{r.kind}", {r.inverted}, {most}, {r.default()}),')
    return "\n".join(out + ["]", ""])


def page_rows(text):
    out = []
    for r in read_rows(text):
        if r.argument:
            default = r.otherwise or ("" if r.kind in ("TEXT", "CALL") else f"`{r.default()}`" if r.kind == "BOOL" else r.default())
            out.append(f"| `{r.argument}` | {r.what} | {default} |")
    return "\n".join(out)


def page_with(page, text):
    head = "| argument of `Model` | meaning | default |\n|---|---|---|\n"
    at = page.index(head) + len(head)
    end = page.index("\n\n", at)
    return page[:at] + page_rows(text) + page[end:]


def page_faults(root, text):
    faults = []
    pages = "".join(read(root, p) for p in PAGES)
    for _, names, _ in flags_of(text):
        if not any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", pages) for name in names):
            faults.append(f"no page of docs has {' or '.join(names)}")
    return faults


def file_faults(root, text):
    common = set(" ".join(COMMON).split())
    names = [m for m, _ in members(text)]
    files = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "--", "library", "tools", "models", "train", "python/src"], capture_output=True, text=True,
                           check=True).stdout.split("\n")
    used = {n: [] for n in names}
    for name in files:
        if re.search(r"\.(c|h|def|py)$", name) and not name.startswith("tools/train/") and os.path.exists(os.path.join(root, name)):
            words = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/|//[^\n]*", "", read(root, name), flags=re.S)))
            for n in words & set(names):
                used[n].append(name)
    faults = [f"{n} stands in {len(f)} files, at most {MOST_FILES} need it: {', '.join(f)}" for n, f in used.items() if len(f) > MOST_FILES and n not in common]
    return faults + [f"{n} of COMMON is no member, or stands in few files" for n in sorted(common) if len(used.get(n, [])) <= MOST_FILES]


def check(root):
    text = read(root, ROWS)
    faults = header_faults(text, read(root, HEADER)) + page_faults(root, text) + file_faults(root, text)
    if read(root, PYTHON) != python_file(text):
        faults.append(f"{PYTHON} is not what the rows say: open_params.py --write writes it")
    page = read(root, PAGE)
    if page_with(page, text) != page:
        faults.append(f"{PAGE}: the arguments of Model are not what the rows say: open_params.py --write writes them")
    unset = re.search(r"llm_open_default\(void\) \{(.*?)\n\}", read(root, HEADER), re.S)[1]
    for r in read_rows(text):
        if r.kind == "FLOAT" and f"p.{r.member} = {r.unset};" not in unset:
            faults.append(f"{HEADER}: llm_open_default does not set {r.member} to {r.unset}")
    return faults


def write(root):
    text, page = read(root, ROWS), read(root, PAGE)
    for name, content in ((PYTHON, python_file(text)), (PAGE, page_with(page, text))):
        with open(os.path.join(root, name), "w", encoding="utf-8") as f:
            f.write(content)
    return []


def one_line(text):
    return re.sub(r"\s+", " ", text)


def tool_faults(tools, text):
    """The help of a row as --help breaks it into lines, and its flags in the three texts."""
    faults, faces = [], {}
    for programs, names, help in flags_of(text):
        for program in sorted(programs):
            path = os.path.join(tools, program)
            if not os.access(path, os.X_OK):
                continue
            if program not in faces:
                faces[program] = [subprocess.run([path, *a], capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
                                  for a in (["--help"], ["--man"], ["--completion", "bash"])]
            shown, man, completion = faces[program]
            for name in names:
                if not re.search(rf"(?m)^  .*(?<![\w-]){re.escape(name)}(?![\w-])", shown):
                    faults.append(f"{program} --help lacks {name}")
                if name.replace("-", "\\-") not in man:
                    faults.append(f"{program} --man lacks {name}")
                if name not in completion:
                    faults.append(f"{program} --completion lacks {name}")
            words = re.sub(r'" *\w+ *$', "", help).replace('\\"', '"')  # without a macro after the text
            if one_line(words)[:60] not in one_line(shown):
                faults.append(f"{program} --help does not say of {names[0]}: {words}")
    return faults


NEW = '''OPEN_PARAM(BOOL, new_option, PART(placement.strict), 0, 0, "", false, "new_option", "", "a new option", PLACE, LOADS, "--new-option", "", NULL,
    .help = "what a new option does")
'''


def new_faults(root, cc):
    """With a row more, and the member in the header, nothing else has to change."""
    faults = []
    with tempfile.TemporaryDirectory() as t:
        shutil.copytree(os.path.join(root, "library/include"), os.path.join(t, "library/include"))
        os.makedirs(os.path.join(t, "tools/common"))
        for name in ("library/open_params.def", "library/opening.h", "library/opening_impl.h", "library/open_parts.c", "tools/common/open_options.h",
                     "tools/common/open_options.c"):
            shutil.copy(os.path.join(root, name), os.path.join(t, name))
        rows_text = read(t, ROWS)
        at = rows_text.index("OPEN_OWN(TEXT, trace,")
        text = rows_text[:at] + NEW + rows_text[at:]
        header = read(t, HEADER)
        at = header.index("    /* --- guessing ahead */")
        header = header[:at] + "    bool new_option;\n\n" + header[at:]
        for name, content in ((ROWS, text), (HEADER, header)):
            with open(os.path.join(t, name), "w", encoding="utf-8") as f:
                f.write(content)
        faults += header_faults(text, header)
        include = [f"-I{os.path.join(at, d)}" for at in (t, root) for d in ("library", "library/include", "tools/common", "tools")]
        include += [f"-I{os.path.join(root, d)}" for d in ("models", "models/include", "ggml-lite/include", "ggml-lite", "backends/include")]
        for name in ("library/open_parts.c", "tools/common/open_options.c"):
            r = subprocess.run([cc, "-std=c11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *include, os.path.join(t, name)], capture_output=True, text=True)
            faults += [f"{name} with a new row: {r.stderr}"] if r.returncode else []
    if '    new_option: bool' not in python_file(text) or '| `new_option` | a new option | `False` |' not in page_rows(text):
        faults.append("a new row does not come into Python's arguments and their page")
    return faults


def self_test():
    header = "typedef struct llm_open_params {\n    size_t size; /* x */\n    const char *a, *b;\n    int64_t n;\n    bool (*progress)(void *user, int x);\n} llm_open_params;"
    assert struct_members(header) == [("a", "const char *"), ("b", "const char *"), ("n", "int64_t"), ("progress", None)], struct_members(header)
    row = 'OPEN_PARAM(TEXT, a, OWN, 0, 0, "", NULL, "a", "", "what", PLACE, LOADS & ~BENCH, "--a", "-b -c", "X", .help = "does, it")\n'
    assert len(header_faults(row, header)) == 1
    assert flags_of(row) == [({"llm-cli", "llm-server", "llm-imatrix", "llm-perplexity", "llm-embed", "llm-transcribe"}, ["--a", "-b", "-c"], "does, it")], flags_of(row)
    with tempfile.TemporaryDirectory() as t:
        with open(os.path.join(t, "llm-cli"), "w") as f:
            f.write("#!/bin/sh\necho '  --a X  does, it'\n")
        os.chmod(os.path.join(t, "llm-cli"), 0o755)
        faults = tool_faults(t, row)
        assert len([x for x in faults if x.endswith((" -b", " -c"))]) == 6 and not [x for x in faults if "does not say" in x], faults
    return []


def main(args):
    if args == ["--test"]:
        faults = self_test()
    elif args[1:] == ["--write"]:
        faults = write(args[0])
    elif args[1:2] == ["--new"]:
        faults = new_faults(args[0], args[2])
    elif len(args) == 2:
        faults = tool_faults(args[1], read(args[0], ROWS))
    else:
        faults = check(args[0])
    print("\n".join(faults) or "as the rows say")
    return 1 if faults else 0


sys.dont_write_bytecode = True
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
