#!/bin/bash
# What Debian's gcc makes for ARM, optimized as for users, compiles and has the bits of this build: aarch64.sh SOURCE_DIR BUILD_DIR
# llm-train stands for all programs: it contains the library. (The tests on emulated processors compile at -O1, and only the engine and models.)
set -u
source=$1 here=$2/bin build=$2/aarch64
command -v aarch64-linux-gnu-gcc >/dev/null || { echo "skipped: there is no aarch64-linux-gnu-gcc" && exit 77; }
command -v qemu-aarch64-static >/dev/null || { echo "skipped: there is no qemu-aarch64-static" && exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake -S "$source" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$source/cmake/aarch64.cmake" -DCMAKE_BUILD_TYPE=Release -DGGL_TESTS=OFF >"$tmp/log" 2>&1 ||
    { tail -20 "$tmp/log" && exit 1; }
cmake --build "$build" -j 2 --target llm-train >"$tmp/log" 2>&1 || { grep -E "error|undefined" "$tmp/log" | head -20 && exit 1; }
cd "$tmp" || exit 1
for i in {1..40}; do echo "The dog saw a ball, and Tom said it was dog number $i."; done >text
for run in "arm qemu-aarch64-static -L /usr/aarch64-linux-gnu $build/bin" "here env $here"; do
    read -r name run <<<"$run"
    $run/llm-train -m builtin:stories text -o "$name.gguf" --f32 --steps 2 -c 32 -b 64 --no-valid -q 2>"$name.err" || { cat "$name.err" && exit 1; }
done
cmp arm.gguf here.gguf
