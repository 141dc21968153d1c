#!/bin/bash
# What the shared library exports, and how it is called: shared_library.sh LIBRARY SOURCE_DIR
# The calls of the public headers, and those that libllm-train.so beside it needs; the name that programs ask for has the version up to which programs are
# compatible.
set -eu
library=$1 source=$2
fail() {
    echo "$*"
    exit 1
}
for program in nm readelf python3; do
    command -v $program >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
python3 "$source/tests/unit/exports.py" "$source" "$library" "${library/libllm.so/libllm-train.so}"
version=$(sed -n 's/^project(ggml-lite VERSION \([0-9]*\.[0-9]*\)\..*/\1/p' "$source/CMakeLists.txt")
case $version in 0.*) ;; *) version=${version%.*} ;; esac # from 1.0 on, the major version alone
for name in libllm libllm-train; do
    readelf -d "${library/libllm.so/$name.so}" | grep -qF "[$name.so.$version]" || fail "its SONAME is not $name.so.$version"
done
readelf -V "$library" | grep -q LLM_0 || fail "its symbols have no version"
