"""The numbers of tensors as gguf.read_blocks gives them, by the definitions of the block types."""
import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def e4m3(codes):
    """Floats of 8 bits with 4 bits of exponent and 3 of fraction, without infinities."""
    c = np.asarray(codes).astype(np.int32)
    e, f = c >> 3 & 15, (c & 7).astype(np.float32)
    x = np.where(e > 0, (1 + f / 8) * np.float32(2) ** (e - 7), f * np.float32(2) ** -9).astype(np.float32)
    x = np.where((c & 127) == 127, np.nan, x)
    return np.where(c & 128, -x, x).astype(np.float32)


def e8m0(codes):
    return (np.float32(2) ** (np.asarray(codes).astype(np.int32) - 127)).astype(np.float32)


def half(b):
    return np.frombuffer(np.ascontiguousarray(b).tobytes(), np.float16).astype(np.float32)


def nibbles(b):
    return np.concatenate([b & 15, b >> 4], axis=-1)


def read_blocks(kind, data):
    """The numbers of q4_0 (2), q4_1 (3), q5_0 (6), q5_1 (7), q8_0 (8), tq2_0 (35), mxfp4 (39) and nvfp4 (40)."""
    size = {2: 18, 3: 20, 6: 22, 7: 24, 8: 34, 35: 66, 39: 17, 40: 36}[kind]
    b = np.frombuffer(data, np.uint8).reshape(-1, size)
    if kind == 8:
        return (half(b[:, :2])[:, None] * b[:, 2:].view(np.int8).astype(np.float32)).reshape(-1)
    if kind == 35:
        q = np.stack([b[:, 32 * h:32 * h + 32] >> 2 * k & 3 for h in range(2) for k in range(4)], axis=1).reshape(-1, 256)
        return (half(b[:, 64:])[:, None] * (q.astype(np.float32) - 1)).reshape(-1)
    if kind == 39:
        return (e8m0(b[:, :1]) * E2M1[nibbles(b[:, 1:])]).astype(np.float32).reshape(-1)
    if kind == 40:
        codes = nibbles(b[:, 4:].reshape(-1, 4, 8))
        return (e4m3(b[:, :4])[:, :, None] * E2M1[codes]).astype(np.float32).reshape(-1)
    d, m = half(b[:, 0:2])[:, None], half(b[:, 2:4])[:, None] if kind in (3, 7) else None
    codes = nibbles(b[:, size - 16:]).astype(np.float32)
    if kind in (6, 7):
        at = 4 if kind == 7 else 2
        codes += 16 * np.unpackbits(b[:, at:at + 4], axis=1, bitorder="little")
    if kind in (2, 6):
        return (d * (codes - (8 if kind == 2 else 16))).astype(np.float32).reshape(-1)
    return (d * codes + m).astype(np.float32).reshape(-1)


def numbers_of(t):
    """The numbers of a tensor of gguf.read_blocks."""
    if t.kind == 30:
        return (np.frombuffer(t.data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    if t.kind in (0, 1):
        return np.frombuffer(t.data, {0: np.float32, 1: np.float16}[t.kind]).astype(np.float32)
    return read_blocks(t.kind, t.data)
