#!/bin/bash
# How llm-cli chooses tokens, where a text ends, and where it goes. llm-cli-text.sh PROGRAM
set -u
cli=$1
source "$(dirname "$0")/common.sh"

# refused CODE WORDS ARGS..: the exit code, and the words in the message; nothing is printed
refused() {
    local code=$1 words=$2
    shift 2
    exits "$code" "$cli" -p x -n 1 "$@"
    prints "$words" "$tmp/err"
    [ ! -s "$tmp/out" ] || fail "llm-cli $*: printed before it failed"
}

# writes ARGS..: prints the text alone
writes() {
    local n="-n 40" seed="-s 3" # unless ARGS have others
    case " $* " in *" -n "*) n= ;; esac
    case " $* " in *" -s "*) seed= ;; esac
    "$cli" -p "Once upon a time" --no-display-prompt $n $seed "$@" 2>"$tmp/err" </dev/null || fail "llm-cli $*: $(cat "$tmp/err")"
}

same() { # ARGS..: the same text as with the defaults
    [ "$(writes "$@")" = "$default" ] || fail "llm-cli $*: another text than with the defaults"
}

other() {
    [ "$(writes "$@")" != "$default" ] || fail "llm-cli $*: the text of the defaults"
}

# --- sampling ------------------------------------------------------------------------------------------------------------
default=$(writes)
[ "$(wc -w <<<"$default")" -gt 20 ] || fail "few words: $default"
# the defaults, spelled out
same --samplers 'penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature'
same --sampling-seq edskypmxt -t 2
same --sampler-seq kpmt
same --samplers 'top-k;nucleus;min-p;temp;'
same --typical 1 --top-n-sigma -1 --xtc-probability 0 --xtc-threshold 0.1 --dynatemp-range 0 --dynatemp-exp 1 --mirostat 0 \
    --mirostat-ent 5 --mirostat-lr 0.1 --presence-penalty 0 --frequency-penalty 0 --dry-multiplier 0 --dry-base 1.75 \
    --dry-allowed-length 2 --dry-penalty-last-n -1
# what is off has no parameters
same --dry-base 3 --dry-allowed-length 0 --dry-sequence-breaker none --mirostat-ent 1 --xtc-threshold 0.4 --dynatemp-exp 2
same --xtc-probability 1 --xtc-threshold 0.6
same --logit-bias 5+0 -l 7-0
# each changes something
other --samplers 'top_k;temperature'
other --typical 0.2
other --top-nsigma 0.1 --temp 2
other --xtc-probability 1
other --dynatemp-range 0.8 --temp 1.5
other --mirostat 2 --mirostat-ent 8 --temp 2
other --presence-penalty 3
other --frequency-penalty 3
other --dry-multiplier 50 --dry-allowed-length 0 --dry-sequence-breaker none
# the order counts: after a temperature of 3 more tokens reach top-p, and fewer after one of 0.1
[ "$(writes --temp 3 --sampling-seq pt --top-p 0.5)" != "$(writes --temp 3 --sampling-seq tp --top-p 0.5)" ] ||
    fail "the order of stages has no effect"
# greedy: only what changes logits counts, in any order
greedy=$(writes --temp 0)
[ "$(writes --temp 0 --sampling-seq xyt --xtc-probability 1 --typical 0.1 -s 4)" = "$greedy" ] || fail "greedy is not the likeliest token"
[ "$(writes --temp 0 --sampling-seq k --mirostat 2)" = "$greedy" ] || fail "greedy without the stage temperature"
[ "$(writes --temp 0 --presence-penalty 5)" != "$greedy" ] || fail "greedy ignores penalties"
[ "$(writes --temp 0 --presence-penalty 5 --samplers 'top_k;top_p')" = "$greedy" ] || fail "greedy has a stage that is not in the order"
# a seed gives one text on any number of threads, with everything on
all="--temp 1.3 --xtc-probability 0.5 --typical 0.9 --top-nsigma 2 --dynatemp-range 0.5 --dry-multiplier 1 --presence-penalty 0.5 -l 300-1"
[ "$(writes $all -t 1)" = "$(writes $all -t 2 -ub 3)" ] || fail "a seed gives two texts"
# biases: all tokens but one are forbidden, then all
but=$(for id in $(seq 0 2047); do [ "$id" = 300 ] || printf -- '-l %s-inf ' "$id"; done)
one=$(writes $but -n 1)
[ -n "$one" ] && [ "$(writes $but -n 5 -s 8 --temp 5)" = "$one$one$one$one$one" ] || fail "forbidden tokens are chosen: $(writes $but -n 5)"
exits 1 "$cli" -p x -n 1 $but -l 300-inf
prints "the biases forbid all of them" "$tmp/err"

refused 2 "--samplers: 'tpo_k' is not a stage; there are penalties (e), dry (d)," --samplers 'tpo_k;temperature'
refused 2 "--samplers: stage top_k is named twice" --samplers 'top_k;top_k'
refused 2 "--samplers: the value NAMES is empty" --samplers ''
refused 2 "--sampling-seq: 'z' is not a stage" --sampling-seq kz
refused 2 "--samplers and --sampling-seq cannot be used together" --samplers top_k --sampling-seq k
refused 2 "there is no flag '--mirostat 1': only version 2 is supported" --mirostat 1
refused 2 "--typical: 1.1 is out of range, 0 to 1 is allowed" --typical 1.1
refused 2 "--xtc-threshold: -1 is out of range" --xtc-threshold -1
refused 2 "--dry-base: 0.9 is out of range, 1 to 1000 is allowed" --dry-base 0.9
refused 2 "--dry-penalty-last-n: -2 is out of range" --dry-penalty-last-n -2
refused 2 "--presence-penalty: 'nan' is not a number" --presence-penalty nan
for bias in 5 5x +1 5+ 5++1 5+inf 5+nan 5-1e99 99999999999-1 5-inf2; do
    refused 2 "--logit-bias: '$bias' is not a token's id, a sign and a number, such as" --logit-bias "$bias"
done
refused 2 "--logit-bias: token 2048 is not in the vocabulary of 2048" --logit-bias 2048+1
refused 2 "there is no flag '--adaptive-target': adaptive-p is not supported" --adaptive-target 1

# --- where a text ends -----------------------------------------------------------------------------------------------------
text=$(writes --temp 0 -n 60 | head -n 1)
for from in 3 10 11 17 24 33; do # strings that begin and end inside of words
    stop=${text:$from:9}
    before=${text%%"$stop"*}
    [ "$(writes --temp 0 -n 60 --stop "$stop"; echo .)" = "$before
." ] || fail "--stop '$stop': $(writes --temp 0 -n 60 --stop "$stop")"
    [ "$(writes --temp 0 -n 60 -r "$stop"; echo .)" = "$before$stop
." ] || fail "-r '$stop': $(writes --temp 0 -n 60 -r "$stop")"
done
[ "$(writes --temp 0 -n 60 --stop "${text:30:5}" -r nowhere --stop "${text:12:7}")" = "${text%%"${text:12:7}"*}" ] ||
    fail "of two stop strings the later one counts"
# one that never comes, but nearly does until the end
[ "$(writes --temp 0 -n 60 --stop "${text:5:200}!")" = "$(writes --temp 0 -n 60)" ] || fail "text is lost that is no stop string"
writes -n 200 --ignore-eos --stop '\n' >"$tmp/line"
[ "$(wc -l <"$tmp/line")" = 1 ] || fail "--stop '\\n'"
[ "$(writes -n 200 --ignore-eos --no-escape --stop '\n' | wc -l)" -gt 1 ] || fail "--no-escape --stop '\\n'"
# a control token, spelled out, ends the text, too
[ "$(writes --ignore-eos -n 300 --temp 0 --stop '</s>' | wc -w)" -lt "$(writes --ignore-eos -n 300 --temp 0 | wc -w)" ] ||
    fail "--stop with a control token"
refused 2 "--stop: the value TEXT is empty" --stop ''

# --- where it goes ----------------------------------------------------------------------------------------------------------
exits 0 "$cli" -p "Once upon a time" -n 20 --temp 0
cp "$tmp/out" "$tmp/expected"
echo old >"$tmp/text"
exits 0 "$cli" -p "Once upon a time" -n 20 --temp 0 -o "$tmp/text"
cmp -s "$tmp/text" "$tmp/expected" || fail "-o: $(cat "$tmp/text")"
[ ! -s "$tmp/out" ] || fail "-o: the text also goes to standard output"
mkfifo "$tmp/pipe"
cat "$tmp/pipe" >"$tmp/piped" &
exits 0 "$cli" -p "Once upon a time" -n 20 --temp 0 -o "$tmp/pipe"
wait $!
cmp -s "$tmp/piped" "$tmp/expected" || fail "-o to a pipe: $(cat "$tmp/piped")"
# a full disk: the file that was there is still there, and nothing besides
mkdir "$tmp/disk"
echo old >"$tmp/disk/text"
err=$(ulimit -f 0; exec "$cli" -p "Once upon a time" -n 20 -o "$tmp/disk/text" 2>&1 >/dev/null </dev/null)
[ $? = 1 ] && grep -q -- "-o: $tmp/disk/text: " <<<"$err" || fail "-o to a full disk: $err"
[ "$(cat "$tmp/disk/text")" = old ] && [ "$(ls "$tmp/disk")" = text ] || fail "-o to a full disk: $(ls "$tmp/disk")"
exits 1 "$cli" -p "Once upon a time" -n 20 -o /dev/full
prints "-o: /dev/full: cannot be written: No space left on device" "$tmp/err"
# an error before the text leaves it, too
exits 1 "$cli" -p "Once upon a time" -c 2 -o "$tmp/disk/text"
[ "$(cat "$tmp/disk/text")" = old ] && [ "$(ls "$tmp/disk")" = text ] || fail "-o and a long prompt: $(ls "$tmp/disk")"
refused 1 "-o: $tmp/none/text: " -o "$tmp/none/text"
exits 2 "$cli" -f "$tmp/disk/text" -o "$tmp/disk/text"
prints "-o: $tmp/disk/text is also the file of -f" "$tmp/err"
# Ctrl-C: what was written so far is kept
"$cli" -p "Once upon a time" -n -1 --ignore-eos --on-full shift -o "$tmp/disk/text" >/dev/null 2>"$tmp/err" </dev/null &
pid=$!
until [ "$(cat "$tmp"/disk/text.tmp-* 2>/dev/null | wc -c)" -gt 100 ]; do
    kill -0 $pid 2>/dev/null || break
    sleep 0.05
done
kill -INT $pid
wait $pid
[ $? = 130 ] && grep -q '^Once upon a time' "$tmp/disk/text" && [ "$(ls "$tmp/disk")" = text ] || fail "-o and Ctrl-C: $(cat "$tmp/err")"
# colours: none in a pipe or a file, unless they are asked for
exits 0 "$cli" -p "Once upon a time" -n 20 --temp 0 --color
cmp -s "$tmp/out" "$tmp/expected" || fail "--color in a pipe"
exits 0 "$cli" -p "Once upon a time" -n 20 --temp 0 --color always
sed $'s/\x1b\\[[0-9]*m//g' "$tmp/out" | cmp -s - "$tmp/expected" || fail "--color always changes the text"
grep -q $'^\x1b\\[33mOnce upon a time\x1b\\[0m' "$tmp/out" || fail "--color always: $(head -n 1 "$tmp/out")"
refused 2 "--color: 'red' is not one of auto, always, never" --color=red

# --- constrained output --------------------------------------------------------------------------------------------------
printf 'root ::= " yes" | " no"\n' >"$tmp/g.gbnf"
for flags in "--grammar $tmp/g.gbnf" "--grammar-file $tmp/g.gbnf"; do
    case "$(writes $flags --temp 2)" in ' yes' | ' no') ;; *) fail "$flags: $(writes $flags --temp 2)" ;; esac
done
[ "$(writes --grammar 'root ::= "a"{5}')" = aaaaa ] || fail "--grammar as a text"
[ "$(writes --json-schema '{"const": [true, null]}' | tr -d ' \n')" = '[true,null]' ] || fail "--json-schema as a text"
printf '{"enum": [false]}' >"$tmp/s.json"
[ "$(writes -jf "$tmp/s.json")" = false ] || fail "-jf: $(writes -jf "$tmp/s.json")"
[ "$(writes -j "$tmp/s.json")" = false ] || fail "-j"
for seed in 1 2 3; do # guesses change nothing
    plain=$(writes --json --temp 1.5 -s $seed -n 60)
    [ "$(writes --json --temp 1.5 -s $seed -n 60 --lookup)" = "$plain" ] || fail "--json --lookup"
done
refused 2 "--grammar:1:10: error" --grammar 'root ::= noo'
refused 2 "'strin' is not a type" --json-schema '{"type": "strin"}'
refused 2 "cannot be used together" --json --grammar 'root ::= "a"'
refused 1 "No such file" --grammar "$tmp/none.gbnf"
"$cli" -p x -n 3 --grammar 'root ::= "abcdefgh"{40}' >"$tmp/out" 2>"$tmp/err" </dev/null && fail "a text that cannot end within -n"
prints "not complete by its grammar after 3 tokens" "$tmp/err"

# --- a run as JSON -------------------------------------------------------------------------------------------------------
text=$(writes --temp 0)
writes --temp 0 --json-output >"$tmp/run.json"
[ "$(wc -l <"$tmp/run.json")" = 1 ] || fail "--json-output: $(wc -l <"$tmp/run.json") lines"
if command -v python3 >/dev/null; then
    python3 - "$tmp/run.json" "$text" <<'END' || fail "--json-output: $(cat "$tmp/run.json")"
import json, sys
run = json.loads(open(sys.argv[1], encoding="utf-8").read())
assert run["text"] == sys.argv[2] and run["prompt"] == "Once upon a time" and run["seed"] == 3
assert len(run["ids"]) == len(run["logprobs"]) == 40 == run["timings"]["generated_tokens"] and run["finish"] == "length"
assert all(p <= 0 for p in run["logprobs"]) and len(run["prompt_ids"]) == run["timings"]["prompt_tokens"]
assert run["sampling"]["temp"] == 0 and len(run["sampling"]["stages"]) == 9 and len(run["model"]["digest"]) == 16
open(sys.argv[1] + ".ids", "w").write(",".join(map(str, run["prompt_ids"])))
END
    again=$("$cli" --tokens "$(cat "$tmp/run.json.ids")" -n 40 --temp 0 --no-display-prompt 2>/dev/null)
    [ "$again" = "$text" ] || fail "--json-output: its ids give another text"
fi
said=$("$cli" -m builtin:chat -st -p "Hello!" --temp 0 -n 30 2>/dev/null </dev/null)
"$cli" -m builtin:chat -st -p "Hello!" --temp 0 -n 30 --json-output >"$tmp/run.json" 2>/dev/null </dev/null || fail "-st --json-output"
grep -qF "\"content\": \"$said\", \"tool_calls\": [], \"finish\": \"stop\"" "$tmp/run.json" || fail "-st --json-output: $(cat "$tmp/run.json")"
[ "$(wc -l <"$tmp/run.json")" = 1 ] || fail "-st --json-output: more than a line"
"$cli" -m builtin:chat -st -p "Hello!" --temp 0 -n 30 --json-output --reasoning show >"$tmp/run.json" 2>/dev/null </dev/null
grep -qF "\"content\": \"$said\"" "$tmp/run.json" || fail "--reasoning show --json-output: $(cat "$tmp/run.json")"
printf 'Hello!\nBye.\n' | "$cli" -m builtin:chat -cnv --temp 0 -n 30 --json-output >"$tmp/run.json" 2>/dev/null
[ "$(grep -c '^{"prompt": .*}$' "$tmp/run.json")" = 2 ] || fail "-cnv --json-output: $(cat "$tmp/run.json")"
refused 2 "--json-output and -i cannot be used together" -i --json-output
writes --json-output -o "$tmp/file.json" >"$tmp/out"
[ -s "$tmp/file.json" ] && [ ! -s "$tmp/out" ] || fail "--json-output -o"
# --- a choice of texts ----------------------------------------------------------------------------------------------------
chosen() {
    "$cli" -p "Once upon a time there was a little" "$@" 2>"$tmp/err" </dev/null || fail "llm-cli $*: $(cat "$tmp/err")"
}
chosen --choose " dog" --choose " girl" >"$tmp/out"
[ "$(awk '{print $3}' "$tmp/out" | tr '\n' ' ')" = "girl dog " ] || fail "--choose: $(cat "$tmp/out")"
grep -q '^0\.9[0-9]* *-0\.[0-9]*   girl$' "$tmp/out" || fail "--choose: $(cat "$tmp/out")"
chosen --choose " dog" --choose " girl" --json-output -o "$tmp/choice.json"
grep -q '^{"choices": \[{"label": " girl", "probability": 0\.9.*"n_tokens": 1}\], "with_end": false}$' "$tmp/choice.json" || fail "--choose: $(cat "$tmp/choice.json")"
chosen --choose " girl" --choose " girl named" --json-output | grep -q '"with_end": true}$' || fail "--choose: a text that begins another"
chosen --choose " dog" --choose-with-end --json-output | grep -q '"with_end": true}$' || fail "--choose-with-end"
"$cli" -m builtin:chat -st -p "Is a cat an animal?" --choose Yes --choose No >"$tmp/out" 2>"$tmp/err" </dev/null || fail "-st --choose: $(cat "$tmp/err")"
[ "$(wc -l <"$tmp/out")" = 2 ] || fail "-st --choose: $(cat "$tmp/out")"
refused 2 "label[0] and label[1] are the same" --choose " a" --choose " a"
refused 2 "--choose and --ignore-eos cannot be used together" --choose " a" --ignore-eos
refused 2 "--choose LABEL" --choose-per-token
exits 2 "$cli" --choose " a" </dev/null
prints "--choose needs a prompt" "$tmp/err"
exit $failed
