#!/bin/sh
# JSON Schema takes regular expressions from ECMAScript. The validator jsonschema hands them to Python's re: $ also matches before a line break at the end,
# \d takes digits of all scripts, \w all letters, \s not U+FEFF, and \p{L} is an error. jsonschema-rs and ajv read them as ECMAScript does, so the same
# answer of a model is valid for one of them and invalid for the other.
# Seen with jsonschema 4.26.0, jsonschema-rs 0.61.2 (PyPI), ajv 8.20.0 (npm): the lines at the end, pattern, text, and the three verdicts.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv py
py/bin/pip install --quiet jsonschema==4.26.0 jsonschema-rs==0.61.2 2>/dev/null
npm install --silent --no-fund --no-audit ajv@8.20.0 >/dev/null
cat >want.txt <<'END'
"^a$"	"a\n"	True False false
"^\\d$"	"\u0663"	True False false
"^\\w$"	"\u00e9"	True False false
"^\\s$"	"\ufeff"	False True true
"^\\p{L}$"	"\u00e9"	error True true
END
cat >run.py <<'END'
import json
import re

import jsonschema
import jsonschema_rs
for line in open("want.txt"):
    pattern, text = (json.loads(part) for part in line.split("\t")[:2])
    try:
        own = jsonschema.Draft202012Validator({"pattern": pattern}).is_valid(text)
    except re.error:
        own = "error"
    print(own, jsonschema_rs.validator_for({"pattern": pattern}).is_valid(text))
END
cat >run.mjs <<'END'
import { readFileSync } from "node:fs";
import Ajv from "ajv/dist/2020.js";
for (const line of readFileSync("want.txt", "utf8").trimEnd().split("\n")) {
  const [pattern, text] = line.split("\t").slice(0, 2).map((part) => JSON.parse(part));
  console.log(new (Ajv.default ?? Ajv)({ strict: false }).compile({ pattern })(text));
}
END
py/bin/python run.py >py.txt
node run.mjs >js.txt
paste -d " " py.txt js.txt >both.txt
cut -f 1,2 want.txt | paste - both.txt >got.txt
cat got.txt
diff want.txt got.txt
