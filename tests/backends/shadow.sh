#!/bin/bash
# llm-cli --shadow: a right backend passes; of a wrong one, the node is named: shadow.sh LLM_CLI RIGHT WRONG
set -eu
cli=$1 right=$2 wrong=$3
err=$(mktemp)
trap 'rm -f "$err"' EXIT

run() { # BACKEND
    "$cli" -p "Once upon a time" -n 100 --temp 0 -s 1 --shadow=1 --backend "$1" >/dev/null 2>"$err" </dev/null
}

run "$right" || { echo "FAILED: a backend that is right is doubted: $(cat "$err")"; exit 1; }
grep -q 'mine against cpu: .* 0 beyond' "$err"
code=0
run "$wrong" || code=$?
cat "$err"
[ $code = 1 ] || { echo "FAILED: exit code $code"; exit 1; }
grep -q '^first: .* = rope_pair(\.\.), llama.arch:' "$err"
grep -q '^worst: .* = rope_pair(\.\.), llama.arch:' "$err"
"$cli" -p Once -n 2 --shadow=0.000001 >/dev/null 2>"$err" </dev/null
grep -q 'nothing was checked: a larger share of the runs' "$err" || { echo "FAILED: no word on a run without checks"; exit 1; }
