"""Small text models for ./eyes.py, and their forward passes in float64 for texts with rows of pictures: llama, gemma3 (whose rows of a picture see each other),
qwen2vl and qwen3vl (whose tokens have places of three numbers, and whose first layers add numbers of a picture's rows)."""
import math

import numpy as np

import gguf
from blocks import gelu, merge_heads, rms_norm, silu, softmax, split_heads

EPS = 1e-2
N_HEAD, N_KV, D, N_FF, N_LAYER = 4, 2, 12, 40, 3


def byte_names():
    """GPT-2's names of bytes: printable ones stand for themselves, the others for characters from U+0100 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(other)) for b in range(256)]


WORDS = []  # tokens of several letters, which ./eye_kinds.py adds


def tokens_of(text):
    out = []
    while text:
        word = next((w for w in WORDS if text.startswith(w)), None)
        if word:
            out.append(256 + WORDS.index(word))
        else:
            word = text[0]
            out.append(ord(word))
        text = text[len(word):]
    return out


def rotate(x, angle, halves):
    """x [T, H, d], angle [T, d/2]."""
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    if halves:
        a, b = np.split(x, 2, -1)
        return np.concatenate([a * c - b * s, a * s + b * c], -1)
    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([a * c - b * s, a * s + b * c], -1).reshape(x.shape)


class Text:
    together = False
    mrope = False
    halves = True
    n_deep = 0
    theta = 10000.0

    def __init__(self, g, eye):
        self.n_embd = eye.n_text
        n, self.n_vocab = self.n_embd, 256 + len(WORDS)
        random = lambda *shape: (g.normal(size=shape) / math.sqrt(shape[-1])).astype(np.float32)
        norm = lambda k: (1 + 0.3 * g.normal(size=k)).astype(np.float32)
        self.w = {"token_embd.weight": g.normal(size=(self.n_vocab, n)).astype(np.float32), "output_norm.weight": norm(n),
                  "output.weight": 3 * random(self.n_vocab, n)}
        for l in range(N_LAYER):
            b = f"blk.{l}."
            self.w |= {b + "attn_norm.weight": norm(n), b + "ffn_norm.weight": norm(n), b + "attn_q.weight": 1.5 * random(N_HEAD * D, n),
                       b + "attn_k.weight": 1.5 * random(N_KV * D, n), b + "attn_v.weight": random(N_KV * D, n), b + "attn_output.weight": random(n, N_HEAD * D),
                       b + "ffn_gate.weight": random(N_FF, n), b + "ffn_up.weight": random(N_FF, n), b + "ffn_down.weight": 2 * random(n, N_FF)}
            self.more(b, g, norm)
        eye.fit_text(self)
        arch = self.arch
        names = byte_names()
        self.meta = {"general.architecture": arch} | {f"{arch}.{k}": v for k, v in {
            "embedding_length": n, "feed_forward_length": N_FF, "block_count": N_LAYER, "attention.head_count": N_HEAD, "attention.head_count_kv": N_KV,
            "attention.key_length": D, "attention.value_length": D, "context_length": 4096, "attention.layer_norm_rms_epsilon": EPS,
            "rope.freq_base": self.theta, **self.keys()}.items()}
        self.meta |= {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": names + WORDS,
                      "tokenizer.ggml.token_type": [1] * 256 + [3] * len(WORDS), "tokenizer.ggml.merges": gguf.Typed(gguf.ARRAY, [], gguf.STRING),
                      "tokenizer.ggml.add_bos_token": False}
        self.w64 = {k: v.astype(np.float64) for k, v in self.w.items()}

    def more(self, b, g, norm):
        pass

    def keys(self):
        return {}

    def lin(self, x, name):
        return x @ self.w64[name + ".weight"].T + self.w64.get(name + ".bias", 0)

    def embed(self, tokens):
        return self.w64["token_embd.weight"][tokens]

    def angles(self, l, place):
        f = self.theta ** (-2 * np.arange(D // 2) / D)
        return place[:, :1] * f

    def qk(self, b, q, k):
        return q, k

    def visible(self, l, n, end):
        i, j = np.arange(n)[:, None], np.arange(n)
        return j < end[:, None]

    def feed(self, b, h):
        return self.lin(silu(self.lin(h, b + "ffn_gate")) * self.lin(h, b + "ffn_up"), b + "ffn_down")

    def after(self, b, what, y):
        return y

    def forward(self, x, place, end, deep):
        w, n = self.w64, len(x)
        for l in range(N_LAYER):
            b = f"blk.{l}."
            h = rms_norm(x, w[b + "attn_norm.weight"], EPS)
            q, k = self.qk(b, split_heads(self.lin(h, b + "attn_q"), N_HEAD), split_heads(self.lin(h, b + "attn_k"), N_KV))
            v = split_heads(self.lin(h, b + "attn_v"), N_KV)
            angle = self.angles(l, place)
            q, k = rotate(q, angle, self.halves), rotate(k, angle, self.halves)
            k, v = (np.repeat(t, N_HEAD // N_KV, 1) for t in (k, v))
            s = np.where(self.visible(l, n, end), np.einsum("ihd,jhd->hij", q, k) / math.sqrt(D), -np.inf)
            a = np.einsum("hij,jhd->ihd", softmax(s), v)
            x = x + self.after(b, "post_attention_norm", self.lin(merge_heads(a), b + "attn_output"))
            x = x + self.after(b, "post_ffw_norm", self.feed(b, rms_norm(x, w[b + "ffn_norm.weight"], EPS)))
            if l < self.n_deep:
                x = x + deep[:, l]
        return rms_norm(x, w["output_norm.weight"], EPS) @ w["output.weight"].T

    def logits(self, parts):
        """parts: tokens, and rows of pictures (eye_kinds.Seen)."""
        x, place, end, deep = [], [], [], []
        zero, at = np.zeros((self.n_deep, self.n_embd)), 0
        for p in parts:
            if isinstance(p, int):
                x.append(self.embed(p))
                place.append((at, at, at))
                deep.append(zero)
                end.append(len(x))
                at += 1
                continue
            last = len(x) + len(p.rows)
            for i, row in enumerate(p.rows):
                x.append(row[: self.n_embd])
                deep.append(row[self.n_embd:].reshape(self.n_deep, self.n_embd))
                place.append((at, at + p.places[i][0], at + p.places[i][1]) if self.mrope else (at + i,) * 3)
                end.append(last if self.together else len(x))
            at += max(max(y, x_) for y, x_ in p.places) + 1 if self.mrope else len(p.rows)
        return self.forward(np.array(x), np.array(place, float), np.array(end), np.array(deep))


class Llama(Text):
    arch, halves = "llama", False


class LlamaFactors(Llama):
    """MiniCPM-V 4's: divisors of the frequencies, other ones in contexts that are longer than the first."""

    original = 9

    def __init__(self, g, eye):
        super().__init__(g, eye)
        for name in ("long", "short"):
            self.w[f"rope_factors_{name}.weight"] = g.uniform(0.5, 4, D // 2).astype(np.float32)
            self.w64[f"rope_factors_{name}.weight"] = self.w[f"rope_factors_{name}.weight"].astype(np.float64)

    def keys(self):
        return {"rope.scaling.original_context_length": self.original}

    def angles(self, l, place):
        return super().angles(l, place) / self.w64["rope_factors_long.weight"]


class Gemma3(Text):
    arch, together, theta, window = "gemma3", True, 1e6, 5

    def more(self, b, g, norm):
        for name, k in (("attn_q_norm", D), ("attn_k_norm", D), ("post_attention_norm", self.n_embd), ("post_ffw_norm", self.n_embd)):
            self.w[f"{b}{name}.weight"] = norm(k)

    def keys(self):
        return {"attention.sliding_window": self.window, "attention.sliding_window_pattern": 2}

    def embed(self, tokens):
        return super().embed(tokens) * math.sqrt(self.n_embd)

    def is_near(self, l):
        return (l + 1) % 2 != 0

    def angles(self, l, place):
        f = (10000.0 if self.is_near(l) else self.theta) ** (-2 * np.arange(D // 2) / D)
        return place[:, :1] * f

    def qk(self, b, q, k):
        return rms_norm(q, self.w64[b + "attn_q_norm.weight"], EPS), rms_norm(k, self.w64[b + "attn_k_norm.weight"], EPS)

    def visible(self, l, n, end):
        i, j = np.arange(n)[:, None], np.arange(n)
        return (j < end[:, None]) & (j > i - (self.window if self.is_near(l) else n))

    def feed(self, b, h):
        return self.lin(gelu(self.lin(h, b + "ffn_gate")) * self.lin(h, b + "ffn_up"), b + "ffn_down")

    def after(self, b, what, y):
        return rms_norm(y, self.w64[f"{b}{what}.weight"], EPS)


class Qwen2(Text):
    arch = "qwen2"

    def more(self, b, g, norm):
        for name, k in (("attn_q", N_HEAD * D), ("attn_k", N_KV * D), ("attn_v", N_KV * D)):
            self.w[f"{b}{name}.bias"] = (0.3 * g.normal(size=k)).astype(np.float32)


class Qwen2VL(Qwen2):
    arch, mrope, sections = "qwen2vl", True, (2, 3, 1)

    def keys(self):
        return {"rope.dimension_sections": [*self.sections, 0]}

    def which(self):
        """For each frequency, whether the time (0), line (1) or column (2) turns it."""
        return np.repeat(np.arange(3), self.sections)

    def angles(self, l, place):
        f = self.theta ** (-2 * np.arange(D // 2) / D)
        return place[:, self.which()] * f


class Qwen3VL(Qwen2VL):
    arch, sections = "qwen3vl", (3, 2, 1)

    def __init__(self, g, eye):
        self.n_deep = eye.n_deep
        super().__init__(g, eye)

    def more(self, b, g, norm):
        for name in ("attn_q_norm", "attn_k_norm"):
            self.w[f"{b}{name}.weight"] = norm(D)

    def keys(self):
        return super().keys() | ({"n_deepstack_layers": self.n_deep} if self.n_deep else {})

    def which(self):
        """By turns: t y x t y x .., as long as line and column have some left."""
        out = np.zeros(D // 2, int)
        for k in (1, 2):
            out[k : 3 * self.sections[k] : 3] = k
        return out

    qk = Gemma3.qk


class Glm4(Qwen2VL):
    arch = "glm4"

    def more(self, b, g, norm):
        for name in ("post_attention_norm", "post_ffw_norm"):
            self.w[f"{b}{name}.weight"] = norm(self.n_embd)
        self.w[b + "ffn_up.weight"] = np.concatenate([self.w.pop(b + "ffn_gate.weight"), self.w[b + "ffn_up.weight"]])

    def feed(self, b, h):
        gate, up = np.split(self.lin(h, b + "ffn_up"), 2, 1)
        return self.lin(silu(gate) * up, b + "ffn_down")

    after = Gemma3.after


class GraniteSWA(Llama):
    """A layer's further numbers are added before the next one; the sinks are too small to count."""

    arch = "granite_swa"

    def __init__(self, g, eye):
        self.n_deep = eye.n_deep
        super().__init__(g, eye)

    def more(self, b, g, norm):
        self.w[f"{b}attn_sinks.weight"] = np.full(N_HEAD, -60, np.float32)

    def keys(self):
        return {"attention.sliding_window": 5, "attention.sliding_window_pattern": [False] * N_LAYER, "deepstack_mapping": [l if 0 < l <= self.n_deep else -1 for l in range(N_LAYER)]}


class Qwen3(Text):
    arch = "qwen3"
    more, qk = Qwen3VL.more, Gemma3.qk


KINDS = {"llama": Llama, "granite_swa": GraniteSWA, "llama factors": LlamaFactors, "gemma3": Gemma3, "glm4": Glm4, "qwen2": Qwen2, "qwen2vl": Qwen2VL, "qwen3": Qwen3, "qwen3vl": Qwen3VL}
