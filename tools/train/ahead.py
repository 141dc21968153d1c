"""Trains a layer that guesses the token after the next (multi-token prediction), beside a model that stays as it is.

    python3 ahead.py --base models/builtin/stories.gguf --out /tmp/ahead.gguf --bf16 [--minutes 12] [--prose TEXT --cli llm-cli]
    llm-cli -m /tmp/ahead.gguf --draft

The layer reads token t and what the model computed, after its last norm, of token t - 1; it scores token t + 1. To guess
further, its own result takes the place of the model's row. It is trained for that, too, on --depth guesses
in a chain: as in use, a guess attends to the model's rows of the tokens that are known, and to the rows of the
guesses between them and itself.

What it learns to guess is the model, not the text: the targets are the model's own probabilities of the token t + 1. They are
computed anyway, say more than one token does, and a guess counts as right if the model draws the same. The stories are new ones of the
simulator; some pieces are a few tokens again and again, because a small model's own texts often end so. With --prose, half of the texts are
the model's own: llm-cli continues beginnings of sentences of that prose, at temperature 0 and 0.8.

If the file --out exists, training goes on from its layer. The file has all tensors of the base, byte by byte, and the layer's as blk.N.* and blk.N.nextn.*; its descriptor, ahead.arch, is
in it. It is written every --save minutes and at the end. --idle makes another file of it, in which the model has layers more
that add nothing: it writes the same text and takes the time of a deeper model, so that it shows what the same guesses gain there.
"""

import argparse
import math
import os
import re
import struct
import subprocess
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

import plots
from check_gguf import Reader, SentencePiece, load
from export import ALIGN, F32, Q8_0, STRING, U32, key, q8_0, string
from llama import Block, Config, Llama, RMSNorm, copying, initialize
from muon import Muon, keep_memory

HERE = os.path.dirname(os.path.abspath(__file__))
END = 2                                            # </s>
AGAIN = 0.08                                       # share of the pieces that repeat
HELD_OUT = 3_000_000                               # numbers of stories from here on are never trained on


class Words:
    """Token ids of a text: those of the file's tokenizer, word by word, because no piece goes across a space."""

    def __init__(self, keys):
        self.tok, self.known = SentencePiece(keys), {}
        self.tok.prefix = False

    def encode(self, text):
        ids = []
        for word in re.findall(r"\n| ?[^ \n]+| ", " " + text):
            if word not in self.known:
                self.known[word] = self.tok.encode(word)
            ids += self.known[word]
        return ids


class Trunk(Llama):
    @torch.no_grad()
    def forward(self, ids):
        """y: the rows after the last norm."""
        t, x = ids.shape[1], self.token_embd(ids)
        for block in self.blk:
            x = block(x, self.cos[:t], self.sin[:t], self.mask[:t, :t])
        return self.output_norm(x)


class Ahead(nn.Module):
    """The layer. Parameters have the names that the file gives to the tensors, without blk.N."""

    def __init__(self, cfg, trunk):
        super().__init__()
        self.cfg = cfg
        self.block = Block(cfg)
        self.nextn = nn.ModuleDict({
            "enorm": RMSNorm(cfg.embd, cfg.eps), "hnorm": RMSNorm(cfg.embd, cfg.eps),
            "eh_proj": nn.Linear(2 * cfg.embd, cfg.embd, bias=False), "shared_head_norm": RMSNorm(cfg.embd, cfg.eps)})
        initialize(self, 1)
        copying(self.block.attn_v.weight, self.block.attn_output.weight, cfg.kv_heads, cfg.heads)
        self.nextn["shared_head_norm"].load_state_dict(trunk.output_norm.state_dict())

    def tensors(self):
        for name, p in self.named_parameters():
            yield name.replace("block.", ""), p.detach()

    def chain(self, ids, y, trunk, depth):
        """For each guess of a chain its rows: (batch, time, embd). Row i of guess d scores token i + 1 and knows the tokens up to i,
        but rows of the model only up to i - 1 - d."""
        c, (b, t) = self.cfg, ids.shape
        cos, sin = trunk.cos[:t], trunk.sin[:t]
        e = self.nextn["enorm"](trunk.token_embd(ids))
        late = [torch.full((t, t), -1e30).triu(1 - d) for d in range(depth)]     # rows of the model that a guess does not know
        group, row, keys, out = c.heads // c.kv_heads, y, [], []
        for d in range(depth):
            before = F.pad(row[:, :-1], (0, 0, 1, 0))                     # zeros before the first token
            x = self.nextn["eh_proj"](torch.cat((e, self.nextn["hnorm"](before)), -1))
            q, k, v = self.block.qkv(self.block.attn_norm(x), cos, sin)
            keys.append((k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
            k, v = keys[0]
            s = torch.matmul(q.transpose(1, 2), k.permute(0, 2, 3, 1)) + late[d]
            # guess j of this chain stands at i - (d - j)
            back = [[F.pad(z, (0, 0, 0, 0, d - j, 0))[:, :t] for z in keys[j]] for j in range(1, d + 1)]
            near = [(q * k).sum(-1).transpose(1, 2)[..., None] for k, _ in back]
            for j, n in enumerate(near, 1):                               # before the text's begin there are none
                n[:, :, :d - j] = -1e30
            p = F.softmax(torch.cat([s, *near], -1).float() * c.head ** -0.5, -1)
            a = torch.matmul(p[..., :t].to(v.dtype), v.transpose(1, 2)).transpose(1, 2)
            for j, (_, v) in enumerate(back):
                a = a + p[..., t + j].transpose(1, 2)[..., None] * v
            x = x + self.block.attn_output(a.reshape(b, t, -1))
            h = self.block.ffn_norm(x)
            x = x + self.block.ffn_down(F.silu(self.block.ffn_gate(h)) * self.block.ffn_up(h))
            row = self.nextn["shared_head_norm"](x)
            out.append(row)
        return out


def model_of(keys, tensors):
    cfg = Config(
        vocab=len(keys["tokenizer.ggml.tokens"]), embd=keys["llama.embedding_length"], layers=keys["llama.block_count"],
        heads=keys["llama.attention.head_count"], kv_heads=keys["llama.attention.head_count_kv"],
        head=keys["llama.rope.dimension_count"], ff=keys["llama.feed_forward_length"], context=keys["llama.context_length"],
        eps=keys["llama.attention.layer_norm_rms_epsilon"], rope_base=keys["llama.rope.freq_base"])
    trunk = Trunk(cfg)
    trunk.load_state_dict({n: torch.from_numpy(np.array(x, np.float32)) for n, x in tensors.items()})
    return trunk.requires_grad_(False), cfg


class Windows:
    """Batches of equally long pieces, each from the beginning of a text on: <s> story </s> <s> story .."""

    def __init__(self, words, own, seed, first):
        self.words, self.own, self.seed, self.number = words, own, seed, first
        self.rng = np.random.default_rng([seed, first])

    def piece(self, n):
        ids = []
        while len(ids) < n:
            if self.own and self.rng.random() < 0.5:
                ids += [1, *self.words.encode(self.own[self.rng.integers(len(self.own))])]
                continue
            text = self.words.encode(plots.tell(self.seed, self.number))
            self.number += 1
            if self.rng.random() < AGAIN:                                 # a few tokens of the story, again and again
                at, few = self.rng.integers(len(text) - 16), self.rng.integers(1, 17)
                ids += [1, *text[at:at + few] * (n // few + 1)]
            ids += [1, *text, END]
        return ids[:n]

    def batch(self, rows, n):
        return torch.tensor([self.piece(n) for _ in range(rows)])


def own_texts(args):
    """Texts that the model writes: what it has to guess when it leaves the stories."""
    rng, texts = np.random.default_rng(args.seed), []
    with open(args.prose, encoding="utf-8") as f:
        lines = [line.split() for line in sorted(set(re.findall(r"(?<=[.!?] )[A-Z][a-z, ]{30,}", f.read())))]
    for n in range(args.texts):
        begin = " ".join(lines[rng.integers(len(lines))][:rng.integers(2, 9)])
        texts.append(begin + subprocess.run(
            [args.cli, "-m", args.base, "-t", "1", "-p", begin, "-n", "200", "--temp", "0.8" if n % 2 else "0", "--seed", str(n),
             "--ignore-eos", "--no-escape", "--no-display-prompt"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode(errors="replace").rstrip("\n"))
    return texts


def right(trunk, ahead, ids, depth):
    """For each guess of a chain, how often it is the model's likeliest token if those before it were."""
    with torch.no_grad():
        y = trunk(ids)
        best = [F.linear(row, trunk.token_embd.weight).argmax(-1) for row in [y, *ahead.chain(ids, y, trunk, depth)]]
    # a chain exists only where the text goes on as the model would, as it does in use
    n, shares = ids.shape[1], []
    so_far = torch.ones(ids.shape[0], n - depth, dtype=torch.bool)
    for d in range(depth):
        at = slice(d, n - depth + d)
        hit = (best[d + 1][:, at] == best[0][:, at])
        shares.append(hit[so_far].float().mean().item())
        so_far = so_far & hit & (ids[:, d + 1:n - depth + d + 1] == best[0][:, at])
    return shares


def write(base, out, ahead, layers, idle=0):
    """The file, from the base's bytes: its keys and infos as they are, but for two counts; data is only added. `idle`: so many
    layers more that add nothing, between the model's and the one that guesses."""
    with open(base, "rb") as f:
        data = f.read()
    r, keys = Reader(data), []
    _, version, tensors, count = r.take("4s"), r.take("I"), r.take("Q"), r.take("Q")
    for _ in range(count):
        at, name = r.at, r.string()
        r.value(r.take("I"))
        if name not in ("llama.block_count", "llama.nextn_predict_layers", "general.descriptor"):
            keys.append(data[at:r.at])
    with open(os.path.join(HERE, "ahead.arch"), encoding="utf-8") as f:
        keys += [key("llama.block_count", U32, layers + idle + 1), key("llama.nextn_predict_layers", U32, 1),
                 key("general.descriptor", STRING, f.read())]
    at = r.at
    for _ in range(tensors):
        r.string()
        dims = r.take("I")
        r.take(f"{dims}Q")
        r.take("I")
        r.take("Q")
    infos, body = data[at:r.at], data[-(-r.at // ALIGN) * ALIGN:]
    body += bytes(-len(body) % ALIGN)
    added = [(f"blk.{layers + idle}.{name}", p.float().numpy()) for name, p in ahead.tensors()]
    for i in range(layers, layers + idle):                                # only what joins the sum has to be zero
        added += [(f"blk.{i}.{name}", p.numpy() * (name not in ("attn_output.weight", "ffn_down.weight")))
                  for name, p in ahead.tensors() if not name.startswith("nextn.")]
    for name, w in added:
        kind, ne = F32 if w.ndim == 1 else Q8_0, w.shape[::-1]
        infos += string(name) + struct.pack(f"<I{len(ne)}QIQ", len(ne), *ne, kind, len(body))
        body += w.astype("<f4").tobytes() if kind == F32 else q8_0(w)
        body += bytes(-len(body) % ALIGN)
        tensors += 1
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, len(keys)) + b"".join(keys) + infos
    with open(out + ".new", "wb") as f:
        f.write(head + bytes(-len(head) % ALIGN) + body)
    os.replace(out + ".new", out)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--base", required=True, help="GGUF file of the family llama, with a shared output matrix")
    ap.add_argument("--out", required=True)
    ap.add_argument("--prose", help="a text of old stories; with --cli, the model continues sentences of it")
    ap.add_argument("--cli", help="the program llm-cli")
    ap.add_argument("--texts", type=int, default=1000, help="so many of them")
    ap.add_argument("--depth", type=int, default=2, help="guesses in a chain")
    ap.add_argument("--idle", type=int, default=0, help="writes only: the file --out with so many layers more that add nothing, as --out.idle")
    ap.add_argument("--minutes", type=float, default=12)
    ap.add_argument("--save", type=float, default=2, help="minutes between two files")
    ap.add_argument("--tokens", type=int, default=2048, help="per step")
    ap.add_argument("--share", type=float, default=0.5, help="of the places that count in a step")
    ap.add_argument("--window", type=int, default=256)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--muon", type=float, default=0.01)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--bf16", action="store_true")
    ap.add_argument("--seed", type=int, default=11)
    args = ap.parse_args()
    keep_memory()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)

    keys, tensors, _ = load(args.base)
    trunk, cfg = model_of(keys, tensors)
    ahead = Ahead(cfg, trunk)
    if os.path.exists(args.out):
        old = load(args.out)[1]
        with torch.no_grad():
            for name, p in ahead.tensors():
                p.copy_(torch.from_numpy(np.array(old[f"blk.{cfg.layers}.{name}"], np.float32)))
    if args.idle:
        return write(args.base, args.out + ".idle", ahead, cfg.layers, args.idle)
    own = own_texts(args) if args.prose and args.cli else []
    held = len(own) // 50
    words = Words(keys)
    train = Windows(words, own[held:], args.seed, 0)
    checks = Windows(words, own[:held], args.seed, HELD_OUT).batch(12, args.window)
    matrices = [p for p in ahead.parameters() if p.dim() == 2]
    opts = [torch.optim.AdamW([p for p in ahead.parameters() if p.dim() < 2], lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0),
            Muon(matrices, lr=args.muon, weight_decay=0.02)]
    groups = [(g, g["lr"]) for opt in opts for g in opt.param_groups]

    begin, saved, step, done, mean = time.time(), 0, 0, 0.0, []
    while done < 1:
        done = min(1.0, (time.time() - begin) / (60 * args.minutes))      # the rate follows the clock: warm-up, constant, cosine
        for g, lr in groups:
            g["lr"] = lr * min(1.0, (step + 1) / 50, 0.5 - 0.5 * math.cos(math.pi * (1 - done) / 0.6) if done > 0.4 else 1.0)
        ids = train.batch(args.tokens // args.window, args.window)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            y, loss = trunk(ids), 0.0
            # the vocabulary takes most of the time: only a share of the places are compared with it, others in each step
            at = torch.randperm(args.window)[:round(args.share * args.window)]
            target = F.linear(y[:, at], trunk.token_embd.weight).float().softmax(-1)
            for d, row in enumerate(ahead.chain(ids, y, trunk, args.depth)):
                score = F.linear(row[:, at], trunk.token_embd.weight).float().log_softmax(-1)
                loss = loss - 0.7 ** d * (target * score).sum(-1).mean()
        for opt in opts:
            opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(ahead.parameters(), 1.0)
        for opt in opts:
            opt.step()
        step += 1
        mean.append(loss.item())
        if step % 50 == 0 or done >= 1:
            shares = " ".join(f"{100 * s:.1f}" for s in right(trunk, ahead, checks, args.depth))
            print(f"step {step}: {time.time() - begin:.0f} s, {step * args.tokens} tokens, loss {np.mean(mean):.3f}, right {shares} %", flush=True)
            mean = []
        if done >= 1 or time.time() - begin > 60 * args.save * (saved + 1):
            write(args.base, args.out, ahead, cfg.layers)
            saved += 1


if __name__ == "__main__":
    main()
