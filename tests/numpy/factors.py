#!/usr/bin/env python3
"""Adapters on weights that are more than their tensor: those with a factor NAME.scale, and the output of models that use the
embedding for it. --lora, llm-lora merge and llm-lora extract, against weights into which numpy has merged the change.

    factors.py --cli LLM_CLI --dir FOLDER LLM_LORA

Exit code 0, 1.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

import gguf
import nano
from check import LIMIT_REFERENCE

RANK = 3
failed = False


def fault(text):
    global failed
    failed = True
    print("FAILED:", text)


class Model:
    """A model's keys and tensors, and where its files are."""

    def __init__(self, a, folder, name, meta, tensors, tokens, n_ctx):
        self.a, self.folder, self.meta, self.tensors, self.tokens, self.n_ctx = a, folder, meta, tensors, tokens, n_ctx
        self.arch, self.path = meta["general.architecture"], os.path.join(folder, name + ".gguf")
        gguf.write(self.path, meta, tensors)

    def changed(self, tensors):
        return Model(self.a, self.folder, "changed", self.meta, tensors, self.tokens, self.n_ctx)

    def run(self, *more):
        """The logits on the reference backend; a text: it was refused."""
        out = os.path.join(self.folder, "out.npy")
        done = subprocess.run([self.a.cli, "-m", self.path, "--tokens", ",".join(map(str, self.tokens)), "-n", "0", "-c", str(self.n_ctx),
                               "-t", "1", "-ctk", "f32", "-ctv", "f32", "--backend", "reference", "--logits", out, *more],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode not in (0, 1) or "runtime error:" in done.stderr:
            raise RuntimeError(done.stderr)
        return np.load(out) if done.returncode == 0 else done.stderr

    def adapter(self, name, pairs):
        path = os.path.join(self.folder, name + ".gguf")
        tensors = {f"{n}.lora_{half}": np.ascontiguousarray(x, np.float32) for n, p in pairs.items() for half, x in zip("ab", p)}
        gguf.write(path, {"general.type": "adapter", "adapter.type": "lora", "general.architecture": self.arch}, tensors)
        return path

    def tool(self, command, *words):
        """The file that llm-lora writes; a text: it refused."""
        out = os.path.join(self.folder, command + ".gguf")
        done = subprocess.run([self.a.lora, command, *words, "-o", out], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode not in (0, 1) or "runtime error:" in done.stderr:
            raise RuntimeError(done.stderr)
        return out if done.returncode == 0 else None, done.stderr


def pair(rng, name, w):
    *stack, n_out, n_in = w.shape
    a, b = rng.normal(size=(*stack, RANK, n_in)), rng.normal(size=(*stack, n_out, RANK)) / np.sqrt(n_in * RANK)
    return (b.astype(np.float32), a.T.astype(np.float32)) if name == "token_embd.weight" else (a.astype(np.float32), b.astype(np.float32))


def product(name, halves):
    a, b = (x.astype(np.float64) for x in halves)
    return a @ b.T if name == "token_embd.weight" else b @ a


def near(what, got, want, limit=LIMIT_REFERENCE):
    if isinstance(got, str):
        fault(f"{what}: {got}")
    elif not np.abs(got - want).max() <= limit * max(1, np.abs(want).max()):
        fault(f"{what}: off by {np.abs(got - want).max():.2g} of {np.abs(want).max():.2g}")


def same(what, got, want):
    if isinstance(got, str) or isinstance(want, str) or not np.array_equal(got, want):
        fault(f"{what}: {got if isinstance(got, str) else 'other bits'}")


# --- factors ---------------------------------------------------------------------------------------------------------------------

def s_w(x, g):
    return x @ g.w.T * g.s + x @ g.D.T


def chosen(x, g):
    return np.argsort(-(x @ g.router.T), axis=1)[:, :2]


def sum_of(x, g, stack):
    return np.stack([sum(stack[e] @ row for e in es) for row, es in zip(x, chosen(x, g))])


def experts(x, g):
    return np.stack([sum(g.se[e] * (g.we[e] @ row) + g.E[e] @ row for e in es) for row, es in zip(x, chosen(x, g))])


# What a descriptor computes with the weight w, its factor s, the stack we of matrices and its factors se; the same here, where D
# and E are the changes of w and we.
APPLIED = {
    "linear(x, w) * s": s_w,
    "s * linear(x, w)": s_w,
    "flat(heads(linear(x, w), 4) * s)": s_w,
    "times(x, w, s)": s_w,
    "by(linear(x, w), s)": s_w,
    "max(linear(x, w), 0) * s": lambda x, g: np.maximum(x @ (g.w + g.D).T, 0) * g.s,
    "linear(x, w) * rows": lambda x, g: x @ g.w.T * g.rows + x @ g.D.T,
    "sum(linear(x, we[e]) * reshape(se[e], 1, 2), 1)": experts,
    "flat(sum(reshape(linear(x, we[e]), 6, 4, 2) * reshape(se[e], 1, 1, 2), 2))": experts,
    "sum(linear(x, we[e]), 1) * 2": lambda x, g: 2 * sum_of(x, g, g.we + g.E),
    # the engine adds what changes to each; no one matrix computes both
    "linear(x, w) * s + linear(x, w)": lambda x, g: s_w(x, g) + x @ (g.w + g.D).T,
}
REFUSED = ["linear(x * s, w)", "linear(x, w) / s", "linear(x, w) * (2 * s)", "(linear(x, w) + x) * s", "s * (0 - linear(x, w))",
           "held(linear(x, w), s)", "linear(x, w) * s * s"]
NO_MERGE = {"linear(x, w) * s + linear(x, w)"}


DESCRIPTOR = """arch factors
language 1
n_embd = .embedding_length
op times(x, w, s) = linear(x, w) * s
op by(y, s) = y * s
def held(y, s):
  p = state(size(y))
  keep p = y
  return y * s
token_embd [n_embd, n_vocab]
x = token_embd[token]
layer l < .block_count:
  DECLARED
  x = x + EXPR
output [n_embd, n_vocab]
logits = linear(x, output)
"""
DECLARED = {"w": "w [n_embd, n_embd]", "s": 's [1] from "blk.{l}.w.scale"', "rows": 'rows [n_embd] from "blk.{l}.w.scale"',
            "we": "we [n_embd, n_embd, 5]", "se": 'se [5] from "blk.{l}.we.scale"', "e": "router [n_embd, 5]\n  e = topk(linear(x, router), 2)"}


class Globals:
    pass


def words_of(expr):
    return "".join(c if c.isalnum() else " " for c in expr).split()


def own_model(a, folder, expr, rng):
    n, n_vocab = 24, 40
    used = [name for name in DECLARED if name in words_of(expr)]
    text = DESCRIPTOR.replace("EXPR", expr).replace("DECLARED", "\n  ".join(DECLARED[name] for name in used))
    t = {"token_embd.weight": rng.normal(size=(n_vocab, n)), "output.weight": rng.normal(size=(n_vocab, n)) / 5}
    for l in range(2):
        t[f"blk.{l}.w.weight"] = rng.normal(size=(n, n)) / 5
        t[f"blk.{l}.w.scale"] = rng.uniform(0.2, 3, n if "rows" in used else 1) * rng.choice([-1, 1])
        t[f"blk.{l}.we.weight"] = rng.normal(size=(5, n, n)) / 5
        t[f"blk.{l}.we.scale"] = rng.uniform(0.2, 3, 5)
        t[f"blk.{l}.router.weight"] = rng.normal(size=(5, n))
        keep = {"w": "w", "we": "we", "s": "w", "rows": "w", "se": "we", "e": "router"}
        for name in ("w.weight", "w.scale", "we.weight", "we.scale", "router.weight"):
            stem, end = name.split(".")
            if not any(keep[u] == stem and (u in ("s", "rows", "se")) == (end == "scale") for u in used):
                del t[f"blk.{l}.{name}"]
    t = {k: v.astype(np.float32) for k, v in t.items()}
    meta = {"general.architecture": "factors", "general.descriptor": text, "factors.embedding_length": n, "factors.block_count": 2,
            "factors.context_length": 64, "factors.vocab_size": n_vocab}
    return Model(a, folder, "own", meta, t, [int(i) for i in rng.integers(0, n_vocab, 12)], 32)


def own_logits(m, expr, change):
    w = {k: v.astype(np.float64) for k, v in m.tensors.items()}
    x = w["token_embd.weight"][m.tokens]
    for l in range(2):
        g = Globals()
        for name, tensor in (("w", "w.weight"), ("s", "w.scale"), ("rows", "w.scale"), ("we", "we.weight"), ("se", "we.scale"), ("router", "router.weight")):
            setattr(g, name, w.get(f"blk.{l}.{tensor}"))
        g.D, g.E = change.get(f"blk.{l}.w.weight", 0 if g.w is None else 0 * g.w), change.get(f"blk.{l}.we.weight", 0 if g.we is None else 0 * g.we)
        x = x + APPLIED[expr](x, g)
    return x @ w["output.weight"].T


def own_descriptors(a, folder):
    rng = np.random.default_rng(34)
    for expr in APPLIED:
        m = own_model(a, folder, expr, rng)
        names = [n for n in m.tensors if n.endswith((".w.weight", ".we.weight"))]
        pairs, more = ({n: pair(rng, n, m.tensors[n]) for n in names[k:]} for k in (0, 1))
        change = {n: 0.5 * product(n, p) + (-2 * product(n, more[n]) if n in more else 0) for n, p in pairs.items()}
        one, two = m.adapter("one", pairs), m.adapter("two", more)
        near(expr, m.run(), own_logits(m, expr, {}))
        near(expr + " adapted", m.run("--lora", f"{one}:0.5,{two}:-2"), own_logits(m, expr, change))
        same(expr + " at scale 0", m.run("--lora", f"{one}:0"), m.run())
        same(expr + " with one at scale 0", m.run("--lora", f"{two}:0,{one}:0.5"), m.run("--lora", f"{one}:0.5"))
        merged, why = m.tool("merge", m.path, one + "=0.5", two + "=-2")
        if expr in NO_MERGE:
            if merged or "not all of its products" not in why:
                fault(f"{expr}: a merge that no matrix could have: {why}")
            continue
        if not merged:
            fault(f"{expr}: {why}")
            continue
        near(expr + " merged", Model(a, folder, "merged", m.meta, gguf.read(merged)[1], m.tokens, m.n_ctx).run(), own_logits(m, expr, change), 1e-4)
        # an adapter of full rank is the tuned model, whose factors differ, too
        tuned = dict(m.tensors)
        for n in tuned:
            if "blk" in n and "router" not in n and not (n.endswith("scale") and "max" in expr):
                tuned[n] = (tuned[n] * rng.uniform(0.5, 2, tuned[n].shape)).astype(np.float32)
        t = m.changed(tuned)
        made, why = m.tool("extract", m.path, t.path, "--rank", "24")
        near(expr + " extracted", m.run("--lora", made) if made else why, t.run(), 2e-4)
    for expr in REFUSED:
        m = own_model(a, folder, expr, rng)
        one = m.adapter("one", {n: pair(rng, n, m.tensors[n]) for n in m.tensors if n.endswith(".w.weight")})
        got = m.run("--lora", one)
        if not isinstance(got, str) or "blk.0.w.scale" not in got or "it is not known what the change is" not in got:
            fault(f"{expr} is adapted, or refused without a reason: {got if isinstance(got, str) else ''}")
    m = own_model(a, folder, "linear(x, w) * s", rng)
    zero = m.changed({n: t * 0 if n == "blk.1.w.scale" else t for n, t in m.tensors.items()})
    pairs = {"blk.1.w.weight": pair(rng, "w", m.tensors["blk.1.w.weight"])}
    near("a factor of 0", zero.run("--lora", zero.adapter("one", pairs)), own_logits(zero, "linear(x, w) * s", {n: product(n, p) for n, p in pairs.items()}))
    merged, why = zero.tool("merge", zero.path, zero.adapter("one", pairs))
    if merged or "blk.1.w.scale" not in why:
        fault(f"a factor of 0 is merged: {why}")


def shipped(a, folder):
    """Families whose files may have factors, and one with a tensor of such a name that is a share of the router's."""
    for family in ("bitnet", "gemma4"):
        for name in nano.load_family(family):
            case = nano.CASES[name]
            scales = [n for n in case.tensors if n.endswith(".scale")]
            if not scales:
                continue
            m = Model(a, folder, "model", case.meta(), case.tensors, case.tokens, case.n_ctx)
            rng = np.random.default_rng(len(name))
            pairs = {n: pair(rng, n, w) for n, w in case.tensors.items() if w.ndim > 1 and "blk." in n}
            one = m.adapter("one", pairs)
            while isinstance(got := m.run("--lora", one), str) and "does not compute with it" in got:
                del pairs[got.split(".gguf: ")[1].split(".lora_a")[0]]  # in layers with another's keys
                one = m.adapter("one", pairs)
            w = {n: t.astype(np.float64) for n, t in case.tensors.items()}
            for n, p in pairs.items():
                by = w.get(n[:-6] + "scale") if family == "bitnet" else None
                w[n] = w[n] + product(n, p) / (1 if by is None else by)
            with np.errstate(all="ignore"):
                want = case.forward(lambda key, *other: case.keys.get(key, *other) if other else case.keys[key], w, case.tokens, case.n_ctx)
            near(name, got, want)
            merged, why = m.tool("merge", m.path, one)
            near(name + " merged", Model(a, folder, "merged", case.meta(), gguf.read(merged)[1], case.tokens, case.n_ctx).run() if merged else why, want, 1e-4)
            print(f"{name}: {len(pairs)} matrices, {len(scales)} tensors named .scale")


# --- tied models -------------------------------------------------------------------------------------------------------------------


def tied(a, folder):
    nano.load_others()
    first = ["llama", "qwen3", "gpt2", "lfm2", *(nano.load_family(f)[0] for f in nano.FAMILIES)]
    second = [n for f in nano.FAMILIES for n in nano.load_family(f) if "output.weight" not in nano.CASES[n].tensors][::5]
    n_tied = n_refused = 0
    for k, name in enumerate(dict.fromkeys([*first, *second])):
        case = nano.CASES[name]
        if "output.weight" in case.tensors or "token_embd.weight" not in case.tensors or case.descriptor or case.output or case.target:
            continue
        m = Model(a, folder, "model", case.meta(), case.tensors, case.tokens[:8], case.n_ctx)
        rng = np.random.default_rng(k)
        e = case.tensors["token_embd.weight"]
        embd, out = {"token_embd.weight": pair(rng, "token_embd.weight", e)}, {"output.weight": pair(rng, "output.weight", e)}
        E, O, both = m.adapter("embd", embd), m.adapter("out", out), m.adapter("both", {**out, **embd})
        only = m.run("--lora", E)
        if isinstance(m.run("--lora", O), str):
            n_refused += 1  # some descriptors have no output of its own
            continue
        n_tied += 1
        for lora in (f"{E},{O}:0", f"{O}:0,{E}"):
            same(f"{name}: {os.path.basename(lora)}", m.run("--lora", lora), only)
        same(f"{name}: scale 0", m.run("--lora", f"{O}:0,{E}:0"), m.run())
        changed = {**case.tensors, "token_embd.weight": (e + product("token_embd.weight", embd["token_embd.weight"])).astype(np.float32)}
        changed["output.weight"] = (changed["token_embd.weight"] + product("", out["output.weight"])).astype(np.float32)
        want = m.changed(changed).run()
        near(f"{name}: both", m.run("--lora", f"{E},{O}"), want)
        near(f"{name}: both, the other way round", m.run("--lora", f"{O},{E}"), want)
        near(f"{name}: both in one", m.run("--lora", both), want)
        for order in ([E, O + "=0"], [O + "=0", E]):
            merged, why = m.tool("merge", m.path, *order)
            got = gguf.read(merged)[1] if merged else {}
            if got.keys() != case.tensors.keys() or not np.allclose(got["token_embd.weight"], changed["token_embd.weight"], 1e-6, 1e-6):
                fault(f"{name}: merge of {order}: {why or 'other tensors'}")
        merged, why = m.tool("merge", m.path, O, E)
        got = gguf.read(merged)[1] if merged else {}
        if got.keys() != changed.keys() or not all(np.allclose(got[n], changed[n], 1e-6, 1e-6) for n in changed):
            fault(f"{name}: merge of both: {why or 'other tensors'}")
    print(f"{n_tied} tied models, {n_refused} of families without an output of their own")
    if n_tied < 18:
        fault("too few tied models")


# --- factors that no descriptor declares ---------------------------------------------------------------------------------------------


def beside(a, folder):
    """A power of two beside a matrix, which is divided by it, changes no bit of the logits: of every family, of each of its matrices that products read, of
    experts one each. Where a model does more with a matrix, it is refused with the tensor's name."""
    nano.load_others()
    for f in nano.FAMILIES:
        nano.load_family(f)
    n_same, refused = 0, {}
    for k, (name, case) in enumerate(nano.CASES.items()):
        if case.descriptor or case.output or case.target:
            continue
        rng = np.random.default_rng(k)
        m = Model(a, folder, "model", case.meta(), case.tensors, case.tokens[:8], case.n_ctx)
        plain = m.run()
        if isinstance(plain, str):
            continue
        names = [n for n, t in case.tensors.items() if t.ndim > 1 and n.endswith(".weight") and n[:-6] + "scale" not in case.tensors and
                 not (case.meta()["general.architecture"] == "gemma4" and "ffn_down_exps" in n)]  # its factor is declared, and multiplies shares
        with_factors = dict(case.tensors)
        for n in names:
            t = case.tensors[n]
            by = 2.0 ** rng.integers(-3, 4, t.shape[0] if t.ndim > 2 and rng.integers(2) else 1)
            with_factors[n] = (t / (by.reshape(-1, *[1] * (t.ndim - 1)))).astype(np.float32)
            with_factors[n[:-6] + "scale"] = by.astype(np.float32)
        while isinstance(got := m.changed(with_factors).run(), str):
            if "the file has the factor" not in got:
                fault(f"{name}: {got}")
                break
            n = got.split("the file has the factor ")[1].split(",")[0][:-5] + "weight"
            refused.setdefault(name, []).append(n)
            if n not in with_factors or n[:-6] + "scale" not in with_factors:
                fault(f"{name}: {n} has no factor")
                break
            with_factors[n] = case.tensors[n]
            del with_factors[n[:-6] + "scale"]
        else:
            same(f"{name}: factors beside {len(names)} matrices", got, plain)
            n_same += 1
    print(f"{n_same} models with factors; refused: {refused}")
    if n_same < 100:
        fault("too few models with factors")
    case = nano.CASES["llama"]
    m = Model(a, folder, "model", case.meta(), case.tensors, case.tokens[:8], case.n_ctx)
    for what, factor, words in (("two numbers", np.ones(2, np.float32), "tensor blk.0.attn_q.scale has 2 numbers of type f32"),
                                ("another type", np.ones(1, np.float16), "of type f16"),
                                ("of no weight", np.ones(1, np.float32), "nothing.scale")):
        got = m.changed({**case.tensors, "nothing.scale" if what == "of no weight" else "blk.0.attn_q.scale": factor}).run()
        if not isinstance(got, str) or words not in got:
            fault(f"a factor of {what}: {got if isinstance(got, str) else 'not refused'}")
    got = m.changed({**case.tensors, "blk.0.attn_q.input_scale": np.ones(1, np.float32)}).run()
    same("input_scale", got, m.run())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli", required=True)
    p.add_argument("--dir", required=True)
    p.add_argument("lora")
    a = p.parse_args()
    with tempfile.TemporaryDirectory(dir=a.dir) as folder:
        own_descriptors(a, folder)
        shipped(a, folder)
        tied(a, folder)
        beside(a, folder)
    return failed


if __name__ == "__main__":
    sys.exit(main())
