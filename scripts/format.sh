#!/usr/bin/env bash
# Formats all C sources by .clang-format. `--check` changes nothing and lists the files that differ; exit code 0: none does.
# Generated tables are left as their generators write them. The format is that of clang-format 14 (Debian 12). Other versions differ
# in details; if only another one is installed, --check exits with code 77, "skipped".
set -euo pipefail
cd "$(dirname "$0")/.."

format=
for name in clang-format-14 clang-format; do
    if "$name" --version 2>/dev/null | grep -q ' version 14\.'; then
        format=$name
        break
    fi
done
if [ -z "$format" ]; then
    echo "skipped: clang-format 14 is not installed (Debian 12: clang-format)" >&2
    exit 77
fi

sources() {
    find ggml-lite backends models library train small tools tests examples -name '*.[ch]' ! -name 'unicode_tables.c' ! -name 'unicode_forms.c' ! -name 'char_width_tables.h' -print0
}
if [ "${1:-}" = --check ]; then
    # clang-format fails if there are differences, and so does xargs; only the list counts.
    files=$({ sources | xargs -0 -n 50 "$format" --dry-run -Werror 2>&1 || true; } |
        sed -n 's/^\([^:]*\):.*clang-format-violations.*/\1/p' | sort -u)
    [ -n "$files" ] || exit 0
    echo "$files"
    echo "the files above do not follow .clang-format: run scripts/format.sh"
    exit 1
fi
sources | xargs -0 -n 50 "$format" -i
