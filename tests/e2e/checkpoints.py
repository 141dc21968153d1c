"""llama2.c's checkpoints, converted and opened directly. Made here: a small Llama of random weights as a Hugging Face folder, and the same
weights as checkpoints of versions 0, 1 and 2.

checkpoints.py TOOLS [SHARED]    TOOLS: the folder of the programs; SHARED: a folder with models/stories260K.bin, if there is one"""
import array, os, struct, sys

from checkpoint_model import (DIM, GROUP, HEADS, HIDDEN, KV_HEADS, LAYERS, PIECES, SEQ, VOCAB, dequantized, make_weights, quantize,
                              tokenizer_bin, version_0, version_1, version_2)
from checks import check, finish, path, put, runner, write_json, write_safetensors

run = runner(sys.argv[1])
SHARED = sys.argv[2] if len(sys.argv) > 2 else ""
HF = {"attention_norm": "input_layernorm", "attention.wq": "self_attn.q_proj", "attention.wk": "self_attn.k_proj",
      "attention.wv": "self_attn.v_proj", "attention.wo": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
      "feed_forward.w1": "mlp.gate_proj", "feed_forward.w2": "mlp.down_proj", "feed_forward.w3": "mlp.up_proj"}


# --- the other files ------------------------------------------------------------------------------------------------------------

def halves(x, heads):
    """Rows of adjacent pairs as two halves of a head, as Hugging Face has them."""
    rows = len(x) // DIM
    d = rows // heads
    order = [h * d + 2 * i + k for h in range(heads) for k in (0, 1) for i in range(d // 2)]
    out = array.array("f")
    for r in order:
        out.extend(x[r * DIM:(r + 1) * DIM])
    return out


def make_folder(w, name, shared):
    tensors = {"model.embed_tokens.weight": w["tok_embeddings"], "model.norm.weight": w["norm"]}
    if not shared:
        tensors["lm_head.weight"] = w["output"]
    for k in range(LAYERS):
        for old, new in HF.items():
            shape, x = w[f"layers.{k}.{old}"]
            heads = {"attention.wq": HEADS, "attention.wk": KV_HEADS}.get(old)
            tensors[f"model.layers.{k}.{new}.weight"] = (shape, halves(x, heads) if heads else x)
    os.mkdir(path(name))
    write_safetensors(path(name + "/model.safetensors"), {key: ("F32", shape, x.tobytes()) for key, (shape, x) in tensors.items()})
    config = {"architectures": ["LlamaForCausalLM"], "vocab_size": VOCAB, "hidden_size": DIM, "num_hidden_layers": LAYERS,
              "intermediate_size": HIDDEN, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "max_position_embeddings": SEQ, "hidden_act": "silu", "tie_word_embeddings": shared}
    write_json(path(name + "/config.json"), config)


# --- the tests ------------------------------------------------------------------------------------------------------------------

def digests(file):
    """The digest of each tensor, by its name."""
    words = [line.split() for line in run("llm-gguf", "hash", file).splitlines()]
    return {w[2].split(".gguf:")[1]: w[1] for w in words if ".gguf:" in w[2]}


def same_tensors(a, b, what):
    check(digests(a) == digests(b) and len(digests(a)) >= 20, what + ": other tensors", (digests(a), digests(b)))


def values(file, key):
    return run("llm-gguf", "get", file, key).strip()


def test_versions(w):
    """Each version gives the tensors of the folder, and runs directly as the file does."""
    put("tokenizer.bin", tokenizer_bin())
    files = {"v0_shared.bin": (version_0(w, True), w, True), "v0.bin": (version_0(w, False), w, False),
             "v1_shared.bin": (version_1(w, True), w, True), "v1.bin": (version_1(w, False), w, False),
             "v2_shared.bin": (version_2(w, True), dequantized(w), True), "v2.bin": (version_2(w, False, 64), dequantized(w, 64), False)}
    for name, (data, weights, shared) in files.items():
        folder, want, got = name + "-folder", path("want.gguf"), path("got.gguf")
        make_folder(weights, folder, shared)
        run("llm-convert", path(folder), "-o", want, "--type", "f32", "--no-tokenizer")
        run("llm-convert", put(name, data), "-o", got, "--type", "f32", has="Llama2cCheckpoint: architecture llama")
        same_tensors(want, got, name)
        for key in ("block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
                    "attention.head_count_kv", "rope.dimension_count", "rope.freq_base", "vocab_size"):
            check(values(want, "llama." + key) == values(got, "llama." + key), f"{name}: another {key}")
        check(values(got, "general.name") == name[:-4], name + ": another name")
        run("llm-convert", path(name), "-o", got, has="8-bit codes: q8_0, the nearest type" if "v2" in name else "")
        if "v2" in name:
            check_codes(w, got, 32 if shared else 64, name)
        say = ["-p", "a a", "-n", "12", "--temp", "0", "-t", "2", "--ignore-eos"]
        check(run("llm-cli", "-m", path(name), *say) == run("llm-cli", "-m", got, *say), name + ": another text than the file's")


def check_codes(w, file, group, name):
    """The codes of version 2 are those of the file's q8_0 blocks, as they are, with rounded factors."""
    data = open(file, "rb").read()
    for tensor in ("tok_embeddings", "layers.1.attention.wk", "layers.0.feed_forward.w2"):
        codes, scales = quantize(w[tensor][1], group)
        blocks = [struct.pack("<e", scales[k // group]) + codes[k:k + 32].tobytes() for k in range(0, len(codes), 32)]
        check(b"".join(blocks) in data, f"{name}: other codes of {tensor}")


def test_range(w):
    """Factors of version 2 that f16 does not hold, too large in one group or too small in all: these matrices become f32, without loss."""
    large, small = "layers.0.feed_forward.w1", "layers.1.feed_forward.w2"
    w = {name: (shape, array.array("f", x)) for name, (shape, x) in w.items()}
    for i in range(GROUP):
        w[large][1][i] *= 1e9
    for i in range(len(w[small][1])):
        w[small][1][i] *= 1e-9
    make_folder(dequantized(w), "range-folder", True)
    run("llm-convert", path("range-folder"), "-o", path("want.gguf"), "--type", "f32", "--no-tokenizer")
    for has in ("2 tensors of 8-bit codes: f32, without loss", f"{7 * LAYERS - 1} tensors of 8-bit codes: q8_0, the nearest type"):
        run("llm-convert", put("range.bin", version_2(w, True)), "-o", path("got.gguf"), "--no-tokenizer", has=has)
    got, want = digests(path("got.gguf")), digests(path("want.gguf"))
    for name in ("blk.0.ffn_gate.weight", "blk.1.ffn_down.weight"):
        check(got[name] == want[name], f"other numbers of {name}")
    check(got["blk.1.ffn_gate.weight"] != want["blk.1.ffn_gate.weight"], "a matrix that should be q8_0 is f32")


def test_pickles():
    """PyTorch's files are refused by name, whether they are a zip file or the older form, in a folder or alone."""
    entry = b"archive/data.pkl"
    zipped = b"PK\3\4" + bytes(22) + struct.pack("<HH", len(entry), 0) + entry + b"\x80\2}q\0."
    bare = b"\x80\2\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\2M\xe9\3."
    for data, name in ((zipped, "model.pth"), (bare, "old.ckpt"), (b"\x80\4\x95" + bytes(20), "pytorch_model.bin")):
        file = put(name, data)
        for tool in (["llm-convert", file, "-o", path("got.gguf")], ["llm-tokenize", "-m", file, "-p", "a"], ["llm-cli", "-m", file, "-p", "a"]):
            run(*tool, code=1, has=name + " is a PyTorch pickle: a pickle can run programs when it is read")
    os.mkdir(path("torch"))
    write_json(path("torch/config.json"), {
        "architectures": ["LlamaForCausalLM"], "vocab_size": VOCAB, "hidden_size": DIM, "num_hidden_layers": LAYERS,
        "intermediate_size": HIDDEN, "num_attention_heads": HEADS, "rms_norm_eps": 1e-5, "max_position_embeddings": SEQ})
    for name in ("pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin", "pytorch_model.bin.index.json"):
        put("torch/" + name, zipped)
    part = 'torch.load("pytorch_model-00001-of-00002.bin", weights_only=True), "model-00001-of-00002.safetensors")'
    run("llm-convert", path("torch"), "-o", path("got.gguf"), code=1, has=part)
    run("llm-convert", path("torch/pytorch_model-00002-of-00002.bin"), "-o", path("got.gguf"), code=1, has='"model-00002-of-00002.safetensors"')
    for name in sorted(os.listdir(path("torch")))[1:]:
        os.remove(path("torch/" + name))
    for name in ("pytorch_model.bin", "consolidated.00.pth", "a.ckpt"):
        put("torch/" + name, zipped)
        run("llm-convert", path("torch"), "-o", path("got.gguf"), code=1, has=f"no model.safetensors.index.json, but {name}: a pickle can run")


def test_tokenizer():
    """Spaces and special tokens of tokenizer.bin; where it is looked for."""
    got = path("got.gguf")
    run("llm-convert", path("v1.bin"), "-o", got)
    check("\n<s>\n" in run("llm-gguf", "get", got, "tokenizer.ggml.tokens"), "<s> is not a token")
    check(values(got, "tokenizer.ggml.bos_token_id") == "1" and values(got, "tokenizer.ggml.eos_token_id") == "2", "other special tokens")
    # the text is "_a_a" and bytes for the others: 261 is "_a", 13 the byte 10, 125 the byte 122
    said = run("llm-tokenize", "-m", path("v1.bin"), "-p", "a a\nz")
    check(all(word in said for word in ("261", "13", "125")), "other ids", said)
    os.rename(path("tokenizer.bin"), path(f"tok{VOCAB}.bin"))
    check(run("llm-tokenize", "-m", path("v1.bin"), "-p", "a a\nz") == said, f"tok{VOCAB}.bin is not found")
    os.rename(path(f"tok{VOCAB}.bin"), path("mine.bin"))
    run("llm-convert", path("v1.bin"), "-o", got, has=f"there is no tok{VOCAB}.bin and no tokenizer.bin next to the checkpoint")
    run("llm-convert", path("v1.bin"), "-o", got, "--tokenizer", path("mine.bin"))
    check(run("llm-tokenize", "-m", got, "-p", "a a\nz") == said, "--tokenizer gives other tokens")
    put("tokenizer.bin", tokenizer_bin(PIECES[:-1]))
    run("llm-convert", path("v1.bin"), "-o", got, has="it has 261 tokens, but the checkpoint has rows for 262")
    run("llm-convert", path("v1.bin"), "-o", got, "--tokenizer", path("tokenizer.bin"), code=1, has="belongs to another model")
    run("llm-convert", path("v1.bin-folder"), "-o", got, "--tokenizer", path("mine.bin"), code=1, has="only a llama2.c checkpoint")
    for data, words in ((tokenizer_bin()[:-1], "piece 261, at byte"), (tokenizer_bin()[:3], "too few for a tokenizer"),
                        (struct.pack("<I", 2) + tokenizer_bin()[4:], "piece 0, at byte 4, has 5 bytes"),
                        (tokenizer_bin()[:35], "the file ends within piece 2"),
                        (struct.pack("<IfI", 1, float("nan"), 1) + b"a", "a score that is no number")):
        put("tokenizer.bin", data)
        run("llm-convert", path("v1.bin"), "-o", got, code=1, has=words)
    os.remove(path("tokenizer.bin"))


def test_faults(w):
    """Damaged checkpoints: one line that says what is wrong."""
    v0, v2 = version_0(w, True), version_2(w, True)

    def patched(data, at, value):
        return data[:at] + struct.pack("<i", value) + data[at + 4:]

    for data, words in ((v0[:-4], "it may be truncated"), (v0 + b"1234", "something follows its end"),
                        (v2[:100], "too few for its header of 256"), (patched(v2, 4, 3), "a llama2.c checkpoint of version 3"),
                        (patched(v2, 8, -1), "the header's dim is -1"), (patched(v2, 8 + 12, 5), "not 5 heads"),
                        (patched(v2, 8 + 16, 3), "not a multiple of n_kv_heads, 3"), (patched(v2, 37, 0), "size of a group is 0"),
                        (patched(v2, 37, 7), "not a multiple of the header's size of a group, 7"), (patched(v2, 36, 9), "shared classifier"),
                        (patched(v2, 8 + 20, 2 ** 31 - 1), "the header's vocab_size is 2147483647")):
        bad = put("bad.bin", data)
        run("llm-convert", bad, "-o", path("got.gguf"), code=1, has=words)
        run("llm-tokenize", "-m", bad, "-p", "a", code=1, has="bad.bin")
    nan = array.array("f", w["norm"][1])
    nan[3] = float("nan")
    bad = put("bad.bin", version_1({**w, "norm": ([DIM], nan)}, True))
    run("llm-convert", bad, "-o", path("got.gguf"), code=1, has="1 of its 64 weights is NaN or infinite; it comes from norm.weight")


def test_stories():
    """The checkpoint that others have converted: the same keys and tensors."""
    models = os.path.join(SHARED, "models")
    if not os.path.exists(os.path.join(models, "stories260K.bin")):
        return
    run("llm-convert", os.path.join(models, "stories260K.bin"), "-o", path("stories260K.gguf"), "--tokenizer", os.path.join(models, "tok512.bin"))
    said = run("llm-gguf", "diff", path("stories260K.gguf"), os.path.join(models, "stories260K-f32.gguf"), code=1)
    lines = [line.split() for line in said.splitlines() if line[:1] in ("+", "-", "~", "!")]
    check([words[1].rstrip(":") for words in lines] == ["general.quantization_version", "output.weight"], "stories260K differs", said)


if __name__ == "__main__":
    weights = make_weights()
    test_versions(weights)
    test_tokenizer()
    test_faults(weights)
    test_range(weights)
    test_pickles()
    test_stories()
    sys.exit(finish())
