"""SentencePiece's tokenizer.model, made here: BPE compared with the same tokenizer as tokenizer.json, Unigram with its definition.

sentencepiece.py TOOLS    TOOLS: the folder of the programs"""
import base64, json, os, random, struct, sys, unicodedata

from checks import check, finish, path, runner

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../numpy"))
from charsmap import charsmap

run = runner(sys.argv[1])
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
UNIGRAM, BPE = 1, 2
SPACE = "\u2581"


# --- the file -------------------------------------------------------------------------------------------------------------------

def varint(x):
    x &= 2 ** 64 - 1
    out = b""
    while x >= 128:
        out += bytes([x & 127 | 128])
        x >>= 7
    return out + bytes([x])


def field(number, value):
    """A field of a message: an integer, a float, or bytes."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(text, score, kind):
    return field(1, field(1, text.encode()) + field(2, float(score)) + (field(3, kind) if kind != NORMAL else b""))


def model(pieces, kind, prefix=1, remove=0, charsmap=b"", more=b""):
    normalizer = field(1, b"identity" if not charsmap else b"nmt_nfkc") + field(2, charsmap) + field(3, prefix) + field(4, remove)
    trainer = field(1, b"corpus.txt") + field(3, kind) + field(35, 1) + field(43, -1) + field(45, b"<unk>") + field(15, 0.999) + more
    return b"".join(piece(*p) for p in pieces) + field(2, trainer) + field(3, normalizer)


def folder(name, files):
    os.makedirs(path(name), exist_ok=True)
    config = {"architectures": ["LlamaForCausalLM"], "vocab_size": len(PIECES) + 1, "hidden_size": 32, "num_hidden_layers": 1,
              "intermediate_size": 32, "num_attention_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 64,
              "hidden_act": "silu"}
    for file, value in {"config.json": config, **files}.items():
        with open(path(name + "/" + file), "wb") as f:
            f.write(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path(name)


# --- the tokenizers -------------------------------------------------------------------------------------------------------------

WORDS = [(SPACE, -20), ("a", -10), ("b", -11), ("n", -12), ("an", -1), ("ban", -5), (SPACE + "ban", -6), ("ana", -3), (SPACE + "a", -2)]
PIECES = ([("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)] + [(f"<0x{i:02X}>", 0, BYTE) for i in range(256)] +
          [(w, s, NORMAL) for w, s in WORDS] + [("[x]", 0, USER_DEFINED), ("<mask>", 0, CONTROL)])
CONFIG = {"add_bos_token": True, "add_eos_token": False, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
ADDED = {"<more>": len(PIECES)}


def as_json():
    """The same BPE tokenizer in the form of tokenizer.json: a merge for each way to make a piece, the best pieces first."""
    ids = {p[0]: i for i, p in enumerate(PIECES)}
    special = [{"id": ids[p[0]], "content": p[0], "special": p[2] in (CONTROL, UNKNOWN)} for p in PIECES if p[2] in (CONTROL, UNKNOWN, USER_DEFINED)]
    merges = [f"{w[:k]} {w[k:]}" for w, _ in sorted(WORDS, key=lambda x: -x[1]) for k in range(1, len(w)) if w[:k] in ids and w[k:] in ids]
    return {"added_tokens": special + [{"id": i, "content": t, "special": True} for t, i in ADDED.items()],
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE},
                                                               {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}]},
            "model": {"type": "BPE", "byte_fallback": True, "vocab": {p[0]: i for i, p in enumerate(PIECES)}, "merges": merges}}


TEXTS = ["banana ban an", " a  b", "bé\n[x]ana", "<mask>a</s>", "an [x] <more>ban", "", "<0x41>"]


def ids(name, text):
    return run("llm-tokenize", "-m", name, "-p", text)


def test_bpe():
    sp = folder("bpe", {"tokenizer.model": model(PIECES, BPE), "tokenizer_config.json": CONFIG, "added_tokens.json": ADDED})
    hf = folder("json", {"tokenizer.json": as_json(), "tokenizer_config.json": CONFIG})
    for text in TEXTS[:5] + TEXTS[6:]:
        check(ids(sp, text) == ids(hf, text), f"other tokens of {text!r}", (ids(sp, text), ids(hf, text)))
    run("llm-convert", sp, "-o", path("bpe.gguf"), "--vocab-only")
    get = lambda key: run("llm-gguf", "get", path("bpe.gguf"), "tokenizer.ggml." + key).strip()
    check(get("model") == "llama" and get("bos_token_id") == "1" and get("eos_token_id") == "2" and get("add_space_prefix") == "true", "other keys")
    plain = folder("plain", {"tokenizer.model": model(PIECES, BPE, prefix=0)})
    run("llm-convert", plain, "-o", path("bpe.gguf"), "--vocab-only")
    check(get("add_space_prefix") == "false" and get("unknown_token_id") == "0", "a tokenizer without a first space")
    run("llm-convert", folder("note", {"tokenizer.model": model(PIECES, BPE, remove=1)}), "-o", path("bpe.gguf"), "--vocab-only",
        has="normalizes text (identity, of several spaces one remains)")
    named = lambda name: b"".join(piece(*p) for p in PIECES) + field(2, field(3, BPE)) + field(3, field(1, name) + field(2, b"map"))
    for name, words in ((b"a\nnote: b", "normalizes text (a\\x0anote: b, of several"), (b"", "normalizes text (of several")):
        run("llm-convert", folder("note", {"tokenizer.model": named(name)}), "-o", path("bpe.gguf"), "--vocab-only", has=words)


def test_unigram():
    """The best sum of scores wins: "banana" is ban + ana (-8), where BPE begins with "an"."""
    sp = folder("unigram", {"tokenizer.model": model(PIECES, UNIGRAM, remove=1), "tokenizer_config.json": CONFIG})
    run("llm-convert", sp, "-o", path("t5.gguf"), "--vocab-only")
    get = lambda key: run("llm-gguf", "get", path("t5.gguf"), "tokenizer.ggml." + key).strip()
    check(get("model") == "t5" and get("remove_extra_whitespaces") == "true", "other keys of Unigram")
    check(get("add_bos_token") == "true" and get("add_eos_token") == "false", "the ends that tokenizer_config.json names")
    for name, ends in (("T5Tokenizer", "false true"), ("LlamaTokenizer", "true false"), (None, "false true")):
        config = {"tokenizer_config.json": {"tokenizer_class": name}} if name else {}
        run("llm-convert", folder(f"ends{name}", {"tokenizer.model": model(PIECES, UNIGRAM), **config}), "-o", path("t5.gguf"), "--vocab-only",
            has="" if name else "names the tokenizer's class")
        check(f"{get('add_bos_token')} {get('add_eos_token')}" == ends, f"the ends of {name}", get("add_eos_token"))
    one = folder("ends", {"tokenizer.model": model(PIECES, UNIGRAM), "tokenizer_config.json": {"tokenizer_class": "T5Tokenizer", "add_eos_token": False}})
    run("llm-convert", one, "-o", path("t5.gguf"), "--vocab-only")
    check(get("add_eos_token") == "false", "add_eos_token is more than the class")
    for name in ("sentencepiece.bpe.model", "spiece.model", "spm.model"):
        # the file by its other names, alone and beside a tokenizer.json that has no merges
        json_of = {"tokenizer.json": {"model": {"type": "Unigram", "vocab": []}}}
        for more in ({}, json_of):
            other = folder(f"{name}{len(more)}", {name: model(PIECES, UNIGRAM, remove=1), "tokenizer_config.json": CONFIG, **more})
            check(ids(other, "banana") == ids(sp, "banana"), f"other tokens of {name}", ids(other, "banana"))
    more = {"tokenizer.json": {"model": {"type": "Unigram", "vocab": []}, "added_tokens": [{"id": i, "content": t, "special": True} for t, i in ADDED.items()]}}
    one = folder("beside", {"spiece.model": model(PIECES, UNIGRAM, remove=1), "tokenizer_config.json": CONFIG, **more})
    check(str(ADDED["<more>"]) in ids(one, "ban<more>"), "tokenizer.json's added tokens are lost", ids(one, "ban<more>"))
    albert = {"tokenizer_class": "AlbertTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    steps = {"model": {"type": "Unigram", "vocab": []}, "post_processor": {"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]}, "normalizer": {"type": "Sequence", "normalizers": [
        {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "Precompiled", "precompiled_charsmap": ""}]}}
    for more, folds in (({}, True), ({"do_lower_case": False, "keep_accents": True}, False), ({"tokenizer_class": "XLNetTokenizer", "do_lower_case": True}, False)):
        one = folder(f"albert{len(more)}", {"spiece.model": model(PIECES, UNIGRAM, remove=1), "tokenizer_config.json": {**albert, **more}})
        check((ids(one, "BÁNANA") == ids(one, "banana")) == folds, f"lower case of {more}", ids(one, "BÁNANA"))
    one = folder("albert", {"spiece.model": model(PIECES, UNIGRAM, remove=1), "tokenizer_config.json": {"bos_token": "<s>", "eos_token": "</s>"},
                                 "tokenizer.json": steps})
    check(ids(one, "BÁNANA") == ids(one, "banana"), "lower case of tokenizer.json", ids(one, "BÁNANA"))
    run("llm-convert", one, "-o", path("t5.gguf"), "--vocab-only")
    check(get("add_bos_token") == "true" and get("add_eos_token") == "true", "the ends of tokenizer.json")
    check(get("normalizer.lowercase") == "true" and get("normalizer.strip_accents") == "true", "keys of lower case")
    for name in ("tokenizer.json", "spiece.model"):  # a link to nothing, as in a download that was broken off
        broken = folder("broken", {})
        os.symlink("nothing", os.path.join(broken, name))
        run("llm-convert", broken, "-o", path("bad.gguf"), "--vocab-only", code=1, has="No such file or directory")
        os.unlink(os.path.join(broken, name))
    first = len(PIECES) - len(WORDS) - 2
    said = ids(sp, "banana")
    want = [str(first + 6), str(first + 7)]  # "_ban", "ana": -6 - 3
    check(all(w in said for w in want), "other tokens of banana", said)
    check(ids(sp, "ban  ban ") == ids(sp, "ban ban"), "spaces are not removed", ids(sp, "ban  ban "))


# --- Unigram in tokenizer.json ----------------------------------------------------------------------------------------------------

SPLIT = [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": SPACE, "add_prefix_space": True}]
ONE_SPACE = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE}


def template(first, last):
    one = lambda ids: [{"SpecialToken": {"id": t, "type_id": 0}} for t in ids]
    return {"type": "TemplateProcessing", "single": [*one(first), {"Sequence": {"id": "A", "type_id": 0}}, *one(last)], "pair": []}


def unigram_json(pieces, normalizers=(), pre=SPLIT, post=template(["<s>"], ["</s>"]), added=(), **model):
    kinds = {p[0]: p[2] for p in pieces}
    special = [{"id": i, "content": p[0], "special": p[2] != USER_DEFINED} for i, p in enumerate(pieces) if p[2] in (CONTROL, USER_DEFINED)]
    return {"added_tokens": special + list(added), "normalizer": {"type": "Sequence", "normalizers": list(normalizers)},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": list(pre)}, "post_processor": post, "decoder": {"type": "Metaspace", "replacement": SPACE},
            "model": {"type": "Unigram", "unk_id": list(kinds.values()).index(UNKNOWN) if UNKNOWN in kinds.values() else None,
                      "vocab": [[p[0], p[1]] for p in pieces], "byte_fallback": BYTE in kinds.values(), **model}}


ALPHABET = "the cat sat on a mat naïve café Über größer Катя это кошка 日本語の文章 中文分詞 한국어 สวัสดี नमस्ते العربية ﬁne Ａｂｃ １２３ ™ Ⅷ 😀 e\u0301"


def texts_of(rng, n):
    """Texts of which SentencePiece and tokenizers make the same: there are single spaces, none of them beside a token or a mark that combines."""
    words = ALPHABET.split(" ")
    for _ in range(n):
        parts = []
        for _ in range(rng.randrange(1, 9)):
            word = rng.choice(words)
            parts.append(rng.choice([word, word[0] + rng.choice(["<s>", "[x]"]) + word[0], chr(rng.randrange(0xc0, 0x250))]))
        yield " ".join(parts)


def random_pieces(rng, with_bytes):
    """Pieces of a random vocabulary: parts of words with random scores."""
    head = [("<s>", 0, CONTROL), ("<pad>", 0, CONTROL), ("</s>", 0, CONTROL), ("<unk>", 0, UNKNOWN)]
    names = {SPACE, *"aeinot"}
    for word in ALPHABET.split(" ") * 6:
        word = unicodedata.normalize("NFKC", rng.choice(["", SPACE]) + word)
        i = rng.randrange(len(word))
        names.add(word[i:i + rng.randrange(1, 6)])
    head += [(f"<0x{i:02X}>", 0, BYTE) for i in range(256)] if with_bytes else []
    return head + [(w, -rng.randrange(4, 80) / 4, NORMAL) for w in sorted(names)] + [("[x]", 0, USER_DEFINED), ("<mask>", 0, CONTROL)]


def nfkc_map():
    """Part of what SentencePiece's nmt_nfkc replaces."""
    to = {c: unicodedata.normalize("NFKC", c) for c in [*map(chr, range(0xa0, 0x500)), *"Ａｂｃ１２３ﬁ™Ⅷ\u3000", "e\u0301"]}
    to = {k.encode(): v.encode() for k, v in to.items() if k != v}
    return charsmap({**to, b"\t": b" ", b"\n": b" ", b"\x01": b""})


def keys_of(name, file="keys.gguf"):
    run("llm-convert", name, "-o", path(file), "--vocab-only")
    return {k: run("llm-gguf", "get", path(file), "tokenizer.ggml." + k).strip()
            for k in ("model", "tokens", "scores", "token_type", "add_space_prefix", "remove_extra_whitespaces", "add_bos_token", "add_eos_token",
                      "bos_token_id", "eos_token_id", "unknown_token_id", "padding_token_id")}


def sized(name, pieces, files, **more):
    """A folder whose model has a row for each piece."""
    one = folder(name, files)
    config = json.load(open(one + "/config.json"))
    with open(one + "/config.json", "w") as f:
        json.dump({**config, "vocab_size": len(pieces), **more}, f)
    return one


def test_unigram_json():
    """The same tokenizer as SentencePiece's file and as tokenizer.json gives the same keys, and the same tokens of random texts."""
    seed = int(os.environ.get("GGL_TEST_SEED", "1"))
    rng = random.Random(seed)
    config = {"tokenizer_class": "T5Tokenizer", "add_bos_token": True, "add_eos_token": True,
              **{k: f"<{v}>" for k, v in (("bos_token", "s"), ("eos_token", "/s"), ("unk_token", "unk"), ("pad_token", "pad"))}}
    map_of = nfkc_map()
    step = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(map_of).decode()}
    meta = lambda **more: [{"type": "Metaspace", "replacement": SPACE, **more}]
    one_space = [{"type": "Strip", "strip_left": False, "strip_right": True}, ONE_SPACE]
    escape = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    ways = [(1, 1, [step], SPLIT), (1, 1, [step, *one_space], meta(prepend_scheme="always", split=True)), (0, 1, [step, *one_space], meta(prepend_scheme="never")),
            (1, 0, [{"type": "Prepend", "prepend": SPACE}, escape], []), (1, 1, one_space, meta(add_prefix_space=True))]
    for k, (prefix, remove, normalizers, pre) in enumerate(ways):
        pieces = random_pieces(rng, k % 2)
        ids_of_pieces = field(40, 3) + field(41, 0) + field(42, 2) + field(43, 1)
        mapped = map_of if step in normalizers else b""
        sp = sized(f"same-sp{k}", pieces, {"spiece.model": model(pieces, UNIGRAM, prefix, remove, mapped, ids_of_pieces), "tokenizer_config.json": config})
        js = sized(f"same-json{k}", pieces, {"tokenizer.json": unigram_json(pieces, normalizers, pre), "tokenizer_config.json": config})
        want, seen = keys_of(sp, "sp.gguf"), keys_of(js, "json.gguf")
        check(want == seen, f"other keys of way {k}", [(x, want[x], seen[x]) for x in want if want[x] != seen[x]])
        check(("precompiled_charsmap" in run("llm-gguf", path("json.gguf"))) == bool(mapped), f"the charsmap of way {k}")
        lines = "".join(json.dumps(t) + "\n" for t in texts_of(rng, 300)).encode()
        a, b = (run("llm-tokenize", "-m", path(f), "--json-lines", text=lines).splitlines() for f in ("sp.gguf", "json.gguf"))
        bad = [x for x in zip(lines.decode().splitlines(), a, b) if x[1] != x[2]]
        check(not bad and len(a) == 300, f"other tokens of way {k}, seed {seed}", bad[:2])
    # a folder opens as it is, and pieces beyond a space never apply if words are cut first
    more = [*pieces, (f"a{SPACE}a", -0.5, NORMAL)]
    for split in (True, False):
        one = sized(f"beyond{split}", more, {"tokenizer.json": unigram_json(more, [], meta(split=split)), "tokenizer_config.json": config})
        check((str(len(pieces)) in ids(one, "a a").split()) != split, f"a piece of two words with split {split}", ids(one, "a a"))


def test_unigram_json_ends():
    pieces = random_pieces(random.Random(3), False) + [("xx_XX", 0, CONTROL)]
    at = {"": "none", **{p[0]: str(i) for i, p in enumerate(pieces)}}
    roberta = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}
    for k, (post, config, first, last) in enumerate([
            (template(["<s>"], ["</s>"]), {}, "<s>", "</s>"), (template([], ["</s>"]), {}, "", "</s>"), (None, {"tokenizer_class": "T5Tokenizer"}, "", ""),
            (roberta, {}, "<s>", "</s>"), (template(["xx_XX"], ["</s>"]), {"bos_token": "<s>", "eos_token": "</s>"}, "xx_XX", "</s>"),
            (template([], ["</s>"]), {"add_eos_token": False}, "", "")]):
        one = sized(f"ends-json{k}", pieces, {"tokenizer.json": unigram_json(pieces, post=post), "tokenizer_config.json": config})
        said = [x.split()[0] for x in ids(one, "a").splitlines()]
        want = [at[first]] * (first != "") + [x for x in said if x not in (at["<s>"], at["xx_XX"], at["</s>"])] + [at[last]] * (last != "")
        check(said == want, f"other ends of {post}", said)
    alone = sized("alone-json", pieces, {"tokenizer.json": unigram_json(pieces)})
    run("llm-convert", alone, "-o", path("keys.gguf"), "--vocab-only")
    check(run("llm-gguf", "get", path("keys.gguf"), "tokenizer.ggml.unknown_token_id").strip() == "3", "the unknown token of unk_id")

    # the class has an order of its own: tokenizer.json says which
    other = sized("order-json", pieces, {"tokenizer.json": unigram_json(pieces), "spiece.model": model(PIECES, UNIGRAM),
                                         "tokenizer_config.json": {"tokenizer_class": "PegasusTokenizerFast"}})
    check(ids(other, "a") == ids(alone, "a"), "tokenizer.json of a class with an order of its own", ids(other, "a"))

    def wrong(words, change=lambda j: None, **more):
        j = unigram_json(pieces, **more)
        change(j)
        run("llm-convert", sized("bad-json", pieces, {"tokenizer.json": j}), "-o", path("bad.gguf"), "--vocab-only", code=1, has="tokenizer.json: " + words)

    wrong("pre_tokenizer: a step without a \"type\" is not supported", pre=[{}])
    wrong("normalizer: 'strip_left' of a step 'Strip' is missing", normalizers=[{"type": "Strip", "strip_right": True}])
    wrong("pre_tokenizer: 'replacement' of a step 'Metaspace' is missing", pre=[{"type": "Metaspace"}])
    for text, words in (("AAA", "its length is 3"), ("AA*A", "no digit at 2"), ("A===", "no digit at 1"), ("BAAAAAAAAAE=", "its precompiled_charsmap has 8 bytes")):
        wrong(words if text[0] == "B" else "precompiled_charsmap is not base64: " + words, normalizers=[{"type": "Precompiled", "precompiled_charsmap": text}])
    wrong("normalizer: precompiled_charsmap is a number, not a string", normalizers=[{"type": "Precompiled", "precompiled_charsmap": 3}])
    wrong("post_processor adds '<none>', which is no token", post=template(["<none>"], []))
    wrong("unk_id is 999999, but the vocabulary has", unk_id=999999)
    wrong("the array 'vocab' is missing", vocab={"a": 1})
    for entry in (["a"], ["", 1], ["zz", "1"], [1, 1], "zz", ["zz", 1e39]):
        wrong(f"entry {len(pieces)} of the vocabulary is not", change=lambda j, e=entry: j["model"]["vocab"].append(e))
    wrong("token '<s>' has the ids 0 and 9", change=lambda j: j["model"]["vocab"].__setitem__(9, ["<s>", 1]))


def test_ends_by_kind():
    """DeBERTa's own folders name no class, and their spm.model has tokens and ids of its own; [MASK] is added."""
    pieces = [("[PAD]", 0, CONTROL), ("[CLS]", 0, CONTROL), ("[SEP]", 0, CONTROL), ("[UNK]", 0, UNKNOWN)] + [(w, s, NORMAL) for w, s in WORDS]
    ids_of = field(40, 3) + field(41, 1) + field(42, 2) + field(43, 0)
    trained = b"".join(piece(*p) for p in pieces) + field(2, field(3, UNIGRAM) + ids_of) + field(3, field(1, b"identity") + field(3, 1) + field(4, 1))
    config = {"architectures": ["LlamaForCausalLM"], "vocab_size": len(pieces) + 5, "hidden_size": 32, "num_hidden_layers": 1, "intermediate_size": 32,
              "num_attention_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "hidden_act": "silu"}
    for kind, ends in (("deberta-v2", "true\ntrue\n"), ("another", "false\ntrue\n")):
        one = folder("kind-" + kind, {"spm.model": trained, "added_tokens.json": {"[MASK]": len(pieces)}, "config.json": {**config, "model_type": kind},
                                      "tokenizer_config.json": {"do_lower_case": False, "vocab_type": "spm"}})
        run("llm-convert", one, "-o", path("t5.gguf"), "--vocab-only", has="" if kind == "deberta-v2" else "names the tokenizer's class")
        get = lambda key: run("llm-gguf", "get", path("t5.gguf"), "tokenizer.ggml." + key)
        check(f"{get('add_bos_token')}{get('add_eos_token')}" == ends, f"the ends of {kind}")
        numbers = [get(key + "_token_id").strip() for key in ("bos", "padding", "eos", "unknown")]
        check(numbers == ["1", "0", "2", "3"], f"the special ids of {kind}", numbers)
        said = [line.split()[0] for line in ids(path("t5.gguf"), "banana").splitlines()]
        want = ["1"] * (kind == "deberta-v2") + [str(4 + 6), str(4 + 7), "2"]
        check(said == want, f"other ids of {kind}", said)


FAIRSEQ = {"XLMRoberta": ["<s>", "<pad>", "</s>", "<unk>"],
           "Camembert": ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>"]}


def test_fairseq():
    """Classes with fairseq's ids: its own tokens come first, the words of the file after them, and <mask> last."""
    pieces = [p for p in PIECES if p[0] != "<mask>"]
    words = [p[0] for p in pieces[3:]]
    for name, first in FAIRSEQ.items():
        want = first + words + ["<mask>"]
        for fast in ("", "Fast"):
            sp = folder(name + fast, {"tokenizer.model": model(pieces, UNIGRAM), "tokenizer_config.json": {"tokenizer_class": f"{name}Tokenizer{fast}"}})
            config = json.load(open(sp + "/config.json"))
            with open(sp + "/config.json", "w") as f:
                json.dump({**config, "vocab_size": len(want)}, f)
            run("llm-convert", sp, "-o", path("t5.gguf"), "--vocab-only")
            get = lambda key: run("llm-gguf", "get", path("t5.gguf"), "tokenizer.ggml." + key)
            ends = [get(key + "_token_id").strip() for key in ("bos", "padding", "eos", "unknown")]
            check(ends == [str(want.index(x)) for x in ("<s>", "<pad>", "</s>", "<unk>")], f"other special ids of {name}", ends)
            check(f"{get('add_bos_token')}{get('add_eos_token')}" == "true\ntrue\n", f"the ends of {name}")
            said = [line.split()[0] for line in ids(path("t5.gguf"), "banana").splitlines()]
            check(said == [str(want.index(x)) for x in ("<s>", SPACE + "ban", "ana", "</s>")], f"other ids of {name}", said)
            check(get("tokens").split() == want, f"another order of {name}", get("tokens")[:200])

    def refused(pieces, name, words, more=b""):
        run("llm-convert", folder("refused", {"tokenizer.model": model(pieces, UNIGRAM, more=more), "tokenizer_config.json": {"tokenizer_class": name}}),
            "-o", path("bad.gguf"), "--vocab-only", code=1, has=words)

    refused(pieces, "PegasusTokenizerFast", "tokenizer.model: PegasusTokenizerFast gives tokens other ids than this file")
    refused(pieces, "XLMRobertaTokenizer", "but here they have 0, 2 and 1", more=field(41, 2) + field(42, 1))
    refused(pieces[:2], "CamembertTokenizer", "but here they have 0, 1 and -1")


# Marian: pieces of the text to read, with scores; tokens of both texts, with ids. "ana" is no token; "c" and "日本" are no pieces.
SOURCE = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)] + [(w, s, NORMAL) for w, s in WORDS] + [("[x]", 0, USER_DEFINED)]
TOKENS = ["</s>", "<unk>", ">>fra<<", SPACE + "le", "ban", SPACE + "ban", "c", "an", SPACE, "[x]", "日本", "a", "b", "n", SPACE + "a", "<pad>"]


def test_source():
    def put(name, source=SOURCE, tokens=TOKENS, kind=UNIGRAM, config={}, n=len(TOKENS), **more):
        return folder(name, {"source.spm": model(source, kind, remove=1), "target.spm": model([*SOURCE, (SPACE + "le", -1, NORMAL)], UNIGRAM),
                             "vocab.json": {t: i for i, t in enumerate(tokens)}, "tokenizer_config.json": {"source_lang": "en", **config},
                             "config.json": {"architectures": ["LlamaForCausalLM"], "vocab_size": n, "hidden_size": 32, "num_hidden_layers": 1,
                                             "intermediate_size": 32, "num_attention_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 64,
                                             "hidden_act": "silu", "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": n - 1}, **more})

    name = put("marian")
    # banana: "_ban" -6 and "ana" -3; bananac: a run that is a token; c c: each is one; "日本日" is none
    for text, want in (("banana", [SPACE + "ban", "<unk>"]), (" ban  an ", [SPACE + "ban", SPACE + "a", "n"]), ("banc", [SPACE + "ban", "c"]), ("日本 日本日", [SPACE, "日本", SPACE, "<unk>"]),
                       (">>fra<< ban", [">>fra<<", SPACE + "ban"]), ("b[x]", [SPACE, "b", "[x]"]), ("le", [SPACE, "<unk>"]), ("", [])):
        said = [int(line.split()[0]) for line in ids(name, text).splitlines()]
        check(said == [TOKENS.index(t) for t in want] + [0], f"other tokens of {text!r}", said)
    run("llm-convert", name, "-o", path("marian.gguf"), "--vocab-only")
    get = lambda key: run("llm-gguf", "get", path("marian.gguf"), "tokenizer.ggml." + key).strip()
    check([get(key) for key in ("model", "eos_token_id", "unknown_token_id", "padding_token_id", "add_bos_token", "add_eos_token")] ==
          ["t5", "0", "1", str(len(TOKENS) - 1), "false", "true"], "other keys")
    check(get("source_pieces").split() == [p[0] for p in SOURCE[3:]], "other pieces of the source", get("source_pieces"))
    check(run("llm-tokenize", "-m", name, "--decode", f"{len(TOKENS) - 1},3,5,10,0") == "le ban日本", "another text of tokens")
    for words, bad in (("source.spm: its kind is BPE, but beside a vocab.json only Unigram", dict(kind=BPE)),
                       ('"separate_vocabs": the text to read has other tokens', dict(config={"separate_vocabs": True})),
                       ("separate_vocabs is a string; it should be true or false", dict(config={"separate_vocabs": "yes"})),
                       ("source.spm: it has no pieces that a text can be cut into", dict(source=SOURCE[:3])),
                       ("vocab.json: it has no token <unk>", dict(tokens=[t for t in TOKENS if t != "<unk>"])),
                       ("vocab.json: the tokenizer has 16 tokens, but the model has rows for 15", dict(n=15)),
                       ("vocab.json: the object 'vocab' is missing", {"vocab.json": []})):
        run("llm-convert", put("bad-source", **bad), "-o", path("bad.gguf"), "--vocab-only", code=1, has=words)


# mBART's languages: the 25 of the first version, in the order of their ids, and those that version 50 adds
LANGUAGES = ("ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR "
             "vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH "
             "tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI").split()


def language_tokens(codes):
    """The tokens of mBART with the pieces of SOURCE, in the order of their ids."""
    return ["<s>", "<pad>", "</s>", "<unk>"] + [p[0] for p in SOURCE[3:]] + codes + ["<mask>"]


def test_languages():
    """Classes whose texts name their languages: with a class in either file, with the kind of model alone, and beside or in a tokenizer.json."""
    for k, (codes, config, in_config) in enumerate([(LANGUAGES, {"tokenizer_class": "MBart50Tokenizer"}, {}), (LANGUAGES, {}, {"tokenizer_class": "MBart50TokenizerFast"}),
                                                    (LANGUAGES[:25], {"tokenizer_class": "MBartTokenizerFast"}, {}), (LANGUAGES[:25], {}, {"model_type": "mbart"})]):
        want = language_tokens(codes)
        added = [{"id": want.index(t), "content": t, "special": True} for t in codes + ["<mask>"]]
        after = len(codes) == 25
        post = template([], ["</s>", "en_XX"]) if after else template(["en_XX"], ["</s>"])
        score = {p[0]: p[1] for p in SOURCE}
        kinds = {"<unk>": UNKNOWN, "[x]": USER_DEFINED}
        js = unigram_json([(t, score.get(t, 0), kinds.get(t, NORMAL if t in score else CONTROL)) for t in want], post=post)
        for files in ({"sentencepiece.bpe.model": model(SOURCE, UNIGRAM, remove=1)}, {"tokenizer.json": js},
                      {"sentencepiece.bpe.model": model(SOURCE, UNIGRAM, remove=1), "tokenizer.json": {"model": {"type": "Unigram"}, "added_tokens": added, "post_processor": post}}):
            one = sized(f"languages{k}{len(files)}", want, {**files, "tokenizer_config.json": {**config, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}}, **in_config)
            text = "banana</s>de_DE" if after else "de_DE banana"
            said = [int(line.split()[0]) for line in ids(one, text).splitlines()]
            parts = [SPACE + "ban", "ana", "</s>"]
            check(said == [want.index(t) for t in (parts + ["de_DE"] if after else ["de_DE"] + parts)], f"other tokens of {config}, {list(files)}", said)
            run("llm-convert", one, "-o", path("t5.gguf"), "--vocab-only", has="a text ends with </s> and the token" if after else "a text begins with the token of its language")
            check(run("llm-gguf", "get", path("t5.gguf"), "tokenizer.ggml.tokens").split() == want, f"another order of {config}, {list(files)}")
            os.remove(path(f"languages{k}{len(files)}/tokenizer_config.json"))
            for file in files:
                os.remove(os.path.join(one, file))


def test_languages_after_a_vocabulary():
    """M2M100: vocab.json has the ids, SentencePiece's file of the kind BPE the pieces, and the languages follow the last id, in the order of their names."""
    vocab = ["<s>", "<pad>", "</s>", "<unk>"] + [p[0] for p in reversed(SOURCE[3:])] + ["madeupword0000"]
    n_vocab = len(vocab) + 100 + 8  # the model has rows for eight words more
    for k, (config, in_config) in enumerate([({"tokenizer_class": "M2M100Tokenizer"}, {}), ({}, {"model_type": "m2m_100"})]):
        one = folder(f"m2m{k}", {"vocab.json": {t: i for i, t in enumerate(vocab)}, "sentencepiece.bpe.model": model(SOURCE, BPE, remove=1),
                                 "tokenizer_config.json": {**config, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}})
        old = json.load(open(one + "/config.json"))
        with open(one + "/config.json", "w") as f:
            json.dump({**old, "vocab_size": n_vocab, **in_config}, f)
        said = [int(line.split()[0]) for line in ids(one, "__am__ban").splitlines()]
        want = [len(vocab) + 1, vocab.index(SPACE + "ban"), vocab.index("</s>")]
        check(said == want, f"other tokens of M2M100 {config}", (said, want))
        for text in ("__am__ ban", "  __am__   ban  "):  # spaces behind the language's token, and at the ends, are none of the text
            check([int(line.split()[0]) for line in ids(one, text).splitlines()] == want, f"spaces of M2M100 {config}: {text!r}", ids(one, text))
        run("llm-convert", one, "-o", path("m2m.gguf"), "--vocab-only", has="a text begins with the token of its language")


def trie(units, text):
    """A charsmap of 512 units, of which these are used, and one replacement."""
    return struct.pack("<I", 4 * 512) + b"".join(struct.pack("<I", units.get(i, 0)) for i in range(512)) + text + b"\0"


def test_faults():
    good = model(PIECES, BPE)

    def wrong(data, words):
        run("llm-convert", folder("bad", {"tokenizer.model": data}), "-o", path("bad.gguf"), "--vocab-only", code=1, has=words)

    wrong(good[:-3], "tokenizer.model: ")
    wrong(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "tokenizer.model: this is a Git LFS pointer, not the file itself")
    wrong(good[:1000], "the file may be truncated")
    wrong(b"IQ== 0\nIg== 1\n", "a file of tiktoken; how text is cut into words")
    wrong(model(PIECES, 3), "its model_type is WORD")
    wrong(model(PIECES, 4), "its model_type is CHAR")
    wrong(model(PIECES, BPE, more=field(24, 1)), "its spaces are at the end of words")
    wrong(model(PIECES[:2] + [("", 0, NORMAL)], BPE), "piece 2, at byte")
    wrong(model(PIECES + [("c", float("nan"), NORMAL)], BPE), "its score is no number")
    wrong(model(PIECES + [("c", 0, 9)], BPE), "it has the unknown type 9")
    wrong(model(PIECES + [("c", 0, BYTE)], BPE), "it is a byte, but is not called <0xNN>")
    wrong(model(PIECES + [("<0xZZ>", 0, BYTE)], BPE), "it is a byte, but is not called <0xNN>")
    wrong(model(PIECES + [("a", 0, NORMAL)], BPE), "token 'a' has the ids")
    wrong(field(1, field(1, b"a")) + varint(1 << 3 | 3), "unknown form 3")
    for charsmap in (b"map", struct.pack("<I", 8) + b"\0" * 8, struct.pack("<I", 4) + b"\0" * 4 + b"abc", struct.pack("<I", 6) + b"\0" * 8):
        wrong(model(PIECES, UNIGRAM, charsmap=charsmap), f"tokenizer.model: its precompiled_charsmap has {len(charsmap)} bytes, which do not hold a trie")
    for units, words in (({0: 1 << 10, 0x40: 0x100 << 10 | 1 << 8 | 0x41, 0x140: 1 << 31}, "replaces 1 bytes by 17, at most 16 times as many"),
                         ({0: 1 << 10, 0x40: 0x41 << 10 | 0x41}, "has a string of more than 256 bytes"),  # 'A' leads back to itself
                         ({0: 1 << 10, 0x40: 0x100 << 10 | 1 << 8 | 0x41}, "has a string of 1 bytes without a replacement")):
        wrong(model(PIECES, UNIGRAM, charsmap=trie(units, b"b" * 17)), "tokenizer.model: its precompiled_charsmap " + words)
    run("llm-convert", folder("good", {"tokenizer.model": model(PIECES, UNIGRAM, charsmap=trie({0: 1 << 10, 0x40: 0x100 << 10 | 1 << 8 | 0x41,
                                                                                              0x140: 1 << 31}, b"b" * 16))}),
        "-o", path("good.gguf"), "--vocab-only")
    wrong(field(1, 7), "is not SentencePiece's")
    wrong(good + field(2, 7), "is not a message")
    wrong(good + varint(9 << 3) + b"\xff" * 11, "more than 64 bits")


if __name__ == "__main__":
    test_bpe()
    test_unigram()
    test_unigram_json()
    test_unigram_json_ends()
    test_ends_by_kind()
    test_fairseq()
    test_source()
    test_languages()
    test_languages_after_a_vocabulary()
    test_faults()
    sys.exit(finish())
