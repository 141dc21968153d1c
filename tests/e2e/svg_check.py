#!/usr/bin/env python3
"""Checks pictures: svg_check.py FILE.svg ..., or svg_check.py --random PROGRAM (svg_draw.c)

Every picture is well-formed, has colors for light and dark, and has all its parts within its edges; no two texts
overlap, and no text crosses the border of a box. A picture of points, bars and roofs (class "panel") has its points and
bars within the axes and not above the roofs, and its legend lists exactly the series that are drawn.

Widths of text are those of DejaVu Sans, the widest of the usual fonts. The subset of SVG is what this project's
pictures use: text, rect, circle, and path with M, L, H, V and C; transforms translate and rotate(-90); CSS of classes."""
import glob
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET

NS = "{http://www.w3.org/2000/svg}"
# Thousandths of an em, from the space to the tilde.
WIDTHS = [318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636,
          636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863,
          748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635,
          615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
          337, 636, 838]
BOLD = 1.11  # DejaVu Sans Bold, on average
MONO = 602
SLACK = 1.0  # pixels that rounding may cost


class Problem(Exception):
    pass


def text_width(s, size, bold, mono):
    total = 0
    for c in s:
        n = ord(c)
        total += MONO if mono and n < 0x2E80 else WIDTHS[n - 32] if 32 <= n < 127 else 1000 if n >= 0x2E80 else 838
    return total / 1000 * size * (BOLD if bold and not mono else 1)


def read_style(root):
    """Returns {selector: {property: value}} of the rules outside @media, and the whole text."""
    css = "".join(e.text or "" for e in root.iter(NS + "style"))
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.S)
    base = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", css)
    rules = {}
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", base):
        for selector in selectors.split(","):
            rule = rules.setdefault(selector.strip(), {})
            for item in body.split(";"):
                if ":" in item:
                    k, v = item.split(":", 1)
                    rule[k.strip()] = v.strip()
    return rules, css


class Picture:
    def __init__(self, path):
        self.root = ET.parse(path).getroot()
        self.rules, self.css = read_style(self.root)
        box = [float(x) for x in self.root.get("viewBox").split()]
        self.w, self.h = box[2], box[3]
        self.texts, self.shapes = [], []  # (box, what); (box, element, parents)
        self.walk(self.root, (0.0, 0.0, False), {}, [])

    def look(self, e, inherited):
        """Returns the properties of an element: inherited, attributes, rules of its tag and classes, style."""
        p = dict(inherited)
        for k in ("font-size", "font-weight", "text-anchor", "font-family", "display"):
            if e.get(k):
                p[k] = e.get(k)
        for selector in [e.tag.replace(NS, "")] + ["." + c for c in (e.get("class") or "").split()]:
            p.update(self.rules.get(selector, {}))
        for item in (e.get("style") or "").split(";"):
            if ":" in item:
                k, v = item.split(":", 1)
                p[k.strip()] = v.strip()
        return p

    def walk(self, e, at, inherited, parents):
        tag = e.tag.replace(NS, "")
        if tag in ("defs", "style", "title", "marker"):
            return
        p = self.look(e, inherited)
        x, y, turned = at
        transform = e.get("transform") or ""
        m = re.match(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)", transform)
        if m:
            x, y = x + float(m[1]), y + float(m[2])
        turned = turned or "rotate(-90)" in transform
        at = (x, y, turned)
        if tag == "text":
            self.add_text(e, p, at)
        elif tag in ("rect", "circle", "path") and "%" not in (e.get("width") or ""):
            box = self.shape_box(e, tag)
            if box:
                self.shapes.append(((box[0] + x, box[1] + y, box[2] + x, box[3] + y), e, parents))
        for child in e:
            self.walk(child, at, p, parents + [e])

    def add_text(self, e, p, at):
        s = re.sub(r"\s+", " ", "".join(e.itertext())).strip()
        if not s:
            return
        size = float(p.get("font-size", "16").replace("px", ""))
        bold = p.get("font-weight", "") in ("bold", "600", "700")
        w = text_width(s, size, bold, "Mono" in p.get("font-family", ""))
        x, y = float(e.get("x") or 0), float(e.get("y") or 0)
        shift = {"start": 0, "middle": -w / 2, "end": -w}[p.get("text-anchor", "start")]
        if at[2]:  # reads upwards
            box = (at[0] + y - 0.75 * size, at[1] - x - shift - w, at[0] + y + 0.2 * size, at[1] - x - shift)
        else:
            box = (at[0] + x + shift, at[1] + y - 0.75 * size, at[0] + x + shift + w, at[1] + y + 0.2 * size)
        self.texts.append((box, s))

    @staticmethod
    def points(d):
        """Returns the points of a path; of a curve, also its controls, which enclose it."""
        out, x, y, i = [], 0.0, 0.0, 0
        tokens = re.findall(r"[A-Za-z]|-?[\d.]+(?:e-?\d+)?", d)
        command = None
        while i < len(tokens):
            if tokens[i].isalpha():
                command = tokens[i]
                i += 1
                continue
            if command == "H":
                x = float(tokens[i])
                i += 1
            elif command == "V":
                y = float(tokens[i])
                i += 1
            elif command in ("M", "L", "C"):
                x, y = float(tokens[i]), float(tokens[i + 1])
                i += 2
            else:
                raise Problem(f"path with command {command!r}")
            out.append((x, y))
        return out

    def shape_box(self, e, tag):
        f = lambda k: float(e.get(k) or 0)
        if tag == "rect":
            return f("x"), f("y"), f("x") + f("width"), f("y") + f("height")
        if tag == "circle":
            return f("cx") - f("r"), f("cy") - f("r"), f("cx") + f("r"), f("cy") + f("r")
        points = self.points(e.get("d"))
        return (min(p[0] for p in points), min(p[1] for p in points), max(p[0] for p in points),
                max(p[1] for p in points)) if points else None


def overlap(a, b):
    return (min(a[2], b[2]) - max(a[0], b[0]) > SLACK) and (min(a[3], b[3]) - max(a[1], b[1]) > SLACK)


def within(a, b):
    return a[0] >= b[0] - SLACK and a[1] >= b[1] - SLACK and a[2] <= b[2] + SLACK and a[3] <= b[3] + SLACK


def check_texts(p):
    order = sorted(p.texts)
    for i, (a, s) in enumerate(order):
        for b, t in order[i + 1:]:
            if b[0] > a[2]:
                break
            if overlap(a, b):
                raise Problem(f"texts overlap: {s!r} and {t!r} at {a} and {b}")
    boxes = [(b, e) for b, e, _ in p.shapes if e.tag == NS + "rect"]
    for a, s in p.texts:
        for b, e in boxes:
            if overlap(a, b) and not within(a, b):
                raise Problem(f"the text {s!r} at {a} crosses the border of a box at {b}")


def check_edges(p):
    for box, what in p.texts + [(b, ET.tostring(e).decode()[:120]) for b, e, _ in p.shapes]:
        if not all(math.isfinite(v) for v in box):
            raise Problem(f"a place is no number: {what}")
        if not within(box, (0, 0, p.w, p.h)):
            raise Problem(f"outside the picture ({p.w} x {p.h}): {what!r} at {box}")


def classes(e):
    return (e.get("class") or "").split()


def roof_at(path, x):
    """Returns the y of a roof, a path of straight lines, at x; None: it does not reach there."""
    points = Picture.points(path.get("d"))
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if x0 - 0.01 <= x <= x1 + 0.01 and x1 > x0:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return None


def check_panels(p):
    """Points of a panel are within its axes and below their roof; series and legend are the same."""
    drawn, legend = set(), set()
    for e in p.root.iter():
        if e.get("data-series"):
            (legend if "legend" in classes(e) else drawn).add(e.get("data-series"))
    for e in p.root.iter(NS + "g"):
        if "panel" not in classes(e):
            continue
        axes = [r for r in e.iter(NS + "rect") if "axes" in classes(r)]
        if len(axes) != 1:
            raise Problem("a panel without axes")
        box = Picture.shape_box(p, axes[0], "rect")
        roofs = {r.get("data-roof"): r for r in e.iter(NS + "path") if r.get("data-roof")}
        for c in e.iter(NS + "circle"):
            if "point" not in classes(c):
                continue
            x, y = float(c.get("cx")), float(c.get("cy"))
            if not within((x, y, x, y), box):
                raise Problem(f"a point outside the axes {box}: {x}, {y}")
            roof = roofs.get(c.get("data-under"))
            top = roof_at(roof, x) if roof is not None else None
            if top is not None and y < top - SLACK:
                raise Problem(f"a point above its roof by {top - y:.1f} pixels: {x}, {y}, {ET.tostring(c)}")
            if c.get("data-under") and (roof is None or top is None):
                raise Problem(f"a point without its roof: {ET.tostring(c)}")
        for c in e.iter(NS + "rect"):
            if "bar" in classes(c):
                if not within(Picture.shape_box(p, c, "rect"), box):
                    raise Problem(f"a bar outside the axes {box}: {ET.tostring(c)}")
        for c in e.iter(NS + "path"):
            if "line" in classes(c):
                if not within(Picture.shape_box(p, c, "path"), box):
                    raise Problem(f"a line outside the axes {box}: {c.get('d')}")
    if drawn != legend:
        raise Problem(f"the legend lists {sorted(map(str, legend))}, drawn are {sorted(map(str, drawn))}")


def check(path):
    p = Picture(path)
    if "prefers-color-scheme" not in p.css or "dark" not in p.css:
        raise Problem("there are no colors for the dark")
    check_edges(p)
    check_texts(p)
    check_panels(p)


HEAD = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"><style>@media(prefers-color-scheme:dark){}</style>'
WRONG = {
    "overlap": '<text x="10" y="50">one</text><text x="14" y="52">two</text>',
    "crosses the border": '<rect x="30" y="0" width="60" height="60"/><text x="20" y="50">text</text>',
    "outside the picture": '<text x="90" y="50">text</text>',
    "outside the axes": '<g class="panel"><rect class="axes" x="10" y="10" width="20" height="20"/>'
                        '<circle class="point" data-series="0" cx="50" cy="20" r="1"/></g>',
    "above its roof": '<g class="panel"><rect class="axes" x="0" y="0" width="90" height="90"/><path data-roof="a" d="M0 50 H90"/>'
                      '<circle class="point" data-under="a" cx="50" cy="20" r="1"/></g>',
    "a bar outside": '<g class="panel"><rect class="axes" x="10" y="10" width="20" height="20"/>'
                     '<rect class="bar" data-series="0" x="20" y="20" width="20" height="2"/></g>',
    "the legend lists": '<g class="legend" data-series="1"/>',
    "no number": '<circle cx="nan" cy="5" r="1"/>',
}


def self_test(folder):
    """Each fault is found."""
    for words, body in WRONG.items():
        path = os.path.join(folder, "wrong.svg")
        with open(path, "w", encoding="utf-8") as f:
            f.write(HEAD + body + "</svg>")
        try:
            check(path)
        except Problem as e:
            if words in str(e):
                continue
            words += f" ({e})"
        sys.exit(f"svg_check.py does not find: {words}")


def random_pictures(program, folder):
    self_test(folder)
    os.remove(os.path.join(folder, "wrong.svg"))
    seed = os.environ.get("GGL_TEST_SEED") or str(int(time.time()) // 86400)
    print(f"pictures are chosen by GGL_TEST_SEED={seed}")
    subprocess.run([program, seed, folder], check=True)
    return sorted(glob.glob(os.path.join(folder, "*.svg")))


def main():
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        paths = sys.argv[1:]
        if paths[:1] == ["--random"]:
            paths = random_pictures(paths[1], folder)
        for path in paths:
            try:
                check(path)
            except (Problem, ET.ParseError) as e:
                print(f"{path}: {e}", file=sys.stderr)
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
