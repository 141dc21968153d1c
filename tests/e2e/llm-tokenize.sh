#!/bin/bash
# llm-tokenize as users run it: text from every source, JSON lines, mistakes. llm-tokenize.sh PROGRAM MODEL
set -u
tool=$1 model=$2
source "$(dirname "$0")/common.sh"

# gives OUTPUT INPUT ARGS..: what it prints for that standard input
gives() {
    local want=$1 input=$2
    shift 2
    local got
    got=$(printf "$input" | "$tool" -m "$model" "$@" 2>"$tmp/err") || fail "llm-tokenize $*: $(cat "$tmp/err")"
    [ "$got" = "$want" ] || fail "llm-tokenize $*: '$got', not '$want'"
}

# refuses CODE WORDS INPUT ARGS..
refuses() {
    local code=$1 words=$2 input=$3
    shift 3
    printf "$input" | "$tool" -m "$model" "$@" >/dev/null 2>"$tmp/err"
    local got=$?
    [ $got = "$code" ] || fail "llm-tokenize $*: exit code $got, not $code"
    grep -qF -- "$words" "$tmp/err" || fail "llm-tokenize $*: no '$words' in: $(head -c 300 "$tmp/err")"
}

ids='[1, 468, 480]'
printf 'Once upon' >"$tmp/text"
gives "$ids" '' -p 'Once upon' --ids
gives "$ids" 'Once upon' --stdin --ids
gives "$ids" 'Once upon' --ids
gives "$ids" '' -f "$tmp/text" --ids
gives $'[468, 480]\ntokens: 2' '' -p 'Once upon' --ids --no-bos --show-count
gives '[1]' '' -p '<s>' --ids --no-bos
[ "$("$tool" -m "$model" -p '<s>' --ids --no-bos --no-parse-special)" != '[1]' ] || fail "--no-parse-special parses"
gives "$ids"$'\n[1]\n'"$ids" '"Once upon"\n""\r\n "Once\\u0020upon"' --stdin --json-lines
gives 'Once upon' '' --decode "$ids"
# conversations
printf '{%% for m in messages %%}<{{ m.role }}>{{ m.content }}{{ eos_token }}{%% endfor %%}{{ tools }}{{ x }}' >"$tmp/template"
talk='{"messages": [{"role": "user", "content": "Hi"}], "x": "\\u00e9"}'
gives '<user>Hi</s>Noneé' "$talk" --chat - --chat-template "$tmp/template"
gives '[1]' '{"messages": [{"role": "<s>"}]}' --chat - --ids --chat-template <(printf '{{ messages[0].role }}')
[ "$(echo '{"messages": [{"role": "user", "content": "Hi"}]}' | "$tool" --chat - --chat-template "$tmp/template")" = "<user>HiNone" ] ||
    fail "--chat without a model"
refuses 1 "the file has no chat template" "$talk" --chat -
refuses 1 "the file has no chat template (tokenizer.chat_template.tool_use)" "$talk" --chat - --chat-template tool_use
refuses 1 ":1: 'messages' is undefined" '{}' --chat - --chat-template <(printf '{{ messages[0].role }}')
refuses 1 "-: variables:1:2: a name in quotes" '{messages: []}' --chat - --chat-template "$tmp/template"
refuses 1 "not an object" '[]' --chat - --chat-template "$tmp/template"
refuses 1 "No such file" '' --chat "$tmp/nothing" --chat-template "$tmp/template"
refuses 2 "--chat-template is for --chat FILE" '' -p x --chat-template "$tmp/template"
refuses 2 "exclude each other" '' -p x --chat "$tmp/talk"

refuses 1 "is not closed" '[1, 2' --decode -
refuses 1 "is not closed" '[' --decode -
refuses 2 "does not begin with '['" '' --decode '1, 2]'
refuses 2 "'[2' is not a token id" '' --decode '1 [2'
refuses 1 'line 2: the other half of a surrogate pair is missing' '"a"\n"\\ud800"\n' --json-lines
refuses 1 'line 1: there is more text after the string' '"a" "b"\n' --json-lines
refuses 1 'line 2: a JSON string is expected' '"a"\n\n"b"\n' --json-lines
refuses 2 'exclude each other' '' --stdin -p a
refuses 2 'exclude each other' '' --json-lines --decode 1
shown=$("$tool" -m "$model" --show) || fail "--show fails"
for line in 'tokenizer.ggml.model  llama' 'kind                  spm' 'an empty text is      [1]'; do
    grep -qxF -- "$line" <<<"$shown" || fail "--show: no '$line' in: $shown"
done
refuses 2 'exclude each other' '' --show -p a
exit $failed
