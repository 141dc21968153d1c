#!/bin/bash
# The programs of docs/graph.md, examples/generate.c with libllm, and a program that trains with libllm-train, static and shared, build and run against
# the installed package, as projects of their own: consumer.sh BUILD_DIR SOURCE_DIR CC
# The build may be one with BUILD_SHARED_LIBS: then all of them use libllm.so.
set -eu
build=$1 source=$2 cc=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
. "$source/tests/e2e/docs_programs.sh"
page=$source/docs/graph.md
mkdir "$tmp/programs"
docs_programs "$page" "$tmp/programs"

cmake --install "$build" --prefix "$tmp/prefix" >"$tmp/install.log"
mv "$tmp/prefix" "$tmp/moved" # an installed tree can be moved

version=$(sed -n 's/^project(ggml-lite VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")
for file in LICENSE NOTICE; do
    cmp "$source/$file" "$tmp/moved/share/doc/ggml-lite/$file"
done

# private headers are not installed, and others say what they promise
[ -z "$(find "$tmp/moved/include" -name internal)" ] || { echo "headers in a folder internal are installed"; exit 1; }
[ "$(cd "$tmp/moved/include/llm" && echo *)" = "context.h llm.h measure.h senses.h small.h steps.h train.h" ]
while read -r header; do
    grep -q '^ \* Tier: ' "$header" || { echo "$header names no tier"; exit 1; }
done < <(find "$tmp/moved/include" -name '*.h')

# each program has its manual page and its completion
for program in "$tmp"/moved/bin/llm-*; do
    [ -e "$program" ] && [ -d "$build/docs" ] || continue # no tools, or those of another machine
    name=${program##*/}
    for file in "man/man1/$name.1" "bash-completion/completions/$name" "zsh/site-functions/_$name" "fish/vendor_completions.d/$name.fish"; do
        grep -q "$name" "$tmp/moved/share/$file" || { echo "$file is not installed"; exit 1; }
    done
done

cmake -S "$source/tests/consumer" -B "$tmp/cmake" -DCMAKE_PREFIX_PATH="$tmp/moved" -DCMAKE_C_COMPILER="$cc" \
    -DWANT_VERSION="$version" -DPROGRAMS="$tmp/programs" -DGENERATE="$source/examples/generate.c" -DTRAIN="$source/tests/consumer/train.c" >"$tmp/cmake.log"
cmake --build "$tmp/cmake" >>"$tmp/cmake.log" || { cat "$tmp/cmake.log"; exit 1; }
for program in "$tmp"/cmake/program-*; do
    docs_prints "$page" "$program"
done

tells_story() { # PROGRAM
    "$source/tests/e2e/generate.sh" "$1" "$source"
}
learns() { # PROGRAM
    "$1" >"$tmp/learned" || { cat "$tmp/learned"; exit 1; }
    grep -qx 'step 1 of 2: loss [0-9.]*' "$tmp/learned" || { cat "$tmp/learned"; exit 1; }
}
tells_story "$tmp/cmake/generate-llm"
learns "$tmp/cmake/train-llm"
libdir=$(dirname "$(find "$tmp/moved" -name 'libllm.*' | head -1)")
if [ -e "$tmp/cmake/generate-shared" ]; then
    learns "$tmp/cmake/train-shared"
    tells_story "$tmp/cmake/generate-shared"
    mv "$libdir/libllm.so" "$libdir/for-the-linker" # a program needs only the name of the SONAME
    tells_story "$tmp/cmake/generate-shared"
    mv "$libdir/for-the-linker" "$libdir/libllm.so"
fi

if ! command -v pkg-config >/dev/null; then
    echo "pkg-config is not there: its half is skipped"
    exit 0
fi
PKG_CONFIG_PATH=$(dirname "$(find "$tmp/moved" -name ggml-lite.pc)")
export PKG_CONFIG_PATH
by_pkg_config() { # PACKAGE SOURCE: builds $tmp/by-pkg-config
    # shellcheck disable=SC2046
    "$cc" -std=c11 -o "$tmp/by-pkg-config" "$2" $(pkg-config --cflags --libs "$1")
}
[ "$(pkg-config --modversion ggml-lite) $(pkg-config --modversion llm)" = "$version $version" ]
LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
for program in "$tmp"/programs/*.c; do
    by_pkg_config ggml-lite "$program"
    docs_prints "$page" "$tmp/by-pkg-config"
done
by_pkg_config llm "$source/examples/generate.c"
tells_story "$tmp/by-pkg-config"
by_pkg_config llm-train "$source/tests/consumer/train.c"
learns "$tmp/by-pkg-config"
if [ -e "$libdir/libllm-train.so" ] && command -v readelf >/dev/null; then
    # it goes with the libllm.so of its version alone
    readelf -V "$libdir/libllm-train.so" | grep -q "LLM_PRIVATE_$version" || { echo "libllm-train.so goes with any version of libllm.so"; exit 1; }
fi
if [ -e "$libdir/libllm.a" ]; then
    # by the line of docs/library.md
    line=$(sed -n 's/^    cc \(-o generate generate\.c .*libllm\.a .*\)/\1/p' "$source/docs/library.md")
    [ -n "$line" ] || { echo "docs/library.md has no line that links libllm.a"; exit 1; }
    (cd "$source/examples" && eval "\"\$cc\" -std=c11 ${line/-o generate/-o \"\$tmp/by-name\"}")
    tells_story "$tmp/by-name"
fi
# the tensor library's flags name nothing of the models
if pkg-config --libs ggml-lite | grep -q llm-; then
    echo "pkg-config --libs ggml-lite has libraries of the models: $(pkg-config --libs ggml-lite)"
    exit 1
fi
