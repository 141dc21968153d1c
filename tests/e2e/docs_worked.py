#!/usr/bin/env python3
"""docs_worked.py SOURCE_DIR TOOLS PAGE [WAS=IS ..]: a page's commands do what the page shows.

The page's blocks ```sh run one after the other, in one shell and an empty folder, in which the folders of the repository are links.
WAS=IS: parts of the commands that are replaced, such as sizes. A block ```text below one is what it prints, exactly but for errors of rounding. A block ```arch is
what the page says to put into the file that the text before it names last: `NAME.arch`. Blocks ```python run, too, if the variable
GGML_LITE_LIBRARY names the library. Exit code 77: skipped, as no python3 has numpy, or there is no curl."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.M | re.S)
MARK = "== the block ends =="


def plain(text):
    """A text without what differs between processors."""
    return re.sub(r"at worst [0-9.]+", "at worst", text)


def with_numpy():
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def steps(page):
    """(kind, text, what is expected, line), in the page's order."""
    blocks = list(BLOCK.finditer(page))
    for k, block in enumerate(blocks):
        kind, text = block.groups()
        below = blocks[k + 1].groups() if k + 1 < len(blocks) else ("", "")
        line = page.count("\n", 0, block.start()) + 1
        if kind == "python" and os.environ.get("GGML_LITE_LIBRARY"):
            yield "sh", f"cat > program.py <<'THE_PROGRAM'\n{text}THE_PROGRAM\npython3 program.py\n", below[1] if below[0] == "text" else None, line
        elif kind == "sh":
            yield "sh", text, below[1] if below[0] == "text" else None, line
        elif kind == "arch":
            yield "arch", text, re.findall(r"`([\w-]+\.arch)`", page[:block.start()])[-1], line


def main():
    source, tools, page = (os.path.abspath(path) for path in sys.argv[1:4])
    replaced = [pair.split("=", 1) for pair in sys.argv[4:]]
    with open(page, encoding="utf-8") as file:
        todo = list(steps(file.read()))
    if any("numpy" in text or "ask.py" in text for _, text, _, _ in todo):
        python = with_numpy()
        if not python:
            print("skipped: no python3 that imports numpy (Debian: python3-numpy)")
            return 77
        replaced.append(["python3 ", python + " "])
    if any("curl " in text for _, text, _, _ in todo) and not shutil.which("curl"):
        print("skipped: there is no curl")
        return 77
    port, failed = free_port(), 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("examples", "models", "tests", "tools"):
            os.symlink(os.path.join(source, name), os.path.join(folder, name))
        environment = dict(os.environ, PATH=tools + os.pathsep + os.environ["PATH"], COLUMNS="80", PYTHONDONTWRITEBYTECODE="1",
                           PYTHONPATH=os.path.join(source, "python/src"))
        with open(os.path.join(folder, "errors"), "w", encoding="utf-8") as errors:
            shell = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder,
                                     env=environment, start_new_session=True)
        try:
            for kind, text, expected, line in todo:
                if kind == "arch":
                    with open(os.path.join(folder, expected), "w", encoding="utf-8") as file:
                        file.write(text)
                    continue
                for was, now in [*replaced, ("8080", port), ("ask.py ", f"ask.py --server http://127.0.0.1:{port} ")]:
                    text = text.replace(was, now)
                # every line counts, also one that is not the last; what a command says on either channel is shown
                shell.stdin.write(f"set -eE; trap 'end=$?; echo; echo \"{MARK} $end\"' ERR\n{{\n{text}}} 2>&1\nset +e\necho; echo '{MARK} 0'\n")
                shell.stdin.flush()
                printed, end = [], None
                for row in shell.stdout:
                    if row.startswith(MARK):
                        end = row.split()[-1]
                        break
                    printed.append(row)
                got = "".join(printed)[:-1]  # without the line feed before the mark
                if end != "0" or (expected is not None and plain(got) != plain(expected)):
                    print(f"{os.path.basename(page)}:{line}: status {end}\n{text}\nprints\n{got}" + (f"\nand not\n{expected}" if expected else ""))
                    failed = 1
                if end != "0":
                    break
        finally:
            os.killpg(shell.pid, signal.SIGTERM)
            shell.wait()
    print(f"{sum(kind == 'sh' for kind, *_ in todo)} blocks of commands")
    return failed or not todo


if __name__ == "__main__":
    sys.exit(main())
