#!/usr/bin/env python3
"""Draws tokenizers, and compares llm-tokenize with the library that defines them:

    tests/real/tokenizer_json.py --bin build/bin [--count 2000] [--seed N]        # needs the package tokenizers 0.23.3
    tests/real/tokenizer_json.py --bin build/bin --frozen tests/data/tokenizers.jsonl.xz
    tests/real/tokenizer_json.py --write tests/data/tokenizers.jsonl.xz --count 200

Each tokenizer has steps drawn from all that the library has, with random options, and a vocabulary that the library's own trainers make
of a small text. Of each text, the ids (with special tokens, and with these as text) and the texts of the ids are compared."""
import argparse
import json
import lzma
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# --- texts ----------------------------------------------------------------------------------------

WORDS = ("the of and to in is that it was for on are as with his they I at be this have from or one had by word but not what all were we when "
         "your can said there use an each which she do how their if will up other about out many then them these so some her would make "
         "Hello World don't we'll I'm they've it's isn't state-of-the-art e.g. U.S.A. 3.14 1,000,000 2024 42 0x1F user@example.com "
         "naïve café Straße ÉCOLE İstanbul ǅ ﬁn ﬀ Ω Å ½ ² ①").split()
OTHERS = ["Привет мир", "привет", "你好世界", "日本語テキスト", "カタカナ ひらがな", "한국어 텍스트", "각 각", "नमस्ते दुनिया", "สวัสดีชาวโลก", "مرحبا بالعالم",
          "שלום עולם", "γειά σου Κόσμε ΣΑΣ", "Việt Nam tiếng", "Ünïcödé", "e\u0301 e\u0301\u0323 a\u0323\u0301", "\u1e9b\u0323 \u212b \u2126",
          "①②③ ㍿ ﷺ ㌀", "ｆｕｌｌ　ｗｉｄｔｈ", "\u0958\u09dc", "\u0344 \u0345\u0301", "👍🏽 👨‍👩‍👧 🇩🇪🇫🇷 🫩", "\u200b\u200c\u200d\ufeff", "a\u00adb", "\u0378 \u1abf \ua7cb",
          "x\u0300\u0301\u0302y", "\u00a9\u200d\u2122\ufe0f", "\u0600\u0661", "ﬁ\u0301 x\ufe0f", "\r\n\r", "\t\t\tif x:\n\t\treturn\n", "  two   three    four  ",
          "\u3000ideographic\u2003em\u00a0nbsp\u2028line\u2029par\u0085nel\x0bvt\x0cff", "\x00\x01\x1f\x7f\x80\x9f", "!?.,;:()[]{}<>«»“”‘’—–…·¡¿", "$€£¥+=<>|~^`",
          "1234567890 ١٢٣ ४५६ Ⅷ ⅓ 〇", "aaaaaaaaaaaaaaaaaaaaaaaa", "ababababab", "\u2581under\u2581score \u2581", "Ġspelled Ċ", "##ing ##", "<0x41><0x0A>", "&amp; &lt;"]
SPECIALS = ["<s>", "</s>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "<tok>", "<Tok>", "<TOK>", "[new]", "word", " spaced", "é", "end\n", "Élan", "▁x"]


def make_texts(rng, n, specials):
    texts = ["", " ", "  ", "\n", "a", " a", "a ", "Hello world", " Hello  world "] + OTHERS
    while len(texts) < n:
        parts = []
        for _ in range(rng.randint(1, 9)):
            kind = rng.random()
            if kind < 0.55:
                parts.append(rng.choice(WORDS))
            elif kind < 0.75:
                parts.append(rng.choice(OTHERS))
            elif kind < 0.93:
                parts.append(rng.choice(specials))
            else:
                parts.append("".join(chr(rng.choice([rng.randrange(0x20, 0x7f), rng.randrange(0x80, 0x800), rng.randrange(0x800, 0xd800),
                                                     rng.randrange(0xe000, 0x10000), rng.randrange(0x10000, 0x20000)]))
                                     for _ in range(rng.randint(1, 6))))
        texts.append("".join(p + rng.choice(["", "", " ", " ", " ", "  ", "\n", ", ", "-"]) for p in parts))
    return texts[:n]


TRAINING = [" ".join(WORDS), "The quick brown fox jumps over the lazy dog. Hello world, hello there! don't stop", "привет мир это текст", "你好世界 日本語 テキスト",
            "the theme there these they then thin thing things thinking", "one two three 123 456 2024 1,000", "café naïve école straße"] * 3


# --- tokenizers -----------------------------------------------------------------------------------

def charsmap(pairs):
    """A Precompiled map, in the format of models/text/charsmap.h."""
    import struct
    tree = {}
    values, text = {}, b""
    for key, value in sorted(pairs.items()):
        node = tree
        for byte in key.encode():
            node = node.setdefault(byte, {})
        values[id(node)] = len(text)
        node[None] = len(text)
        text += value.encode() + b"\0"
    units, used, bases = [0] * 1024, {0}, set()

    def place(node, at):
        children = [b for b in node if b is not None]
        base = 1
        while True:
            wanted = [base ^ b for b in children] + ([base] if None in node else [])
            if base not in bases and all(w not in used for w in wanted) and (at ^ base) < 1 << 21:
                break
            base += 1
        bases.add(base)
        for w in wanted:
            used.add(w)
            while w >= len(units):
                units.extend([0] * 1024)
        units[at] |= (at ^ base) << 10 | (256 if None in node else 0)
        if None in node:
            units[base] = 1 << 31 | node[None]
        for b in children:
            units[base ^ b] = b
        for b in children:
            place(node[b], base ^ b)
    place(tree, 0)
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + text


MAPS = [{"ﬁ": "fi", "①": "1", "Å": "Å", "e\u0301": "é", "\u3000": " ", "\n": " ", "\t": " ", "½": "1/2", "A": "a", "\u00a0": " "},
        {"ﬀ": "ff", "©": "(c)", "x": "", "é": "e", "\r": "", "…": "...", "ａ": "a", "\u0300": "", "한": "한국"}]


def draw_normalizer(rng, N, Regex):
    def one():
        return rng.choice([
            lambda: N.NFC(), lambda: N.NFD(), lambda: N.NFKC(), lambda: N.NFKD(), lambda: N.Lowercase(), lambda: N.StripAccents(), lambda: N.Nmt(),
            lambda: N.Strip(rng.random() < 0.6, rng.random() < 0.6), lambda: N.Prepend(rng.choice(["▁", "x ", " ", "né"])),
            lambda: N.Replace(rng.choice([" ", "a", "the", "é", "▁", "\n"]), rng.choice(["▁", "", "x", " ", "ab"])),
            lambda: N.Replace(Regex(rng.choice([" {2,}", r"\s+", r"[0-9]", r"\p{P}", r"(?i:the)", r"^\s+|\s+$"])), rng.choice(["▁", "", " ", "0"])),
            lambda: N.ByteLevel(), lambda: N.Precompiled(charsmap(rng.choice(MAPS))),
            lambda: N.BertNormalizer(rng.random() < 0.6, rng.random() < 0.6, rng.choice([None, True, False]), rng.random() < 0.6)])()
    n = rng.choice([0, 0, 1, 1, 1, 2, 3])
    if n == 0:
        return None
    return one() if n == 1 else N.Sequence([one() for _ in range(n)])


PATTERNS = [r"\s+", r"\w+|[^\w\s]+", r"\p{L}+", r"[0-9]{1,3}", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            r"\p{N}", r".", r"^", r"$", r"\b", r"(?=[A-Z])", r" ?\p{L}+| ?\p{N}+|\s", r"[\r\n]+", r"\s?\p{P}+"]


def draw_pre_tokenizer(rng, P, Regex, bytes_):
    behaviors = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]

    def one():
        return rng.choice([
            lambda: P.Whitespace(), lambda: P.WhitespaceSplit(), lambda: P.BertPreTokenizer(), lambda: P.Punctuation(rng.choice(behaviors)),
            lambda: P.Digits(rng.random() < 0.5), lambda: P.CharDelimiterSplit(rng.choice(" a.-▁")), lambda: P.UnicodeScripts(),
            lambda: P.Split(rng.choice([" ", "a", "the", "▁", "\n", ""]), rng.choice(behaviors), rng.random() < 0.3),
            lambda: P.Split(Regex(rng.choice(PATTERNS)), rng.choice(behaviors), rng.random() < 0.3), lambda: P.FixedLength(rng.randint(1, 9)),
            lambda: P.Metaspace(rng.choice("▁▁▁_"), rng.choice(["always", "first", "never"]), rng.random() < 0.5),
            lambda: P.ByteLevel(rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.5)])()
    n = rng.choice([0, 1, 1, 1, 2, 2, 3])
    steps = [one() for _ in range(n)] + ([P.ByteLevel(rng.random() < 0.3, True, rng.random() < 0.6)] if bytes_ else [])
    if not steps:
        return None
    return steps[0] if len(steps) == 1 else P.Sequence(steps)


def draw_decoder(rng, D, Regex):
    def one():
        return rng.choice([
            lambda: D.ByteLevel(), lambda: D.WordPiece(rng.choice(["##", "", "@@"]), rng.random() < 0.5), lambda: D.ByteFallback(), lambda: D.Fuse(),
            lambda: D.Metaspace(rng.choice("▁▁_"), rng.choice(["always", "first", "never"])), lambda: D.BPEDecoder(rng.choice(["</w>", "e"])),
            lambda: D.CTC(rng.choice(["<pad>", "a"]), rng.choice(["|", "▁"]), rng.random() < 0.5), lambda: D.Replace("▁", " "),
            lambda: D.Replace(Regex(r"[aeiou]"), "*"), lambda: D.Strip(" ", rng.randint(0, 2), 0)])()
    n = rng.choice([0, 1, 1, 1, 2, 3])
    if n == 0:
        return None
    return one() if n == 1 else D.Sequence([one() for _ in range(n)])


def usual(rng, T):
    """The steps of published kinds of tokenizers, with their decoders."""
    N, P, D = T["N"], T["P"], T["D"]
    return rng.choice([
        lambda: ("bpe", None, P.ByteLevel(False, True, True), D.ByteLevel(), {}),
        lambda: ("bpe", N.NFC(), P.Sequence([P.Split(T["Regex"](PATTERNS[4]), "isolated", False), P.ByteLevel(False, True, False)]), D.ByteLevel(), {}),
        lambda: ("bpe", None, P.Sequence([P.Digits(True), P.ByteLevel(False, True, True)]), D.ByteLevel(), {}),
        lambda: ("bpe", N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), None, D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]),
                 {"fallback": True}),
        lambda: ("bpe", N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous", False), D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()]), {"fallback": True}),
        lambda: ("bpe", None, P.Metaspace("▁", rng.choice(["always", "first", "never"]), rng.random() < 0.5), D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(),
                 D.Strip(" ", 1, 0)]), {"fallback": True}),
        lambda: ("bpe", N.Lowercase(), P.Whitespace(), D.BPEDecoder("</w>"), {"suffix": "</w>"}),
        lambda: ("wordpiece", N.BertNormalizer(True, True, rng.choice([None, True, False]), rng.random() < 0.6), P.BertPreTokenizer(), D.WordPiece("##", True), {}),
        lambda: ("unigram", N.Precompiled(charsmap(MAPS[0])), P.Sequence([P.WhitespaceSplit(), P.Metaspace("▁", "always", True)]), D.Metaspace("▁", "always"), {}),
        lambda: ("unigram", N.Sequence([N.Precompiled(charsmap(MAPS[0])), N.Replace(T["Regex"](" {2,}"), " ")]), P.Metaspace("▁", "always", True), D.Metaspace("▁", "always"), {}),
    ])()


def draw(rng, T):
    """Returns a tokenizer."""
    N, P, D, M, X, Regex = T["N"], T["P"], T["D"], T["M"], T["X"], T["Regex"]
    if rng.random() < 0.3:
        model, normalizer, pre, decoder, options = usual(rng, T)
    else:
        model = rng.choice(["bpe", "bpe", "bpe", "wordpiece", "wordlevel", "unigram"])
        normalizer, options = draw_normalizer(rng, N, Regex), {}
        pre, decoder = draw_pre_tokenizer(rng, P, Regex, model == "bpe" and rng.random() < 0.4), draw_decoder(rng, D, Regex)
        if model == "bpe":
            options = rng.choice([{}, {}, {"fallback": True}, {"suffix": "</w>"}, {"prefix": "##"}])
    bytes_ = "ByteLevel" in str(pre)
    unknown = rng.choice(["<unk>", "[UNK]"])
    size = rng.randint(120, 420)
    special = [unknown] if model != "bpe" or rng.random() < 0.5 else []
    if model == "bpe":
        trained = M.BPE(unk_token=unknown if special else None, fuse_unk=rng.random() < 0.5, byte_fallback=options.get("fallback", False),
                        ignore_merges=rng.random() < 0.2, continuing_subword_prefix=options.get("prefix"), end_of_word_suffix=options.get("suffix"))
        trainer = X.BpeTrainer(vocab_size=size + (256 if bytes_ else 0), special_tokens=special + [f"<0x{b:02X}>" for b in range(256) if options.get("fallback")],
                               initial_alphabet=P.ByteLevel.alphabet() if bytes_ and rng.random() < 0.9 else [], show_progress=False,
                               **{k: v for k, v in (("continuing_subword_prefix", options.get("prefix")), ("end_of_word_suffix", options.get("suffix"))) if v})
        if options.get("fallback"):
            trainer.vocab_size = size + 256
    elif model == "wordpiece":
        trained = M.WordPiece(unk_token=unknown, max_input_chars_per_word=rng.choice([100, 100, 5]))
        trainer = X.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    elif model == "wordlevel":
        trained = M.WordLevel(unk_token=unknown)
        trainer = X.WordLevelTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    else:
        trained = M.Unigram()
        trainer = X.UnigramTrainer(vocab_size=size, unk_token=unknown, special_tokens=special, show_progress=False)
    t = T["Tokenizer"](trained)
    if normalizer:
        t.normalizer = normalizer
    if pre:
        t.pre_tokenizer = pre
    t.train_from_iterator(TRAINING, trainer)
    made = json.loads(t.to_str())
    # what trainers cannot do: bytes that are special only by their place in the vocabulary
    made["added_tokens"] = [a for a in made["added_tokens"] if not a["content"].startswith("<0x")]
    if model == "unigram" and rng.random() < 0.3:
        made["model"]["byte_fallback"] = True
    if decoder:
        t.decoder = decoder
        made["decoder"] = json.loads(t.to_str())["decoder"]
    t = T["Tokenizer"].from_str(json.dumps(made))
    contents = rng.sample(SPECIALS, rng.randint(0, 5))
    for content in contents:
        special = rng.random() < 0.5
        odd = rng.random() < 0.5
        token = T["AddedToken"](content, single_word=odd and rng.random() < 0.3, lstrip=odd and rng.random() < 0.3, rstrip=odd and rng.random() < 0.3,
                                normalized=rng.random() < 0.4, special=special)
        (t.add_special_tokens if special else t.add_tokens)([token])
    ids = [c for c in contents if t.token_to_id(c) is not None]
    if ids and rng.random() < 0.6:
        def pick():
            c = rng.choice(ids)
            return c, t.token_to_id(c)
        cls, sep = pick(), pick()
        O = T["O"]
        t.post_processor = rng.choice([
            lambda: O.BertProcessing(sep, cls), lambda: O.RobertaProcessing(sep, cls), lambda: O.ByteLevel(),
            lambda: template(O, rng, cls, sep),
            lambda: O.Sequence([O.ByteLevel(), template(O, rng, cls, sep)])])()
    t = T["Tokenizer"].from_str(t.to_str())
    alike = [normalizer.normalize_str(a.content) if normalizer else a.content for a in t.get_added_tokens_decoder().values() if a.normalized]
    if len(set(alike)) < len(alike) or "" in alike:
        raise ValueError("the library takes any of the tokens that the normalizer makes alike, and finds one anywhere of which nothing is left")
    return t


def template(O, rng, cls, sep):
    # names of special tokens may not have spaces in a template written as text
    tokens = {"BEGIN": cls, "END": sep}
    single = rng.choice(["BEGIN $A END", "BEGIN $A", "$A END", "BEGIN END $A", "$A END BEGIN", "$A"])
    return O.TemplateProcessing(single=single, pair="$A $B", special_tokens=[("BEGIN", cls[1]), ("END", sep[1])]) if tokens else None


def answer(f):
    """What the library returns; None where it raises an error, also by a panic."""
    try:
        return f()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None


def answers(t, texts):
    """What the library says: of each text, ids, ids with special tokens as text and none added, and texts of the ids without and with special tokens."""
    rows = []
    special = {t.token_to_id(a.content): a.content for a in t.get_added_tokens_decoder().values() if a.special}
    unknown = {i for i, content in special.items() if content in ("<unk>", "[UNK]")}
    for text in texts:
        ids = answer(lambda: t.encode(text).ids)
        t.encode_special_tokens = True
        as_text = answer(lambda: t.encode(text, add_special_tokens=False).ids)
        t.encode_special_tokens = False
        # the library's models can make special tokens of ordinary text; here no text becomes one, so there is nothing to compare
        if as_text and any(i in special and (i not in unknown or special[i] in text) for i in as_text):
            as_text = None
        rows.append([ids, as_text] + [answer(lambda: t.decode(ids, skip_special_tokens=skip)) if ids is not None else None for skip in (True, False)])
    return rows


# --- the comparison -------------------------------------------------------------------------------

def run(tool, path, lines, *options):
    """Returns (lines of the answer, message)."""
    p = subprocess.run([tool, "-q", "-m", path, "--json-lines", *options], input="".join(line + "\n" for line in lines), capture_output=True,
                       text=True, encoding="utf-8", errors="surrogateescape", timeout=120)
    return (p.stdout.split("\n"), None) if p.returncode == 0 else (None, p.stderr.strip())


def compare(tool, folder, number, definition, texts, rows, verbose):
    """Returns the differences: [(what, text, right, got)]."""
    path = os.path.join(folder, f"t{number}.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(definition)
    wrong = []
    for what, column, options in (("ids", 0, ["--ids"]), ("ids, special as text", 1, ["--ids", "--no-parse-special", "--no-bos"])):
        here = [(text, row[column]) for text, row in zip(texts, rows) if row[column] is not None]
        got, message = run(tool, path, [json.dumps(text) for text, _ in here], *options)
        if message:
            return [(what, "", "", message)]
        wrong += [(what, text, right, g) for (text, right), g in zip(here, got) if json.loads(g) != right]
    for what, column, options in (("text", 2, []), ("text with special tokens", 3, ["--special"])):
        # bytes that make no character stay as they are here, and become U+FFFD in the library
        here = [(row[0], row[column]) for row in rows if row[0] and row[column] is not None and "\ufffd" not in row[column]]
        got, message = run(tool, path, [json.dumps(ids) for ids, _ in here], "--decode", "-", *options)
        if message:
            return wrong + [(what, "", "", message)]
        wrong += [(what, ids, right, g) for (ids, right), g in zip(here, got) if json.loads(g) != right]
    os.remove(path)
    return wrong


def steps_of(definition):
    d = json.loads(definition)

    def names(v):
        if not v:
            return "-"
        parts = v.get("normalizers") or v.get("pretokenizers") or v.get("decoders") or v.get("processors")
        return "[" + " ".join(map(names, parts)) + "]" if parts else v["type"]
    return " ".join(f"{k}={names(d.get(k))}" for k in ("normalizer", "pre_tokenizer", "decoder", "post_processor")) + f" model={d['model']['type']}"


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--bin")
    a.add_argument("--count", type=int, default=2000)
    a.add_argument("--texts", type=int, default=200)
    a.add_argument("--seed", type=int, default=int(os.environ.get("GGL_TEST_SEED", "1")))
    a.add_argument("--frozen")
    a.add_argument("--write")
    a.add_argument("--show", type=int, default=5)
    a.add_argument("--keep", action="store_true")
    o = a.parse_args()
    tool = os.path.join(o.bin, "llm-tokenize") if o.bin else None
    if o.frozen:
        with lzma.open(o.frozen, "rt", encoding="utf-8") as f:
            cases = [json.loads(line) for line in f]
        texts = cases[0]["texts"]
        cases = [(i, json.dumps(c["tokenizer"], ensure_ascii=False), texts, c["rows"]) for i, c in enumerate(cases[1:])]
    else:
        try:
            from tokenizers import AddedToken, Regex, Tokenizer, __version__, decoders, models, normalizers, pre_tokenizers, processors, trainers
        except ImportError:
            print("tokenizers: the package is not installed")
            return 77
        T = {"N": normalizers, "P": pre_tokenizers, "D": decoders, "M": models, "X": trainers, "O": processors, "Regex": Regex, "Tokenizer": Tokenizer,
             "AddedToken": AddedToken}
        print(f"tokenizers {__version__}, seed {o.seed}")
        all_texts = make_texts(random.Random(o.seed), o.texts, SPECIALS)

        def generate():
            made = tried = 0
            while made < o.count:
                tried += 1
                try:
                    t = draw(random.Random(f"{o.seed}.{tried}"), T)
                except BaseException as e:  # steps that the library's own trainers refuse
                    if isinstance(e, KeyboardInterrupt):
                        raise
                    continue
                yield tried, t.to_str(), all_texts, answers(t, all_texts)
                made += 1
        if o.write:
            with lzma.open(o.write, "wt", encoding="utf-8", preset=9) as f:
                f.write(json.dumps({"package": f"tokenizers {__version__}", "texts": all_texts}, ensure_ascii=False) + "\n")
                for _, definition, _, rows in generate():
                    f.write(json.dumps({"tokenizer": json.loads(definition), "rows": rows}, ensure_ascii=False, separators=(",", ":")) + "\n")
            return 0
        cases = generate()
    n = n_wrong = n_rows = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        pending = []

        def take(job):
            nonlocal n, n_wrong
            number, definition, future = job
            wrong = future.result()
            n += 1
            if wrong:
                n_wrong += 1
                if n_wrong <= o.show:
                    print(f"tokenizer {number}: {len(wrong)} differences; {steps_of(definition)}")
                    for what, text, right, got in wrong[:3]:
                        print(f"    {what} of {text!r:.300}\n      right {right!r:.400}\n      got   {got!r:.400}")
                    if o.keep:
                        with open(f"wrong{number}.json", "w", encoding="utf-8") as f:
                            f.write(definition)
        for number, definition, texts, rows in cases:
            n_rows += sum(r[0] is not None for r in rows)
            pending.append((number, definition, pool.submit(compare, tool, folder, number, definition, texts, rows, False)))
            if len(pending) > 8:
                take(pending.pop(0))
        for job in pending:
            take(job)
    print(f"{n} tokenizers, {n_rows} texts of theirs; {n_wrong} tokenizers differ")
    return 1 if n_wrong or n == 0 else 0


sys.exit(main())
