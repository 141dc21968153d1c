#!/bin/sh
# Is 0.3 a multiple of 0.1? jsonschema and ajv divide binary fractions and say no, jsonschema-rs and fastjsonschema say yes, as the decimals mean it. A
# grammar that is made of the schema may so write prices that one validator takes and another one refuses.
# Seen with jsonschema 4.26.0, jsonschema-rs 0.61.2, fastjsonschema 2.22.3 (PyPI), ajv 8.20.0 (npm): for 0.1 and 0.3, and for 0.01 and 19.99.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv py
py/bin/pip install --quiet jsonschema==4.26.0 jsonschema-rs==0.61.2 fastjsonschema==2.22.3 2>/dev/null
npm install --silent --no-fund --no-audit ajv@8.20.0 >/dev/null
cat >run.py <<'END'
import fastjsonschema
import jsonschema
import jsonschema_rs
for step, number in ((0.1, 0.3), (0.01, 19.99)):
    schema = {"multipleOf": step}
    try:
        fast = fastjsonschema.compile(schema)(number) == number
    except fastjsonschema.JsonSchemaValueException:
        fast = False
    print(step, number, "jsonschema", jsonschema.Draft202012Validator(schema).is_valid(number), "jsonschema-rs", jsonschema_rs.validator_for(schema).is_valid(number), "fastjsonschema", fast)
END
cat >run.mjs <<'END'
import Ajv from "ajv/dist/2020.js";
for (const [step, number] of [[0.1, 0.3], [0.01, 19.99]]) console.log("ajv", new (Ajv.default ?? Ajv)().compile({ type: "number", multipleOf: step })(number));
END
py/bin/python run.py >py.txt
node run.mjs >js.txt
paste -d " " py.txt js.txt >got.txt
cat got.txt
printf '%s jsonschema False jsonschema-rs True fastjsonschema True ajv false\n' "0.1 0.3" "0.01 19.99" | diff - got.txt
