#!/bin/sh
# A separate project builds and runs with the installed package: consumer.sh BUILD_DIR SOURCE_DIR CC
set -eu
build=$1 source=$2 cc=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$build" --prefix "$tmp/prefix" >"$tmp/install.log"
mv "$tmp/prefix" "$tmp/moved" # an installed tree can be moved

version=$(sed -n 's/^project(ggml-lite VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")
for file in LICENSE NOTICE; do
    cmp "$source/$file" "$tmp/moved/share/doc/ggml-lite/$file"
done

cmake -S "$source/tests/consumer" -B "$tmp/cmake" -DCMAKE_PREFIX_PATH="$tmp/moved" -DCMAKE_C_COMPILER="$cc" \
    -DWANT_VERSION="$version" >"$tmp/cmake.log"
cmake --build "$tmp/cmake" >>"$tmp/cmake.log" || { cat "$tmp/cmake.log"; exit 1; }
"$tmp/cmake/consumer" | grep -q '^0.7616'

if command -v pkg-config >/dev/null; then
    pc=$(find "$tmp/moved" -name ggml-lite.pc)
    [ "$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --modversion ggml-lite)" = "$version" ]
    flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs ggml-lite)
    # shellcheck disable=SC2086
    "$cc" -std=c11 -o "$tmp/by-pkg-config" "$source/tests/consumer/consumer.c" $flags
    "$tmp/by-pkg-config" | grep -q '^0.7616'
else
    echo "pkg-config is not there: its half is skipped"
fi
