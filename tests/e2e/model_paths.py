"""Paths that are no model, or not the one that was meant: every message says what to type, and no input is overwritten.

model_paths.py TOOLS MODEL    TOOLS: the folder of the programs; MODEL: models/builtin/stories.gguf"""
import json, os, shlex, shutil, struct, sys

from checks import TMP, check, finish, put, runner, write_safetensors

TOOLS, MODEL = sys.argv[1:3]
run_tool = runner(TOOLS, cwd=TMP.name, both=True)
DIM, HIDDEN, LAYERS, HEADS, VOCAB, SEQ = 32, 64, 1, 2, 300, 32


def run(code, words, *command):
    """Runs a tool in TMP; `words` must be on standard error, which is returned, if the exit code is not 0; else standard output."""
    out, err = run_tool(*command, code=code, has=words)
    return err if code else out



def read(name):
    with open(os.path.join(TMP.name, name), "rb") as f:
        return f.read()


# --- what people have -----------------------------------------------------------------------------------------------------------

def floats(n, seed):
    return struct.pack(f"<{n}f", *[((seed * 7919 + i * 104729) % 1000 - 500) / 2000 for i in range(n)])


def put_checkpoint(name):
    """llama2.c's version 0, with the classifier that is the embedding."""
    n = VOCAB * DIM + LAYERS * (2 * DIM + 4 * DIM * DIM + 3 * DIM * HIDDEN) + DIM + SEQ * (DIM // HEADS)
    put(name, struct.pack("<7i", DIM, HIDDEN, LAYERS, HEADS, HEADS, VOCAB, SEQ) + floats(n, 3))


def put_tokenizer(name):
    """llama2.c's: the longest piece, then a score, a length and the bytes of each."""
    pieces = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *[b"<0x%02X>" % i for i in range(256)], b" ", *[bytes([97 + i]) for i in range(26)]]
    pieces += [b"piece%d" % i for i in range(VOCAB - len(pieces))]
    put(name, struct.pack("<i", 16) + b"".join(struct.pack("<fi", -i, len(p)) + p for i, p in enumerate(pieces)))


def put_folder(name, **config):
    """A Llama of one layer without a tokenizer, in Hugging Face's form."""
    layer = "model.layers.0."
    shapes = {"model.embed_tokens.weight": [VOCAB, DIM], "model.norm.weight": [DIM], "lm_head.weight": [VOCAB, DIM],
              layer + "input_layernorm.weight": [DIM], layer + "post_attention_layernorm.weight": [DIM],
              layer + "mlp.gate_proj.weight": [HIDDEN, DIM], layer + "mlp.up_proj.weight": [HIDDEN, DIM],
              layer + "mlp.down_proj.weight": [DIM, HIDDEN]}
    shapes.update({f"{layer}self_attn.{x}_proj.weight": [DIM, DIM] for x in "qkvo"})
    put(name + "/config.json", json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": DIM, "intermediate_size": HIDDEN,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "vocab_size": VOCAB, "max_position_embeddings": SEQ, "hidden_act": "silu", **config}).encode())
    write_safetensors(os.path.join(TMP.name, name, "model.safetensors"), {
        key: ("F32", shape, floats(shape[0] * (shape[1] if len(shape) > 1 else 1), i)) for i, (key, shape) in enumerate(shapes.items())})


# --- the tests ------------------------------------------------------------------------------------------------------------------

def test_outputs_that_are_inputs():
    """A converted file never replaces what it is made of, also by another name of the same file."""
    for name in ["tok300.bin", "tokenizer.bin"]:
        put_checkpoint("l2/stories.bin")
        put_tokenizer("l2/" + name)
        before = read("l2/" + name)
        run(2, "is also the file of FOLDER", "llm-convert", "l2/stories.bin", "-o", "l2/" + name)
        os.symlink(name, os.path.join(TMP.name, "l2/link"))
        run(2, "is also the file of FOLDER", "llm-convert", "l2/stories.bin", "-o", "l2/link")
        os.unlink(os.path.join(TMP.name, "l2/link"))
        check(read("l2/" + name) == before, f"{name} is as it was")
        run(0, "", "llm-convert", "l2/stories.bin", "-o", "l2/out.gguf")
        shutil.rmtree(os.path.join(TMP.name, "l2"))
    put_folder("own")
    for name in ["config.json", "model.safetensors"]:
        before = read("own/" + name)
        run(2, "is also the file of FOLDER", "llm-convert", "own", "-o", "own/" + name)
        check(read("own/" + name) == before, f"{name} is as it was")


def test_folders():
    for name in ["b.gguf", "a.gguf", "c.gguf"]:
        put("some/" + name, read("model.gguf"))
    run(1, "some is a folder, not a file; did you mean -m 'some/a.gguf' (the first of 3)?\n", "llm-cli", "-m", "some", "-p", "x")
    os.mkdir(os.path.join(TMP.name, "parts"))
    run(0, "", "llm-gguf", "split", "model.gguf", "parts/m", "--max-size", "100K")
    parts = sorted(os.listdir(os.path.join(TMP.name, "parts")))
    n = len(parts)
    run(1, f"did you mean -m 'parts/{parts[0]}'?\n", "llm-cli", "-m", "parts", "-p", "x")
    run(0, "", "llm-cli", "-m", "parts/" + parts[0], "-p", "x", "-n", "1")
    os.unlink(os.path.join(TMP.name, "parts", parts[2]))
    run(1, f"parts/{parts[2]}: cannot be opened: No such file or directory; it is part 3 of the {n} of this model",
        "llm-cli", "-m", "parts/" + parts[0], "-p", "x")
    run(1, f"parts/{parts[2]} is missing: the model has {n} parts, of which {n - 1} are", "llm-cli", "-m", "parts/" + parts[2], "-p", "x")
    run(1, f"parts is a folder with only a part of a split model; {parts[2]}, part 3 of {n}, is missing\n", "llm-cli", "-m", "parts", "-p", "x")
    os.unlink(os.path.join(TMP.name, "parts", parts[0]))
    run(1, f"parts is a folder with only a part of a split model; {parts[0]}, part 1 of {n}, is missing\n", "llm-cli", "-m", "parts", "-p", "x")
    put("parts/zoo.gguf", read("model.gguf"))
    run(1, "did you mean -m 'parts/zoo.gguf'?\n", "llm-cli", "-m", "parts", "-p", "x")
    for name in ["a-imatrix.gguf", "MMPROJ-model.gguf"]:
        put("aside/" + name, read("model.gguf"))
    run(1, "aside is a folder without a model; its MMPROJ-model.gguf is a projector or an importance matrix by its name\n", "llm-cli", "-m", "aside", "-p", "x")
    put("aside/z.gguf", read("model.gguf"))
    run(1, "did you mean -m 'aside/z.gguf'?\n", "llm-cli", "-m", "aside", "-p", "x")


def test_names_of_a_folder():
    """Each file that is read from a folder, and that -hf downloads, is known as a part of one."""
    put_folder("of")
    for name in ["added_tokens.json", "chat_template.jinja", "config.json", "generation_config.json", "merges.txt", "model.safetensors.index.json",
                 "sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "model.safetensors"]:
        if not os.path.exists(os.path.join(TMP.name, "of", name)):
            put("of/" + name, b"{}")
        run(1, f"of/{name} is part of a Hugging Face folder; -m 'of' opens it\n", "llm-cli", "-m", "of/" + name, "-p", "x")


def test_near_names():
    put_checkpoint("near/stories.bin")
    where = "No such file or directory"
    run(1, f"near/storys.bin: {where}; did you mean -m 'near/stories.bin'?", "llm-cli", "-m", "near/storys.bin", "-p", "x")
    run(1, f"near/stories: {where}; did you mean -m 'near/stories.bin'?", "llm-cli", "-m", "near/stories", "-p", "x")
    run(1, f"llm-gguf show: Model.guf: {where}; did you mean 'model.gguf'?", "llm-gguf", "show", "Model.guf")
    run(1, f"IN: modle.gguf: {where}; did you mean 'model.gguf'?", "llm-quantize", "modle.gguf", "o.gguf", "Q8_0")
    run(1, f"-f: modle.gguf: {where}; did you mean -f 'model.gguf'?", "llm-perplexity", "-m", "model.gguf", "-f", "modle.gguf")
    run(1, f"nowhere/a.gguf: {where}; there is no folder nowhere\n", "llm-cli", "-m", "nowhere/a.gguf", "-p", "x")
    # a folder that is there is meant, not a user of the hub
    err = run(1, f"near/other: {where}\n", "llm-cli", "-m", "near/other", "-p", "x")
    check("-hf" not in err, "a local folder is no user of the hub", err)
    run(1, "did you mean -hf 'user/other', which downloads it?", "llm-cli", "-m", "user/other", "-p", "x")


def test_names_with_line_feeds():
    """A name cannot make a line that looks like a tool's own."""
    name, shown = "a\nllm-cli: all is well\x1b[2J", "a\\x0allm-cli: all is well\\x1b[2J"
    for command in [["llm-cli", "-p", "x", "-m", name], ["llm-cli", "-f", name], ["llm-gguf", name], ["llm-quantize", name, "o.gguf", "Q8_0"],
                    ["llm-cli", "-m", "model.gguf", "-p", "x", "-o", name + "/x"], ["llm-convert", name, "-o", "o.gguf"]]:
        r = run(2 if command == ["llm-gguf", name] else 1, shown, *command)
        check(not any(line.startswith("llm-cli: all is well") for line in r.splitlines()), f"{command} prints the line", r)
    put("lines/" + name + ".gguf", read("model.gguf"))
    err = run(1, "did you mean -m $'lines/a\\012llm-cli: all is well\\033[2J.gguf'?\n", "llm-cli", "-m", "lines", "-p", "x")
    check(len(err.splitlines()) == 1, "one line", err)


def test_commands_to_copy():
    """The command of a message works as it stands: names with blanks and quotes are quoted for a shell."""
    put_checkpoint("it's mine/stories.bin")
    put_folder("it's mine/a folder")
    for path in ["it's mine/stories.bin", "it's mine/a folder"]:
        err = run(1, "this makes a GGUF file of it: llm-convert 'it'\\''s mine/", "llm-quantize", path, "o.gguf", "Q8_0")
        command = shlex.split(err.split("of it: ")[1].split(";")[0])
        run(0, "", *command)
        run(0, "", "llm-quantize", command[-1], "o.gguf", "Q8_0")
        run(1, f"{path} is a", "llm-gguf", "set", path, "general.name=x")
    run(2, "only one folder can be converted at a time; did you mean -o 'it'\\''s.gguf'?", "llm-convert", "it's mine", "it's.gguf")
    for flag, name in [("-mu", "https://example.org/x?a=b&c=d"), ("-hf", "user/other:Q8_0;id")]:
        run(1, f"did you mean {flag} '{name}', which downloads it?", "llm-cli", "-m", name, "-p", "x")
    run(2, "as in: llm-convert 'it'\\''s mine' -o model.gguf", "llm-convert", "it's mine")
    run(2, "unexpected argument 'it's mine'; did you mean -m 'it'\\''s mine'?", "llm-cli", "it's mine")
    run(1, "--type q4_k_m", "llm-quantize", "it's mine/a folder", "o.gguf", "Q8_0")
    run(1, "-m 'it'\\''s mine/a folder' opens it", "llm-cli", "-m", "it's mine/a folder/config.json", "-p", "x")


def test_other_forms():
    """What people have and where they got it from, given in the wrong way."""
    put_folder("both")
    os.rename(os.path.join(TMP.name, "both/model.safetensors"), os.path.join(TMP.name, "both/b.gguf"))
    run(1, "both is a folder, not a file; did you mean -m 'both/b.gguf'?", "llm-cli", "-m", "both", "-p", "x")
    put_checkpoint("ck/model.bin")
    run(2, "did you mean -m 'ck/model.bin'?", "llm-cli", "ck/model.bin")
    page = "https://huggingface.co/Qwen/Qwen3-0.6B"
    run(1, f"did you mean -hf '{page}', which downloads it?", "llm-cli", "-m", page, "-p", "x")
    page += "/resolve/main/a.gguf"
    run(1, f"did you mean -mu '{page}', which downloads it?", "llm-cli", "-m", page, "-p", "x")


def test_flags_of_llm_convert():
    """A message about a folder that names a flag which only llm-convert has comes with the command that takes it."""
    words = "such flags are llm-convert's, and follow this command: "
    put_folder("odd", clip_odd=8.0)
    for command in [["llm-cli", "-m", "odd", "--tokens", "1"], ["llm-perplexity", "-m", "odd", "-f", "model.gguf"], ["llm-gguf", "odd"],
                    ["llm-bench", "-m", "odd", "-p", "1"]]:
        err = run(1, f"--ignore-config 'clip_odd'; {words}llm-convert 'odd' -o 'odd.gguf'", *command)
    run(0, "", *shlex.split(err.split(words)[1].split("\n")[0]), "--ignore-config", "clip_odd")
    run(0, "", "llm-cli", "-m", "odd.gguf", "--tokens", "1", "-n", "1")
    put_folder("nameless", architectures=[])
    err = run(1, f"--arch-class NAME; {words}llm-convert 'nameless' -o 'nameless.gguf'", "llm-cli", "-m", "nameless", "--tokens", "1")
    run(0, "", *shlex.split(err.split(words)[1].split("\n")[0]), "--arch-class", "LlamaForCausalLM")
    err = run(1, "--ignore-config", "llm-convert", "odd", "-o", "x.gguf")
    check(words not in err, "llm-convert has its flags", err)
    put_folder("hostile", **{"x --ignore-config a`touch${IFS}pwned`": 1})
    err = run(1, words, "llm-cli", "-m", "hostile", "--tokens", "1")
    check(err.rstrip().endswith("llm-convert 'hostile' -o 'hostile.gguf'"), "the command has words of the folder", err)
    put_checkpoint("bare/stories.bin")
    put_tokenizer("tok.bin")
    err = run(1, f"{words}llm-convert 'bare/stories.bin' -o 'stories.gguf'", "llm-cli", "-m", "bare/stories.bin", "-p", "a")
    check("--tokenizer FILE names one" in err, "the flag of a tokenizer", err)
    run(0, "", *shlex.split(err.split(words)[1].split("\n")[0]), "--tokenizer", "tok.bin")
    run(0, "", "llm-cli", "-m", "stories.gguf", "-p", "a", "-n", "1")
    run(2, "llm-convert MODEL.bin --tokenizer FILE", "llm-cli", "-m", "bare/stories.bin", "-z", "tok.bin", "-p", "a")


def test_order_of_quantize():
    put_folder("small")
    run(0, "", "llm-convert", "small", "-o", "small.gguf")
    for command in [["small.gguf", "Q4_K_M", "o.gguf"], ["Q4_K_M", "small.gguf", "o.gguf"], ["small.gguf", "15", "o.gguf"]]:
        run(2, "TYPE comes last: llm-quantize 'small.gguf' 'o.gguf' Q4_K_M", "llm-quantize", *command)
    err = run(2, "OUT is missing, as in: llm-quantize 'small.gguf' 'small-q8_0.gguf' q8_0", "llm-quantize", "small.gguf", "q8_0")
    run(0, "", *shlex.split(err.split("as in: ")[1].split("\n")[0]))
    run(2, "TYPE: '5' is not a type", "llm-quantize", "small.gguf", "o.gguf", "5")
    for number, name in [(0, "F32"), (1, "F16"), (2, "Q4_0"), (7, "Q8_0"), (8, "Q5_0"), (15, "Q4_K_M"), (18, "Q6_K"), (32, "BF16")]:
        run(0, f"note: TYPE {number} is {name}\n", "llm-quantize", "small.gguf", "number.gguf", str(number))
        run(0, "", "llm-quantize", "small.gguf", "name.gguf", name)
        check(read("number.gguf") == read("name.gguf"), f"{number} is {name}")


with open(MODEL, "rb") as f:
    put("model.gguf", f.read())
for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
sys.exit(finish())
