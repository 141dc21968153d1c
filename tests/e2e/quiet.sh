#!/bin/bash
# -q: no notes, timings and progress; errors and warnings stay, and results are the same. quiet.sh BIN MODEL
set -u
bin=$1 model=$(realpath "$2")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
wrong=0
fail() {
    echo "$*"
    wrong=1
}
unset NO_COLOR
for k in $(seq 60); do echo "Once upon a time there was a little girl who had a red ball, and she ran to the park with it."; done >text.txt

# same NAME COMMAND..: with -q the command prints the same result and nothing else; without, something else, too
same() {
    local name=$1
    shift
    "$@" >loud.out 2>loud.err || fail "$name: $(cat loud.err)"
    "$@" -q >quiet.out 2>quiet.err || fail "$name -q: $(cat quiet.err)"
    [ -s loud.err ] || fail "$name prints nothing that -q could leave out"
    [ ! -s quiet.err ] || fail "$name -q: $(cat quiet.err)"
    cmp -s loud.out quiet.out || fail "$name -q: another result"
    "$@" --quiet 2>quiet.err >/dev/null || fail "$name --quiet"
    [ ! -s quiet.err ] || fail "$name --quiet: $(cat quiet.err)"
}
same llm-cli "$bin/llm-cli" -p "Once upon" -n 8 --temp 0
same "llm-cli -fa" "$bin/llm-cli" -fa on -p "Once upon" -n 0 # the note comes before -q is read
LLAMA_ARG_CTX_SIZE=5 same environment "$bin/llm-cli" -p "Once upon" -n 0
same guesses "$bin/llm-cli" -p "Once upon" -n 8 --temp 0 --lookup
same split "$bin/llm-cli" -p "Once upon" -n 8 --temp 0 --split cpu=5
if [ -x "$bin/llm-perplexity" ]; then
    same "llm-perplexity -o json" "$bin/llm-perplexity" -f text.txt -c 64 --chunks 2 -o json
fi
# the values so far are progress
for tool in llm-perplexity "llm-imatrix -o i.gguf"; do
    [ -x "$bin/${tool%% *}" ] || continue
    # shellcheck disable=SC2086
    "$bin"/$tool -q -f text.txt -c 64 --chunks 2 >quiet.out 2>quiet.err || fail "$tool -q: $(cat quiet.err)"
    grep -qE '^Final estimate: PPL = [0-9.]+ ' quiet.out && [ "$(wc -l <quiet.out)" = 1 ] && [ ! -s quiet.err ] || fail "$tool -q: $(cat quiet.out quiet.err)"
done
if [ -x "$bin/llm-arch" ]; then
    head -c 200000 "$model" >short.gguf # a note says that it is truncated
    same llm-arch "$bin/llm-arch" show short.gguf
fi

# warnings and errors
"$bin/llm-cli" -q -m no-such-file.gguf >out 2>err
[ $? = 1 ] && grep -q no-such-file err || fail "an error is left out: $(cat err)"
"$bin/llm-cli" -q --frobnicate >out 2>err
[ $? = 2 ] && grep -q frobnicate err || fail "an unknown flag is left out: $(cat err)"
(ulimit -l 0 && "$bin/llm-cli" -q --mlock -p "Once upon" -n 0 >/dev/null 2>err)
if [ "$(id -u)" != 0 ]; then # nothing limits root
    grep -q 'llm-cli: warning: the model could not be locked' err || fail "a warning is left out: $(cat err)"
fi
# a value that looks like it is none; nor is what follows --
"$bin/llm-cli" -fa on -p=-q -n 0 >out 2>err
[ "$(cat out)" = "-q" ] && grep -q '^prompt ' err && grep -q 'note: -fa' err || fail "-p=-q is quiet: $(cat out err)"
[ "$("$bin/llm-cli" -q -p "Once upon" -n 0 2>&1)" = "Once upon" ] || fail "the end of the line"
exit $wrong
