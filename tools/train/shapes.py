"""Pictures of coloured shapes, and what is to be said of them. NumPy alone.

    python3 shapes.py --count 3 --seed 5 --out DIR         DIR/0.png .., and DIR/answers.txt
    python3 shapes.py --draw "red circle 0.3 0.5 0.2" "blue cross 0.7 0.5 0.2" --size 256 --out shapes.png         or .bmp, .ppm

A picture has one, two or three shapes, which do not overlap: of five kinds, in different ones of eight colours, many sizes and places, turned a little, on a
background of any brightness. What is said of two tells how they lie, and three are named from the left to the right.
"""

import argparse
import colorsys
import os
import struct
import zlib
from dataclasses import dataclass

import numpy as np

SHAPES = "circle square triangle cross ring".split()
# Hue in degrees, saturation, value: from, to
COLORS = {"red": ((-8, 6), (0.75, 1), (0.65, 1)), "orange": ((24, 36), (0.85, 1), (0.9, 1)), "yellow": ((51, 61), (0.75, 1), (0.85, 1)),
          "green": ((95, 145), (0.55, 1), (0.4, 0.85)), "blue": ((208, 242), (0.65, 1), (0.5, 1)), "purple": ((272, 298), (0.5, 0.95), (0.4, 0.8)),
          "black": ((0, 360), (0, 0.2), (0, 0.12)), "white": ((0, 360), (0, 0.05), (0.94, 1))}
TURN = 0.4                 # radians, to either side
NUMBERS = ["no", "one", "two", "three"]


@dataclass
class Thing:
    color: str
    shape: str
    x: float               # of the middle, in parts of the picture's shorter side, from its upper left corner
    y: float
    r: float               # of the circle around it
    turn: float            # radians
    rgb: tuple             # 0 to 1

    def __str__(self):
        return f"{'an' if self.color[0] in 'aeiou' else 'a'} {self.color} {self.shape}"


# --- drawing ----------------------------------------------------------------------------------------


def distance(shape, x, y, r):
    """How far a point lies outside of a shape around 0; below 0: inside."""
    if shape == "circle":
        return np.hypot(x, y) - r
    if shape == "ring":
        return np.abs(np.hypot(x, y) - 0.78 * r) - 0.22 * r
    if shape == "square":
        return np.maximum(np.abs(x), np.abs(y)) - 0.72 * r
    if shape == "cross":
        ax, ay = np.abs(x), np.abs(y)
        return np.minimum(np.maximum(ax - r, ay - 0.28 * r), np.maximum(ax - 0.28 * r, ay - r))
    return np.max([x * np.cos(a) + y * np.sin(a) for a in (np.pi / 2, np.pi * 7 / 6, np.pi * 11 / 6)], 0) - 0.5 * r         # triangle


def cover(thing, size, width, height):
    """The lines and columns around a thing, and which part of each pixel there it covers. size: pixels of the shorter side."""
    cx, cy, r = thing.x * size, thing.y * size, thing.r * size
    low = lambda m: max(0, int(m - r - 2))
    lines, columns = slice(low(cy), min(height, int(cy + r + 3))), slice(low(cx), min(width, int(cx + r + 3)))
    y, x = np.arange(lines.start, lines.stop)[:, None] + 0.5 - cy, np.arange(columns.start, columns.stop)[None] + 0.5 - cx
    c, s = np.cos(thing.turn), np.sin(thing.turn)
    return lines, columns, np.clip(0.5 - distance(thing.shape, c * x + s * y, c * y - s * x, r), 0, 1)


def background(g, width, height):
    """(height, width, 3), 0 to 1: plain, or from one shade to another, or with stripes."""
    light = g.choice([g.uniform(0.75, 1), g.uniform(0.25, 0.75), g.uniform(0, 0.25)], p=[0.6, 0.25, 0.15])
    tint = light + g.uniform(-0.1, 0.1, 3)
    b = np.broadcast_to(tint, (height, width, 3)).copy()
    kind = g.random()
    if kind < 0.5:
        return b
    a = g.uniform(0, 2 * np.pi)
    y, x = np.mgrid[0:height, 0:width] / min(width, height) - 0.5
    along = np.cos(a) * x + np.sin(a) * y
    wave = along if kind < 0.75 else 0.5 * np.sin(2 * np.pi * along * g.uniform(2, 9))
    return b + wave[:, :, None] * g.uniform(-0.08, 0.08, 3)


def paint(things, ground, size, noise, g):
    """Bytes (height, width, 3)."""
    b = ground
    for t in things:
        lines, columns, a = cover(t, size, b.shape[1], b.shape[0])
        b[lines, columns] += a[:, :, None] * (np.array(t.rgb) - b[lines, columns])
    if noise > 0:
        b = b + g.normal(size=b.shape) * noise
    return np.clip(np.round(b * 255), 0, 255).astype(np.uint8)


def shade(g, color):
    h, s, v = (g.uniform(*x) for x in COLORS[color])
    return colorsys.hsv_to_rgb(h / 360 % 1, s, v)


def place(g, n, right, bottom):
    """Middles and radii of n things that lie apart, in an order that can be seen; None: this try failed."""
    out = []
    for _ in range(n):
        r = g.uniform(*((0.2, 0.42), (0.17, 0.25), (0.15, 0.19))[n - 1])
        if 2 * r > min(right, bottom):
            return None
        x, y = g.uniform(r * 0.95, right - r * 0.95), g.uniform(r * 0.95, bottom - r * 0.95)
        if any(np.hypot(x - u, y - v) < r + q + 0.03 for u, v, q in out):
            return None
        out.append((x, y, r))
    if n == 2:
        dx, dy = abs(out[0][0] - out[1][0]), abs(out[0][1] - out[1][1])
        return out if abs(dx - dy) > 0.2 else None
    xs = sorted(x for x, _, _ in out)
    return out if all(b - a > 0.15 for a, b in zip(xs, xs[1:])) else None


def scene(g, right=1.0, bottom=1.0, ground=None):
    """Things whose colours differ from each other's and from the background ground (rgb)."""
    n = int(g.choice([1, 2, 3], p=[0.35, 0.45, 0.2]))
    places = None
    while places is None:
        places = place(g, n, right, bottom)
    things = []
    for x, y, r in places:
        while True:
            color = list(COLORS)[g.integers(len(COLORS))]
            rgb = shade(g, color)
            if all(t.color != color for t in things) and np.abs(np.array(rgb) - ground).max() > 0.3:
                break
        things.append(Thing(color, SHAPES[g.integers(len(SHAPES))], x, y, r, g.uniform(-TURN, TURN), rgb))
    return things


def draw(g, size=64, square=False):
    """A picture whose shorter or only side has `size` pixels, and its things."""
    right, bottom = (1, 1) if square or g.random() < 0.6 else (1, g.uniform(1, 1.5)) if g.random() < 0.5 else (g.uniform(1, 1.5), 1)
    width, height = round(right * size), round(bottom * size)
    ground = background(g, width, height)
    things = scene(g, width / size, height / size, ground.mean((0, 1)))
    return paint(things, ground, size, g.choice([0, g.uniform(0, 0.04)]), g), things


# --- what is said ------------------------------------------------------------------------------------


def answer(things):
    """What is in the picture."""
    if len(things) == 1:
        text = str(things[0])
    elif len(things) == 2:
        a, b = things
        beside = abs(a.x - b.x) > abs(a.y - b.y)
        a, b = sorted(things, key=lambda t: t.x if beside else t.y)
        text = f"{a} {'to the left of' if beside else 'above'} {b}"
    else:
        a, b, c = sorted(things, key=lambda t: t.x)
        text = f"{a}, {b} and {c}"
    return text[0].upper() + text[1:] + "."


def count(things):
    n = NUMBERS[len(things)]
    return f"{n[0].upper()}{n[1:]} {'shape' if len(things) == 1 else 'shapes'}."


def color_of(things, shape):
    """The answer to the question for a shape's colour, if there is one such shape."""
    some = [t for t in things if t.shape == shape]
    return f"The {shape} is {some[0].color}." if len(some) == 1 else f"There is no {shape}." if not some else None


# --- files -------------------------------------------------------------------------------------------


def write_png(path, b):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + row.tobytes() for row in b)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", b.shape[1], b.shape[0], 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows, 9)) +
                chunk(b"IEND", b""))


def write_ppm(path, b):
    with open(path, "wb") as f:
        f.write(b"P6 %d %d 255\n" % (b.shape[1], b.shape[0]) + b.tobytes())


def write_bmp(path, b):
    """24 bits for each pixel, from the bottom up, as every build of the programs reads it."""
    height, width = b.shape[:2]
    rows = b"".join(row[:, ::-1].tobytes() + bytes(-3 * width % 4) for row in b[::-1])
    with open(path, "wb") as f:
        f.write(b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + len(rows), 0, 54, 40, width, height, 1, 24, 0, len(rows), 2835, 2835, 0, 0) + rows)


WRITERS = {".png": write_png, ".ppm": write_ppm, ".bmp": write_bmp}


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--count", type=int, default=1)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--size", type=int, default=128)
    ap.add_argument("--draw", nargs="+", metavar='"COLOR SHAPE X Y RADIUS"', help="one picture of these things, on a light ground")
    ap.add_argument("--out", required=True, help="a folder; with --draw, a file")
    args = ap.parse_args()
    g = np.random.default_rng(args.seed)
    if args.draw:
        things = [Thing(w[0], w[1], *map(float, w[2:5]), g.uniform(-0.3, 0.3), shade(g, w[0])) for w in map(str.split, args.draw)]
        b = paint(things, np.full((args.size, args.size, 3), 0.94), args.size, 0, g)
        WRITERS[os.path.splitext(args.out)[1]](args.out, b)
        print(answer(things))
        return
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, "answers.txt"), "w") as f:
        for k in range(args.count):
            b, things = draw(g, args.size)
            write_png(os.path.join(args.out, f"{k}.png"), b)
            f.write(answer(things) + "\n")


if __name__ == "__main__":
    main()
