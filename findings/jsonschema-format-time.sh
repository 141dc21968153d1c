#!/bin/sh
# The validator jsonschema: FormatChecker() without arguments has all drafts' checks under one name each. Its "time" is that of
# draft 3, so that a schema of draft 2020-12 refuses 12:00:00Z, which RFC 3339 asks for, and takes 12:00:00, which has no zone. The checker of the draft
# itself (Draft202012Validator.FORMAT_CHECKER) does not check "time" at all, unless further packages are there.
# Seen with jsonschema 4.26.0 (PyPI): the lines that are printed.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet jsonschema==4.26.0 2>/dev/null
"$dir/venv/bin/python" - <<'PY'
from importlib.metadata import version

from jsonschema import Draft202012Validator as Validator, FormatChecker

found = []
for text in ("12:00:00Z", "12:00:00", "noon"):
    row = [Validator({"format": "time"}, format_checker=checker).is_valid(text) for checker in (FormatChecker(), Validator.FORMAT_CHECKER)]
    print("jsonschema", version("jsonschema"), text, "FormatChecker():", row[0], "FORMAT_CHECKER:", row[1])
    found.append(row)
raise SystemExit(found != [[False, True], [True, True], [False, True]])
PY
