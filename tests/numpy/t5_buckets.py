"""The biases that T5 and MPNet add to scores, by the bucket of a distance (Raffel et al. 2020)."""
import math

import numpy as np


def bucket(distance, n):
    """_relative_position_bucket of key minus query, for an encoder; the last bucket of a side holds all from 128 on."""
    n //= 2
    side, distance = n if distance > 0 else 0, abs(distance)
    if distance < n // 2:
        return side + distance
    far = n // 2 + int(math.log(distance / (n // 2)) / math.log(128 / (n // 2)) * (n - n // 2))
    return side + min(far, n - 1)


def bias_of(weight, n):
    """[heads, n, n] of the weight [buckets, heads], for an encoder's n tokens."""
    of = [[bucket(j - i, len(weight)) for j in range(n)] for i in range(n)]
    return np.moveaxis(weight[of], -1, 0)


def past_bucket(distance, n):
    """The same for a decoder, whose tokens see none after them: all buckets are for tokens before."""
    before = max(-distance, 0)
    if before < n // 2:
        return before
    return min(n // 2 + int(math.log(before / (n // 2)) / math.log(128 / (n // 2)) * (n - n // 2)), n - 1)


def past_bias_of(weight, n):
    """[heads, n, n], for a decoder's n tokens."""
    of = [[past_bucket(j - i, len(weight)) for j in range(n)] for i in range(n)]
    return np.moveaxis(weight[of], -1, 0)
