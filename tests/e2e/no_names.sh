#!/bin/bash
# No C source knows an architecture's name: they are texts in models/archs. no_names.sh SOURCE_DIR CC
# Comments, which may contain examples, do not count, nor do the name of the program llama.cpp, its flag -opt, paths in the folder /opt, options of
# programs as others define them (--beam-size, the list of --reasoning-format, draft-dflash), and the file qwen.tiktoken.
set -eu
source=$1 cc=$2
names=$(sed -n 's/^arch //p' "$source"/models/archs/*.arch | tr -d '",' | tr ' ' '\n' | sort -u | paste -sd '|')
[ -n "$names" ]

# names_in KIND FILE..: the names in these files, whose comments the compiler takes away, all in one run of it; KIND: a word that
# may stand there, or nothing
names_in() {
    local kind=$1
    shift
    cat "$@" | "$cc" -fpreprocessed -dD -E -P -x c - 2>/dev/null | sed -E "s/llama\.cpp|\"qwen\.tiktoken\"|\"none\", \"deepseek\", \"deepseek-legacy\"//g; s|\"/opt/|\"/|g; s|\"-opt |\"|g; s/--[a-z-]+(=[a-z-]+)?|draft-[a-z0-9]+//g; ${kind:+s/\b$kind\b//g}" | grep -nwE "$names"
}

failed=0 files=()
check() { # KIND FILE
    local found
    if found=$(names_in "$1" "$2"); then
        echo "$2: $found"
        failed=1
    fi
}
while read -r file; do
    # a kind of tokenizer may be called as a family is, and what is searched, as in beams.c
    kind=$(sed -nE 's/^tokenizer_(.*)[.]c$/\1/p; s/^(beam)s[.]c$/\1/p' <<<"${file##*/}")
    if [ -n "$kind" ]; then
        check "$kind" "$file"
    else
        files+=("$file")
    fi
done < <(find "$source"/ggml-lite "$source"/backends "$source"/models "$source"/library "$source"/tools -name '*.[ch]' -o -name '*.def')
[ ${#files[@]} -gt 100 ]
if names_in "" "${files[@]}" >/dev/null; then
    failed=1
    for file in "${files[@]}"; do
        check "" "$file"
    done
fi
echo "names: $names"
exit $failed
