"""A model that is cut off or overwritten while a program uses it: the program says which file it was. cut_off.py LLM-CLI MODEL"""
import os, shutil, subprocess, sys

from checks import check, finish, path

CLI, MODEL = sys.argv[1:3]
COPY = path("model.gguf")


def converse(change, *flags):
    """Begins a conversation, changes the file after the first answer, and goes on; returns the exit code and standard error."""
    shutil.copyfile(MODEL, COPY)
    p = subprocess.Popen([CLI, "-m", COPY, "-cnv", "--chat-template", "chatml", "-n", "4", "-t", "2", "--temp", "0", *flags],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdin.write(b"Once upon a time\n")
    p.stdin.flush()
    check(p.stdout.readline() != b"", f"{flags}: no answer")  # the prompt has run, so the model is in use
    change()
    try:
        err = p.communicate(b"The little dog\n", timeout=120)[1].decode()
    except subprocess.TimeoutExpired:
        p.kill()
        raise
    return p.returncode, err


def cut():
    os.truncate(COPY, 0)


for flags in ([], ["--no-repack"]):
    code, err = converse(cut, *flags)
    check(code == 1, f"{flags}: exit code {code}", err)
    check(f"llm-cli: {COPY} was changed or cut off while it was in use" in err, f"{flags}: no message", err)
    check(err.count("was changed") == 1, f"{flags}: said twice", err)

code, err = converse(cut, "--no-mmap")  # it is in memory
check(code == 0, f"--no-mmap: exit code {code}", err)


def replace():
    os.unlink(COPY)
    shutil.copyfile(MODEL, COPY)


code, err = converse(replace)  # the right way: the old file stays as long as it is used
check(code == 0, f"a new file: exit code {code}", err)

# other bus errors are what they were
p = subprocess.Popen([CLI, "-m", MODEL, "-cnv", "--chat-template", "chatml"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
p.stdin.write(b"Once\n")
p.stdin.flush()
p.stdout.readline()
p.send_signal(7 if sys.platform == "linux" else 10)
err = p.communicate(timeout=120)[1].decode()
check(p.returncode < 0 and "in use" not in err, f"a signal from outside: exit code {p.returncode}", err)
sys.exit(finish())
