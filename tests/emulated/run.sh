#!/usr/bin/env bash
# Runs a program, on an emulated processor or not.
#   run.sh run EMULATOR CPU PROGRAM [ARGS..]
#   run.sh keep FILE PROGRAM [ARGS..]                 runs it on this processor and saves its output in FILE
#   run.sh same FILE EMULATOR CPU PROGRAM [ARGS..]    what it prints are lines of FILE
# Exit code 77, a skip, if the emulator or the program is missing; but if GGL_EMULATED is set, 1.
set -uo pipefail
how=$1
shift
if [ "$how" != run ]; then
    file=$1
    shift
fi
if [ "$how" = keep ]; then
    "$@" >"$file.new" || exit 1
    cat "$file.new"
    exec mv "$file.new" "$file"
fi

missing() {
    echo "skipped: $*"
    [ -z "${GGL_EMULATED:-}" ] && exit 77
    exit 1
}
command -v "$1" >/dev/null || missing "no $1 (Debian: qemu-user-static)"
[ -x "$3" ] || missing "no $3 (cmake --preset aarch64 && cmake --build build/aarch64, or another processor's)"
emulator=$1 cpu=$2
shift 2

if [ "$how" = run ]; then
    exec "$emulator" -cpu "$cpu" "$@"
fi
lines=$("$emulator" -cpu "$cpu" "$@" 2> >(grep -v "TCG doesn't support" >&2)) || { echo "$1 failed on $cpu"; exit 1; }
grep '^samples are chosen' <<<"$lines"
lines=$(grep -v '^samples are chosen' <<<"$lines")
[ -n "$lines" ] || { echo "$1 printed no digest"; exit 1; }
if grep -Fxvf "$file" <<<"$lines"; then
    echo "these are not what this processor computes ($file), if $1 is built from the same source"
    exit 1
fi
echo "$(wc -l <<<"$lines") digests are the same"
