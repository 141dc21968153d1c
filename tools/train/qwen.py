"""Qwen 2 and 3 for training: Llama with rotary positions on the pairs (i, i + head/2), and what each adds to it."""

import torch
import torch.nn as nn

import llama


def rope(x, cos, sin):
    """Turns each pair (i, i + head/2) of the last axis. x: (batch, time, heads, head)."""
    low, high = x.float().chunk(2, -1)
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.cat((low * cos - high * sin, low * sin + high * cos), -1)


class Block2(llama.Block):
    """Qwen 2: biases on Q, K and V."""
    rope = staticmethod(rope)

    def __init__(self, cfg):
        super().__init__(cfg)
        for lin in (self.attn_q, self.attn_k, self.attn_v):
            lin.bias = nn.Parameter(torch.zeros(lin.out_features))


class Block3(llama.Block):
    """Qwen 3: each head of Q and K is normalised before it is turned; a head's size does not follow from embd."""
    rope = staticmethod(rope)

    def __init__(self, cfg):
        super().__init__(cfg)
        self.attn_q_norm, self.attn_k_norm = llama.RMSNorm(cfg.head, cfg.eps), llama.RMSNorm(cfg.head, cfg.eps)

    def qkv(self, x, cos, sin):
        c, (b, t, _) = self.cfg, x.shape
        q = rope(self.attn_q_norm(self.attn_q(x).view(b, t, c.heads, c.head)), cos, sin)
        k = rope(self.attn_k_norm(self.attn_k(x).view(b, t, c.kv_heads, c.head)), cos, sin)
        return q, k, self.attn_v(x).view(b, t, c.kv_heads, c.head)


class Qwen2(llama.Llama):
    block = Block2


class Qwen3(llama.Llama):
    block = Block3
