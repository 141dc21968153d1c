#!/bin/sh
# The Python client of Ollama makes tools of functions. A parameter that has a default is required all the same, unless its type allows None; what a list
# holds is lost; and a parameter without a type is a string, whatever its default is. A model must so give values that the function does not need.
# Seen with ollama 0.6.3 (PyPI): the schema that is printed.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet ollama==0.6.3 2>/dev/null
"$dir/venv/bin/python" - <<'PY'
import json
from importlib.metadata import version

from ollama._utils import convert_function_to_tool


def find(words: list[int], limit: int = 10, order=3, place: str | None = None):
    """Finds words.

    Args:
        words: the ids
        limit: how many
        order: which
        place: where
    """


schema = json.loads(convert_function_to_tool(find).model_dump_json(exclude_none=True))["function"]["parameters"]
print("ollama", version("ollama"), json.dumps(schema))
types = {name: {k: v for k, v in p.items() if k != "description"} for name, p in schema["properties"].items()}
raise SystemExit(schema["required"] != ["words", "limit", "order"] or
                 types != {"words": {"type": "array"}, "limit": {"type": "integer"}, "order": {"type": "string"}, "place": {"type": "string"}})
PY
