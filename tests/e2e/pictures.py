#!/usr/bin/env python3
"""llm-cli with pictures and sounds, which an eye or an ear of random weights notices. pictures.py LLM-CLI CASE."""
import os
import re
import signal
import subprocess
import sys
import tempfile

import eye_file
import speech_file
import terminals

CLI = sys.argv[1]
SHAPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "shapes.bmp")
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


def typed(*options, lines):
    """What llm-cli prints on a terminal while these lines are typed."""
    code, seen = terminals.run(CLI, *options, typed="".join(line + "\n" for line in lines), env={**os.environ, "TERM": "dumb", "XDG_DATA_HOME": FOLDER.name})
    check(code == 0, seen)
    return terminals.unbroken(seen.replace("\r", ""))


def say(*options, code=0):
    r = subprocess.run([CLI, "-m", "builtin:chat", "-no-cnv", "--temp", "0", "-t", "1", "--no-display-prompt", *options], capture_output=True, text=True, timeout=300)
    check(r.returncode == code, options, r)
    return r


def eyes():
    """What one eye saw of a picture is not taken for what another one sees, although both prompts have the same picture."""
    red, saved = place("red.ppm", eye_file.ppm((255, 0, 0))), place("saved")
    eye = [eye_file.llava(place(f"mmproj-{k}.gguf"), 128, seed=k) for k in (1, 2)]

    def with_eye(k, *more):
        return say("--mmproj", eye[k], "--image", red, "-no-cnv", "-p", "Tell me of <__media__>", "-n", "16", "-q", *more).stdout

    alone = [with_eye(k) for k in range(2)]
    check(alone[0] != alone[1], "the eyes see the same", alone)
    for k in (0, 0, 1, 0):
        check(with_eye(k, "--prompt-cache", saved) == alone[k], k)


def prompts():
    """A prompt is printed as it was typed, with <__media__> only where it has that. In a conversation, a picture without a prompt waits for the first message."""
    red = place("red.ppm", eye_file.ppm((255, 0, 0)))
    eye = eye_file.llava(place("mmproj.gguf"), 128, seed=1)
    run = lambda *options, **more: subprocess.run([CLI, "-m", "builtin:chat", "--temp", "0", "-t", "1", "-q", "-n", "4", "--mmproj", eye, *options],
                                                  capture_output=True, text=True, timeout=300, **more).stdout
    check(run("-no-cnv", "-p", "Of <__media__>,", "--image", red).startswith("Of <__media__>,"))
    check(run("-no-cnv", "-p", "Of", "--image", red).startswith("Of"))
    check(run("-no-cnv", "-p", "Of <__media__>,", "--image", red, "--image", red).startswith("Of <__media__>,"))
    answer = subprocess.run([CLI, "-m", "builtin:shapes", "--image", SHAPES, "--temp", "0", "-q", "-p", "How many shapes are there?"],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    check(answer.stdout == "Two shapes.\n", "a question about a picture is answered", answer)
    # nothing is asked: the built-in model says what there is, others need a question, unless the text is continued
    for given in ({"stdin": subprocess.DEVNULL}, {"input": ""}):
        answer = subprocess.run([CLI, "-m", "builtin:shapes", "--image", SHAPES, "--temp", "0", "-q"], capture_output=True, text=True, timeout=300, **given)
        check(answer.stdout == "A red circle to the left of a blue triangle.\n", "a picture without a question", answer)
        none = subprocess.run([CLI, "-m", "builtin:chat", "--mmproj", eye, "--image", red], capture_output=True, text=True, timeout=300, **given)
        check(none.returncode == 2 and "--image without a question: -p TEXT asks one, as in: -p 'What is in the picture?'" in none.stderr and not none.stdout, "no question", none)
    check(run("--image", red, "-p", "", stdin=subprocess.DEVNULL), "an empty question that was meant")
    check(run("-no-cnv", "--image", red, stdin=subprocess.DEVNULL) and "media" not in run("-no-cnv", "--image", red, stdin=subprocess.DEVNULL), "a picture whose text is continued")
    for with_picture in ([], ["--image", red]):
        noted = "note: the prompt's <__media__> is plain text without --image or --audio FILE" in say("-p", "Of <__media__>", "-n", "1", "--mmproj", eye, *with_picture).stderr
        check(noted != bool(with_picture), with_picture)
    other = eye_file.slow(place("mmproj-other.gguf"), 128, side=4, layers=1)
    for file, is_noted in ((eye, False), (other, True)):
        words = "llm-cli: note: the eye is one of clip:gemma3, whose texts have the token <start_of_image>, and the model, of the family llama, has no such token"
        check((words in say("-p", "Of", "-n", "1", "--mmproj", file, "--image", red).stderr) == is_noted, file)
    alone = subprocess.run([CLI, "-m", eye, "-p", "Of"], capture_output=True, text=True, timeout=300)
    check(alone.returncode == 1 and f"-m MODEL --mmproj {eye}" in alone.stderr, alone)
    for words, *options in (("-o: " + red, "-o", red), ("none.ppm: No such file", "--image", FOLDER.name + "/none.ppm")):
        refused = subprocess.run([CLI, "-m", "builtin:chat", "-p", "Of", "-n", "1", "--mmproj", eye, "--image", red, *options],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        check(refused.returncode in (1, 2) and words in refused.stderr and "loading" not in refused.stderr, refused)
    after = run("-cnv", "--image", red, input="Who are you?\n")
    check(len(after.splitlines()) == 1, "an answer to the picture alone", after)
    check(after != run("-cnv", input="Who are you?\n"), "the picture was not seen", after)


def several():
    """A model whose file says how many pictures a text may have refuses more of them, at once and one after the other."""
    words = "the model takes 1 picture at a time, but the text has 2"
    two = subprocess.run([CLI, "--image", SHAPES, "--image", SHAPES, "-p", "What is there?"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
    check(two.returncode == 1 and words in two.stderr and two.stdout == "", two)
    text = typed("-m", "builtin:shapes", "-cnv", "--temp", "0", "-t", "1", lines=[f"/image {SHAPES}", "What is there?", f"/image {SHAPES}", "What is there?", "How many shapes are there?", "/quit"])
    check(text.count("A red circle") == 1 and text.count(words) == 1 and "Two shapes." in text, text)


def lists():
    """--image a,b shows two pictures, unless there is a file of that name; --audio plays two sounds."""
    red, blue, third = place("red.ppm", eye_file.ppm((255, 0, 0))), place("blue.ppm", eye_file.ppm((0, 0, 255))), place("third.ppm", eye_file.ppm((9, 9, 9)))
    both = place("red.ppm,blue.ppm", eye_file.ppm((9, 9, 9)))
    seen = lambda *options: say("--mmproj", eye, *options, "-no-cnv", "-p", "Of <__media__> and <__media__>,", "-n", "8", "-q").stdout
    eye = eye_file.llava(place("mmproj.gguf"), 128, seed=1)
    check(seen("--image", f"{red},{blue}") == seen("--image", red, "--image", blue) == seen(f"--image={red},,{blue},"), "two pictures")
    check(seen("--image", f"{red},{blue}", "--image", both) == seen("--image", red, "--image", blue, "--image", third), "a third one, whose name has a comma")
    none = say("--mmproj", eye, "--image", f"{red},{FOLDER.name}/none.ppm", "-p", "Of", code=1)
    check("none.ppm: No such file" in none.stderr and "red.ppm" not in none.stderr, none)
    none = say("--mmproj", eye, "--image", f"{FOLDER.name}/no,ne.ppm", "-p", "Of", code=1)
    check("no,ne.ppm: No such file" in none.stderr, none)
    ear, low, high = eye_file.ultravox(place("mmproj-ear.gguf"), 128), place("low.wav", eye_file.wav(200)), place("high.wav", eye_file.wav(1500))
    said = lambda *options: say("--mmproj", ear, *options, "-no-cnv", "-p", "Of <__media__> and <__media__>,", "-n", "8", "-q").stdout
    check(said("--audio", f"{low},{high}") == said("--audio", low, "--audio", high), "two sounds")


def counts():
    """Each row of a picture or a sound is a token of the prompt, of which --logits has a row; times are those of pictures and of sounds."""
    eye, ear, red, low = eye_file.llava(place("mmproj.gguf"), 128, seed=1), eye_file.ultravox(place("mmproj-ear.gguf"), 128), place("red.ppm", eye_file.ppm((255, 0, 0))), place("low.wav", eye_file.wav(200))
    for flag, tower, medium, name in (("--image", eye, red, "pictures"), ("--audio", ear, low, "sounds")):
        for prompt in ("Of <__media__>,", "<__media__>"):
            done = say("--mmproj", tower, flag, medium, "-no-cnv", "-p", prompt, "-n", "0", "--logits", place("logits.npy", b""))
            n_tokens = int(re.search(r"(?m)^prompt .* (\d+) tokens", done.stderr)[1])
            with open(place("logits.npy"), "rb") as f:
                data = f.read()
            n_rows, n_vocab = (int(k) for k in re.search(rb"'shape': \((\d+), (\d+)", data).groups())
            check(n_rows == n_tokens > 1 and len(data) % 64 == 4 * n_rows * n_vocab % 64 and len(data) > 4 * n_rows * n_vocab, (flag, prompt, n_rows, n_tokens, len(data)))
        check(re.search(rf"(?m)^{name} .* 1$", done.stderr), done)


def too_many():
    """A picture whose rows alone are more than the context is refused before the eye looks at it."""
    red, eye = place("red.ppm", eye_file.ppm((255, 0, 0))), eye_file.slow(place("mmproj-slow.gguf"), 128, side=128, layers=24)
    words = "red.ppm: the picture has 1024 tokens, but the context only 512: give a larger context (n_ctx, or -c N)"
    large = say("-m", "builtin:chat", "-c", "512", "--mmproj", eye, "--image", red, "-p", "Of", code=1)
    check(words in large.stderr and "image_max_tokens" not in large.stderr, large)


def megabytes(part):
    """All memory of a part of the plan but what is dropped."""
    return sum(sum(row) - row[3] for row in ([float(x) for x in line.split()] for line in re.findall(r"^cpu +([\d. ]+)$", part, re.M))) * 1.048576


def speech_plan():
    """The stages of a speech model that run before its tokens, and the rows that they make, count as a run takes them: how much more a large model takes
    than a small one is what the plans say, within a fifth."""
    sound, planned, taken = place("plan.wav", eye_file.wav(300, 3)), [], []
    for dim in (8, 256):
        model = place(f"speech-{dim}.gguf", b"")
        speech_file.speech(model, dim=dim, n_sound=1500, n_text=64, n_mel=80)
        r = subprocess.run([CLI, "-m", model, "-c", "64", "-t", "1", "--plan"], capture_output=True, text=True, timeout=300, env={**os.environ, "GGL_MEMORY_LEFT": "1000000"})
        tokens, shown, stage = r.stdout.partition("\nstage        wide, of at most 3000 rows\n")
        check(r.returncode == 0 and shown and "\nstage        half, of at most 1500 rows\n" in stage and megabytes(stage) > 0.4, r)
        rows = (3000 * (80 + dim) + 1500 * dim) * 4e-6  # of the spectrogram, and of the stages
        cache, rest = ({"kB": 1e-3, "MB": 1}[unit] * float(n) for n, unit in re.findall(r"(?:tokens|the model) takes ([\d.]+) (kB|MB)", r.stderr))
        check(abs(cache + rest - megabytes(tokens) - megabytes(stage) - rows) < 0.1, cache, rest, r.stdout)
        planned.append(cache + rest)
        run = subprocess.Popen([os.path.join(os.path.dirname(CLI), "llm-transcribe"), "-m", model, sound, "-t", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, code, used = os.wait4(run.pid, 0)
        check(code == 0, code)
        taken.append(used.ru_maxrss * 1024 / 1e6)
        os.unlink(model)
    check(0.8 < (planned[1] - planned[0]) / (taken[1] - taken[0]) < 1.2, planned, taken)


def plan():
    """An eye's weights and values count: in the plan, in what the context has to fit beside, and on a device of which they take a part."""
    stories = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "builtin", "stories.gguf")
    eye = ["--mmproj", eye_file.slow(place("mmproj-plan.gguf"), 128, side=16, layers=4)]

    def run(*options, **env):
        r = subprocess.run([CLI, *options, "--plan"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, env={**os.environ, **env})
        check(r.returncode == 0, r)
        return r

    model, shown, sight = run("-m", "builtin:chat", "-c", "2048", "--no-repack", *eye).stdout.partition("\nmmproj       ")
    check(shown and sight.count("\nstage        ") == 2 and megabytes(sight) > 0.5, model, sight)
    said = run("-m", "builtin:chat", "-c", "2048", "--no-repack", *eye, GGL_MEMORY_LEFT="4000000").stderr
    cache, rest = (float(re.search(words + r" takes ([\d.]+) MB", said).group(1)) for words in ("the KV cache of 2048 tokens", "the rest of the model"))
    between = cache + rest - megabytes(model) - megabytes(sight) # rows between its stages
    check(0 < between < 0.5, cache, rest, megabytes(model), megabytes(sight))
    for more, layers in (([], "cpu=2,mine=3"), (eye, "cpu=5")):
        said = run("-m", stories, "-c", "64", "-ub", "4", "--device", sys.argv[3], "--fit", *more).stderr
        check("layers: " + layers + "\n" in said, said)
    for dim, layers in ((12, "mine=1"), (24, "cpu=1")):  # half of which are a speech model's stages before its tokens
        speech_file.speech(place("speech-plan.gguf"), dim=dim, n_sound=300, n_text=16, n_mel=80)
        said = run("-m", place("speech-plan.gguf"), "-c", "16", "--device", sys.argv[3], "--fit").stderr
        check("layers: " + layers + "\n" in said, said)


def stops():
    """Ctrl-C while a picture is looked at ends the program, and in a conversation that look alone."""
    red = place("red.ppm", eye_file.ppm((255, 0, 0)))
    eye = eye_file.slow(place("mmproj-slow.gguf"), 128, side=128, layers=24) # which looks for many seconds
    options = ["-m", "builtin:chat", "-t", "1", "-c", "2048", "--mmproj", eye]
    code, seen = terminals.run(CLI, *options, "--image", red, "-p", "a", stop=b"looking at")
    check(code == -2 or code == 130, code, seen)
    t = terminals.Terminal(CLI, *options, "-cnv", env={**os.environ, "TERM": "xterm", "XDG_DATA_HOME": FOLDER.name})
    t.read_until(b"> ")
    t.type(f"/image {red}\r")
    check(t.read_until(b"looking at"), t.seen)
    os.kill(t.pid, signal.SIGINT)
    check(t.read_until(rb"\(stopped: nothing was seen\)"), t.seen)
    t.type("/quit\r")
    check(t.end() == 0, t.seen)


def ears():
    """The same for sounds: where they stand, in conversations, and beside a prompt cache that has another ear's rows."""
    low, high = place("low.wav", eye_file.wav(200)), place("high.wav", eye_file.wav(1500, 2))
    ear = [eye_file.ultravox(place(f"mmproj-ear-{k}.gguf"), 128, seed=k) for k in (1, 2)]
    said = lambda k, *more: say("--mmproj", ear[k], "--audio", low, "-no-cnv", "-p", "Tell me of <__media__>", "-n", "16", "-q", *more).stdout
    alone = [said(k) for k in range(2)]
    check(alone[0] != alone[1], "the ears hear the same", alone)
    for k in (0, 0, 1, 0):
        check(said(k, "--prompt-cache", place("saved-ear")) == alone[k], k)
    run = lambda *options, **more: subprocess.run([CLI, "-m", "builtin:chat", "--temp", "0", "-t", "1", "-n", "4", "--mmproj", ear[0], *options],
                                                  capture_output=True, text=True, timeout=300, **more)
    check(run("-no-cnv", "-q", "-p", "<__media__> of <__media__>,", "--audio", low, "--audio", high).stdout.startswith("<__media__> of <__media__>,"))
    check(re.search("^sounds .* 2$", run("-no-cnv", "-p", "Of", "--audio", low, "--audio", high).stderr, re.M), "how long it listened")
    for id_ in ("0" * 64, "f" * 64, "0" * 56 + "01000000"):
        forged = run("-no-cnv", "-p", f"Of <__media:{id_}__>", "--audio", low)
        check(forged.returncode == 1 and "a sound that is not there any more" in forged.stderr, forged)
    text = typed("-m", "builtin:chat", "-cnv", "--temp", "0", "-t", "1", "-n", "4", "--mmproj", ear[0], lines=[
        f"/audio {high}", "Who are you?", f"/audio {FOLDER.name}/none.wav", f"/image {low}", "/audio", "/quit"])
    for words in (f"({high} will precede your next message)", "none.wav: ", "hears sounds and sees no pictures", "write /audio FILE"):
        check(words in text, words, text)


CASES = {f.__name__: f for f in (eyes, prompts, several, lists, counts, too_many, plan, speech_plan, stops, ears)}

if __name__ == "__main__":
    CASES[sys.argv[2]]()
