#!/usr/bin/env bash
# The SPIR-V in the repository equals the compiled shaders, byte for byte, if this machine has the compiler that made it;
# and it is valid: spirv.sh SOURCE_DIR
set -euo pipefail
kept=$1/backends/vulkan/spirv
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
command -v glslangValidator >/dev/null || { echo "skipped: there is no glslangValidator"; exit 77; }
version=$(glslangValidator --version | head -n 1)
[ "$version" = "$(cat "$kept/COMPILER")" ] || { echo "skipped: $version is not $(cat "$kept/COMPILER")"; exit 77; }
"$1/scripts/compile-shaders.sh" "$tmp"
diff -r "$kept" "$tmp" || { echo "scripts/compile-shaders.sh makes it anew"; exit 1; }
