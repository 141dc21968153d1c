"""Hugging Face folders that the tools open directly, compared with the GGUF file that llm-convert makes of the same folder.

folder.py TOOLS MODEL    TOOLS: the folder of the programs; MODEL: tests/data/stories-qwen3.gguf, of which the folder is made here"""
import json, os, re, sys

from checks import TMP, check, finish, runner
from hf_folder import make_folder

TOOLS, MODEL = sys.argv[1:3]
run = runner(TOOLS)
FOLDER = TMP.name + "/stories"
FILE = TMP.name + "/stories.gguf"


# --- the tools ------------------------------------------------------------------------------------------------------------------

def both(tool, *args, **more):
    """Runs a tool with the folder and with the file: what it prints must be the same."""
    direct = run(tool, "-m", FOLDER + "/", *args, **more)
    converted = run(tool, "-m", FILE, *args, **more)
    check(direct == converted, f"{tool} {' '.join(args)}: the folder and its file differ", (direct, converted))
    return direct


def test_text():
    said = both("llm-cli", "-p", "Once upon a time", "-n", "24", "--temp", "0", "-t", "2")
    check(len(said) > 40, "llm-cli tells nothing", said)
    both("llm-tokenize", "-p", "Once upon a time, in 1984")
    path = TMP.name + "/text"
    with open(path, "w") as f:
        f.write("One day, a girl went to the park with her dog. They saw a big tree. " * 12)
    check("PPL" in both("llm-perplexity", "-f", path, "-c", "64", "-t", "2"), "llm-perplexity prints no PPL")


def test_caches():
    """A prompt that was saved serves the same folder again."""
    cache = TMP.name + "/prompt"
    say = ["llm-cli", "-m", FOLDER, "-p", "Once upon a time", "-n", "8", "--temp", "0", "-t", "2"]
    plain = run(*say)
    check(run(*say, "--prompt-cache", cache) == plain and os.path.exists(cache), "other text when the prompt is saved")
    before = os.stat(cache).st_mtime_ns
    check(run(*say, "--prompt-cache", cache, lacks="not used") == plain, "other text with the saved prompt")
    check(os.stat(cache).st_mtime_ns == before, "the saved prompt was written again")


def test_type():
    """Weights that are quantized while they are loaded are those of llm-quantize's file."""
    small = TMP.name + "/small.gguf"
    say = ["-p", "Once upon a time", "-n", "24", "--temp", "0", "-t", "2"]
    for name in ("q4_0", "Q4_K_M"):
        run("llm-quantize", "--no-search", FILE, small, name)
        want = run("llm-cli", "-m", small, *say)
        check(both("llm-cli", "--type", name, *say) == want, "--type " + name + " tells something else than the file")
        repack = TMP.name + "/repack"
        for _ in range(2):
            check(run("llm-cli", "-m", FOLDER, "--type", name, *say, "--repack-cache=" + repack) == want, "with --repack-cache")
    check(os.path.exists(repack), "--repack-cache writes nothing")
    before = os.stat(repack).st_mtime_ns
    run("llm-cli", "-m", FOLDER, "--type", name, *say, "--repack-cache=" + repack)
    check(os.stat(repack).st_mtime_ns == before, "the repacked weights were not used again")
    both("llm-perplexity", "--type", "q8_0", "-f", TMP.name + "/text", "-c", "64", "-t", "2")
    check("tg2" in run("llm-bench", "-m", FOLDER, "--type", "q8_0", "-p", "0", "-n", "2", "-r", "1", "-t", "2", "--no-limits"), "llm-bench")
    run("llm-cli", "-m", small, "--type", "q8_0", *say, code=1, has="the file is quantized already")
    run("llm-cli", "--type", "q8_0", *say, code=2, has="the built-in models are quantized already")
    run("llm-cli", "-m", FOLDER, "--type", "q4_k_n", *say, code=2, has="did you mean 'Q4_K_M'?")


def divergence(model):
    """By how much a model's predictions of the text differ from those of the file."""
    base = TMP.name + "/base"
    if not os.path.exists(base):
        run("llm-perplexity", "-m", FILE, "-f", TMP.name + "/text", "-c", "64", "-t", "2", "--kl-divergence-base", base)
    said = run("llm-perplexity", "-m", model, "--kl-divergence-base", base, "--kl-divergence", "-t", "2", "-o", "json")
    return json.loads(said)["kld"]["mean"] if said else 0


def test_chain():
    """From the folder to a small model: importance, quantization with it, loss, text."""
    importance, small, plain = (TMP.name + name for name in ("/importance.gguf", "/weighed.gguf", "/plain.gguf"))
    run("llm-imatrix", "-m", FOLDER, "-f", TMP.name + "/text", "-c", "64", "-t", "2", "-o", importance)
    copy = TMP.name + "/importance-2.gguf"
    run("llm-imatrix", "-m", FILE, "-f", TMP.name + "/text", "-c", "64", "-t", "2", "-o", copy)
    check(open(importance, "rb").read() == open(copy, "rb").read(), "the importance of the folder and its file differ")
    run("llm-quantize", "--imatrix", importance, FILE, small, "Q4_0")
    run("llm-quantize", FILE, plain, "Q4_0")
    weighed, without = divergence(small), divergence(plain)
    check(0 < weighed < 0.5 * without, "an importance matrix of the text itself does not help", (weighed, without))
    said = run("llm-cli", "-m", small, "-p", "Once upon a time", "-n", "24", "--temp", "0", "-t", "2")
    check(len(said) > 40, "the quantized model tells nothing", said)
    run("llm-gguf", "check", small)


def test_others():
    shown = run("llm-arch", "show", FOLDER, lacks="note:")
    check("blk.{l}.attn_q.weight" in shown and "qwen3.block_count" in shown, "llm-arch show", shown)
    # one element of a row is a hundred times as large as the others, and bf16 rounds what it is made of
    run("llm-arch", "verify", FOLDER)
    check("tg2" in run("llm-bench", "-m", FOLDER, "-p", "8", "-n", "2", "-r", "1", "-t", "2", "--no-limits"), "llm-bench")


def test_gguf():
    check(json.loads(run("llm-gguf", "show", "--json", FOLDER))["tensors"] ==
          [dict(t, offset=x["offset"], part=x["part"]) for t, x in zip(json.loads(run("llm-gguf", "show", "--json", FILE))["tensors"],
                                                                   json.loads(run("llm-gguf", "show", "--json", FOLDER))["tensors"])], "llm-gguf show")
    check("nothing is wrong" in run("llm-gguf", "check", FOLDER), "llm-gguf check")
    run("llm-gguf", "diff", FOLDER, FILE)
    hashes = [run("llm-gguf", "hash", path).replace(path, "") for path in (FOLDER, FILE)]
    check(hashes[0] == hashes[1], "llm-gguf hash", hashes)
    check(run("llm-gguf", "get", FOLDER, "general.architecture") == "qwen3", "llm-gguf get")
    for words in (["set", FOLDER, "a=str:b"], ["split", FOLDER, "x"], ["merge", FOLDER, "x"]):
        run("llm-gguf", *words, code=1, has="llm-convert '" + FOLDER)
    run("llm-lora", "extract", FOLDER, FILE, "-o", TMP.name + "/l.gguf", code=1, has="no matrix of")


def test_cache():
    """The Hugging Face cache: the model has the repository's name, and its folder is named."""
    repo = TMP.name + "/models--Org--Small-1B"
    snapshot = repo + "/snapshots/0123456789abcdef0123456789abcdef01234567"
    os.makedirs(repo + "/refs")
    os.makedirs(os.path.dirname(snapshot))
    os.symlink(FOLDER, snapshot)
    with open(repo + "/refs/main", "w") as f:
        f.write(os.path.basename(snapshot))
    for args in (["llm-cli", "-p", "x", "-m"], ["llm-gguf", "show"], ["llm-arch", "show"], ["llm-convert", "-o", "x.gguf"]):
        run(*args, repo, code=1, has=f"is a folder of the Hugging Face cache; the model is in it: {'-m ' if 'x' == args[-2] else ''}'{snapshot}'")
    check(run("llm-gguf", "get", snapshot + "/", "general.name") == "Small-1B", "the name of a cached model")
    real = TMP.name + "/models--Org--Little-2B/snapshots/0123456789abcdef"
    os.makedirs(real)
    for name in os.listdir(FOLDER):
        os.symlink(FOLDER + "/" + name, real + "/" + name)
    run("llm-gguf", "set", real, "a=str:b", code=1, has=f"llm-convert '{real}' -o 'Little-2B.gguf'")
    os.mkdir(real + "/in")
    for folder, name in ((FOLDER, "stories"), (real, "Little-2B"), (real + "/in", "Little-2B")):
        os.chdir(folder)
        is_in = folder.endswith("/in")
        check(run("llm-gguf", "get", ".." if is_in else "./", "general.name") == name, f"the name of the model in this folder, {folder}")
    os.chdir(TMP.name)
    bare = TMP.name + "/bare"
    os.mkdir(bare)
    for name in os.listdir(FOLDER):
        if "token" not in name:
            os.symlink(FOLDER + "/" + name, bare + "/" + name)
    run("llm-cli", "-m", bare, "-p", "x", code=1, has="no tokenizer: there is no tokenizer.json, no file of SentencePiece")


def test_errors():
    mark = FOLDER + "/config.json.unfinished"
    open(mark, "w").close()
    for args in (["llm-cli", "-p", "x", "-m"], ["llm-gguf", "hash"], ["llm-convert", "-o", TMP.name + "/x.gguf"]):
        run(*args, FOLDER, code=1, has=f"{FOLDER}: the folder is not complete, because its download was interrupted")
    run("llm-tokenize", "-m", FOLDER, "-p", "Once")  # its files come first
    os.unlink(mark)
    part = FOLDER + "/model-00001-of-00002.safetensors"
    run("llm-cli", "-m", part, "-p", "x", code=1, has=f"is part of a Hugging Face folder; -m '{FOLDER}' opens it")
    for name in ("config.json", "tokenizer.json"):
        for args in (["llm-cli", "-p", "x", "-m"], ["llm-gguf", "show"], ["llm-arch", "show"]):
            run(*args, FOLDER + "/" + name, code=1, has=f"is part of a Hugging Face folder;")
    run("llm-quantize", FOLDER, TMP.name + "/q.gguf", "Q4_0", code=1, has="llm-convert '" + FOLDER)
    whole = open(part, "rb").read()
    with open(part, "wb") as f:
        f.write(whole[:-1])
    for args in (["llm-cli", "-m", FOLDER, "-p", "x"], ["llm-perplexity", "-m", FOLDER, "-f", MODEL]):
        run(*args, code=1, has="it may be truncated: download it again")
    os.unlink(part)
    run("llm-cli", "-m", FOLDER, "-p", "x", code=1, has="model-00001-of-00002.safetensors is missing")
    run("llm-tokenize", "-m", FOLDER, "-p", "Once")  # needs no weights


make_folder(MODEL, FOLDER)
run("llm-convert", FOLDER, "-o", FILE)
for test in (test_text, test_caches, test_type, test_chain, test_others, test_gguf, test_cache, test_errors):
    test()
sys.exit(finish())
