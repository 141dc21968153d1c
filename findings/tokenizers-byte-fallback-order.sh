#!/bin/sh
# BPE with byte_fallback, where only some bytes have tokens: the tokens of a text come in another order than its characters. A character without a
# token of its own or of its bytes waits, so that unknown ones can be fused; the bytes of the next character do not wait.
# Seen with tokenizers 0.23.3 (PyPI): of U+0416 (no bytes), U+00E9 (bytes) and a, the ids are those of the bytes, of <unk>, of a.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3 -m venv py
py/bin/pip -q --disable-pip-version-check install tokenizers==0.23.3 2>/dev/null
cat >run.py <<'PY'
import tokenizers
from tokenizers import Tokenizer, models
t = Tokenizer(models.BPE({"<unk>": 0, "a": 1, "<0xC3>": 2, "<0xA9>": 3}, [], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
tokens = t.encode("\u0416\u00e9a").tokens
print("tokenizers", tokenizers.__version__, tokens)
raise SystemExit(tokens != ["<0xC3>", "<0xA9>", "<unk>", "a"])
PY
py/bin/python run.py
