#!/bin/bash
# A model of tests/data continues prompt.txt like an independent float64 computation, which was recorded beside it (see the
# README there): on the CPU backend, with its portable code, and on the reference. sentences.sh PROGRAM MODEL
set -u
cli=$1 model=$2
recorded=$(cat "${model%.gguf}.txt") || exit 1
err=$(mktemp)
trap 'rm -f "$err"' EXIT
failed=0

check() { # ARGS..
    local text
    text=$("$cli" -m "$model" -f "${model%/*}/prompt.txt" -n 40 --temp 0 -ctk f32 -ctv f32 "$@" 2>"$err" </dev/null) ||
        { echo "FAILED: $*: $(head -c 300 "$err")" && failed=1 && return; }
    [ "$text" = "$recorded" ] ||
        { printf 'FAILED: %s\n--- written\n%s\n--- recorded\n%s\n' "$*" "$text" "$recorded" && failed=1; }
}

check --backend cpu
check --cpu-mask-isa all -t 1
check --backend reference
exit $failed
