#!/bin/bash
# --help of every tool and of its subcommands: it fits the terminal, each example is a command line that the tool accepts, and
# a word after --help chooses a group. help.sh TOOL..
set -u
export LC_ALL=C.UTF-8 # characters are counted, not bytes
wrong=0 n_examples=0
fail() { # WHAT..
    echo "$*"
    wrong=1
}

# Prints the examples' command lines.
examples_of() {
    COLUMNS=100 "$@" --help | sed -n '/^examples$/,$p' | sed -n 's/^  \(llm-\)/\1/p'
}

check() {
    local text columns line name="${1##*/}${2:+ $2}"
    for columns in 60 80 100; do
        text=$(COLUMNS=$columns "$@" --help 2>&1) || fail "$name --help fails"
        [ -n "$text" ] || fail "$name --help says nothing"
        while IFS= read -r line; do
            # spellings of an option and commands to copy are not broken
            [ $columns = 60 ] && [[ $line == "  "[-l]* ]] && continue
            [ ${#line} -le $columns ] || fail "$name --help: ${#line} columns, not $columns: $line"
        done <<<"$text"
    done
    line=$(sed -n 's/^  \(-[^ ]*\(, -[^ ]*\)*\).*/\1/p' <<<"$text" | tr -d , | tr ' ' '\n' | sort | uniq -d)
    [ -z "$line" ] || fail "$name --help lists twice: $line"
    [ "$(COLUMNS=100000 "$@" --help)" = "$text" ] || fail "$name --help: lines longer than 100 columns"
    [ "$(COLUMNS=1 "$@" --help)" = "$(COLUMNS=40 "$@" --help)" ] || fail "$name --help: a width of 1"
    for columns in "" 0 -5 x; do
        [ "$(COLUMNS=$columns "$@" --help)" = "$(COLUMNS=80 "$@" --help)" ] || fail "$name --help: COLUMNS=$columns"
    done
    while IFS= read -r line; do
        text=$(PATH="${1%/*}:$PATH" bash -c "$line --version" 2>&1) && text=${text%%$'\nthe page'*} && [[ $text =~ ^"${1##*/}"[a-z\ ]*' '[0-9.]+(' ('[0-9a-f]+(-dirty)?')')?$ ]] || fail "$name: the example '$line' is not accepted: $text"
        n_examples=$((n_examples + 1))
    done < <(examples_of "$@")
    [ -n "$(examples_of "$@")" ] || fail "$name --help has no examples"
}

for tool in "$@"; do
    check "$tool"
    for command in $("$tool" --help | sed -n '/^commands$/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
        check "$tool" "$command"
    done
done

bin=${1%/*}
if [ -x "$bin/llm-cli" ]; then
    [ "$("$bin/llm-cli" --help | sed -n '/^sampling$/,/^$/p' | sed '$d')" = "$("$bin/llm-cli" --help sampling)" ] || fail "--help sampling"
    [ "$("$bin/llm-cli" -h SAMPL)" = "$("$bin/llm-cli" --help sampling)" ] || fail "-h SAMPL"
    "$bin/llm-cli" --help nonsense 2>&1 | grep -q "there is no group 'nonsense'; the groups are model and prompt, .*inspection" || fail "--help nonsense"
    if "$bin/llm-cli" --help nonsense >/dev/null 2>&1; then fail "--help nonsense succeeds"; fi
    "$bin/llm-cli" --help general | grep -q -- '--version' || fail "--help general"
    "$bin/llm-cli" --help examples | grep -q '^  llm-cli -p' || fail "--help examples"
    "$bin/llm-cli" --help | grep -q 'Groups of options.*model and prompt' || fail "--help lists no groups"
fi
[ -x "$bin/llm-bench" ] && [ "$("$bin/llm-bench" --help | sed -n '/^commands$/,/^$/p' | grep -c '^  ')" -ge 4 ] || fail "llm-bench --help lists no commands"
[ $n_examples -ge 30 ] || fail "only $n_examples examples"
exit $wrong
