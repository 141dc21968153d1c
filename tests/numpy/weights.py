"""The quantized types, from the descriptions of their blocks. decode(name, data): data [n, bytes of a block] uint8 -> [n, elements]
float32. Every product is exact in float32, so that the order in which scales are multiplied does not matter; where there is
a minimum the sum is rounded once.
"""
import numpy as np

import codebooks

F32 = np.float32


class Fields:
    """Takes blocks [n, size] apart, from the first byte on."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def u8(self, n):
        self.at += n
        return self.data[:, self.at - n : self.at].astype(np.int64)

    def i8(self, n):
        return self.u8(n).astype(np.int8).astype(np.int64)

    def u16(self, n):
        return self.little_endian(n, 2)

    def u32(self, n):
        return self.little_endian(n, 4)

    def little_endian(self, n, size):
        b = self.u8(n * size).reshape(len(self.data), n, size)
        return (b << 8 * np.arange(size)).sum(-1)

    def f16(self):
        return half(self.u16(1))


def half(u):
    return u.astype(np.uint16).view(np.float16).astype(F32)


def each(x, n):
    """Every element n times."""
    return np.repeat(x, n, axis=-1)


def bits(x, n):
    """The n lowest bits of each number, the lowest first, as one row."""
    return (x[..., None] >> np.arange(n) & 1).reshape(len(x), -1)


def nibbles(b, run=32):
    """Runs of `run` elements in half as many bytes: first the low halves, then the high ones."""
    b = b.reshape(len(b), -1, run // 2)
    return np.concatenate([b & 15, b >> 4], -1).reshape(len(b), -1)


def pairs(b):
    """Two bits each, 128 elements in 32 bytes: the lowest bits of all first."""
    b = b.reshape(len(b), -1, 1, 32)
    return (b >> np.array([0, 2, 4, 6])[:, None] & 3).reshape(len(b), -1)


def planes(h):
    """256 bits in 32 bytes: bit 0 of all first."""
    return (h[:, None, :] >> np.arange(8)[:, None] & 1).reshape(len(h), -1)


def value(s, q, m=None):
    """s * q + m, in float32."""
    x = s.astype(F32) * q.astype(F32)
    return x if m is None else x + m.astype(F32)


# --- blocks of 32


def q8_0(f):
    return value(f.f16(), f.i8(32))


def q4_0(f):
    return value(f.f16(), nibbles(f.u8(16)) - 8)


def q4_1(f):
    d, m = f.f16(), f.f16()
    return value(d, nibbles(f.u8(16)), m)


def q5_0(f):
    d, h = f.f16(), bits(f.u8(4), 8)
    return value(d, nibbles(f.u8(16)) + 16 * h - 16)


def q5_1(f):
    d, m, h = f.f16(), f.f16(), bits(f.u8(4), 8)
    return value(d, nibbles(f.u8(16)) + 16 * h, m)


UNEVEN = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])


def iq4_nl(f):
    return value(f.f16(), UNEVEN[nibbles(f.u8(16))])


def mxfp4(f):
    """4 bits: sign, exponent of two bits with a bias of 1, one bit of mantissa. The scale is 2^(e - 127); what that is not in
    float32, a half of it is. There is no -0: codes are integers."""
    e, code = f.u8(1), nibbles(f.u8(16))
    exponent, mantissa = code >> 1 & 3, code & 1
    magnitude = np.where(exponent == 0, mantissa, (2 + mantissa) << np.maximum(exponent - 1, 0))  # doubled
    return value(np.ldexp(F32(1), (e - 128).astype(int)), np.where(code & 8, -magnitude, magnitude))


# --- blocks of 64 and 128


def nvfp4(f):
    """Floats of 4 bits as in mxfp4, doubled, times half a float of 8 bits for each 16: four bits of exponent with a bias of 7,
    three of mantissa; 127 is 0, the top bit means nothing. 16 numbers are in 8 bytes: first the low halves, then the high ones."""
    e, code = f.u8(4), nibbles(f.u8(32), 16)
    small = np.array([0, 1, 2, 3, 4, 6, 8, 12])[code & 7]
    top, mantissa = e >> 3 & 15, e & 7
    scale = np.where(top == 0, np.ldexp(mantissa / 8.0, -6), np.ldexp(1 + mantissa / 8.0, top - 7))
    return value(each(np.where(e == 127, 0.0, scale / 2), 16), np.where(code & 8, -small, small))


def q1_0(f):
    return value(f.f16(), 2 * bits(f.u8(16), 8) - 1)


def q2_0(f):
    d, b = f.f16(), f.u8(16)
    return value(d, (b[:, :, None] >> np.array([0, 2, 4, 6]) & 3).reshape(len(b), 64) - 1)


# --- blocks of 256


def q2_k(f):
    sm, b, d, dmin = f.u8(16), f.u8(64), f.f16(), f.f16()
    return value(each(d * (sm & 15).astype(F32), 16), pairs(b), each(-dmin * (sm >> 4).astype(F32), 16))


def q3_k(f):
    h, b, s, d = f.u8(32), f.u8(64), f.u8(12), f.f16()
    scale = nibbles(s[:, :8], 16) + 16 * pairs_of_scales(s[:, 8:]) - 32
    return value(each(d * scale.astype(F32), 16), pairs(b) + 4 * planes(h) - 4)


def pairs_of_scales(b):
    return (b[:, None, :] >> np.array([0, 2, 4, 6])[:, None] & 3).reshape(len(b), -1)


def scales_and_minima(sm):
    """Twelve bytes, a, b, c of four each: numbers 0 .. 3 are the low 6 bits of a (scales) and b (minima), the low 4 bits of 4 .. 7
    are the halves of c, and what is above them the high 2 bits of a and b."""
    a, b, c = sm[:, 0:4], sm[:, 4:8], sm[:, 8:12]
    return np.concatenate([a & 63, c & 15 | a >> 6 << 4], -1), np.concatenate([b & 63, c >> 4 | b >> 6 << 4], -1)


def with_minima(d, dmin, sm, code):
    scale, minimum = scales_and_minima(sm)
    return value(each(d * scale.astype(F32), 32), code, each(-dmin * minimum.astype(F32), 32))


def q4_k(f):
    d, dmin, sm = f.f16(), f.f16(), f.u8(12)
    return with_minima(d, dmin, sm, nibbles(f.u8(128), 64))


def q5_k(f):
    d, dmin, sm, h = f.f16(), f.f16(), f.u8(12), f.u8(32)
    return with_minima(d, dmin, sm, nibbles(f.u8(128), 64) + 16 * planes(h))


def q6_k(f):
    low, high, s, d = f.u8(128), f.u8(64), f.i8(16), f.f16()
    return value(each(d * s.astype(F32), 16), nibbles(low, 128) + 16 * pairs(high) - 32)


def iq4_xs(f):
    d, sh, sl = f.f16(), f.u16(1), f.u8(4)
    low = np.stack([sl & 15, sl >> 4], -1).reshape(len(sl), 8)
    scale = low + 16 * (sh >> 2 * np.arange(8) & 3) - 32
    return value(each(d * scale.astype(F32), 32), UNEVEN[nibbles(f.u8(128))])


def trits(b, n):
    """A byte is a fraction of 256: multiplied by three, what comes before the point is the next digit."""
    out, fraction = [], b
    for _ in range(n):
        out.append(fraction * 3 >> 8)
        fraction = fraction * 3 & 255
    return np.concatenate(out, -1)


def tq1_0(f):
    a, b, h = f.u8(32), f.u8(16), f.u8(4)
    return value(f.f16(), np.concatenate([trits(a, 5), trits(b, 5), trits(h, 4)], -1) - 1)


def tq2_0(f):
    code = pairs(f.u8(64))
    return value(f.f16(), code - 1)


# --- codebooks


def with_parity(signs):
    """Seven signs and the one that makes their number even."""
    s = signs[..., None] >> np.arange(7) & 1
    return np.concatenate([s, s.sum(-1, keepdims=True) % 2], -1).reshape(len(signs), -1)


def from_book(book, index):
    return book[index].reshape(len(index), -1)


def signed(x, minus):
    return np.where(minus, -x, x)


def halves_of(s):
    """The two numbers of each byte, low first."""
    return np.stack([s & 15, s >> 4], -1).reshape(len(s), -1)


def odd(scale):
    return (2 * scale + 1).astype(F32)


def iq2_xxs(f):
    d, words = f.f16(), f.u32(16)
    low, high = words[:, 0::2], words[:, 1::2]
    index = (low[..., None] >> 8 * np.arange(4) & 255).reshape(len(d), 32)
    signs = (high[..., None] >> 7 * np.arange(4) & 127).reshape(len(d), 32)
    return value(each(d * odd(high >> 28) / F32(8), 32), signed(from_book(codebooks.IQ2_XXS, index), with_parity(signs)))


def iq2_xs(f):
    d, v, s = f.f16(), f.u16(32), f.u8(8)
    x = signed(from_book(codebooks.IQ2_XS, v & 511), with_parity(v >> 9))
    return value(each(d * odd(halves_of(s)) / F32(8), 16), x)


def iq2_s(f):
    d, index, signs, h, s = f.f16(), f.u8(32), f.u8(32), f.u8(8), f.u8(8)
    index = index + 256 * (h[..., None] >> np.array([0, 2, 4, 6]) & 3).reshape(len(d), 32)
    return value(each(d * odd(halves_of(s)) / F32(8), 16), signed(from_book(codebooks.IQ2_S, index), bits(signs, 8)))


def iq3_xxs(f):
    d, index, w = f.f16(), f.u8(64), f.u32(8)
    signs = (w[..., None] >> 7 * np.arange(4) & 127).reshape(len(d), 32)
    return value(each(d * odd(w >> 28) / F32(4), 32), signed(from_book(codebooks.IQ3_XXS, index), with_parity(signs)))


def iq3_s(f):
    d, index, h, signs, s = f.f16(), f.u8(64), f.u8(8), f.u8(32), f.u8(4)
    x = from_book(codebooks.IQ3_S, index + 256 * bits(h, 8))
    return value(each(d * odd(halves_of(s)), 32), signed(x, bits(signs, 8)))


def eighths(book_index, minus):
    """8 times (element + 1/8), or - 1/8."""
    return 8 * from_book(codebooks.IQ1, book_index) + each(1 - 2 * minus, 8)


def iq1_s(f):
    d, index, h = f.f16(), f.u8(32), f.u16(8)
    index = index + 256 * (h[..., None] >> np.array([0, 3, 6, 9]) & 7).reshape(len(d), 32)
    return value(each(d * odd(h >> 12 & 7) / F32(8), 32), eighths(index, each(h >> 15, 4)))


def iq1_m(f):
    index, h, s = f.u8(32), f.u8(16), f.u16(4)
    d = half(((s >> 12) << 4 * np.arange(4)).sum(-1, keepdims=True))
    scale = (s[..., None] >> np.array([0, 3, 6, 9]) & 7).reshape(len(s), 16)
    high = halves_of(h)
    return value(each(d * odd(scale) / F32(8), 16), eighths(index + 256 * (high & 7), high >> 3))


# name -> (GGUF's number, elements and bytes of a block, decoder)
TYPES = {
    "q4_0": (2, 32, 18, q4_0), "q4_1": (3, 32, 20, q4_1), "q5_0": (6, 32, 22, q5_0), "q5_1": (7, 32, 24, q5_1),
    "q8_0": (8, 32, 34, q8_0), "q2_k": (10, 256, 84, q2_k), "q3_k": (11, 256, 110, q3_k), "q4_k": (12, 256, 144, q4_k),
    "q5_k": (13, 256, 176, q5_k), "q6_k": (14, 256, 210, q6_k), "iq2_xxs": (16, 256, 66, iq2_xxs),
    "iq2_xs": (17, 256, 74, iq2_xs), "iq3_xxs": (18, 256, 98, iq3_xxs), "iq1_s": (19, 256, 50, iq1_s),
    "iq4_nl": (20, 32, 18, iq4_nl), "iq3_s": (21, 256, 110, iq3_s), "iq2_s": (22, 256, 82, iq2_s),
    "iq4_xs": (23, 256, 136, iq4_xs), "iq1_m": (29, 256, 56, iq1_m), "tq1_0": (34, 256, 54, tq1_0),
    "tq2_0": (35, 256, 66, tq2_0), "mxfp4": (39, 32, 17, mxfp4), "nvfp4": (40, 64, 36, nvfp4), "q1_0": (41, 128, 18, q1_0),
    "q2_0": (42, 64, 18, q2_0),
}


def decode(name, data):
    _, n, size, decoder = TYPES[name]
    f = Fields(data.reshape(-1, size))
    with np.errstate(all="ignore"):
        x = decoder(f)
    assert f.at == size and x.shape == (len(f.data), n) and x.dtype == F32, (name, f.at, x.shape, x.dtype)
    return x
