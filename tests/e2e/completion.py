"""Completion of command lines and manual pages, which the tools print: driven by the shells themselves.
completion.py TOOL.."""
import os, pty, re, select, shutil, subprocess, sys, tempfile, time

from checks import check, finish

TOOLS = {os.path.basename(t): os.path.abspath(t) for t in sys.argv[1:]}
ENV = dict(os.environ, LC_ALL="C.UTF-8", COLUMNS="80")
WHERE = tempfile.mkdtemp()
for name in ("one.gguf", "two.gguf", "notes.txt", "with space.gguf"):
    open(os.path.join(WHERE, name), "w").close()
os.mkdir(os.path.join(WHERE, "folder"))


def run(*args, **more):
    return subprocess.run(args, capture_output=True, text=True, cwd=WHERE, env=ENV, stdin=subprocess.DEVNULL, **more)


def commands_of(tool):
    """The commands of a tool, as --help lists them."""
    text = run(TOOLS[tool], "--help", "commands").stdout
    return re.findall(r"^  (\w+) ", text, re.M) if "COMMAND" in text else []


def spelling(help_text):
    """The flags that a help text lists."""
    names = re.findall(r"^  (-.*?)(?:  .*|)$", help_text, re.M)
    return {flag for line in names for flag in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", line.split("  ")[0])}


SHELLS = [s for s in ("bash", "zsh", "fish") if shutil.which(s)]
for shell in {"bash", "zsh", "fish"} - set(SHELLS):
    print(f"skipped: {shell} is not installed, so its completion is only searched for flags")
if not shutil.which("groff"):
    print("skipped: groff is not installed, so manual pages are only searched for flags")
SCRIPT = {}

for tool, path in TOOLS.items():
    page = run(path, "--man").stdout
    check(page.startswith(".\\\" Written by"), tool, "--man", page[:80])
    if shutil.which("groff"):
        for device in ("utf8", "ascii"):
            p = subprocess.run(["groff", "-man", "-ww", "-Kutf8", "-T" + device], input=page, capture_output=True, text=True,
                               env=ENV)
            check(p.returncode == 0 and not p.stderr, tool, "groff", p.stderr[:300])
            for part in ("NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "EXIT STATUS"):
                check(part in re.sub(r"\x1b\[[0-9;]*m|.\x08", "", p.stdout), tool, "the page lacks", part)
    for shell in ("bash", "zsh", "fish"):
        script = run(path, "--completion", shell)
        check(script.returncode == 0 and not script.stderr, tool, shell, script.stderr)
        SCRIPT[tool, shell] = os.path.join(WHERE, f"{tool}.{shell}")
        with open(SCRIPT[tool, shell], "w") as f:
            f.write(script.stdout)
        if shell in SHELLS:
            p = run(shell, "-n", SCRIPT[tool, shell])
            check(p.returncode == 0 and not p.stderr, tool, shell, "-n", p.stderr)
    flags = spelling(run(path, "--help").stdout)
    for command in commands_of(tool):
        flags |= spelling(run(path, command, "--help").stdout)
    check({"--help", "-q", "--version"} <= flags, tool, "flags of the help:", flags)
    plain = page.replace("\\", "")
    for flag in flags | {"--man", "--completion"}:
        check(re.search(r"fB" + re.escape(flag) + r"fR", plain), tool, flag, "is not in the manual page")
        for shell in ("bash", "zsh", "fish"):
            with open(SCRIPT[tool, shell]) as f:
                script = f.read()
            name = re.escape(flag.lstrip("-"))
            check(re.search(rf" -(s|o|l) {name}(?![\w-])" if shell == "fish" else rf"[' )*]{re.escape(flag)}(?![\w-])", script), tool, flag,
                  "is not in the completion of", shell)

check(run(TOOLS["llm-cli"], "--completion", "tcsh").returncode == 2, "a shell that is not known")
check(run(TOOLS["llm-cli"], "--completion").returncode == 2, "no shell")


# --- what the shells make of it ---------------------------------------------------------------------------------------

def with_bash(line):
    """What bash offers for the last word of a line; its own splitting of words is imitated."""
    words = re.findall(r"=|[^\s=]+", line) + ([""] if line.endswith((" ", "=")) else [])
    if line.endswith("="):
        words.pop()
    drive = f"source {SCRIPT[words[0], 'bash']}; COMP_WORDS=(\"$@\"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n" \
            f"$(complete -p {words[0]} | sed 's/.*-F \\([^ ]*\\).*/\\1/') 2>&1; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    p = run("bash", "-c", drive, "bash", *words)
    check(not p.stderr, "bash:", line, p.stderr)
    return set(filter(None, p.stdout.split("\n")))


def with_fish(line):
    p = run("fish", "--no-config", "-c", f"source {SCRIPT[line.split()[0], 'fish']}; complete -C '{line}'")
    check(not p.stderr, "fish:", line, p.stderr)
    return {re.sub(r"^--[\w-]+=", "", found.split("\t")[0]).rstrip("/") for found in p.stdout.split("\n") if found}


class Zsh:
    """zsh on a terminal; a key makes its line editor write the line into a file."""

    def __init__(self):
        self.line = os.path.join(WHERE, "line")
        functions = os.path.join(WHERE, "zsh-functions")
        os.makedirs(functions)
        for tool in TOOLS:
            if tool != "llm-cli":
                shutil.copy(SCRIPT[tool, "zsh"], os.path.join(functions, "_" + tool))
        setup = os.path.join(WHERE, "setup.zsh")
        with open(setup, "w") as f:  # one script is sourced; the others are found in the path of functions, as installed
            f.write(f"fpath=({functions} $fpath); autoload -Uz compinit; compinit -u -D; source {SCRIPT['llm-cli', 'zsh']}; LISTMAX=-1\n"
                    f"show() {{ print -rn -- \"$BUFFER\" > {self.line}.new; mv {self.line}.new {self.line}; BUFFER=; }}\n"
                    "zle -N show; bindkey '^X' show\n")
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(WHERE)
            os.execvpe("zsh", ["zsh", "-f", "-i"], dict(ENV, TERM="xterm", HOME=WHERE))
        self.send(f"source {setup}\n")
        self.complete("true ")

    def send(self, text):
        os.write(self.fd, text.encode())

    def complete(self, line):
        if os.path.exists(self.line):
            os.unlink(self.line)
        self.send(line + "\t\x18")
        end = time.monotonic() + 60
        while not os.path.exists(self.line) and time.monotonic() < end:
            try:
                if select.select([self.fd], [], [], 0.02)[0]:
                    os.read(self.fd, 65536)
            except OSError:  # the shell has ended
                break
        try:
            with open(self.line) as f:
                return f.read()
        except FileNotFoundError:
            return None


ALL_MODELS = {"one.gguf", "two.gguf", "with space.gguf", "folder"}
ROWS = [  # a line, and what is offered for its last word
    ("llm-cli --on-f", {"--on-full"}),
    ("llm-cli --on-full ", {"stop", "shift"}),
    ("llm-cli --on-full s", {"stop", "shift"}),
    ("llm-cli --on-full=sh", {"shift"}),
    ("llm-cli -m ", ALL_MODELS),
    ("llm-cli -m o", {"one.gguf"}),
    ("llm-cli -m=o", {"one.gguf"}),
    ("llm-cli --model=tw", {"two.gguf"}),
    ("llm-cli -f no", {"notes.txt"}),
    ("llm-cli -m one.gguf -f no", {"notes.txt"}),
    ("llm-cli --on-full=stop --repack-c", {"--repack-cache"}),
    ("llm-cli --no-display-prompt --repack-c", {"--repack-cache"}),
    ("llm-cli -n ", set()),
    ("llm-cli --color al", {"always"}),
    ("llm-cli --color=al", {"always"}),
    ("llm-cli --color --on-full s", {"stop", "shift"}),
    ("llm-cli --completion ", {"bash", "zsh", "fish"}),
    ("llm-convert f", {"folder"}),
    ("llm-convert folder --type ", {"auto", "f32", "f16", "bf16"}),
    ("llm-gguf sp", {"split"}),
    ("llm-gguf check o", {"one.gguf"}),
    ("llm-gguf hash --xx", {"--xxh64"}),
    ("llm-lora me", {"merge"}),
    ("llm-lora extract --type b", {"bf16"}),
    ("llm-quantize t", {"two.gguf"}),
    ("llm-quantize one.gguf out.gguf Q4_K_", {"Q4_K_S", "Q4_K_M"}),
    ("llm-quantize -t 4 --pure one.gguf out.gguf Q4_K_", {"Q4_K_S", "Q4_K_M"}),
    ("llm-bench con", {"conform"}),
    ("llm-bench --compare no", {"notes.txt"}),
    ("llm-bench make gpt2-1", {"gpt2-124m"}),
    ("llm-bench make gpt2-124m tq", {"tq1_0", "tq2_0"}),
    ("llm-bench make --lay", {"--layers"}),
    ("llm-bench conform --output ", {"md", "csv", "json", "jsonl"}),
    ("llm-bench conform --qui", {"--quick", "--quiet"}),
    ("llm-arch ", set("check verify doctor graph show diff init embed compile list".split())),
    ("llm-arch graph --format s", {"svg"}),
    ("llm-arch show o", {"one.gguf"}),
]
for line, expected in ROWS:
    if line.split()[0] not in TOOLS:
        continue
    found = with_bash(line)
    check(found == expected, "bash:", repr(line), "offers", sorted(found)[:12], "not", sorted(expected))
    # fish has no values that may be left out, no = after one dash, and completes files for any argument
    loose = line in ("llm-cli --color al", "llm-cli -m=o", "llm-quantize t")
    if "fish" in SHELLS and not loose:
        found = with_fish(line)
        check(expected <= found and (line.endswith(" ") or expected == found), "fish:", repr(line), "offers", sorted(found)[:12], "not",
              sorted(expected))
if "zsh" in SHELLS:
    zsh = Zsh()
    for line, expected in ROWS + [("llm-cli -m with", {r"with\ space.gguf"})]:
        if line.split()[0] not in TOOLS or len(expected) != 1:
            continue
        found = zsh.complete(line)
        want = re.sub(r"[^ =]*$", "", line) + next(iter(expected))
        check(found and found.rstrip(" /=") == want, "zsh:", repr(line), "becomes", repr(found), "not", repr(want))
        if found is None:
            break
    os.close(zsh.fd)
    os.waitpid(zsh.pid, 0)

shutil.rmtree(WHERE)
sys.exit(finish())
