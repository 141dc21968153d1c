"""Trains a model of one of the families (families.py) on the token files that tokenizer.py or bpe.py wrote.

The model is exactly what a GGUF file of that architecture describes: see llama.py, gpt2.py and qwen.py.

Learning rate: short warm-up, a constant part, then a cosine down to zero over the last --decay of the
steps. Because the constant part does not depend on the end, a run can be resumed with other --steps.

Repeating the right name is the hard part at this size. With plain training, the model tells a story well but still calls
its hero Anna, then Ruth, then Molly after six million tokens. Three things make it copy names after one million:
attention is initialized as copying (`copying` in llama.py), some rows of the first steps are copying drills
(`drill`), and the windows begin short and become long, because a head that attends equally to 64 tokens
still sees the name, but one that attends to 512 hardly does.

Training resumes from ckpt.pt in --work if it exists. The loss is written to loss.csv, one row per --log
steps: step, tokens, seconds, training loss, and, at every --check steps, the two validation losses.
"""

import argparse
import csv
import ctypes
import math
import os
import time
from dataclasses import asdict

import numpy as np
import torch
import torch.nn as nn

from families import FAMILIES
from llama import Config


class Muon(torch.optim.Optimizer):
    """Momentum whose matrix updates are made orthogonal, so that every direction moves by the same amount.

    The nearest orthogonal matrix comes from five Newton-Schulz steps X <- aX + (bA + cA^2)X, A = XX^T, with
    the published coefficients (Jordan 2024), which bring all singular values near 1. Only for the matrices
    inside the blocks; embedding and norms use AdamW.
    """

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @staticmethod
    def orthogonal(x):
        """x: (count, rows, columns), rows <= columns. bfloat16 is exact enough: only directions matter."""
        x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).bfloat16()
        for _ in range(5):
            a = x @ x.transpose(1, 2)
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return x.float()

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}                            # matrices of one shape are updated in one batch
            for p in group["params"]:
                m = self.state[p].setdefault("momentum", torch.zeros_like(p))
                m.mul_(group["momentum"]).add_(p.grad)
                g = p.grad + group["momentum"] * m
                tall = g.shape[0] > g.shape[1]
                shapes.setdefault(tuple(sorted(g.shape)), []).append((p, tall, g.T if tall else g))
            for same in shapes.values():
                updates = self.orthogonal(torch.stack([g for _, _, g in same]))
                for (p, tall, _), u in zip(same, updates):
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                    p.add_(u.T if tall else u, alpha=-group["lr"] * max(1, p.shape[0] / p.shape[1]) ** 0.5)


class Windows:
    """Windows of `time` + 1 tokens, each beginning with the first token of a story, as in use.

    A story begins with the token `begin`, or, if that is none, after the token `end`.
    """

    def __init__(self, path, time, begin, end):
        self.ids, self.time = np.fromfile(path, np.uint16), time
        starts = np.flatnonzero(self.ids == begin) if begin is not None else \
            np.concatenate(([0], np.flatnonzero(self.ids[:-1] == end) + 1))
        picked, end = [], 0                        # the next window begins at the last story it cut
        for i, s in enumerate(starts):
            nxt = starts[i + 1] if i + 1 < len(starts) else len(self.ids)
            if nxt - end > time or i == 0:         # this story does not fit into the running window
                picked.append(s)
                end = s
        self.starts = np.array([s for s in picked if s + time + 1 <= len(self.ids)])

    def batch(self, numbers):
        at = self.starts[numbers][:, None] + np.arange(self.time + 1)[None, :]
        rows = torch.from_numpy(self.ids[at].astype(np.int64))
        return rows[:, :-1], rows[:, 1:]


def drill(x, y, share, pieces, seed):
    """Replaces some rows by random rows of three tokens each: "b a a c b a ...".

    The only way to predict them is to repeat what came before, whatever it is. Stories need the same for
    names, but too seldom: without the drills, a small model learns everything else first and then copies wrong names
    for thousands of steps.
    """
    rng = np.random.default_rng(seed)
    n = round(share * len(x))
    few = rng.integers(*pieces, (n, 3))
    rows = torch.from_numpy(np.take_along_axis(few, rng.integers(0, 3, (n, x.shape[1] + 1)), 1))
    x[:n, 1:], y[:n] = rows[:, :-1][:, 1:], rows[:, 1:]
    return x, y


def validate(model, windows, rows, bf16):
    model.eval()
    total = 0.0
    n = min(len(windows.starts), 64 * 256 // windows.time)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        for i in range(0, n, rows):
            part = np.arange(i, min(i + rows, n))
            total += model(*windows.batch(part)).item() * len(part)
    model.train()
    return total / n if n else float("nan")


def rate(step, args):
    """Learning rate of a step, as a share of --lr."""
    if step < args.warmup:
        return (step + 1) / args.warmup
    left = (args.steps - step) / (args.decay * args.steps)
    return 1.0 if left >= 1 else 0.5 - 0.5 * math.cos(math.pi * max(left, 0.0))


def keep_memory():
    """Makes glibc keep freed memory instead of returning it page by page: 1.6 times the speed here."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        for option, value in ((-4, 0), (-1, 2**31 - 1), (-2, 2**28)):   # M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD
            mallopt(option, value)


def phase(text):
    """ "64:0.15" -> (64, 0.15)"""
    length, share = text.split(":")
    return int(length), float(share)


def save(path, **state):
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)                # never a half-written checkpoint


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    ap.add_argument("--family", choices=FAMILIES, default="llama")
    family = FAMILIES[ap.parse_known_args()[0].family]
    ap.add_argument("--work", required=True)
    ap.add_argument("--data", help="folder of the token files; default: --work")
    for field, value in asdict(family.config).items():
        ap.add_argument("--" + field.replace("_", "-"), type=type(value), default=value)
    ap.add_argument("--steps", type=int, default=3060)
    ap.add_argument("--tokens", type=int, default=4096, help="tokens per step")
    ap.add_argument("--phases", type=phase, nargs="+", default=[(64, 0.2), (128, 0.4), (256, 0.82), (512, 1)],
                    help="length of the windows : until this share of the steps")
    ap.add_argument("--drill", type=float, default=0.13,
                    help="share of the first steps that have copying drills")
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--muon", type=float, default=0.015, help="learning rate of Muon; 0: AdamW for all")
    ap.add_argument("--warmup", type=int, default=150)
    ap.add_argument("--decay", type=float, default=0.4)
    ap.add_argument("--weight-decay", type=float, default=0.05)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--bf16", action="store_true")
    ap.add_argument("--log", type=int, default=10)
    ap.add_argument("--check", type=int, default=250)
    ap.add_argument("--minutes", type=float, default=3, help="between two checkpoints")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    keep_memory()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)

    cfg = Config(**{k: getattr(args, k) for k in asdict(family.config)})
    model = family.model(cfg)
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and n.startswith("blk.")]
    others = [p for n, p in model.named_parameters() if p.dim() < 2 or not n.startswith("blk.")]
    opts = [torch.optim.AdamW(others, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0)]
    if args.muon:
        opts.append(Muon(matrices, lr=args.muon, weight_decay=args.weight_decay))
    else:
        opts.append(torch.optim.AdamW(matrices, lr=args.lr, betas=(0.9, 0.98), weight_decay=args.weight_decay))
    groups = [(g, g["lr"]) for opt in opts for g in opt.param_groups]
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {cfg}", flush=True)

    ckpt, log = os.path.join(args.work, "ckpt.pt"), os.path.join(args.work, "loss.csv")
    step, spent = 0, 0.0
    if os.path.exists(ckpt):
        state = torch.load(ckpt)
        model.load_state_dict(state["model"])
        for opt, old in zip(opts, state["opts"]):
            opt.load_state_dict(old)
        groups = [(g, lr) for (_, lr), g in zip(groups, (g for opt in opts for g in opt.param_groups))]
        step, spent = state["step"], state["spent"]
        with open(log, newline="") as f:             # rows after the checkpoint are written again
            rows = [row for row in csv.reader(f) if int(row[0]) <= step]
        with open(log, "w", newline="") as f:
            csv.writer(f).writerows(rows)
        print(f"resumed at step {step}", flush=True)
    elif os.path.exists(log):
        os.remove(log)

    begin, saved, mean = time.time() - spent, time.time(), []
    place = order = None
    while step < args.steps:
        window = next(length for length, share in args.phases if step < share * args.steps or share >= 1)
        rows = args.tokens // window
        if place is None or place[0] != window:
            train, *checks = (Windows(os.path.join(args.data or args.work, n + ".bin"), window, family.begin,
                                      cfg.vocab - 1) for n in ("train", "valid-world", "valid-prose"))
            per_epoch = len(train.starts) // rows
        if place != (window, step // per_epoch):   # a new order for each pass, the same after a resume
            place = (window, step // per_epoch)
            order = np.random.default_rng([args.seed, *place]).permutation(len(train.starts))
        i = step % per_epoch * rows
        for g, lr in groups:
            g["lr"] = lr * rate(step, args)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            x, y = train.batch(order[i:i + rows])
            if step < args.drill * args.steps:
                pieces = family.pieces(cfg.vocab)
                x, y = drill(x.clone(), y.clone(), 0.2, pieces, [args.seed, step])
            loss = model(x, y)
        model.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for opt in opts:
            opt.step()
        step += 1
        mean.append(loss.item())

        last = step == args.steps
        if step % args.log == 0 or last:
            seconds = time.time() - begin
            row = [step, step * args.tokens, round(seconds, 1), round(sum(mean) / len(mean), 4)]
            mean = []
            if step % args.check == 0 or last:
                row += [round(validate(model, w, rows, args.bf16), 4) for w in checks]
                print(*row, f"{row[1] / seconds:.0f} tok/s", flush=True)
            with open(log, "a", newline="") as f:
                csv.writer(f).writerow(row)
        if last or time.time() - saved > 60 * args.minutes:
            saved = time.time()
            save(ckpt, model=model.state_dict(), opts=[opt.state_dict() for opt in opts], config=asdict(cfg),
                 family=args.family, step=step, spent=time.time() - begin)


if __name__ == "__main__":
    main()
