#!/bin/bash
# The example backend, built against the installed package as a shared object, runs a model as the CPU does:
# example_backend.sh BUILD_DIR SOURCE_DIR CC LLM_CLI LLM_ARCH LLM_BENCH
set -eu
build=$1 source=$2 cc=$3 cli=$4 arch=$5 bench=$6
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$build" --prefix "$tmp/prefix" >"$tmp/install.log"
cd "$tmp" # a name without a folder is a file of this one

cmake -S "$source/examples/backend" -B cmake -DCMAKE_PREFIX_PATH="$tmp/prefix" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_BUILD_TYPE=Release >cmake.log
cmake --build cmake >>cmake.log || { cat cmake.log; exit 1; }
cp cmake/libmine.so .

# The line that the file and the page give.
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$(dirname "$(find "$tmp/prefix" -name ggml-lite.pc)")
    export PKG_CONFIG_PATH
    line=$(sed -n 's/^ \* *cc \(-shared .*\)/\1/p' "$source/examples/backend/mine.c")
    [ -n "$line" ]
    cp "$source/examples/backend/mine.c" .
    rm libmine.so
    eval "$cc -O2 -std=c11 -Wall -Wextra -Werror $line"
    [ -f libmine.so ]
else
    echo "pkg-config is not there: its half is skipped"
fi

text() { # MODEL BACKEND
    "$cli" -m "$1" -f "$source/tests/data/prompt.txt" -n 40 --temp 0 -ctk f32 -ctv f32 --backend "$2" 2>err </dev/null ||
        { cat err >&2; exit 1; }
}

for model in "$source"/tests/data/stories-*.gguf; do
    [ "$(text "$model" ./libmine.so)" = "$(text "$model" cpu)" ] || { echo "$model: not the text of the CPU"; exit 1; }
done
builtin=$source/models/builtin/stories.gguf
[ "$(text "$builtin" libmine.so)" = "$(text "$builtin" reference)" ] || { echo "not the text of the reference"; exit 1; }
"$arch" verify "$builtin" --backend ./libmine.so >verify.log || { cat verify.log; exit 1; }
grep -q 'mine: plain loops' verify.log
for op in 'rope_*' '<pick>' silu; do # all of it takes minutes
    "$bench" conform --backend ./libmine.so --quick --op "$op" >conform.log 2>&1 || { tail -n 30 conform.log; exit 1; }
    grep -q '| right' conform.log
done
"$bench" -m "$builtin" -p 8 -n 4 -r 1 --device ./libmine.so -o csv >bench.csv
folder=$(printf 'long%.0s' {1..50})
mkdir "$folder" && cp libmine.so "$folder"
[ "$(text "$builtin" "$tmp/$folder/libmine.so")" = "$(text "$builtin" reference)" ]
"$cli" --backend trace:./libmine.so -n 4 -p Once >/dev/null 2>&1 </dev/null
grep -q '"name":"run"' trace.json
