"""Sums, means and spreads of random weights, added in an order that is fixed here.

A model that a test makes from a seed must be the same with every version of numpy, down to the last bit: ../golden has digests of models, and
logits that other engines computed from them. numpy does not promise the order in which it adds. Its versions differ in the last bits of sum(),
mean(), std() and products of matrices, so that whatever makes a model uses these functions instead; ./fixtures.py finds what does not.
"""
import numpy as np

PIECE, BLOCK, LANES = 8192, 128, 8


def of_piece(x):
    """At most PIECE elements: in each block, LANES sums of every LANES-th element; then neighbours, until one is left."""
    full = np.zeros(PIECE, x.dtype)
    full[: x.size] = x
    rows = full.reshape(-1, BLOCK // LANES, LANES)
    sums = rows[:, 0].copy()
    for i in range(1, rows.shape[1]):
        sums += rows[:, i]
    sums = sums.reshape(-1)
    while sums.size > 1:
        sums = sums[0::2] + sums[1::2]
    return sums[0]


def total(x):
    """The sum of all elements, in their type; one piece after the other."""
    flat, out = np.ravel(x), x.dtype.type(0)
    for at in range(0, flat.size, PIECE):
        out = out + of_piece(flat[at : at + PIECE])
    return out


def mean(x):
    return total(x) / x.dtype.type(x.size)


def std(x):
    far = x - mean(x)
    return np.sqrt(total(far * far) / x.dtype.type(x.size))
