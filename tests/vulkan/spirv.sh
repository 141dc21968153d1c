#!/usr/bin/env bash
# The SPIR-V in the repository equals the compiled shaders, byte for byte, if this machine has the compiler that made it;
# and it is valid: spirv.sh SOURCE_DIR
# Shaders that need a newer compiler are compared if there is the one that made them; else they are only validated, if spirv-val
# knows their extension. Without any compiler, hashes of their sources show whether they were compiled after the last change.
set -euo pipefail
kept=$1/backends/vulkan/spirv
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$1/scripts/compile-shaders.sh" --sources >"$tmp/SOURCES"
diff "$kept/SOURCES" "$tmp/SOURCES" || { echo "these shaders changed: scripts/compile-shaders.sh compiles them (matrices: GGL_NEWER_TOOLS)"; exit 1; }
command -v glslangValidator >/dev/null || { echo "skipped: there is no glslangValidator"; exit 77; }
version=$(glslangValidator --version | head -n 1)
[ "$version" = "$(cat "$kept/COMPILER")" ] || { echo "skipped: $version is not $(cat "$kept/COMPILER")"; exit 77; }
"$1/scripts/compile-shaders.sh" "$tmp"
mapfile -t needs < <(sed -n 's/^SHADER_NEEDS(\([A-Z0-9_]*\),.*/\L\1.spv/p' "$1/backends/vulkan/shaders.def")
[ ${#needs[@]} -gt 0 ] || { echo "shaders.def has no SHADER_NEEDS"; exit 1; }
if ! cmp -s "$kept/COMPILER_NEWER" "$tmp/COMPILER_NEWER"; then
    echo "not compared: ${needs[*]}, of $(cat "$kept/COMPILER_NEWER")"
    for file in "${needs[@]}"; do
        why=$(spirv-val --target-env vulkan1.1 "$kept/$file" 2>&1) || case $why in
            *"Invalid extension"* | *"nvalid capability"* | *"not found"*) echo "not validated: $file: $why" ;;
            *) echo "$file: $why"; exit 1 ;;
        esac
        cp "$kept/$file" "$tmp/"
    done
    cp "$kept/COMPILER_NEWER" "$kept/SOURCES" "$tmp/"
fi
diff -r "$kept" "$tmp" || { echo "scripts/compile-shaders.sh makes it anew"; exit 1; }
