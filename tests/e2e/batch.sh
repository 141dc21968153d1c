#!/bin/bash
# examples/batch.c: batch.sh PROGRAM SOURCE_DIR
# Each prompt has its own text, in the order of the prompts, and the first text is the one that examples/generate.c begins.
set -eu
program=$1 source=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$program" builtin:stories "Once upon a time" "One day" "Once upon a time" >"$tmp/texts"
story=$(head -n 1 "$source/tests/consumer/story.txt")
first=$(head -n 1 "$tmp/texts")
[ "$first" = "Once upon a time${story:0:$((${#first} - 16))}" ] || { cat "$tmp/texts"; exit 1; }
[ "$(grep -c "^Once upon a time" "$tmp/texts")" = 2 ] && grep -q '^One day.' "$tmp/texts"
code=0
"$program" "$tmp/none.gguf" x 2>"$tmp/said" || code=$?
[ $code = 1 ] && grep -qF "$tmp/none.gguf" "$tmp/said"
code=0
"$program" builtin:stories 2>"$tmp/said" || code=$?
[ $code = 2 ] && grep -q '^usage: ' "$tmp/said"
