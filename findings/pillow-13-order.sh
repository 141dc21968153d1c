#!/bin/sh
# Pillow 13 resizes a picture whose height shrinks much more than its width down the columns first, and then along the lines. Before, it was always
# the other order. Both steps round to bytes, so that such pictures differ from those of older versions; of models too, because transformers'
# processors use the Pillow that is installed. https://github.com/python-pillow/Pillow/pull/9549
# Seen with Pillow 12.3.0 and 13.0.0 of PyPI, Python 3.11, x86-64.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/order.py" <<'END'
from PIL import Image

for (w, h), (W, H) in (((100, 300), (224, 224)), ((1080, 1920), (384, 384)), ((480, 640), (224, 224))):
    a = Image.frombytes("L", (w, h), bytes((x * x * 7 + y * y * 13 + x * y * 5) % 251 for y in range(h) for x in range(w)))
    got = a.resize((W, H), Image.BICUBIC).tobytes()
    lines, columns = (a.resize(s, Image.BICUBIC).resize((W, H), Image.BICUBIC).tobytes() for s in ((W, h), (w, H)))
    print("lines" if got == lines else "columns" if got == columns else "other", sum(a != b for a, b in zip(lines, columns)), end=" " if h != 640 else "\n")
END
ok=0
while read -r version want; do
    python3 -m venv "$tmp/$version"
    "$tmp/$version/bin/pip" -q --disable-pip-version-check install "Pillow==$version"
    got=$("$tmp/$version/bin/python" "$tmp/order.py")
    echo "Pillow $version: $got"
    [ "$got" = "$want" ] || { echo "was: $want"; ok=1; }
done <<'END'
12.3.0 lines 14055 lines 23210 lines 9395
13.0.0 columns 14055 columns 23210 lines 9395
END
exit $ok
