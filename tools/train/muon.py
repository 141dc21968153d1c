"""What ears.py needs: the optimizer Muon, memory that is kept, checkpoints."""

import ctypes
import os

import torch


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


def keep_memory():
    """Makes glibc keep freed memory instead of returning it page by page: 1.6 times the speed here."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        for option, value in ((-4, 0), (-1, 2**31 - 1), (-2, 2**28)):   # M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD
            mallopt(option, value)


def save(path, **state):
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)                # never a half-written checkpoint
