#!/bin/bash
# Links between the pages, to files and to headings have existing targets: docs_links.sh SOURCE_DIR
set -eu
cd "$1"
failed=0 n=0
slugs() { # PAGE: its headings as links name them
    sed -n '/^```/,/^```/d; s/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
for page in README.md CONTRIBUTING.md docs/*.md models/builtin/README.md tests/data/README.md tools/train/README.md; do
    while read -r link; do
        case $link in http*|mailto:*) continue ;; esac
        n=$((n + 1))
        file=${link%%#*} heading=
        [ "$link" = "$file" ] || heading=${link#*#}
        path=$page
        [ -z "$file" ] || path=$(dirname "$page")/$file
        if [ ! -e "$path" ]; then
            echo "$page: there is no $file" && failed=1
        elif [ -n "$heading" ] && ! slugs "$path" | grep -qxF -- "$heading"; then
            echo "$page: $path has no heading #$heading" && failed=1
        fi
    done < <(sed '/^```/,/^```/d' "$page" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//')
done
echo "$n links"
[ "$n" -gt 50 ] || failed=1
exit $failed
