"""Nano models of the families that ship: random weights, sizes that all differ, and variants that take every branch of the
descriptors and of the prelude's rope_scaled: each optional key and tensor there and not there.

CASES maps a name to a Case; load_others() and load_family() fill it. Epsilons are large and all parts of a layer weigh about
the same, so that whatever is left out or taken twice shows in the logits.
"""
import importlib
import os
import sys

import numpy as np

import recorded
import sums

N_TOKENS = 24


class Case:
    """A model (keys, tensors), what computes it here, and how the engine is to run it."""

    quantized = False  # whether engines round activations to 8 bits
    target = None  # of a model that guesses for another one: that one's case
    layer = 0  # of several layers that guess, the one that does
    output = None  # of a model whose tokens all see each other: what ./outputs.c calls its output
    read = None  # of a model with an encoder: the tokens that it reads

    def __init__(self, name, arch, keys, tensors, forward=None, n_ctx=0, descriptor=None):
        self.name, self.arch, self.tensors, self.forward, self.descriptor = name, arch, tensors, forward, descriptor
        self.keys = keys
        self.embedded = False  # the descriptor travels in the model
        self.n_ctx = n_ctx or keys.get("context_length", 64)
        n_vocab = keys.get("vocab_size") or tensors["token_embd.weight"].shape[0]
        self.tokens = [int(t) for t in np.random.default_rng(7).integers(0, n_vocab, N_TOKENS)]

    def descriptor_path(self):
        return os.path.join(os.path.dirname(os.path.abspath(__file__)), "archs", self.descriptor + ".arch")

    def meta(self):
        out = {"general.architecture": self.arch, **{k if k.startswith("tokenizer.") else f"{self.arch}.{k}": v for k, v in self.keys.items()}}
        if self.embedded:
            with open(self.descriptor_path()) as f:
                out["general.descriptor"] = f.read()
        return out

    def outputs(self):
        """What the engine is to give: of the forward pass, or as ./recorded.py knows it."""
        if not self.forward:
            return recorded.of(self.name)
        rows = self.logits()
        return recorded.Outputs(rows.shape, rows)

    def logits(self, tokens=None):
        w = {name: t.astype(np.float64) for name, t in self.tensors.items()}

        def key(name, *default):
            return self.keys.get(name, *default) if default else self.keys[name]

        with np.errstate(all="ignore"):
            return self.forward(key, w, self.tokens if tokens is None else tokens, self.n_ctx)


class Weights(dict):
    """Tensors by full name, in numpy order."""

    def __init__(self, seed):
        super().__init__()
        self.random = np.random.default_rng(seed)

    def put(self, name, values):
        self[name] = np.ascontiguousarray(values, np.float32)

    def matrix(self, name, *shape, gain=1.0, bias=False):
        """shape [.., out, in]; variance-keeping times gain."""
        self.put(name + ".weight", self.random.normal(size=shape) * gain / np.sqrt(shape[-1]))
        if bias:
            self.put(name + ".bias", 0.3 * self.random.normal(size=shape[:-1]))

    def norm(self, name, n, bias=False):
        self.put(name + ".weight", 1 + 0.3 * self.random.normal(size=n))
        if bias:
            self.put(name + ".bias", 0.3 * self.random.normal(size=n))

    def vector(self, name, n, scale=0.3, shift=0.0):
        self.put(name, shift + scale * self.random.normal(size=n))

    def factors(self, name, n, low=1.0, high=6.0):
        self.put(name + ".weight", self.random.uniform(low, high, n))

    def embedding(self, n_vocab, n_embd, tied=True, scale=0.25):
        self.put("token_embd.weight", scale * self.random.normal(size=(n_vocab, n_embd)))
        if not tied:
            self.put("output.weight", 0.25 * self.random.normal(size=(n_vocab, n_embd)))

    def attention(self, l, n_embd, n_head, n_kv, d, dv=None, bias="", **more):
        """bias: which of q k v o have one."""
        dv = dv or d
        self.matrix(f"blk.{l}.attn_q", n_head * d, n_embd, gain=1.5, bias="q" in bias, **more)
        self.matrix(f"blk.{l}.attn_k", n_kv * d, n_embd, gain=1.5, bias="k" in bias, **more)
        self.matrix(f"blk.{l}.attn_v", n_kv * dv, n_embd, bias="v" in bias, **more)
        self.matrix(f"blk.{l}.attn_output", n_embd, n_head * dv, bias="o" in bias, **more)

    def gated(self, l, n_embd, n_ff, bias=False):
        self.matrix(f"blk.{l}.ffn_gate", n_ff, n_embd, bias=bias)
        self.matrix(f"blk.{l}.ffn_up", n_ff, n_embd, bias=bias)
        self.matrix(f"blk.{l}.ffn_down", n_embd, n_ff, gain=2, bias=bias)

    def experts(self, l, n_embd, n_ff, n_expert, bias=False):
        self.matrix(f"blk.{l}.ffn_gate_inp", n_expert, n_embd, gain=2, bias=bias)
        self.matrix(f"blk.{l}.ffn_gate_exps", n_expert, n_ff, n_embd, bias=bias)
        self.matrix(f"blk.{l}.ffn_up_exps", n_expert, n_ff, n_embd, bias=bias)
        self.matrix(f"blk.{l}.ffn_down_exps", n_expert, n_embd, n_ff, gain=2, bias=bias)

    def fuse_experts(self):
        """Gate and up in one tensor, the gate first."""
        for name in [n for n in self if n.endswith("ffn_gate_exps.weight")]:
            up = name.replace("gate", "up")
            self.put(name.replace("gate", "gate_up"), np.concatenate([self.pop(name), self.pop(up)], axis=1))

    def shared_expert(self, l, n_embd, n_ff):
        self.matrix(f"blk.{l}.ffn_gate_shexp", n_ff, n_embd)
        self.matrix(f"blk.{l}.ffn_up_shexp", n_ff, n_embd)
        self.matrix(f"blk.{l}.ffn_down_shexp", n_embd, n_ff)


def other_names(forward):
    """The same forward pass, of a file with other names for its tensors, or gate and up in one."""
    def run(key, w, tokens, n_ctx):
        out = {}
        for name, t in w.items():
            if "gate_up_exps" in name:
                out[name.replace("gate_up", "gate")], out[name.replace("gate_up", "up")] = np.split(t, 2, axis=1)
            elif name.endswith(".ssm_dt"):
                out[name + ".bias"] = t
            elif name == "output_norm.weight" and "blk.0.shortconv.conv.weight" in w:
                out["token_embd_norm.weight"] = t
            else:
                out[name] = t
        return forward(key, out, tokens, n_ctx)
    return run


CASES = {}


def add(*args, **named):
    case = Case(*args, **named)
    assert case.name not in CASES, case.name
    CASES[case.name] = case
    return case


def guess(name, like=None, own=False, keys={}, layer=0, norm=None, **changed):
    """Adds the case NAME-guess, whose outputs are the guesses of the token after the next: the model of case NAME with the tensors that the layer
    after its last one lacks, which are like those of the layer `like` (the last one). own: it has an embedding, a norm and an output of its own. The
    forward pass, if the model has one, is that of a model whose only layer it is, and whose embedding of each place is what enters the layer. keys: other
    ones of the case; changed: of that model. The layer reads the model's state after its last norm, and returns what goes into the output's product.
    norm: the name of a norm of its own, which it has without the rest. layer: which of several layers gives the guesses (the case NAME-guess-LAYER); each reads what the one before it gave for the token before."""
    case = CASES[name]
    own_keys = {**case.keys, **keys}
    n_draft = own_keys["nextn_predict_layers"]
    w, n_all, n_embd = Weights(sum(map(ord, name))), own_keys["block_count"], case.keys["embedding_length"]
    w.update(case.tensors)
    first = n_all - n_draft
    source = f"blk.{first - 1 if like is None else like}."
    for l in range(first, n_all):
        for t in [t for t in w if t.startswith(source) and t.replace(source, f"blk.{l}.") not in w]:
            w.put(t.replace(source, f"blk.{l}."), sums.mean(w[t]) + sums.std(w[t]) * w.random.normal(size=w[t].shape))
        w.matrix(f"blk.{l}.nextn.eh_proj", n_embd, 2 * n_embd, gain=0.5)
        w.norm(f"blk.{l}.nextn.enorm", n_embd)
        w.norm(f"blk.{l}.nextn.hnorm", n_embd)
        if own:
            n_vocab = len(w["token_embd.weight"])
            w.matrix(f"blk.{l}.nextn.embed_tokens", n_vocab, n_embd)
            w.matrix(f"blk.{l}.nextn.shared_head_head", n_vocab, n_embd)
            w.norm(f"blk.{l}.nextn.shared_head_norm", n_embd)
        if norm:
            w.norm(f"blk.{l}.{norm}", n_embd)
    eps = case.keys["attention.layer_norm_rms_epsilon"]

    def normed(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight

    def rows_of(k, w, tokens, n_ctx):
        hidden = {t: v for t, v in w.items() if not t.startswith("output.")}
        return case.forward(k, {**hidden, "output.weight": np.eye(n_embd)}, tokens, n_ctx)

    def one_layer(k, w, l, before, tokens):
        """Keys and tensors of the model whose only layer it is."""
        own_of = lambda part, other: w.get(f"blk.{l}.nextn.{part}.weight", other)
        enters = np.concatenate([normed(own_of("embed_tokens", w["token_embd.weight"])[tokens], w[f"blk.{l}.nextn.enorm.weight"]),
                                 normed(before, w[f"blk.{l}.nextn.hnorm.weight"])], axis=-1) @ w[f"blk.{l}.nextn.eh_proj.weight"].T
        one = {t: v for t, v in w.items() if not t.startswith(("blk.", "output."))}
        one.update({t.replace(f"blk.{l}.", "blk.0."): v for t, v in w.items() if t.startswith(f"blk.{l}.")})
        one.update({"token_embd.weight": enters, "output_norm.weight": w[f"blk.{l}.{norm}.weight"] if norm else own_of("shared_head_norm", w["output_norm.weight"]),
                    "output.weight": own_of("shared_head_head", w.get("output.weight", w["token_embd.weight"]))})

        def key(name, *default):
            value = {"block_count": 1, "nextn_predict_layers": 0, **changed}.get(name, None)
            value = k(name, *default) if value is None else value
            return [value[min(l, len(value) - 1)]] if isinstance(value, list) and name not in changed and name.startswith(("attention.", "swiglu_")) else value
        return key, one

    def forward(k, w, tokens, n_ctx):
        rows = rows_of(k, w, tokens, n_ctx)
        places = list(range(len(tokens)))
        for at in range(layer + 1):
            key, one = one_layer(k, w, first + at, np.concatenate([np.zeros((1, n_embd)), rows[:-1]]), tokens)
            rows = rows_of(key, one, places, n_ctx)
        return case.forward(key, one, places, n_ctx)

    added = add(name + "-guess" + (f"-{layer}" if layer else ""), case.arch, own_keys, w, case.forward and forward, case.n_ctx, case.descriptor)
    added.output, added.layer = "guess", layer


def keys_of(n_layer, n_embd, n_ff, n_head, eps, layer_norm=False, **more):
    out = {"block_count": n_layer, "context_length": 64, "embedding_length": n_embd, "feed_forward_length": n_ff,
           "attention.head_count": n_head}
    out["attention.layer_norm_epsilon" if layer_norm else "attention.layer_norm_rms_epsilon"] = eps
    return {**out, **{k.replace("__", "."): v for k, v in more.items()}}


# Families with a file of their own, ./twins/NAME.py, which adds its cases here, the plainest first. A test loads those that it
# runs: the weights of all of them take longer to make than most tests run.
TWINS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "twins")
FAMILIES = sorted(f[:-3] for f in os.listdir(TWINS) if f.endswith(".py"))


LOADED = {}  # the names that modules have added


def load(*modules):
    """The names of the cases that these modules add, in order; without those of a family that one of them loads."""
    if modules not in LOADED:
        before = set(CASES)
        for module in modules:
            importlib.import_module(module)
        others = {name for names in LOADED.values() for name in names}
        LOADED[modules] = [name for name in CASES if name not in before and name not in others]
    return LOADED[modules]


def load_others():
    """Those without a file of their own: ./plain.py, and the descriptors of ./archs."""
    return load("plain", "constructs")


def load_family(name):
    sys.path.insert(0, TWINS)
    try:
        return load(name)
    finally:
        del sys.path[0]


def load_all():
    load_others()
    for name in FAMILIES:
        load_family(name)
