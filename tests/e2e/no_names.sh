#!/bin/bash
# No C source knows an architecture's name: they are texts in models/archs. no_names.sh SOURCE_DIR CC
# Comments, in which examples stand, do not count, nor does the name of the program llama.cpp.
set -eu
source=$1 cc=$2
names=$(sed -n 's/^arch //p' "$source"/models/archs/*.arch | tr -d '",' | tr ' ' '\n' | sort -u | paste -sd '|')
[ -n "$names" ]
failed=0
while read -r file; do
    kind=$(basename "$file" | sed -n 's/^tokenizer_\(.*\)[.]c$/\1/p') # a kind of tokenizer may be called as a family is
    found=$("$cc" -fpreprocessed -dD -E -P -x c "$file" 2>/dev/null | sed "s/llama\.cpp//g; ${kind:+s/\b$kind\b//g}" | grep -nwE "$names" || true)
    if [ -n "$found" ]; then
        echo "$file: $found"
        failed=1
    fi
done < <(find "$source"/ggml-lite "$source"/backends "$source"/models "$source"/tools -name '*.[ch]' -o -name '*.def')
echo "names: $names"
exit $failed
