#!/bin/bash
# llm-bench as a user meets it: models made, measured, compared; mistakes. llm-bench.sh BENCH CLI SOURCE_DIR
set -u
bench=$1 cli=$2 source=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

# does ARGS..: exit code 0, its output in $tmp/out
does() {
    "$bench" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || fail "llm-bench $*: exit code $?: $(head -c 300 "$tmp/err")"
}

# refuses CODE WORDS ARGS..: the exit code, the words on standard error, nothing on standard output
refuses() {
    local code=$1 words=$2
    shift 2
    "$bench" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    local got=$?
    [ $got = "$code" ] || fail "llm-bench $*: exit code $got, not $code: $(head -c 300 "$tmp/err")"
    grep -qF -- "$words" "$tmp/err" || fail "llm-bench $*: no '$words' in: $(head -c 300 "$tmp/err")"
    [ ! -s "$tmp/out" ] || fail "llm-bench $*: writes to standard output"
}

# has WORDS: the last output holds them
has() {
    grep -qF -- "$1" "$tmp/out" || fail "no '$1' in: $(head -c 600 "$tmp/out")"
}

# --- make

does make --list # builds every shape's graph by its descriptor
has '1100.0 M'   # TinyLlama
has 'gpt2-124m'
for shape in toy-llama toy-gpt2 toy-moe; do
    for type in f32 f16 q8_0 q4_0; do
        does make $shape $type "$tmp/$shape-$type.gguf"
        "$cli" -m "$tmp/$shape-$type.gguf" -p 'hello world' -n 2 --temp 0 >/dev/null 2>"$tmp/err" </dev/null ||
            fail "$shape $type does not run: $(head -c 300 "$tmp/err")"
    done
done
does make toy-llama q4_0 "$tmp/again.gguf"
cmp -s "$tmp/toy-llama-q4_0.gguf" "$tmp/again.gguf" || fail "the same seed makes another file"
does make toy-llama q4_0 "$tmp/again.gguf" --seed 2
cmp -s "$tmp/toy-llama-q4_0.gguf" "$tmp/again.gguf" && fail "another seed makes the same file"
does make toy-llama q4_0 "$tmp/again.gguf" --layers 1 --vocab 400
refuses 2 "did you mean 'toy-llama'" make toy-lama q4_0 "$tmp/x.gguf"
refuses 2 "as 'i32'" make toy-llama i32 "$tmp/x.gguf"
refuses 2 '3 layers' make toy-llama q4_0 "$tmp/x.gguf" --layers 3
refuses 1 'at least 288' make toy-llama q4_0 "$tmp/x.gguf" --vocab 3
refuses 1 'no/such' make toy-llama q4_0 "$tmp/no/such/x.gguf"
refuses 2 'SHAPE, TYPE' make toy-llama
[ ! -e "$tmp/x.gguf" ] || fail "a file is left"

exit $failed
