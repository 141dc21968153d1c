#!/usr/bin/env python3
"""docs_commands.py SOURCE_DIR TOOLS: every flag in the commands that the pages show is a flag of its program.

Commands are those in blocks of shell, of README.md and docs/*.md. A flag is asked for by `PROGRAM FLAG --no-such-1 --no-such-2`:
the program never starts its work, because at least the last flag is unknown, and the message names the first that is."""
import glob
import os
import re
import shlex
import subprocess
import sys

NO_SUCH = ["--no-such-1", "--no-such-2"]


def blocks(text):
    """The lines of a page's blocks of shell: fenced by ```sh, or indented."""
    fence = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            fence = line[3:] if fence is None else None
        elif fence == "sh" or (fence is None and line.startswith("    ")):
            yield number, line.strip()


def commands(line):
    """The words of each command of a line. A substitution, $(..), is a command of its own, and its place has one word."""
    inner = re.findall(r'"?\$\(([^()]*)\)"?', line)
    line = re.sub(r'"?\$\([^()]*\)"?', "x", line)
    for part in [line] + inner:
        try:
            lexer = shlex.shlex(part, posix=True, punctuation_chars=True)
            lexer.commenters = "#"
            lexer.wordchars += "~-./*?=,:+%@"
            words = list(lexer)
        except ValueError:  # a quote that is closed on the next line
            words = part.split("'")[0].split()
        one = []
        for word in words + [";"]:
            if set(word) <= set("();<>|&"):
                yield one
                one = []
            else:
                one.append(word)


def find(tools, words):
    """The program and subcommand of a command's words, and the words after these; None if it is none of ours."""
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):  # variables before a command
        words = words[1:]
    if not words:
        return None
    name = os.path.basename(words[0])
    if words[0] == "./run":
        name = "llm-cli"
        if words[1:2] == ["server"]:
            name, words = "llm-server", words[1:]
    if not re.fullmatch(r"llm-[a-z]+", name) or not os.path.exists(os.path.join(tools, name)):
        return None
    has_commands = {"llm-tokenize": "train", "llm-train": "new add-tokens", "llm-bench": "make ops conform serve", "llm-lora": "merge extract show convert export", "llm-gguf": "show check diff hash get set unset extract split merge", "llm-arch": "check verify doctor graph show diff init embed compile list"}
    if words[1:2] and words[1] in has_commands.get(name, "").split():
        return (name, words[1]), words[2:]
    return (name,), words[1:]


def refused(tools, program, flag):
    """What the program says if the flag is not one of its own, or None."""
    done = subprocess.run([os.path.join(tools, program[0]), *program[1:], flag, *NO_SUCH], capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL, check=False)
    return done.stderr.strip() if f"flag '{flag}'" in done.stderr else None


def main():
    source, tools = sys.argv[1:]
    seen, faults = {}, []
    for page in [os.path.join(source, "README.md")] + sorted(glob.glob(os.path.join(source, "docs/*.md"))):
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for number, line in blocks(text):
            for words in commands(line):
                program, rest = find(tools, words) or (None, [])
                for word in rest:
                    flag = re.match(r"--?[a-zA-Z][\w-]*", word)
                    if not flag or program is None:
                        continue
                    key = program, flag.group()
                    if key not in seen:
                        seen[key] = refused(tools, *key)
                    if seen[key]:
                        faults.append(f"{os.path.relpath(page, source)}:{number}: {seen[key]}")
    print("\n".join(faults) if faults else f"{len(seen)} flags of commands are known")
    if not refused(tools, ("llm-cli",), "--such-a-flag-does-not-exist"):
        faults.append("the test finds nothing")
    return bool(faults) or len(seen) < 60


if __name__ == "__main__":
    sys.exit(main())
