#!/bin/sh
# Every C block of a page is in a file, line by line; a line of "..." stands for omitted lines: docs_excerpts.sh PAGE FILE
set -eu
awk -v page="$1" '
    function find(from,    i, k, at, last) { # the block from a line of the file on; what "..." skips is as short as possible
        for (i = from; i <= n_file; i++) {
            at = i
            for (k = 1; k <= n; k++) {
                if (block[k] == "...") {
                    k++
                    while (at <= n_file && file[at] != block[k]) at++
                }
                if (at > n_file || file[at] != block[k]) break
                at++
            }
            if (k > n) return 1
        }
        return 0
    }
    NR == FNR { file[++n_file] = $0; next }
    /^```c$/ { on = 1; n = 0; line = FNR; next }
    /^```$/ && on {
        on = 0
        n_blocks++
        if (!find(1)) { printf "%s:%d: this is not in the file:\n", page, line; for (k = 1; k <= n; k++) print block[k]; bad = 1 }
        next
    }
    on { block[++n] = $0 }
    END { print n_blocks " excerpts"; exit bad || n_blocks < 5 }
' "$2" "$1"
