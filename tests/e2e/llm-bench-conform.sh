#!/bin/bash
# llm-bench conform as authors of backends use it. llm-bench-conform.sh BENCH
set -u
bench=$1
source "$(dirname "$0")/common.sh"
export VK_ICD_FILENAMES=/dev/null # rows are counted: those of other devices than the CPU would come on top

# does ARGS..: exit code 0, its output in $tmp/out
does() {
    "$bench" conform "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || fail "conform $*: exit code $?: $(head -c 300 "$tmp/err")"
}

# refuses CODE WORDS ARGS..: the exit code, the words on standard error, nothing on standard output
refuses() {
    local code=$1 words=$2
    shift 2
    "$bench" conform "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    local got=$?
    [ $got = "$code" ] || fail "conform $*: exit code $got, not $code: $(head -c 300 "$tmp/err")"
    grep -qF -- "$words" "$tmp/err" || fail "conform $*: no '$words' in: $(head -c 300 "$tmp/err")"
    [ ! -s "$tmp/out" ] || fail "conform $*: writes to standard output"
}

# has WORDS: the last output holds them
has() {
    grep -qF -- "$1" "$tmp/out" || fail "no '$1' in: $(head -c 600 "$tmp/out")"
}

# rows N: of the table
rows() {
    local got
    got=$(grep '^| ' "$tmp/out" | grep -vc '^| operator \|^| ---')
    [ "$got" = "$1" ] || fail "$got rows, not $1: $(head -c 600 "$tmp/out")"
}

# --- the table

does --backend cpu --op 'e[rx][fp]' --no-speed
has 'cpu: '
has '| operator '
has '| exp              | f32 '
rows 2
grep -q 'limits:' "$tmp/out" && fail '--no-speed measures limits'
grep -q '| right$' "$tmp/out" || fail 'exp is not right'
does --backend cpu --backend reference --op '\*' --no-speed
rows 2
has 'reference: '
does --op of_my_own --type q8_0 --quick
has 'right, by its body'
rows 1
does --op linear --type q4_0 --quick -v
grep -qF 'right   linear([64] x 5, q4_0 [64, 11])' "$tmp/err" || fail "-v tells no cases: $(head -c 300 "$tmp/err")"
does --op attend --type q8_0 --quick
rows 9 # of 25 pairs of types
does --op softmax --seconds 0.001 -t 1
has 'limits: memory'
grep -q 'x | *[0-9]* % | right' "$tmp/out" || fail "no times: $(cat "$tmp/out")"

# --- for programs

does --op rms --no-speed -o csv
[ "$(head -n 1 "$tmp/out" | cut -d, -f1-6)" = backend,device,operator,type,cases,right ] || fail 'csv has other columns'
[ "$(wc -l <"$tmp/out")" = 2 ] || fail 'csv has other rows'
if command -v python3 >/dev/null; then
    does --op 'e[rx]*' --type f32 --no-speed --quick --json
    python3 - "$tmp/out" <<'END' || fail 'json'
import json, sys
rows = json.load(open(sys.argv[1]))
assert {r["operator"] for r in rows} == {"exp", "erf"}, rows
for r in rows:
    assert r["backend"] == "cpu" and r["cases"] == r["right"] > 0 and r["wrong"] == r["refused"] == 0
    assert 0 <= r["error_of_bound"] <= 1 and r["ns"] is None and r["wrong_case"] == ""
END
    does --op exp --seconds 0.001 -o jsonl
    python3 -c 'import json, sys
r = json.loads(sys.stdin.readline())
assert r["ns"] > 0 and r["reference_ns"] > 0 and r["percent_of_limit"] > 0 and "exp([4096]" in r["speed_case"]' <"$tmp/out" || fail 'jsonl'
fi

# --- mistakes

refuses 1 "this build has no backend 'abacus'; it has: " --backend abacus --op exp
refuses 2 "no operator is named 'ex'" --op ex
refuses 2 "no operator is named 'exp' and has cases of type q4_0" --op exp --type q4_0
refuses 2 "no operator has cases of type i32" --type i32
refuses 2 "there is no type 'q9'" --type q9
refuses 2 "unknown flag '--no-such-flag'" --no-such-flag
refuses 2 '-t' -t 0
"$bench" conform --backend abacus --backend cpu --op exp --no-speed >"$tmp/out" 2>"$tmp/err"
[ $? = 1 ] || fail 'a backend that does not open is no failure beside another'
has '| exp '
"$bench" conform --op exp --no-speed >/dev/full 2>"$tmp/err" && fail 'a full disk is no failure'

exit $failed
