#!/bin/bash
# llm-perplexity as users run it. llm-perplexity.sh PROGRAM LLM_QUANTIZE MODEL (a Q8_0 file) TEXT..
set -u
perplexity=$1 quantize=$2 model=$3
shift 3
source "$(dirname "$0")/common.sh"
text=$tmp/text.txt
cat "$@" >"$text"

# run CODE ARGS..: the exit code; results in $tmp/stdout, messages in $tmp/stderr
run() {
    local code=$1
    shift
    "$perplexity" "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
    local got=$?
    [ $got = "$code" ] || fail "llm-perplexity $*: exit code $got, not $code: $(head -c 300 "$tmp/stderr")"
    [ -z "$(find "$tmp" -name '*.tmp-*')" ] || fail "llm-perplexity $*: a temporary file is left"
}

expect() { # expect CODE WORDS ARGS..
    local code=$1 words=$2
    shift 2
    run "$code" "$@"
    grep -qF -- "$words" "$tmp/stderr" || fail "llm-perplexity $*: no '$words' in: $(head -c 300 "$tmp/stderr")"
    [ ! -s "$tmp/stdout" ] || fail "llm-perplexity $*: prints results after an error"
}

says() {
    grep -qE -- "$1" "$tmp/stdout" || fail "no '$1' in: $(head -c 2000 "$tmp/stdout")"
}

# value NAME: a number of the JSON output
value() {
    grep -oE "\"$1\": [-0-9.e+]+" "$tmp/stdout" | head -1 | sed 's/.*: //'
}

run 0 -m "$model" -f "$text" -c 32
says '^\[1\][0-9]+\.[0-9]{4},\[2\][0-9]+\.[0-9]{4},'
says '^Final estimate: PPL = [0-9]+\.[0-9]{4} \+/- [0-9]+\.[0-9]{5}$'
cp "$tmp/stdout" "$tmp/first"
awk -F'= ' '/Final/ { exit !($2 + 0 > 1 && $2 + 0 < 40) }' "$tmp/first" || fail "perplexity of a story: $(tail -1 "$tmp/first")"

# neither threads nor pieces change a digit; nor does saving; the built-in model is the same one
run 0 -m "$model" -f "$text" -c 32 -t 3 -ub 5
cmp -s "$tmp/first" "$tmp/stdout" || fail "-t 3 -ub 5 gives other numbers: $(cat "$tmp/stdout")"
run 0 -m "$model" -f "$text" -c 32 --kl-divergence-base "$tmp/base.kld"
cmp -s "$tmp/first" "$tmp/stdout" || fail "saving changes the numbers"
run 0 -m "$model" -f "$text" -c 32 --split copies --device cpu,cpu1,cpu2 --kl-divergence-base "$tmp/copies.kld"
cmp -s "$tmp/first" "$tmp/stdout" || fail "copies give other numbers: $(cat "$tmp/stdout")"
cmp -s "$tmp/base.kld" "$tmp/copies.kld" || fail "copies save other log-probabilities"
grep -qF 'copies on cpu,cpu1,cpu2' "$tmp/stderr" || fail "the copies are not told: $(cat "$tmp/stderr")"
run 0 -f "$text" -c 32
cmp -s "$tmp/first" "$tmp/stdout" || fail "the built-in model gives other numbers"
"$perplexity" -f - -c 32 <"$text" 2>/dev/null | cmp -s "$tmp/first" - || fail "-f - gives other numbers"
[ "$(head -c 8 "$tmp/base.kld")" = _logits_ ] || fail "the saved file is no file of logits"

# chunks by themselves: the first two are the first two of all
run 0 -m "$model" -f "$text" -c 32 --chunks 2
[ "$(head -1 "$tmp/stdout")" = "$(head -1 "$tmp/first" | grep -oE '^\[1\][^,]*,\[2\][^,]*,')" ] || fail "--chunks 2: $(cat "$tmp/stdout")"

# a model and itself
run 0 -m "$model" --kl-divergence-base "$tmp/base.kld" --kl-divergence
says '^Mean    KLD: +-?0\.0000'
says '^Same top p: 100\.000 ±'
says '^Maximum KLD: +0\.0000'
says '^Cor\(ln\(PPL\(Q\)\), ln\(PPL\(base\)\)\): 100\.00%'
ppl=$(awk -F'= ' '/Final/ { print $2 + 0 }' "$tmp/first")
says "Mean PPL\\(Q\\) +: +${ppl%?}"

# f16 weights as bf16: a little off, by the same digits with other threads, pieces and instructions
"$quantize" --allow-requantize --pure "$model" "$tmp/f16.gguf" F16 >/dev/null || fail "llm-quantize F16"
run 0 -m "$tmp/f16.gguf" -f "$text" -c 32 --kl-divergence-base "$tmp/f16.kld"
run 0 -m "$tmp/f16.gguf" --kl-divergence-base "$tmp/f16.kld" --kl-divergence --f16-as-bf16 -o json
cp "$tmp/stdout" "$tmp/rounded"
kld=$(grep -oE '"kld": \{"mean": [0-9.e-]+' "$tmp/stdout" | sed 's/.*: //')
awk -v k="$kld" 'BEGIN { exit !(k > 0.00001 && k < 0.001) }' || fail "KLD of --f16-as-bf16 is $kld"
run 0 -m "$tmp/f16.gguf" --kl-divergence-base "$tmp/f16.kld" --kl-divergence --f16-as-bf16 -o json -t 3 -ub 5 --cpu-mask-isa all
cmp -s "$tmp/rounded" "$tmp/stdout" || fail "--f16-as-bf16 gives other numbers in portable code"

# a coarser model is further off, and its numbers go together
"$quantize" --allow-requantize --pure "$model" "$tmp/q4.gguf" Q4_0 >/dev/null || fail "llm-quantize"
run 0 -m "$tmp/q4.gguf" --kl-divergence-base "$tmp/base.kld" --kl-divergence -o json
for name in ppl ppl_base kld delta_p rms_delta_p same_top_p correlation; do
    grep -q "\"$name\":" "$tmp/stdout" || fail "JSON has no $name"
done
awk -v q="$(value ppl)" -v b="$(value ppl_base)" -v r="$(value ln_ppl_ratio)" 'BEGIN { d = log(q / b) - r; exit !(d < 1e-6 && d > -1e-6) }' ||
    fail "ppl, ppl_base and ln_ppl_ratio do not fit together"
kld=$(grep -oE '"kld": \{"mean": [0-9.e-]+' "$tmp/stdout" | sed 's/.*: //')
awk -v k="$kld" 'BEGIN { exit !(k > 0.001 && k < 1) }' || fail "KLD of Q4_0 is $kld"
cp "$tmp/stdout" "$tmp/json"
run 0 -m "$tmp/q4.gguf" --kl-divergence-base "$tmp/base.kld" --kl-divergence -o json -t 3
cmp -s "$tmp/json" "$tmp/stdout" || fail "-t 3 gives another comparison"
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; json.load(sys.stdin)' <"$tmp/json" || fail "no JSON: $(cat "$tmp/json")"
fi
run 0 -m "$tmp/q4.gguf" --kl-divergence-base "$tmp/base.kld" --kl-divergence -f "$text"
grep -q 'note: the text comes from' "$tmp/stderr" || fail "-f is dropped without a note"
says '^Median  KLD:'
says '^99\.9%   KLD:'
says '^ 5\.0%   Δp:'
says '^RMS Δp    :'

# what cannot be
expect 2 "-f TEXT is missing" -m "$model"
expect 2 "--kl-divergence needs" -m "$model" --kl-divergence
expect 2 "-c: 3 is out of range" -m "$model" -f "$text" -c 3
expect 2 "--chunks 0" -m "$model" -f "$text" -c 32 --chunks 0
expect 2 "is not one of text, json" -m "$model" -f "$text" -o xml
expect 2 "was written with -c 32" -m "$model" --kl-divergence-base "$tmp/base.kld" --kl-divergence -c 64
expect 1 "-f: $tmp/missing.txt: No such file" -m "$model" -f "$tmp/missing.txt"
expect 1 "--arch: $tmp/missing.arch: No such file" --arch "$tmp/missing.arch" -f "$text"
expect 2 "--cpu-mask-isa" --cpu-mask-isa foo -f "$text" -c 32
expect 1 "missing.gguf" -m "$tmp/missing.gguf" -f "$text"
expect 1 "are needed" -m "$model" -f "$text" -c 4096
expect 1 "are needed" -m "$model" -f /dev/null -c 32
expect 1 "none.kld" -m "$model" --kl-divergence-base "$tmp/none.kld" --kl-divergence
expect 1 "not a file of log-probabilities" -m "$model" --kl-divergence-base "$text" --kl-divergence
head -c 3000 "$tmp/base.kld" >"$tmp/cut.kld"
expect 1 "cut.kld: has 3000 bytes" -m "$model" --kl-divergence-base "$tmp/cut.kld" --kl-divergence
expect 1 "$tmp/no/base.kld" -m "$model" -f "$text" -c 32 --kl-divergence-base "$tmp/no/base.kld"
cp "$tmp/base.kld" "$tmp/odd.kld"
size=$(stat -c %s "$tmp/odd.kld")
printf '\377\377\377\377' | dd of="$tmp/odd.kld" bs=1 seek=$((20 + 4 * 32 * $(od -An -tu4 -j16 -N4 "$tmp/odd.kld"))) conv=notrunc 2>/dev/null
expect 1 "odd.kld: chunk 1, token 16: the log-probabilities are not of" -m "$model" --kl-divergence-base "$tmp/odd.kld" --kl-divergence
cp "$tmp/base.kld" "$tmp/ones.kld" # 200 codes of the last position
head -c 400 /dev/zero | tr '\0' '\377' | dd of="$tmp/ones.kld" bs=1 seek=$((size - 600)) conv=notrunc 2>/dev/null
chunks=$(od -An -tu4 -j16 -N4 "$tmp/ones.kld" | tr -d ' ')
run 1 -m "$model" --kl-divergence-base "$tmp/ones.kld" --kl-divergence
grep -qF "ones.kld: chunk $chunks, token 30: the log-probabilities are not of" "$tmp/stderr" || fail "a damaged stretch: $(cat "$tmp/stderr")"
[ "$size" = "$(stat -c %s "$tmp/odd.kld")" ] || fail "the test changed the file's size"
(
    trap - EXIT
    ulimit -f 100
    run 1 -m "$model" -f "$text" -c 32 --kl-divergence-base "$tmp/full.kld"
    grep -qF full.kld "$tmp/stderr" || fail "a full disk: $(cat "$tmp/stderr")"
    [ ! -e "$tmp/full.kld" ] || fail "a full disk leaves a file"
    exit $failed
) || failed=1
# --- more in the file than is read ------------------------------------------------------------------------------------------
printf '%s\n' 'arch llama' 'language 1' 'n = .embedding_length + 0 * .block_count' 'token_embd [n, n_vocab]' \
    'logits = linear(token_embd[token], token_embd)' >"$tmp/tiny.arch"
expect 1 "are not read by $tmp/tiny.arch" -m "$model" -f "$text" -c 32 --arch "$tmp/tiny.arch"
run 0 -m "$model" -f "$text" -c 32 --arch "$tmp/tiny.arch" --ignore-key 'llama.*' --ignore-tensor '*'
grep -q '^llm-perplexity: note: ignored at your request: [0-9]* keys llama.\*, [0-9]* tensors \*$' "$tmp/stderr" || fail "--ignore: $(cat "$tmp/stderr")"
if [ -w /dev/full ]; then
    "$perplexity" -m "$model" -f "$text" -c 32 >/dev/full 2>/dev/null && fail "a full disk goes unnoticed"
fi
exit $failed
