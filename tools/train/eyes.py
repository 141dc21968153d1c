"""Trains a model that sees coloured shapes and says what they are: an eye and a text model, at once, from nothing. Writes DIR/ckpt.pt.

    python3 eyes.py --work DIR [--steps N] [--bf16]

The eye is LLaVA's: patches of 8 x 8 pixels, a transformer, two products; its 64 rows stand in the text where the picture is. The text
model is a Llama. Pictures are drawn while it trains (shapes.py), so none comes twice. Beside the words, and alone before them, the eye learns
which shape and which colour each patch shows most of, by two matrices that the exported file lacks: the words alone would teach it much more
slowly.

Training resumes from ckpt.pt.
"""

import argparse
import collections
import json
import math
import os
import time
from dataclasses import asdict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import bpe
import shapes
from llama import Config, Llama, attend
from muon import Muon, keep_memory, save

SIDE, PATCH = 64, 8
N_ROWS = (SIDE // PATCH) ** 2
GROUND = (122, 116, 104)   # around pictures that are not square, as the descriptor has it
CONTROL = ["<|endoftext|>", "<|user|>", "<|assistant|>", "<|end|>"]

ASKED = ["What is in the picture?", "What is in this picture?", "What is this?", "What do you see?", "What can you see?", "Describe the picture.",
         "Describe this image.", "Describe the image.", "What is shown?", "What does the picture show?", "What's in the image?", "What is in the image?",
         "What's this?", "Tell me what you see.", "Please describe what you see.", "describe", "what is it?", "What shapes are there?",
         "Which shapes do you see?", "Say what you see.", ""]
COUNTED = ["How many shapes are there?", "How many shapes do you see?", "How many things are in the picture?", "How many are there?",
           "Count the shapes."]
NO_PICTURE = "Show me a picture, and I will say which shapes it has."
TALK = ["Hello!", "Hello", "Hi", "Who are you?", "What can you do?", "Tell me a story.", "How are you?", "Thank you!", "Good morning", *ASKED[:-1], *COUNTED]


# --- words ------------------------------------------------------------------------------------------


def make_tokens(path, n=400):
    """The merges of all that is asked and said."""
    g, words = np.random.default_rng(0), collections.Counter()
    for k in range(4000):
        things = shapes.scene(g, 1, 1, np.full(3, 0.5))
        for text in (shapes.answer(things), ASKED[k % len(ASKED)], COUNTED[k % len(COUNTED)], shapes.count(things), TALK[k % len(TALK)],
                     *[f"What colour is the {s}? The {s} is {c}. There is no {s}." for s in shapes.SHAPES[:1 + k % 6] for c in shapes.COLORS], NO_PICTURE):
            words.update(bpe.regex.findall(bpe.PATTERNS["qwen2"], text))
    merges, counted = [], {bpe.spell(w): c for w, c in words.items()}
    try:
        merges = bpe.learn(counted, n - 256 - len(CONTROL))
    except ValueError:                             # there is nothing left to join
        raise SystemExit(f"{n} tokens are more than these texts have")
    tokens = [*bpe.LETTERS.values(), *("".join(m) for m in merges), *CONTROL]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(dict(pre="qwen2", tokens=tokens, merges=merges), f)


class Words:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.bpe = json.load(f)
        merges = [tuple(m) for m in self.bpe["merges"]]
        self.encoder = bpe.Encoder(self.bpe["pre"], self.bpe["tokens"], merges)
        self.id = {c: self.bpe["tokens"].index(c) for c in CONTROL}

    def turn(self, asked, said):
        """Tokens before and after the answer's beginning. A picture's rows follow the first token, or precede the last two."""
        i = self.id
        return [i["<|user|>"], *self.encoder.encode(asked), i["<|end|>"], i["<|assistant|>"]], [*self.encoder.encode(said), i["<|end|>"]]


def ask(g, things):
    """A question and its answer."""
    kind = g.random()
    if kind < 0.12:
        return COUNTED[g.integers(len(COUNTED))], shapes.count(things)
    if kind < 0.3:
        own = [t.shape for t in things]
        shape = own[g.integers(len(own))] if g.random() < 0.75 else shapes.SHAPES[g.integers(len(shapes.SHAPES))]
        said = shapes.color_of(things, shape)
        if said:
            colour = "colour" if g.random() < 0.6 else "color"
            return f"{('What', 'Which')[g.integers(2)]} {colour} {('is', 'has')[g.integers(2)]} the {shape}?", said
    asked = ASKED[0] if g.random() < 0.2 else ASKED[g.integers(len(ASKED))]
    if g.random() < 0.15:                          # something else: it says what it sees
        asked = " ".join("".join(chr(97 + c) for c in g.integers(0, 26, g.integers(1, 9))) for _ in range(g.integers(1, 6)))
    asked = asked.lower() if g.random() < 0.15 else asked
    return (" " + asked if g.random() < 0.1 else asked), shapes.answer(things)


# --- pictures ---------------------------------------------------------------------------------------


def fit(b, things, size):
    """A picture as the eye gets it, in the middle of a square, and the things' places in it (in pixels)."""
    height, width = b.shape[:2]
    top, left = (max(height, width) - height) // 2, (max(height, width) - width) // 2
    out = np.empty((max(height, width),) * 2 + (3,), np.float32)
    out[:] = GROUND
    out[top:top + height, left:left + width] = b
    k = SIDE / len(out)
    if len(out) == 2 * SIDE:
        out = out.reshape(SIDE, 2, SIDE, 2, 3).mean((1, 3))
    elif len(out) != SIDE:                         # between neighbours
        at = np.clip((np.arange(SIDE) + 0.5) / k - 0.5, 0, len(out) - 1)
        i, part = at.astype(int), at - at.astype(int)
        j = np.minimum(i + 1, len(out) - 1)
        out = out[i] * (1 - part)[:, None, None] + out[j] * part[:, None, None]
        out = out[:, i] * (1 - part)[None, :, None] + out[:, j] * part[None, :, None]
    return out, [(t, (t.x * size + left) * k, (t.y * size + top) * k, t.r * size * k) for t in things]


def shown(placed):
    """Which shape and which colour each patch shows most of; 0: none."""
    shape, color = np.zeros((SIDE, SIDE), int), np.zeros((SIDE, SIDE), int)
    for t, x, y, r in placed:
        lines, columns, a = shapes.cover(shapes.Thing(t.color, t.shape, x / SIDE, y / SIDE, r / SIDE, t.turn, t.rgb), SIDE, SIDE, SIDE)
        here = a > 0.3
        shape[lines, columns][here], color[lines, columns][here] = 1 + shapes.SHAPES.index(t.shape), 1 + list(shapes.COLORS).index(t.color)
    cut = lambda m: m.reshape(SIDE // PATCH, PATCH, SIDE // PATCH, PATCH).transpose(0, 2, 1, 3).reshape(N_ROWS, -1)
    most = cut(shape).argmax(1)
    count = cut((shape > 0).astype(int)).sum(1)
    middle = np.take_along_axis(cut(shape), most[:, None], 1)[:, 0], np.take_along_axis(cut(color), most[:, None], 1)[:, 0]
    return [np.where(count >= 10, m, 0) for m in middle]


def patches(pictures):
    """(n, 64, 64, 3) of 0 to 255 -> (n, 64 patches, 3 * 8 * 8), a channel after the other."""
    x = torch.from_numpy(pictures) / 127.5 - 1
    n = SIDE // PATCH
    return x.view(-1, n, PATCH, n, PATCH, 3).permute(0, 1, 3, 5, 2, 4).reshape(-1, N_ROWS, 3 * PATCH * PATCH)


class Batch:
    """Pictures with a question and its answer each, and a few questions without a picture."""

    def __init__(self, g, words, n):
        inputs, pictures, seen = [], [], []
        for k in range(n):
            if k % 32 == 31:
                pictures.append(None)
                inputs.append(words.turn(TALK[g.integers(len(TALK))], NO_PICTURE))
                continue
            size = int(g.choice([SIDE, SIDE, SIDE, 2 * SIDE, g.integers(48, 120)]))
            b, things = shapes.draw(g, size)
            b, placed = fit(b, things, size)
            pictures.append(len(seen))
            seen.append((b, shown(placed)))
            inputs.append(words.turn(*ask(g, things)))
        self.patches = patches(np.stack([b for b, _ in seen]).astype(np.float32))
        self.shape, self.color = (torch.as_tensor(np.stack([s[k] for _, s in seen])) for k in (0, 1))
        length = max(len(a) + len(b) for a, b in inputs) + N_ROWS
        self.ids, self.targets = torch.zeros(n, length, dtype=torch.long), torch.full((n, length), -100)
        self.rows = torch.zeros(n, length, dtype=torch.long)             # 1 + which row of the eye; 0: a token
        for k, (before, after) in enumerate(inputs):
            rows = [0] * N_ROWS if pictures[k] is not None else []
            at = 1 if g.random() < 0.85 else len(before) - 2             # the picture, then the question, or the other way round
            ids = before[:at] + rows + before[at:] + after
            self.ids[k, :len(ids)] = torch.tensor(ids)
            self.targets[k, len(ids) - len(after) - 1:len(ids) - 1] = torch.tensor(after)
            if rows:
                self.rows[k, at:at + N_ROWS] = 1 + pictures[k] * N_ROWS + torch.arange(N_ROWS)


# --- the model --------------------------------------------------------------------------------------


class EyeLayer(nn.Module):
    def __init__(self, n, heads, ff):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(n, 1e-5), nn.LayerNorm(n, 1e-5)
        self.attn_q, self.attn_k, self.attn_v, self.attn_out = (nn.Linear(n, n) for _ in range(4))
        self.ffn_up, self.ffn_down = nn.Linear(n, ff), nn.Linear(ff, n)

    def forward(self, x):
        h = self.ln1(x)
        q, k, v = (f(h).unflatten(-1, (self.heads, -1)) for f in (self.attn_q, self.attn_k, self.attn_v))
        x = x + self.attn_out(attend(q, k, v, 0))
        return x + self.ffn_down(F.gelu(self.ffn_up(self.ln2(x)), approximate="tanh"))


class Eye(nn.Module):
    """Parameters are named as the file's tensors, but for the two last."""

    def __init__(self, n, layers, heads, ff, out):
        super().__init__()
        self.patch_embd = nn.Linear(3 * PATCH * PATCH, n)
        self.position_embd = nn.Parameter(torch.randn(N_ROWS, n) * 0.3)
        self.blk = nn.ModuleList(EyeLayer(n, heads, ff) for _ in range(layers))
        self.post_ln = nn.LayerNorm(n, 1e-5)
        self.mm0, self.mm2 = nn.Linear(n, n), nn.Linear(n, out)
        self.shape, self.color = nn.Linear(n, 1 + len(shapes.SHAPES)), nn.Linear(n, 1 + len(shapes.COLORS))

    def forward(self, x):
        x = self.patch_embd(x) + self.position_embd
        for block in self.blk:
            x = block(x)
        x = self.post_ln(x)
        return self.mm2(F.gelu(self.mm0(x), approximate="tanh")), x


class Seeing(nn.Module):
    def __init__(self, cfg, eye):
        super().__init__()
        self.eye, self.text = Eye(**eye, out=cfg.embd), Llama(cfg)

    def forward(self, b, eye_alone):
        """Losses of the words and of the patches, and the part of the answers that are right to the last token."""
        text, t = self.text, b.ids.shape[1]
        rows, seen = self.eye(b.patches)
        shape, color = self.eye.shape(seen).float().flatten(0, 1), self.eye.color(seen).float().flatten(0, 1)
        patch = F.cross_entropy(shape, b.shape.flatten()) + F.cross_entropy(color, b.color.flatten())
        if eye_alone:
            return torch.zeros(()), patch, torch.zeros(())
        rows = torch.cat([torch.zeros(1, rows.shape[-1]), rows.flatten(0, 1)])
        x = torch.where((b.rows > 0)[:, :, None], rows[b.rows], text.token_embd(b.ids))
        for block in text.blk:
            x = block(x, text.cos[:t], text.sin[:t], text.mask[:t, :t])
        at = b.targets >= 0
        logits = F.linear(text.output_norm(x[at]), text.token_embd.weight).float()
        loss = F.cross_entropy(logits, b.targets[at])
        right = (logits.argmax(-1) == b.targets[at]).float()
        owner = torch.nonzero(at)[:, 0]
        all_right = torch.ones(len(b.ids)).scatter_reduce(0, owner, right, "amin").mean()
        return loss, patch, all_right


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    ap.add_argument("--work", required=True)
    for name, n in dict(embd=96, layers=3, heads=3, ff=256, eye_layers=3, eye_ff=288, tokens=400).items():
        ap.add_argument("--" + name.replace("_", "-"), type=int, default=n)
    ap.add_argument("--steps", type=int, default=3500)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--alone", type=float, default=0.35, help="share of the first steps in which the eye learns alone, from twice as many pictures")
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--muon", type=float, default=0.01)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--bf16", action="store_true")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    keep_memory()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    os.makedirs(args.work, exist_ok=True)
    path, ckpt = os.path.join(args.work, "bpe.json"), os.path.join(args.work, "ckpt.pt")
    if not os.path.exists(path):
        make_tokens(path, args.tokens)
    words = Words(path)
    cfg = Config(vocab=args.tokens, embd=args.embd, layers=args.layers, heads=args.heads, kv_heads=args.heads, head=args.embd // args.heads, ff=args.ff,
                 context=512)
    eye = dict(n=args.embd, layers=args.eye_layers, heads=args.heads, ff=args.eye_ff)
    model = Seeing(cfg, eye)
    is_matrix = lambda n, p: p.dim() == 2 and n.startswith("blk.")
    opts = []                                      # two of the eye, two of the text model
    for part in (model.eye, model.text):
        opts += [torch.optim.AdamW([p for n, p in part.named_parameters() if not is_matrix(n, p)], lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0),
                 Muon([p for n, p in part.named_parameters() if is_matrix(n, p)], lr=args.muon, weight_decay=0.05)]
    rates, step, spent = (args.lr, args.muon) * 2, 0, 0.0
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    if os.path.exists(ckpt):
        state = torch.load(ckpt)
        model.load_state_dict(state["model"])
        for opt, old in zip(opts, state["opts"]):
            opt.load_state_dict(old)
        step, spent = state["step"], state["spent"]
        print(f"resumed at step {step}", flush=True)
    begin, saved, sums = time.time() - spent, time.time(), []
    while step < args.steps:
        left = (args.steps - step) / (0.4 * args.steps)
        for opt, rate in zip(opts, rates):
            opt.param_groups[0]["lr"] = rate * min(1, (step + 1) / 100) * (1 if left >= 1 else 0.5 - 0.5 * math.cos(math.pi * left))
        alone = step < args.alone * args.steps
        b = Batch(np.random.default_rng([args.seed, step]), words, args.batch * (2 if alone else 1))
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            loss, patch, right = model(b, alone)
        if not torch.isfinite(loss + patch):
            raise SystemExit(f"step {step}: the loss is not finite")
        model.zero_grad(set_to_none=True)
        (loss + (1.0 if alone else 0.3) * patch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for opt in opts[:2] if alone else opts:
            opt.step()
        step += 1
        sums.append((loss.item(), patch.item(), right.item()))
        last = step == args.steps
        if step % 50 == 0 or last:
            mean = np.mean(sums, 0)
            sums = []
            print(f"step {step}, {(time.time() - begin) / 60:.1f} min: words {mean[0]:.4f}, patches {mean[1]:.4f}, answers all right {100 * mean[2]:.1f} %", flush=True)
        if last or time.time() - saved > 60:
            saved = time.time()
            save(ckpt, model=model.state_dict(), opts=[opt.state_dict() for opt in opts], config=asdict(cfg), eye=eye, step=step, spent=time.time() - begin)


if __name__ == "__main__":
    main()
