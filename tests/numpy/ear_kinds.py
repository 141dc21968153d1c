"""Made-up ears of each kind for ./ears.py: metadata and tensors of an mmproj file as its converter names them, and in float64 what it makes of a sound. Written
from the papers and the authors' code; spectrograms are those of ./mel.py."""
import math

import numpy as np

import mel
from blocks import gelu_erf, layer_norm, merge_heads, rms_norm, silu, softmax, split_heads
from eye_kinds import Seen, word

STEP = 160


def conv(x, w, b, step):
    """x [T, n], w [m, n, 3]: a convolution with zeros around."""
    x = np.concatenate([np.zeros((1, x.shape[1])), x, np.zeros((1, x.shape[1]))])
    return np.stack([np.einsum("kn,mnk->m", x[i : i + 3], w) for i in range(0, len(x) - 2, step)]) + b


def side_by_side(x, k):
    """k rows become one; there are zeros behind the last."""
    x = np.concatenate([x, np.zeros((-len(x) % k, x.shape[1]))])
    return x.reshape(len(x) // k, -1)


class Ear:
    text, n_deep, begin, end, whole, least, eps = "llama", 0, "", "", False, 1, 1e-2

    def __init__(self, g):
        self.g, self.w, self.keys = g, {}, {}
        self.n_head, self.n_layer, self.n_mel = int(g.integers(1, 4)), int(g.integers(1, 4)), int(g.integers(2, 40))
        self.n, self.n_ff, self.n_text = self.n_head * 4 * int(g.integers(1, 6)), int(g.integers(20, 60)), 4 * int(g.integers(5, 12))
        self.n_pos = int(g.integers(10, 40))  # of half a minute: 1500
        for text in (self.begin, self.end):
            if text:
                word(text)
        for k, n in ((1, self.n_mel), (2, self.n)):
            self.w[f"a.conv1d.{k}.weight"] = (g.normal(size=(self.n, n, 3)) / math.sqrt(3 * n)).astype(np.float16)
            self.w[f"a.conv1d.{k}.bias"] = (0.3 * g.normal(size=(self.n, 1))).astype(np.float32)
        self.matrix("a.position_embd", self.n_pos, self.n, bias=False)
        for b in (f"a.blk.{l}." for l in range(self.n_layer)):
            for name in ("ln1", "ln2"):
                self.norm(b + name, self.n)
            for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
                self.matrix(b + name, self.n, self.n, bias=name != "attn_k")
            self.matrix(b + "ffn_up", self.n_ff, self.n)
            self.matrix(b + "ffn_down", self.n, self.n_ff)
        self.norm("a.post_ln", self.n)
        self.make()
        self.w64 = {k: v.astype(np.float64) for k, v in self.w.items()}
        audio = {"embedding_length": self.n, "feed_forward_length": self.n_ff, "block_count": self.n_layer, "attention.head_count": self.n_head,
                 "attention.layer_norm_epsilon": self.eps, "num_mel_bins": self.n_mel, "projection_dim": self.n_text, **self.keys}
        self.meta = {"general.architecture": "clip", "clip.has_audio_encoder": True, "clip.projector_type": self.kind}
        self.meta |= {"clip.audio." + k: v for k, v in audio.items()}
        self.about = f"{self.n_layer} layers of {self.n}, {self.n_mel} bands, windows of {2 * self.n_pos}"

    def fit_text(self, text):
        pass

    def matrix(self, name, out, n, bias=True):
        self.w[name + ".weight"] = (self.g.normal(size=(out, n)) / math.sqrt(n)).astype(np.float32)
        if bias:
            self.w[name + ".bias"] = (0.3 * self.g.normal(size=out)).astype(np.float32)

    def norm(self, name, n, bias=True):
        self.w[name + ".weight"] = (1 + 0.3 * self.g.normal(size=n)).astype(np.float32)
        if bias:
            self.w[name + ".bias"] = (0.3 * self.g.normal(size=n)).astype(np.float32)

    # the pass
    def lin(self, x, name):
        return x @ self.w64[name + ".weight"].T + self.w64.get(name + ".bias", 0)

    def normed(self, x, name):
        return layer_norm(x, self.w64[name + ".weight"], self.w64[name + ".bias"], self.eps)

    def placed(self, x):
        return x + self.w64["a.position_embd.weight"][: len(x)]

    def encoded(self, x):
        for k in (1, 2):
            x = gelu_erf(conv(x, self.w64[f"a.conv1d.{k}.weight"], self.w64[f"a.conv1d.{k}.bias"][:, 0], k))
        x = self.placed(x)
        for b in (f"a.blk.{l}." for l in range(self.n_layer)):
            h = self.normed(x, b + "ln1")
            q, k, v = (split_heads(self.lin(h, f"{b}attn_{c}"), self.n_head) for c in "qkv")
            s = softmax(np.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[2]))
            x = x + self.lin(merge_heads(np.einsum("hij,jhd->ihd", s, v)), b + "attn_out")
            x = x + self.lin(gelu_erf(self.lin(self.normed(x, b + "ln2"), b + "ffn_up")), b + "ffn_down")
        return x

    def windows(self, x):
        """Spectrograms of a sound: the last window is whole, or ends with the sound, if there is enough of it for a row."""
        n_rows, most = -(-len(x) // STEP), 2 * self.n_pos
        x = np.concatenate([x, np.zeros(-len(x) % (most * STEP))]) if self.whole else x  # mirrored behind that, as transformers does
        filters = mel.slaney(16000, 400, self.n_mel)
        for at in range(0, n_rows, most):
            n = most if self.whole else min(most, max(n_rows - at, self.least))
            yield mel.other_spectrogram(x, filters, 400, 400, STEP, at, n, 8, False, False, False, int(self.whole), False, 0)

    def look(self, x):
        """What stands in a text for a sound: texts, and Seen."""
        heard = [self.projected(self.encoded(m)) for m in self.windows(x)]
        return [p for p in (self.begin, *(Seen(rows, None) for rows in heard), self.end) if not isinstance(p, str) or p]


class Ultravox(Ear):
    kind = "ultravox"

    def make(self):
        self.stack, n = int(self.g.choice([8, 1, 2, 4])), 2 * int(self.g.integers(5, 20))
        self.keys["projector.stack_factor"] = self.stack
        self.norm("mm.a.norm_pre", self.stack * self.n, False)
        self.matrix("mm.a.mlp.1", n, self.stack * self.n, bias=False)
        self.norm("mm.a.norm_mid", n // 2, False)
        self.matrix("mm.a.mlp.2", self.n_text, n // 2, bias=False)

    def projected(self, x):
        x = side_by_side(self.normed(x, "a.post_ln"), self.stack)
        x, gate = np.split(self.lin(rms_norm(x, self.w64["mm.a.norm_pre.weight"], 1e-6), "mm.a.mlp.1"), 2, 1)
        return self.lin(rms_norm(silu(gate) * x, self.w64["mm.a.norm_mid.weight"], 1e-6), "mm.a.mlp.2")


class Qwen2Audio(Ear):
    """Windows are sounds of their own, filled with silence, of which convolutions alone see two rows. ./senses.txt has rows of transformers."""
    kind, begin, end = "qwen2a", "<|audio_bos|>", "<|audio_eos|>"

    def make(self):
        self.matrix("mm.a.fc", self.n_text, self.n)

    def windows(self, x):
        most = 2 * self.n_pos
        for at in range(0, len(x), most * STEP):
            part = x[at : at + most * STEP]
            self.n_own = -(-len(part) // STEP)
            part = np.concatenate([part, np.zeros(most * STEP - len(part))])
            yield mel.other_spectrogram(part, mel.slaney(16000, 400, self.n_mel), 400, 400, STEP, 0, min(self.n_own + 2, most), 8, False, False, False, 1, False, 0)

    def placed(self, x):
        return super().placed(x[: -(-self.n_own // 2)])

    def projected(self, x):
        x = x[: len(x) // 2 * 2].reshape(len(x) // 2, 2, self.n).mean(1)
        return self.lin(self.normed(x, "a.post_ln"), "mm.a.fc")


class Voxtral(Ear):
    kind, begin, whole = "voxtral", "[BEGIN_AUDIO]", True

    def make(self):
        self.keys["projector.stack_factor"] = 4
        self.matrix("mm.a.mlp.1", 30, 4 * self.n, bias=False)
        self.matrix("mm.a.mlp.2", self.n_text, 30, bias=False)

    def projected(self, x):
        return self.lin(gelu_erf(self.lin(side_by_side(self.normed(x, "a.post_ln"), 4), "mm.a.mlp.1")), "mm.a.mlp.2")


KINDS = {"ultravox": Ultravox, "voxtral": Voxtral}
FILES = {**KINDS, "qwen2a": Qwen2Audio}                        # also those whose rows ./senses.txt has
