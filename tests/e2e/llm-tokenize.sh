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
gives '<s><user>Hi</s>Noneé' "$talk" --chat - --chat-template "$tmp/template"
gives '[1]' '{"messages": [{"role": "<s>", "content": ""}]}' --chat - --ids --chat-template <(printf '{{ messages[0].role }}')
gives $'<s>\ntokens: 1' '{"messages": [{"role": "<s>", "content": ""}]}' --chat - --show-count --chat-template <(printf '{{ messages[0].role }}')
[ "$(echo '{"messages": [{"role": "user", "content": "Hi"}]}' | "$tool" --chat - --chat-template "$tmp/template")" = "<user>HiNone" ] ||
    fail "--chat without a model"
refuses 1 "the file has no chat template" "$talk" --chat -
refuses 1 "there is no chat template 'tool_use': no file, none in the model (tokenizer.chat_template.tool_use), and the built-in" "$talk" \
    --chat - --chat-template tool_use
gives $'<s><|im_start|>user\nHi<|im_end|>' '{"messages": [{"role": "user", "content": "Hi"}]}' --chat - --chat-template chatml
refuses 1 'stdin: there is no list "messages": write {"messages": [' '{"msgs": []}' --chat - --chat-template <(printf '{{ messages[0].role }}')
refuses 1 "llm-tokenize: stdin:1:2: a name in quotes" '{messages: []}' --chat - --chat-template "$tmp/template"
refuses 1 'stdin: a JSON object is expected, not an array; a list of messages is {"messages": [..]}' '[]' --chat - --chat-template "$tmp/template"
refuses 1 "No such file" '' --chat "$tmp/nothing" --chat-template "$tmp/template"
refuses 2 "--chat-template is for --chat FILE" '' -p x --chat-template "$tmp/template"
refuses 2 "cannot be used together" '' -p x --chat "$tmp/talk"
refuses 2 "do not go with --chat" '' --no-bos --chat "$tmp/talk"
refuses 2 "do not go with --chat" '' --special --chat "$tmp/talk"
refuses 2 "cannot both be read from stdin" '' --chat - --chat-template -
without_model() {
    local words=$1
    shift
    "$tool" "$@" </dev/null >/dev/null 2>"$tmp/err"
    [ $? = 2 ] && grep -qF -- "$words" "$tmp/err" || fail "llm-tokenize $*: no '$words' in: $(cat "$tmp/err")"
}
without_model "--chat needs -m FILE, whose template is used, or --chat-template FILE" --chat "$tmp/talk"
without_model "--ids and --show-count need -m FILE" --chat "$tmp/talk" --chat-template "$tmp/template" --ids
for other in "-p x" "-f $tmp/talk" "--decode 1" --stdin --show; do
    without_model "cannot be used together" --chat "$tmp/talk" --chat-template "$tmp/template" $other
done
# Files without an end, and files that are too large.
refuses 1 "/dev/zero is not a text in UTF-8: byte 0 is 0x00" '' --chat /dev/zero --chat-template "$tmp/template"
refuses 1 ": the file has more than 4 MiB" '{}' --chat - --chat-template <(yes 2>/dev/null)
yes 2>/dev/null | head -c 70000 >"$tmp/sparse"
truncate -s 100G "$tmp/sparse" && refuses 1 "sparse: the file has more than 16 MiB" '' --chat "$tmp/sparse" --chat-template "$tmp/template"
rm -f "$tmp/sparse"
# Names that the template does not read are noted, except those that conversations often have.
echo '{"messages": [], "tools": null, "now": "2025-03-09T14:05:06", "eos_token": "x", "msgs": [], "a": 1}' |
    "$tool" --chat - --chat-template <(printf '{{ messages }}{{ a }}') >"$tmp/out" 2>"$tmp/err"
[ "$(cat "$tmp/out" "$tmp/err")" = "[]1llm-tokenize: note: the template does not read 'msgs'" ] || fail "unread names: $(cat "$tmp/out" "$tmp/err")"

refuses 1 "is not closed" '[1, 2' --decode -
refuses 1 "is not closed" '[' --decode -
refuses 2 "does not begin with '['" '' --decode '1, 2]'
refuses 2 "'[2' is not a token id" '' --decode '1 [2'
refuses 1 'line 2: the other half of a surrogate pair is missing' '"a"\n"\\ud800"\n' --json-lines
refuses 1 'line 1: there is more text after the string' '"a" "b"\n' --json-lines
refuses 1 'line 2: a JSON string is expected' '"a"\n\n"b"\n' --json-lines
refuses 2 'cannot be used together' '' --stdin -p a
refuses 1 "llm-tokenize: --decode: line 3: 'x' is not a token id" '[468]\n\n[x]\n' --json-lines --decode -
refuses 1 'line 2: there is no token 99999999; the last id is ' '[468]\n[99999999]\n' --json-lines --decode -
gives $'"Once"\n"upon"' '' --json-lines --decode $'[468]\n\n[480]'
shown=$("$tool" -m "$model" --show) || fail "--show fails"
for line in 'tokenizer.ggml.model  llama' 'kind                  spm' 'an empty text is      [1]'; do
    grep -qxF -- "$line" <<<"$shown" || fail "--show: no '$line' in: $shown"
done
refuses 2 'cannot be used together' '' --show -p a
refuses 2 'do not go with --decode and --show' '' --show --show-count
refuses 2 'do not go with --decode and --show' '' --decode 1 --ids
refuses 1 "-f: $tmp/txet: No such file or directory; did you mean -f '$tmp/text'?" '' -f "$tmp/txet"
refuses 1 "--chat: $tmp/none.json: No such file or directory" '' --chat "$tmp/none.json"
# a large piece of output is written past the buffer: the reason is given all the same
"$tool" -m "$model" --decode "$(seq -s, 300 2000)" >/dev/full 2>"$tmp/err" && fail 'a full disk is no failure'
grep -q 'could not write to stdout: No space left on device' "$tmp/err" || fail "a full disk: $(cat "$tmp/err")"
exit $failed
