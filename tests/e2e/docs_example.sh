#!/bin/sh
# The first C block of a page compiles, runs, and prints the numbers on the page: docs_example.sh PAGE CC SOURCE_DIR BUILD_DIR
set -eu
page=$1 cc=$2 source=$3 build=$4
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' "$page" >"$tmp/example.c"
[ -s "$tmp/example.c" ]
vulkan=$build/backends/vulkan/libggl-vulkan.a # where it is built
[ -f "$vulkan" ] || vulkan=
sanitize=$(sed -n 's/^GGL_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
"$cc" -std=c11 -Wall -Wextra -Werror ${sanitize:+-fsanitize=$sanitize} -I "$source/ggml-lite/include" \
    -I "$source/backends/include" -o "$tmp/example" "$tmp/example.c" "$build/backends/libggl-backends.a" \
    ${vulkan:+"$vulkan"} "$build/backends/libggl-cpu.a" "$build/backends/libggl-reference.a" \
    "$build/ggml-lite/libggl-core.a" -lm -pthread
"$tmp/example" >"$tmp/out"
cat "$tmp/out"
grep -q '0.7616 0.9993' "$tmp/out"
grep -q -- '-0.0997 -0.0997' "$tmp/out"
