#!/bin/sh
# llguidance: of {"type": "string"}, no letter can be written as \uXXXX, which JSON allows anywhere; a model that writes ASCII alone has no way to write an
# accent. The number of an enum is written in one form, which need not be that of the schema: of [1.0] it is 1.
# Seen with llguidance 1.9.1 (PyPI): the texts that are taken and those that are not.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet llguidance==1.9.1 tokenizers==0.23.3 2>/dev/null
"$dir/venv/bin/python" - <<'PY'
from importlib.metadata import version

import llguidance
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
vocab["</s>"] = END = len(vocab)
t = Tokenizer(models.BPE(vocab, []))
t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), decoders.ByteLevel()
t.add_special_tokens(["</s>"])
tokenizer = llguidance.LLTokenizer(t.to_str(), eos_token=END)
same = True
for schema, text, want in (({"type": "string"}, '"a\\nb"', True), ({"type": "string"}, '"\\u00e9"', False), ({"type": "string"}, '"\\u0041"', False), ({"enum": [1.0]}, "1", True),
                           ({"enum": [1.0]}, "1.0", False)):
    m = llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_json_schema(schema))
    got = all(m.try_consume_tokens([i]) == 1 for i in t.encode(text).ids) and m.is_accepting()
    print(schema, text, got)
    same &= got == want
print("llguidance", version("llguidance"))
raise SystemExit(not same)
PY
