#!/bin/bash
# The programs of a page compile, run, and print what the page says: docs_example.sh PAGE CC SOURCE_DIR BUILD_DIR
set -eu
page=$1 cc=$2 source=$3 build=$4
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. "$source/tests/e2e/docs_programs.sh"
docs_programs "$page" "$tmp"
vulkan=$build/backends/vulkan/libggl-vulkan.a # where it is built
[ -f "$vulkan" ] || vulkan=
sanitize=$(sed -n 's/^GGL_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")
for program in "$tmp"/*.c; do
    "$cc" -std=c11 -Wall -Wextra -Werror ${sanitize:+-fsanitize=$sanitize} -I "$source/ggml-lite/include" \
        -I "$source/backends/include" -o "$tmp/example" "$program" "$build/backends/libggl-backends.a" \
        ${vulkan:+"$vulkan"} "$build/backends/libggl-cpu.a" "$build/backends/libggl-reference.a" \
        "$build/ggml-lite/libggl-core.a" -lm -pthread
    docs_prints "$page" "$tmp/example"
done
