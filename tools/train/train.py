"""Trains a Llama-style model on the token files that tokenizer.py wrote.

The model is exactly what a GGUF file of architecture "llama" describes: RMSNorm, rotary positions on
adjacent pairs, grouped-query attention, SwiGLU, no biases, the output matrix shared with the embedding.

Learning rate: short warm-up, a constant part, then a cosine down to zero over the last --decay of the
steps. Because the constant part does not depend on the end, a run can be resumed with other --steps.

Repeating the right name is the hard part at this size: trained plainly, the model tells a story well and calls
its hero Anna, Ruth and Molly in turn, after six million tokens still. Three things make it copy after one:
attention is initialized as copying (`Llama.__init__`), some rows of the first steps are copying drills
(`drill`), and the windows begin short and become long, since among 64 tokens a head that looks everywhere
alike still sees the name, among 512 it hardly does.

Everything is resumed from ckpt.pt in --work if it is there. The loss goes to loss.csv, one row per --log
steps: step, tokens, seconds, training loss, and, at every --check steps, the two validation losses.
"""

import argparse
import csv
import ctypes
import math
import os
import time
from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 2048
    embd: int = 128            # every row length is a multiple of 32, the Q8_0 block
    layers: int = 5
    heads: int = 4
    kv_heads: int = 2          # heads // kv_heads query heads read one key/value head
    head: int = 32             # values per head
    ff: int = 352
    context: int = 512
    eps: float = 1e-5
    rope_base: float = 10000.0


class RMSNorm(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(n)), eps

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rope_table(cfg):
    """cos and sin of position * base^(-2i/head), each (context, head/2)."""
    inv = cfg.rope_base ** (-torch.arange(0, cfg.head, 2).double() / cfg.head)
    angle = torch.arange(cfg.context).double()[:, None] * inv[None, :]
    return angle.cos().float(), angle.sin().float()


def rope(x, cos, sin):
    """Turns each adjacent pair (2i, 2i+1) of the last axis. x: (batch, time, heads, head)."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        lin = lambda i, o: nn.Linear(i, o, bias=False)
        self.attn_norm, self.ffn_norm = RMSNorm(cfg.embd, cfg.eps), RMSNorm(cfg.embd, cfg.eps)
        self.attn_q = lin(cfg.embd, cfg.heads * cfg.head)
        self.attn_k = lin(cfg.embd, cfg.kv_heads * cfg.head)
        self.attn_v = lin(cfg.embd, cfg.kv_heads * cfg.head)
        self.attn_output = lin(cfg.heads * cfg.head, cfg.embd)
        self.ffn_gate, self.ffn_up = lin(cfg.embd, cfg.ff), lin(cfg.embd, cfg.ff)
        self.ffn_down = lin(cfg.ff, cfg.embd)

    def attention(self, x, cos, sin, mask):
        c, (b, t, _) = self.cfg, x.shape
        q = rope(self.attn_q(x).view(b, t, c.heads, c.head), cos, sin)
        k = rope(self.attn_k(x).view(b, t, c.kv_heads, c.head), cos, sin)
        v = self.attn_v(x).view(b, t, c.kv_heads, c.head)
        # The query heads of one group become rows of one matrix: (b, kv_heads, group * t, head).
        group = c.heads // c.kv_heads
        q = q.view(b, t, c.kv_heads, group, c.head).permute(0, 2, 3, 1, 4).reshape(b, c.kv_heads, group * t, c.head)
        k, v = k.permute(0, 2, 3, 1), v.transpose(1, 2)           # (b, kv, head, t), (b, kv, t, head)
        p = torch.matmul(q * c.head ** -0.5, k).view(b, c.kv_heads, group, t, t) + mask
        p = F.softmax(p, -1).view(b, c.kv_heads, group * t, t)
        y = torch.matmul(p.to(v.dtype), v).view(b, c.kv_heads, group, t, c.head)
        return self.attn_output(y.permute(0, 3, 1, 2, 4).reshape(b, t, c.heads * c.head))

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.attn_norm(x), cos, sin, mask)
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Llama(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.token_embd = nn.Embedding(cfg.vocab, cfg.embd)
        self.blk = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.output_norm = RMSNorm(cfg.embd, cfg.eps)
        cos, sin = rope_table(cfg)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.register_buffer("mask", torch.full((cfg.context, cfg.context), -1e30).triu(1), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:   # what is added to the residual starts smaller, by the number of additions
                last = name.endswith(("attn_output.weight", "ffn_down.weight"))
                std = p.shape[1] ** -0.5           # embedding: logits begin with variance 1
                nn.init.normal_(p, std=std / math.sqrt(2 * cfg.layers) if last else std)
        # Attention begins as copying: the output matrix undoes the value matrix. What a head looks at is then
        # made likelier from the first step on, and it only has to learn where to look.
        for block in self.blk:
            nn.init.orthogonal_(block.attn_v.weight)
            v = block.attn_v.weight.data.view(cfg.kv_heads, cfg.head, cfg.embd)
            per_query = v.repeat_interleave(cfg.heads // cfg.kv_heads, 0).reshape(-1, cfg.embd)
            block.attn_output.weight.data = per_query.T.contiguous() * (0.5 * cfg.kv_heads / cfg.heads)

    def forward(self, ids, targets):
        """Mean cross entropy, nats per token. ids, targets: (batch, time)."""
        t = ids.shape[1]
        x = self.token_embd(ids)
        for block in self.blk:
            x = block(x, self.cos[:t], self.sin[:t], self.mask[:t, :t])
        logits = F.linear(self.output_norm(x), self.token_embd.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


class Muon(torch.optim.Optimizer):
    """Momentum whose matrix updates are made orthogonal, so that every direction moves equally far.

    The nearest orthogonal matrix comes from five Newton-Schulz steps X <- aX + (bA + cA^2)X, A = XX^T, with
    the published coefficients (Jordan 2024), which bring all singular values near 1. Only for the matrices
    inside the blocks; embedding and norms stay with AdamW.
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
            shapes = {}                            # matrices of one shape go through in one batch
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
    """Windows of `time` + 1 tokens, each beginning with the first token of a story, as in use."""

    def __init__(self, path, time):
        self.ids, self.time = np.fromfile(path, np.uint16), time
        starts = np.flatnonzero(self.ids == 1)
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


def drill(x, y, share, vocab, seed):
    """Replaces some rows by random rows of three tokens each: "b a a c b a ...".

    All one can do there is to expect what was there before, whatever it is. Stories ask the same of the
    names, but too seldom: without this, a small model learns all else first and then copies a wrong name
    for thousands of steps.
    """
    rng = np.random.default_rng(seed)
    n = round(share * len(x))
    few = rng.integers(259, vocab, (n, 3))         # 259: the first piece that is not a byte
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
    """Tells glibc to keep freed memory instead of returning it page by page: 1.6 times the speed here."""
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
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--work", required=True)
    for field, value in asdict(Config()).items():
        ap.add_argument("--" + field.replace("_", "-"), type=type(value), default=value)
    ap.add_argument("--steps", type=int, default=3060)
    ap.add_argument("--tokens", type=int, default=4096, help="tokens per step")
    ap.add_argument("--phases", type=phase, nargs="+", default=[(64, 0.2), (128, 0.4), (256, 0.82), (512, 1)],
                    help="length of the windows : until this share of the steps")
    ap.add_argument("--drill", type=float, default=0.13,
                    help="share of the steps, the first ones, with copying drills")
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

    cfg = Config(**{k: getattr(args, k) for k in asdict(Config())})
    model = Llama(cfg)
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
        with open(log, newline="") as f:             # rows after the checkpoint come again
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
            train, *checks = (Windows(os.path.join(args.work, n + ".bin"), window)
                              for n in ("train", "valid-world", "valid-prose"))
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
                x, y = drill(x.clone(), y.clone(), 0.2, cfg.vocab, [args.seed, step])
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
                 step=step, spent=time.time() - begin)


if __name__ == "__main__":
    main()
