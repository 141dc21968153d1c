#!/usr/bin/env python3
"""sampler_rows.py ROOT: the rows of the sampler (samplers.def) are the only list of samplers. No other product file names a number or a flag
of one, except the files of ALLOWED, and docs/sampling.md has the same stages, letters, defaults, ranges and flags."""
import os
import re
import subprocess
import sys

ROWS = "models/include/llm/internal/samplers.def"
# Files that may name samplers, each with the reason; a folder ends with '/'.
ALLOWED = {
    ROWS: "the rows",
    "models/sample/": "the functions",
    "library/include/llm/context.h": "the members that programs are compiled with, which stay as they are",
    "python/src/ggml_lite/": "options with their types, for type checkers; the library names further ones",
    "tools/llm-server/page/": "the settings of the page, a few of all",
    "tools/llm-server/read_fields_sampling.c": "top_k -1, which clients send, and mirostat 1",
    "tools/llm-server/fields_sampling.def": "the same two",
    "tools/common/hints.c": "what flags of other programs stand for",
    "tools/llm-server/api_ollama.c": "what fields of Ollama stand for",
    "tools/llm-server/api_anthropic.c": "what Anthropic's API has of them",
    "tools/llm-server/api_openai_events.c": "what OpenAI's API shows of them",
    "models/include/llm/internal/diffuse.h": "diffusion draws the token of a mask by rules of its own",
    "models/run/diffuse.c": "diffusion draws the token of a mask by rules of its own",
    "tools/llm-cli/diffusion.c": "diffusion draws the token of a mask by rules of its own",
    "models/language/words.c": "a function of descriptors",
    "models/made_up/survey.c": "the same",
    "models/convert/known_config.txt": "keys of generation_config.json",
}
TOO_COMMON = {"temp", "temperature", "--temp", "--temperature"}  # in examples, and what llm-bench sends


def arguments(text):
    """The arguments of a call, from after its parenthesis to its end."""
    out, depth, quoted, i = [""], 0, False, 0
    while depth >= 0:
        ch = text[i]
        if ch == '"' and text[i - 1] != "\\":
            quoted = not quoted
        depth += 0 if quoted else (ch == "(") - (ch == ")")
        if ch == "," and depth == 0 and not quoted:
            out.append("")
        elif depth >= 0:
            out[-1] += ch
        i += 1
    return [re.sub(r"\s+", " ", a.strip()).strip('"') for a in out]


def rows(text, macro):
    return [arguments(text[m.end() :]) for m in re.finditer(rf"^{macro}\(", text, re.M)]


def range_text(low, high):
    low, high = low.replace("-FLT_MAX", "-inf"), high.replace("FLT_MAX", "inf").replace("INT32_MAX", "2^31 - 1")
    if (low, high) == ("-inf", "inf"):
        return "any finite number"
    if low == "FLT_MIN":
        return "positive and finite"
    return f"{low} or more" if high == "inf" else f"{low} to {high}"


def section(page, heading):
    begin = page.index(f"\n## {heading}") + 1
    return page[begin : page.index("\n## ", begin)]


def check_keys(page, keys):
    """The keys of files, their numbers, and the names in generation_config.json."""
    found = [tuple(re.split(r"[;,]", c.strip("| "))[0].strip("`") for c in line.split(" | "))
             for line in re.findall(r"^\| `general\.sampling\..* \|$", section(page, "Defaults of a model's file"), re.M)]
    wanted = [(f"general.sampling.{key}", name, config.split()[0]) for name, key, config in keys]
    if found[:-1] != wanted or found[-1][0] != "general.sampling.sequence":
        yield f"docs/sampling.md: the table of keys has {found}, but {ROWS} {wanted}, and there is the sequence"


def check_table(page, stages, numbers):
    found = re.findall(r"^\| `(\w+)` \| `(.)` \|", page, re.M)
    wanted = [(s[1], s[3]) for s in stages]
    if found != wanted:
        yield f"docs/sampling.md: the table of stages has {found}, but {ROWS} {wanted}"
    cells = {}
    for line in re.findall(r"^\| .* \|$", section(page, "Parameters"), re.M):
        names, default, allowed, flag = (c.strip() for c in line.strip("| ").split(" | "))
        for i, name in enumerate(names.split(", ")):
            cells[name] = (default.split(" (")[0].split(", ")[i if ", " in default else 0], allowed, flag)
    for _, name, default, _, _, low, high, _, _, flags, _, flag_low, flag_high, _ in numbers:
        if name not in cells:
            yield f"docs/sampling.md: the table of parameters lacks {name}"
            continue
        shown, allowed, flag = cells[name]
        if shown != default:
            yield f"docs/sampling.md: {name} has the default {shown}, but {default} in {ROWS}"
        if allowed not in (range_text(low, high), "0, 2") and name != "dry_base":
            yield f"docs/sampling.md: {name} may be {allowed}, but {range_text(low, high)} in {ROWS}"
        narrower = range_text(flag_low, flag_high)
        if f"`{flags.split()[0]}`" not in flag or (narrower != range_text(low, high) and narrower not in flag and name != "dry_base"):
            yield f"docs/sampling.md: {name} has the flag {flag}, but {flags.split()[0]}, {narrower} in {ROWS}"


def check_files(root, numbers):
    words = {w for n in numbers for w in [n[1], n[8], *n[9].split()]} - TOO_COMMON
    word = re.compile(rf"(?<![\w-])({'|'.join(sorted(map(re.escape, words), key=len, reverse=True))})(?![\w-])")
    files = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "--", "models", "library", "train", "tools", "python/src", "backends", "ggml-lite"],
                           capture_output=True, text=True, check=True).stdout.split("\n")
    used = set()
    for name in files:
        path = os.path.join(root, name)
        if not re.search(r"\.(c|h|def|py|js|txt)$", name) or name.startswith("tools/train/") or not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as f:
            found = {m.group(1) for m in word.finditer(re.sub(r"/\*.*?\*/|//[^\n]*", "", f.read(), flags=re.S))}
        allowed = next((a for a in ALLOWED if name == a or a.endswith("/") and name.startswith(a)), None)
        used |= {allowed} if found else set()
        if found and not allowed:
            yield f"{name} names {', '.join(sorted(found))}; {ROWS} should be the only list (or {os.path.basename(__file__)} says why not)"
    for name in ALLOWED.keys() - used:
        yield f"{name} names no sampler; remove it from the files that may"


def main(root):
    with open(os.path.join(root, ROWS), encoding="utf-8") as f:
        text = f.read()
    with open(os.path.join(root, "docs/sampling.md"), encoding="utf-8") as f:
        page = f.read()
    stages = rows(text, "SAMPLER_(?:FIRST_)?STAGE")
    numbers = rows(text, "SAMPLER_NUMBER")
    wrong = [*check_table(page, stages, numbers), *check_keys(page, rows(text, "SAMPLER_KEY")), *check_files(root, numbers)]
    print("\n".join(wrong) or f"{len(stages)} stages, {len(numbers)} numbers")
    return 1 if wrong or not stages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
