#!/bin/sh
# xgrammar compiles JSON schemas whose keywords it leaves out, so that a model may write what is not valid: not, if, dependentRequired and uniqueItems without
# a word, of oneOf and allOf with a warning; what stands beside $ref, and the type beside enum. A name in "required" that "properties" lacks turns the schema
# around: only objects without it can be written.
# Seen with xgrammar 0.2.9 and jsonschema 4.26.0 (PyPI): schema, text, whether jsonschema and whether xgrammar take it.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0 xgrammar==0.2.9 jsonschema==4.26.0 2>/dev/null
"$dir/venv/bin/python" - <<'PY' 2>/dev/null
import json
from importlib.metadata import version

import jsonschema
import xgrammar

END = 256
info = xgrammar.TokenizerInfo([bytes([i]) for i in range(256)] + [b"</s>"], vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[END])
compiler = xgrammar.GrammarCompiler(info)


def writes(schema, text):
    matcher = xgrammar.GrammarMatcher(compiler.compile_json_schema(json.dumps(schema)))
    return all(matcher.accept_token(byte) for byte in text.encode()) and matcher.accept_token(END)


two = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
needs = lambda name: {"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]}
rows = [({"type": "integer", "not": {"const": 3}}, "3", False), ({**two, "if": {"required": ["a"]}, "then": {"required": ["b"]}}, '{"a":1}', False),
        ({**two, "dependentRequired": {"a": ["b"]}}, '{"a":1}', False), ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "[1,1]", False),
        ({"oneOf": [{"type": "integer", "minimum": 0}, {"type": "integer", "maximum": 5}]}, "3", False), ({"allOf": [needs("a"), needs("b")]}, '{"a":1}', False),
        ({"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 1}, '"ab"', False), ({"enum": ["a", 1], "type": "string"}, "1", False),
        ({"type": "object", "properties": {}, "required": ["x"]}, "{}", False), ({"type": "object", "properties": {}, "required": ["x"]}, '{"x":1}', True)]
same = True
for schema, text, valid in rows:
    got = jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)), writes(schema, text)
    print(json.dumps(schema), text, got)
    same &= got == (valid, not valid)
print("xgrammar", version("xgrammar"), "jsonschema", version("jsonschema"))
raise SystemExit(not same)
PY
