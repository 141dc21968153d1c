#!/bin/sh
# Each tool prints its name and the version in CMakeLists.txt: version.sh SOURCE_DIR TOOL..
set -eu
version=$(sed -n 's/^project(ggml-lite VERSION \([0-9.]*\) .*/\1/p' "$1/CMakeLists.txt")
shift
[ -n "$version" ] || { echo "no version in CMakeLists.txt"; exit 1; }
for tool; do
    got=$("$tool" --version) || { echo "$tool --version failed"; exit 1; }
    [ "$got" = "$(basename "$tool") $version" ] || { echo "$tool --version: '$got', not '$(basename "$tool") $version'"; exit 1; }
done
