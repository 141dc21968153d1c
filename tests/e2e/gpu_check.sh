#!/bin/sh
# scripts/gpu-check, on the processor and with small models: gpu_check.sh SOURCE BUILD
set -eu
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
"$1/scripts/gpu-check" --quick --no-tests --build "$2" --device cpu --rounds 1 --models "$here" -o "$here/report.md"
for text in '## devices' 'cpu          ' '| toy-llama-q4_0.gguf | pp32 ' 'tg8 @ d128' '## steps of toy-llama' 'all steps succeeded'; do
    grep -qF -e "$text" "$here/report.md" || {
        echo "the report lacks '$text':"
        cat "$here/report.md"
        exit 1
    }
done

# A device that is not there: the report says so, and the exit code is 1.
if "$1/scripts/gpu-check" --quick --no-tests --build "$2" --device vulkan63 --models "$here" -o "$here/none.md"; then
    echo "success on a device that is not there"
    exit 1
fi
grep -q '^failed: ' "$here/none.md"

code=0
"$1/scripts/gpu-check" --peer nothing 2>"$here/usage" || code=$?
[ $code -eq 2 ] && grep -q "'nothing' is not NAME=PATH" "$here/usage"
