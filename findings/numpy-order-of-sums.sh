#!/bin/sh
# numpy adds float32 numbers in another order since 2.3: sum(), mean() and std() of the same array differ in their last bits between versions,
# on the same machine. Up to 2.2, an array is added in pieces of 8192 elements, each by halves, whose sums are added one after the other. Since 2.3
# all of it is added by halves. Arrays of at most 8192 elements, and of 16384, have the same sums; a digest of numbers that were scaled by std()
# changes with larger ones.
# Seen with numpy 2.2.6 and 2.3.0 of PyPI, Python 3.11, x86-64: 2.2.6 prints 358475360.0, 2.3.0 prints 358475392.0.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/sums.py" <<'END'
import numpy as np

def by_halves(x):  # 8 sums of every eighth element in each block of 128, then always neighbours
    s = x.reshape(-1, 16, 8)
    t = s[:, 0].copy()
    for i in range(1, 16):
        t += s[:, i]
    t = t.ravel()
    while t.size > 1:
        t = t[0::2] + t[1::2]
    return t[0]

x = (np.random.default_rng(0).normal(size=65536).astype(np.float32) * np.float32(74)) ** 2
pieces = np.float32(0)
for at in range(0, x.size, 8192):
    pieces = pieces + by_halves(x[at : at + 8192])
got = x.sum()
print("pieces" if got == pieces else "halves" if got == by_halves(x) else "other", float(got), pieces == by_halves(x), x[:8192].sum() == by_halves(x[:8192]))
END
ok=0
while read -r version want; do
    python3 -m venv "$tmp/$version"
    "$tmp/$version/bin/pip" -q --disable-pip-version-check install "numpy==$version"
    got=$("$tmp/$version/bin/python" "$tmp/sums.py")
    echo "numpy $version: $got"
    [ "$got" = "$want" ] || { echo "was: $want"; ok=1; }
done <<'END'
2.2.6 pieces 358475360.0 False True
2.3.0 halves 358475392.0 False True
END
exit $ok
