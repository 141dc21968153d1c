#!/bin/bash
# What the shared library exports, and how it is called: shared_library.sh LIBRARY SOURCE_DIR
# The calls of the public headers and, under a version of their own, those that libllm-train.so needs (unit.exports); the name that programs ask for has the version up to which programs are compatible.
set -eu
library=$1 source=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() {
    echo "$*"
    exit 1
}
command -v nm >/dev/null && command -v readelf >/dev/null || { echo "nm or readelf is not there"; exit 77; }
nm -D --defined-only "$library" | awk '$2 != "A" && $3 !~ /@LLM_PRIVATE_/ { sub("@.*", "", $3); print $3 }' | sort -u >"$tmp/exported"
cat "$source"/{ggml-lite,backends,library}/include/*/*.h | grep -oE '\b(ggl|llm)_[a-z0-9_]+' | sort -u >"$tmp/declared"
[ "$(wc -l <"$tmp/exported")" -gt 60 ] || fail "it exports only $(wc -l <"$tmp/exported") symbols"
comm -23 "$tmp/exported" "$tmp/declared" >"$tmp/more"
[ ! -s "$tmp/more" ] || fail "it exports what no public header declares: $(tr '\n' ' ' <"$tmp/more")"
# every call that a public header declares is there
grep -hv '^#' "$source"/{ggml-lite,backends,library}/include/*/*.h | tr '\n' ' ' |
    grep -oE 'GGL_API [^;]*;' | grep -oE '^[^(]*' | grep -oE '[a-z0-9_]+ *$' | tr -d ' ' | sort -u >"$tmp/calls"
[ "$(wc -l <"$tmp/calls")" -gt 60 ] || fail "only $(wc -l <"$tmp/calls") calls were found in the headers"
comm -13 "$tmp/exported" "$tmp/calls" >"$tmp/missing"
[ ! -s "$tmp/missing" ] || fail "it lacks $(tr '\n' ' ' <"$tmp/missing")"
version=$(sed -n 's/^project(ggml-lite VERSION \([0-9]*\.[0-9]*\)\..*/\1/p' "$source/CMakeLists.txt")
case $version in 0.*) ;; *) version=${version%.*} ;; esac # from 1.0 on, the major version alone
readelf -d "$library" | grep -qF "[libllm.so.$version]" || fail "its SONAME is not libllm.so.$version"
readelf -V "$library" | grep -q LLM_0 || fail "its symbols have no version"
echo "$(wc -l <"$tmp/exported") symbols"
