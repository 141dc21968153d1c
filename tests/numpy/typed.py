"""Models of the family llama for each quantized type, made of random blocks: NAME-embedding, whose embedding has the type and everything else
is F32, and NAME-all, all of whose matrices have it. ./golden.py runs them.
"""
import numpy as np

import families
import gguf
import nano
import sums
import weights

N_EMBD, N_VOCAB, N_HEAD = 256, 64, 4

# The byte at which a block has its scale, a half float; 0 if the type is not listed. For types with a minimum, also the byte of the minimum
# and a factor: the minimum is -factor times the scale, so that the mean of the elements is about 0.
SCALES = {"q2_k": (80, 82, -1.5), "q3_k": (108,), "q4_k": (0, 2, -7.5), "q5_k": (0, 2, -15.5), "q6_k": (208,), "tq1_0": (52,), "tq2_0": (64,), "ptq1_0": (26,),
          "q4_1": (0, 2, 7.5), "q5_1": (0, 2, 15.5)}
# Types whose scales are floats of 8 bits: the bytes of these, and the values among which they are drawn.
SCALE_BYTES = {"mxfp4": (0, 1, 122, 125), "nvfp4": (0, 4, 8, 24)}


def put_half(blocks, at, values):
    blocks[:, at : at + 2] = values.astype("<f2").view(np.uint8).reshape(-1, 2)


def put_scales(name, blocks, scales):
    if name == "iq1_m":  # four bits of it are the top ones of each 16 of the last 64
        bits = scales.astype("<f2").view(np.uint16)
        for i in range(4):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (bits >> 4 * i & 15) << 4
        return
    at, *minimum = SCALES.get(name, (0,))
    put_half(blocks, at, scales)
    if minimum:
        put_half(blocks, minimum[0], -minimum[1] * scales)


def scaled_rows(random, name, rows, columns):
    """The same, of rows with a scale each."""
    scale = np.dtype(weights.ROW_SCALES[name])
    data = random.integers(0, 256, (rows, weights.row_bytes(name, columns)), dtype=np.uint8)

    def put(values):
        data[:, : scale.itemsize] = values.astype(scale).view(np.uint8).reshape(rows, -1)

    put(np.ones(rows))
    spread = float(sums.std(weights.decode_rows(name, data, columns)))
    put(random.uniform(0.7, 1.3, rows) / (spread * np.sqrt(columns)))
    return data


def random_blocks(random, name, rows, columns):
    """Blocks whose elements keep the variance of a product."""
    if name in weights.ROW_SCALES:
        return scaled_rows(random, name, rows, columns)
    _, n, size, _ = weights.TYPES[name]
    blocks = random.integers(0, 256, (rows * columns // n, size), dtype=np.uint8)
    if name in SCALE_BYTES:
        first, last, low, high = SCALE_BYTES[name]
        blocks[:, first:last] = random.integers(low, high, (len(blocks), last - first), dtype=np.uint8)
        return blocks
    ones = np.ones(len(blocks))
    put_scales(name, blocks, ones)
    spread = float(sums.std(weights.decode(name, blocks)))
    put_scales(name, blocks, random.uniform(0.7, 1.3, len(blocks)) / (spread * np.sqrt(columns)))
    return blocks


class TypedCase(nano.Case):
    def __init__(self, name, kind, some):
        """some: the names of tensors that have the type, or None for all matrices."""
        w = nano.Weights(4000 + weights.TYPES[kind][0])
        w.embedding(N_VOCAB, N_EMBD)
        w.norm("blk.0.attn_norm", N_EMBD)
        w.attention(0, N_EMBD, N_HEAD, N_HEAD, N_EMBD // N_HEAD)
        w.norm("blk.0.ffn_norm", N_EMBD)
        w.gated(0, N_EMBD, N_EMBD)
        w.norm("output_norm", N_EMBD)
        w["output.weight"] = w["token_embd.weight"]
        super().__init__(name, "llama", nano.keys_of(1, N_EMBD, N_EMBD, N_HEAD, 1e-2), w, families.llama)
        self.quantized = some is None
        self.decoded = dict(w)
        self.tensors = dict(w)
        for tensor, values in w.items():
            if values.ndim == 2 and (some is None or tensor in some):
                blocks = random_blocks(w.random, kind, *values.shape)
                self.tensors[tensor] = gguf.Blocks(weights.TYPES[kind][0], values.shape, blocks.tobytes())
                self.decoded[tensor] = weights.decode_rows(kind, blocks, values.shape[1])

    def logits(self, tokens=None):
        w = {name: t.astype(np.float64) for name, t in self.decoded.items()}
        key = lambda name, *default: self.keys.get(name, *default) if default else self.keys[name]
        return self.forward(key, w, self.tokens if tokens is None else tokens, self.n_ctx)


def cases():
    """By name. These are no cases of ./nano.py, because arithmetic with activations of 8 bits is not within the limits of ./check.py."""
    out = {}
    for kind in weights.TYPES:
        for name, some in ((f"{kind}-embedding", ("token_embd.weight",)), (f"{kind}-all", None)):
            out[name] = TypedCase(name, kind, some)
    return out
