#!/bin/sh
# Added tokens that a tokenizer's normalizer makes alike: the library `tokenizers` does not refuse them. Which of the ids a text gets differs from one
# load of the same file to the next, as the order of a hash table decides. A token of which the normalizer leaves nothing is, beside another one, found
# where the text has no trace of it.
# Seen with tokenizers 0.23.3 (PyPI): 40 loads of one file, with the tokens <TOK>, <Tok> and <tok> and lower case, give several ids.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3 -m venv py
py/bin/pip -q --disable-pip-version-check install tokenizers==0.23.3 2>/dev/null
cat >run.py <<'PY'
import tokenizers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
t = Tokenizer(models.WordLevel({"?": 0, "a": 1}, unk_token="?"))
t.normalizer = normalizers.Lowercase()
t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
t.add_tokens([AddedToken(s, normalized=True) for s in ("<TOK>", "<Tok>", "<tok>")])
file = t.to_str()
seen = sorted({tuple(Tokenizer.from_str(file).encode("a <tok> a").ids) for _ in range(40)})
print("tokenizers", tokenizers.__version__)
print("ids of 'a <tok> a' in 40 loads of one file:", seen)
raise SystemExit(len(seen) < 2)
PY
py/bin/python run.py
