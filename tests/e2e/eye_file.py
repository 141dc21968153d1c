"""Eyes and ears with random weights, as GGUF files (mmproj), and pictures and sounds for them."""
import math
import random
import struct
import zlib

import gguf_file


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.tensors = []

    def put(self, name, *shape, scale=0.2, centre=0.0):
        n = 1
        for k in shape:
            n *= k
        self.tensors.append((name, "f32", list(shape), struct.pack(f"<{n}f", *(self.rng.gauss(centre, scale) for _ in range(n)))))

    def norm(self, name, dim):
        self.put(name + ".weight", dim, scale=0.1, centre=1.0)
        self.put(name + ".bias", dim, scale=0.1)

    def layers(self, n, dim, ff, part="v"):
        for i in range(n):
            b = f"{part}.blk.{i}."
            self.norm(b + "ln1", dim)
            self.norm(b + "ln2", dim)
            for name, rows, columns in (("attn_q", dim, dim), ("attn_k", dim, dim), ("attn_v", dim, dim), ("attn_out", dim, dim), ("ffn_up", dim, ff),
                                        ("ffn_down", ff, dim)):
                self.put(f"{b}{name}.weight", rows, columns)
                self.put(f"{b}{name}.bias", columns, scale=0.05)

    def write(self, path, kind, size, patch, layers, dim, ff, more=()):
        keys = [("general.architecture", "string", "clip"), ("clip.has_vision_encoder", "bool", True), ("clip.projector_type", "string", kind),
                ("clip.vision.image_size", "u32", size), ("clip.vision.patch_size", "u32", patch), ("clip.vision.embedding_length", "u32", dim),
                ("clip.vision.feed_forward_length", "u32", ff), ("clip.vision.block_count", "u32", layers), ("clip.vision.projection_dim", "u32", dim),
                ("clip.vision.attention.head_count", "u32", 2), ("clip.vision.attention.layer_norm_epsilon", "f32", 1e-5),
                ("clip.vision.image_mean", "f32", [0.5, 0.5, 0.5]), ("clip.vision.image_std", "f32", [0.3, 0.3, 0.3]), ("clip.use_gelu", "bool", False)]
        with open(path, "wb") as f:
            f.write(gguf_file.gguf(keys + list(more), self.tensors))
        return path


def llava(path, n_embd, seed=1, side=4):
    """LLaVA's kind: side * side rows of n_embd numbers, of any picture."""
    patch, dim, ff = 8, 16, 32
    m = Maker(seed)
    m.put("v.patch_embd.weight", patch, patch, 3, dim, scale=0.05)
    m.put("v.position_embd.weight", dim, side * side)
    m.norm("v.pre_ln", dim)
    m.layers(2, dim, ff)
    m.put("mm.0.weight", dim, 24)
    m.put("mm.0.bias", 24)
    m.put("mm.2.weight", 24, n_embd)
    m.put("mm.2.bias", n_embd)
    return m.write(path, "mlp", side * patch, patch, 2, dim, ff, [("clip.has_llava_projector", "bool", True)])


def slow(path, n_embd, seed=1, side=64, layers=8):
    """Gemma 3's kind, with so many patches that it looks for a while: (side / 4) squared rows."""
    patch, dim, ff = 4, 32, 64
    m = Maker(seed)
    m.put("v.patch_embd.weight", patch, patch, 3, dim, scale=0.05)
    m.put("v.patch_embd.bias", dim)
    m.put("v.position_embd.weight", dim, side * side)
    m.layers(layers, dim, ff)
    m.norm("v.post_ln", dim)
    m.put("mm.soft_emb_norm.weight", dim, scale=0.1, centre=1.0)
    m.put("mm.input_projection.weight", n_embd, dim)
    return m.write(path, "gemma3", side * patch, patch, layers, dim, ff)


def both(path, n_embd, seed=1):
    """An eye and an ear in one file: Gemma 4 12B's, which have no layers."""
    m, side, dim = Maker(seed), 8, 16
    for name, n in (("patch_norm.1", 3 * side * side), ("patch_norm.2", dim), ("patch_norm.3", dim)):
        m.norm("v." + name, n)
    m.put("v.patch_embd.weight", 3 * side * side, dim)
    m.put("v.patch_embd.bias", dim)
    m.put("v.position_embd.weight", dim, 64, 2)
    m.put("mm.input_projection.weight", dim, n_embd)
    m.put("mm.a.input_projection.weight", 640, n_embd)
    vision = {"patch_size": side // 2, "projector.scale_factor": 2, "embedding_length": dim, "feed_forward_length": 0, "block_count": 0, "projection_dim": n_embd,
              "attention.head_count": 0, "image_size": 224, "image_max_pixels": 16 * side * side}
    keys = [("general.architecture", "string", "clip"), ("clip.has_vision_encoder", "bool", True), ("clip.has_audio_encoder", "bool", True),
            ("clip.vision.projector_type", "string", "gemma4uv"), ("clip.audio.projector_type", "string", "gemma4ua"), ("clip.audio.num_mel_bins", "u32", 640),
            ("clip.vision.attention.layer_norm_epsilon", "f32", 1e-6), ("clip.vision.image_mean", "f32", [0.0] * 3), ("clip.vision.image_std", "f32", [1.0] * 3)]
    with open(path, "wb") as f:
        f.write(gguf_file.gguf(keys + [("clip.vision." + key, "u32", n) for key, n in vision.items()], m.tensors))
    return path


def png(color, size=24, other=(0, 0, 0)):
    """A picture whose upper half has one color, the lower half another one."""
    rows = b"".join(b"\0" + bytes(color if y < size // 2 else other) * size for y in range(size))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def ppm(color, size=24, other=(0, 0, 0)):
    """The same in a format that every build reads."""
    return f"P6\n{size} {size}\n255\n".encode() + b"".join(bytes(color if y < size // 2 else other) * size for y in range(size))


def ultravox(path, n_embd, seed=1, n_pos=40):
    """Ultravox's ear, with windows of n_pos / 50 seconds, of which each second becomes 6.25 rows of n_embd numbers."""
    dim, ff, bands, stack = 16, 32, 8, 8
    m = Maker(seed)
    for k, n in ((1, bands), (2, dim)):
        m.put(f"a.conv1d.{k}.weight", 3, n, dim)
        m.put(f"a.conv1d.{k}.bias", 1, dim)
    m.put("a.position_embd.weight", dim, n_pos)
    m.layers(2, dim, ff, "a")
    m.norm("a.post_ln", dim)
    for name, n in (("norm_pre", stack * dim), ("norm_mid", 12)):
        m.put(f"mm.a.{name}.weight", n, scale=0.1, centre=1.0)
    m.put("mm.a.mlp.1.weight", stack * dim, 24)
    m.put("mm.a.mlp.2.weight", 12, n_embd)
    audio = {"embedding_length": dim, "feed_forward_length": ff, "block_count": 2, "projection_dim": n_embd, "attention.head_count": 2, "num_mel_bins": bands,
             "projector.stack_factor": stack}
    keys = [("general.architecture", "string", "clip"), ("clip.has_audio_encoder", "bool", True), ("clip.projector_type", "string", "ultravox"),
            ("clip.audio.attention.layer_norm_epsilon", "f32", 1e-5)] + [("clip.audio." + k, "u32", v) for k, v in audio.items()]
    with open(path, "wb") as f:
        f.write(gguf_file.gguf(keys, m.tensors))
    return path


def wav(hz, seconds=1.0, rate=16000):
    """A tone."""
    data = b"".join(struct.pack("<h", round(8000 * math.sin(2 * math.pi * hz * i / rate))) for i in range(int(seconds * rate)))
    return struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16, b"data", len(data)) + data
