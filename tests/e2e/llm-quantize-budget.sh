#!/bin/bash
# llm-quantize --budget as users run it. llm-quantize-budget.sh LLM_QUANTIZE LLM_PERPLEXITY MODEL (a Q8_0 file) TEXT..
set -u
quantize=$1 perplexity=$2 model=$3
shift 3
source "$(dirname "$0")/common.sh"
text=$tmp/text.txt f32=$tmp/f32.gguf out=$tmp/out.gguf
cat "$@" >"$text"
"$quantize" --allow-requantize --pure "$model" "$f32" F32 >/dev/null || fail "llm-quantize F32"

# run CODE ARGS..: the exit code; results in $tmp/stdout, messages in $tmp/stderr
run() {
    local code=$1
    shift
    "$quantize" "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
    local got=$?
    [ $got = "$code" ] || fail "llm-quantize $*: exit code $got, not $code: $(head -c 300 "$tmp/stderr")"
    [ -z "$(find "$tmp" -name '*.tmp-*')" ] || fail "llm-quantize $*: a temporary file is left"
}

# expect CODE WORDS ARGS..: that, with words on standard error, and no file
expect() {
    local code=$1 words=$2
    shift 2
    rm -f "$out"
    run "$code" "$@"
    grep -qF -- "$words" "$tmp/stderr" || fail "llm-quantize $*: no '$words' in: $(head -c 300 "$tmp/stderr")"
    [ ! -e "$out" ] || fail "llm-quantize $*: a file is left"
}

says() {
    grep -qE -- "$1" "$tmp/stdout" || fail "no '$1' in: $(head -c 2000 "$tmp/stdout")"
}

# kld FILE: its divergence from the unquantized model
kld() {
    "$perplexity" -m "$1" --kl-divergence-base "$tmp/base.kld" --kl-divergence -o json 2>/dev/null |
        grep -oE '"kld": \{"mean": [-0-9.e]+' | sed 's/.*: //'
}
"$perplexity" -m "$f32" -f "$text" -c 64 --kl-divergence-base "$tmp/base.kld" >/dev/null 2>&1 || fail "llm-perplexity"
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }

# the whole file, with its keys, is within the budget, and nearly uses it
for size in 1000K 1.2M; do
    run 0 -q --budget "$size" "$f32" "$out"
    bytes=$(awk -v s="$size" 'BEGIN { print (s ~ /K/ ? 1e3 : 1e6) * (s + 0) }')
    got=$(stat -c %s "$out")
    [ "$got" -le "$bytes" ] && [ "$got" -ge $((bytes - bytes / 50)) ] || fail "--budget $size gives $got bytes"
    says '^limit +.* for the file; it has '
    says '^loss +.*the least possible with these sizes'
done
"$perplexity" -m "$out" -f "$text" -c 64 >/dev/null 2>&1 || fail "the file of --budget does not run"
run 0 --bpw 6.5 "$f32" "$out"
says '^size .* 6\.(4[0-9]|50) bits per weight'

# where no choice is estimated to be clearly better than a mix, the mix is taken
run 0 -q "$f32" "$tmp/mix.gguf" Q5_0
run 0 -q --budget "$(stat -c %s "$tmp/mix.gguf")" --types q5_0,q8_0 "$f32" "$out"
says '^choice +Q5_0: no other types are estimated'

# measured: better than a mix of the same size, and as much as the runs on the text said
run 0 -q "$f32" "$tmp/mix.gguf" Q4_K_M
size=$(stat -c %s "$tmp/mix.gguf")
run 0 --budget "$size" --calibration "$text" -c 64 --chunks 3 --loss "$tmp/loss" "$f32" "$out"
grep -q 'passes over the text' "$tmp/stderr" || fail "nothing says how long it takes: $(cat "$tmp/stderr")"
[ "$(stat -c %s "$out")" -le "$size" ] || fail "larger than the mix"
less "$(kld "$out")" "$(kld "$tmp/mix.gguf")" || fail "KL divergence $(kld "$out"), but $(kld "$tmp/mix.gguf") of Q4_K_M"
says '^measured +KL divergence 0\.[0-9]{6} ±'
awk '/^measured/ { r = $4; getline; sub(/\)$/, "", $NF); r /= $NF; exit !(r > 0.5 && r < 2) }' "$tmp/stdout" ||
    fail "losses do not add up: $(grep '^measured' "$tmp/stdout")"

grep -q 'no such file yet' "$tmp/stderr" && fail "--loss with --calibration: $(cat "$tmp/stderr")"
run 0 --dry-run --bpw 7 --loss "$tmp/lose" "$f32"
grep -q "lose: there is no such file yet" "$tmp/stderr" || fail "--loss of a file that is absent: $(cat "$tmp/stderr")"

# the same choice from the file of losses, without the text; with other threads; and measured again
cp "$out" "$tmp/first.gguf"
run 0 -q --budget "$size" --loss "$tmp/loss" "$f32" "$out"
cmp "$tmp/first.gguf" "$out" || fail "the losses that were kept give another file"
cp "$tmp/loss" "$tmp/loss1"
rm "$tmp/loss"
run 0 -q -t 3 --budget "$size" --calibration "$text" -c 64 --chunks 3 --loss "$tmp/loss" "$f32" "$out"
cmp "$tmp/first.gguf" "$out" || fail "the file depends on the threads"
cmp "$tmp/loss" "$tmp/loss1" || fail "the losses depend on the threads"
run 0 -q --budget 2M --loss "$tmp/loss" "$f32" "$tmp/large.gguf"
less "$(kld "$tmp/large.gguf")" "$(kld "$out")" || fail "more room is not better"

# losses that are wrong: mixes run on the text, too, and the best one is taken
sed '/"token_embd.weight"/s/"kl": [^}]*/"kl": 0/' "$tmp/loss" >"$tmp/wrong"
run 0 -q --budget "$size" --calibration "$text" -c 64 --chunks 3 --loss "$tmp/wrong" "$f32" "$out"
says '^choice +[A-Z0-9_]+: on the text, this mix'
[ "$(stat -c %s "$out")" -le "$size" ] || fail "the mix is larger than the limit"
less "$(kld "$tmp/mix.gguf")" "$(kld "$out")" && fail "KL divergence $(kld "$out"), but $(kld "$tmp/mix.gguf") of Q4_K_M"

# fewer passes
rm "$tmp/loss"
run 0 --dry-run --budget "$size" --calibration "$text" -c 64 --chunks 1 --passes 12 "$f32"
grep -qE 'takes ([89]|1[0-2]) passes' "$tmp/stderr" || fail "--passes 12: $(cat "$tmp/stderr")"
grep -q 'note: --passes' "$tmp/stderr" && fail "--passes 12 is enough"
run 0 --dry-run --budget "$size" --calibration "$text" -c 64 --chunks 1 --passes 2 "$f32"
grep -Eq 'note: --passes 2 is too few: [0-9]+ passes are needed, and made' "$tmp/stderr" || fail "--passes 2: $(cat "$tmp/stderr")"

# what the user names
run 0 --dry-run --bpw 9 --types q5_0,q8_0 --tensor-type 'attn_k=f16' --output-tensor-type f16 "$f32"
says '^blk\.0\.attn_k\.weight .* f32 -> f16 '
grep -qE ' -> (q4|q5_1|iq4|q6)' "$tmp/stdout" && fail "--types: another type: $(cat "$tmp/stdout")"

# pictures of the choice, and of its perplexity
run 0 -q --bpw 7 --report "$tmp/report.svg" "$f32" "$tmp/seven.gguf"
for word in '>attn_q<' '>ffn_down<' 'blk.4.ffn_up.weight: ' 'error [0-9.]* %' '</svg>'; do
    grep -q -- "$word" "$tmp/report.svg" || fail "--report: no $word"
done
[ "$(grep -c 'class="bar .*<title>' "$tmp/report.svg")" = "$(grep -oE 'tensors +[0-9]+, [0-9]+ of' "$tmp/stdout" | awk '{ print $3 }')" ] ||
    fail "--report has $(grep -c 'class="bar .*<title>' "$tmp/report.svg") bars, changed are $(grep '^tensors  *[0-9]*,' "$tmp/stdout")"
run 0 --dry-run --report "$tmp/dry.svg" "$f32" Q4_K_M
grep -q '>Color: the type' "$tmp/dry.svg" || fail "--report of a dry run shows errors"
"$perplexity" -m "$tmp/seven.gguf" --kl-divergence-base "$tmp/base.kld" --kl-divergence --plot "$tmp/plot.svg" >"$tmp/stdout" 2>&1 || fail "--plot"
for word in 'Perplexity of seven.gguf' '>99.9 %<' '</svg>'; do
    grep -q -- "$word" "$tmp/plot.svg" || fail "--plot: no $word"
done
"$perplexity" -m "$tmp/seven.gguf" --kl-divergence-base "$tmp/base.kld" --kl-divergence --chunks 1 --plot "$tmp/one.png" >"$tmp/stdout" 2>&1 || fail "--plot of one chunk"
grep -q 'one.png is an SVG file' "$tmp/stdout" || fail "no note about the suffix .png"
grep -q 'within 7 bits: 32.00' "$tmp/report.svg" || fail "the title of --report lacks the limit"
grep -q 'as Q4_K_M: 32.00' "$tmp/dry.svg" || fail "the title of --report lacks the mix"
[ "$(grep -cE '>(1e-[0-9]*|0\.0*1)<' "$tmp/plot.svg")" -ge 5 ] || fail "the divergence has no axis"
grep -q 'class="line s0" data-series="0" d="M[0-9. ]* L[0-9. ]*"' "$tmp/one.png" || fail "one chunk has no line"
if command -v python3 >/dev/null; then
    python3 "$(dirname "$0")/svg_check.py" "$tmp/report.svg" "$tmp/dry.svg" "$tmp/plot.svg" "$tmp/one.png" || fail "a picture"
fi
expect 1 "its folder does not exist" --bpw 7 --report "$tmp/no/report.svg" "$f32" "$out"

# what cannot be
expect 2 "700 kB" --budget 700K "$f32" "$out"
expect 2 "the smallest choice has" --budget 700K "$f32" "$out"
expect 2 "--bpw: 3.000 bits per weight is too little: with the types of --types, the smallest" --bpw 3 --types q8_0 "$f32" "$out"
expect 2 "give one of them" --bpw 3 --budget 1M "$f32" "$out"
expect 2 "'4.2X' is not a size" --budget 4.2X "$f32" "$out"
expect 2 "'-1' is not a size" --budget=-1 "$f32" "$out"
expect 2 "'q9' is not a type" --bpw 6 --types q5_0,q9 "$f32" "$out"
expect 2 "instead of TYPE" --bpw 6 "$f32" "$out" Q4_0
expect 2 "IN and OUT are needed" --bpw 6 "$f32"
expect 2 "is for choosing types under a limit" --loss "$tmp/loss" "$f32" "$out" Q4_0
expect 2 "is for the text of --calibration" --bpw 6 --chunks 2 "$f32" "$out"
expect 2 "first join the experts" --bpw 6 --merge-experts "$f32" "$out"
expect 1 "is already q8_0" --bpw 6 "$model" "$out"
expect 1 "needed" --bpw 6 --calibration /dev/null "$f32" "$out"
expect 1 "missing.txt" --bpw 6 --calibration "$tmp/missing.txt" "$f32" "$out"

# files of losses that are damaged, or of something else
loss=$tmp/loss1
try() { # try WORDS SED: the file, changed, is refused with these words
    sed "$2" "$loss" >"$tmp/odd"
    cmp -s "$loss" "$tmp/odd" && fail "try '$1': nothing changed"
    expect 1 "$1" --bpw 6 --loss "$tmp/odd" "$f32" "$out"
    grep -qF "$tmp/odd" "$tmp/stderr" || fail "the file is not named: $(cat "$tmp/stderr")"
}
digest=$(printf 'ab%.0s' {1..32})
try "was measured with another model" 's/"model": "\([0-9a-f]*\)"/"model": "'"${digest:0:16}"'"/'
try "importance matrix" 's/"imatrix": "[0-9a-f]*"/"imatrix": "'"$digest"'"/'
try "'text' is missing, or not a digest" 's/"text": "/&\\u001b[31m/'
try "'model' is missing, or not a digest" 's/"model": "/&a/'
try "version" 's/"version": 1/"version": 2/'
try "'version' is missing" 's/"version"/"v"/'
try "is no number" '0,/"kl": [^}]*/s//"kl": -1/'
try "is no number" '0,/"q8_0": [^,}]*/s//"q8_0": "x"/'
try "without an error" '0,/"probe": "[^"]*"/s//"probe": "q2_k"/'
# rows of 128 are no whole blocks of q6_k, and no weight can be written as i32
for type in q6_k i32; do
    try "measured in $type, which cannot" '0,/"errors": {\(.*\)"probe": "[^"]*"/s//"errors": {"'$type'": 0.1, \1"probe": "'$type'"/'
done
{
    sed '/"tensors"/q' "$loss"
    for ((i = 0; i < 65537; i++)); do printf '"t%d": {"errors": {}},\n' $i; done
    echo '"t": {"errors": {}}}}'
} >"$tmp/many"
expect 1 "has 65538 tensors, at most 65536" --bpw 6 --loss "$tmp/many" "$f32" "$out"
# absurd numbers give a choice
sed 's/\("q[2-9][^"]*": \)[0-9.e-]*/\11.7e308/g; s/"kl": [0-9.e-]*/"kl": 1e308/g' "$loss" >"$tmp/absurd"
grep -q 1.7e308 "$tmp/absurd" || fail "no absurd losses"
run 0 -q --bpw 6 --loss "$tmp/absurd" "$f32" "$out"
# the limit counts the padding that the file will have; a file that cannot be written is not measured
run 0 -q --budget 1M --override-kv general.alignment=int:4096 "$f32" "$out"
[ "$(stat -c %s "$out")" -le 1000000 ] || fail "--budget with an alignment: $(stat -c %s "$out") bytes"
expect 1 "alignment" --budget 1M --override-kv general.alignment=int:3 "$f32" "$out"
head -c 1000 "$loss" >"$tmp/cut"
expect 1 "$tmp/cut" --bpw 6 --loss "$tmp/cut" "$f32" "$out"
printf 'Another text. %.0s' {1..100} >"$tmp/other.txt"
expect 1 "was measured with another text" --bpw 6 --loss "$loss" --calibration "$tmp/other.txt" -c 64 --chunks 3 "$f32" "$out"
expect 1 "was measured with -c 64 and 3 chunks" --bpw 6 --loss "$loss" --calibration "$text" -c 64 --chunks 2 "$f32" "$out"
expect 2 "--loss" --bpw 6 --loss "$f32" "$f32" "$out"

# Ctrl-C leaves no model, but keeps the passes
"$quantize" --bpw 6 --calibration "$text" -c 64 --loss "$tmp/kept" "$f32" "$out" >"$tmp/stdout" 2>"$tmp/stderr" &
pid=$!
for ((i = 0; i < 1000; i++)); do
    grep -q probe "$tmp/kept" 2>/dev/null && break
    sleep 0.01
done
kill -INT $pid
wait $pid
if [ $? = 130 ]; then
    grep -q 'interrupted after [0-9]* of [0-9]* passes; .* are kept in' "$tmp/stderr" || fail "SIGINT: $(cat "$tmp/stderr")"
    [ ! -e "$out" ] || fail "SIGINT: a file is there"
else
    grep -q probe "$tmp/kept" || fail "SIGINT: $(cat "$tmp/stderr")" # it was faster than the signal
fi
exit $failed
