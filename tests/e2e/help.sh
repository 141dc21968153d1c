#!/bin/bash
# --help of every tool and of its subcommands fits a terminal of 80 columns. help.sh TOOL..
set -u
export LC_ALL=C.UTF-8 # characters are counted, not bytes
wrong=0
check() {
    local text
    text=$("$@" --help 2>&1) || { echo "${1##*/} ${*:2} --help fails" && wrong=1; }
    [ -n "$text" ] || { echo "${1##*/} ${*:2} --help says nothing" && wrong=1; }
    while IFS= read -r line; do
        [ ${#line} -le 80 ] || { echo "${1##*/} ${*:2} --help: ${#line} columns: $line" && wrong=1; }
    done <<<"$text"
}
for tool in "$@"; do
    check "$tool"
    case ${tool##*/} in
    llm-arch) commands="check verify doctor graph show diff init embed list" ;;
    llm-bench) commands="make conform ops serve" ;;
    *) commands= ;;
    esac
    for command in $commands; do
        check "$tool" "$command"
    done
done
exit $wrong
