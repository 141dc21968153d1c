"""Fine-tunes the built-in model on conversations (talk.py), so that it answers.

    python3 tune.py --base models/builtin/stories.gguf --prose TEXT --work DIR

The weights of the file are the start; four control tokens are added to its vocabulary, the marks of chat.jinja. Only
the storyteller's words count in the loss, those of short answers more than those of tales, because a story has a
hundred tokens and an answer ten. Conversations are made while it trains, each is seen once; a batch has conversations of
similar length, each in a row of its own, so that nothing leaks from one into another.

An answer counts as right if every token of it, its end included, is the model's likeliest one: then it is what the
model answers at temperature 0. Training resumes from ckpt.pt in --work; export.py writes the file.
"""

import argparse
import csv
import os
import re
import time
from dataclasses import asdict

import numpy as np
import torch
import torch.nn.functional as F

from check_gguf import SentencePiece, load
from llama import Config, Llama
from talk import prose_lines, talk
from train import Muon, keep_memory, rate, save

MARKS = ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
CONTROL = 3
CHUNK = 384                                        # conversations that are sorted into batches together
HELD_OUT = 1_000_000                               # numbers from here on are never trained on


class Words:
    """Token ids of a text: those of the file's tokenizer, word by word, because no piece goes across a space."""

    def __init__(self, keys):
        self.tok, self.known = SentencePiece(keys), {}
        self.tok.prefix = False
        self.mark = {m: len(self.tok.pieces) + i for i, m in enumerate(MARKS)}

    def encode(self, text):
        ids = []
        for word in re.findall(r"\n| ?[^ \n]+| ", " " + text):
            if word not in self.known:
                self.known[word] = self.tok.encode(word)
            ids += self.known[word]
        return ids

    def conversation(self, messages):
        """(ids, weights of the tokens in the loss, [(kind, first, end)] of the answers)"""
        ids, weights, spans = [1], [0.0], []
        for role, text, kind in messages:
            part = [self.mark[f"<|{role}|>"], *self.encode(text), self.mark["<|end|>"]]
            weight = 0.0 if role != "assistant" else 1.0 if kind in ("tale", "again") else 2.0
            if weight:
                spans.append((kind, len(ids) + 1, len(ids) + len(part)))
            ids += part
            weights += [0.0] + [weight] * (len(part) - 1)
        return ids, weights, spans


class ChatLlama(Llama):
    def logits(self, ids):
        t = ids.shape[1]
        x = self.token_embd(ids)
        for block in self.blk:
            x = block(x, self.cos[:t], self.sin[:t], self.mask[:t, :t])
        return self.output_norm(x)

    def forward(self, ids, targets, weights):
        """Weighted mean cross entropy. Only what counts is compared with the vocabulary."""
        at = weights > 0
        logits = F.linear(self.logits(ids)[at], self.token_embd.weight)
        loss = F.cross_entropy(logits.float(), targets[at], reduction="none")
        return (loss * weights[at]).sum() / weights[at].sum()


def extended(base, context):
    """The model of the file with a longer context and rows for the marks; and the keys of its tokenizer."""
    keys, tensors, _ = load(base)
    get = lambda name: keys["llama." + name]
    cfg = Config(vocab=get("vocab_size") + len(MARKS), embd=get("embedding_length"), layers=get("block_count"),
                 heads=get("attention.head_count"), kv_heads=get("attention.head_count_kv"),
                 head=get("rope.dimension_count"), ff=get("feed_forward_length"), context=context,
                 eps=get("attention.layer_norm_rms_epsilon"), rope_base=get("rope.freq_base"))
    model = ChatLlama(cfg)
    state = {n: torch.from_numpy(w.astype(np.float32)) for n, w in tensors.items()}
    embd = state["token_embd.weight"]
    state["token_embd.weight"] = torch.cat((embd, torch.randn(len(MARKS), cfg.embd) * embd.std()))
    model.load_state_dict(state)
    return model, cfg, keys


def batch(rows, context):
    """ids, targets, weights: (rows, longest) each; what fills a row has no weight."""
    n = min(max(len(ids) for ids, *_ in rows) - 1, context)
    x, y, w = np.zeros((len(rows), n), np.int64), np.zeros((len(rows), n), np.int64), np.zeros((len(rows), n), np.float32)
    for r, (ids, weights, _) in enumerate(rows):
        m = min(len(ids) - 1, n)
        x[r, :m], y[r, :m], w[r, :m] = ids[:m], ids[1:m + 1], weights[1:m + 1]
    return torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(w)


def batches(words, prose, seed, chunk, tokens, short):
    """The batches of a chunk of conversations, in random order, each with at most `tokens` places."""
    rows = sorted((words.conversation(talk(seed, n, prose, short)) for n in range(chunk * CHUNK, (chunk + 1) * CHUNK)),
                  key=lambda row: len(row[0]))
    out = [[]]
    for row in rows:
        if out[-1] and len(row[0]) * (len(out[-1]) + 1) > tokens:
            out.append([])
        out[-1].append(row)
    np.random.default_rng([seed, chunk]).shuffle(out)
    return out


@torch.no_grad()
def judge(model, rows, context, bf16=False):
    """kind -> [right, asked], over the answers of the conversations."""
    model.eval()
    score = {}
    for row in rows:
        x, y, _ = batch([row], context)
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            best = F.linear(model.logits(x), model.token_embd.weight)[0].argmax(-1)
        right = (best == y[0]).numpy()
        for kind, first, end in row[2]:
            if end < len(right) and kind not in ("tale", "short"):   # tales have many right wordings
                s = score.setdefault(kind, [0, 0])
                s[0] += bool(right[first - 1:end - 1].all())
                s[1] += 1
    model.train()
    return score


def held_out(words, prose, seed, count):
    return [words.conversation(talk(seed, HELD_OUT + n, prose)) for n in range(count)]


def summary(score):
    part = lambda start: [sum(v[i] for k, v in score.items() if k.startswith(start)) for i in (0, 1)]
    share = lambda v: f"{100 * v[0] / max(1, v[1]):.1f}"
    return {name: share(part(start)) for name, start in
            (("tale questions", "q."), ("chat", "chat."), ("facts", "fact."), ("recall", "recall"), ("unknown", "unknown"),
             ("missing", "missing"), ("refuse", "refuse"), ("name", "name"), ("early", "early"), ("again", "again"))}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--base", required=True, help="GGUF file of the family llama, to begin with")
    ap.add_argument("--work", required=True)
    ap.add_argument("--prose", help="a text of old stories, for questions from outside of the story world")
    ap.add_argument("--context", type=int, default=2048)
    ap.add_argument("--steps", type=int, default=2500)
    ap.add_argument("--tokens", type=int, default=4096, help="places per step")
    ap.add_argument("--short", type=int, default=25, help=f"so many chunks of {CHUNK} conversations at first are short ones")
    ap.add_argument("--lr", type=float, default=1.5e-3)
    ap.add_argument("--muon", type=float, default=0.01)
    ap.add_argument("--warmup", type=int, default=100)
    ap.add_argument("--decay", type=float, default=0.5)
    ap.add_argument("--weight-decay", type=float, default=0.02)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--bf16", action="store_true")
    ap.add_argument("--check", type=int, default=250, help="a multiple of 25")
    ap.add_argument("--minutes", type=float, default=2, help="between two checkpoints")
    ap.add_argument("--seed", type=int, default=1)
    args = ap.parse_args()
    keep_memory()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    os.makedirs(args.work, exist_ok=True)

    model, cfg, keys = extended(args.base, args.context)
    words = Words(keys)
    prose = prose_lines(args.prose) if args.prose else ()
    # every tenth line is for held-out conversations only
    checks = held_out(words, prose[::10], args.seed, 150)
    prose = [s for i, s in enumerate(prose) if i % 10]
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and n.startswith("blk.")]
    others = [p for n, p in model.named_parameters() if p.dim() < 2 or not n.startswith("blk.")]
    opts = [torch.optim.AdamW(others, lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0),
            Muon(matrices, lr=args.muon, weight_decay=args.weight_decay)]
    tokenizer = {"pieces": words.tok.pieces + MARKS, "scores": list(words.tok.scores) + [0.0] * len(MARKS),
                 "kinds": list(words.tok.kinds) + [CONTROL] * len(MARKS), "end": words.mark["<|end|>"]}
    ckpt, log = os.path.join(args.work, "ckpt.pt"), os.path.join(args.work, "loss.csv")
    step, spent, seen, chunk, place = 0, 0.0, 0, 0, 0
    if os.path.exists(ckpt):
        state = torch.load(ckpt)
        model.load_state_dict(state["model"])
        for opt, old in zip(opts, state["opts"]):
            opt.load_state_dict(old)
        step, spent, seen, chunk, place = (state[k] for k in ("step", "spent", "seen", "chunk", "place"))
        print(f"resumed at step {step}", flush=True)
    groups = [(g, lr) for opt, lr in zip(opts, (args.lr, args.muon)) for g in opt.param_groups]

    begin, saved, mean = time.time() - spent, time.time(), []
    rows = batches(words, prose, args.seed, chunk, args.tokens, chunk < args.short)
    while step < args.steps:
        if place >= len(rows):
            chunk, place = chunk + 1, 0
            rows = batches(words, prose, args.seed, chunk, args.tokens, chunk < args.short)
        x, y, w = batch(rows[place], args.context)
        place += 1
        for g, lr in groups:
            g["lr"] = lr * rate(step, args)
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
            loss = model(x, y, w)
        model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for opt in opts:
            opt.step()
        step, seen = step + 1, seen + sum(len(r[0]) for r in rows[place - 1])
        mean.append(loss.item())
        last = step == args.steps
        if step % 25 == 0 or last:
            row = [step, seen, round(time.time() - begin, 1), round(sum(mean) / len(mean), 4)]
            mean = []
            with open(log, "a", newline="") as f:
                csv.writer(f).writerow(row)
        if step % args.check == 0 or last:
            print(*row, summary(judge(model, checks, args.context, args.bf16)), flush=True)
        if last or time.time() - saved > 60 * args.minutes:
            saved = time.time()
            save(ckpt, model=model.state_dict(), opts=[opt.state_dict() for opt in opts], config=asdict(cfg),
                 family="llama", step=step, spent=time.time() - begin, seen=seen, chunk=chunk, place=place,
                 tokenizer=tokenizer)


if __name__ == "__main__":
    main()
