#!/bin/sh
# The behavior of the pre-tokenizers Punctuation and Split (with a string) is not read in JavaScript (@huggingface/tokenizers): what a tokenizer.json
# says to remove, or to merge with the piece beside it, stays as a piece of its own, so that the ids are other ones. Python (tokenizers) obeys it.
# Seen with tokenizers 0.23.3 (PyPI) and @huggingface/tokenizers 0.2.0 (npm): the lines at the end, step, behavior, Python's pieces of "a-b", JavaScript's.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv py
py/bin/pip install --quiet tokenizers==0.23.3 2>/dev/null
npm install --silent --no-fund --no-audit @huggingface/tokenizers@0.2.0 >/dev/null
cat >want.txt <<'END'
Split	isolated	a|-|b	a|-|b
Split	removed	a|b	a|-|b
Split	merged_with_previous	a-|b	a|-|b
Split	merged_with_next	a|-b	a|-|b
Punctuation	removed	a|b	a|-|b
END
cat >run.py <<'END'
from tokenizers import Tokenizer, models, pre_tokenizers
for line in open("want.txt"):
    step, behavior = line.split("\t")[:2]
    t = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    t.pre_tokenizer = pre_tokenizers.Split("-", behavior) if step == "Split" else pre_tokenizers.Punctuation(behavior)
    t.save(step + behavior + ".json")
    print("|".join(piece for piece, _ in t.pre_tokenizer.pre_tokenize_str("a-b")))
END
cat >run.mjs <<'END'
import { readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
for (const line of readFileSync("want.txt", "utf8").trimEnd().split("\n")) {
  const [step, behavior] = line.split("\t");
  console.log(new Tokenizer(JSON.parse(readFileSync(step + behavior + ".json")), {}).pre_tokenizer.pre_tokenize_text("a-b", {}).join("|"));
}
END
py/bin/python run.py >py.txt
node run.mjs >js.txt
cut -f 1,2 want.txt | paste - py.txt js.txt >got.txt
cat got.txt
diff want.txt got.txt
