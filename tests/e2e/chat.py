"""Conversations of llm-cli, on a terminal of 80 x 24 and in pipes. chat.py LLM-CLI LLM-TOKENIZE MODEL"""
import json, os, re, resource, signal, subprocess, sys, tempfile, termios, time

import eye_file
import terminals
from checks import check, finish

CLI, TOKENIZE, MODEL = sys.argv[1:4]
TMP = tempfile.TemporaryDirectory()
TEMPLATE = TMP.name + "/template.jinja"
with open(TEMPLATE, "w") as out:
    out.write("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% if m.content == 'refuse' %}{{ raise_exception('not that') }}"
              "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ begin|default('assistant:') }}{% endif %}")
FLAGS = ["-m", MODEL, "--chat-template", TEMPLATE, "--temp", "0", "-t", "1"]
ENV = dict(os.environ, XDG_DATA_HOME=TMP.name + "/data", TERM="xterm", HOME=TMP.name)
ENV.pop("NO_COLOR", None)


def path(name):
    return os.path.join(TMP.name, name)


class Terminal(terminals.Terminal):
    """llm-cli on a terminal of its own."""

    def __init__(self, *args, env=ENV, flags=FLAGS, command=None):
        super().__init__(*(command or [CLI, *flags, *args]), env=env)
        self.before, self.at = termios.tcgetattr(self.fd), 0

    def until(self, pattern, what):
        """Reads until the pattern stands after what was read for the last call; returns the text up to it."""
        while True:
            found = re.search(pattern, self.seen[self.at:], re.S)
            if found:
                text = self.seen[self.at:self.at + found.end()]
                self.at += found.end()
                return text
            if not self.more():
                raise TimeoutError("%s: nothing like %r comes: %r" % (what, pattern, self.seen[-800:]))

    def prompt(self, what="a prompt"):
        """Waits for the prompt; returns the text before it."""
        return self.until(rb"> (\r\x1b\[[0-9]+C)", what)

    def say(self, text):
        """Enters a line; returns what is printed after it, up to the next prompt."""
        self.type(text + "\r")
        self.until(rb"\x1b\[\?2004l", "the end of the line " + text)
        return clean(self.prompt("an answer to " + text))

    def end(self, what, code):
        got = super().end()
        check(got == code, "%s: exit code %s, not %s" % (what, got, code), self.seen)


def clean(text):
    """Text without escape sequences, carriage returns, the breaks of long errors, and the prompt at its end."""
    text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", text).replace(b"\r", b"")
    return terminals.unbroken(re.sub(rb"([0-9]+/[0-9]+ )?> $", b"", text).decode(errors="replace")).strip()


def run(*args, stdin="", flags=FLAGS, code=0, env=ENV, **more):
    r = subprocess.run([CLI, *flags, *args], input=stdin.encode() if isinstance(stdin, str) else stdin, capture_output=True, env=env,
                       **more)
    check(r.returncode == code, "%s: exit code %d, not %d" % (args, r.returncode, code), r.stderr)
    return r


def whole(talk, n_predict):
    """The answer to a conversation, rendered as a whole by llm-tokenize."""
    with open(path("whole.json"), "w") as f:
        json.dump(dict(talk, add_generation_prompt=True), f)
    ids = subprocess.run([TOKENIZE, "-m", MODEL, "--chat", path("whole.json"), "--chat-template", TEMPLATE, "--ids"], capture_output=True,
                         check=True).stdout.decode()
    r = subprocess.run([CLI, "-m", MODEL, "--tokens", ids.strip(), "--temp", "0", "-n", str(n_predict)], capture_output=True, check=True)
    return r.stdout.decode().rstrip("\n")


# --- a conversation ---------------------------------------------------------------------------------------------------------
def conversation():
    t = Terminal("-n", "12", "-c", "512", "-sys", "Tell stories.")
    t.prompt()
    check(re.search(rb"stories-[a-z0-9]+\.gguf\. /help lists the commands, Ctrl-D ends\.", t.seen), "no greeting", t.seen)
    answers = [t.say(m) for m in ("Once upon a time", "Who was it?", "é 日本 \\o/")]
    check(re.search(rb"\x1b\[2m[0-9]+/512\x1b\[0m > ", t.seen), "the use of the context is not shown", t.seen)
    check("(4 messages" not in t.say("/save " + path("talk.json")) and os.path.exists(path("talk.json")), "/save", t.seen)
    with open(path("talk.json")) as f:
        talk = json.load(f)
    check([m["role"] for m in talk["messages"]] == ["system"] + ["user", "assistant"] * 3, "roles: %s" % talk)
    check(talk["messages"][5]["content"] == "é 日本 \\o/", "a message is %r" % talk["messages"][5])
    for i in (1, 2, 3):
        said = talk["messages"][2 * i]["content"].strip()
        want = whole(dict(talk, messages=talk["messages"][:2 * i]), 12)
        check(said == want.strip(), "answer %d: %r, as a whole %r" % (i, said, want))
        check(said.split("\n")[0] in answers[i - 1], "answer %d: %r is shown, %r saved" % (i, answers[i - 1], said))
    check("(7 messages saved" in t.say("/save"), "/save without a name", t.seen)
    with open(path("notes.txt"), "w") as f:
        f.write("notes")
    check("is no conversation" in t.say("/save " + path("notes.txt")).replace("\n", " ") and open(path("notes.txt")).read() == "notes", "/save over a text", t.seen)
    check("reused" in t.say("/stats") and "7 messages" in clean(t.seen), "/stats", t.seen)
    check("(taken back: é 日本" in t.say("/undo"), "/undo", t.seen)
    check("Who was it?" in t.say("/show") and "é 日本" not in clean(t.seen[-300:]), "/show", t.seen)
    again = t.say("/regen")
    check(again.split("\n")[0] in answers[1], "/regen: %r, not %r" % (again, answers[1]))
    t.say("/load " + path("talk.json"))
    check("7 messages" in t.say("/stats"), "/load", t.seen)
    check(t.say("/regen").split("\n")[0] in answers[2], "/regen after /load", t.seen)
    t.type("\x04")
    t.end("Ctrl-D", 0)
    check(b"\x1b[?2004l" in t.seen[-40:], "the marks of pasted text stay on", t.seen)


def commands():
    t = Terminal("-n", "3")
    t.prompt()
    check("did you mean /regen?" in t.say("/regne"), "no suggestion", t.seen)
    check("/help lists them, and //frobnicate sends it" in t.say("/frobnicate"), "an unknown command", t.seen)
    t.say("//help me")
    check("/help me" in t.say("/show"), "//", t.seen)
    check("(begins again)" in t.say("/clear") and "(nothing was said yet)" in t.say("/show"), "/clear", t.seen)
    t.say("\x1b[200~first\nsecond\x1b[201~")
    check("(taken back: first ..)" in t.say("/undo"), "/undo of two lines", t.seen)
    check("(there is nothing to take back)" in t.say("/undo"), "/undo of nothing", t.seen)
    check("(there is no message to answer)" in t.say("/regen"), "/regen of nothing", t.seen)
    check("(temp = 0.5)" in t.say("/set temp 0.5"), "/set", t.seen)
    check("'abc' is not" in t.say("/set temp abc"), "/set abc", t.seen)
    check("no setting 'tmep'; did you mean 'temp'; /set lists" in t.say("/set tmep 1"), "/set tmep", t.seen)
    check("no setting 'num_gpu'; /set lists" in t.say("/set num_gpu 1"), "/set num_gpu", t.seen)
    check("(temperature = 0.25)" in t.say("/set parameter temperature 0.25"), "/set parameter", t.seen)
    check("(temp = 0.5)" in t.say("/set parameter temp=0.5"), "/set parameter", t.seen)
    check("(system message set)" in t.say("/set system You are a pirate"), "/set system", t.seen)
    check("You are a pirate" in t.say("/system") and "(no system message)" in t.say("/set system -"), "/set system TEXT", t.seen)
    for name in ("model x", "ctx-size 5", "stop cat", "grammar x", "logit-bias 406-inf", "threads 2", "threads", "reasoning-format none"):
        said = t.say("/set " + name).replace("\n", " ")
        check("llm-cli: --%s cannot be changed in a conversation; /set lists what can" % name.split()[0] in said, "/set %s: %s" % (name, said))
    check("'tmep'; did you mean 'temp'" in t.say("/set tmep"), "/set of an unknown name", t.seen)
    said = t.say("/set")
    for row in ("temp = 0.5", "top-k = 40", "on-full = shift", "reasoning = dim", "n-predict = 3", "/set NAME VALUE changes one"):
        check(row in said, "/set alone has no %r: %s" % (row, said))
    check(t.say("/set temperature").endswith("temp = 0.5"), "/set temp", t.seen)
    check("(samplers = top_k;temperature)" in t.say("/set samplers top_k;temperature"), "/set samplers", t.seen)
    check("(sampling-seq = kt)" in t.say("/set sampling-seq kt"), "/set sampling-seq after samplers", t.seen)
    check("sampling-seq = kt" in t.say("/set sampling-seq") and "samplers = default" in t.say("/set samplers"), "the last one wins", t.seen)
    check("(samplers = top_k)" in t.say("/set samplers top_k") and "default" in t.say("/set sampling-seq"), "/set samplers again", t.seen)
    check("(on-full = stop)" in t.say("/set on-full stop") and "(top-k = 9)" in t.say("/set top-k 9"), "/set on-full", t.seen)
    check("on-full = stop" in t.say("/set on-full"), "another setting changes on-full", t.seen)
    said = t.say("/set seed 5") + t.say("/set mirostat 1")
    check("(seed = 5)" in said and "llm-cli: --mirostat: '1' is not one of" in said, "/set mirostat", t.seen)
    check("(n-predict = 1)" in t.say("/set n-predict 1") and "(ended after 1 token: -n)" in t.say("Hi"), "/set n-predict", t.seen)
    check("(system message set)" in t.say("/system Be kind.") and "Be kind." in t.say("/system"), "/system", t.seen)
    check("(no system message)" in t.say("/system -") and "there is no system" in t.say("/system"), "/system -", t.seen)
    check("the template refuses this conversation: not that" in t.say("refuse"), "the template's refusal", t.seen)
    check("refuse" not in t.say("/show"), "the refused message stays", t.seen)
    with open(path("note.txt"), "w") as f:
        f.write("A note.")
    check("(7 bytes of" in t.say("/read " + path("note.txt")), "/read", t.seen)
    t.say("What does it say?")
    check("A note." in t.say("/show"), "/read does not send", t.seen)
    for name, text, words in (("none", None, "No such file"), ("damaged", '{"messages": [', "damaged:1:"), ("list", "[]", "a JSON object"),
                              ("refused", '{"messages": [{"role": "user", "content": "refuse"}]}', "not that")):
        if text is not None:
            with open(path(name), "w") as f:
                f.write(text)
        said = t.say("/load " + path(name)).replace("\n", "")
        check(words in said and "the conversation stays as it is" in said, "/load %s: %s" % (name, said))
    check("A note." in t.say("/show"), "/load of a damaged file changes the conversation", t.seen)
    t.type("/lo\t" + path("no") + "\t\r")
    check("a JSON object" not in clean(t.prompt()) and b"/load " + path("no").encode() in t.seen, "Tab", t.seen)
    t.type("/bye\r")
    t.end("/bye", 0)
    t = Terminal("--context-shift")
    t.prompt()
    t.say("/set temp 1")
    check("on-full = shift" in t.say("/set on-full"), "/set temp undoes --context-shift", t.seen)
    t.type("\x04")
    t.end("--context-shift", 0)
    t = Terminal("--override-kv", "general.sampling.temp=float:0.6,general.sampling.sequence=str:kt", flags=["-m", "builtin:chat"])
    t.prompt()
    said = t.say("/set") # what the model's file says are the settings at first
    check("temp = 0.6" in said and "samplers = top_k;temperature" in said and "top-k = 40" in said, "/set, defaults of the file", said)
    check("(temp = 0.5)" in t.say("/set temp 0.5") and "temp = 0.5" in t.say("/set temp"), "/set after the file", t.seen)
    check("(sampling-seq = t)" in t.say("/set sampling-seq t") and "samplers = default" in t.say("/set samplers"), "an order after the file's", t.seen)
    t.type("\x04")
    t.end("defaults of the file", 0)


def upkeep():
    """The counter, /show, /stats, /load and /read tell how the conversation is."""
    t = Terminal("-n", "3")
    t.prompt()
    check("no answer yet" in t.say("/stats") and "0 of 256 tokens, 0 messages" in clean(t.seen[-200:]), "/stats of nothing", t.seen)
    used = lambda: int((re.findall(rb"([0-9]+)/256\x1b\[0m > ", t.seen[-60:]) or [0])[-1])
    t.say("Hello there")
    first = used()
    t.say("And what was it that she said to you?")
    second = used()
    t.say("/undo")
    check(0 < used() <= first + 2 < second, "the counter after /undo: %d, %d, %d" % (first, second, used()))
    t.say("/undo")
    check(used() == 0, "the counter after /undo of all: %d" % used(), t.seen)
    t.say("Hello there")
    t.say("/clear")
    check(used() == 0, "the counter after /clear: %d" % used(), t.seen)
    t.say("Hello there")
    t.say("refuse")
    said = t.say("/stats")
    check("prompt 0 tokens" not in said and "2 messages" in said, "/stats after a refusal: " + said)
    t.say("/clear")
    for command in ("/clear now", "/undo 2"):
        check("takes no argument" in t.say(command), command, t.seen)
    check("did you mean /regen or /read?" in t.say("/re"), "/re", t.seen)
    check("a command's name is missing" in t.say("/"), "/", t.seen)
    for name, data in (("nul", b"a\0b"), ("latin1", b"caf\xe9 au lait")):
        with open(path(name), "wb") as f:
            f.write(data)
        check("is not a text in UTF-8" in t.say("/read " + path(name)).replace("\n", " "), "/read " + name, t.seen)
    with open(path("note.txt"), "w") as f:
        f.write("A note.")
    t.say("/read " + path("note.txt"))
    check("gave is taken back, too" in t.say("long " * 300), "/read before a message that does not fit", t.seen)
    for name, messages, words in (("bare", [{"role": "user"}], 'messages[0]: "content" is missing'), ("five", [{"role": "user", "content": 5}], '"content" must be a string or a list of parts, not a number'),
                                  ("empty", [], 'the list "messages" is empty')):
        with open(path(name), "w") as f:
            json.dump({"messages": messages}, f)
        said = t.say("/load " + path(name)).replace("\n", "")
        check(words in said and "the conversation stays" in said, "/load %s: %s" % (name, said))
    with open(path("calls"), "w") as f:
        json.dump({"messages": [{"role": "assistant", "content": " ok", "tool_calls": [{"type": "function", "function": {
            "name": "f", "arguments": {"a": 1}}}]}]}, f)
    check("(1 message from" in t.say("/load " + path("calls")), "/load of one message", t.seen)
    check('assistant\n  ok\n  {"name": "f", "arguments": {"a": 1}}' in t.say("/show"), "/show of a call", t.seen)
    for typed, name in (("\"%s\"" % path("my talk.json"), "my talk.json"), (path("it\\'s"), "it's"), (path("o'clock"), "o'clock")):
        t.say("/save " + typed)
        check(os.path.exists(path(name)), "/save " + typed, t.seen)
    check("1 message" in t.say("/load " + path("my talk.json").replace(" ", "\\ ")), "/load of a path with a backslash", t.seen)
    t.type("\x04")
    t.end("upkeep", 0)


def pictures():
    """A saved conversation has no pictures; when it is loaded, they can be shown again."""
    eye, red, talk = eye_file.llava(path("mmproj.gguf"), 128), path("a red one.ppm"), path("seen.json")
    with open(red, "wb") as f:
        f.write(eye_file.ppm((255, 0, 0)))
    begin = lambda *more: Terminal("-n", "4", *more, flags=["-m", "builtin:chat", "--temp", "0", "-t", "1"])
    t = begin("--mmproj", eye)
    t.prompt()
    check("will precede your next message" in t.say('/image "%s"' % red), "/image with a quoted path", t.seen)
    said = t.say("Who are you?")
    shown = t.say("/show")
    check("<__media__>\n  Who are you?" in shown and "<__media:" not in shown, "/show of a picture: " + shown)
    check("(without its pictures and sounds: " in t.say("/save " + talk), "/save of a picture", t.seen)
    check("pictures" not in t.say("/load " + talk), "the picture is there", t.seen)
    t.type("\x04")
    t.end("pictures", 0)
    t = begin("--mmproj", eye)
    t.prompt()
    check("(its pictures and sounds are not in the file: " in t.say("/load " + talk), "/load of a picture", t.seen)
    check("is in the conversation again)" in t.say("/image " + red), "/image of a missing picture", t.seen)
    check("will precede" in t.say("/image " + red), "/image of one more", t.seen)
    check(said in t.say("/regen"), "another answer, not " + said, t.seen)
    check("(taken back: <__media__>" in t.say("/undo"), "/undo of a picture", t.seen)
    t.type("\x04")
    t.end("pictures", 0)
    t = begin()
    t.prompt()
    check("(it has pictures or sounds, which need an eye or an ear: --mmproj FILE)" in t.say("/load " + talk), "/load without an eye", t.seen)
    check("/image needs the model's eye" in t.say("/image " + red), "/image without an eye", t.seen)
    t.type("\x04")
    t.end("pictures", 0)


def spaces():
    """The white space before an answer is kept only if the template copies it."""
    for trims in (False, True):
        name = path("spaces%d.jinja" % trims)
        with open(name, "w") as out:
            out.write("{% for m in messages %}[{{ m.content" + "|trim" * trims + " }}]{% endfor %}")
        t = Terminal("-n", "8", "--chat-template-file", name, "--grammar", 'root ::= " Hello there"', flags=["-m", MODEL, "--temp", "0"])
        t.prompt()
        t.say("x")
        t.say("/save " + path("spaces.json"))
        with open(path("spaces.json")) as f:
            said = json.load(f)["messages"][1]["content"]
        check(said == " Hello there"[trims:], "the answer is kept as %r, trims: %s" % (said, trims))
        check("assistant\n  Hello there" in t.say("/show"), "/show", t.seen)
        t.type("\x04")
        t.end("spaces", 0)


def pending(pid, number):
    """Whether a signal was sent to a process and has not arrived yet. False where the system does not tell."""
    try:
        with open("/proc/%d/status" % pid) as f:
            return any(int(line.split()[1], 16) >> (number - 1) & 1 for line in f if line.startswith("ShdPnd:"))
    except FileNotFoundError:
        return False


def stops():
    t = Terminal("--ignore-eos", "-c", "2000", "--device", "reference")
    t.prompt()
    t.type("Once upon a time\r")
    t.until(rb"\x1b\[\?2004l\r?\n?.{40}", "an answer")
    t.type("\x03")
    text = clean(t.prompt("the prompt after Ctrl-C"))
    check("(stopped)" in text, "Ctrl-C in an answer", t.seen)
    t.say("/save " + path("stopped.json"))
    with open(path("stopped.json")) as f:
        talk = json.load(f)["messages"]
    check(len(talk) == 2 and len(talk[1]["content"]) > 30, "the beginning of the answer is lost: %s" % talk)
    t.type("Go on\r")
    t.until(rb"\x1b\[\?2004l\r?\n?.{40}", "an answer after one that was stopped")
    t.type("\x03")
    t.prompt()
    t.type("/regen\r")
    t.until(rb"\x1b\[\?2004l\r?\n?.{40}", "an answer to /regen")
    for _ in range(2):
        os.kill(t.pid, signal.SIGINT)
        while pending(t.pid, signal.SIGINT):  # two that are pending would be one
            time.sleep(0.001)
    check("(stopped)" in clean(t.prompt("the prompt after Ctrl-C twice in an answer")), "Ctrl-C twice in an answer", t.seen)
    t.type("half a line\x03")
    t.prompt("a prompt after half a line")
    t.type("\x03")
    t.until(rb"Ctrl-C again, or Ctrl-D, ends", "the hint")
    t.prompt()
    t.type("\x03")
    t.end("Ctrl-C twice", 130)


def settings():
    """The terminal's settings, after every end."""
    def restored(t, what):
        check(termios.tcgetattr(t.fd)[:6] == t.before[:6], what + ": the terminal's settings are others", t.seen)

    for what, act, code in (("SIGTERM", lambda t: os.kill(t.pid, signal.SIGTERM), 143), ("SIGHUP", lambda t: os.kill(t.pid, signal.SIGHUP), 129),
                            ("SIGABRT", lambda t: os.kill(t.pid, signal.SIGABRT), -6), ("Ctrl-D", lambda t: t.type("\x04"), 0)):
        t = Terminal()
        t.prompt()
        check(termios.tcgetattr(t.fd)[3] & termios.ECHO == 0, "the editor leaves the echo on")
        act(t)
        t.until(rb"\x1b\[\?2004l", what)
        deadline = time.monotonic() + 20
        while termios.tcgetattr(t.fd)[:6] != t.before[:6] and time.monotonic() < deadline:
            time.sleep(0.01)
        restored(t, what)
        t.end(what, code)
    # with a shell, as a process without one does not stop
    script = 'set -m; "$@"; stty -a; fg; stty -a'
    t = Terminal(command=["/bin/bash", "-c", script, "bash", CLI, *FLAGS])
    t.prompt()
    t.type("half\x1a")
    modes = t.until(rb"cs8.* iexten .*half", "the line after Ctrl-Z")
    check(b" echo " in modes and b" icanon" in modes, "Ctrl-Z: the terminal's settings are others", modes)
    t.type("\x15\x04")
    modes = t.until(rb"cs8.* iexten echo ", "the shell")
    check(b" echo " in modes and b" icanon" in modes, "the end: the terminal's settings are others", modes)
    t.end("Ctrl-Z", 0)


def editing():
    t = Terminal("-n", "2")
    t.prompt()
    t.type("\x1b[200~first\r\nsecond\tline\x1b[201~")
    t.type("!\r")
    t.until(rb"\x1b\[\?2004l", "a pasted message")
    t.prompt()
    t.type("one\\\rtwo\r")
    t.until(rb"\x1b\[\?2004l", "a message of two lines")
    t.prompt()
    t.type("x" * 100)
    t.until(rb"x{60}", "a long line")
    t.resize(24, 50)
    t.until(rb"x{90}", "a long line on a narrow screen")
    t.type("\x01y\r")
    t.until(rb"\x1b\[\?2004l", "a long message")
    t.prompt()
    t.say("/save " + path("edited.json"))
    with open(path("edited.json")) as f:
        said = [m["content"] for m in json.load(f)["messages"] if m["role"] == "user"]
    check(said == ["first\nsecond\tline!", "one\ntwo", "y" + "x" * 100], "messages: %s" % said)
    t.type("\x04")
    t.end("editing", 0)


def history():
    env = dict(ENV, XDG_DATA_HOME=path("other"))
    t = Terminal("-n", "1", env=env)
    t.prompt()
    t.say("a first message")
    t.say("a second one")
    t.type("\x04")
    t.end("history", 0)
    file = path("other/ggml-lite/llm-cli.history")
    check(os.stat(file).st_mode & 0o777 == 0o600, "others may read the history")
    with open(file) as f:
        check(f.read() == "a first message\na second one\n", "the file of the history")
    t = Terminal("-n", "1", env=env)
    t.prompt()
    t.type("\x1b[A\x1b[A")
    t.until(rb"a first message", "the history of another run")
    t.type("\x03")
    t.prompt()
    t.type("\x12sec")
    t.until(rb"a second one", "a search")
    t.type("\x07\x15\x04")
    t.end("history", 0)
    for args, more in ((("--no-history",), {}), ((), {"LLM_NO_HISTORY": "1"})):
        t = Terminal("-n", "1", *args, env=dict(env, **more))
        t.prompt()
        t.say("not kept")
        t.type("\x04")
        t.end("no history", 0)
        with open(file) as f:
            check("not kept" not in f.read(), "the history keeps lines with %s %s" % (args, more))
    with open(path("other2"), "w"):
        pass
    t = Terminal("-n", "1", env=dict(env, XDG_DATA_HOME=path("other2")))
    t.prompt()
    check("the history is not kept" in t.say("Hi"), "no folder for the history", t.seen)
    check("the history is not kept" not in t.say("Ho"), "that is said twice", t.seen)
    t.type("\x04")
    t.end("no folder for the history", 0)


def full():
    """A full context, and a full disk."""
    t = Terminal("-c", "64", "-n", "30", "--ignore-eos", "--on-full", "stop")
    t.prompt()
    t.say("Once upon a time")
    said = t.say("and then").replace("\n", " ")
    check("the context of 64 tokens is full: /clear begins" in said, "--on-full stop: " + said)
    check("is full" in t.say("and now").replace("\n", " "), "a message to a full context", t.seen)
    check("and now" not in t.say("/show"), "that message stays", t.seen)
    t.say("/clear")
    check("is full" not in t.say("Hello"), "/clear does not help", t.seen)
    t.type("\x04")
    t.end("--on-full stop", 0)
    t = Terminal("-c", "64", "-n", "20", "--ignore-eos", "-sys", "S")
    t.prompt()
    said = [t.say("message %d" % i) for i in range(5)]
    told = [s for s in said if "the oldest messages are left" in s.replace("\n", " ")]
    check(len(told) == 1, "a full context is told %d times: %s" % (len(told), said))
    check("user (left out)" in t.say("/show"), "/show does not mark what is left out", t.seen)
    t.say("/save " + path("shifted.json"))
    with open(path("shifted.json")) as f:
        check(len(json.load(f)["messages"]) == 11, "messages that are left out are not saved")
    check("does not fit" in t.say("long " * 200).replace("\n", " "), "a message that is too long", t.seen)
    check("/save" not in t.say("/save /dev/full") and "/dev/full" in clean(t.seen[-200:]), "/save /dev/full", t.seen)
    t.type("\x04")
    t.end("--on-full shift", 0)
    for args, stdin in ((("-st", "-p", "Hi"), ""), (("-cnv", "-p", "Hi"), ""), (("-cnv",), "Hi\n")):
        told = run("-c", "64", "-n", "80", "--ignore-eos", "--on-full", "stop", *args, stdin=stdin).stderr.decode()
        check(told.endswith("the context of 64 tokens is full: -c N gives a larger one, -n N ends earlier\n"), "%s: %s" % (args, told))
    with open(path("kept.json"), "w") as f:
        f.write("what was there")

    t = Terminal("-n", "8")
    t.prompt()
    t.say("Hello")
    resource.prlimit(t.pid, resource.RLIMIT_FSIZE, (20, 20))
    said = t.say("/save " + path("kept.json")).replace("\n", "")
    check("kept.json" in said and "saved in" not in said, "a full disk: " + said)
    with open(path("kept.json")) as f:
        check(f.read() == "what was there", "a full disk loses the file that was there")
    check(not [n for n in os.listdir(TMP.name) if "kept.json." in n], "a temporary file is left")
    t.type("\x04")
    t.end("a full disk", 0)


def reasoning():
    think = ["--chat-template-kwargs", '{"begin": "<think>\\n"}', "-n", "6"]
    t = Terminal(*think)
    t.prompt()
    t.say("Hello")
    check(re.search(rb"\x1b\[\?2004l\x1b\[2m[^\x1b(]*[a-z][^\x1b]*\x1b\[0m", t.seen), "reasoning is not dimmed", t.seen)
    t.type("\x04")
    t.end("reasoning", 0)
    t = Terminal("--reasoning", "hide", *think)
    t.prompt()
    t.type("Hello\r")
    t.until(rb"thinking \.\..*\r\x1b\[K", "a word for hidden reasoning")
    t.prompt()
    t.type("\x04")
    t.end("hidden reasoning", 0)
    hidden = run("-st", "--reasoning", "hide", *think, stdin="Hello").stdout
    shown = run("-st", "--reasoning", "show", *think, stdin="Hello").stdout
    check(hidden.strip() == b"" and len(shown.strip()) > 3, "--reasoning in a pipe: %r, %r" % (hidden, shown))
    for more in ((), ("--reasoning", "dim"), ("-o", path("answer-only"))):
        check(run("-st", *more, *think, stdin="Hello").stdout.strip() == b"", "reasoning goes into a pipe with %s" % (more,))
    noted = [b"only reasoning, which is hidden" in run("-st", *more, *think, stdin="Hello").stderr for more in ((), ("--reasoning", "show"))]
    check(noted == [True, False], "a note for hidden reasoning: %s" % noted)
    with open(path("answer-only"), "rb") as f:
        check(f.read().strip() == b"", "reasoning goes into the file of -o")
    # a grammar makes the model write the marks
    grammar = ["-st", "-p", "x", "-n", "60", "--grammar", 'root ::= "<think>He asks.</think>ok <tool_call>{\\"name\\": \\"f\\", \\"arguments\\": {}}</tool_call>"']
    with open(path("tools.json"), "w") as f:
        f.write('[{"type": "function", "function": {"name": "f", "parameters": {}}}]')
    r = run("-st", "--tools", path("tools.json"), "-p", "x", code=1)
    check(b"the chat template does not read tools" in r.stderr, "--tools without tools in the template", r.stderr)
    with open(path("tools.jinja"), "w") as f:
        f.write("{{ tools|tojson }}{% for m in messages %}{{ m.content }}{% endfor %}{# <tool_call> #}")
    tools = ["-st", "-p", "x", "-n", "3", "--chat-template-file", path("tools.jinja")]
    run(*tools, "--tools", path("tools.json"), flags=["-m", MODEL])
    call = b'{"name": "f", "arguments": {}}\n'
    for how, want in (((), b"ok\n\n" + call), (("--reasoning", "show"),
                      b'<think>He asks.</think>ok <tool_call>{"name": "f", "arguments": {}}</tool_call>\n')):
        r = run(*grammar, *how, "--tools", path("tools.json"), "--chat-template-file", path("tools.jinja"), flags=["-m", MODEL])
        check(r.stdout.rstrip() == want.rstrip(), "%s with --tools: %r" % (how, r.stdout), r.stderr)
    t = Terminal("--tools", path("tools.json"), "--chat-template-file", path("tools.jinja"), *grammar[3:], flags=["-m", MODEL])
    t.prompt()
    t.say("x")
    said = t.say("/show")
    check('assistant\n  ok\n  {"name": "f", "arguments": {}}' in said, "/show of a call that was made: " + said)
    t.type("\x04")
    t.end("--tools", 0)
    r = run(*tools, "--tools", path("tools.jinja"), flags=["-m", MODEL], code=1)
    check(b"tools.jinja" in r.stderr, "--tools that are none", r.stderr)
    # reasoning that the template begins is ended after N tokens; then the answer follows
    for how, most in ((("--reasoning-budget", "2"), 2), (("--reasoning-budget", "0"), 0), (("--reasoning-budget", "5"), 5)):
        text = run("-st", "-p", "x", "--reasoning", "show", *how, *think[:2], "-n", "40").stdout.decode()
        check("</think>" in text, "%s does not end reasoning: %r" % (how, text))
        check((text.find("</think>") > 0) == (most > 0) and len(text.split("</think>")[0].split()) <= most, "%s: %r" % (how, text))
    r = run("-st", "-p", "x", "-n", "1", "--reasoning", "on", "--reasoning-format", "deepseek")
    check(not r.stderr, "--reasoning on", r.stderr)


def untalkative():
    """A model without a chat template, where the terminal asks for a chat."""
    t = Terminal(flags=["-m", MODEL])
    t.end("no chat template", 1)
    check("the file has no chat template, so it cannot chat; --chat-template NAME" in clean(t.seen), "no chat template", t.seen)


# --- without a terminal ---------------------------------------------------------------------------------------------------------
def pipes():
    noted = [run(*a, "-p", "Hello!", "-n", "2", flags=["-m", "builtin:chat"]).stderr.count(b"note: the prompt is continued as plain text")
             for a in ((), ("-no-cnv",))]
    check(noted == [1, 0], "a note for -p: %s times" % noted)
    r = run("-cnv", "-n", "8", stdin="Once upon a time\n\nWho was it?\n/help\n")
    lines = r.stdout.decode().split("\n")
    check(len(lines) == 4 and lines[3] == "", "a line for each message: %r" % r.stdout)
    talk = {"messages": [{"role": "user", "content": "Once upon a time"}]}
    check(lines[0] == whole(talk, 8), "the first answer: %r" % lines[0])
    check(r.stderr == b"llm-cli: note: '/help' is a message: lines are commands only on a terminal\n", "a command from a pipe", r.stderr)
    check(run("-cnv", "-n", "1", stdin="/helpful\n/ \n").stderr == b"", "lines that are no commands")
    check(b"only on a terminal; --image FILE shows a picture" in run("-cnv", "-n", "1", stdin="/image a.png\n").stderr, "/image from a pipe")
    data = run("-cnv", "-n", "40", "--json", stdin="Hello\nOnce\n").stdout.decode().strip()
    decoder, found = json.JSONDecoder(), 0
    while data:
        data, found = data[decoder.raw_decode(data)[1]:].lstrip(), found + 1
    check(found == 2, "--json in a conversation: %d values" % found)
    same = run("-cnv", "-n", "8", "--lookup", stdin="Once upon a time\n\nWho was it?\n/help\n")
    check(same.stdout == r.stdout, "--lookup: %r" % same.stdout)
    one = run("-st", "-n", "8", stdin="Once upon\na time\n").stdout.decode()
    check(one.rstrip("\n") == whole({"messages": [{"role": "user", "content": "Once upon\na time"}]}, 8), "-st reads all: %r" % one)
    two = run("-st", "-n", "8", "-p", "Once upon\\na time").stdout.decode()
    check(one == two, "-st -p: %r" % two)
    first = run("-cnv", "-n", "8", "-p", "Once upon a time", stdin="Who was it?\n").stdout.decode()
    check(first.split("\n")[:2] == lines[:2], "-cnv -p: %r" % first)
    many = run("-cnv", "-mli", "-n", "8", stdin="Once upon\na time").stdout.decode()
    check(many == one, "-mli: %r" % many)
    bad = run("-cnv", "-n", "1", stdin="refuse\nHello\n", code=1)
    check(b"the template refuses this conversation" in bad.stderr and bad.stdout == b"", "a refusal in a pipe", bad.stderr)
    check(run("-n", "4", stdin="Once", flags=["-m", MODEL, "--temp", "0"]).stdout.startswith(b"Once"), "a pipe converses by itself")
    p = subprocess.Popen([CLI, *FLAGS, "-cnv", "--ignore-eos", "-n", "200"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, env=ENV)
    p.stdin.write(b"Hi\nHo\n")
    p.stdin.close()
    p.stdout.read(10)
    p.stdout.close()
    check(p.wait() == 1 and p.stderr.read() == b"", "a reader that leaves")
    with open("/dev/full", "wb") as device:
        r = subprocess.run([CLI, *FLAGS, "-st", "-p", "Hi"], stdout=device, stderr=subprocess.PIPE, env=ENV)
    check(r.returncode == 1 and b"No space left" in r.stderr, "/dev/full", r.stderr)
    with open(path("system"), "w") as f:
        f.write("Be kind.\n")
    told = run("-st", "-n", "40", "-p", "Once upon a time").stdout
    word = told.split()[5]
    cut = told[:told.index(word)]
    check(run("-st", "-n", "40", "-p", "Once upon a time", "--stop", word).stdout.rstrip() == cut.rstrip(), "--stop")
    check(run("-st", "-n", "40", "-p", "Once upon a time", "-r", word).stdout.rstrip() == cut + word, "-r")
    check(run("-st", "-n", "40", "-p", "Once upon a time", "-o", path("answer")).stdout == b"", "-o prints the answer, too")
    with open(path("answer"), "rb") as f:
        check(f.read() == told, "-o")
    for more in ((), ("-f", path("nothing"))):
        open(path("nothing"), "w").close()
        r = run("-st", *more, code=2)
        check(b"there is no message" in r.stderr, "-st %s without a message" % (more,), r.stderr)
    with open("/dev/null") as nothing:
        r = subprocess.run([CLI, *FLAGS, "-st"], stdin=nothing, capture_output=True, env=ENV)
    check(r.returncode == 2 and b"there is no message" in r.stderr, "-st < /dev/null", r.stderr)
    a = run("-st", "-n", "8", "-p", "Hi", "-sys", "Be kind.").stdout
    check(a == run("-st", "-n", "8", "-p", "Hi", "-sysf", path("system")).stdout, "-sysf")


def wrong():
    for args, words in ((("-cnv", "-no-cnv"), "together"), (("-st", "--tokens", "1"), "--tokens"), (("-cnv", "-i"), "choose one"),
                        (("-sys", "x", "-p", "y"), "with -st, -p is the message"), (("-sys", "x", "-sysf", TEMPLATE), "together"),
                        (("--in-prefix", "x"), "are for -i"), (("-st", "--prompt-cache", "c", "-p", "x"), "are for texts"), (("-cnv", "--chat-template-kwargs", "[]"), "a JSON object is expected")):
        r = run(*args, code=2)
        check(words.encode() in r.stderr, "%s: %s" % (args, r.stderr))
    r = run("-st", "-p", "Hi", "-n", "1", "--chat-template-kwargs", '{"enable_thnking": true}')
    check(b"note: --chat-template-kwargs: the template does not read 'enable_thnking'" in r.stderr, "an unread variable", r.stderr)
    plain = ["-m", MODEL]
    text = ["-p", "x", "-n", "1"]
    for flag in (["--chat-template", "no-such"], ["--chat-template-file", TEMPLATE], ["--chat-template-kwargs", "{}"], ["--tools", TEMPLATE],
                 ["--reasoning", "hide"], ["--reasoning", "dim"], ["--reasoning-format", "auto"], ["--reasoning-budget", "5"], ["-sysf", TEMPLATE]):
        for how, words in ((text, "with -st, -p is the message"), (["-no-cnv"], "not for -i and -no-cnv"), (["-i"], "not for -i and -no-cnv"),
                           ([], "standard input is continued as a text")):
            r = run(*how, *flag, flags=plain, code=2, stdin="x")
            check((flag[0] + " is for conversations").encode() in r.stderr and words.encode() in r.stderr, "%s: %s" % (how + flag, r.stderr))
        run("--plan", *flag, flags=plain)
    for flag, name in ((["--reasoning-budget", "0"], "--reasoning-budget 0"), (["--think=false"], "--reasoning off"), (["--reasoning", "off"], "--reasoning off")):
        for how in (text, ["-no-cnv"], []):
            r = run(*how, "-n", "1", *flag, flags=plain, stdin="x") if how != text else run(*text, *flag, flags=plain)
            check(("note: %s: a text is continued without reasoning; the flag has no effect" % name).encode() in r.stderr, "%s: %s" % (how + flag, r.stderr))
    r = run("-cnv", "-n", "1", "--reasoning-budget", "0", stdin="x\n")
    check(b"no effect" not in r.stderr, "--reasoning-budget 0 in a conversation", r.stderr)
    for flag, words in ((["--keep", "4"], "--keep needs --on-full shift"), (["--draft-max", "16"], "--draft-max needs --lookup or --draft"),
                        (["--draft-min", "0"], "--draft-min needs --lookup or --draft"), (["--draft-p-min", "0.5"], "--draft-p-min needs --draft"),
                        (["--lookup", "--draft-p-min", "0.5"], "--draft-p-min needs --draft"),
                        (["--keep", "4", "--on-full", "stop"], "--keep needs --on-full shift")):
        r = run(*text, *flag, flags=plain, code=2)
        check(words.encode() in r.stderr, "%s: %s" % (flag, r.stderr))
    r = run("-st", *text, "--keep", "4", code=2)
    check(b"--keep is for texts" in r.stderr, "--keep in a conversation", r.stderr)
    for args, words in ((("-cnv",), "the file has no chat template"), (("-cnv", "--chat-template", "no-such"), "the built-in ones are bailing"),
                        (("-cnv", "--chat-template-file", path("none")), "No such file")):
        r = run(*args, flags=plain, code=1)
        check(words.encode() in r.stderr, "%s: %s" % (args, r.stderr))
    r = run("-st", "-p", "Hi", "-n", "2", "--chat-template", "chatml", flags=plain)
    with open(path("broken"), "w") as f:
        f.write("a\n{% if %}")
    r = run("-cnv", "--chat-template", path("broken"), flags=plain, code=1)
    check(b"broken:2:" in r.stderr, "a broken template", r.stderr)


def dumb():
    t = Terminal("-n", "4", env=dict(ENV, TERM="dumb"))
    t.until(rb"> ", "a prompt on a dumb terminal")
    t.type("Hello \\\nthere\n")
    t.until(rb"[0-9]+/256 > ", "an answer on a dumb terminal")
    t.type("/show\n")
    t.until(rb"user\r\n  Hello \r\n  there", "/show on a dumb terminal")
    check(b"\x1b" not in t.seen, "escape sequences on a dumb terminal", t.seen)
    t.type("\x04")
    t.end("a dumb terminal", 0)


def interactive():
    flags = ["-m", MODEL, "--temp", "0", "-n", "6"]
    r = run("-i", "-p", "Once upon", flags=flags, stdin="a\n")
    check(r.stdout.startswith(b"Once upon"), "-i", r.stdout)
    t = Terminal("-i", "-p", "Once upon", "--in-prefix", "Q: ", "--in-suffix", "A:", flags=flags)
    t.until(rb"Once upon.*Q: ", "-i")
    t.type("who?\r")
    t.until(rb"A:.*Q: ", "the text after what was typed")
    t.type("\x04")
    t.end("-i", 0)


def by_itself():
    t = Terminal("--temp", "0", flags=[])
    t.prompt("a prompt without any arguments")
    check(b"builtin:chat" in t.seen and len(t.say("Hello!")) > 3, "the built-in model does not answer", t.seen)
    t.type("\x04")
    t.end("the built-in model", 0)
    t = Terminal("-no-cnv", "-n", "3", flags=[])
    t.end("-no-cnv on a terminal", 0)
    check(b"generation" in t.seen and b"/help" not in t.seen, "-no-cnv converses", t.seen)


CASES = [by_itself, conversation, commands, upkeep, pictures, spaces, stops, settings, editing, history, full, reasoning, untalkative, pipes, wrong, dumb, interactive]
for case in CASES:
    if len(sys.argv) < 5 or case.__name__ in sys.argv[4:]:
        try:
            case()
        except TimeoutError as e:
            check(False, case.__name__ + ": " + str(e))
sys.exit(finish())
