"""An independent reading of a GGUF file: parses it, runs the model in float64 with numpy, prints text.

It shares no code with the programs, so sensible text proves the file's conventions: names, shapes, block layout, rotary pairs, tokenizer. It reads the architectures llama, gpt2, qwen2, qwen3, the
tokenizers "llama" and "gpt2" (with the words of gpt-2 and qwen2), and the types F32, F16, Q8_0.

    python3 check_gguf.py model.gguf                              greedy text after "Once upon a time"
    python3 check_gguf.py model.gguf --temperature 0.8 --seed 3
    python3 check_gguf.py model.gguf --count 40 --plain           the text alone, as tests/data records it
    python3 check_gguf.py model.gguf --turns chat.txt             a conversation, by a model with the marks of chat.jinja
    python3 check_gguf.py model.gguf --dump                       keys and tensors only
"""

import argparse
import struct
import sys

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
F32, F16, Q8_0 = 0, 1, 8


class Reader:
    """Reads little-endian values one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, fmt):
        values = struct.unpack_from("<" + fmt, self.data, self.at)
        self.at += struct.calcsize("<" + fmt)
        return values if len(values) != 1 else values[0]

    def string(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, n = self.take("I"), self.take("Q")
            if kind in SCALARS:
                return list(np.atleast_1d(self.take(f"{n}{SCALARS[kind]}")))
            return [self.value(kind) for _ in range(n)]
        return self.take(SCALARS[kind])


def load(path):
    """(keys, tensors): tensors as float64 arrays in row-major shape, i.e. (ne[1], ne[0])."""
    with open(path, "rb") as f:
        data = f.read()
    r = Reader(data)
    magic, version = r.take("4s"), r.take("I")
    if magic != b"GGUF" or version not in (2, 3):
        sys.exit(f"{path}: not a GGUF file of version 2 or 3")
    tensors, keys = r.take("Q"), {}
    for _ in range(r.take("Q")):
        name = r.string()
        keys[name] = r.value(r.take("I"))
    infos = []
    for _ in range(tensors):
        name, dims = r.string(), r.take("I")
        ne = np.atleast_1d(r.take(f"{dims}Q")).astype(int)
        infos.append((name, ne, r.take("I"), r.take("Q")))
    align = keys.get("general.alignment", 32)
    base = -(-r.at // align) * align
    out = {}
    for name, ne, kind, offset in infos:
        n, at = int(np.prod(ne)), base + offset
        if kind == F32:
            x = np.frombuffer(data, "<f4", n, at).astype(np.float64)
        elif kind == F16:
            x = np.frombuffer(data, "<f2", n, at).astype(np.float64)
        elif kind == Q8_0:       # 34 bytes: f16 scale, 32 signed bytes
            blocks = np.frombuffer(data, np.dtype([("d", "<f2"), ("q", "i1", 32)]), n // 32, at)
            x = (blocks["d"].astype(np.float64)[:, None] * blocks["q"]).ravel()
        else:
            sys.exit(f"{name}: type {kind} is not read here")
        out[name] = x.reshape(ne[::-1])
        out[name].flags.writeable = False
    return keys, out, [(n, list(map(int, e)), k) for n, e, k, _ in infos]


class SentencePiece:
    """Byte-pair encoding by scores: joins the neighbouring pair with the best score; of equals, the first."""

    def __init__(self, keys):
        self.pieces = keys["tokenizer.ggml.tokens"]
        self.scores = keys["tokenizer.ggml.scores"]
        self.kinds = keys["tokenizer.ggml.token_type"]
        self.ids = {p: i for i, p in enumerate(self.pieces)}
        self.prefix = keys.get("tokenizer.ggml.add_space_prefix", True)

    def encode(self, text):
        parts = list((" " if self.prefix and text else "") + text)
        parts = ["\u2581" if c == " " else c for c in parts]
        while True:
            best = None
            for i in range(len(parts) - 1):
                t = self.ids.get(parts[i] + parts[i + 1])
                if t is not None and (best is None or self.scores[t] > best[0]):
                    best = (self.scores[t], i)
            if best is None:
                break
            i = best[1]
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        out = []
        for p in parts:
            out += [self.ids[p]] if p in self.ids else [self.ids[f"<0x{b:02X}>"] for b in p.encode()]
        return out

    def decode(self, ids):
        data = b""
        for i in ids:
            if self.kinds[i] == 6:
                data += bytes([int(self.pieces[i][3:5], 16)])
            elif self.kinds[i] == 1:
                data += self.pieces[i].replace("\u2581", " ").encode()
        return data.decode("utf-8", "replace")


class ByteLevel:
    """GPT-2's byte-pair encoding: bytes spelled as letters, words by a pattern, in each the earliest merge first."""

    WORDS = {
        "gpt-2": r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
        "qwen2": r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
                 r"""|\s*[\r\n]+|\s+(?!\S)|\s+""",
    }

    def __init__(self, keys):
        import regex                                     # Debian's python3-regex; only this kind needs it
        self.split = regex.compile(self.WORDS[keys["tokenizer.ggml.pre"]]).findall
        self.pieces = keys["tokenizer.ggml.tokens"]
        self.kinds = keys["tokenizer.ggml.token_type"]
        self.ids = {p: i for i, p in enumerate(self.pieces)}
        self.rank = {m: i for i, m in enumerate(keys["tokenizer.ggml.merges"])}
        shown = [b for b in range(256) if chr(b).isprintable() and b != 32]
        self.letter = {b: chr(b) for b in shown}
        for b in range(256):
            self.letter.setdefault(b, chr(256 + len(self.letter) - len(shown)))
        self.byte = {c: b for b, c in self.letter.items()}

    def encode(self, text):
        out = []
        for word in self.split(text):
            parts = [self.letter[b] for b in word.encode()]
            while len(parts) > 1:
                ranks = [self.rank.get(f"{a} {b}", 1 << 30) for a, b in zip(parts, parts[1:])]
                i = int(np.argmin(ranks))
                if ranks[i] == 1 << 30:
                    break
                parts[i:i + 2] = [parts[i] + parts[i + 1]]
            out += [self.ids[p] for p in parts]
        return out

    def decode(self, ids):
        text = "".join(self.pieces[i] for i in ids if self.kinds[i] == 1)
        return bytes(self.byte[c] for c in text).decode("utf-8", "replace")


TOKENIZERS = {"llama": SentencePiece, "gpt2": ByteLevel}


class Model:
    """One token at a time with a key/value cache. Vectors are float64. Subclasses add what is special in a family."""

    def __init__(self, keys, w):
        arch = keys["general.architecture"]
        get = lambda name, *other: keys.get(f"{arch}.{name}", *other)
        self.w, self.layers = w, get("block_count")
        self.heads = get("attention.head_count")
        self.kv = get("attention.head_count_kv", self.heads)
        self.eps = get("attention.layer_norm_rms_epsilon", get("attention.layer_norm_epsilon"))
        self.head = get("attention.key_length", get("embedding_length") // self.heads)
        self.context = get("context_length")
        base = get("rope.freq_base", 10000.0)
        self.freq = base ** (-np.arange(0, self.head, 2) / self.head)
        self.reset()

    def reset(self):
        self.k = [[] for _ in range(self.layers)]
        self.v = [[] for _ in range(self.layers)]

    def linear(self, x, name):
        y = self.w[name + ".weight"] @ x
        return y + self.w[name + ".bias"] if name + ".bias" in self.w else y

    def norm(self, x, name):
        """Over the last axis."""
        return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + self.eps) * self.w[name + ".weight"]

    def rope(self, x, pos):
        """x: (heads, head); pair (2i, 2i+1) as one complex number, turned by pos * freq[i]."""
        z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * pos * self.freq)
        return np.stack((z.real, z.imag), -1).reshape(x.shape)

    def embed(self, token, pos):
        return self.w["token_embd.weight"][token]

    def qkv(self, h, b, pos):
        q = self.rope(self.linear(h, b + "attn_q").reshape(self.heads, -1), pos)
        k = self.rope(self.linear(h, b + "attn_k").reshape(self.kv, -1), pos)
        return q, k, self.linear(h, b + "attn_v").reshape(self.kv, -1)

    def ffn(self, h, b):
        g = self.linear(h, b + "ffn_gate")
        return self.linear(g / (1 + np.exp(-g)) * self.linear(h, b + "ffn_up"), b + "ffn_down")

    def step(self, token):
        """Logits of the token that follows."""
        pos = len(self.k[0])
        x = self.embed(token, pos)
        for n in range(self.layers):
            b = f"blk.{n}."
            q, new_k, new_v = self.qkv(self.norm(x, b + "attn_norm"), b, pos)
            self.k[n].append(new_k)
            self.v[n].append(new_v)
            k = np.repeat(np.array(self.k[n]), self.heads // self.kv, 1)     # (time, heads, head)
            v = np.repeat(np.array(self.v[n]), self.heads // self.kv, 1)
            s = np.einsum("hd,thd->ht", q, k) / np.sqrt(self.head)
            p = np.exp(s - s.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            x = x + self.linear(np.einsum("ht,thd->hd", p, v).ravel(), b + "attn_output")
            x = x + self.ffn(self.norm(x, b + "ffn_norm"), b)
        x = self.norm(x, "output_norm")
        return self.w.get("output.weight", self.w["token_embd.weight"]) @ x


class GPT2(Model):
    def embed(self, token, pos):
        return self.w["token_embd.weight"][token] + self.w["position_embd.weight"][pos]

    def norm(self, x, name):
        x = x - np.mean(x)
        return x / np.sqrt(np.mean(x * x) + self.eps) * self.w[name + ".weight"] + self.w[name + ".bias"]

    def qkv(self, h, b, pos):
        return self.linear(h, b + "attn_qkv").reshape(3, self.heads, self.head)

    def ffn(self, h, b):
        u = self.linear(h, b + "ffn_up")
        return self.linear(u / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u ** 3))), b + "ffn_down")


class Qwen2(Model):
    def rope(self, x, pos):
        """The pair (i, i + head/2) as one complex number."""
        half = self.head // 2
        z = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * pos * self.freq)
        return np.concatenate((z.real, z.imag), -1)


class Qwen3(Qwen2):
    def qkv(self, h, b, pos):
        q = self.norm(self.linear(h, b + "attn_q").reshape(self.heads, -1), b + "attn_q_norm")
        k = self.norm(self.linear(h, b + "attn_k").reshape(self.kv, -1), b + "attn_k_norm")
        return self.rope(q, pos), self.rope(k, pos), self.linear(h, b + "attn_v").reshape(self.kv, -1)


MODELS = {"llama": Model, "gpt2": GPT2, "qwen2": Qwen2, "qwen3": Qwen3}


def begin(keys):
    """The tokens that begin a text: the bos token, unless the file says that it has none."""
    return [keys["tokenizer.ggml.bos_token_id"]] if keys.get("tokenizer.ggml.add_bos_token", True) else []


def generate(keys, model, tok, prompt, count, temperature, rng):
    """(text, new tokens, the smallest lead of the best logit over the second best)"""
    model.reset()
    ids = [*begin(keys), *tok.encode(prompt)]
    for i in ids:
        logits = model.step(i)
    new, lead = [], np.inf
    while len(new) < count and len(ids) + len(new) < model.context:
        second, best = np.partition(logits, -2)[-2:]
        lead = min(lead, best - second)
        if temperature > 0:
            p = np.exp((logits - logits.max()) / temperature)
            t = int(rng.choice(len(p), p=p / p.sum()))
        else:
            t = int(np.argmax(logits))
        if t == keys["tokenizer.ggml.eos_token_id"]:
            break
        new.append(t)
        logits = model.step(t)
    return tok.decode(ids + new).lstrip(" "), len(new), lead


def converse(keys, model, tok, turns, count):
    """Prints a conversation: each turn, and the greedy answer after all that was said before. Returns the smallest lead."""
    model.reset()
    end, lead = keys["tokenizer.ggml.eos_token_id"], np.inf
    mark = lambda role: tok.ids[f"<|{role}|>"]
    say = lambda ids: [model.step(i) for i in ids][-1]
    say(begin(keys))
    for turn in turns:
        logits, new = say([mark("user"), *tok.encode(turn), end, mark("assistant")]), []
        while len(new) < count:
            second, best = np.partition(logits, -2)[-2:]
            lead = min(lead, best - second)
            new.append(int(np.argmax(logits)))
            logits = model.step(new[-1])
            if new[-1] == end:
                break
        print(f"> {turn}\n{tok.decode(new).strip()}\n")
    return lead


def nll(model, tok, before, eos, stories):
    """Mean loss over the tokens of the stories, each by itself, in nats per token."""
    total = count = 0
    for story in stories:
        model.reset()
        ids = [*before, *tok.encode(story), eos][:model.context]
        for a, b in zip(ids, ids[1:]):
            logits = model.step(a)
            top = logits.max()
            total += top + np.log(np.exp(logits - top).sum()) - logits[b]
            count += 1
    return total / count, count


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("model")
    ap.add_argument("--prompt", default="Once upon a time")
    ap.add_argument("--count", type=int, default=256)
    ap.add_argument("--temperature", type=float, default=0.0)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--samples", type=int, default=1)
    ap.add_argument("--loss", help="a text of stories, one empty line between two: prints the mean loss instead")
    ap.add_argument("--stories", type=int, default=20, help="how many of them")
    ap.add_argument("--turns", help="a text, each line a user's turn: prints the conversation instead")
    ap.add_argument("--plain", action="store_true", help="no count of the tokens after the text")
    ap.add_argument("--dump", action="store_true")
    args = ap.parse_args()
    keys, tensors, infos = load(args.model)
    if args.dump:
        for name, value in keys.items():
            text = f"[{len(value)}] {value[:6]} ..." if isinstance(value, list) else repr(value)
            print(f"{name} = {text}")
        for info in infos:
            print(*info)
        return
    model = MODELS[keys["general.architecture"]](keys, tensors)
    tok = TOKENIZERS[keys["tokenizer.ggml.model"]](keys)
    if args.loss:
        with open(args.loss, encoding="utf-8") as f:
            stories = f.read().rstrip("\n").split("\n\n")[:args.stories]
        loss, n = nll(model, tok, begin(keys), keys["tokenizer.ggml.eos_token_id"], stories)
        print(f"{loss:.4f} nats per token over {n} tokens")
        return
    if args.turns:
        with open(args.turns, encoding="utf-8") as f:
            lead = converse(keys, model, tok, f.read().split("\n")[:-1], args.count)
        print(f"smallest lead {lead:.3f}", file=sys.stderr)
        return
    for i in range(args.samples):
        text, n, lead = generate(keys, model, tok, args.prompt, args.count, args.temperature,
                                 np.random.default_rng(args.seed + i))
        print(text if args.plain else text + f"\n[{n} tokens; smallest lead {lead:.3f}]")


if __name__ == "__main__":
    main()
