#!/bin/sh
# The normalizers Lowercase and BertNormalizer make another letter of a capital sigma at the end of a word in JavaScript (@huggingface/tokenizers) than in
# Python (tokenizers): JavaScript's toLowerCase looks at the letters around it and writes the final form, the library goes letter by letter. Greek words in
# capitals have other tokens in the browser than the model was trained with.
# Seen with tokenizers 0.23.3 (PyPI) and @huggingface/tokenizers 0.2.0 (npm): the tokens of U+039F U+03A3 end with U+03C3 and with U+03C2.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv py
py/bin/pip install --quiet tokenizers==0.23.3 2>/dev/null
npm install --silent --no-fund --no-audit @huggingface/tokenizers@0.2.0 >/dev/null
cat >run.py <<'END'
from tokenizers import Tokenizer, models, normalizers
vocab = {"?": 0, "\u03bf": 1, "##\u03c3": 2, "##\u03c2": 3}
for name in ("Lowercase", "BertNormalizer"):
    t = Tokenizer(models.WordPiece(vocab, unk_token="?"))
    t.normalizer = getattr(normalizers, name)()
    t.save(name + ".json")
    print(name, t.encode("\u039f\u03a3").ids)
END
cat >run.mjs <<'END'
import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
for (const name of ["Lowercase", "BertNormalizer"])
  console.log(name, JSON.stringify(new Tokenizer(JSON.parse(readFileSync(name + ".json")), {}).encode("\u039f\u03a3").ids).replace(",", ", "));
END
py/bin/python run.py >py.txt
node run.mjs >js.txt
echo "Python:" && cat py.txt && echo "JavaScript:" && cat js.txt
[ "$(cat py.txt)" = "$(printf 'Lowercase [1, 2]\nBertNormalizer [1, 2]')" ]
[ "$(cat js.txt)" = "$(printf 'Lowercase [1, 3]\nBertNormalizer [1, 3]')" ]
