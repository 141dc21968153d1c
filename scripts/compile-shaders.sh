#!/usr/bin/env bash
# Compiles the shaders of backends/vulkan/shaders.def to SPIR-V, with Debian's glslang-tools and spirv-tools. The results are
# part of the repository, so that a build needs neither.
#   scripts/compile-shaders.sh [FOLDER]     default: backends/vulkan/spirv
#   scripts/compile-shaders.sh --sources    only print what SOURCES should be
# Rows SHADER_NEEDS have an extension that older compilers lack; these are left as they are, with a message. If another folder has
# newer tools, GGL_NEWER_TOOLS names it, and they compile these rows. COMPILER and COMPILER_NEWER say which version compiled.
# SOURCES has a hash of what each file was compiled from, so that a test without the compiler notices a file that is out of date.
set -euo pipefail
export LC_ALL=C
folder=$(realpath "$(dirname "$0")/../backends/vulkan")
out=${1:-$folder/spirv}
newer=${GGL_NEWER_TOOLS:+$GGL_NEWER_TOOLS/}
includes=("$folder/shaders" "$folder/../../ggml-lite/include")

# sources FILE..: prints the files and all that they include, each once; included files are searched in the folders of the compiler
sources() {
    local -A seen=()
    local -a todo=("$@")
    local file name at
    while [ ${#todo[@]} -gt 0 ]; do
        file=${todo[0]}
        todo=("${todo[@]:1}")
        [ -z "${seen[$file]:-}" ] || continue
        seen[$file]=1
        echo "$file"
        while IFS= read -r name; do
            for at in "${includes[@]}"; do
                [ ! -f "$at/$name" ] || { todo+=("$at/$name"); break; }
            done
        done < <(sed -n 's/^#include [<"]\(.*\)[>"]$/\1/p' "$file")
    done
}

# hash FILE DEFINES: of the definitions and the text of the sources, without comments and spaces, which compile to nothing
hash() {
    local -a files
    mapfile -t files < <(sources "$folder/shaders/$1")
    { echo "$2"; sed -Ez 's:/\*([^*]|\*+[^*/])*\*+/::g; s:[ \n]+: :g' "${files[@]}"; } | sha256sum | cut -c 1-16
}

# compile NAME FILE DEFINES TOOLS: TOOLS is empty or ends in /
compile() {
    read -ra defines <<<"$3"
    "$4glslangValidator" -V --target-env vulkan1.1 -g0 --quiet "${includes[@]/#/-I}" "${defines[@]}" \
        -o "$1" "$folder/shaders/$2"
    if command -v "$4spirv-val" >/dev/null; then
        "$4spirv-val" --target-env vulkan1.1 "$1"
    fi
}

# knows EXTENSION: true if the newer compiler has it
knows() {
    printf '#version 450\n#extension %s : require\nvoid main() {}\n' "$1" >"$out/probe.comp"
    local rc=0
    "${newer}glslangValidator" -V --quiet -o "$out/probe.spv" "$out/probe.comp" >/dev/null 2>&1 || rc=$?
    rm -f "$out/probe.comp" "$out/probe.spv"
    return $rc
}

# each COMMAND..: calls the command with ID FILE DEFINES EXTENSION of each row of shaders.def
each() {
    local text line='^SHADER(_NEEDS)?\(([A-Z0-9_]+), "([a-z0-9_.]+)", "([^"]*)"(, "([A-Za-z0-9_]+)")?\)'
    while IFS= read -r text; do
        [[ $text =~ $line ]] || continue
        "$@" "${BASH_REMATCH[2],,}" "${BASH_REMATCH[3]}" "${BASH_REMATCH[4]}" "${BASH_REMATCH[6]}"
    done <"$folder/shaders.def"
}

declare -A compiled=()
compile_row() {
    if [ -z "$4" ]; then
        compile "$out/$1.spv" "$2" "$3" ""
    elif knows "$4"; then
        compile "$out/$1.spv" "$2" "$3" "$newer"
        "${newer}glslangValidator" --version | head -n 1 >"$out/COMPILER_NEWER"
    else
        echo "not compiled: $1 needs a compiler that knows $4 (GGL_NEWER_TOOLS names its folder)"
        return
    fi
    compiled[$1]=1
}

# source_row: prints the line of SOURCES, which is the old one if the shader was not compiled
source_row() {
    if [ "$out" = --sources ] || [ -n "${compiled[$1]:-}" ]; then
        echo "$1 $(hash "$2" "$3")"
    else
        grep "^$1 " "$out/SOURCES" || true
    fi
}

if [ "$out" = --sources ]; then
    each source_row
    exit
fi
mkdir -p "$out"
touch "$out/SOURCES"
each compile_row
each source_row >"$out/SOURCES.new"
mv "$out/SOURCES.new" "$out/SOURCES"
glslangValidator --version | head -n 1 >"$out/COMPILER"
