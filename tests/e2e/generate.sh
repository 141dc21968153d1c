#!/bin/bash
# examples/generate.c: generate.sh PROGRAM SOURCE_DIR
# It tells the story, answers in a conversation, and says what is wrong.
set -eu
program=$1 source=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$program" builtin:stories "Once upon a time" >"$tmp/story" 2>"$tmp/said"
cmp "$tmp/story" "$source/tests/consumer/story.txt" || { cat "$tmp/story"; exit 1; }
grep -q ' 60 out$' "$tmp/said"
"$program" builtin:chat --chat "Who are you?" 2>/dev/null | grep -q Fable
code=0
"$program" "$tmp/none.gguf" x 2>"$tmp/said" || code=$?
[ $code = 1 ] && grep -qF "$tmp/none.gguf" "$tmp/said"
code=0
"$program" 2>"$tmp/said" || code=$?
[ $code = 2 ] && grep -q '^usage: ' "$tmp/said"
