"""Models by name, prompts without tokens, adapters that are none, pictures with another ending: what the tools say.

model_words.py TOOLS MODEL    TOOLS: the folder of the programs; MODEL: models/builtin/stories.gguf"""
import fcntl, json, os, pty, re, signal, struct, subprocess, sys, termios, time, wave

import terminals
from checks import TMP, check, finish, put, runner, write_safetensors
from gguf_file import gguf

TOOLS, MODEL = sys.argv[1:3]
run_tool = runner(TOOLS, cwd=TMP.name, both=True)
TEXT = b"Once upon a time, there was a little girl named Lily. She liked to play outside in the park. " * 20


def run(code, words, *command):
    """Runs a tool in TMP; `words` must be on standard error. Returns standard output and error."""
    return run_tool(*command, code=code, has=words)



def put_letters(name):
    """A folder of a Llama whose tokenizer has the letters a to z, and no bytes."""
    n_vocab, dim = 26, 32
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": [n_vocab, dim], "model.norm.weight": [dim], "lm_head.weight": [n_vocab, dim],
              **{f"{layer}{x}_layernorm.weight": [dim] for x in ["input", "post_attention"]},
              **{f"{layer}self_attn.{x}_proj.weight": [dim, dim] for x in "qkvo"},
              **{f"{layer}mlp.{x}_proj.weight": [dim, dim] for x in ["gate", "up", "down"]}}
    put(name + "/config.json", json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": dim, "intermediate_size": dim, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "vocab_size": n_vocab,
        "max_position_embeddings": 32, "hidden_act": "silu"}).encode())
    write_safetensors(os.path.join(TMP.name, name, "model.safetensors"), {
        key: ("F32", shape, struct.pack("<f", 0.01) * (shape[0] * (shape[1] if len(shape) > 1 else 1))) for key, shape in shapes.items()})
    put(name + "/tokenizer.json", json.dumps({
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {chr(97 + i): i for i in range(n_vocab)}, "merges": []}}).encode())


def test_prompts_without_tokens():
    put_letters("letters")
    run(0, "", "llm-cli", "-m", "letters", "-p", "abc", "-n", "1")
    run(2, "the prompt becomes no token: the model's vocabulary lacks all of its characters", "llm-cli", "-m", "letters", "-p", "ABC")
    run(2, "the prompt is empty, and this model has no token to begin with", "llm-cli", "-m", "letters", "-p", "")
    out, _ = run(0, "note: the text becomes no token", "llm-tokenize", "-m", "letters", "-p", "ABC", "--ids")
    check(out == "[]\n", "no ids", out)
    _, err = run(0, "", "llm-tokenize", "-m", "letters", "-p", "abc")
    check("note:" not in err, "a text with tokens gets no note", err)
    out, _ = run(0, "note: left out of the text: 3 of 5 bytes, which the vocabulary lacks", "llm-tokenize", "-m", "letters", "-p", "aB\u00e9c", "--ids")
    check(out == "[0, 2]\n", "the ids of the other characters", out)
    run(0, "note: left out of the prompt: 1 of 4 bytes", "llm-cli", "-m", "letters", "-p", "abXc", "-n", "1")


def test_built_in_models():
    """-m takes the built-in models' names in all tools that have them, with the results of the model's file."""
    put("text.txt", TEXT)
    for tool, words in [("llm-perplexity", ["-f", "text.txt", "-c", "64", "--chunks", "2"]),
                        ("llm-imatrix", ["-f", "text.txt", "-c", "64", "--chunks", "2", "-o", "i.gguf"])]:
        named, _ = run(0, "", tool, "-m", "builtin:stories", *words)
        file, _ = run(0, "", tool, "-m", MODEL, *words)
        check(named == file and "PPL" in named, f"{tool}: the named model is the file", [named, file])
        other, _ = run(0, "", tool, "-m", "builtin:chat", *words)
        check(other != file, f"{tool}: builtin:chat is another model")
        run(2, "-m builtin:tales: the built-in models are builtin:stories, builtin:chat, builtin:words, builtin:shapes and builtin:shapes-eye", tool, "-m", "builtin:tales", *words)
    words = ["-p", "4", "-n", "0", "-r", "1", "--no-limits"]
    out, _ = run(0, "", "llm-bench", "-m", "builtin:chat", "-m", MODEL, *words, "-o", "json")
    check(len(json.loads(out)) == 2, "two models", out)
    run(2, "the built-in models are", "llm-bench", "-m", "builtin:tales", *words)
    run(1, "--type: the built-in models are quantized already", "llm-bench", "-m", "builtin:chat", "--type", "q4_0", *words)


WORDS = os.path.join(os.path.dirname(MODEL), "../../examples/words.wav")


def test_durations():
    """What comes after --duration is not heard, although the model hears it in the same window."""
    all_words, _ = run(0, "", "llm-transcribe", "-q", WORDS)
    some, _ = run(0, "", "llm-transcribe", "-q", "-d", "0.9", WORDS)
    check(len(all_words.split()) == 4 and len(some.split()) < 3, "-d 0.9", [all_words, some])


def test_a_recorder_that_is_stopped():
    """Ctrl-C goes to the recorder and to llm-transcribe, which writes down what came until then."""
    with open(WORDS, "rb") as f:
        sound = bytearray(f.read())
    at = sound.index(b"data") + 4
    sound[4:8], sound[at:at + 4] = struct.pack("<I", 0x80000024), struct.pack("<I", 0x80000000)  # of a length that nobody knows yet
    put("recorded.wav", bytes(sound))
    record = ("import signal, sys, time; signal.signal(signal.SIGINT, lambda *x: sys.exit()); "
              f"sys.stdout.buffer.write(open({os.path.join(TMP.name, 'recorded.wav')!r}, 'rb').read()); sys.stdout.flush(); time.sleep(60)")
    for n_signals in (1, 2):  # the recorder ends with the first one; it goes on
        put("heard.txt", b"")
        p = subprocess.Popen(["bash", "-c", '"$1" -c "$2" | "$3" -q -o "$4" -; exit ${PIPESTATUS[1]}', "-", sys.executable, record if n_signals == 1 else record.replace("sys.exit()", "0"),
                              os.path.join(TOOLS, "llm-transcribe"), os.path.join(TMP.name, "heard.txt")], stdout=subprocess.PIPE, start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        time.sleep(2)
        for _ in range(n_signals):
            for pid in children(p.pid):
                os.kill(pid, signal.SIGINT)
            time.sleep(0.5)
        while n_signals == 2 and len(children(p.pid)) > 1:  # llm-transcribe ends although its pipe does not
            time.sleep(0.1)
        for pid in children(p.pid) if n_signals == 2 else []:
            os.kill(pid, signal.SIGKILL)
        p.communicate(timeout=60)
        with open(os.path.join(TMP.name, "heard.txt")) as f:
            check(p.returncode == 0 and len(f.read().split()) == 4, f"{n_signals} times Ctrl-C", [p.returncode])


def test_stopped_in_silence():
    """Ctrl-C before anything was said tells what became of -o FILE."""
    with wave.open(os.path.join(TMP.name, "hour.wav"), "wb") as f:
        f.setparams((1, 2, 8000, 0, "NONE", ""))
        f.writeframes(bytes(3600 * 8000 * 2))
    put("kept.txt", b"as before")
    for name, said in (("kept.txt", "kept.txt is as it was"), ("none.txt", "none.txt was not written")):
        code, seen = terminals.run(os.path.join(TOOLS, "llm-transcribe"), "-t", "1", "-o", name, "hour.wav", stop=b" of 3600 s", cwd=TMP.name,
                                   env={**os.environ, "TERM": "xterm", "GGL_PROGRESS_DELAY": "0"})
        check(code in (-2, 130) and "stopped: nothing was said yet; " + said in seen, f"stopped in silence, {name}", [code, seen])
    with open(os.path.join(TMP.name, "kept.txt"), "rb") as f:
        check(f.read() == b"as before" and not os.path.exists(os.path.join(TMP.name, "none.txt")), "the files")


def test_sounds_by_flag():
    """-f FILE, as whisper-cli has it, is a sound as one without a flag, in the order of the command line."""
    given, _ = run(0, "", "llm-transcribe", "-q", "-d", "0.9", WORDS)
    for words in (["-f", WORDS], [f"--file={WORDS}"]):
        same, _ = run(0, "", "llm-transcribe", "-q", "-d", "0.9", *words)
        check(given and same == given, f"{words[0]}", [given, same])
    both, _ = run(0, "", "llm-transcribe", "-q", "-d", "0.9", "-f", WORDS, "-f", WORDS, WORDS)
    check(both == given * 3, "three sounds", [given, both])
    run(2, "-o is for one sound", "llm-transcribe", "-f", WORDS, WORDS, "-o", "x.txt")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(x) for x in f.read().split()]


def test_built_in_models_of_other_tools():
    """The tools that only look into a model know the names, too; those that need a file say so."""
    def same(*command):
        named, _ = run(0, "", *command, "builtin:stories")
        file, _ = run(0, "", *command, MODEL)
        check(named and named == file.replace(MODEL, "builtin:stories"), f"{command}: the named model is the file", [named, file])

    same("llm-tokenize", "-p", "Once upon a time", "-m")
    same("llm-arch", "show")
    same("llm-arch", "init", "-")
    same("llm-arch", "graph", "llama")
    same("llm-arch", "verify", "-n", "2")
    same("llm-gguf", "show")
    same("llm-gguf", "check")
    run(0, "", "llm-quantize", "-q", "--allow-requantize", "builtin:stories", "named.gguf", "Q4_0")
    run(0, "", "llm-quantize", "-q", "--allow-requantize", MODEL, "file.gguf", "Q4_0")
    with open(os.path.join(TMP.name, "named.gguf"), "rb") as a, open(os.path.join(TMP.name, "file.gguf"), "rb") as b:
        check(a.read() == b.read(), "llm-quantize: builtin:stories is the file")
    run(1, "builtin:tales: the built-in models are builtin:stories, builtin:chat, builtin:words, builtin:shapes and builtin:shapes-eye", "llm-quantize", "--dry-run", "builtin:tales", "Q4_0")
    put("long.txt", TEXT * 4)
    run(0, "", "llm-quantize", "--allow-requantize", "--dry-run", "--bpw", "7", "--types", "q4_0,q8_0", "-c", "64", "--chunks", "1", "--passes", "1",
        "--calibration", "long.txt", "builtin:stories")
    out, _ = run(1, "", "llm-arch", "diff", "builtin:stories", "builtin:chat")
    check("general.name" in out, "diff of two built-in models", out)
    for command in [["llm-tokenize", "-p", "x", "-m"], ["llm-arch", "show"], ["llm-arch", "check", "llama"], ["llm-arch", "compile", "-o", "x.c"], ["llm-gguf", "show"]]:
        run(1, "builtin:tales: the built-in models are builtin:stories, builtin:chat, builtin:words, builtin:shapes and builtin:shapes-eye", *command, "builtin:tales")
        run(1, "builtin:shapes and builtin:shapes-eye; did you mean builtin:stories?", *command, "builtin:storys")
    run(1, "builtin:stories: a file is expected here, not a model that is built in", "llm-gguf", "split", "builtin:stories", "part")
    run(2, "FILE: builtin:stories is a built-in model, which cannot be written; a file is needed here, such as stories.gguf", "llm-gguf", "set", "builtin:stories", "a=str:b")
    run(1, "lama: there is no such file, and no built-in descriptor of that name ('llm-arch list' prints them); did you mean 'llama'?",
        "llm-arch", "show", "lama")
    out, _ = run(0, "", "llm-arch", "show", "llama")
    with open(os.path.join(os.path.dirname(MODEL), "../archs/llama.arch"), encoding="utf-8") as f:
        check(out == f.read(), "the text of a built-in descriptor", out[:200])
    run(2, "--arch is for a model, but llama is a built-in descriptor", "llm-arch", "show", "llama", "--arch", "x.arch")


def test_files_that_are_no_text():
    """Every text that a model is to read: a file with NUL is refused, with the first byte that is no text; other bytes that are no UTF-8 get a
    warning, but for a character that is cut at the end."""
    put("binary.txt", TEXT[:100] + b"\xff\0" + TEXT)
    put("latin-1.txt", TEXT + b"caf\xe9 au lait")
    put("cp1251.txt", "Жили-были старик со старухой у самого синего моря. ".encode("cp1251") * 6)
    put("sjis.txt", "むかしむかし、あるところに、おじいさんとおばあさんがいました。".encode("shift-jis") * 6)
    put("control.txt", bytes(range(1, 256)) * 20)
    put("begins.txt", b"GGUF is a format of files. " * 10)
    put("cut.txt", TEXT + "caf\u00e9".encode()[:-1])
    for command in [["llm-cli", "-m", MODEL, "-n", "1", "-f"],
                    ["llm-perplexity", "-m", MODEL, "-c", "64", "--chunks", "1", "-f"],
                    ["llm-imatrix", "-m", MODEL, "-c", "64", "--chunks", "1", "-o", "i.gguf", "-f"],
                    ["llm-quantize", MODEL, "out.gguf", "--allow-requantize", "--dry-run", "--bpw", "7", "-c", "64", "--chunks", "1", "--calibration"],
                    ["llm-arch", "verify", MODEL, "-n", "2", "-f"],
                    ["llm-arch", "doctor", MODEL, "-n", "16", "--text"]]:
        run(1, "binary.txt is not a text in UTF-8: byte 100 is 0xff", *command, "binary.txt")
        run(0, f"latin-1.txt is not a text in UTF-8: byte {len(TEXT) + 3} is 0xe9; the model reads it as other characters than are meant", *command,
            "latin-1.txt")
        run(0, "", *command, "begins.txt")
        for name in "cp1251.txt", "sjis.txt":
            run(0, f"warning: {name} is not a text in UTF-8: byte 0 is 0x", *command, name)
        run(1, "control.txt is not a text in UTF-8", *command, "control.txt")
        err = run(0, "", *command, "cut.txt")[1]
        check("UTF-8" not in err, "a warning of a cut character", err)
    run(1, "stories.gguf is a GGUF file, not a text", "llm-imatrix", "-m", MODEL, "-o", "i.gguf", "-f", MODEL)


def test_files_that_are_no_model():
    """Files beside models are called what they are, and which program reads them."""
    for kind, words in (("adapter", "an adapter (general.type), not a model; it is applied"), ("imatrix", "an importance matrix (general.type), not a model; llm-quantize --imatrix"),
                        ("training", "a saved training (general.type), not a model; llm-train --resume"),
                        ("probabilities", "the recorded probabilities of a model (general.type), not a model; llm-train --teacher")):
        put("other.gguf", gguf([("general.type", "string", kind)], []))
        run(1, f"other.gguf: this is {words}", "llm-cli", "-m", "other.gguf", "-p", "a")
    run(0, "", "llm-imatrix", "-m", MODEL, "-c", "32", "--chunks", "2", "-o", "i.gguf", "-f", put("text.txt", TEXT))
    run(1, "i.gguf: this is an importance matrix", "llm-perplexity", "-m", "i.gguf", "-f", "text.txt")
    run(0, "", "llm-perplexity", "-m", MODEL, "-c", "32", "--chunks", "2", "-f", "text.txt", "--kl-divergence-base", "l.kld")
    run(1, "(what llm-perplexity --kl-divergence-base has recorded), so it is not a GGUF file", "llm-cli", "-m", "l.kld", "-p", "a")
    run(0, "", "llm-cli", "-m", MODEL, "-p", "Once upon a time", "-n", "1", "--prompt-cache", "p.cache")
    run(1, "(what llm-cli or llm-server has saved of a conversation), so it is not a GGUF file", "llm-cli", "-m", "p.cache", "-p", "a")


def test_adapters_that_are_none():
    put_letters("whole")
    put("peft/adapter_config.json", b"{}")
    put("empty folder/x", b"")
    begin = ["llm-cli", "-m", MODEL, "-p", "a", "-n", "1", "--lora"]
    run(1, "whole is a whole model, not an adapter; this makes an adapter of how it differs from another one: llm-lora extract BASE 'whole'",
        *begin, "whole")
    run(1, "peft is an adapter of PEFT; this makes a GGUF file of it: llm-lora convert 'peft' --base MODEL_FOLDER -o 'peft.gguf'", *begin, "peft")
    run(1, "empty folder is a folder, not an adapter's file", *begin, "empty folder")


def test_adapter_beside_a_model():
    """A folder of both, as Granite Speech's, is opened as the model."""
    put_letters("both")
    put("both/adapter_config.json", b"{}")
    run(0, "", "llm-cli", "-m", "both", "-p", "a", "-n", "1")
    os.remove(os.path.join(TMP.name, "both", "model.safetensors"))
    run(1, "both is an adapter of PEFT", "llm-cli", "-m", "both", "-p", "a", "-n", "1")


def on_terminal(columns, *command):
    """What a terminal of that width gets on standard output."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
    p = subprocess.Popen([os.path.join(os.path.abspath(TOOLS), command[0]), *command[1:]], cwd=TMP.name, stdin=subprocess.DEVNULL, stdout=slave,
                         stderr=subprocess.DEVNULL)
    os.close(slave)
    text = b""
    try:
        while piece := os.read(master, 65536):
            text += piece
    except OSError:  # the end, on Linux
        pass
    os.close(master)
    check(p.wait() == 0, f"{command}: exit code {p.returncode}")
    return text.decode().replace("\r\n", "\n").splitlines()


def test_dry_runs_of_convert():
    """The report fits a terminal's width; without a terminal a row is a line."""
    put_letters("report")
    command = ["llm-convert", "report", "--dry-run"]
    out, _ = run(0, "", *command)
    row = "  model.layers.0.self_attn.o_proj.weight         F32  [32, 32]       77 blk.0.attn_output.weight"
    check(re.search(row.replace("[", r"\[").replace("77", r"\d+"), out), "a row is a line", out)
    lines = on_terminal(80, *command)
    check(max(map(len, lines)) <= 80, "80 columns", [x for x in lines if len(x) > 80])
    check(" ".join(" ".join(lines).split()) == " ".join(out.split()), "the same words", lines)
    check(on_terminal(100, *command)[:20] == out.splitlines()[:20], "100 columns are enough")


def test_pictures_with_another_ending():
    note = "--plot: p.png is an SVG file: a name that ends in .svg opens it everywhere"
    run(0, note, "llm-bench", "-p", "4", "-n", "0", "-r", "1", "--no-limits", "--plot", "p.png")
    _, err = run(0, "", "llm-bench", "-p", "4", "-n", "0", "-r", "1", "--no-limits", "--plot", "p.svg")
    check("SVG" not in err, "no note for .svg", err)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
sys.exit(finish())
