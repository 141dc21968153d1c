#!/usr/bin/env bash
# Compiles the shaders of backends/vulkan/shaders.def to SPIR-V, with Debian's glslang-tools and spirv-tools. The results are
# part of the repository, so that a build needs neither.
#   scripts/compile-shaders.sh [FOLDER]     default: backends/vulkan/spirv
set -euo pipefail
folder=$(realpath "$(dirname "$0")/../backends/vulkan")
out=${1:-$folder/spirv}
mkdir -p "$out"
line='^SHADER\(([A-Z0-9_]+), "([a-z0-9_.]+)", "([^"]*)"\)'
while IFS= read -r text; do
    [[ $text =~ $line ]] || continue
    name=$out/${BASH_REMATCH[1],,}.spv
    read -ra defines <<<"${BASH_REMATCH[3]}"
    glslangValidator -V --target-env vulkan1.1 -g0 --quiet -I"$folder/shaders" -I"$folder/../../ggml-lite/include" "${defines[@]}" \
        -o "$name" "$folder/shaders/${BASH_REMATCH[2]}"
    if command -v spirv-val >/dev/null; then
        spirv-val --target-env vulkan1.1 "$name"
    fi
done <"$folder/shaders.def"
glslangValidator --version | head -n 1 >"$out/COMPILER"
