"""Trains a model that writes down ten digits and twenty words, as Whisper does, from nothing. Writes DIR/ckpt.pt.

    python3 ears.py --data DIR --work DIR [--steps N] [--bf16]

DIR has train.npz of speak.py. The sounds are mixed while it trains (sounds.py), so none comes twice: at first windows of two seconds, then
whole ones. Beside the text, the encoder learns which word each of its rows belongs to, by a matrix that the exported file lacks: from the
text alone it would learn much later where to listen.

Training resumes from ckpt.pt.
"""

import argparse
import math
import os
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import sounds
from speak import WORDS
from muon import Muon, keep_memory, save

N_MEL = 80
DEFAULT = dict(embd=96, heads=3, layers=3, dec_layers=2, ff=256, context=48)


def attend(q, k, v, mask):
    """q: (batch, time, heads, head), k, v: (batch, time, kv_heads, head); gives (batch, time, heads * head)."""
    (b, t, heads, head), kv_heads = q.shape, k.shape[2]
    # The query heads of one group become rows of one matrix: (b, kv_heads, group * t, head).
    group = heads // kv_heads
    q = q.view(b, t, kv_heads, group, head).permute(0, 2, 3, 1, 4).reshape(b, kv_heads, group * t, head)
    k, v = k.permute(0, 2, 3, 1), v.transpose(1, 2)           # (b, kv, head, t), (b, kv, t, head)
    p = torch.matmul(q * head ** -0.5, k).view(b, kv_heads, group, t, t) + mask
    p = F.softmax(p, -1).view(b, kv_heads, group * t, t)
    y = torch.matmul(p.to(v.dtype), v).view(b, kv_heads, group, t, head)
    return y.permute(0, 3, 1, 2, 4).reshape(b, t, heads * head)


class Layer(nn.Module):
    """Parameters are named as the file's tensors."""

    def __init__(self, n, heads, ff, reads):
        super().__init__()
        self.heads = heads
        for kind in ("attn", "cross_attn")[:1 + reads]:
            setattr(self, kind + "_norm", nn.LayerNorm(n))
            for p in "qkvo":
                setattr(self, f"{kind}_{p}", nn.Linear(n, n, bias=p != "k"))
        self.ffn_norm, self.ffn_up, self.ffn_down = nn.LayerNorm(n), nn.Linear(n, ff), nn.Linear(ff, n)

    def attend(self, kind, x, to, mask):
        q, k, v = (getattr(self, f"{kind}_{p}")(z).unflatten(-1, (self.heads, -1)) for p, z in (("q", x), ("k", to), ("v", to)))
        if k.shape[1] == q.shape[1]:
            y = attend(q, k, v, mask)
        else:                                      # attend() is for as many rows as are looked at
            s = torch.einsum("bihd,bjhd->bhij", q * q.shape[-1] ** -0.5, k)
            y = torch.einsum("bhij,bjhd->bihd", F.softmax(s.float(), -1).to(v.dtype), v).flatten(-2)
        return getattr(self, f"{kind}_o")(y)

    def forward(self, x, heard=None, mask=0):
        h = self.attn_norm(x)
        x = x + self.attend("attn", h, h, mask)
        if heard is not None:
            x = x + self.attend("cross_attn", self.cross_attn_norm(x), heard, 0)
        return x + self.ffn_down(F.gelu(self.ffn_up(self.ffn_norm(x))))


def convolve(x, conv, every=1):
    """Over rows (batch, rows, n), as one product, which is faster here."""
    x = F.pad(x, (0, 0, 1, 1))
    return F.linear(torch.cat([x[:, :-2:every], x[:, 1:-1:every], x[:, 2::every]], -1), conv.weight.transpose(1, 2).flatten(1), conv.bias)


class Encoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        n = c["embd"]
        self.conv1, self.conv2 = nn.Conv1d(N_MEL, n, 3, padding=1), nn.Conv1d(n, n, 3, stride=2, padding=1)
        self.position_embd = nn.Embedding(sounds.N_ROWS, n)
        self.blk = nn.ModuleList(Layer(n, c["heads"], c["ff"], False) for _ in range(c["layers"]))
        self.output_norm = nn.LayerNorm(n)
        at, i = torch.arange(sounds.N_ROWS)[:, None], torch.arange(n // 2)[None]
        angle = at * 10000 ** (-i / (n // 2 - 1))
        self.position_embd.weight.data = torch.cat([angle.sin(), angle.cos()], 1)          # as Whisper begins

    def forward(self, mel):
        x = F.gelu(convolve(F.gelu(convolve(mel, self.conv1)), self.conv2, 2))
        x = x + self.position_embd.weight[:x.shape[1]]
        for block in self.blk:
            x = block(x)
        return self.output_norm(x)


class Decoder(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.position_embd = nn.Embedding(c["context"], c["embd"])
        self.blk = nn.ModuleList(Layer(c["embd"], c["heads"], c["ff"], True) for _ in range(c["dec_layers"]))
        self.output_norm = nn.LayerNorm(c["embd"])


NEAR = ((0, 0.5), (-1, 0.2), (1, 0.2), (-2, 0.05), (2, 0.05))       # times beside the right one are nearly as right


def text_loss(logits, targets):
    """Mean cross entropy. The first time counts three times: where the words begin is harder to find than what they are."""
    p, is_time = F.log_softmax(logits, -1), targets >= sounds.FIRST_TIME
    at = lambda t: p.gather(2, t.clamp(0, logits.shape[2] - 1)[:, :, None])[:, :, 0]
    near = sum(share * at((targets + by).clamp(min=sounds.FIRST_TIME)) for by, share in NEAR)
    weight = (targets >= 0).float()
    weight[:, 0] *= 1 + 2 * is_time[:, 0].float()
    return -(torch.where(is_time, near, at(targets)) * weight).sum() / weight.sum()


class Hearing(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.enc, self.dec, self.token_embd = Encoder(c), Decoder(c), nn.Embedding(len(sounds.TOKENS), c["embd"])
        nn.init.normal_(self.token_embd.weight, std=c["embd"] ** -0.5)
        nn.init.normal_(self.dec.position_embd.weight, std=0.3 * c["embd"] ** -0.5)
        self.word = nn.Linear(c["embd"], 1 + len(WORDS))
        self.register_buffer("mask", torch.full((c["context"],) * 2, -1e30).triu(1), persistent=False)
        for name, p in self.named_parameters():
            if ".blk." in name and p.dim() == 2:
                last = name.endswith(("_o.weight", "ffn_down.weight"))
                nn.init.normal_(p, std=p.shape[1] ** -0.5 * (0.4 if last else 1))

    def decode(self, heard, ids):
        t = ids.shape[1]
        x = self.token_embd(ids) + self.dec.position_embd.weight[:t]
        for block in self.dec.blk:
            x = block(x, heard, self.mask[:t, :t])
        return F.linear(self.dec.output_norm(x), self.token_embd.weight)

    def forward(self, mel, rows, ids, targets):
        """Losses of the text and of the rows, and the part of the texts that are right to the last word."""
        heard = self.enc(mel)
        logits = self.decode(heard, ids).float()
        loss = text_loss(logits, targets)
        word = F.cross_entropy(self.word(heard).float().flatten(0, 1), rows.flatten(), ignore_index=-1)
        best, is_word = logits.argmax(-1), (targets >= 0) & (targets <= sounds.END)
        right = ((best == targets) | ~is_word).all(1).float().mean()
        return loss, word, right


def spectrograms(samples, g):
    """(batch, rows, 80), of throats of several lengths. The loudest row of a sound may lie outside of the window."""
    x = torch.from_numpy(np.stack([sounds.frames(s) for s in samples]))
    bands = np.stack([sounds.FILTERS if g.random() < 0.3 else sounds.WARPED[g.integers(len(sounds.WARPED))] for _ in samples])
    rows = torch.log10((torch.fft.rfft(x).abs() ** 2 @ torch.from_numpy(bands)).clamp(min=1e-10))
    above = torch.from_numpy(np.where(g.random(len(samples)) < 0.3, g.uniform(0, 1, len(samples)), 0).astype(np.float32))
    return (torch.maximum(rows, (rows.amax((1, 2)) + above - 8)[:, None, None]) + 4) / 4


def batch(g, voices, noise, n, seconds, most_words):
    scenes = [sounds.Scene(g, voices, noise, seconds, most_words) for _ in range(n)]
    texts = [s.text(g, g.random() < 0.7) for s in scenes]
    length = max(len(a) for a, _ in texts)
    ids, targets = torch.full((n, length), sounds.END), torch.full((n, length), -100)
    for k, (a, b) in enumerate(texts):
        ids[k, :len(a)], targets[k, :len(b)] = torch.tensor(a), torch.tensor(b)
    return spectrograms([s.samples for s in scenes], g), torch.from_numpy(np.stack([s.rows for s in scenes])), ids, targets


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    ap.add_argument("--data", required=True, help="folder of train.npz")
    ap.add_argument("--work", required=True)
    for name, n in DEFAULT.items():
        ap.add_argument("--" + name.replace("_", "-"), type=int, default=n)
    ap.add_argument("--steps", type=int, default=3400)
    ap.add_argument("--batch", type=int, default=20, help="whole windows of a step")
    ap.add_argument("--short", type=float, default=0.25, help="share of the first steps that have windows of two seconds")
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
    ckpt = os.path.join(args.work, "ckpt.pt")
    config = {k: getattr(args, k) for k in DEFAULT}
    model = Hearing(config)
    is_matrix = lambda n, p: p.dim() == 2 and ".blk." in n
    opts = [torch.optim.AdamW([p for n, p in model.named_parameters() if not is_matrix(n, p)], lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0),
            Muon([p for n, p in model.named_parameters() if is_matrix(n, p)], lr=args.muon, weight_decay=0.05)]
    rates, step, spent = (args.lr, args.muon), 0, 0.0
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {config}", flush=True)
    if os.path.exists(ckpt):
        state = torch.load(ckpt)
        model.load_state_dict(state["model"])
        for opt, old in zip(opts, state["opts"]):
            opt.load_state_dict(old)
        step, spent = state["step"], state["spent"]
        print(f"resumed at step {step}", flush=True)
    voices = sounds.Voices(os.path.join(args.data, "train.npz"))
    g = np.random.default_rng(args.seed)
    noise = sounds.noises(g) + [sounds.crowd(g, voices) for _ in range(3)]
    begin, saved, sums = time.time() - spent, time.time(), []
    while step < args.steps:
        left = (args.steps - step) / (0.4 * args.steps)
        for opt, rate in zip(opts, rates):
            opt.param_groups[0]["lr"] = rate * min(1, (step + 1) / 100) * (1 if left >= 1 else 0.5 - 0.5 * math.cos(math.pi * left))
        is_short = step < args.short * args.steps
        b = batch(np.random.default_rng([args.seed, step]), voices, noise, args.batch * (5 if is_short else 2) // 2, *((2, 3) if is_short else (sounds.SECONDS, 9)))
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            loss, word, right = model(*b)
        model.zero_grad(set_to_none=True)
        (loss + 0.5 * word).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for opt in opts:
            opt.step()
        step += 1
        sums.append((loss.item(), word.item(), right.item()))
        last = step == args.steps
        if step % 50 == 0 or last:
            mean = np.mean(sums, 0)
            sums = []
            print(f"step {step}, {(time.time() - begin) / 60:.1f} min: text {mean[0]:.4f}, rows {mean[1]:.4f}, texts right {100 * mean[2]:.1f} %", flush=True)
        if last or time.time() - saved > 60:
            saved = time.time()
            save(ckpt, model=model.state_dict(), opts=[opt.state_dict() for opt in opts], config=config, step=step, spent=time.time() - begin)


if __name__ == "__main__":
    main()
