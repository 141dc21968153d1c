#!/usr/bin/env python3
"""Texts as Windows and its editors write them: a byte order mark is no part of a text, UTF-16 is refused with what to do, and CR LF is LF where a text is learned.

users_texts.py TOOLS MODEL    TOOLS: the folder of the programs"""
import os
import signal
import subprocess
import sys
import time

from checks import TMP, check, finish, path, put, runner

run = runner(sys.argv[1], cwd=TMP.name)
MODEL = os.path.abspath(sys.argv[2])
MARK = b"\xef\xbb\xbf"
TEXT = b"Once upon a time, there was a fox.\r\nThe fox ran to the river.\r\n" * 12


def read(name):
    with open(path(name), "rb") as f:
        return f.read()


put("plain.txt", TEXT)
put("marked.txt", MARK + TEXT)
put("unix.txt", TEXT.replace(b"\r\n", b"\n"))
put("wide.txt", TEXT.decode().encode("utf-16"))
put("wide-le.txt", TEXT.decode().encode("utf-16-le"))
put("wide-be.txt", TEXT.decode().encode("utf-16-be"))
for end in ("", "-le", "-be"):
    put(f"wide4{end}.txt", TEXT.decode().encode("utf-32" + end))

READERS = [["llm-cli", "-m", MODEL, "-n", "4", "--temp", "0", "--no-display-prompt", "-f"], ["llm-tokenize", "-m", MODEL, "--ids", "-f"],
           ["llm-embed", "-m", MODEL, "--pooling", "mean", "-f"], ["llm-perplexity", "-m", MODEL, "-c", "64", "-q", "-f"]]

for words in READERS:
    check(run(*words, "plain.txt") == run(*words, "marked.txt"), f"{words[0]}: a byte order mark is read as text")
    for wide in ("wide.txt", "wide-le.txt", "wide-be.txt"):
        run(*words, wide, code=1, has=f"{wide}: this is UTF-16; convert the file: iconv -f utf-16 -t utf-8")
    for wide in ("wide4.txt", "wide4-le.txt", "wide4-be.txt"):
        run(*words, wide, code=1, has=f"{wide}: this is UTF-32; convert the file: iconv -f utf-32 -t utf-8")
check(run("llm-tokenize", "-m", MODEL, "--decode", "-", text=MARK + b"5,6") == run("llm-tokenize", "-m", MODEL, "--decode", "5,6"), "a byte order mark is read as an id")
run("llm-cli", "-m", MODEL, "-n", "1", "-f", "-", code=1, has="stdin: this is UTF-16", text=b"\xff\xfeO\0")
check(run("llm-tokenize", "-m", MODEL, "--ids", "-f", "plain.txt") != run("llm-tokenize", "-m", MODEL, "--ids", "-f", "unix.txt"), "CR is lost where no text is learned")

train = ["llm-tokenize", "train", "--vocab-size", "300", "-o"]
run(*train, "u.json", "unix.txt", lacks="CR LF")
run(*train, "m.json", "marked.txt", has="marked.txt: lines end with CR LF, as on Windows, and are read as if they ended with LF")
check(read("u.json") == read("m.json"), "llm-tokenize train learns CR LF or a byte order mark")
run(*train, "w.json", "wide.txt", code=1, has="wide.txt: this is UTF-16; convert the file")
put("lines.jsonl", MARK + b'{"text": "a fox and a fox and a fox"}\r\n')
run(*train, "j.json", "lines.jsonl", "--json-field", "text")

run("llm-train", "-m", MODEL, "wide.txt", "-o", "o.gguf", code=1, has="wide.txt:1: the byte 0xff: this is UTF-16; convert the file: iconv -f utf-16 -t utf-8")
run("llm-train", "-m", MODEL, "wide-le.txt", "-o", "o.gguf", code=1, has="this is UTF-16")
run("llm-train", "-m", MODEL, "wide4.txt", "-o", "o.gguf", code=1, has="this is UTF-32")
run("llm-train", "-m", MODEL, "marked.txt", "-o", "o.gguf", "--plan", said="CR LF")

# standard input is learned from as a file is, also as what is measured
short = ["llm-train", "-m", MODEL, "-c", "64", "--steps", "1", "-t", "2"]
run(*short, "unix.txt", "--no-valid", "-o", "file.gguf")
run(*short, "-", "--no-valid", "-o", "stdin.gguf", text=read("unix.txt"))
check(read("file.gguf") == read("stdin.gguf"), "another model of standard input")
run(*short, "unix.txt", "--valid", "-", "-o", "valid.gguf", text=read("unix.txt"), said="measures   ")
run(*short, "/dev/stdin", "--no-valid", "-o", "named.gguf", text=read("unix.txt"))
check(read("file.gguf") == read("named.gguf"), "another model of a pipe that has a name")
lines = b'{"text": "a fox and a river"}\n' * 40
run(*short, "-", "-o", "lines.gguf", "--no-valid", text=lines, said="from       text: 40 sequences")
run(*short, "-", "-o", "none.gguf", "--no-valid", code=1, has="stdin: there is nothing to learn from")
run(*short, "-", "-", "-o", "none.gguf", code=2, has="standard input (-) is given 2 times, but it can be read only once", text=lines)
run(*short, "-", "--valid", "-", "-o", "none.gguf", code=2, has="standard input (-) is given 2 times", text=lines)



def starts(words, begin, has, room=None, code=1):
    """A program that gets the beginning of a pipe, which stays open, ends with this error."""
    env = {**os.environ, **({"GGL_MEMORY_LEFT": room} if room else {})}
    with subprocess.Popen([os.path.join(os.path.abspath(sys.argv[1]), words[0]), *words[1:]], cwd=TMP.name, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, bufsize=0, env=env) as p:
        try:
            p.stdin.write(begin)
        except BrokenPipeError:
            pass
        try:
            ended = p.wait(timeout=60)
        except subprocess.TimeoutExpired:
            ended = None
            p.kill()
        err = p.stderr.read().decode()
        check(ended == code and has in err, f"{words}: exit code {ended}, no '{has}'", err)


# the first 64 KiB are judged before the rest is read, and texts end where memory does
block = 64 << 10
for words in ["llm-tokenize", "-m", MODEL, "-f", "-"], ["llm-perplexity", "-m", MODEL, "-c", "64", "-f", "-"], ["llm-cli", "-m", MODEL, "-f", "-"]:
    starts(words, b"GGUF\3\0\0\0" + bytes(block), "stdin is a GGUF file, not a text")
    starts(words, bytes(block), "stdin is not a text in UTF-8: byte 0 is 0x00")
    starts(words, TEXT.decode().encode("utf-16") * (block // len(TEXT)), "stdin: this is UTF-16; convert the file")
starts(["llm-tokenize", "-m", MODEL, "-f", "-"], b"y\n" * (1 << 20),
       "stdin: the text is longer than 1.0 MiB, the most that is read of a pipe or a device (2 GiB, or the memory that is free)",
       room=str(1 << 20))
learn = ["llm-train", "-m", MODEL, "-", "-o", "none.gguf", "--steps", "1"]
starts(learn, bytes(block), "stdin: it has a byte 0x00: this is no text")
starts(learn, b"GGUF\3\0\0\0" + bytes(block), "stdin: this is a GGUF file, which is not read")
starts(learn, b"y\n" * (1 << 20), "stdin: the text is longer than 1.0 MiB, the most that is read of a pipe", room=str(1 << 20))
starts(["llm-grammar", "--grammar", "-", "ok.json"], b"root ::= \0" + bytes(block), "stdin is not a text in UTF-8: byte 9 is 0x00", code=2)
put("long.txt", TEXT * 2000)
starts(["llm-tokenize", "-m", MODEL, "-f", "long.txt"], b"", "long.txt of 1.4 MiB does not fit in memory (1.0 MiB free); read a part of it", room=str(1 << 20))
check(len(run("llm-tokenize", "-m", MODEL, "--ids", "-f", "long.txt")) > len(TEXT) * 500, "a text of more than one block is not read whole")
check(run("llm-tokenize", "-m", MODEL, "--ids", "-f", "long.txt") == run("llm-tokenize", "-m", MODEL, "--ids", "-f", "-", text=TEXT * 2000), "other ids of a pipe")

# Ctrl-C ends it, also after the first lines of a pipe that stays open
p = subprocess.Popen([os.path.join(sys.argv[1], short[0]), *short[1:], "-", "-o", "none.gguf"], cwd=TMP.name, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
p.stdin.write(lines)
p.stdin.flush()
for _ in range(100):
    with open(f"/proc/{p.pid}/wchan") as f: # it waits for more once it has read what there is
        if "pipe" in f.read():
            break
    time.sleep(0.1)
p.send_signal(signal.SIGINT)
try:
    check(p.wait(timeout=60) == 130, f"Ctrl-C while standard input is read: {p.returncode}")
except subprocess.TimeoutExpired:
    check(False, "Ctrl-C does not end the reading of standard input")
    p.kill()
sys.exit(finish())
