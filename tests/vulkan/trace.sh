#!/usr/bin/env bash
# Traces of a Vulkan device, alone and beside the CPU: trace.sh LLM_CLI CHECK_TRACE PYTHON3
set -euo pipefail
cli=$1 check=$2 python=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export GGL_VULKAN_CACHE=off
fail() {
    echo "$*" >&2
    exit 1
}
if ! "$cli" --list-devices | grep -q '^ *vulkan0'; then
    echo "skipped: there is no Vulkan device"
    exit 77
fi
prompt="Once upon a time there was a little girl who lived in a house"
# traced NAME TRACKS FLAG..: the text is the same without the trace, and the file is right
traced() {
    local name=$1 tracks=$2
    shift 2
    "$cli" -p "$prompt" -n 6 --temp 0 "$@" >"$tmp/plain" 2>"$tmp/plain.err" </dev/null || fail "$name: $(cat "$tmp/plain.err")"
    "$cli" -p "$prompt" -n 6 --temp 0 "$@" --trace "$tmp/$name.json" >"$tmp/traced" 2>"$tmp/traced.err" </dev/null ||
        fail "$name: $(cat "$tmp/traced.err")"
    cmp -s "$tmp/plain" "$tmp/traced" || fail "$name: --trace changes the text"
    ! grep -q 'trace:' "$tmp/traced.err" || fail "$name: $(grep trace: "$tmp/traced.err")"
    "$python" "$check" "$tmp/$name.json" "$tracks" || fail "$name: the trace is wrong"
    grep -q 'nodes on the device' "$tmp/$name.json" || fail "$name: no nodes of the device"
}
traced alone 2 --device vulkan0
traced pieces 2 --device vulkan0 -ub 5
traced split 3 --split cpu=2,vulkan0=3 -ub 4
