"""What the papers' formulas are made of, in float64. Rows are the last dimension; x is [T, ..]: a token each.

Nothing here is shared with the engine, and nothing is arranged as it arranges it: attention has an explicit mask over all
pairs of tokens, rotation multiplies complex numbers, experts and recurrences are plain loops over tokens.
"""
import math

import numpy as np


def distance(a, b):
    """The largest difference of two arrays; infinite elements must be the same ones."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(a) & (a == b), 0, np.abs(a - b)).max()


def linear(x, w, b=None):
    """y[o] = sum_i w[o, i] x[i] + b[o]; w as GGUF stores it."""
    y = np.einsum("...i,oi->...o", x, w)
    return y if b is None else y + b


def rms_norm(x, w, eps):
    y = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
    return y if w is None else y * w


def layer_norm(x, w, b, eps):
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    y = y if w is None else y * w
    return y if b is None else y + b


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    """The tanh approximation (Hendrycks & Gimpel 2016)."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


erf = np.vectorize(math.erf, otypes=[float])


def gelu_erf(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_quick(x):
    return x * sigmoid(1.702 * x)


def softplus(x):
    return np.log1p(np.exp(x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def split_heads(x, n):
    return x.reshape(len(x), n, -1)


def merge_heads(x):
    return x.reshape(len(x), -1)


# --- positions


def inverse_frequencies(n, base):
    """theta_i = base^(-2i/n)  (Su et al. 2021)."""
    return np.array([base ** (-2.0 * i / n) for i in range(n // 2)])


def rotate(x, theta, halves, mag=1.0):
    """Turns pairs of x [T, H, d] by (token's place) * theta. halves: the pairs are (i, i + r), else (2i, 2i + 1); what lies
    behind the 2r rotated elements passes."""
    r = len(theta)
    turn = mag * np.exp(1j * np.outer(np.arange(len(x)), theta))[:, None, :]
    part = x[..., : 2 * r]
    out = x.copy()
    if halves:
        z = (part[..., :r] + 1j * part[..., r:]) * turn
        out[..., :r], out[..., r : 2 * r] = z.real, z.imag
    else:
        z = (part[..., 0::2] + 1j * part[..., 1::2]) * turn
        out[..., 0 : 2 * r : 2], out[..., 1 : 2 * r : 2] = z.real, z.imag
    return out


def yarn_frequencies(n, base, factor, original, fast=32, slow=1, share=1):
    """Peng et al. 2023, NTK-by-parts as in the authors' code. share: how much of what is not stretched in full stays unstretched."""

    def dimension_of(rotations):
        return n * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(dimension_of(fast)), 0)
    high = min(math.ceil(dimension_of(slow)), n - 1)
    theta = inverse_frequencies(n, base)
    out = []
    for i, t in enumerate(theta):
        ramp = min(max((i - low) / max(high - low, 0.001), 0), 1)
        kept = share * (1 - ramp)
        out.append(t * kept + t / factor * (1 - kept))
    return np.array(out)


def llama3_frequencies(n, base, factor, low, high, original):
    """Llama 3.1's scaling: long wavelengths divided by factor, short ones kept, in between blended."""
    out = []
    for t in inverse_frequencies(n, base):
        wavelength = 2 * math.pi / t
        if wavelength < original / high:
            out.append(t)
        elif wavelength > original / low:
            out.append(t / factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            out.append((1 - smooth) * t / factor + smooth * t)
    return np.array(out)


def alibi_slopes(n, max_bias=8.0):
    """Press et al. 2021, for any number of heads."""

    def power_of_two(m):
        return [2 ** (-max_bias * (i + 1) / m) for i in range(m)]

    m = 2 ** math.floor(math.log2(n))
    return np.array(power_of_two(m) + power_of_two(2 * m)[0::2][: n - m])


# --- attention


def attention(q, k, v, scale=None, window=None, cap=None, sinks=None, slopes=None, both=False, bias=None, chunk=None, chosen=None):
    """q [T, H, d], k [T, G, d], v [T, G, e] -> [T, H, e]; a window of W sees itself and the W - 1 tokens before it. both: tokens see those
    after them, too, and a window of W those at a distance of at most W / 2; bias [H, T, T]: is added to the scores; chunk: tokens see those of the
    same one of so many alone; chosen [T, T]: whether a token reads another."""
    n, heads, d = q.shape
    share = heads // k.shape[1]
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    visible = (j <= i) if window is None else (j <= i) & (j > i - window)
    if both:
        visible = abs(i - j) <= (n if window is None else window // 2)
    if chunk is not None:
        visible &= i // chunk == j // chunk
    if chosen is not None:
        visible &= chosen
    out = np.zeros((n, heads, v.shape[2]))
    for h in range(heads):
        s = q[:, h] @ k[:, h // share].T * (1 / math.sqrt(d) if scale is None else scale)
        s = s if cap is None else cap * np.tanh(s / cap)
        s = s if slopes is None else s - slopes[h] * abs(i - j)
        s = s if bias is None else s + bias[h]
        s = np.where(visible, s, -np.inf)
        if sinks is None:
            p = softmax(s)
        else:  # one more column, which has no value
            p = softmax(np.concatenate([s, np.full((n, 1), sinks[h])], 1))[:, :n]
        out[:, h] = p @ v[:, h // share]
    return out


def best_rows(q, key, w, n, every=1):
    """q [T, H, d], key [T, d], w [T, H] -> [T, T]: whether a token is among those that another one reads: the n groups of `every` tokens up to it with the largest
    scores, by the key of the last of each, and the tokens after the last group."""
    chosen = np.zeros((len(q), len(q)), bool)
    for t in range(len(q)):
        whole = (t + 1) // every
        scores = w[t] @ np.maximum(q[t] @ key[every - 1 : whole * every : every].T, 0)
        for g in np.argsort(-scores, kind="stable")[:n]:
            chosen[t, g * every : (g + 1) * every] = True
        chosen[t, whole * every : t + 1] = True
    return chosen


# --- feed-forward


def best(scores, k):
    """The places of the k largest."""
    return sorted(range(len(scores)), key=lambda i: -scores[i])[:k]


def experts(x, weights, chosen, expert):
    """sum over a token's chosen experts of weight * expert(e, x): lists for each token."""
    return np.array([sum(weights[t][e] * expert(e, x[t]) for e in chosen[t]) for t in range(len(x))])


# --- recurrences


def causal_conv(x, taps, b=None):
    """x [T, n], taps [n, k]: the last tap is the token itself, zeros before the first token."""
    n_taps = taps.shape[1]
    out = np.zeros_like(x)
    for t in range(len(x)):
        for j in range(n_taps):
            if t - (n_taps - 1 - j) >= 0:
                out[t] += taps[:, j] * x[t - (n_taps - 1 - j)]
    return out if b is None else out + b


def gated_delta_rule(q, k, v, log_decay, rate):
    """Yang et al. 2024. q, k [T, H, dk], v [T, H, dv]: S <- a S + b k (v - a S^T k)^T, y = S^T q / sqrt(dk)."""
    n, heads, dk = q.shape
    out = np.zeros_like(v)
    for h in range(heads):
        s = np.zeros((dk, v.shape[2]))
        for t in range(n):
            s = s * math.exp(log_decay[t, h])
            s = s + rate[t, h] * np.outer(k[t, h], v[t, h] - k[t, h] @ s)
            out[t, h] = q[t, h] @ s / math.sqrt(dk)
    return out
