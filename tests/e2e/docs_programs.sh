# Whole programs of a page; scripts of this folder source it.

# docs_programs PAGE FOLDER: writes each C block with a main function to FOLDER/1.c, 2.c, ..
docs_programs() {
    awk -v folder="$2" '
        /^```c$/ { on = 1; text = ""; next }
        /^```$/ { if (on && text ~ /int main\(/) printf "%s", text >(folder "/" ++n ".c"); on = 0 }
        on { text = text $0 "\n" }
        END { exit n < 2 }' "$1"
}

# docs_prints PAGE PROGRAM..: the program runs, and each line that it prints stands in the page between back quotes
docs_prints() {
    local page=$1 line n=0
    shift
    "$@" >"$tmp/printed"
    cat "$tmp/printed"
    while IFS= read -r line; do
        n=$((n + 1))
        grep -qF -- "\`$line\`" "$page" || { echo "$page does not say that it prints '$line'"; return 1; }
    done <"$tmp/printed"
    [ "$n" -gt 0 ]
}
