"""The model that a GGUF file of architecture "llama" describes, for training; and the parts that other families share.

RMSNorm, rotary positions on adjacent pairs, grouped-query attention, SwiGLU, no biases, the output matrix shared
with the embedding. Parameters carry the names that the file gives to the tensors.
"""

import math
from dataclasses import dataclass

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


def copying(v, output, kv_heads, heads):
    """Attention begins as copying: the output matrix inverts the value matrix. From the first step on, a head makes the tokens
    that it attends to likelier, and only has to learn where to attend. v, output: the two matrices."""
    nn.init.orthogonal_(v)
    per_query = v.data.view(kv_heads, -1, v.shape[1]).repeat_interleave(heads // kv_heads, 0).reshape(-1, v.shape[1])
    output.data = per_query.T.contiguous() * (0.5 * kv_heads / heads)


def initialize(model, layers):
    for name, p in model.named_parameters():
        if p.dim() == 2:       # additions to the residual start smaller, by their number
            last = name.endswith(("attn_output.weight", "ffn_down.weight"))
            std = p.shape[1] ** -0.5               # embedding: logits begin with variance 1
            nn.init.normal_(p, std=std / math.sqrt(2 * layers) if last else std)
        elif name.endswith("bias"):
            nn.init.zeros_(p)


class Block(nn.Module):
    rope = staticmethod(rope)

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

    def qkv(self, x, cos, sin):
        c, (b, t, _) = self.cfg, x.shape
        q = self.rope(self.attn_q(x).view(b, t, c.heads, c.head), cos, sin)
        k = self.rope(self.attn_k(x).view(b, t, c.kv_heads, c.head), cos, sin)
        return q, k, self.attn_v(x).view(b, t, c.kv_heads, c.head)

    def forward(self, x, cos, sin, mask):
        x = x + self.attn_output(attend(*self.qkv(self.attn_norm(x), cos, sin), mask))
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Llama(nn.Module):
    block = Block

    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.token_embd = nn.Embedding(cfg.vocab, cfg.embd)
        self.blk = nn.ModuleList(self.block(cfg) for _ in range(cfg.layers))
        self.output_norm = RMSNorm(cfg.embd, cfg.eps)
        cos, sin = rope_table(cfg)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.register_buffer("mask", torch.full((cfg.context, cfg.context), -1e30).triu(1), persistent=False)
        initialize(self, cfg.layers)
        for block in self.blk:
            copying(block.attn_v.weight, block.attn_output.weight, cfg.kv_heads, cfg.heads)

    def forward(self, ids, targets):
        """Mean cross entropy, nats per token. ids, targets: (batch, time)."""
        t = ids.shape[1]
        x = self.token_embd(ids)
        for block in self.blk:
            x = block(x, self.cos[:t], self.sin[:t], self.mask[:t, :t])
        logits = F.linear(self.output_norm(x), self.token_embd.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
