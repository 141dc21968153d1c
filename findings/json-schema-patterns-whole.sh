#!/bin/sh
# In JSON Schema, "pattern" is searched for within a text: "b" is in "abc". As a grammar for a model, xgrammar and outlines-core take it as the whole text,
# also without ^ and $, so that only "b" can be written; llguidance searches, as the validator jsonschema does.
# Seen with xgrammar 0.2.9, outlines_core 0.2.14, llguidance 1.9.1, jsonschema 4.26.0 (PyPI): who takes "abc" and "b" of {"pattern": "b"}.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0 xgrammar==0.2.9 outlines_core==0.2.14 llguidance==1.9.1 jsonschema==4.26.0 2>/dev/null
"$dir/venv/bin/python" - <<'PY' 2>/dev/null
import json
import re
from importlib.metadata import version

import jsonschema
import llguidance
import xgrammar
from outlines_core.json_schema import build_regex_from_schema
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

SCHEMA = {"type": "string", "pattern": "b"}
letters = '"abc'
vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
vocab["</s>"] = END = len(vocab)
t = Tokenizer(models.BPE(vocab, []))
t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False), decoders.ByteLevel()
t.add_special_tokens(["</s>"])
info = xgrammar.TokenizerInfo([t.decode([i]) if i < END else "</s>" for i in range(END + 1)], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[END])
compiled = xgrammar.GrammarCompiler(info).compile_json_schema(json.dumps(SCHEMA))


def by_xgrammar(text):
    m = xgrammar.GrammarMatcher(compiled)
    return all(m.accept_string(c) for c in text) and m.accept_token(END)


def by_llguidance(text):
    m = llguidance.LLMatcher(llguidance.LLTokenizer(t.to_str(), eos_token=END), llguidance.LLMatcher.grammar_from_json_schema(SCHEMA))
    return all(m.try_consume_tokens([vocab[c]]) == 1 for c in text) and m.is_accepting()


rows = {}
for text in ('"abc"', '"b"'):
    rows[text] = {"jsonschema": jsonschema.Draft202012Validator(SCHEMA).is_valid(json.loads(text)), "llguidance": by_llguidance(text), "xgrammar": by_xgrammar(text),
                  "outlines_core": re.fullmatch(build_regex_from_schema(json.dumps(SCHEMA)), text) is not None}
    print(text, rows[text])
print({name: version(name) for name in ("jsonschema", "llguidance", "xgrammar", "outlines_core")})
raise SystemExit(list(rows['"abc"'].values()) != [True, True, False, False] or not all(rows['"b"'].values()))
PY
