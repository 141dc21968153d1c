#!/usr/bin/env python3
"""llm-gguf: every command, on files that this script writes and reads itself. llm_gguf.py LLM_GGUF MODEL"""
import hashlib
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile

from gguf_file import gguf

TOOL, MODEL = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
faults = []


def check(ok, *what):
    if not ok:
        faults.append(" ".join(str(w) for w in what))
        print("FAILED:", *what)


def floats(n, start=0.0):
    return struct.pack(f"<{n}f", *(start + i / 7 for i in range(n)))


def q8(n, scale=b"\0\x3c"):
    return b"".join(scale + bytes((k + i) % 100 for i in range(32)) for k in range(n // 32))


KEYS = [("general.architecture", "string", "none"), ("general.type", "string", "vocabulary"), ("a.u8", "u8", 200), ("a.i8", "i8", -7), ("a.u16", "u16", 60000),
        ("a.i16", "i16", -30000), ("a.u32", "u32", 4000000000), ("a.i32", "i32", -2000000000), ("a.u64", "u64", (1 << 64) - 1), ("a.i64", "i64", -(1 << 62)),
        ("a.f32", "f32", 0.5), ("a.f64", "f64", 0.1), ("a.bool", "bool", True), ("a.text", "string", 'say "hi"\n\x1b[31mred\\'),
        ("a.list", "i32", [1, -2, 3]), ("a.long", "u32", list(range(100))), ("a.words", "string", ["one", "two, three", "é"]), ("a.empty", "f32", [])]
MODEL_KEYS = KEYS[:1] + KEYS[2:]  # without general.type
TENSORS = [("blk.0.w.weight", "f32", [8, 4], floats(32)), ("blk.1.w.weight", "f32", [8, 4], floats(32, 1)),
           ("out.weight", "q8_0", [64, 3], q8(192)), ("norm", "f16", [5], struct.pack("<5e", 1, 2, 3, 4, 5))]


def run(*args, code=0, words="", limit=None):
    """Runs the tool; returns what it wrote to standard output."""
    before = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
    r = subprocess.run([TOOL, *args], capture_output=True, stdin=subprocess.DEVNULL, check=False, preexec_fn=before)
    both = r.stdout + r.stderr
    check(r.returncode == code, args, "exit code", r.returncode, "not", code, both[-400:])
    check(words.encode() in both, args, f"no '{words}' in", both[-600:])
    return r.stdout.decode(errors="replace")


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def shows():
    write("a.gguf", gguf(KEYS, TENSORS))
    d = json.loads(run("show", "a.gguf", "--json", "--full"))
    check([(k["key"], k["type"], k["value"]) for k in d["keys"]] == KEYS, "keys:", d["keys"])
    check([(t["name"], t["type"], t["shape"], t["bytes"]) for t in d["tensors"]] == [(n, t, ne, len(b)) for n, t, ne, b in TENSORS], d["tensors"])
    check([t["offset"] for t in d["tensors"]] == [0, 128, 256, 480], "offsets", d["tensors"])
    check(d["all"]["elements"] == 261 and d["all"]["bytes"] == sum(len(t[3]) for t in TENSORS), d["all"])
    check([(x["layer"], x["tensors"]) for x in d["layers"]] == [(0, 1), (1, 1), (None, 2)], d["layers"])
    check(d["defects"] == [], d["defects"])
    short = json.loads(run("a.gguf", "--json"))
    check([k["n"] for k in short["keys"] if "value" not in k] == [100], "long arrays")
    lines = run("a.gguf").split("\n")
    check(max(map(len, lines)) <= 80 and any("\\x1b[31mred" in line for line in lines), lines)
    some = json.loads(run("show", "a.gguf", "--json", "--keys", r"^a\.u"))
    check(len(some["keys"]) == 4 and not some["tensors"], some)
    some = json.loads(run("show", "a.gguf", "--json", "--tensors", r"blk\.\d"))
    check(len(some["tensors"]) == 2 and not some["keys"] and some["all"]["tensors"] == 2, some)
    # what is missing or unknown is shown
    write("cut.gguf", read("a.gguf")[:-200])
    d = json.loads(run("cut.gguf", "--json", code=1))
    check([t["present"] for t in d["tensors"]] == [True, True, False, False] and "truncated" in d["defects"][0], d)
    out = run("cut.gguf", code=1, words="MISSING")
    check(out.split("\n")[2] == "defects" and "truncated" in out.split("\n")[3], out)
    run("cut.gguf", code=1, words="llm-gguf show: cut.gguf: the file is truncated: ")
    write("new.gguf", gguf(KEYS, TENSORS, types={1: 999}))
    d = json.loads(run("new.gguf", "--json", code=1))
    check(d["tensors"][1]["type"] == "999" and "bytes" not in d["tensors"][1] and "999" in d["defects"][0], d)
    run("show", "a.gguf", "--keys", "a(", code=2, words="is not a regular expression")
    run("show", "a.gguf", "--keys", "norm", "--tensors", "nor", words="--keys 'norm' matches no key")
    run("show", "a.gguf", "--tensors", "nor", "--tensors", "absent", words="--tensors 'absent' matches no tensor")
    for flag in ("--lora", "-m", "--markdown", "--uuid", "--json-array", "--imatrix-file"):
        for words in ([flag, "a.gguf"], ["show", flag, "a.gguf"], ["hash", flag, "a.gguf"]):
            run(*words, code=2, words=f"there is no flag '{flag}': ")
    run("hasch", code=2, words="did you mean 'hash'")
    run("nothing.gguf", code=1, words="No such file")
    # a file that cannot be read is JSON, too
    write("noise.gguf", b"no model")
    for name, words in (("noise.gguf", "not a GGUF file"), ("nothing.gguf", "No such file")):
        d = json.loads(run("show", "--json", name, code=1, words="llm-gguf show: "))
        check(d["file"] == name and len(d["defects"]) == 1 and words in d["defects"][0], name, d)
        check(set(d) == set(short) and not d["keys"] + d["tensors"] + d["types"] + d["layers"] and d["all"]["tensors"] == d["version"] == 0, name, d)
        d = json.loads(run("check", "--json", name, code=1))
        check(d["file"] == name and d["n"] == 1 == len(d["findings"]) and words in d["findings"][0], name, d)
    run(b"caf\xe9\x1b[31m.gguf", code=1, words="caf\\xe9\\x1b[31m.gguf: ")


def finds():
    run("check", MODEL, words="nothing is wrong")
    run("check", "a.gguf", words="nothing is wrong")
    one = TENSORS[:2]
    nan = struct.pack("<f", float("nan"))
    cases = [  # a file, and what is found; several at once are all found
        (gguf(KEYS, TENSORS)[:-200], ["truncated", "'out.weight'"]),
        (gguf(KEYS + [KEYS[2], KEYS[3]], one), ["'a.u8' is already key 3", "'a.i8' is already key 4"]),
        (gguf(KEYS, [one[0], one[0]]), ["is already tensor 1"]),
        (gguf(KEYS, TENSORS, offsets={1: 64}), ["overlaps that of", "has offset 64, but the tensors before it end at 128"]),
        (gguf(KEYS, TENSORS, offsets={1: 130, 2: 131}), ["offset 130, which is not a multiple", "offset 131, which is not a multiple"]),
        (gguf(KEYS, one, offsets={0: 128, 1: 0}), ["has offset 128, but the tensors before it end at 0"]),
        (gguf(KEYS, one, end=bytes(100)), ["100 bytes after the last tensor"]),
        (gguf(KEYS, TENSORS, types={1: 999, 3: 7}), ["999", "'norm'"]),
        (gguf(KEYS, [(one[0][0], "f32", [8, 4], nan * 2 + floats(30)), ("x", "q8_0", [32, 2], q8(32) + q8(32, b"\0\x7c"))]),
         ["'blk.0.w.weight' of type f32 has 2 elements that are NaN or infinite; the first is element 0, NaN", "'x' of type q8_0", "element 32,"]),
        (gguf(KEYS, [(one[0][0], "f32", [8, 4], nan + floats(31))]), ["has 1 element that is NaN or infinite"]),
        (gguf([("a.f32", "f32", float("inf")), ("general.type", "string", "x"), ("t", "string", b"\xff")], one), ["'a.f32': element 0 is infinite", "not valid UTF-8"]),
        (gguf(KEYS + [("none.attention.layer_norm_rms_epsilon", "f32", -1.0), ("none.context_length", "u32", 4294967295)], one),
         ["key 'none.attention.layer_norm_rms_epsilon' is -1, but 0 to 0.1 is expected: ",
          "key 'none.context_length' is 4294967295, but 1 to 268435456 is expected"]),
        (gguf(KEYS + [("none.attention.layer_norm_epsilon", "f32", 10.0), ("none.context_length", "i32", -1)], one),
         ["key 'none.attention.layer_norm_epsilon' is 10, ", "key 'none.context_length' is -1, "]),
        (gguf(KEYS + [("none.rope.freq_base", "f32", -5.0)], one),
         ["key 'none.rope.freq_base' is -5, but 1 to 1000000000000 is expected: models have 10000 to some hundred million, and another one makes their texts wrong"]),
        (gguf(KEYS + [("none.context_length", "f32", 1e12)], one),
         ["key 'none.context_length' is 999999995904, but 1 to 268435456 is expected"]),
        (gguf([("general.architecture", "string", "llama"), ("llama.attention.layer_norm_rms_epsilon", "f32", 0.11), ("llama.context_length", "f32", 0.5)], []),
         ["rms_epsilon' is 0.11, but", "key 'llama.context_length' is 0.5, but 1 to 268435456 is", "key llama.context_length is 0.5, but a whole number of at least 1 is expected"]),
        (gguf(KEYS, [("n" * 64, "f32", [8, 4], floats(32)), one[1]]), [f"tensor '{'n' * 64}' has a name of 64 bytes: llama.cpp reads at most 63"]),
        (gguf(KEYS, [("n" * 65, "f32", [8, 4], floats(32)), one[1]]), [f"the tensor name '{'n' * 65}' has 65 bytes, at most 64 are allowed"]),
        (gguf(KEYS, [one[0], ("x", "f32", [4, 0], b"")]), ["tensor 'x' has the shape [4, 0], so it has no numbers"]),
        (gguf(MODEL_KEYS, [("x", "q8_0", [64, 3], bytes(204)), ("b", "f32", [64], bytes(256)), ("y", "f16", [4, 2], b"\0" * 15 + b"\1"),
                           ("z", "f32", [2, 4100], bytes(8 * 4100))]),
         ["tensor 'x' of type q8_0 has only zero bytes, 204 of them", "tensor 'z' of type f32 has only zero bytes, 32800 of them"]),
        (gguf(MODEL_KEYS, [("x", "q8_0", [64, 5], q8(128) + bytes(204)), ("ffn", "f32", [8, 4100], floats(8) + bytes(32 * 4099)), ("output_norm.weight", "f32", [64], bytes(256))]),
         ["tensor 'x' of type q8_0 has only zero bytes in its last 3 of 5 rows: so does space that a download has reserved", "tensor 'ffn' of type f32 has only zero bytes in its "
          "last 4099 of 4100 rows", "tensor 'output_norm.weight' has only zeros, so that all tokens are equally likely"]),
        (gguf([("general.type", "string", "adapter"), KEYS[0]], [("x.lora_a", "f32", [4, 2], bytes(32)), ("x.lora_b", "f32", [2, 4], bytes(32))]),
         ["both halves of the pair 'x' have only zeros: it changes nothing, and can learn nothing"]),
        (gguf([("tokenizer.ggml.tokens", "string", ["a", "b"]), ("tokenizer.ggml.scores", "f32", [1.0])], one),
         ["tokenizer.ggml.scores has 1 element, but tokenizer.ggml.tokens has 2"]),
        (gguf([("general.architecture", "string", "nonsense")], one), ["nonsense"]),
        (gguf([("general.architecture", "string", "llama")], one), ["llama."]),
        (b"GGUF\1\0\0\0" + bytes(16), ["version 1"]),
        (b"GGUF\0\0\0\3" + bytes(16), ["big-endian"])]
    for data, words in cases:
        write("bad.gguf", data)
        out = run("check", "bad.gguf", code=1)
        flat = " ".join(out.split())
        for word in words:
            check(word in flat, f"check does not find '{word}':", flat)
        found = json.loads(run("check", "--json", "bad.gguf", code=1))
        check(found["n"] == len(found["findings"]) > 0, found)
    write("bad.gguf", gguf(KEYS, [("n" * 65, "f32", [8, 4], floats(32)), one[1]]))
    found = json.loads(run("check", "--json", "bad.gguf", code=1))
    check(sum("n" * 65 in str(x) for x in found["findings"]) == 1, "one fault is found twice", found)
    write("most.gguf", gguf(MODEL_KEYS + [("none.attention.layer_norm_epsilon", "f32", 0.1), ("none.context_length", "u32", 1 << 28)], one))
    check("is expected" not in run("check", "most.gguf", code=1), "the ends of ranges")
    write("most.gguf", gguf(KEYS, [("n" * 63, "f32", [8, 4], floats(32))]))
    run("check", "most.gguf", words="nothing is wrong")
    # the longest name is read, and is not written
    write("most.gguf", gguf(KEYS, [("n" * 64, "f32", [8, 4], floats(32))]))
    run("set", "most.gguf", "a.u8=1", code=1, words="has 64 bytes, at most 63 are allowed")
    write("most.gguf", gguf(MODEL_KEYS + [("none.attention.layer_norm_epsilon", "f32", 0.0)], one)) # published files have it where nothing reads it
    check("is expected" not in run("check", "most.gguf", code=1), "an epsilon that nothing reads")
    # one line for each finding, as there is no terminal; what may be zero is no finding
    write("bad.gguf", gguf(MODEL_KEYS, [("x", "f32", [4, 4], bytes(64)), ("b", "f32", [64], bytes(256)), ("y", "f16", [4, 2], b"\0" * 15 + b"\1")]))
    out = run("check", "bad.gguf", code=1)
    check(out.count("\n") == 3 and "'b'" not in out and "'y'" not in out and max(map(len, out.split("\n"))) > 100, "lines of findings", out)
    # rows of tokens that nothing uses, half of a matrix, and the bytes of rows before the last may be zero
    write("rows.gguf", gguf(MODEL_KEYS, [("token_embd.weight", "f32", [8, 4], floats(8) + bytes(96)), ("output.weight", "f32", [8, 4], floats(8) + bytes(96)),
                                         ("x", "f32", [8, 4], floats(16) + bytes(64)), ("y", "f32", [8, 4], bytes(96) + floats(8))]))
    check("zero" not in run("check", "rows.gguf", code=1), "rows that may be zero")
    write("bad.gguf", gguf([("general.type", "string", "adapter"), KEYS[0]], [("x.lora_a", "f32", [4, 4], floats(16)), ("x.lora_b", "f32", [4, 4], bytes(64))]))
    check("zero" not in run("check", "bad.gguf", code=1), "an adapter's zeros are a finding")
    run("check", "--no-data", MODEL, words="whose numbers were not read")
    # an error that quotes a descriptor: only its sentence
    os.makedirs("hf", exist_ok=True)
    write("hf/config.json", b'{"architectures": ["LlamaForCausalLM"]}')
    write("hf/model.safetensors", struct.pack("<Q", 2) + b"{}")
    out = run("check", "hf", code=1, words="config.vocab_size is missing")
    check("|" not in out and "^" not in out, "a quotation in a finding", out)
    # what follows from another finding is none
    write("bad.gguf", gguf(KEYS, TENSORS)[:-200])
    run("check", "bad.gguf", code=1, words="bad.gguf: 1 finding\n")
    # all missing tensors are found, with those that are spelled otherwise
    run("extract", MODEL, r"blk\.[0-3]|token", "-o", "few.gguf")
    out = run("check", "few.gguf", code=1, words="few.gguf: 10 findings\n")
    lacking = [w for w in out.split() if w.startswith(("blk.4.", "output_norm"))]
    check(len(lacking) == len(set(lacking)) == 10 and "\\x0a" not in out, "missing tensors", out)
    names = [(f"blk.{i}.x{k}", "f32", [1], floats(1)) for i in range(8) for k in range(8)]
    write("many.gguf", gguf(KEYS[1:2] + KEYS[:1], names, offsets={i: 1 + 32 * i for i in range(64)}))
    out = run("check", "many.gguf", code=1, words="of which these are the first 50 (--json prints all)")
    n = json.loads(run("check", "--json", "many.gguf", code=1))
    check(out.count("not a multiple") == 50 and n["n"] == len(n["findings"]) >= 64, "a page of findings", out[-300:], n["n"])


def hashes():
    out = run("hash", "--sha256", "--xxh64", "a.gguf")
    whole = hashlib.sha256()
    for name, _, _, content in TENSORS:
        check(f"sha256    {hashlib.sha256(content).hexdigest()}  a.gguf:{name}\n" in out, "hash of", name, out)
        whole.update(content)
    check(f"sha256    {whole.hexdigest()}  a.gguf\n" in out, "hash of all", out)
    write("list", out.encode())
    write("b.gguf", gguf(KEYS[:1], TENSORS))
    run("hash", "--check", "list", "b.gguf", words="b.gguf: OK")
    write("c.gguf", gguf(KEYS, TENSORS[:2] + [("out.weight", "q8_0", [64, 3], q8(192)[:-1] + b"\7"), TENSORS[3]]))
    run("hash", "--check", "list", "c.gguf", code=1, words="c.gguf:out.weight: DIFFERENT")
    write("d.gguf", gguf(KEYS, TENSORS[1:]))
    run("hash", "--check", "list", "d.gguf", code=1, words="blk.0.w.weight: MISSING")
    write("list", b"sha256  12  a.gguf:norm\n")
    run("hash", "--check", "list", "a.gguf", code=1, words="list:1: this is not a line such as")
    write("list", b"sha1  12  a.gguf:norm\n")
    run("hash", "--check", "list", "a.gguf", code=1, words="no digest of this file")


def differs():
    check("4 the same, 0 different" in run("diff", "a.gguf", "a.gguf"), "a file differs from itself")
    changed = list(KEYS)
    changed[2] = ("a.u8", "u8", 201)
    changed[3] = ("b.new", "i8", -7)
    other = struct.pack("<32f", *(i / 7 + (0.25 if i == 3 else 0) for i in range(32)))
    write("e.gguf", gguf(changed, [("blk.0.w.weight", "f32", [8, 4], other), TENSORS[1], ("out.weight", "f32", [64, 3], b"".join(
        struct.pack("<32f", *((k + i) % 100 for i in range(32))) for k in range(6))), ("norm2", "f16", [5], TENSORS[3][3])]))
    out = run("diff", "a.gguf", "e.gguf", code=1)
    square = sum((i / 7) ** 2 for i in range(32))
    for line in ("~ a.u8: 200 -> 201", "- a.i8: -7", "+ b.new: -7", "1 of 32 differ: max 2.50e-01, rms %.2e, relative %.2e" % (
            0.25 / 32 ** 0.5, 0.25 / square ** 0.5), "q8_0 [64, 3] -> f32 [64, 3]\n    the same numbers", "- norm ", "+ norm2 "):
        check(line in out, "diff: no", line, "in", out)
    check(max(map(len, out.split("\n"))) <= 80, "diff is wider than 80 columns", out)
    run("diff", "--tensors", "absent", "a.gguf", "a.gguf", words="matches no tensor")
    # numbers that f32 does not hold
    for kind, form, other in (("i32", "i", (16777216, 5, 6, 7)), ("f64", "d", (1 + 1e-12, 5, 6, 7))):
        for name, numbers in (("f.gguf", (16777217 if kind == "i32" else 1, 5, 6, 7)), ("g.gguf", other)):
            write(name, gguf(KEYS, [("t", kind, [4], struct.pack(f"<4{form}", *numbers))]))
        run("diff", "f.gguf", "f.gguf", words="1 the same, 0 different")
        out = run("diff", "f.gguf", "g.gguf", code=1)
        check("1 of 4 differ: max 1.00e" in out, "diff of", kind, out)
    check("max" not in run("diff", "--no-data", "a.gguf", "e.gguf", code=1), "diff --no-data reads data")


def sets():
    write("s.gguf", gguf(KEYS, TENSORS))
    os.chmod("s.gguf", 0o604)
    write("value", b"line 1\nline 2")
    run("set", "s.gguf", "a.u8=7", "a.text=str:@value", "b.f32=f32:0.25", "b.list=arr[u16]:1, 2,3", 'b.words=arr[str]:["x, y", "z\\u00e9"]', "a.list=[9]",
        "a.bool=false", "a.at=str:@@x", "b.none=arr[i32]:", words="a.u8: 200 -> 7")
    check(os.stat("s.gguf").st_mode & 0o777 == 0o604, "permissions", oct(os.stat("s.gguf").st_mode))
    expected = {k: (t, v) for k, t, v in KEYS}
    expected.update({"a.u8": ("u8", 7), "a.text": ("string", "line 1\nline 2"), "b.f32": ("f32", 0.25), "b.list": ("u16", [1, 2, 3]), "a.bool": ("bool", False),
                     "b.words": ("string", ["x, y", "zé"]), "a.list": ("i32", [9]), "a.at": ("string", "@x"), "b.none": ("i32", [])})
    d = json.loads(run("show", "s.gguf", "--json", "--full"))
    check({k["key"]: (k["type"], k["value"]) for k in d["keys"]} == expected, d["keys"])
    check(run("get", "s.gguf", "a.u64") == f"{(1 << 64) - 1}\n", "get of a large u64")
    check(f"{(1 << 64) - 1}" in run("s.gguf") and f"{(1 << 64) - 1}" in run("s.gguf", "--full"), "show of a large u64")
    check(run("get", "s.gguf", "a.text") == "line 1\nline 2" and run("get", "s.gguf", "b.list") == "1\n2\n3\n", "get")
    run("unset", "s.gguf", *(k for k in expected if k[:2] == "b."), "a.at")
    run("set", "s.gguf", "a.u8=200", "a.text=" + KEYS[13][2], "a.list=1,-2,3", "a.bool=true")
    check(read("s.gguf") == read("a.gguf"), "set back is not what it was")
    run("set", "s.gguf", "a.u8=1", "-o", "t.gguf")
    check(read("s.gguf") == read("a.gguf") != read("t.gguf"), "-o changes FILE")
    run("set", "s.gguf", "a.u8=1", "--dry-run", words="a.u8: 200 -> 1")
    os.symlink("s.gguf", "link.gguf")
    run("set", "link.gguf", "a.u8=200")
    check(os.path.islink("link.gguf"), "a link was replaced")
    run("set", "s.gguf", "a.u8=5", "-o", "-", code=2, words="not standard output; write ./- for")
    for words, args in (("out of range for u8", ("a.u8=256",)), ("is not a whole number", ("a.u8=x",)), ("is a new key, so its type is needed", ("b.x=1",)),
                        ("neither true nor false", ("a.bool=2",)), ("that fits its type", ("a.f32=1e39",)),
                        ("a.f32: 1e-50 is too small for f32, which has 0 here: f64:1e-50 keeps it", ("a.f32=1e-50",)), ("is set twice", ("a.u8=1", "a.u8=2")),
                        ("is not KEY=VALUE", ("a.u8",)), ("a.list is a list of 3 elements, and '7' is no list", ("a.list=7",)),
                        ("a.words is a list of 3 elements, and 'foo' is no list: a list is written as JSON", ("a.words=foo",)), ("how the files of a split model belong together", ("split.no=u16:0",)),
                        ("the string is not closed", ('a.words=["x]',)),
                        ("does not end with ]", ("a.list=[1,2",))):
        run("set", "s.gguf", *args, code=2, words=words)
    run("unset", "s.gguf", "nothing", code=1, words="has no key 'nothing'")
    said = run("set", "s.gguf", "a.u8=9", code=1, words="too large; s.gguf is as it was", limit=512)
    check(not said, "a change that was not made is printed", said)
    with open("/dev/full", "w") as full:
        for args in (["show"], ["check"], ["get"], ["hash"], ["diff"]):
            words = {"get": ["a.text"], "diff": ["a.gguf"]}.get(args[0], [])
            r = subprocess.run([TOOL, *args, "a.gguf", *words], stdout=full, stderr=subprocess.PIPE, check=False)
            check(r.returncode == 1 and b"could not write to stdout: No space left on device" in r.stderr, args, "on a full disk:", r.returncode, r.stderr)
    check(read("s.gguf") == read("a.gguf") and not [f for f in os.listdir(".") if "tmp-" in f], "a failed write leaves something")


def keys_of_models():
    """A change in place after which check would find what it did not find before is refused, for models and adapters."""
    write("k.gguf", read(MODEL))
    before = read("k.gguf")
    for words, args in (("the key general.architecture is missing", ("unset", "k.gguf", "general.architecture")),
                        ("; -o OUT writes another file, --force changes k.gguf", ("set", "k.gguf", "general.architecture=foo")),
                        ("llm-gguf check would find this: ", ("set", "k.gguf", "llama.block_count=99")),
                        ("tokenizer.ggml.tokens has 2", ("set", "k.gguf", "tokenizer.ggml.tokens=[a, b]")),
                        ("llm-gguf check would find this: ", ("set", "k.gguf", "llama.block_count=99", "--dry-run")),
                        ("nothing was written, because llm-gguf check would find this: ", ("set", "k.gguf", "llama.block_count=99", "-o", "k.gguf"))):
        said = run(*args, code=1, words=words)
        check(not said and read("k.gguf") == before, args, "changes the file, or prints a change", said)
    run("set", "k.gguf", "llama.block_count=99", "-o", "o.gguf", words="warning: llm-gguf check finds this now: o.gguf: ")
    check(read("k.gguf") == before != read("o.gguf"), "-o changes FILE, or is not written")
    run("set", "k.gguf", "general.name=Mine", "--force", words="general.name: ")
    run("unset", "k.gguf", "general.architecture", "--force", words="warning: llm-gguf check finds this now: ")
    run("set", "k.gguf", "general.name=str:Other", words='general.name: "Mine" -> "Other"') # that was wrong before
    run("set", "k.gguf", "general.architecture=str:llama", words='(none) -> "llama"')
    run("check", "k.gguf", words="nothing is wrong")
    # a file with a fault that opens is not replaced by one that does not
    run("set", "k.gguf", "llama.rope.freq_base=f32:0.5", "--force")
    for args in (("unset", "k.gguf", "general.architecture"), ("set", "k.gguf", "llama.rope.freq_base=0"), ("unset", "k.gguf", "llama.rope.freq_base", "llama.block_count")):
        run(*args, code=1, words="nothing was written")
    run("unset", "k.gguf", "llama.rope.freq_base")
    # two wrong keys are corrected one by one, though the first hides the second
    right = {k: run("get", "k.gguf", f"llama.{k}").strip() for k in ("feed_forward_length", "embedding_length")}
    run("set", "k.gguf", "llama.feed_forward_length=353", "llama.embedding_length=130", "--force")
    run("set", "k.gguf", "llama.embedding_length=" + right["embedding_length"], words="warning: llm-gguf check finds this now: ")
    run("set", "k.gguf", "llama.feed_forward_length=" + right["feed_forward_length"])
    run("check", "k.gguf", words="nothing is wrong")
    pair = [(f"blk.0.attn_q.weight.lora_{x}", "f32", ne, floats(8)) for x, ne in (("a", [8, 1]), ("b", [1, 8]))]
    write("r.gguf", gguf([("general.architecture", "string", "llama"), ("general.type", "string", "adapter"), ("adapter.type", "string", "lora"),
                          ("adapter.lora.alpha", "f32", 1.0)], pair))
    run("check", "r.gguf", words="nothing is wrong")
    run("set", "r.gguf", "adapter.type=dora", code=1, words="nothing was written")
    run("set", "r.gguf", "adapter.lora.alpha=2", words="1 -> 2")


def parts():
    run("extract", "a.gguf", r"blk\.", "-o", "x.gguf")
    check(read("x.gguf") == gguf(KEYS, TENSORS[:2]), "extract")
    run("extract", "a.gguf", "norm", "--no-keys", "-o", "x.gguf")
    check(read("x.gguf") == gguf([], TENSORS[3:]), "extract --no-keys")
    run("extract", "a.gguf", "out", "--raw", "-o", "x.bin")
    check(read("x.bin") == TENSORS[2][3], "extract --raw")
    run("extract", "a.gguf", "blk", "norm", "--npy", "-o", "arrays")
    for name, _, ne, _ in TENSORS[:2] + TENSORS[3:]:
        array = read(f"arrays/{name}.npy")
        shape = "(%s)" % (f"{ne[0]}," if len(ne) == 1 else ", ".join(map(str, ne[::-1])))
        check(f"'shape': {shape}".encode() in array and len(array) == 128 + 4 * (32 if len(ne) > 1 else 5), "npy", name, array[:128])
    check(read("arrays/blk.1.w.weight.npy")[128:] == TENSORS[1][3] and read("arrays/norm.npy")[128:] == struct.pack("<5f", 1, 2, 3, 4, 5), "npy data")
    run("extract", "a.gguf", "blk", "out", "--npy", "-o", "half", code=1, words="out.weight.npy: cannot be written", limit=512)
    check(not os.path.exists("half"), "a failed extract leaves", os.listdir("."))
    run("extract", "a.gguf", "norm", "nothing", "-o", "x.gguf", words="'nothing' matches no tensor")
    run("extract", "a.gguf", "nothing", "-o", "x.gguf", code=1, words="no tensor that matches")
    run("extract", "a.gguf", "norm", "-o", "a.gguf", code=2, words="also the file of")
    for args, n in ((("--max-tensors", "1"), 4), (("--max-size", "256"), 2), (("--max-size", "0.3K", "--no-tensor-first-split"), 3)):
        run("split", "a.gguf", "p.gguf", *args)
        names = [f"p-{k:05}-of-{n:05}.gguf" for k in range(1, n + 1)]
        check(all(map(os.path.exists, names)), "split", args, os.listdir("."))
        split = json.loads(run("show", names[0], "--json"))
        end = {k["key"]: (k["type"], k["value"]) for k in split["keys"][-3:]}
        check(end == {"split.no": ("u16", 0), "split.count": ("u16", n), "split.tensors.count": ("i32", 4)}, end)
        check(split["parts"] == n and [t["name"] for t in split["tensors"]] == [t[0] for t in TENSORS], split)
        run("check", names[0], words="nothing is wrong")
        run("merge", names[0], "m.gguf")
        check(read("m.gguf") == read("a.gguf"), "merge after", args)
        os.rename(names[1], "away")
        half = json.loads(run("show", names[0], "--json", code=1))
        check(len(half["defects"]) == 1 and names[1] in half["defects"][0], "an absent part", half["defects"])
        check({t["name"] for t in half["tensors"]} == {t["name"] for t in split["tensors"] if t["part"] != 1}, "an absent part", half["tensors"])
        run("check", names[0], code=1, words=f"{names[1]}: cannot be opened")
        run("check", names[0], code=1, words=": 1 finding\n")
        run("merge", names[0], "m.gguf", code=1, words=names[1])
        alone = json.loads(run("show", "away", "--json", code=1, words="llm-gguf show: away: is part 2"))
        check([t["name"] for t in alone["tensors"]] == [t["name"] for t in split["tensors"] if t["part"] == 1], "a part alone", alone["tensors"])
        check(len(alone["defects"]) == 1 and f"is part 2 of {n}" in alone["defects"][0], "a part alone", alone["defects"])
        os.rename("away", names[1])
        later = [read(f) for f in names[1:]]
        run("set", names[0], "a.u8=3")
        run("merge", names[0], "m.gguf")
        run("set", "m.gguf", "a.u8=200")
        check(read("m.gguf") == read("a.gguf") and later == [read(f) for f in names[1:]], "set in a split model")
    write("l.gguf", gguf([], [TENSORS[0], ("large", "f32", [1024], floats(1024))]))
    run("split", "l.gguf", "q", "--max-tensors", "1", code=1, words="too large", limit=2000)
    check(not [f for f in os.listdir(".") if f.startswith("q-")], "a failed split leaves", os.listdir("."))
    run("split", "a.gguf", "q", "--max-size", "2X", code=2, words="is not a size")


def other_formats():
    """A checkpoint of llama2.c is not replaced by a GGUF file; a list in an error is told whole."""
    header = struct.pack("<7i", 64, 128, 1, 4, 4, 32, 16)
    n = 32 * 64 + 64 + 4 * 64 * 64 + 64 + 3 * 64 * 128 + 64 + 2 * 16 * 8
    write("c.bin", header + bytes(4 * n))
    before = read("c.bin")
    run("set", "c.bin", "general.name=x", code=1, words="llm-convert 'c.bin'")
    run("unset", "c.bin", "general.name", code=1, words="llm-convert 'c.bin'")
    check(read("c.bin") == before, "a checkpoint was replaced")
    run("set", MODEL, "llama.context_lenght=u32:5", "llama.embeding=u32:6", "-o", "typo.gguf")
    text = " ".join(run("check", "typo.gguf", code=1).split())
    check("llama.context_lenght = 5" in text and "llama.embeding = 6" in text, "check names no keys", text)


def large():
    """512 MiB, of which the disk has little: memory stays small."""
    keys = [("general.type", "string", "x")]
    n = 1 << 16
    head = gguf(keys, [("w", "f32", [2048, n], b"")])
    with open("large.gguf", "wb") as f:
        f.write(head)
        f.truncate(len(head) + 2048 * n * 4)
    run("check", "large.gguf")
    run("hash", "--xxh64", "large.gguf")
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    check(used < 120 * 1024, "memory:", used, "KiB")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for step in (shows, finds, hashes, differs, sets, keys_of_models, parts, other_formats, large):
        step()
    os.chdir("/")
sys.exit(bool(faults))
