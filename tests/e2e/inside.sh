#!/bin/bash
# The library in the tree of another project, as FetchContent puts it there, built with BUILD_SHARED_LIBS; and installed from there:
# inside.sh SOURCE_DIR CC
set -eu
source=$1 cc=$2 here=$(dirname "$0")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
build() { # ARGUMENT..: cmake, with its output only after a failure
    cmake "$@" >>"$tmp/log" 2>&1 || { tail -30 "$tmp/log"; exit 1; }
}
# kernels as with a sanitizer: what they compute is not what is tested here, and they take long to compile
build -S "$source/tests/consumer/inside" -B "$tmp/build" -DCMAKE_C_COMPILER="$cc" -DGGL_SOURCE="$source" -DBUILD_SHARED_LIBS=ON \
    -DGGL_INSTALL=ON -DGGL_SMALL=ON -DGGL_VULKAN=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0
build --build "$tmp/build" -j "${CTEST_PARALLEL_LEVEL:-2}"
"$here/generate.sh" "$tmp/build/generate" "$source"
"$here/shared_library.sh" "$tmp/build/ggml-lite/lib/libllm.so" "$source"
"$here/consumer.sh" "$tmp/build" "$source" "$cc"
