#!/usr/bin/env bash
# Compiles the shaders of backends/vulkan/shaders.def to SPIR-V, with Debian's glslang-tools and spirv-tools. The results are
# part of the repository, so that a build needs neither.
#   scripts/compile-shaders.sh [FOLDER]     default: backends/vulkan/spirv
# Rows SHADER_NEEDS have an extension that older compilers lack; these are left as they are, with a message. If another folder has
# newer tools, GGL_NEWER_TOOLS names it, and they compile these rows. COMPILER and COMPILER_NEWER say which version compiled.
set -euo pipefail
folder=$(realpath "$(dirname "$0")/../backends/vulkan")
out=${1:-$folder/spirv}
newer=${GGL_NEWER_TOOLS:+$GGL_NEWER_TOOLS/}
mkdir -p "$out"

# compile NAME FILE DEFINES TOOLS: TOOLS is empty or ends in /
compile() {
    read -ra defines <<<"$3"
    "$4glslangValidator" -V --target-env vulkan1.1 -g0 --quiet -I"$folder/shaders" -I"$folder/../../ggml-lite/include" "${defines[@]}" \
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

line='^SHADER(_NEEDS)?\(([A-Z0-9_]+), "([a-z0-9_.]+)", "([^"]*)"(, "([A-Za-z0-9_]+)")?\)'
while IFS= read -r text; do
    [[ $text =~ $line ]] || continue
    id=${BASH_REMATCH[2]} file=${BASH_REMATCH[3]} defines=${BASH_REMATCH[4]} extension=${BASH_REMATCH[6]}
    name=$out/${id,,}.spv
    if [ -z "$extension" ]; then
        compile "$name" "$file" "$defines" ""
    elif knows "$extension"; then
        compile "$name" "$file" "$defines" "$newer"
        "${newer}glslangValidator" --version | head -n 1 >"$out/COMPILER_NEWER"
    else
        echo "not compiled: $id needs a compiler that knows $extension (GGL_NEWER_TOOLS names its folder)"
    fi
done <"$folder/shaders.def"
glslangValidator --version | head -n 1 >"$out/COMPILER"
