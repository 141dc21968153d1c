"""The quantized types, from the descriptions of their blocks. decode(name, data): data [n, bytes of a block] uint8 -> [n, elements]
float32. Every product is exact in float32, so that the order in which scales are multiplied does not matter, but for types whose
rows have a scale of 32 bits: theirs is multiplied by that of the part first. Where there is a minimum the sum is rounded once.
"""
import numpy as np

import codebooks

F32 = np.float32


class Fields:
    """Takes blocks [n, size] apart, from the first byte on."""

    def __init__(self, data, row=F32(1)):
        self.data, self.at = data, 0
        self.row = row  # the scale of the row of each block, if rows have one

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


# --- forks of llama.cpp


def q6_0(f):
    d, h = f.f16(), f.u8(8)
    high = np.concatenate([h & 3, h >> 4 & 3, h >> 2 & 3, h >> 6], -1)
    return value(d, nibbles(f.u8(16)) + 16 * high - 32)


def pq2_0(f):
    d, b = f.f16(), f.u8(32)
    return value(d, (b[:, :, None] >> np.array([0, 2, 4, 6]) & 3).reshape(len(b), 128) - 1)


def ptq1_0(f):
    a, b, h = f.u8(16), f.u8(8), f.u8(2)
    return value(f.f16(), np.concatenate([trits(a, 5), trits(b, 5), trits(h, 4)], -1) - 1)


def iq2_bn(f):
    b = f.u8(16)
    code = (b[:, None, :] >> np.array([0, 2, 4, 6])[:, None] & 3).reshape(len(b), 64)
    return value(f.row, code - 1)


# The steps of ik_llama.cpp's types; those of the second kind are all as much higher.
STEPS = {
    2: (np.array([-31, -13, 1, 17]), 5),
    3: (np.array([-63, -40, -23, -10, 1, 13, 28, 47]), 4),
    4: (UNEVEN, 4),
    5: (np.array([-126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36, -30, -24, -18, -12, -6, -1, 5, 11, 17, 23, 29, 36, 43,
                  51, 59, 68, 77, 87, 97, 109, 121]), 2),
    6: (np.array([-127, -121, -115, -109, -104, -98, -93, -88, -84, -79, -74, -70, -66, -62, -58, -54, -51, -47, -44, -40, -37, -34,
                  -31, -28, -25, -22, -19, -16, -13, -11, -8, -5, -2, 0, 3, 6, 9, 12, 14, 17, 20, 23, 27, 30, 33, 36, 40, 44, 47, 51,
                  55, 59, 63, 68, 72, 77, 82, 87, 92, 98, 103, 109, 115, 121]), 1),
}


def stepped(n_bits, d, scale, code, shifts):
    """d * scale * step; scale and shifts: a number for each run of 16 or 32 elements."""
    steps, shift = STEPS[n_bits]
    run = code.shape[-1] // scale.shape[-1]
    return value(each(d * scale.astype(F32), run), steps[code] + shift * each(shifts, run))


def words(u, n):
    """Bits 0, 1, .. n - 1 of one number for each block."""
    return u >> np.arange(n) & 1


def iq2_k(f):
    d, x, s = f.f16(), f.u16(1), f.u8(8)
    return stepped(2, d, halves_of(s) - 8, pairs(f.u8(64)), words(x, 16))


def iq3_k(f):
    d, x, minus, s = f.f16(), f.u16(1), f.u16(1), f.u8(8)
    scale = signed(2 * halves_of(s) + 1, words(minus, 16))
    return stepped(3, d, scale, pairs(f.u8(64)) + 4 * planes(f.u8(32)), words(x, 16))


def six_bit_scales(f):
    sh, sl = f.u8(4), f.u8(8)
    return halves_of(sl) + 16 * (sh[..., None] >> np.array([0, 2, 4, 6]) & 3).reshape(len(sh), 16) - 32


def iq4_k(f):
    d, x, scale = f.f16(), f.u16(1), six_bit_scales(f)
    return stepped(4, d, scale, nibbles(f.u8(128)), words(x, 16))


def iq5_k(f):
    d, x, scale = f.f16(), f.u16(1), six_bit_scales(f)
    return stepped(5, d, scale, nibbles(f.u8(128), 64) + 16 * planes(f.u8(32)), words(x, 16))


def iq6_k(f):
    d, x, scale = f.f16(), f.u16(1), f.i8(16)
    return stepped(6, d, scale, nibbles(f.u8(128), 64) + 16 * pairs(f.u8(64)), words(x, 16))


def iq4_ks(f):
    s = f.u8(8)
    return stepped(4, f.row, (s & 254) - 127, nibbles(f.u8(128)), s & 1)


def iq5_ks(f):
    s = f.u8(8)
    return stepped(5, f.row, (s & 254) - 127, nibbles(f.u8(128), 64) + 16 * planes(f.u8(32)), s & 1)


def iq4_kss(f):
    w = f.u16(64)
    s = ((w & 1).reshape(-1, 8, 8) << np.arange(8)).sum(-1)
    v = w & 0xFFFE
    v ^= v >> 1
    code = nibbles(np.stack([v & 255, v >> 8], -1).reshape(len(w), 128))
    return stepped(4, f.row, (s & 254) - 127, code, s & 1)


def iq2_ks(f):
    x, s = f.u16(1), f.u8(4)
    return stepped(2, f.row, halves_of(s) + 16 * words(x >> 8, 8) - 16, pairs(f.u8(64)), words(x, 8))


def iq3_ks(f):
    x, s = f.u16(1), f.u8(4)
    scale = np.concatenate([s & 15, s >> 4], -1) + 16 * words(x, 8) - 16
    return stepped(3, f.row, scale, pairs(f.u8(64)) + 4 * planes(f.u8(32)), words(x >> 8, 8))


KL = np.array([int(c) for c in "0205101315172122242526303435374243444546515253545560626466677275"]).reshape(32, 2)


def iq2_kl(f):
    sh, sl = f.u16(1), f.u8(4)
    scale = np.concatenate([sl & 15, sl >> 4], -1) + 16 * (sh >> 2 * np.arange(8) & 3) - 32
    low, h = nibbles(f.u8(64)), f.u8(16)
    index = low + 16 * (h[:, None, :] >> np.arange(8)[:, None] & 1).reshape(len(h), 128)
    return stepped(3, f.row, scale, KL[index].reshape(len(h), 256), 0 * scale)


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
    "q6_0": (133, 32, 26, q6_0), "iq2_bn": (135, 64, 16, iq2_bn), "iq2_k": (137, 256, 76, iq2_k), "iq3_k": (138, 256, 110, iq3_k),
    "iq4_k": (139, 256, 144, iq4_k), "iq5_k": (140, 256, 176, iq5_k), "iq6_k": (141, 256, 212, iq6_k), "pq2_0": (142, 128, 34, pq2_0),
    "ptq1_0": (143, 128, 28, ptq1_0), "iq4_ks": (144, 256, 136, iq4_ks), "iq2_ks": (145, 256, 70, iq2_ks),
    "iq4_kss": (146, 256, 128, iq4_kss), "iq5_ks": (152, 256, 168, iq5_ks), "iq3_ks": (156, 256, 102, iq3_ks),
    "iq2_kl": (157, 256, 86, iq2_kl),
}
# Types whose rows begin with a scale, as f16 or f32.
ROW_SCALES = {"iq2_bn": "<f4", "iq4_ks": "<f4", "iq4_kss": "<f4", "iq5_ks": "<f4", "iq2_ks": "<f2", "iq3_ks": "<f2", "iq2_kl": "<f2"}


def row_bytes(name, n):
    """The bytes of a row of n elements."""
    _, block, size, _ = TYPES[name]
    return n // block * size + (np.dtype(ROW_SCALES[name]).itemsize if name in ROW_SCALES else 0)


def decode_rows(name, data, n):
    """Rows of n elements, with their scales if they have any."""
    data = data.reshape(-1, row_bytes(name, n))
    if name not in ROW_SCALES:
        return decode(name, data).reshape(len(data), n)
    scale = np.dtype(ROW_SCALES[name])
    d = np.ascontiguousarray(data[:, : scale.itemsize]).view(scale).astype(F32)
    blocks = np.ascontiguousarray(data[:, scale.itemsize :])
    return decode(name, blocks, each(d, n // TYPES[name][1]).reshape(-1, 1)).reshape(len(data), n)


def decode(name, data, row=F32(1)):
    _, n, size, decoder = TYPES[name]
    f = Fields(data.reshape(-1, size), row)
    with np.errstate(all="ignore"):
        x = decoder(f)
    assert f.at == size and x.shape == (len(f.data), n) and x.dtype == F32, (name, f.at, x.shape, x.dtype)
    return x
