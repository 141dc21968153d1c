#!/bin/sh
# outlines-core makes a regular expression of a JSON schema, and leaves out what bounds numbers and objects (minimum, exclusiveMinimum, maximum, multipleOf,
# maxProperties, uniqueItems), and what enum stands beside, without an error: a model may write any number. A number with an exponent needs a sign there.
# Seen with outlines_core 0.2.14 (PyPI): each text of the list, which is not valid, is taken, and 1e5, which is valid, is not.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet outlines_core==0.2.14 jsonschema==4.26.0 2>/dev/null
"$dir/venv/bin/python" - <<'PY'
import json
import re
from importlib.metadata import version

import jsonschema
from outlines_core.json_schema import build_regex_from_schema

rows = [({"type": "integer", "minimum": 3}, "2"), ({"type": "integer", "exclusiveMinimum": 3}, "3"), ({"type": "number", "maximum": 10}, "10.5"), ({"type": "integer", "multipleOf": 3}, "4"),
        ({"type": "object", "maxProperties": 1}, '{"a":1,"b":2}'), ({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, "[1,1]"),
        ({"type": "string", "enum": ["a", 1]}, "1"), ({"type": "number"}, "1e5")]
same = True
for schema, text in rows:
    got = jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)), re.fullmatch(build_regex_from_schema(json.dumps(schema)), text) is not None
    print(json.dumps(schema), text, "valid:", got[0], "written:", got[1])
    same &= got == ((True, False) if text == "1e5" else (False, True))
print("outlines_core", version("outlines_core"), "jsonschema", version("jsonschema"))
raise SystemExit(not same)
PY
