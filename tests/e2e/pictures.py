#!/usr/bin/env python3
"""llm-cli with pictures, which an eye of random weights sees. pictures.py LLM-CLI CASE."""
import os
import re
import subprocess
import sys
import tempfile

import eye_file

CLI = sys.argv[1]
FOLDER = tempfile.TemporaryDirectory()


def check(good, *what):
    if not good:
        sys.exit(f"FAILED: {what}")


def place(name, data=None):
    path = os.path.join(FOLDER.name, name)
    if data is not None:
        with open(path, "wb") as f:
            f.write(data)
    return path


def say(*options, code=0):
    r = subprocess.run([CLI, "-m", "builtin:chat", "-no-cnv", "--temp", "0", "-t", "1", "--no-display-prompt", *options], capture_output=True, text=True, timeout=300)
    check(r.returncode == code, options, r)
    return r


def eyes():
    """What one eye saw of a picture is not taken for what another one sees, although both prompts have the same picture."""
    red, saved = place("red.ppm", eye_file.ppm((255, 0, 0))), place("saved")
    eye = [eye_file.llava(place(f"mmproj-{k}.gguf"), 128, seed=k) for k in (1, 2)]

    def with_eye(k, *more):
        return say("--mmproj", eye[k], "--image", red, "-p", "Tell me of <__media__>", "-n", "16", "-q", *more).stdout

    alone = [with_eye(k) for k in range(2)]
    check(alone[0] != alone[1], "the eyes see the same", alone)
    for k in (0, 0, 1, 0):
        check(with_eye(k, "--prompt-cache", saved) == alone[k], k)


def prompts():
    """Where a picture stands, a prompt is printed with <__media__>. In a conversation, a picture without a prompt waits for the first message."""
    red = place("red.ppm", eye_file.ppm((255, 0, 0)))
    eye = eye_file.llava(place("mmproj.gguf"), 128, seed=1)
    run = lambda *options, **more: subprocess.run([CLI, "-m", "builtin:chat", "--temp", "0", "-t", "1", "-q", "-n", "4", "--mmproj", eye, *options],
                                                  capture_output=True, text=True, timeout=300, **more).stdout
    check(run("-no-cnv", "-p", "Of <__media__>,", "--image", red).startswith("Of <__media__>,"))
    check(run("-no-cnv", "-p", "Of", "--image", red).startswith("<__media__>Of"))
    for with_picture in ([], ["--image", red]):
        noted = "note: the prompt's <__media__> is plain text without --image FILE" in say("-p", "Of <__media__>", "-n", "1", "--mmproj", eye, *with_picture).stderr
        check(noted != bool(with_picture), with_picture)
    other = eye_file.slow(place("mmproj-other.gguf"), 128, side=4, layers=1)
    for file, is_noted in ((eye, False), (other, True)):
        words = "note: the eye is one of clip:gemma3, whose texts have the token <start_of_image>, and the model, of the family llama, has no such token"
        check((words in say("-p", "Of", "-n", "1", "--mmproj", file, "--image", red).stderr) == is_noted, file)
    alone = subprocess.run([CLI, "-m", eye, "-p", "Of"], capture_output=True, text=True, timeout=300)
    check(alone.returncode == 1 and f"-m MODEL --mmproj {eye}" in alone.stderr, alone)
    after = run("-cnv", "--image", red, input="Who are you?\n")
    check(len(after.splitlines()) == 1, "an answer to the picture alone", after)
    check(after != run("-cnv", input="Who are you?\n"), "the picture was not seen", after)


CASES = {f.__name__: f for f in (eyes, prompts)}

if __name__ == "__main__":
    CASES[sys.argv[2]]()
