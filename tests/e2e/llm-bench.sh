#!/bin/bash
# llm-bench as users run it: models made, measured, compared; mistakes. llm-bench.sh BENCH CLI SOURCE_DIR
set -u
bench=$1 cli=$2 source=$3
source "$(dirname "$0")/common.sh"

# does ARGS..: exit code 0, its output in $tmp/out
does() {
    "$bench" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || fail "llm-bench $*: exit code $?: $(head -c 300 "$tmp/err")"
}

# refuses CODE WORDS ARGS..: the exit code, the words on standard error, nothing on standard output
refuses() {
    local code=$1 words=$2
    shift 2
    "$bench" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    local got=$?
    [ $got = "$code" ] || fail "llm-bench $*: exit code $got, not $code: $(head -c 300 "$tmp/err")"
    grep -qF -- "$words" "$tmp/err" || fail "llm-bench $*: no '$words' in: $(head -c 300 "$tmp/err")"
    [ ! -s "$tmp/out" ] || fail "llm-bench $*: writes to standard output"
}

# has WORDS: the last output holds them
has() {
    grep -qF -- "$1" "$tmp/out" || fail "no '$1' in: $(head -c 600 "$tmp/out")"
}

# --- make

does make --list # builds every shape's graph by its descriptor
has '1100.0 M'   # TinyLlama
has 'gpt2-124m'
for shape in toy-llama toy-gpt2 toy-moe toy-lfm2; do
    for type in f32 f16 q8_0 q4_0; do
        does make $shape $type "$tmp/$shape-$type.gguf"
        "$cli" -m "$tmp/$shape-$type.gguf" -p 'hello world' -n 2 --temp 0 >/dev/null 2>"$tmp/err" </dev/null ||
            fail "$shape $type does not run: $(head -c 300 "$tmp/err")"
    done
done
does make minilm-l6 q8_0 "$tmp/encoder.gguf" --layers 1 --vocab 400
embed=$(dirname "$cli")/llm-embed
"$embed" -m "$tmp/encoder.gguf" -p 'ab c' >"$tmp/text" 2>"$tmp/err" </dev/null || fail "a made encoder does not run: $(head -c 300 "$tmp/err")"
"$embed" -m "$tmp/encoder.gguf" --tokens 101,104,131,106,102 >"$tmp/ids" 2>/dev/null </dev/null # [CLS] a ##b c [SEP]
cmp -s "$tmp/text" "$tmp/ids" || fail "a made encoder has another vocabulary"
toy=("$cli" -m "$tmp/toy-llama-f16.gguf" --tokens 1,2,3,4,5,6,7,8,9,10 -n 1 --temp 0)
"${toy[@]}" --logits "$tmp/f16.npy" >/dev/null 2>&1 </dev/null
"${toy[@]}" --logits "$tmp/bf16.npy" --f16-as-bf16 >/dev/null 2>&1 </dev/null || fail "--f16-as-bf16"
cmp -s "$tmp/f16.npy" "$tmp/bf16.npy" && fail "--f16-as-bf16 changes nothing"
"${toy[@]}" --logits "$tmp/again.npy" --f16-as-bf16 --cpu-mask-isa all -t 3 -ub 4 >/dev/null 2>&1 </dev/null
cmp -s "$tmp/bf16.npy" "$tmp/again.npy" || fail "--f16-as-bf16 has other bits in portable code"
"${toy[@]}" --plan=nodes 2>/dev/null </dev/null | grep -q ' repacked ' && fail "f16 weights are repacked"
"${toy[@]}" --plan=nodes --f16-as-bf16 2>/dev/null </dev/null | grep -q ' repacked ' || fail "--f16-as-bf16 is not in the plan"
does make toy-llama q4_0 "$tmp/again.gguf"
cmp -s "$tmp/toy-llama-q4_0.gguf" "$tmp/again.gguf" || fail "the same seed makes another file"
does make toy-llama q4_0 "$tmp/again.gguf" --seed 2
cmp -s "$tmp/toy-llama-q4_0.gguf" "$tmp/again.gguf" && fail "another seed makes the same file"
does make toy-llama q4_0 "$tmp/again.gguf" --layers 1 --vocab 400
# an error that all tests have is said once
printf 'arch llama\nlanguage 1\ntoken_embd [.embedding_length, n_vocab]\nlogits = linear(token_embd[token], token_embd)\n' >"$tmp/odd.arch"
"$bench" -m "$tmp/toy-llama-f32.gguf" --arch "$tmp/odd.arch" -p 4 -n 2 -r 1 --no-limits >/dev/null 2>"$tmp/err" </dev/null && fail "unread tensors"
[ "$(grep -c 'not read by' "$tmp/err")" = 1 ] || fail "the same error twice: $(head -c 900 "$tmp/err")"
grep -q 'llm-bench: 1 more test failed for the same reason' "$tmp/err" || fail "how many tests failed: $(head -c 900 "$tmp/err")"
refuses 2 "did you mean 'toy-llama'" make toy-lama q4_0 "$tmp/x.gguf"
refuses 2 "as 'i32'" make toy-llama i32 "$tmp/x.gguf"
refuses 2 '3 layers' make toy-llama q4_0 "$tmp/x.gguf" --layers 3
refuses 1 'at least 288' make toy-llama q4_0 "$tmp/x.gguf" --vocab 3
refuses 1 'no/such' make toy-llama q4_0 "$tmp/no/such/x.gguf"
refuses 2 'SHAPE, TYPE' make toy-llama
refuses 2 'no SHAPE' make --like "$tmp/toy-moe-q8_0.gguf" toy-llama q4_0 "$tmp/x.gguf"
refuses 1 'no/such' make --like no/such q4_0 "$tmp/x.gguf"
refuses 1 '--like' make --like "$0" q4_0 "$tmp/x.gguf"
[ ! -e "$tmp/x.gguf" ] || fail "a file is left"
does make --like "$source/models/builtin/words.gguf" q8_0 "$tmp/x.gguf" --vocab 288 # has 48 positions
if [ -x "$(dirname "$bench")/llm-gguf" ]; then
    "$(dirname "$bench")/llm-gguf" set "$tmp/toy-llama-q4_0.gguf" llama.attention.head_count=u64:4611686018427387904 -o "$tmp/heads.gguf" >/dev/null 2>"$tmp/err" || fail "llm-gguf set: $(cat "$tmp/err")"
    refuses 1 'head_count = 4.6' make --like "$tmp/heads.gguf" q4_0 "$tmp/y.gguf"
    ! grep -q 'runtime error' "$tmp/err" || fail "$(cat "$tmp/err")"
fi
rm -f "$tmp/x.gguf"

# --- measuring

quick=(-p 8 -n 4 -r 3 --no-limits)
columns() { # python: the last output's rows, checked by the expression in $1 over `rows`
    python3 -c "
import json, sys
text = open(sys.argv[1]).read()
rows = json.loads(text) if text.startswith('[') else [json.loads(l) for l in text.splitlines()]
assert $1, rows" "$tmp/out" || fail "not so: $1"
}

# --- measuring models
narrow() { # the last output fits a terminal of 80 columns
    ! LC_ALL=C grep -E '.{81}' "$tmp/out" || fail "$1 is wider than 80 columns"
}
does "${quick[@]}"
has 'quartiles'
has 'tg4'
narrow "a table"
does -p 16 -n 0 -r 1 -t 1
has 'limits of 1 thread'
has '1 thread'
narrow "a table with limits"
does -m "$tmp/toy-llama-q4_0.gguf" -m "$tmp/toy-moe-q8_0.gguf" "${quick[@]}" -t 1,2
[ "$(grep -c 'quartiles' "$tmp/out")" = 2 ] || fail "not a table for each model: $(cat "$tmp/out")"
has '| thr |'
has '| of first |'
for shape in toy-moe toy-lfm2 toy-gpt2; do # a llama that costs as much as each
    does make --like "$tmp/$shape-q8_0.gguf" q8_0 "$tmp/like.gguf"
    does -m "$tmp/like.gguf" -m "$tmp/$shape-q8_0.gguf" "${quick[@]}" -t 1 -o json
    columns "[r['percent_of_first'] is None for r in rows] == [True, True, False, False]"
    columns "all(abs(a['gmac_per_s'] / a['median_ts'] / (b['gmac_per_s'] / b['median_ts']) - 1) < 0.2 for a, b in zip(rows[:1], rows[2:3]))"
    columns "abs(rows[3]['percent_of_first'] - 100 * rows[3]['gb_per_s'] / rows[1]['gb_per_s']) < 0.01"
done
for runs in 1 3; do # layers that a token passes three times are read three times
    sed "s/^arch nanbeige/arch llama/; s/^runs .*/runs = $runs/; s/^between .*/between = false/" "$source/models/archs/nanbeige.arch" >"$tmp/runs.arch"
    does -m "$tmp/toy-llama-f32.gguf" --arch "$tmp/runs.arch" -p 0 -n 4 -r 1 -t 1 --no-limits -o json
    sed -n 's/.*"gb_per_s": \([0-9.]*\).*/\1/p; s/.*"median_ts": \([0-9.]*\).*/\1/p' "$tmp/out" | tr '\n' ' '
done >"$tmp/runs"
python3 -c "ts1, gb1, ts3, gb3 = map(float, open('$tmp/runs').read().split()); assert 2 < gb3 / ts3 / (gb1 / ts1) < 3" || fail "bytes of repeated layers: $(cat "$tmp/runs")"
if grep -q avx512bw /proc/cpuinfo 2>/dev/null; then # a limit of its own, without VNNI, too
    does -p 16 -n 0 -r 1 -t 1 --cpu-mask-isa avx512vnni,avx512bf16
    has 'limits of 1 thread (avx512)'
fi
does -p 16 -n 0 -r 1 -t 1 --cpu-mask-isa all
has 'int8 unknown'
does "${quick[@]}" -o json
columns 'len(rows) == 2 and rows[0]["n_prompt"] == 8 and rows[1]["n_gen"] == 4'
columns 'all(len(r["samples_ns"]) == 3 == len(r["samples_ts"]) and r["n_gpu_layers"] == 0 for r in rows)'
columns 'all(abs(r["samples_ts"][0] * r["samples_ns"][0] / 1e9 - r["n_prompt"] - r["n_gen"]) < 1e-3 for r in rows)'
columns 'rows[0]["gmac_per_s"] > 0 and rows[0]["gb_per_s"] is None and rows[1]["gb_per_s"] > 0'
does -m "$tmp/toy-llama-q4_0.gguf" -m "$tmp/toy-moe-q8_0.gguf" -p 1,3-4 -n 0 -n 2 -pg 3,2 -d 0,70 -t 1,2 -ctk f16,f32 \
    -ub 2 -ngl 99 -r 1 --no-limits --no-warmup --sequences 1,3 -o jsonl
columns 'len(rows) == 2 * 2 * 2 * 2 * (3 + 2 + 2)' # models, depths, threads, types; pp; tg; pg
columns 'len(set((r["model_filename"], r["n_prompt"], r["n_gen"], r["n_depth"], r["n_threads"], r["type_k"], r["n_sequences"]) for r in rows)) == len(rows)'
does -m "$tmp/toy-llama-f16.gguf" "${quick[@]}" --f16-as-bf16
refuses 2 'together' --f16-as-bf16 --no-repack
# Counted by hand. Products of a layer of toy-llama: 2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512 = 589824; of the last one
# only keys and values are computed for all 8 tokens; the output has 131072. Read for a token: all weights but the embedding,
# of which one row; and 2.5 positions on average of 2 layers * 2 * 128 f16.
does -m "$tmp/toy-llama-q4_0.gguf" -p 8 -n 4 -r 1 --no-limits -o json
columns 'abs(rows[0]["gmac_per_s"] * rows[0]["samples_ns"][0] / (9 * 655360) - 1) < 1e-4'
columns 'abs(rows[1]["gb_per_s"] * rows[1]["samples_ns"][0] / 4 / (rows[1]["model_size"] - 512 * 144 + 144 + 2.5 * 1024) - 1) < 1e-4'
does -m "$tmp/toy-lfm2-q8_0.gguf" "${quick[@]}" -d 0,20 --sequences 1,2 -o json # it keeps states, which go back by snapshots
columns 'len(rows) == 6'
does -m "$tmp/toy-llama-q4_0.gguf" "${quick[@]}" -ngl 0,2 -ctk f16,q8_0 -ctv q8_0 -d 0,1000
has '| ngl | cache '
[ "$(grep -c '^| cpu=2 *|   0 | .*| pp8 @ d1000 *|' "$tmp/out")" = 2 ] || fail "rows of -ngl 0: $(cat "$tmp/out")"
[ "$(grep '^| ' "$tmp/out" | awk '{print length}' | sort -u | wc -l)" = 1 ] || fail "rows have different widths: $(cat "$tmp/out")"
[ "$(sed -n 's/[^|]//g; /|/p' "$tmp/out" | sort -u | wc -l)" = 1 ] || fail "columns"
[ "$(grep -c 'all layers run on the CPU' "$tmp/err")" -le 1 ] || fail "the note on a GPU: $(cat "$tmp/err")"
does -m "$tmp/toy-llama-q4_0.gguf" "${quick[@]}" -pg 12,3 --sequences 1,2 -dev cpu1 -ngl 0,2,99 -d 0,1000
has '| backend        | ngl | test                | '
grep -q '^| cpu1=2         |   2 | pp12+tg3 x2 @ d1000  *|' "$tmp/out" || fail "columns of -ngl: $(cat "$tmp/out")"
[ "$(grep '^| ' "$tmp/out" | awk '{print length}' | sort -u | wc -l)" = 1 ] || fail "rows have different widths: $(cat "$tmp/out")"
! grep -q '^| [^|]* |  99 ' "$tmp/out" || fail "equal rows are measured again: $(cat "$tmp/out")"
[ "$(grep -c 'note: -ngl 99 is not measured: it is what -ngl 2 is, cpu1=2$' "$tmp/err")" = 1 ] || fail "the note on equal rows: $(cat "$tmp/err")"
refuses 2 "there is no command 'opps', and no file of that name; did you mean 'ops'?" opps
does "${quick[@]}" -o csv
[ "$(wc -l <"$tmp/out")" = 3 ] || fail "csv has not 3 lines"
does "${quick[@]}" -o sql
has 'INSERT INTO llm_bench'
does "${quick[@]}" -o none -oe jsonl
[ ! -s "$tmp/out" ] || fail "-o none prints"
grep -q '"n_prompt": 8' "$tmp/err" || fail "-oe prints nothing"
does "${quick[@]}" --profile -o json
columns 'all(sum(s["share"] for s in r[k]["steps"]) > 0.99 for r, k in zip(rows, ("profile_prompt", "profile_gen")))'
columns 'any(s["op"] == "linear" and s["type"] == "q8_0" and s["gmac_per_s"] > 0 for s in rows[0]["profile_prompt"]["steps"])'
does -m "$tmp/toy-moe-q8_0.gguf" "${quick[@]}" --profile
has 'experts]'
refuses 2 "'8-x' is not a list" -p 8-x
refuses 2 '-pg: ' -pg 3
refuses 2 '-ctk: ' -ctk q6_k
refuses 2 'there is nothing to measure' -p 0 -n 0
refuses 2 "unexpected argument 'foo'" foo
refuses 2 'csv' -o cvs
refuses 2 '--profile' --profile -o csv
"$bench" -m "$tmp/nofile" -p 4 -n 0 --no-limits >/dev/null 2>"$tmp/err" && fail "a model that is not there is measured"
grep -q 'nofile' "$tmp/err" || fail "the missing model is not named"

# --- comparing

result() { # FILE SAMPLES [MORE]: a result of one test
    echo "[{\"model_filename\": \"m.gguf\", \"model_type\": \"m 1B q4_0\", \"n_threads\": 2, \"n_prompt\": 512, \"n_gen\": 0,
        \"type_k\": \"f16\", \"type_v\": \"f16\", \"samples_ts\": [$2]${3:-}}]" >"$tmp/$1"
}
result old.json '100, 101, 99, 100.5, 99.5'
result slow.json '90, 91, 89, 90.5, 89.5'
result few.json '90, 91'
result old-turns.json '100, 120, 140, 160' ', "alternation": "a"'
result slow-turns.json '98, 117, 137, 156' ', "alternation": "a"'
does --compare "$tmp/old.json" "$tmp/old.json"
has 'within noise'
does --compare "$tmp/slow.json" "$tmp/old.json"
has 'faster'
does --compare "$tmp/old.json" "$tmp/few.json"
has 'too few samples'
"$bench" --compare "$tmp/old.json" "$tmp/slow.json" >"$tmp/out"
[ $? = 1 ] || fail "slower is not exit code 1"
has '0.0079' # 2 of 252 orders
"$bench" --compare "$tmp/old-turns.json" "$tmp/slow-turns.json" >"$tmp/out"
[ $? = 1 ] || fail "slower in turns is not exit code 1"
has 'slower (paired)'
does --compare "$tmp/old.json" "$tmp/slow.json" --tolerance 20
does "${quick[@]}" -o json
cp "$tmp/out" "$tmp/run.json"
"$bench" "${quick[@]}" --tolerance 100 --compare "$tmp/run.json" >"$tmp/out" 2>"$tmp/err" || fail "--compare with a run: $?"
has 'old t/s'
does "${quick[@]}" -o jsonl
cp "$tmp/out" "$tmp/run.jsonl"
does --compare "$tmp/run.json" "$tmp/run.jsonl" --tolerance 100
echo '[{"a": 1}]' >"$tmp/bad.json"
refuses 2 'result 1 has no' --compare "$tmp/bad.json" "$tmp/old.json"
echo '[{' >"$tmp/bad.json"
refuses 2 'bad.json:' --compare "$tmp/bad.json" "$tmp/old.json"
refuses 2 'nothere.json' --compare "$tmp/nothere.json"
refuses 2 'no test in common with this run' --compare "$tmp/run.json" "$tmp/old.json"

# --- backends and splits

where=(-p 8 -n 4 -r 2 --no-limits)
does "${where[@]}" --device cpu,reference --split cpu=2,cpu1=3 -o json --plot "$tmp/plot.svg"
columns '[r["backends"] for r in rows] == ["cpu=2,cpu1=3"] * 2 + ["cpu"] * 2 + ["reference"] * 2'
columns 'all(r["n_gpu_layers"] == 0 for r in rows[2:4]) and all(r["n_gpu_layers"] == 5 for r in rows[4:])'
python3 -c 'import sys, xml.dom.minidom as d; assert d.parse(sys.argv[1]).toxml().count("t/s") == 6' "$tmp/plot.svg" ||
    fail "the picture of backends has not six bars"
does -p 8 -n 4 -r 1 -t 1 --device cpu,reference -o json
columns 'all(r["limit_gb_per_s"] > 0 and r["percent_of_limit"] > 0 for r in rows)'
does "${where[@]}" --device cpu1/cpu -ngl 0,3 -o json
columns '[r["backends"] for r in rows] == ["cpu=5"] * 2 + ["cpu=2,cpu1=3"] * 2'
does "${where[@]}" --place 'blk.*.ffn_*=cpu1' --strict
refuses 2 "no backend 'cup'" "${where[@]}" --device cup
"$bench" "${where[@]}" --split cpu=2,cpu1=2 >/dev/null 2>"$tmp/err"
[ $? = 1 ] && grep -q 'that is 4 layers; the model has 5' "$tmp/err" || fail "a split of too few layers: $(cat "$tmp/err")"
"$bench" "${where[@]}" --plot "$tmp/no/such.svg" >/dev/null 2>"$tmp/err"
[ $? = 1 ] || fail "a plot that cannot be written is not exit code 1"

# --- more in the file than is read
printf '%s\n' 'arch llama' 'language 1' 'n = .embedding_length + 0 * .block_count' 'token_embd [n, n_vocab]' \
    'logits = linear(token_embd[token], token_embd)' >"$tmp/tiny.arch"
"$bench" --arch "$tmp/tiny.arch" "${quick[@]}" >/dev/null 2>"$tmp/err" && fail "tensors that nothing reads are no error"
"$bench" --arch "$tmp/tiny.arch" "${quick[@]}" --ignore-key 'llama.*' --ignore-tensor '*' >/dev/null 2>"$tmp/err" || fail "--ignore: $(cat "$tmp/err")"
[ "$(grep -c '^llm-bench: note: ignored at your request: [0-9]* keys llama.\*, [0-9]* tensors \*$' "$tmp/err")" = 1 ] || fail "--ignore: $(cat "$tmp/err")"

# --- guesses: tests/e2e/guesses.py has more

refuses 1 "another vocabulary: 1536 tokens, the model 2048" -n 4 -r 1 --draft "$source/tests/data/stories-gpt2.gguf"
refuses 1 "the model sees a text whole, and writes none token by token" -m "$tmp/encoder.gguf" --lookup
refuses 2 "-draft 8: this flag names the draft model" --draft 8

# --- ops

does ops --shape 256x32 --columns 6 --seconds 0.0001 --no-limits -o json --svg "$tmp/roof.svg"
columns 'len(rows) > 30 and all(r["equal"] for r in rows)'
columns 'set(r["type"] for r in rows) >= {"f32", "f16", "bf16", "q8_0", "q4_0"}'
python3 "$(dirname "$0")/svg_check.py" "$tmp/roof.svg" "$tmp/plot.svg" || fail "pictures"
grep -q 'limits not measured' "$tmp/roof.svg" || fail "the roofline without limits does not say so"
does ops --shape 256x32 --columns 6 --seconds 0.0001 --type q4_0,f32 -o json --svg "$tmp/roof.svg"
columns 'set(r["type"] for r in rows if "product" in r["kernel"]) == {"f32", "q4_0"}'
python3 "$(dirname "$0")/svg_check.py" "$tmp/roof.svg" || fail "the roofline with limits"
refuses 2 "there is no type 'q4'" ops --type q4_0,q4
# the example of the help, quicker: types are found in capitals, too
"$bench" ops --help | grep -q -- 'ops --kernel product --type q4_K' || fail "another example of llm-bench ops"
does ops --kernel product --type q4_K --shape 256x32 --columns 3 --seconds 0.0001 --no-limits -o json
columns 'set(r["type"] for r in rows) == {"q4_k"}'
grep -q 'bar: median of .* run.*; whisker: first to third quartile' "$tmp/plot.svg" || fail "the plot does not explain its whiskers"
grep -q 'tokens per second<' "$tmp/plot.svg" || fail "the plot's axis has no unit"
does ops --kernel panels --shape 96x33 --columns 3 --seconds 0.0001 --no-limits -t 2 -o csv
does ops --kernel rows --shape 96x33 --seconds 0.0001 --no-limits
has '96x'
refuses 2 "no kernel's name contains 'nope'" ops --kernel nope --no-limits
# before the machine is measured: no file is opened for what it may say
refuses 2 "no kernel's name contains 'nope'" ops --kernel nope --svg "$tmp/no/such.svg"
refuses 2 "'96' is not a shape" ops --shape 96
refuses 2 "'33x3' is not a shape" ops --shape 33x3
"$bench" ops --kernel EXP --seconds 0.0001 --no-limits --svg "$tmp/no/such.svg" >/dev/null 2>"$tmp/err"
[ $? = 1 ] || fail "a picture that cannot be written is not exit code 1"

exit $failed
