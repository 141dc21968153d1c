#!/bin/sh
# A chat template that means one thing in Python (jinja2, which transformers uses) can mean another one in JavaScript (@huggingface/jinja, which
# transformers.js uses), without an error. Of values, not only their printed form differs: 'strip' ignores its argument, '==' compares as JavaScript's
# does, and -7 // 3 and -7 % 3 do not belong together (one rounds down, the other one towards 0). A whole float keeps its ".0" when it is printed
# alone, and loses it in a list. Integers beyond 2^53 lose digits. What a template prints of a call's arguments, true, none or a dict, depends on
# the engine.
# Seen with jinja2 3.1.6 (PyPI) and @huggingface/jinja 0.5.11 (npm): the lines at the end, template, Python's result, JavaScript's.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
python3 -m venv py
py/bin/pip -q --disable-pip-version-check install jinja2==3.1.6 2>/dev/null
npm install --silent --no-fund --no-audit @huggingface/jinja@0.5.11 >/dev/null
cat >want.txt <<'END'
{{ 'xxaxx'.strip('x') }}	a	xxaxx
{{ '1' == 1 }}	False	true
{{ -7 // 3 }} {{ -7 % 3 }}	-3 2	-3 -1
{{ 1.0 }} {{ [1.0] }}	1.0 [1.0]	1.0 [1]
{{ 12345678901234567890 }}	12345678901234567890	12345678901234567000
{{ {'zq': [true, none]} }}	{'zq': [True, None]}	{"zq": [true, null]}
a{{ none }}b	aNoneb	ab
{{ "it's"|title }}	It's	It'S
END
cut -f 1 want.txt >templates.txt
cat >run.py <<'END'
import jinja2
for line in open("templates.txt"):
    print(jinja2.Environment().from_string(line.rstrip("\n")).render())
END
cat >run.mjs <<'END'
import { readFileSync } from "node:fs";
import { Template } from "@huggingface/jinja";
for (const line of readFileSync("templates.txt", "utf8").trimEnd().split("\n")) console.log(new Template(line).render({}));
END
py/bin/python run.py >py.txt
node run.mjs >js.txt
paste templates.txt py.txt js.txt >got.txt
cat got.txt
diff want.txt got.txt
