"""GPT-2 for training: learned positions, LayerNorm and biases, one matrix for Q, K and V, GELU in its tanh form."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from llama import attend, copying, initialize


class LayerNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.float())


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.attn_norm, self.ffn_norm = LayerNorm(cfg.embd, cfg.eps), LayerNorm(cfg.embd, cfg.eps)
        self.attn_qkv = nn.Linear(cfg.embd, 3 * cfg.embd)
        self.attn_output = nn.Linear(cfg.embd, cfg.embd)
        self.ffn_up, self.ffn_down = nn.Linear(cfg.embd, cfg.ff), nn.Linear(cfg.ff, cfg.embd)

    def forward(self, x, mask):
        qkv = self.attn_qkv(self.attn_norm(x)).unflatten(-1, (3, self.cfg.heads, self.cfg.head))
        x = x + self.attn_output(attend(*qkv.unbind(2), mask))
        return x + self.ffn_down(F.gelu(self.ffn_up(self.ffn_norm(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.token_embd = nn.Embedding(cfg.vocab, cfg.embd)
        self.position_embd = nn.Embedding(cfg.context, cfg.embd)
        self.blk = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.output_norm = LayerNorm(cfg.embd, cfg.eps)
        self.register_buffer("mask", torch.full((cfg.context, cfg.context), -1e30).triu(1), persistent=False)
        initialize(self, cfg.layers)
        nn.init.normal_(self.position_embd.weight, std=0.02)     # a position not trained yet disturbs little
        for block in self.blk:
            copying(block.attn_qkv.weight[2 * cfg.embd:], block.attn_output.weight, cfg.heads, cfg.heads)

    def forward(self, ids, targets):
        """Mean cross entropy, nats per token. ids, targets: (batch, time)."""
        t = ids.shape[1]
        x = self.token_embd(ids) + self.position_embd.weight[:t]
        for block in self.blk:
            x = block(x, self.mask[:t, :t])
        logits = F.linear(self.output_norm(x), self.token_embd.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
