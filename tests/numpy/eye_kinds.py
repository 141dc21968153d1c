"""Made-up eyes of each kind for ./eyes.py: metadata and tensors of an mmproj file as its converter names them, and in float64 what it makes of a picture.
Written from the papers and the authors' code; pictures are resized by ./picture.py."""
import collections
import math

import numpy as np

import picture
from blocks import gelu, gelu_erf, gelu_quick, layer_norm, merge_heads, rms_norm, silu, softmax, split_heads
from eye_texts import WORDS

# Rows of a picture that stand together in a text: [n, n_row]; the line and column of each, and what the text model's positions count.
Seen = collections.namedtuple("Seen", "rows places")


def word(text):
    if text not in WORDS:
        WORDS.append(text)
    return text


def patches(pixels, p):
    """pixels [h, w, 3] -> [h/p, w/p, 3*p*p], colors outermost."""
    ny, nx = pixels.shape[0] // p, pixels.shape[1] // p
    return pixels.reshape(ny, p, nx, p, 3).transpose(0, 2, 4, 1, 3).reshape(ny, nx, 3 * p * p)


def blocks_of(x, m):
    """x [ny, nx, n] -> [ny/m, nx/m, m*m, n]: the rows of each square, line by line."""
    ny, nx, n = x.shape
    return x.reshape(ny // m, m, nx // m, m, n).transpose(0, 2, 1, 3, 4).reshape(ny // m, nx // m, m * m, n)


def grid(ny, nx):
    return [(y, x) for y in range(ny) for x in range(nx)]


def turned(x, angle, halves=True):
    """x [T, H, d], angle [T, d/2]: pairs (i, i + d/2), or neighbours."""
    z = np.exp(1j * angle)[:, None]
    if halves:
        a, b = np.split(x, 2, -1)
        y = (a + 1j * b) * z
        return np.concatenate([y.real, y.imag], -1)
    y = (x[..., 0::2] + 1j * x[..., 1::2]) * z
    return np.stack([y.real, y.imag], -1).reshape(x.shape)


def line_and_column(place, d, base=10000.0):
    """Angles [T, d/2] of places [T, 2]: half of the frequencies for the line, the same ones for the column."""
    f = base ** (-2 * np.arange(d // 4) / (d // 2))
    place = np.asarray(place, float)
    return np.concatenate([place[:, :1] * f, place[:, 1:] * f], 1)


class Eye:
    text, n_deep, eps, rms, begin, end = "llama", 0, 1e-2, False, "", ""
    extra = {}  # keys that are not of the vision part
    unit = least = most = 0  # pixels, where pictures are seen near their own size: of a row, and of a picture
    published = None  # the fit and the filter of the processor, where a file without keys has others

    def __init__(self, g):
        self.g, self.w = g, {}
        self.n_head, self.n_layer, self.p = int(g.integers(1, 4)), int(g.integers(1, 4)), int(g.integers(2, 8))
        self.n, self.n_ff, self.n_text = self.n_head * 4 * int(g.integers(2, 7)), int(g.integers(20, 60)), 4 * int(g.integers(5, 12))
        self.act, use = [(gelu, {"clip.use_gelu": True}), (silu, {"clip.use_silu": True}), (gelu_quick, {})][int(g.integers(3))]
        self.mean, self.std = g.uniform(0.3, 0.6, 3).round(3), g.uniform(0.2, 0.5, 3).round(3)
        self.keys = {}
        self.about = ""
        for text in (self.begin, self.end):
            if text:
                word(text)
        self.make()
        if self.published and g.integers(2):
            self.as_published()
            self.keys |= {"image_fit": picture.FITS[self.fit], "image_resample": picture.RESIZES[self.how]}
            self.about += ", as its processor"
        self.w64 = {k: v.astype(np.float64) for k, v in self.w.items()}
        vision = {"embedding_length": self.n, "feed_forward_length": self.n_ff, "block_count": self.n_layer, "attention.head_count": self.n_head,
                  "attention.layer_norm_epsilon": self.eps, "patch_size": self.p, "projection_dim": self.n_text,
                  "image_mean": [float(x) for x in self.mean], "image_std": [float(x) for x in self.std], **self.keys}
        self.meta = {"general.architecture": "clip", "clip.has_vision_encoder": True, "clip.projector_type": self.kind, **use}
        self.meta |= {"clip.vision." + k: v for k, v in vision.items()} | self.extra
        self.about = f"{self.n_layer} layers of {self.n}, patches of {self.p}{self.about}"

    def fit_text(self, text):
        pass

    def as_published(self):
        self.fit, self.how = self.published

    # tensors
    def matrix(self, name, out, n, gain=1.0, bias=True):
        self.w[name + ".weight"] = (gain * self.g.normal(size=(out, n)) / math.sqrt(n)).astype(np.float32)
        if bias:
            self.w[name + ".bias"] = (0.3 * self.g.normal(size=out)).astype(np.float32)

    def norm(self, name, n, bias=True):
        self.w[name + ".weight"] = (1 + 0.3 * self.g.normal(size=n)).astype(np.float32)
        if bias:
            self.w[name + ".bias"] = (0.3 * self.g.normal(size=n)).astype(np.float32)

    def vector(self, name, *shape):
        self.w[name] = (0.5 * self.g.normal(size=shape)).astype(np.float32)

    def patch_tensors(self, bias=True, frames=1):
        for k in range(frames):
            self.w["v.patch_embd.weight" + (".1" if k else "")] = (self.g.normal(size=(self.n, 3, self.p, self.p)) / math.sqrt(3 * self.p**2)).astype(np.float32)
        if bias:
            self.vector("v.patch_embd.bias", self.n)

    def layers(self, bias=True, gate=False, fused=False, swapped=False):
        n = self.n
        for l in range(self.n_layer):
            b = f"v.blk.{l}."
            for name in ("ln1", "ln2"):
                self.norm(b + name, n, not self.rms)
            for name in ("attn_q", "attn_k", "attn_v"):
                self.matrix(b + name, n, n, 1.5, bias)
            if fused:
                for end in (".weight", ".bias"):
                    self.w[b + "attn_qkv" + end] = np.concatenate([self.w.pop(b + name + end) for name in ("attn_q", "attn_k", "attn_v")])
            self.matrix(b + "attn_out", n, n, 1.0, bias)
            up, down = ("ffn_down", "ffn_up") if swapped else ("ffn_up", "ffn_down")
            self.matrix(b + up, self.n_ff, n, 1.0, bias)
            self.matrix(b + down, n, self.n_ff, 1.0, bias)
            if gate:
                self.matrix(b + "ffn_gate", self.n_ff, n, 1.0, bias)

    # the pass
    def lin(self, x, name):
        return x @ self.w64[name + ".weight"].T + self.w64.get(name + ".bias", 0)

    projector_eps = None  # as the others

    def normed(self, x, name, eps=None):
        w, b = self.w64[name + ".weight"], self.w64.get(name + ".bias")
        return rms_norm(x, w, eps or self.eps) if self.rms else layer_norm(x, w, b, eps or self.eps)

    def rule(self, fit, resize, size=0, block=1, least=0, most=0, color=(0, 0, 0)):
        return {"patch": self.p, "size": size, "block": block, "fit": fit, "resize": resize, "least": least, "most": most, "color": color}

    def pixels(self, a):
        return (a / 255 - self.mean.astype(np.float32)) / self.std.astype(np.float32)

    def embedded(self, a):
        """Patches [ny, nx, n] of a picture as it is seen."""
        x = patches(self.pixels(a), self.p)
        w = sum(self.w64[k].reshape(self.n, -1) for k in ("v.patch_embd.weight", "v.patch_embd.weight.1") if k in self.w)
        return x @ w.T + self.w64.get("v.patch_embd.bias", 0)

    def layer(self, x, l, angle=None, halves=True, sees=None, scaled=False, ffn_act=None):
        b = f"v.blk.{l}."
        h = self.normed(x, b + "ln1")
        q, k, v = np.split(self.lin(h, b + "attn_qkv"), 3, 1) if b + "attn_qkv.weight" in self.w else (self.lin(h, f"{b}attn_{c}") for c in "qkv")
        q, k, v = (split_heads(t, self.n_head) for t in (q, k, v))
        q, k = self.near_heads(b, q, k)
        if angle is not None:
            q, k = turned(q, angle, halves), turned(k, angle, halves)
        s = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[2])
        if sees is not None:
            s = np.where(sees, s, -np.inf)
        a = self.lin(merge_heads(np.einsum("hij,jhd->ihd", softmax(s), v)), b + "attn_out")
        x = x + (a * self.w64[b + "ls1.weight"] if scaled else a)
        h = self.normed(x, b + "ln2")
        up, down = ("ffn_down", "ffn_up") if len(self.w[b + "ffn_up.weight"]) == self.n and self.n_ff != self.n else ("ffn_up", "ffn_down")
        f = self.act(self.lin(h, b + "ffn_gate")) * self.lin(h, b + up) if b + "ffn_gate.weight" in self.w else self.act(self.lin(h, b + up))
        f = self.lin(f, b + down)
        return x + (f * self.w64[b + "ls2.weight"] if scaled else f)

    def near_heads(self, b, q, k):
        return q, k

    def look(self, a):
        """What stands in a text for a picture: texts, and Seen."""
        return [x for x in (self.begin, self.see(a), self.end) if x != ""]


class Square(Eye):
    """Pictures of one size."""

    def sized(self, most=5, of=1):
        self.side = of * int(self.g.integers(1, most))
        self.keys["image_size"] = self.p * self.side


class Llava(Square):
    kind, fit, how, published = "mlp", picture.PAD, picture.CUBIC, (picture.PAD, picture.PIL_CUBIC)

    def make(self):
        g = self.g
        self.n_layer += 1
        self.sized()
        self.about = f", {self.side} on a side"
        self.first = int(g.integers(2))
        self.patch_tensors(bias=bool(g.integers(2)))
        if self.first:
            self.vector("v.class_embd", self.n)
        self.matrix("v.position_embd", self.side**2 + self.first, self.n, bias=False)
        if g.integers(2):
            self.norm("v.pre_ln", self.n)
        if g.integers(2):
            self.norm("v.post_ln", self.n)
        self.layers(fused=bool(g.integers(2)), swapped=bool(g.integers(2)))
        self.projector()
        if self.first:
            self.about += ", a class row"

    def projector(self):
        self.matrix("mm.0", 30, self.n)
        self.matrix("mm.2", self.n_text, 30)

    def projected(self, x):
        return self.lin(gelu(self.lin(x, "mm.0")), "mm.2")

    def see_square(self, a):
        x = self.embedded(a).reshape(-1, self.n)
        if self.first:
            x = np.concatenate([self.w64["v.class_embd"][None], x])
        x = x + self.w64["v.position_embd.weight"]
        if "v.pre_ln.weight" in self.w:
            x = self.normed(x, "v.pre_ln")
        for l in range(self.n_layer - 1): # what the last layer computes is not looked at
            x = self.layer(x, l)
        if "v.post_ln.weight" in self.w:
            x = self.normed(x, "v.post_ln")
        return self.projected(x[self.first:])

    def see(self, a):
        rule = self.rule(self.fit, self.how, self.side * self.p, color=(122, 116, 104))
        return Seen(self.see_square(picture.seen(rule, a)), grid(self.side, self.side))


class LlavaNorm(Llava):
    kind = "mlp_norm"

    def projector(self):
        self.matrix("mm.0", 30, self.n)
        self.norm("mm.1", 30)
        self.matrix("mm.3", self.n_text, 30)
        self.norm("mm.4", self.n_text)

    def projected(self, x):
        return self.normed(self.lin(gelu(self.normed(self.lin(x, "mm.0"), "mm.1")), "mm.3"), "mm.4")


def hard(x):
    """The sigmoid made of three straight lines."""
    return np.clip(x + 3, 0, 6) / 6


class Mobile(Llava):
    """MobileVLM's first projector, as llama.cpp 0.5.0 and torchvision's inverted residuals have it: rows in a square, [n, n, c]."""
    kind = "ldp"

    def sized(self):
        super().sized(4, 2)

    def taps(self, name, c):
        self.w[name] = (0.4 * self.g.normal(size=(c, 1, 3, 3) if self.g.integers(2) else (c, 3, 3))).astype(np.float32)

    def projector(self):
        c, n_mean = self.n_text, int(self.g.integers(3, 9))
        self.matrix("mm.model.mlp.1", c, self.n)
        self.matrix("mm.model.mlp.3", c, c)
        for b in ("mm.model.mb_block.1.block.", "mm.model.mb_block.2.block."):
            self.taps(b + "0.0.weight", c)
            self.norm(b + "0.1", c)
            self.matrix(b + "1.fc1", n_mean, c)
            self.matrix(b + "1.fc2", c, n_mean, 3.0)
            self.matrix(b + "2.0", c, c, bias=False)
            self.norm(b + "2.1", c)

    def each(self, x, name, step=1):
        """A convolution of each channel alone, zeros around."""
        w = self.w64[name].reshape(-1, 3, 3)
        n = len(x)
        y = np.zeros((n + 2, n + 2, x.shape[2]))
        y[1:-1, 1:-1] = x
        return sum(y[i : i + n, j : j + n] * w[:, i, j] for i in range(3) for j in range(3))[::step, ::step]

    def block(self, x, b, step):
        x = self.normed(self.each(x, b + "0.0.weight", step), b + "0.1")
        x = x * hard(x)
        mean = x.mean((0, 1))
        x = x * hard(self.lin(np.maximum(self.lin(mean, b + "1.fc1"), 0), b + "1.fc2"))
        return self.normed(self.lin(x, b + "2.0"), b + "2.1")

    def joined(self, x):
        x = x + self.block(x, "mm.model.mb_block.1.block.", 1)
        return self.block(x, "mm.model.mb_block.2.block.", 2)

    def projected(self, x):
        a, b = (0, 2) if self.kind == "ldpv2" else (1, 3)
        x = self.lin(gelu(self.lin(x, f"mm.model.mlp.{a}")), f"mm.model.mlp.{b}")
        return self.joined(x.reshape(self.side, self.side, -1)).reshape(-1, self.n_text)

    def see(self, a):
        return Seen(super().see(a).rows, grid(self.side // 2, self.side // 2))


class MobileV2(Mobile):
    """The second one: means of 2 x 2 rows, and a convolution of these beside them."""
    kind = "ldpv2"

    def projector(self):
        self.matrix("mm.model.mlp.0", self.n_text, self.n)
        self.matrix("mm.model.mlp.2", self.n_text, self.n_text)
        self.taps("mm.model.peg.0.weight", self.n_text)
        self.vector("mm.model.peg.0.bias", self.n_text)

    def joined(self, x):
        n = len(x) // 2
        x = x.reshape(n, 2, n, 2, -1).mean((1, 3))
        return x + self.each(x, "mm.model.peg.0.weight") + self.w64["mm.model.peg.0.bias"]


class GlmEdge(Square):
    """GLM-Edge-V, as llama.cpp 0.5.0 has it."""
    kind, fit, how = "adapter", picture.PAD, picture.CUBIC

    def make(self):
        self.sized(4, 2)
        self.about = f", {self.side} on a side"
        self.patch_tensors()
        self.matrix("v.position_embd", self.side**2, self.n, bias=False)
        self.layers(fused=bool(self.g.integers(2)), swapped=bool(self.g.integers(2)))
        if self.g.integers(2):
            self.norm("v.post_ln", self.n)
        n, n_ff = self.n_text, int(self.g.integers(20, 60))
        self.w["adapter.conv.weight"] = (self.g.normal(size=(n, self.n, 2, 2)) / math.sqrt(4 * self.n)).astype(np.float32)
        self.vector("adapter.conv.bias", n)
        self.matrix("adapter.linear.linear", n, n, bias=False)
        self.norm("adapter.linear.norm1", n)
        self.matrix("adapter.linear.gate", n_ff, n, bias=False)
        self.matrix("adapter.linear.dense_h_to_4h", n_ff, n, bias=False)
        self.matrix("adapter.linear.dense_4h_to_h", n, n_ff, bias=False)
        self.vector("adapter.boi", n)
        self.vector("adapter.eoi", n)

    def see(self, a):
        x = self.embedded(picture.seen(self.rule(self.fit, self.how, self.side * self.p), a)).reshape(-1, self.n) + self.w64["v.position_embd.weight"]
        for l in range(self.n_layer):
            x = self.layer(x, l)
        if "v.post_ln.weight" in self.w:
            x = self.normed(x, "v.post_ln")
        x = blocks_of(x.reshape(self.side, self.side, self.n), 2).reshape(-1, 2, 2, self.n)
        x = np.einsum("byxc,ncyx->bn", x, self.w64["adapter.conv.weight"]) + self.w64["adapter.conv.bias"]
        x = gelu(self.normed(self.lin(x, "adapter.linear.linear"), "adapter.linear.norm1"))
        x = self.lin(silu(self.lin(x, "adapter.linear.gate")) * self.lin(x, "adapter.linear.dense_h_to_4h"), "adapter.linear.dense_4h_to_h")
        return Seen(np.concatenate([self.w64["adapter.boi"][None], x, self.w64["adapter.eoi"][None]]), [(0, i) for i in range(len(x) + 2)])


class Janus(Square):
    kind = "janus_pro"

    def make(self):
        self.sized()
        self.about = f", {self.side} on a side"
        self.patch_tensors()
        self.matrix("v.position_embd", self.side**2, self.n, bias=False)
        self.layers(fused=bool(self.g.integers(2)))
        self.norm("v.post_ln", self.n)
        self.matrix("mm.0", 30, self.n)
        self.matrix("mm.1", self.n_text, 30)

    def see(self, a):
        seen = picture.seen(self.rule(picture.PAD, picture.PIL_CUBIC, self.side * self.p, color=(127, 127, 127)), a)
        x = self.embedded(seen).reshape(-1, self.n) + self.w64["v.position_embd.weight"]
        for l in range(self.n_layer):
            x = self.layer(x, l)
        return Seen(self.lin(self.act(self.lin(self.normed(x, "v.post_ln"), "mm.0")), "mm.1"), grid(self.side, self.side))


class Gemma3(Square):
    kind, text, begin, end = "gemma3", "gemma3", "<start_of_image>", "<end_of_image>"
    fit, how, published = picture.PAD, picture.LINEAR, (picture.STRETCH, picture.PIL_LINEAR)

    def make(self):
        self.merge = int(self.g.choice([1, 2, 4]))
        self.sized(4, self.merge)
        self.about = f", {self.side} on a side, {self.merge} x {self.merge} together"
        if self.merge != 4 or self.g.integers(2):
            self.keys["projector.scale_factor"] = self.merge
        self.patch_tensors()
        self.matrix("v.position_embd", self.side**2, self.n, bias=False)
        self.layers(fused=bool(self.g.integers(2)))
        self.norm("v.post_ln", self.n)
        self.norm("mm.soft_emb_norm", self.n, False)
        self.matrix("mm.input_projection", self.n, self.n_text, 1.5, False)

    def see(self, a):
        x = self.embedded(picture.seen(self.rule(self.fit, self.how, self.side * self.p), a)).reshape(-1, self.n) + self.w64["v.position_embd.weight"]
        for l in range(self.n_layer):
            x = self.layer(x, l)
        x = blocks_of(self.normed(x, "v.post_ln").reshape(self.side, self.side, self.n), self.merge).mean(2).reshape(-1, self.n)
        x = rms_norm(x, self.w64["mm.soft_emb_norm.weight"], self.eps) @ self.w64["mm.input_projection.weight"]
        return Seen(x, grid(self.side // self.merge, self.side // self.merge))


class Qwen2VL(Eye):
    kind, text, begin, end, frames, bias = "qwen2vl_merger", "qwen2vl", "<|vision_start|>", "<|vision_end|>", 2, False
    fit, how, published = picture.FOLLOW_PAD, picture.LINEAR, (picture.FOLLOW, picture.PIL_CUBIC)

    def make(self):
        unit = self.unit = 4 * self.p**2
        self.least, self.most = unit * int(self.g.integers(1, 9)), unit * int(self.g.integers(9, 40))
        self.about = f", {self.least} to {self.most} pixels"
        self.keys |= {"image_size": 99, "image_min_pixels": self.least, "image_max_pixels": self.most}
        self.patch_tensors(self.bias, self.frames)
        self.layers()
        self.norm("v.post_ln", self.n, not self.rms)
        self.matrix("mm.0", 4 * self.n, 4 * self.n)
        self.matrix("mm.2", self.n_text, 4 * self.n)
        self.tensors()

    def tensors(self):
        pass

    def start(self, x):
        return x

    def sees(self, l, place):
        return None

    def see(self, a):
        x = self.embedded(picture.seen(self.rule(self.fit, self.how, block=2, least=self.least, most=self.most), a))
        x = self.start(x)
        ny, nx = x.shape[:2]
        place = blocks_of(np.moveaxis(np.indices((ny, nx)), 0, -1), 2).reshape(-1, 2)
        x = blocks_of(x, 2).reshape(-1, self.n)
        angle = line_and_column(place, self.n // self.n_head)
        self.deep = []
        for l in range(self.n_layer):
            x = self.layer(x, l, angle, sees=self.sees(l, place))
            self.after(x, l)
        y = self.lin(gelu(self.lin(self.normed(x, "v.post_ln").reshape(-1, 4 * self.n), "mm.0")), "mm.2")
        return Seen(np.concatenate([y, *self.deep], 1), grid(ny // 2, nx // 2))

    def after(self, x, l):
        pass


class Qwen2VLGlm(Qwen2VL):
    """With GLM 4's text, which turns rows by line and column, too."""

    text = "glm4"


class Qwen3VL(Qwen2VL):
    kind, text, bias = "qwen3vl_merger", "qwen3vl", True

    def tensors(self):
        g = self.g
        self.side = int(g.integers(2, 6))
        self.keys["image_size"] = self.side * self.p
        self.matrix("v.position_embd", self.side**2, self.n, bias=False)
        self.is_deep = [bool(g.integers(2)) for _ in range(self.n_layer)]
        self.n_deep = sum(self.is_deep)
        if self.n_deep or g.integers(2):
            self.keys["is_deepstack_layers"] = self.is_deep
        for l in (l for l in range(self.n_layer) if self.is_deep[l]):
            b = f"v.deepstack.{l}."
            self.norm(b + "norm", 4 * self.n)
            self.matrix(b + "fc1", 4 * self.n, 4 * self.n)
            self.matrix(b + "fc2", self.n_text, 4 * self.n)
        self.about += f", {self.n_deep} deep"

    def start(self, x):
        """Positions between those of a square table, by their distances."""
        ny, nx = x.shape[:2]
        w = []
        for n in (ny, nx):
            at = np.arange(n) * (self.side - 1) / max(n - 1, 1)
            w.append(np.maximum(0, 1 - np.abs(at[:, None] - np.arange(self.side))))
        table = self.w64["v.position_embd.weight"].reshape(self.side, self.side, self.n)
        return x + np.einsum("yi,xj,ijn->yxn", *w, table)

    def after(self, x, l):
        if self.is_deep[l]:
            b = f"v.deepstack.{l}."
            self.deep.append(self.lin(gelu(self.lin(self.normed(x.reshape(-1, 4 * self.n), b + "norm"), b + "fc1")), b + "fc2"))


class DeepGranite(Qwen3VL):
    """For a text model with a list of the layers that the further numbers enter, of which it has two."""

    text = "granite_swa"

    def make(self):
        self.n_layer = 2
        super().make()


class Qwen25VL(Qwen2VL):
    kind, rms = "qwen2.5vl_merger", True

    def make(self):
        super().make()
        self.every = int(self.g.integers(0, 4))
        self.across = int(self.g.integers(1, 4)) # squares of 2 x 2 patches along a window
        self.keys |= {"n_wa_pattern": self.every, "window_size": self.across * 2 * self.p + int(self.g.integers(0, 2 * self.p))}
        self.about += f", windows of {2 * self.across}, but each {self.every}."

    def tensors(self):
        self.layers(gate=True, fused=bool(self.g.integers(2)))

    def sees(self, l, place):
        if self.every == 0 or (l + 1) % self.every == 0:
            return None
        window = place // (2 * self.across)
        return (window[:, None] == window[None]).all(2)


# --- tiles ---------------------------------------------------------------------------------------


def fitted(a, width, height, how, pad=False, color=(0, 0, 0)):
    """A picture resized to this size, or to fit into its middle."""
    if not pad:
        return picture.resized(a, width, height, how)
    f4 = np.float32
    scale = min(f4(width) / f4(a.shape[1]), f4(height) / f4(a.shape[0]))
    inner = picture.resized(a, min(width, math.ceil(f4(a.shape[1]) * scale)), min(height, math.ceil(f4(a.shape[0]) * scale)), how)
    out = np.tile(np.array(color, np.uint8), (height, width, 1))
    top, left = (height - inner.shape[0]) // 2, (width - inner.shape[1]) // 2
    out[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
    return out


def best_grid(grids, size, width, height):
    """Of (across, down): in which the picture is largest, up to its own size; and of these, the smallest."""
    def merit(g):
        f4 = np.float32
        w, h = g[0] * size, g[1] * size
        scale = min(f4(w) / f4(width), f4(h) / f4(height))
        seen = min(int(f4(width) * scale) * int(f4(height) * scale), width * height)
        return -seen, w * h - seen
    return min(grids, key=merit)


class Tiled(Square):
    """Pictures of one size, seen in tiles and as a whole."""

    whole_first, pad, how = False, False, picture.PIL_CUBIC
    tiles_begin = tiles_end = tile = tile_end = next = line = whole = whole_end = ""

    def words(self):
        pass

    def grid_of(self, width, height):
        """Tiles across and down; None: the whole alone."""

    def tiles_of(self, a, across, down):
        size = self.side * self.p
        all_of_them = fitted(a, across * size, down * size, self.how, self.pad)
        return [[all_of_them[y * size : (y + 1) * size, x * size : (x + 1) * size] for x in range(across)] for y in range(down)]

    def whole_of(self, a):
        return fitted(a, self.side * self.p, self.side * self.p, self.how)

    def seen(self, pixels):
        rows = self.see_square(pixels)
        return Seen(rows, [(0, k) for k in range(len(rows))])

    def look(self, a):
        grid = self.grid_of(a.shape[1], a.shape[0])
        whole = [self.whole, self.seen(self.whole_of(a)), self.whole_end]
        tiles = []
        if grid:
            lines = []
            for y, line in enumerate(self.tiles_of(a, *grid)):
                parts = []
                for x, tile in enumerate(line):
                    at = {"y": y + 1, "x": x + 1}
                    parts += [self.next] * (x > 0) + [self.tile.format(**at), self.seen(tile), self.tile_end.format(**at)]
                lines += [self.line] * (y > 0) + parts
            tiles = [self.tiles_begin, *lines, self.tiles_end]
        parts = [self.begin, *(whole + tiles if self.whole_first else tiles + whole), self.end]
        return [x for x in parts if not isinstance(x, str) or x]


class Merged(Tiled):
    """Rows of squares of patches, with positions of a table."""

    first = 0

    def make(self):
        self.merge = int(self.g.choice(self.merges))
        self.sized(4, self.merge)
        self.keys["projector.scale_factor"] = self.merge
        self.about = f", {self.side} on a side, {self.merge} x {self.merge} together"
        self.tensors()

    def start(self, x):
        raise NotImplementedError

    def ends(self, x):
        raise NotImplementedError

    turns = None

    def see_square(self, pixels):
        x = blocks_of(self.start(self.embedded(pixels)), self.merge).reshape(-1, self.n)
        x = self.before(x)
        for l in range(self.n_layer):
            x = self.layer(x, l, **self.more)
        return self.ends(x)

    more = {}

    def before(self, x):
        return x


class Idefics3(Merged):
    kind, merges, how = "idefics3", (1, 2, 3), picture.PIL_LANCZOS
    line, tile, whole, whole_end = "\n", "<fake_token_around_image><row_{y}_col_{x}>", "\n\n<fake_token_around_image><global-img>", "<fake_token_around_image>"

    def tensors(self):
        for name in ("<fake_token_around_image>", "<global-img>", *(f"<row_{y}_col_{x}>" for y in range(1, 5) for x in range(1, 5))):
            word(name)
        size = self.side * self.p
        self.longest = int(self.g.integers(0, 2) * self.g.integers(1, 4 * size + 1))
        if self.longest or self.g.integers(2):
            self.keys["preproc_image_size"] = self.longest
        self.about += f", tiles along {self.longest}"
        self.patch_tensors()
        self.matrix("v.position_embd", self.side**2, self.n, bias=False)
        self.layers()
        self.norm("v.post_ln", self.n)
        self.matrix("mm.model.fc", self.n_text, self.merge**2 * self.n, bias=False)

    def grid_of(self, width, height):
        size = self.side * self.p
        return self.longest and tuple(-(-x * self.longest // (max(width, height) * size)) for x in (width, height))

    def start(self, x):
        return x + self.w64["v.position_embd.weight"].reshape(x.shape)

    def ends(self, x):
        return self.lin(self.normed(x, "v.post_ln").reshape(-1, self.merge**2 * self.n), "mm.model.fc")


class InternVL(Merged):
    kind, merges, begin, end = "internvl", (2,), "<img>", "</img>"

    def tensors(self):
        self.most = int(self.g.integers(1, 13))
        if self.most != 12 or self.g.integers(2):
            self.keys |= {"preproc_min_tiles": 1, "preproc_max_tiles": self.most}
        self.about += f", up to {self.most} tiles"
        self.patch_tensors()
        self.vector("v.class_embd", self.n)
        self.matrix("v.position_embd", self.side**2 + 1, self.n, bias=False)
        self.layers(bias=True)
        for l in range(self.n_layer):
            for name in ("ls1", "ls2"):
                self.norm(f"v.blk.{l}.{name}", self.n, False)
        self.more = {"scaled": True}
        self.norm("mm.model.mlp.0", self.merge**2 * self.n)
        self.matrix("mm.model.mlp.1", 30, self.merge**2 * self.n)
        self.matrix("mm.model.mlp.3", self.n_text, 30)

    def grid_of(self, width, height):
        size = self.side * self.p
        if max(width, height) > size:
            return best_grid([(a, b) for a in range(1, self.most + 1) for b in range(1, self.most + 1) if a * b <= self.most], size, width, height)

    def start(self, x):
        return x + self.w64["v.position_embd.weight"][1:].reshape(x.shape)

    def before(self, x):
        return np.concatenate([(self.w64["v.class_embd"] + self.w64["v.position_embd.weight"][0])[None], x])

    def ends(self, x):
        x = self.normed(x[1:].reshape(-1, self.merge**2 * self.n), "mm.model.mlp.0", 1e-5)
        return self.lin(gelu(self.lin(x, "mm.model.mlp.1")), "mm.model.mlp.3")


class NemotronV2(Merged):
    kind, merges, begin, end, pad = "nemotron_v2_vl", (1, 2, 3), "<img>", "</img>", True

    def tensors(self):
        self.patch_tensors(bias=False)
        self.first = int(self.g.integers(2, 9))
        self.about += f", {self.first} rows before the patches"
        self.vector("v.class_embd", self.first, self.n)
        self.matrix("v.position_embd", self.side**2, self.n, bias=False)
        self.layers(fused=bool(self.g.integers(2)))
        self.norm("mm.model.mlp.0", self.merge**2 * self.n, False)
        self.matrix("mm.model.mlp.1", 30, self.merge**2 * self.n, bias=False)
        self.matrix("mm.model.mlp.3", self.n_text, 30, bias=False)

    def whole_of(self, a):
        return fitted(a, self.side * self.p, self.side * self.p, self.how, True)

    def start(self, x):
        return x + self.w64["v.position_embd.weight"].reshape(x.shape)

    def before(self, x):
        return np.concatenate([self.w64["v.class_embd"], x])

    def ends(self, x):
        x = rms_norm(x[self.first:].reshape(-1, self.merge**2 * self.n), self.w64["mm.model.mlp.0.weight"], 1e-6)
        return self.lin(np.maximum(self.lin(x, "mm.model.mlp.1"), 0) ** 2, "mm.model.mlp.3")


class Llama4(Merged):
    kind, merges, begin, end, whole = "llama4", (1, 2), "<|image_start|>", "<|image_end|>", "<|image|>"
    pad, how = True, picture.PIL_LINEAR
    next, line, tiles_end = "<|tile_x_separator|>", "<|tile_y_separator|>", "<|tile_y_separator|>"

    def tensors(self):
        for name in (self.next, self.line, self.whole):
            word(name)
        self.w["v.patch_embd.weight"] = (self.g.normal(size=(self.n, 3 * self.p**2)) / math.sqrt(3 * self.p**2)).astype(np.float32)
        self.vector("v.class_embd", self.n)
        self.matrix("v.position_embd", self.side**2 + 1, self.n, bias=False)
        self.norm("v.pre_ln", self.n)
        self.norm("v.post_ln", self.n)
        self.layers()
        place = blocks_of(1 + np.moveaxis(np.indices((self.side, self.side)), 0, -1), self.merge).reshape(-1, 2)
        place = np.concatenate([place, [[0, 0]]])  # the class row is the last one, and stays as it is
        self.more = {"angle": line_and_column(place[:, ::-1], self.n // self.n_head), "halves": False}
        self.matrix("mm.model.mlp.1", 30, self.merge**2 * self.n, bias=False)
        self.matrix("mm.model.mlp.2", 34, 30, bias=False)
        self.matrix("mm.model.fc", self.n_text, 34, bias=False)

    def grid_of(self, width, height):
        size = self.side * self.p
        if max(width, height) > size:
            return best_grid([(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a * b > 1], size, width, height)

    def start(self, x):
        return x + self.w64["v.position_embd.weight"][:-1].reshape(x.shape)

    def before(self, x):
        return self.normed(np.concatenate([x, (self.w64["v.class_embd"] + self.w64["v.position_embd.weight"][-1])[None]]), "v.pre_ln")

    def ends(self, x):
        x = self.normed(x, "v.post_ln")[:-1].reshape(-1, self.merge**2 * self.n)
        return self.lin(gelu(self.lin(gelu(self.lin(x, "mm.model.mlp.1")), "mm.model.mlp.2")), "mm.model.fc")


class LlavaTiled(Llava, Tiled):
    whole_first = pad = True
    published = picture.STRETCH, picture.PIL_CUBIC
    look = Tiled.look

    def make(self):
        super().make()
        size = self.side * self.p
        self.grids = [(1, 2), (2, 1), (2, 2), (3, 1), (1, 3)][: int(self.g.integers(1, 6))]
        self.keys["image_grid_pinpoints"] = [x * size for g in self.grids for x in g]
        self.about += f", grids {self.grids}"

    def grid_of(self, width, height):
        size = self.side * self.p
        if max(width, height) > size:
            return best_grid(self.grids, size, width, height)


class MiniCPMV(Tiled):
    kind, whole_first, whole, whole_end, line = "resampler", True, "<image>", "</image>", "\n"
    versions = 0, 2, 3, 4, 5, 6, 100045
    texts = {3: "qwen2", 4: "qwen2", 5: "llama factors", 6: "llama factors", 100045: "qwen3"}

    def make(self):
        g = self.g
        self.n_text = 128 * int(g.integers(1, 3))
        self.size = self.p * int(g.integers(1, 5)) + int(g.integers(0, self.p))
        self.keys["image_size"] = self.size
        version = int(g.choice(self.versions))
        self.text = self.texts.get(version, "llama")
        if version in (0, 2):
            self.tiles_begin, self.tile, self.tile_end, self.tiles_end = "<slice>", "<image>", "</image>", "</slice>"
        else:
            self.tile, self.tile_end = "<slice>", "</slice>"
        for name in ("<image>", "</image>", "<slice>", "</slice>"):
            word(name)
        own = bool(g.integers(2))
        n_query = int(g.integers(2, 9)) if own else 96 if version in (0, 2) else 64
        self.about = f", about {self.size} pixels, version {version}, {n_query} queries"
        self.extra = ({"clip.minicpmv_version": version} if version else {}) | ({"clip.minicpmv_query_num": n_query} if own else {})
        self.patch_tensors()
        self.matrix("v.position_embd", 4900, self.n, bias=False)
        self.layers()
        self.norm("v.post_ln", self.n)
        n = self.n_text
        self.vector("resampler.query", n_query, n)
        self.matrix("resampler.kv", n, self.n, bias=False)
        for name in ("q", "k", "v", "out"):
            self.matrix("resampler.attn." + name, n, n, 2.0)
        for name in ("q", "kv", "post"):
            self.norm("resampler.ln_" + name, n)
        self.matrix("resampler.proj", n, n, bias=False)

    def patches_of(self, width, height):
        """Sides of about size x size pixels, of whole patches."""
        shape = width / height
        h = int(self.size / math.sqrt(shape))
        w = int(h * shape)
        return tuple(max(1, round(x / self.p)) * self.p for x in (w, h))

    def grid_of(self, width, height):
        n = min(9, math.ceil(width * height / self.size**2))
        if n < 2:
            return None
        grids = [(m, k // m) for k in (n - 1, n, n + 1) if 1 < k <= 9 for m in range(1, k + 1) if k % m == 0]
        return min(grids, key=lambda g: abs(math.log(width / height) - math.log(g[0] / g[1])))

    def whole_of(self, a):
        return picture.resized(a, *self.patches_of(a.shape[1], a.shape[0]), self.how)

    def tiles_of(self, a, across, down):
        w, h = self.patches_of(*(max(1, round(x / k)) for x, k in ((a.shape[1], across), (a.shape[0], down))))
        all_of_them = fitted(a, across * w, down * h, self.how)
        return [[all_of_them[y * h : (y + 1) * h, x * w : (x + 1) * w] for x in range(across)] for y in range(down)]

    def see_square(self, pixels):
        x = self.embedded(pixels)
        ny, nx = x.shape[:2]
        table = self.w64["v.position_embd.weight"].reshape(70, 70, self.n)
        y, x_ = np.indices((ny, nx))
        x = (x + table[70 * y // ny, 70 * x_ // nx]).reshape(-1, self.n)
        for l in range(self.n_layer):
            x = self.layer(x, l)
        n = self.n_text
        v = self.normed(self.lin(self.normed(x, "v.post_ln"), "resampler.kv"), "resampler.ln_kv")
        f = 10000.0 ** (-np.arange(n // 4) / (n // 4))
        places = [t for place in (x_, y) for t in (np.sin(place.reshape(-1, 1) * f), np.cos(place.reshape(-1, 1) * f))]
        q = self.lin(self.normed(self.w64["resampler.query"], "resampler.ln_q"), "resampler.attn.q")
        k = self.lin(v + np.concatenate(places, 1), "resampler.attn.k")
        q, k, v = (split_heads(t, n // 128) for t in (q, k, self.lin(v, "resampler.attn.v")))
        a = np.einsum("hij,jhd->ihd", softmax(np.einsum("ihd,jhd->hij", q, k) / math.sqrt(128)), v)
        return self.lin(self.normed(self.lin(merge_heads(a), "resampler.attn.out"), "resampler.ln_post"), "resampler.proj")


# --- lines of rows ------------------------------------------------------------------------------


class Pixtral(Eye):
    kind, rms, end, line = "pixtral", True, "[IMG_END]", "[IMG_BREAK]"

    def make(self):
        word(self.line)
        self.merge = int(self.g.integers(1, 3))
        unit = self.unit = (self.merge * self.p) ** 2
        self.least, self.most = unit * int(self.g.integers(1, 9)), unit * int(self.g.integers(9, 40))
        self.keys |= {"image_size": 99, "image_min_pixels": self.least, "image_max_pixels": self.most}
        if self.merge > 1 or self.g.integers(2):
            self.keys["spatial_merge_size"] = self.merge
        self.about = f", {self.merge} x {self.merge} together"
        self.patch_tensors(False)
        self.norm("v.pre_ln", self.n, False)
        self.layers(bias=False, gate=True)
        bias = bool(self.g.integers(2))
        if self.g.integers(2):
            self.norm("mm.input_norm", self.n, False)
        if self.merge > 1:
            self.matrix("mm.patch_merger", self.n, self.merge**2 * self.n, bias=False)
        self.matrix("mm.1", 30, self.n, bias=bias)
        self.matrix("mm.2", self.n_text, 30, bias=bias)
        self.vector("v.token_embd.img_break", self.n_text)

    def fit_text(self, text):
        text.w["token_embd.weight"][256 + WORDS.index(self.line)] = self.w["v.token_embd.img_break"]

    def look(self, a):
        m, d = self.merge, self.n // self.n_head
        x = self.embedded(picture.seen(self.rule(picture.FOLLOW, picture.PIL_CUBIC, block=m, least=self.least, most=self.most), a))
        ny, nx = x.shape[:2]
        place = np.moveaxis(np.indices((ny, nx)), 0, -1).reshape(-1, 2).astype(float)
        f = 10000.0 ** (-2 * np.arange(d // 2) / d)
        angle = np.concatenate([place[:, :1] * f[0::2], place[:, 1:] * f[1::2]], 1)
        x = self.normed(x.reshape(-1, self.n), "v.pre_ln")
        for l in range(self.n_layer):
            x = self.layer(x, l, angle, halves=False)
        if "mm.input_norm.weight" in self.w:
            x = self.normed(x, "mm.input_norm", self.projector_eps)
        if m > 1:  # as torch's unfold: the numbers of a row outermost
            x = blocks_of(x.reshape(ny, nx, self.n), m).swapaxes(2, 3).reshape(-1, m * m * self.n)
            x = self.lin(x, "mm.patch_merger")
        x = self.lin(gelu(self.lin(x, "mm.1")), "mm.2").reshape(ny // m, nx // m, -1)
        out = []
        for k, row in enumerate(x):
            out += [self.line] * (k > 0) + [Seen(row, [(0, i) for i in range(len(row))])]
        return out + [self.end]


KINDS = {"llava": Llava, "llava-norm": LlavaNorm, "gemma3": Gemma3, "qwen2vl": Qwen2VL, "qwen2vl-glm4": Qwen2VLGlm, "qwen2.5vl": Qwen25VL, "qwen3vl": Qwen3VL, "deep granite": DeepGranite, "idefics3": Idefics3,
         "internvl": InternVL, "llama4": Llama4, "nemotron-v2": NemotronV2, "llava-tiles": LlavaTiled, "pixtral": Pixtral, "minicpmv": MiniCPMV, "janus": Janus, "mobilevlm": Mobile, "mobilevlm-v2": MobileV2, "glm-edge": GlmEdge}
