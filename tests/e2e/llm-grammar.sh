#!/bin/bash
# llm-grammar as users run it: texts that fit, texts that don't, grammars that are refused. llm-grammar.sh PROGRAM MODEL
set -u
tool=$1 model=$2
source "$(dirname "$0")/common.sh"

# gives CODE WORDS INPUT ARGS..: the exit code, and words that it prints; nothing more on stderr than that
gives() {
    local want=$1 words=$2 input=$3
    shift 3
    printf '%s' "$input" | "$tool" "$@" >"$tmp/out" 2>&1
    local got=$?
    [ $got = "$want" ] || fail "llm-grammar $* of '$input': exit code $got, not $want: $(cat "$tmp/out")"
    grep -qF -- "$words" "$tmp/out" || fail "llm-grammar $* of '$input': no '$words' in: $(cat "$tmp/out")"
}

schema='{"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": ["x", "y"]}},
  "required": ["a"], "additionalProperties": false}'
printf '%s' "$schema" >"$tmp/s.json"
gives 0 'stdin: accepted' '{"a": 3}' --json-schema "$tmp/s.json" -
gives 0 'stdin: accepted' $' \n{"b":"y","a":17}\n' --json-schema "$schema" -
gives 0 'stdin: accepted' $'{\n    "a": 3,\n    "b": "x"\n}' --json-schema "$schema" -
gives 1 "stdin:1:8: '}', expected " '{"a": 2}' --json-schema "$schema" -
gives 1 'stdin:2:10: ' $'{"a": 3,\n   "b": "é"}' --json-schema "$schema" -
gives 1 'stdin:1:8: the text ends here, expected ' '{"a": 3 ' --json-schema "$schema" -
gives 1 "stdin:1:5: 'ö', expected " '{"é"ö: 3}' --json -
gives 0 'accepted' '[1, {"a": null}, "\u00e9", 1e5, true, []]' --json -
gives 1 "stdin:1:3: '1', expected " '[01]' --json -
gives 0 'accepted' 'aab' --grammar <(printf 'root ::= "a"+ "b"') -
gives 1 'stdin:1:4: ' $'aab\n' --grammar <(printf 'root ::= "a"+ "b"') -
gives 2 'root' 'aab' --grammar <(printf 'r ::= "a"+ "b"') -
# refused by name: the keyword and its place
gives 2 '#/properties/a~1b/minProperties: ' '{}' --json-schema '{"properties": {"a/b": {"minProperties": 2}}}' -
gives 2 '#/items/pattern: ' '{}' --json-schema '{"items": {"type": "string", "pattern": "(a)\\1"}}' -
gives 2 "#/\$ref: 'http://x.example/s.json' is in another document" '{}' --json-schema '{"$ref": "http://x.example/s.json"}' -
gives 2 '--json-schema: #: no JSON value' '{}' --json-schema '{"type": "string", "enum": [1, 2]}' -
gives 2 ':1:2: ' '{}' --json-schema '{a: 1}' -
gives 2 'cannot be used together' '' --json --bench -
gives 2 'one of --grammar' '' -
gives 2 'no file to check' '' --json
gives 2 '-m and -v are for --bench' '' --json -v -
gives 1 'none: ' '' --json "$tmp/none"
# a grammar or a schema may be the value itself
gives 0 'accepted' 'ab' --grammar 'root ::= "a" "b"' -
gives 2 '--grammar:1:10: ' 'ab' --grammar 'root ::= ]' -
gives 0 'accepted' '[1]' --json-schema ' true ' -
# what nobody would see is named
printf '\xef\xbb\xbf{}' >"$tmp/bom"
gives 1 'bom:1:1: a byte order mark (U+FEFF), expected' '' --json "$tmp/bom"
printf '["\xff"]' >"$tmp/stray"
gives 1 'stray:1:3: the byte 0xff, which is not UTF-8, expected' '' --json "$tmp/stray"
printf '["a\x80"]' >"$tmp/stray"
gives 1 'stray:1:4: the byte 0x80, which is not UTF-8, expected' '' --json "$tmp/stray"
# names that are no keywords have no effect, which is said
gives 0 'note: --json-schema: #/properties/a/tpye: not a keyword' '{"a": 1}' --json-schema '{"properties": {"a": {"tpye": "string"}}}' -
gives 0 'note: --json-schema: #/format: not a format' '"a"' --json-schema '{"format": "int32"}' -
# several files: the worst code counts
printf '{"a": 5}' >"$tmp/good"
printf '{"a": true}' >"$tmp/bad"
gives 1 "$tmp/good: accepted" '' --json-schema "$tmp/s.json" "$tmp/bad" "$tmp/good"

# 1 is for texts: a grammar that cannot be read is 2
gives 2 "missing.gbnf: No such file" '' --grammar "$tmp/missing.gbnf" "$tmp/good"
gives 2 "missing.json: No such file" '' --json-schema "$tmp/missing.json" "$tmp/good"
gives 2 "$tmp: " '' --json-schema "$tmp" "$tmp/good"

# --- measuring -------------------------------------------------------------------------------------------------------------
cat >"$tmp/set.jsonl" <<'END'
{"name": "right", "schema": {"type": "integer"}, "tests": [{"valid": true, "data": 5}, {"valid": false, "data": "5"}]}

{"name": "refused", "schema": {"uniqueItems": true}, "tests": [{"valid": true, "data": [5]}]}
END
gives 0 'refused: refused: schema: #/uniqueItems: ' '' --bench -v "$tmp/set.jsonl"
grep -q '^passing *1 *50.0 %' "$tmp/out" && grep -q '^misjudged *0' "$tmp/out" || fail "$(cat "$tmp/out")"
gives 0 'masks ' '' --bench -m "$model" "$tmp/set.jsonl"
mkdir "$tmp/folder"
printf '{"schema": {"maxLength": 1}, "valid": ["é"], "invalid": [{"instance": "éé"}]}' >"$tmp/folder/a.json"
gives 0 'with 2 instances' '' --bench "$tmp/folder"
printf '{"schema": {"maxLength": 1}, "valid": ["aa"]}' >"$tmp/folder/b.json"
gives 1 'a valid instance is rejected: "aa"' '' --bench "$tmp/folder"
printf '{"schema": [}' >"$tmp/folder/c.json"
gives 1 'c.json:1:' '' --bench "$tmp/folder"
exit $failed
