#!/usr/bin/env bash
# Only ggl_extents (ggl/graph.h), which knows that they fit, multiplies extents: a product computed elsewhere
# once wrapped to 0.
#   extents.sh SOURCE_DIR
set -euo pipefail
cd "$1"
product='\bne\[[^]]*\]\)* \* (\([a-z_0-9]+\) ?)?\(?[a-z_0-9.>-]*\bne\['
found=$(grep -rnE "$product" --include='*.c' --include='*.h' ggml-lite models backends tools |
    grep -vE "\(double\).*$product" || true)
[ -z "$found" ] || { printf 'products of extents outside of ggl_extents:\n%s\n' "$found"; exit 1; }
# the pattern sees what it is for
for line in 'n = t->ne[0] * t->ne[1];' 'n = (size_t)(w->ne[2] * w->ne[3]);' 'n = (size_t)t->ne[0] * (size_t)t->ne[1];'; do
    grep -qE "$product" <<<"$line" || { echo "not seen: $line"; exit 1; }
done
