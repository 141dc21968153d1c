#!/usr/bin/env python3
"""flags.py TOOLS HINT_TABLE [--write]: what a person types who comes from llama.cpp or whisper.cpp. Each flag of their tools (tests/data/llama.cpp-flags.txt)
works here, is accepted with a note, or is refused with a sentence; each hint does what its row says, and names only flags that there are.
docs/from-llama-cpp.md has these tables; --write updates them. TOOLS: the folder of the programs; HINT_TABLE: a program that prints the hints."""
import concurrent.futures
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PAGE = os.path.join(ROOT, "docs/from-llama-cpp.md")
TOOL_OF = {"llama-cli": "llm-cli", "llama-completion": "llm-cli", "llama-server": "llm-server", "llama-perplexity": "llm-perplexity",
           "llama-tokenize": "llm-tokenize", "llama-bench": "llm-bench", "llama-quantize": "llm-quantize", "llama-imatrix": "llm-imatrix",
           "llama-embedding": "llm-embed", "whisper-cli": "llm-transcribe"}
ALL = ["llama-cli", "llama-completion", "llama-server", "llama-perplexity", "llama-tokenize", "llama-imatrix", "llama-embedding"]
failed = []


def fail(text):
    failed.append(text)
    print("FAILED:", text)


def read_flags():
    """(tool, spelling, value) of all flags; the value is None for a flag without one."""
    with open(os.path.join(ROOT, "tests/data/llama.cpp-flags.txt"), encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f if not line.startswith("#")]
    seen = {}
    for line in lines:
        theirs, names, value = (part.strip() for part in line.split("|", 2))
        for their in ALL if theirs == "all" else theirs.split():
            for name in names.split():
                seen.setdefault((TOOL_OF[their], name), value or None)
    return [(tool, name, value) for (tool, name), value in seen.items()]


class Tools:
    def __init__(self, folder):
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("LLAMA_ARG_", "OLLAMA_"))}
        self.flags = {}

    def has(self, tool):
        return os.access(os.path.join(self.folder, tool), os.X_OK)

    def run(self, tool, *args):
        return subprocess.run([os.path.join(self.folder, tool), *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.env)

    def help(self, tool):
        """The flags that --help prints, and those that only the manual page has."""
        if tool not in self.flags:
            text = self.run(tool, "--help").stdout
            self.flags[tool] = set(re.findall(r"(?:^|[\s\[(])(--?[a-zA-Z][\w.-]*)", text)) | {"--completion", "--man"}
        return self.flags[tool]

    def answer(self, tool, flag, value=None):
        """How the tool answers the flag: works, nothing, refused, or what it printed."""
        r = self.run(tool, *([flag] if value is None else [flag, value]), "--version")
        shown = flag if value is None else f"{flag} {value}"
        if r.returncode == 2 and re.match(rf"{tool}: there is no flag '{re.escape(flag)}[^']*': .", r.stderr):
            return "refused"
        if r.returncode == 0 and re.search(rf"^{tool}: note: {re.escape(flag)}[^:]*: .*; the flag has no effect$", r.stderr, re.M):
            return "nothing"
        return "works" if r.returncode == 0 and not r.stderr else f"{tool} {shown}: exit code {r.returncode}: {r.stderr.strip()}"


def check_flags(tools, flags):
    def one(f):
        answer = tools.answer(*f)
        return f, answer
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = dict(pool.map(one, [f for f in flags if tools.has(f[0])]))
    for answer in answers.values():
        if answer not in ("works", "nothing", "refused"):
            fail(answer)
    return answers


def check_words(tools, tool, names, text):
    """Flags in a hint's text are flags of the tool. Text between back quotes, and after another tool's name, is not looked at."""
    text = re.sub(r"`[^`]*`", "", text)
    text = re.sub(r"llm-[a-z]+ [^,;:]*", "", text)
    for word in re.findall(r"(?:^|[\s(])(--?[a-zA-Z][\w-]*)", text):
        if word not in tools.help(tool):
            fail(f"{tool}: the hint for {names} names {word}, which it does not have: {text}")


def check_hints(tools, hints):
    def one(job):
        tool, kind, name, text = job
        flag, _, value = name.replace("*", "any").partition("=")
        answers = [tools.answer(tool, flag, v) for v in ([value] if value else [None, "1", "f16"] if kind == "nothing" else [None])]
        if kind == "same":
            r = tools.run(tool, *([flag, value] if value else [flag]), "--version")
            ok = r.returncode == 0 and not r.stderr or "is missing" in r.stderr
            return job, "same" if ok else answers[0]
        return job, kind if kind in answers else answers[0]
    jobs = [(tool, kind, name, text) for tool, kind, names, text in hints if tools.has(tool) for name in names.split()]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (tool, kind, name, text), answer in pool.map(one, [j for j in jobs if j[2].startswith("-")]):
            if answer != kind:
                fail(f"{tool} {name} is {kind} in the table: {answer}")
            if kind == "same" and text.split("=")[0] not in tools.help(tool):
                fail(f"{tool} {name}: {text} is not in --help")
    for tool, kind, name, text in jobs:
        if not name.startswith("-"):
            r = tools.run(tool, name)
            if r.returncode != 2 or f"there is no command '{name}': " not in r.stderr:
                fail(f"{tool} {name}: {r.stderr}")
    for tool, kind, names, text in hints:
        if tools.has(tool) and kind != "same":
            check_words(tools, tool, names, text)


def check_values(tools, hints):
    """A message that lists the values of a flag has those of other programs, too, which the flag takes."""
    values = {}
    for tool, kind, names, _ in hints:
        for name in names.split() if kind != "refused" and tools.has(tool) else []:
            flag, _, value = name.partition("=")
            if value:
                values.setdefault((tool, flag), []).append(value)
    n_listed = 0
    for (tool, flag), taken in values.items():
        text = tools.run(tool, flag, "wrong-value", "--version").stderr
        listed = re.search(r"'wrong-value' is not one of ([^;\n]*)", text)
        n_listed += bool(listed)
        for value in taken if listed else []:
            if value.lower() not in [v.lower() for v in listed[1].split(", ")]:
                fail(f"{tool} {flag} takes {value}, which its message does not list: {text.strip()}")
    if not n_listed:
        fail("no flag with values of other programs lists its values")


def check_environment(tools):
    """Variables of ollama's server are noted by the tool that serves."""
    for tool, noted in (("llm-server", True), ("llm-cli", False)):
        if tools.has(tool):
            env = dict(tools.env, OLLAMA_HOST="0.0.0.0", OLLAMA_KV_CACHE_TYPE="q8_0")
            r = subprocess.run([os.path.join(tools.folder, tool), "--list-devices"], capture_output=True, text=True, env=env)
            told = "note: only ollama reads these variables; flags set the same here: OLLAMA_" in r.stderr and "OLLAMA_KV_CACHE_TYPE" in r.stderr
            if told != noted or r.returncode:
                fail(f"{tool} with OLLAMA_HOST: {r.stderr}")


def code(names):
    return ", ".join("`%s`" % name.replace("=", " ", 1) for name in names)


def cell(text):
    return text.replace("|", "\\|")


def tables(flags, answers, hints):
    """The generated part of the page."""
    lines = ["## The same", "", "These flags mean what they mean there.", "", "| tool | flags |", "|---|---|"]
    for tool in dict.fromkeys(f[0] for f in flags):
        known = {name for t, kind, names, _ in hints if t == tool for name in names.split()}
        same = [f[1] for f in flags if f[0] == tool and answers[f] == "works" and f[1] not in known]
        lines.append(f"| `{tool}` | {code(same)} |")
    heads = {"same": ("Another name", "Each works, and may be typed as it is.", "here"),
             "nothing": ("Not needed", "Each is accepted, with a note on standard error that gives the reason.", "because"),
             "refused": ("Not there", "Each is an error (exit code 2) with this sentence.", "instead")}
    for kind, (title, about, column) in heads.items():
        rows = {}
        for tool, k, names, text in hints:
            if k == kind:
                rows.setdefault((names, text), []).append(tool)
        lines += ["", f"## {title}", "", about, "", f"| there | tools | {column} |", "|---|---|---|"]
        for (names, text), tools in rows.items():
            shown = f"`{text}`" if kind == "same" else text.replace("<", "&lt;")
            lines.append(f"| {cell(code(names.split()))} | {', '.join(t[4:] for t in tools)} | {cell(shown)} |")
    return "\n".join(lines) + "\n"


def main():
    write = "--write" in sys.argv
    folder, table = [a for a in sys.argv[1:] if a != "--write"]
    hints = [tuple(line.split("\t")) for line in subprocess.run([table], capture_output=True, text=True, check=True).stdout.splitlines()]
    tools = Tools(folder)
    flags = read_flags()
    answers = check_flags(tools, flags)
    check_hints(tools, hints)
    check_values(tools, hints)
    check_environment(tools)
    if not all(tools.has(t) for t in set(TOOL_OF.values())):
        print("a tool is not built; the page is not compared")
        return 1 if failed else 0
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    begin = "<!-- the tables below are written by tests/e2e/flags.py --write -->\n"
    head, _, rest = page.partition(begin)
    wanted = head + begin + "\n" + tables(flags, answers, hints)
    if write:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(wanted)
    elif page != wanted:
        fail("docs/from-llama-cpp.md is not what tests/e2e/flags.py --write makes of the tables")
    return 1 if failed else 0


sys.exit(main())
