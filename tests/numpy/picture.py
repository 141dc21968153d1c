#!/usr/bin/env python3
"""What models that see read of pictures: seeded pictures and rules, to the byte as numpy computes it; and pixels that another program recorded,
within 1e-6.

    picture.py --dir FOLDER PICTURE [GOLDEN]

PICTURE is the program test-picture. GOLDEN is a folder of recorded pixels that is no part of the repository. Exit code 0, 1; 77 if a folder is
given and is not there.
"""
import argparse
import glob
import io
import lzma
import math
import os
import subprocess
import sys

import numpy as np

import gguf
import today

f4 = np.float32
STRETCH, PAD, CROP, FOLLOW, FOLLOW_PAD, LONGEST, AREA, ASPECT, FILL = range(9)
NO_TILES, TILES_FIT, TILES_LONGEST, TILES_SHAPE = range(4)
LINEAR, CUBIC, PIL_LINEAR, PIL_CUBIC, PIL_LANCZOS = range(5)
FITS = ("stretch", "pad", "crop", "follow", "follow_pad", "longest", "area", "aspect", "fill", "steps", "patches", "within")
RESIZES = ("linear", "cubic", "pil_linear", "pil_cubic", "pil_lanczos")


# --- resizing ------------------------------------------------------------------------------------


def linear_places(n_from, n_to):
    """Corners on corners."""
    p = np.arange(n_to, dtype=f4) * (f4(n_from - 1) / f4(n_to - 1) if n_to > 1 else f4(0))
    first = np.floor(p).astype(int).clip(0, n_from - 1)
    return first, np.minimum(first + 1, n_from - 1), p - first.astype(f4)


def linear(a, width, height):
    top, bottom, down = linear_places(a.shape[0], height)
    left, right, along = linear_places(a.shape[1], width)
    a, down, along = a.astype(f4), down.reshape(-1, 1, 1), along.reshape(1, -1, 1)
    mix = lambda x, y, share: x + (y - x) * share
    rows = [mix(a[i][:, left], a[i][:, right], along) for i in (top, bottom)]
    return mix(*rows, down).astype(np.uint8)


def cubic_axis(a, n_to, axis):
    """Lagrange's polynomial through four points of an axis; products with thirds and sixths, and their sums, in double."""
    n_from = a.shape[axis]
    p = (f4(n_from) / f4(n_to)) * np.arange(n_to, dtype=f4)
    i = np.floor(p).astype(int)
    shape = [1, 1, 1]
    shape[axis] = -1
    d = (p - i.astype(f4)).reshape(shape)
    before, at, after, behind = (np.take(a, (i + k).clip(0, n_from - 1), axis) for k in (-1, 0, 1, 2))
    third, sixth = 1 / 3, 1 / 6
    b, n, m = before - at, after - at, behind - at
    bd, nd, md = (x.astype(np.float64) for x in (b, n, m))
    one = (-third * bd + nd - sixth * md).astype(f4)
    two = f4(0.5) * b + f4(0.5) * n
    three = (-sixth * bd - 0.5 * nd + sixth * md).astype(f4)
    return at + one * d + two * d * d + three * d * d * d


def cubic(a, width, height):
    x = cubic_axis(cubic_axis(a.astype(f4), width, 1), height, 0)
    return np.floor(x + f4(0.5)).clip(0, 255).astype(np.uint8)


def sinc(x):
    return 1.0 if x == 0 else math.sin(x * math.pi) / (x * math.pi)


def keys(x, a=-0.5):
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


FILTERS = {
    PIL_LINEAR: (1.0, lambda x: max(0.0, 1 - abs(x))),
    PIL_CUBIC: (2.0, keys),
    PIL_LANCZOS: (3.0, lambda x: sinc(x) * sinc(x / 3) if -3 <= x < 3 else 0.0),
}


def filter_weights(n_from, n_to, how):
    """Whole numbers of 22 bits behind the point, [n_to, n_from]."""
    reach, f = FILTERS[how]
    step = n_from / n_to
    wide = max(step, 1.0)
    w = np.zeros((n_to, n_from), np.int64)
    for i in range(n_to):
        middle = (i + 0.5) * step
        begin, end = max(int(middle - reach * wide + 0.5), 0), min(int(middle + reach * wide + 0.5), n_from)
        shares = [f((k - middle + 0.5) * (1 / wide)) for k in range(begin, end)]
        total = sum(shares)
        for k, share in zip(range(begin, end), shares):
            share = share / total if total else share
            w[i, k] = int(share * (1 << 22) + (0.5 if share >= 0 else -0.5))
    return w


def filtered(a, width, height, how):
    for axis, n_to in ((1, width), (0, height)):
        if a.shape[axis] == n_to:
            continue
        sums = np.tensordot(filter_weights(a.shape[axis], n_to, how), a.astype(np.int64), (1, axis))
        a = np.moveaxis(((sums + (1 << 21)) >> 22).clip(0, 255).astype(np.uint8), 0, axis)
    return a


def resized(a, width, height, how):
    if how == LINEAR:
        return linear(a, width, height)
    return cubic(a, width, height) if how == CUBIC else filtered(a, width, height, how)


# --- sizes ---------------------------------------------------------------------------------------


def followed(rule, width, height):
    side = rule["patch"] * rule["block"]
    if rule["fit"] == FOLLOW:
        w, h = (round(x / side) * side for x in (width, height))
    else:
        w, h = (max(side, math.floor(x / side + 0.5) * side) for x in (width, height))
    if w * h > rule["most"]:
        by = math.sqrt(width * height / rule["most"])
        w, h = (max(side, math.floor(x / by / side) * side) for x in (width, height))
    elif w * h < rule["least"]:
        by = math.sqrt(rule["least"] / (width * height))
        w, h = (math.ceil(x * by / side) * side for x in (width, height))
    w, h = max(w, side), max(h, side)
    if w * h > rule["most"]: # thin pictures, and enlarged ones: the longer side gives way
        longer = max(side, math.floor(rule["most"] / min(w, h) / side) * side)
        w, h = (longer, h) if w > h else (w, longer)
    return w, h


def area_of(rule, width, height):
    """About size * size pixels in the picture's shape; sides of whole blocks."""
    side, shape = rule["patch"] * rule["block"], width / height
    h = math.floor(rule["size"] / math.sqrt(shape))
    return tuple(max(side, round(x / side) * side) for x in (math.floor(h * shape), h))


def grid_of(rule, width, height):
    """Tiles across and down; None: there are none."""
    by, least, most, size = *rule["tiles"][:3], rule["size"]
    if by == TILES_LONGEST:
        return tuple(-(-x * most // (max(width, height) * size)) for x in (width, height))
    if by == TILES_SHAPE:
        n = min(most, math.ceil(width * height / size**2))
        grids = [(m, k // m) for k in (n - 1, n, n + 1) if 1 < k <= most for m in range(1, k + 1) if k % m == 0]
        return min(grids, key=lambda g: abs(math.log(width / height) - math.log(g[0] ** 2 / (g[0] * g[1])))) if n > 1 else None
    if by == NO_TILES or max(width, height) <= size:
        return None

    def merit(g):
        scale = min(f4(g[0] * size) / f4(width), f4(g[1] * size) / f4(height))
        largest = min(int(f4(width) * scale) * int(f4(height) * scale), width * height)
        return -largest, g[0] * g[1] * size**2 - largest
    return min([(x, y) for x in range(1, most + 1) for y in range(1, most + 1) if least <= x * y <= most], key=merit)


def tiles_of(rule, a):
    """[across * down, h, w, 3]"""
    height, width = a.shape[:2]
    grid = grid_of(rule, width, height)
    if not grid:
        return np.zeros((0, 0, 0, 3), np.uint8), (0, 0)
    w = h = rule["size"]
    if rule["tiles"][0] == TILES_SHAPE:
        part = [max(1, round(x / k)) for x, k in zip((width, height), grid)]
        if max(part) > 200 * min(part):
            return None
        w, h = area_of(rule, *part)
    fit, how, color = rule["tiles"][3], rule["tiles"][4], rule["tiles"][5:]
    whole = {**rule, "fit": STRETCH, "resize": how}
    all_w, all_h = w * grid[0], h * grid[1]
    if fit == PAD:
        scale = min(f4(all_w) / f4(width), f4(all_h) / f4(height))
        inner = resized(a, min(all_w, math.ceil(f4(width) * scale)), min(all_h, math.ceil(f4(height) * scale)), whole["resize"])
        top, left = (all_h - inner.shape[0]) // 2, (all_w - inner.shape[1]) // 2
        both = np.tile(np.array(color, np.uint8), (all_h, all_w, 1))
        both[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
    else:
        both = resized(a, all_w, all_h, how)
    return both.reshape(grid[1], h, grid[0], w, 3).transpose(0, 2, 1, 3, 4).reshape(-1, h, w, 3), grid


def seen(rule, a):
    """None: the rule has no size for this shape."""
    height, width = a.shape[:2]
    fit, size, how = rule["fit"], rule["size"], rule["resize"]
    if fit in (FOLLOW, FOLLOW_PAD, AREA, ASPECT, FILL) and max(width, height) > 200 * min(width, height):
        return None
    if fit == AREA:
        w, h = area_of(rule, width, height)
    elif fit in (FOLLOW, FOLLOW_PAD):
        w, h = followed(rule, width, height)
    elif fit == ASPECT:
        side = rule["patch"] * rule["block"]
        most, shape, n = rule["most"] // side**2, width / height, (width / side, height / side)
        if n[0] * n[1] > most:
            down = math.sqrt(most / shape)
            n = (down * shape, down)
        sizes = [(x, y) for y in (math.floor(n[1]), math.ceil(n[1])) for x in (math.floor(n[0]), math.ceil(n[0])) if x >= 1 and y >= 1 and x * y <= most]
        sizes = sizes or [tuple(min(max(1, round(x)), most) for x in n)]
        w, h = (x * side for x in min(sizes, key=lambda s: (abs(s[1] / s[0] - height / width), -s[0] * s[1])))
    elif fit == FILL:
        side = rule["patch"] * rule["block"]
        by, longest = math.sqrt(rule["most"] / (width * height)), rule["most"] // side**2 * side
        w, h = (math.floor(x * by / side) * side for x in (width, height))
        w, h = (min(width // height * side, longest), side) if h == 0 else (side, min(height // width * side, longest)) if w == 0 else (w, h)
    elif fit == LONGEST:
        side, w, h = rule["patch"] * rule["block"], width, height
        if max(w, h) > size:
            ratio = max(w / size, h / size)
            w, h = (max(1, math.floor(x / ratio)) for x in (w, h))
        w, h = (((x - 1) // side + 1) * side for x in (w, h))
    else:
        w = h = size
    if fit in (PAD, FOLLOW_PAD):
        scale = min(f4(w) / f4(width), f4(h) / f4(height))
        inner = resized(a, min(w, math.ceil(f4(width) * scale)), min(h, math.ceil(f4(height) * scale)), how)
        top, left = (h - inner.shape[0]) // 2, (w - inner.shape[1]) // 2
        out = np.tile(np.array(rule["color"], np.uint8), (h, w, 1))
        out[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
        return out
    if fit == CROP:
        long = int(size * max(width, height) / min(width, height))
        w, h = (size, long) if width <= height else (long, size)
        top, left = (h - size) // 2, (w - size) // 2
        return resized(a, w, h, how)[top : top + size, left : left + size]
    return resized(a, w, h, how)


# --- rows ----------------------------------------------------------------------------------------


def rows_of(rule, pixels):
    patch, block, first, side = (rule[k] for k in ("patch", "block", "first", "table"))
    ny, nx = pixels.shape[0] // patch, pixels.shape[1] // patch
    grid = pixels[: ny * patch, : nx * patch].reshape(ny, patch, nx, patch, 3).transpose(0, 2, 4, 1, 3)
    order = np.array([(by + y, bx + x) for by in range(0, ny, block) for bx in range(0, nx, block) for y in range(block) for x in range(block)])
    blank = lambda x: np.concatenate([np.zeros((first,) + x.shape[1:], x.dtype), x])
    rows = blank(grid[order[:, 0], order[:, 1]].reshape(len(order), -1))
    entries = shares = np.zeros((0, 4))
    if side:
        at = [order[:, k] * (side - 1) / max(n - 1, 1) for k, n in ((0, ny), (1, nx))]
        low = [x.astype(int) for x in at]
        high = [np.minimum(x + 1, side - 1) for x in low]
        fy, fx = (x - i for x, i in zip(at, low))
        entries = blank(np.stack([y * side + x for y in (low[0], high[0]) for x in (low[1], high[1])], 1))
        shares = blank(np.stack([v * u for v in (1 - fy, fy) for u in (1 - fx, fx)], 1))
        if rule["cells"]:
            cell = order[:, 0] * side // ny * side + order[:, 1] * side // nx
            entries, shares = blank(np.tile(cell[:, None], (1, 4))), blank(np.tile([[1.0, 0, 0, 0]], (len(order), 1)))
    return rows, blank(order), entries, shares, (nx, ny)


class Runner:
    def __init__(self, a):
        self.a, self.failed = a, 0
        self.at = lambda name: os.path.join(a.dir, f"picture-{os.getpid()}.{name}")

    def prepare(self, rule, path):
        """None and a message, or the steps of a picture."""
        numbers = [rule[k] for k in ("patch", "size", "block", "fit", "resize", "least", "most")]
        numbers += [*rule["color"], *(repr(float(x)) for x in (*rule["mean"], *rule["std"])), rule["first"], rule["table"], rule["cells"], *rule["tiles"]]
        done = subprocess.run([self.a.picture, ",".join(map(str, numbers)), path, self.at("out")], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr.strip()
        width, height, nx, ny, n, across, down, tile_width, tile_height = map(int, done.stdout.split())
        read = lambda name, kind, *shape: np.fromfile(self.at("out." + name), kind).reshape(shape)
        n_table = n if rule["table"] else 0
        return {"seen": read("seen", np.uint8, height, width, 3), "pixels": read("pixels", f4, height, width, 3),
                "rows": read("rows", f4, n, 3 * rule["patch"] ** 2), "places": read("places", np.int32, 2, n).T, "entry": read("entry", np.int32, n_table, 4),
                "share": read("share", f4, n_table, 4), "grid": (nx, ny),
                "tiles": read("tiles", np.uint8, across * down, tile_height, tile_width, 3), "tile grid": (across, down)}, done.stderr.strip()

    def tell(self, name, faults):
        self.failed += bool(faults)
        print(f"{name:110} {', '.join(faults) + '  FAILED' if faults else 'ok'}")

    def clean(self):
        for path in glob.glob(glob.escape(self.at("")) + "*"):
            os.unlink(path)


def differences(rule, got, want):
    """The steps that differ, each from the step before as the program computed it."""
    pixels = (got["pixels"].astype(float) * rule["std"] + rule["mean"]) * 255
    rows, places, entries, shares, grid = rows_of(rule, got["pixels"])
    off = lambda a, b: np.abs(a.astype(float) - b).max(initial=0) if a.shape == b.shape else np.inf
    found = {"seen": off(got["seen"], want) > 0, "pixels": off(pixels, got["seen"].astype(float)) > 1e-3, "rows": off(got["rows"], rows) > 0,
             "places": off(got["places"], places) > 0, "entry": off(got["entry"], entries) > 0, "share": off(got["share"], shares) > 1e-6,
             "grid": got["grid"] != grid}
    return [f"{k}: {off(got['seen'], want)}" if k == "seen" else k for k, wrong in found.items() if wrong]


EDGES = [(1, 1), (1, 2), (2, 1), (1, 50), (50, 1), (1, 199), (3, 1000), (1000, 1), (1, 10000), (28, 28), (56, 56)]


def random_tiles(g, fit, size):
    """by, least, most, fit, resize, color"""
    by = TILES_SHAPE if fit == AREA else int(g.choice([TILES_FIT, TILES_LONGEST]))
    if g.integers(2) or fit not in (STRETCH, PAD, CROP, AREA):
        by = NO_TILES
    most = int(g.integers(1, 4 * size + 1)) if by == TILES_LONGEST else int(g.integers(1, 13))
    return (by, int(g.integers(1, most + 1)) if by == TILES_FIT else 1, most, int(g.integers(0, 2)), int(g.integers(0, 5)), *g.integers(0, 256, 3).tolist())


def random_rule(g):
    patch, block, fit = int(g.integers(1, 17)), int(g.choice([1, 1, 2, 3])), int(g.integers(0, 9))
    side = patch * block
    size = side * int(g.integers(1, 9))
    if block == 1 and g.integers(3) == 0 or fit == AREA:
        size += int(g.integers(0, patch))
    least = side * side * int(g.integers(1, 9))
    return {"patch": patch, "block": block, "fit": fit, "resize": int(g.integers(0, 5)), "size": size, "least": least, "most": least * int(g.integers(1, 20)),
            "color": g.integers(0, 256, 3).tolist(), "mean": g.uniform(0, 1, 3), "std": g.uniform(0.1, 1, 3), "first": int(g.choice([0, 0, 1, 3])),
            "table": int(g.choice([0, 1, 2, 7, 12])), "cells": int(g.integers(0, 2)), "tiles": random_tiles(g, fit, size)}


def test_seeded(r, seed):
    g = np.random.default_rng(seed)
    rule = random_rule(g)
    width, height = (int(x) for x in (EDGES[int(g.integers(len(EDGES)))] if g.integers(5) == 0 else 2.0 ** g.uniform(0, 8.5, 2)))
    if rule["fit"] == CROP and max(width, height) > 200 * min(width, height): # numpy would compute all that is cut off
        rule["fit"] = STRETCH
    a = g.integers(0, 256, (height, width, 3), dtype=np.uint8)
    if g.integers(2): # edges of black and white, where sums leave what a byte holds
        a = (a // 128 * 255).astype(np.uint8)
    with open(r.at("ppm"), "wb") as f:
        f.write(b"P6 %d %d 255\n" % (width, height) + a.tobytes())
    name = (f"{seed}: {width} x {height}, {FITS[rule['fit']]}, {RESIZES[rule['resize']]}, size {rule['size']}, patch {rule['patch']}, block {rule['block']}, "
            f"{rule['least']} to {rule['most']}, table {rule['table']}, tiles {rule['tiles'][:5]}")
    want, (got, words) = seen(rule, a), r.prepare(rule, r.at("ppm"))
    tiles = tiles_of(rule, a)
    if want is None or tiles is None:
        want = None
    elif got is not None and (got["tile grid"] != tiles[1] or not np.array_equal(got["tiles"], tiles[0])):
        r.tell(name, [f"tiles: {got['tile grid']}, {got['tiles'].shape}, not {tiles[1]}, {tiles[0].shape}"])
        return
    if want is None or got is None:
        r.tell(name, [] if want is None and "no side is more than 200 times" in words else [words or "no error"])
    else:
        r.tell(name, differences(rule, got, want))


def recorded(r, golden):
    """Pictures, the rules of their models, and recorded pixels."""
    for path in sorted(glob.glob(os.path.join(golden, "*.pixels.npy.xz"))):
        model, picture = os.path.basename(path).split(".")[:2]
        with lzma.open(os.path.join(golden, model + ".mmproj.gguf.xz")) as f, open(r.at("gguf"), "wb") as to:
            to.write(f.read())
        k = gguf.read(r.at("gguf"))[0]
        follows = k["clip.projector_type"] != "mlp"
        patch = k["clip.vision.patch_size"]
        rule = {"patch": patch, "size": k["clip.vision.image_size"], "block": 2 if follows else 1, "fit": FOLLOW_PAD if follows else PAD,
                "resize": LINEAR if follows else CUBIC, "least": 32 * patch**2, "most": 16384 * patch**2, "color": (0, 0, 0) if follows else (122, 116, 104),
                "mean": k["clip.vision.image_mean"], "std": k["clip.vision.image_std"], "first": 0, "table": 0, "cells": 0, "tiles": (0,) * 8}
        with lzma.open(path) as f:
            yield f"{model}, {picture}", rule, os.path.join(golden, picture + ".png"), np.load(io.BytesIO(f.read()))


def test_recorded(r, golden):
    for name, rule, path, want in recorded(r, golden):
        got, words = r.prepare(rule, path)
        if got is None:
            r.tell(name, [words])
            continue
        off = np.abs(got["pixels"] - want).max() if got["pixels"].shape == want.shape else np.inf
        r.tell(f"{name}: {off:.1e}", [] if off <= 1e-6 else [f"shape {got['pixels'].shape}, recorded {want.shape}"])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cli")
    p.add_argument("--dir", required=True)
    p.add_argument("picture")
    p.add_argument("golden", nargs="?")
    a = p.parse_args()
    if a.golden is not None and not glob.glob(os.path.join(a.golden, "*.pixels.npy.xz")):
        print("skipped: recorded pixels: not part of the repository, and found in no folder GGL_SHARED")
        return 77
    r = Runner(a)
    try:
        if a.golden is not None:
            test_recorded(r, a.golden)
        else:
            for seed in today.sample("pictures", range(1000), 60):
                test_seeded(r, seed)
    finally:
        r.clean()
    return int(r.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
