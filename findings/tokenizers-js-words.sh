#!/bin/sh
# The pre-tokenizers Whitespace and Digits of a tokenizer.json know only ASCII in JavaScript (@huggingface/tokenizers, which transformers.js uses): Russian
# words keep the comma behind them, a word with an accent is three, and Arabic digits are not digits. In Python (tokenizers) they are letters and digits.
# Seen with tokenizers 0.23.3 (PyPI) and @huggingface/tokenizers 0.2.0 (npm): the lines at the end, text, step, Python's pieces, JavaScript's.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv py
py/bin/pip install --quiet tokenizers==0.23.3 2>/dev/null
npm install --silent --no-fund --no-audit @huggingface/tokenizers@0.2.0 >/dev/null
cat >want.txt <<'END'
Whitespace	да, нет	да|,|нет	да,|нет
Whitespace	naïve	naïve	na|ï|ve
Digits	a٣٤b	a|٣٤|b	a٣٤b
END
cat >run.py <<'END'
from tokenizers import Tokenizer, models, pre_tokenizers
for line in open("want.txt"):
    step, text = line.split("\t")[:2]
    t = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    t.pre_tokenizer = getattr(pre_tokenizers, step)()
    t.save(step + ".json")
    print("|".join(piece for piece, _ in t.pre_tokenizer.pre_tokenize_str(text)))
END
cat >run.mjs <<'END'
import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
for (const line of readFileSync("want.txt", "utf8").trimEnd().split("\n")) {
  const [step, text] = line.split("\t");
  console.log(new Tokenizer(JSON.parse(readFileSync(step + ".json")), {}).pre_tokenizer.pre_tokenize_text(text, {}).join("|"));
}
END
py/bin/python run.py >py.txt
node run.mjs >js.txt
cut -f 1,2 want.txt | paste - py.txt js.txt >got.txt
cat got.txt
diff want.txt got.txt
