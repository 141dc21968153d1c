#!/bin/bash
# The programs for Windows, built by mingw-w64 and run by wine, write the same bytes as this build's: windows.sh SOURCE_DIR BUILD_DIR
set -u
export LC_ALL=C.UTF-8 WINEDEBUG=-all
source=$1 here=$2/bin
tmp=$(mktemp -d)
trap 'WINEPREFIX=$tmp/wine wineserver -k 2>/dev/null; rm -rf "$tmp"' EXIT
export WINEPREFIX=$tmp/wine
failed=0
fail() {
    echo "$*"
    failed=1
}
for program in x86_64-w64-mingw32-gcc-posix wine wineserver; do
    command -v $program >/dev/null || { echo "skipped: there is no $program" && exit 77; }
done

build=$2/windows
cmake -S "$source" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$source/cmake/windows.cmake" -DGGL_TESTS=OFF -DGGL_SMALL=ON \
    -DCMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" >"$tmp/log" 2>&1 || { tail -20 "$tmp/log" && exit 1; }
cmake --build "$build" -j 2 --target llm-cli llm-quantize llm-gguf llm-tokenize >"$tmp/log" 2>&1 || { grep -E "error|undefined" "$tmp/log" | head -20 && exit 1; }
! grep -q "warning:" "$tmp/log" || fail "the compiler warns: $(grep -m 3 "warning:" "$tmp/log")"
theirs() {
    local program=$1
    shift
    timeout 120 wine "$build/bin/$program.exe" "$@"
}

# the same text, and the same file by a path with other letters and separators, also over one that is there
for threads in 1 2; do
    want=$("$here/llm-cli" -q -p "Once upon a time" -n 60 -s 1 --temp 0.8 -t $threads 2>/dev/null)
    found=$(theirs llm-cli -q -p "Once upon a time" -n 60 -s 1 --temp 0.8 -t $threads 2>/dev/null)
    [ -n "$want" ] && [ "$want" = "$found" ] || fail "llm-cli -t $threads: '$found', not '$want'"
done
mkdir "$tmp/größe"
"$here/llm-quantize" -q --allow-requantize builtin:stories "$tmp/want.gguf" q4_0 >/dev/null 2>&1
cd "$tmp"
for turn in 1 2; do
    theirs llm-quantize -q --allow-requantize builtin:stories 'größe\kleiner.gguf' q4_0 >/dev/null 2>"$tmp/said" ||
        fail "llm-quantize, $turn: $(cat "$tmp/said")"
    cmp -s want.gguf größe/kleiner.gguf || fail "llm-quantize, $turn: another file"
done
[ "$(ls größe)" = kleiner.gguf ] || fail "left behind: $(ls größe)"
theirs llm-gguf check 'größe\kleiner.gguf' >/dev/null 2>"$tmp/said" || fail "llm-gguf check: $(cat "$tmp/said")"
[ "$(theirs llm-tokenize -p "Grüße, Welt" 2>/dev/null)" = "$("$here/llm-tokenize" -p "Grüße, Welt" 2>/dev/null)" ] || fail "other tokens"

# bad days
theirs llm-cli -m 'größe\nicht.gguf' -p a >/dev/null 2>"$tmp/said"
[ $? = 1 ] && grep -q 'nicht.gguf: No such file' "$tmp/said" || fail "a file that is not there: $(cat "$tmp/said")"
head -c 5000 want.gguf >größe/kurz.gguf
theirs llm-cli -m 'größe\kurz.gguf' -p a >/dev/null 2>"$tmp/said"
[ $? = 1 ] && grep -q 'kurz.gguf' "$tmp/said" || fail "a file that is cut off: $(cat "$tmp/said")"
exit $failed
