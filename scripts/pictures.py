#!/usr/bin/env python3
"""Makes the pictures of README.md: scripts/pictures.py [FOLDER OF THE PROGRAMS, build/release/bin if not given]

docs/pictures/chat.svg is a chat in a terminal: what llm-cli prints, drawn as text. docs/pictures/page.png is the page of
llm-server in Chromium; it needs node and chromium. Both use the built-in model builtin:chat."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 80, 60
SEED = "3"
QUESTIONS = ["Tell me a story about a fox.", "Who is in the story?"]
WIDTH, LINE, SIZE = 8.43, 19, 14  # of a character, of a line, of the font


class Screen:
    """What a terminal shows: of each cell the character and whether it is dim, by the few sequences that llm-cli prints."""

    def __init__(self):
        self.cells = {}
        self.row = self.column = 0
        self.dim = False

    def sequence(self, numbers, letter):
        n = int(numbers) if numbers.isdigit() else 1
        if letter == "A":
            self.row -= n
        elif letter == "C":
            self.column += n
        elif letter == "D":
            self.column -= n
        elif letter in "JK":
            for at in list(self.cells):
                if at >= (self.row, self.column) and (letter == "J" or at[0] == self.row):
                    del self.cells[at]
        elif letter == "m":
            self.dim = "2" in numbers.split(";")

    def write(self, text):
        for numbers, letter, other in re.findall(r"\x1b\[\??([0-9;]*)([A-Za-z])|([^\x1b])", text):
            if letter:
                self.sequence(numbers, letter)
            elif other == "\n":
                self.row += 1
            elif other == "\r":
                self.column = 0
            elif other == "\b":
                self.column -= 1
            elif other >= " ":
                if self.column == COLUMNS:
                    self.row, self.column = self.row + 1, 0
                self.cells[self.row, self.column] = other, self.dim
                self.column += 1

    def lines(self):
        """Each line as a list of (text, dim)."""
        for row in range(max((row for row, _ in self.cells), default=-1) + 1):
            parts = []
            for column in range(max((c for r, c in self.cells if r == row), default=-1) + 1):
                char, dim = self.cells.get((row, column), (" ", False))
                if parts and (parts[-1][1] == dim or char == " "):
                    parts[-1] = parts[-1][0] + char, parts[-1][1]
                else:
                    parts.append((char, dim))
            yield parts


def chat(program):
    """The screen after a chat of two questions."""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        with tempfile.TemporaryDirectory() as home:
            os.environ.update(HOME=home, XDG_STATE_HOME=home, TERM="xterm", COLUMNS=str(COLUMNS))
            os.execv(program, [program, "-m", "builtin:chat", "-s", SEED])
    screen, seen, questions = Screen(), "", list(QUESTIONS)
    while True:
        if select.select([terminal], [], [], 2)[0]:
            try:
                seen = os.read(terminal, 4096).decode()
            except OSError:
                break
            if not seen:
                break
            screen.write(seen)
        elif questions:  # it has been quiet for a while: it waits for the next question
            os.write(terminal, questions.pop(0).encode() + b"\r")
        else:
            os.close(terminal)
            break
    os.waitpid(pid, 0)
    return screen


def draw(screen, command):
    """An SVG of a terminal in which the command was typed."""
    lines = [[("$ " + command, False)], *screen.lines()]
    width, height = round(COLUMNS * WIDTH) + 32, len(lines) * LINE + 32
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        "<style>",
        f"text {{ font-size: {SIZE}px; font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #1f2328; }}",
        ".dim { fill: #59636e; }",
        ".screen { fill: #f6f8fa; stroke: #d1d9e0; }",
        "@media (prefers-color-scheme: dark) {",
        "text { fill: #e6edf3; } .dim { fill: #9198a1; } .screen { fill: #151b23; stroke: #3d444d; }",
        "}",
        "</style>",
        f'<rect class="screen" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
    ]
    for row, parts in enumerate(lines):
        column = 0
        for text, dim in parts:
            if text.strip():
                kept = text.rstrip()
                x, y = 16 + column * WIDTH, 16 + SIZE + row * LINE
                dimmed = ' class="dim"' if dim else ""
                out.append(
                    f'<text x="{x:.1f}" y="{y}" textLength="{len(kept) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"{dimmed}'
                    f' xml:space="preserve">{escape(kept)}</text>'
                )
            column += len(text)
    return "\n".join(out + ["</svg>", ""])


def main():
    programs = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "release" / "bin"
    OUT.mkdir(exist_ok=True)
    screen = chat(str(programs / "llm-cli"))
    (OUT / "chat.svg").write_text(draw(screen, "llm-cli -m builtin:chat"), encoding="utf-8")
    done = subprocess.run(["node", ROOT / "scripts" / "page-picture.mjs", programs / "llm-server", OUT / "page.png"], check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
