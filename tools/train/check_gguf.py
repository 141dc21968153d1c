"""An independent reading of a GGUF file: parses it, runs the model in float64 with numpy, prints text.

It shares no line with train.py or export.py, so that text that makes sense proves the file's conventions:
names, shapes, block layout, rotary pairs, tokenizer. It reads architecture "llama", types F32, F16, Q8_0.

    python3 check_gguf.py model.gguf                              greedy text after "Once upon a time"
    python3 check_gguf.py model.gguf --temperature 0.8 --seed 3
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


class Tokenizer:
    """SentencePiece byte-pair encoding: joins the neighbouring pair with the best score, first one first."""

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


class Model:
    """One token at a time with a key/value cache. Vectors are float64."""

    def __init__(self, keys, w):
        get = lambda name: keys["llama." + name]
        self.w, self.layers = w, get("block_count")
        self.heads = get("attention.head_count")
        self.kv = keys.get("llama.attention.head_count_kv", self.heads)
        self.eps = get("attention.layer_norm_rms_epsilon")
        self.head = get("embedding_length") // self.heads
        self.context = get("context_length")
        base = keys.get("llama.rope.freq_base", 10000.0)
        self.freq = base ** (-np.arange(0, self.head, 2) / self.head)
        self.reset()

    def reset(self):
        self.k = [[] for _ in range(self.layers)]
        self.v = [[] for _ in range(self.layers)]

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x) + self.eps) * self.w[name]

    def rope(self, x, pos):
        """x: (heads, head); pair (2i, 2i+1) as one complex number, turned by pos * freq[i]."""
        z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * pos * self.freq)
        return np.stack((z.real, z.imag), -1).reshape(x.shape)

    def step(self, token):
        """Logits of the token that follows."""
        w, x = self.w, self.w["token_embd.weight"][token]
        pos = len(self.k[0])
        for n in range(self.layers):
            b = f"blk.{n}."
            h = self.norm(x, b + "attn_norm.weight")
            q = self.rope((w[b + "attn_q.weight"] @ h).reshape(self.heads, -1), pos)
            self.k[n].append(self.rope((w[b + "attn_k.weight"] @ h).reshape(self.kv, -1), pos))
            self.v[n].append((w[b + "attn_v.weight"] @ h).reshape(self.kv, -1))
            k = np.repeat(np.array(self.k[n]), self.heads // self.kv, 1)     # (time, heads, head)
            v = np.repeat(np.array(self.v[n]), self.heads // self.kv, 1)
            s = np.einsum("hd,thd->ht", q, k) / np.sqrt(self.head)
            p = np.exp(s - s.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            x = x + w[b + "attn_output.weight"] @ np.einsum("ht,thd->hd", p, v).ravel()
            h = self.norm(x, b + "ffn_norm.weight")
            g = w[b + "ffn_gate.weight"] @ h
            x = x + w[b + "ffn_down.weight"] @ (g / (1 + np.exp(-g)) * (w[b + "ffn_up.weight"] @ h))
        x = self.norm(x, "output_norm.weight")
        return w.get("output.weight", w["token_embd.weight"]) @ x


def generate(keys, model, tok, prompt, count, temperature, rng):
    model.reset()
    ids = [keys["tokenizer.ggml.bos_token_id"], *tok.encode(prompt)]
    for i in ids:
        logits = model.step(i)
    new = []
    while len(new) < count and len(ids) + len(new) < model.context:
        if temperature > 0:
            p = np.exp((logits - logits.max()) / temperature)
            t = int(rng.choice(len(p), p=p / p.sum()))
        else:
            t = int(np.argmax(logits))
        if t == keys["tokenizer.ggml.eos_token_id"]:
            break
        new.append(t)
        logits = model.step(t)
    return tok.decode(ids + new).lstrip(" "), len(new)


def nll(model, tok, bos, eos, stories):
    """Mean loss over the tokens of the stories, each alone after <s>, nats per token."""
    total = count = 0
    for story in stories:
        model.reset()
        ids = [bos, *tok.encode(story), eos][:model.context]
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
    model, tok = Model(keys, tensors), Tokenizer(keys)
    if args.loss:
        with open(args.loss, encoding="utf-8") as f:
            stories = f.read().rstrip("\n").split("\n\n")[:args.stories]
        loss, n = nll(model, tok, keys["tokenizer.ggml.bos_token_id"], keys["tokenizer.ggml.eos_token_id"], stories)
        print(f"{loss:.4f} nats per token over {n} tokens")
        return
    for i in range(args.samples):
        text, n = generate(keys, model, tok, args.prompt, args.count, args.temperature,
                           np.random.default_rng(args.seed + i))
        print(text + f"\n[{n} tokens]")


if __name__ == "__main__":
    main()
