#!/bin/sh
# \w means three things in one library. In a pattern of Split (Oniguruma) \w has superscripts and fractions of Latin-1, and [\w] does not have them. The step
# Whitespace, documented as the pattern \w+|[^\w\s]+, has neither, but U+200C and U+200D, which divide words in Split: the two cut Persian and emoji otherwise.
# Seen with tokenizers 0.23.3 (PyPI): the lines that the script compares.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3 -m venv py
py/bin/pip -q --disable-pip-version-check install tokenizers==0.23.3 2>/dev/null
cat >run.py <<'PY'
import tokenizers
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split, Whitespace
def cut(step, text):
    return [piece for piece, _ in step.pre_tokenize_str(text)]
print("tokenizers", tokenizers.__version__)
got = []
for text in ("m\u00b2", "\u0645\u06cc\u200c\u0634\u0648\u062f"):
    got.append([cut(Split(Regex(r"\w+"), "isolated"), text), cut(Split(Regex(r"[\w]+"), "isolated"), text), cut(Whitespace(), text)])
    print(ascii(text), *("%s: %s" % (name, ascii(x)) for name, x in zip((r"\w+", r"[\w]+", "Whitespace"), got[-1])))
n = [[len(x) for x in row] for row in got]
raise SystemExit(n != [[1, 2, 2], [3, 3, 1]])
PY
py/bin/python run.py
