"""The disentangled attention of DeBERTa (He et al. 2021; transformers' modeling_deberta_v2.py), pair by pair."""
import math

import numpy as np

from blocks import softmax


def log_bucket(distance, buckets, most):
    """make_log_bucket_position of query minus key: `buckets` of a side, of which the first half are distances, the others grow as logarithms do."""
    middle = buckets // 2
    if abs(distance) <= middle:
        return distance
    bucket = math.ceil(math.log(abs(distance) / middle) / math.log((most - 1) / middle) * (middle - 1)) + middle
    return bucket if distance > 0 else -bucket


def rows_of(n, buckets, most):
    """[n, n]: the row of the table for query i and key j."""
    side = buckets if buckets > 0 else most
    of = [[log_bucket(i - j, buckets, most) if buckets > 0 else i - j for j in range(n)] for i in range(n)]
    return np.clip(np.array(of) + side, 0, 2 * side - 1)


def disentangled(q, k, v, place_k, place_q, rows):
    """q, k, v [T, H, d]; place_k and place_q [rows, H, d] or None: the keys and queries that relative positions are. All tokens see all."""
    n, heads, d = q.shape
    terms = 1 + (place_k is not None) + (place_q is not None)
    out = np.zeros_like(v)
    for h in range(heads):
        score = np.zeros((n, n))
        for i in range(n):
            for j in range(n):
                r = rows[i, j]
                score[i, j] = q[i, h] @ k[j, h]
                if place_k is not None:
                    score[i, j] += q[i, h] @ place_k[r, h]
                if place_q is not None:
                    score[i, j] += k[j, h] @ place_q[r, h]
        out[:, h] = softmax(score / math.sqrt(d * terms)) @ v[:, h]
    return out
