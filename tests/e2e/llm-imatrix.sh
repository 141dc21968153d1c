#!/bin/bash
# llm-imatrix as users run it. llm-imatrix.sh PROGRAM LLM_PERPLEXITY MODEL OTHER_MODEL TEXT..
set -u
imatrix=$1 perplexity=$2 model=$3 other=$4
shift 4
here=$(realpath "$(dirname "$0")")
source "$here/common.sh"
text=$tmp/text.txt
for _ in $(seq 40); do cat "$@"; done >"$text"
cd "$tmp" || exit 1

# collect CODE OUT ARGS..: 4 chunks of 32 tokens, unless ARGS say otherwise
collect() {
    local code=$1 out=$2
    shift 2
    exits "$code" "$imatrix" -m "$model" -f "$text" -c 32 -o "$out" "$@"
}

# same FILE FILE WHAT
same() {
    cmp -s "$1" "$2" || fail "$3: $1 and $2 differ"
}

# --- collecting -------------------------------------------------------------------------------------------------------
collect 0 a.gguf --chunks 4
prints 'weights, 4 chunks in all: a.gguf' err
cp out ppl
exits 0 "$perplexity" -m "$model" -f "$text" -c 32 --chunks 4
same out ppl "other perplexities than llm-perplexity's"
head -c 4 a.gguf | grep -q GGUF || fail "a.gguf is no GGUF file"

# no bit depends on threads, on how many tokens are computed at once, on the split, or on the perplexity
for how in "-t 1" "-t 3 -ub 7" "--split cpu=2,cpu1=3" "--device cpu1 --fit" "--device cpu1 --split auto" --no-ppl "--no-mmap -q" "--split copies --device cpu,cpu1,cpu2"; do
    # shellcheck disable=SC2086
    collect 0 b.gguf --chunks 4 $how
    same a.gguf b.gguf "$how"
done
collect 0 b.gguf --chunks 4 --no-ppl
[ ! -s out ] || fail "--no-ppl prints $(head -c 100 out)"

# a text that the model writes: the same each time, whatever the threads, and as many tokens as are asked for
exits 0 "$imatrix" -m "$model" -f self -c 32 --chunks 4 -o self.gguf
prints 'weights, 4 chunks in all: self.gguf' err
sed -n 's/.*PPL = \([0-9]*\).*/\1/p' out >own
[ "$(cat own)" -lt 20 ] || fail "the model does not know its own text: $(cat out)"
for how in "-t 1" "-t 3 -ub 7" "--split cpu=2,cpu1=3" "--no-ppl" "--split copies --device cpu,cpu1"; do
    # shellcheck disable=SC2086
    exits 0 "$imatrix" -m "$model" -f self -c 32 --chunks 4 -o b.gguf $how
    same self.gguf b.gguf "-f self $how"
done
exits 0 "$imatrix" -m "$model" -f self -c 32 --chunks 40 -o b.gguf
prints 'weights, 40 chunks in all: b.gguf' err
cp "$text" self
exits 0 "$imatrix" -m "$model" -f ./self -c 32 --chunks 4 -o b.gguf
cmp -s b.gguf self.gguf && fail "./self is not the file"
rm self
exits 2 "$imatrix" -m "$model" -f self --chunks 0 -o b.gguf
exits 0 "$imatrix" -m "$model" -f self -c 32 --split copies --device cpu,cpu1 --plan -o none.gguf
prints 'copy 2 of 2, on cpu1'
[ ! -e none.gguf ] || fail "--plan writes a file"

# what reads the last norm is collected only on request
collect 0 o.gguf --chunks 2 --process-output
exits 0 "$imatrix" --in-file o.gguf --show-statistics
cp out with
exits 0 "$imatrix" --in-file a.gguf --show-statistics
[ "$(grep -cE '^ +- +(output|token_embd) ' with)" = 1 ] && ! grep -qE '^ +- ' out || fail "--process-output: $(cat with)"

# copies on the way, and a last file after a signal
collect 0 c.gguf --chunks 4 --save-frequency 2 --output-frequency 1
collect 0 d.gguf --chunks 2
same c.gguf.at_2 d.gguf "--save-frequency 2"
same c.gguf a.gguf "--save-frequency"
[ "$(ls c.gguf*)" = $'c.gguf\nc.gguf.at_2\nc.gguf.at_4' ] || fail "files: $(ls c.gguf*)"
# a copy that cannot be written does not end the run
mkdir k.gguf.at_2
collect 0 k.gguf --chunks 4 --save-frequency 2
prints 'a copy on the way could not be written: k.gguf.at_2: ' err
same k.gguf a.gguf "after a copy that failed"
same k.gguf.at_4 a.gguf "after a copy that failed"
"$imatrix" -m "$model" -f "$text" -c 32 -ofreq 1 -o e.gguf >out 2>err </dev/null &
pid=$!
for ((i = 0; i < 1000; i++)); do
    [ -e e.gguf ] && break
    sleep 0.01
done
kill -INT $pid
wait $pid
[ $? = 130 ] || fail "after SIGINT: exit code is not 130: $(cat err)"
n=$(grep -oE 'interrupted after [0-9]+' err | grep -oE '[0-9]+')
collect 0 f.gguf --chunks "${n:-1}"
same e.gguf f.gguf "the file after a signal, $n chunks"
[ -z "$(find . -name '*.tmp-*')" ] || fail "a temporary file is left"

# --- files ------------------------------------------------------------------------------------------------------------
# table FILE..: the statistics of merged files
table() {
    local args=()
    for f in "$@"; do
        args+=(--in-file "$f")
    done
    exits 0 "$imatrix" -c 32 "${args[@]}" --show-statistics
    cat out
}

# two runs and their sum; either may be in the old format
collect 0 g.gguf --chunk 2 --chunks 2 --in-file d.gguf
prints '4 chunks in all' err
table a.gguf >want
table g.gguf >got
same want got "a run that continues another"
python3 "$here/imatrix_dat.py" d.gguf 32 d.dat
collect 0 h.gguf --chunk 2 --chunks 2
table d.dat h.gguf >got
same want got "the old format"
table d.dat,h.gguf >got
same want got "files with a comma"
exits 0 "$imatrix" --in-file d.dat -c 32 --in-file h.gguf -o both.gguf
grep -q 'does not tell' err && fail "a note on the size of chunks, which -c sets"
table both.gguf >got
same want got "merged files"
exits 0 "$imatrix" --in-file h.gguf --in-file d.dat -o assumed.gguf
prints 'd.dat does not tell the size of its chunks, by which files are weighted: 512 tokens are assumed; -c N sets it' err
awk 'length > 80' want | grep . && fail "lines of more than 80 columns"
[ "$(wc -l <want)" -gt 40 ] || fail "the table has $(wc -l <want) lines"

# without -o, what is written is said
exits 0 "$imatrix" --in-file a.gguf
prints 'weights, 4 chunks in all: imatrix.gguf' err
rm imatrix.gguf

# directions: in all weights, on request in none, and lost where something without them is added
directions() {
    grep -ac 'in_sketch' "$1"
}
collect 0 plain.gguf --chunks 2 --directions 0
directions plain.gguf >/dev/null && fail "--directions 0 has directions"
directions d.gguf >/dev/null || fail "no directions by default"
exits 0 "$imatrix" --in-file d.gguf --in-file plain.gguf -o mixed.gguf
prints 'no directions for 35 of 35 weights: something that was added up has none for them' err
directions mixed.gguf >/dev/null && fail "directions of a part of the text"
exits 0 "$imatrix" --in-file plain.gguf -o mixed.gguf
grep -q 'no directions' err && fail "a note without a reason: $(cat err)"
exits 0 "$imatrix" --in-file plain.gguf --show-statistics
cp out want.plain
exits 0 "$imatrix" --in-file d.gguf --show-statistics
same out want.plain "sums with directions"

# pictures
exits 0 "$imatrix" --in-file a.gguf --plot a.svg
[ ! -e imatrix.gguf ] || fail "--plot writes imatrix.gguf"
if command -v python3 >/dev/null; then
    python3 "$here/svg_check.py" a.svg || fail "a.svg"
    python3 - a.svg <<'PY' || fail "a.svg has other cells"
import sys, xml.etree.ElementTree as E
n = [e.text for e in E.parse(sys.argv[1]).getroot().iter("{http://www.w3.org/2000/svg}title")]
table = [l for l in open("want").read().split("\n\n")[0].splitlines()[1:]]
assert len(n) == len(table) and all("columns matter" in t for t in n), (len(n), len(table))
PY
fi

# --- mistakes ---------------------------------------------------------------------------------------------------------
# refuses CODE WORDS ARGS..
refuses() {
    local code=$1 words=$2
    shift 2
    exits "$code" "$imatrix" "$@"
    prints "$words" err
}
head -c 300 a.gguf >cut.gguf
head -c 1000 d.dat >cut.dat
refuses 2 '-f TEXT is missing: the text to collect over'
refuses 2 '--directions 6: a multiple of 4 is expected' -f "$text" --directions 6
refuses 2 '--directions' -f "$text" --directions 68
refuses 2 "unexpected argument 'b.gguf'; did you mean --in-file 'b.gguf'? Each value needs the flag" --in-file d.gguf b.gguf
refuses 2 'the old format .dat is only read' -f "$text" --output-format dat
exits 0 "$imatrix" --in-file d.gguf -o d2.dat
prints 'd2.dat is written as GGUF, whose names end in .gguf; the old format is only read' err
for how in '--directions 0' '--chunks 2' '--chunk 1' --process-output --no-ppl --parse-special; do
    # shellcheck disable=SC2086
    refuses 2 "${how%% *} is for collecting over a text (-f TEXT); files of --in-file are added up as they are" --in-file d.gguf $how
done
refuses 2 '-f TEXT is missing: the text that the model' -m "$model" --in-file a.gguf
refuses 1 'cut.gguf: ' --in-file cut.gguf --show-statistics
refuses 1 'the file ends before its values do' --in-file cut.dat --show-statistics
refuses 1 "text.txt: is neither a GGUF file nor an importance matrix" --in-file "$text" --show-statistics
refuses 1 "$model: has no tensor NAME.in_sum2" --in-file "$model" --show-statistics
refuses 1 'none.gguf' --in-file none.gguf --show-statistics
refuses 1 'none' --in-file a.gguf -o none/b.gguf
refuses 2 '--chunk 99999: ' -m "$model" -f "$text" -c 32 --chunk 99999
exits 0 "$imatrix" -m "$other" -f "$text" -c 32 --chunks 1 -o other.gguf
refuses 1 'were made from different models' --in-file a.gguf --in-file other.gguf
refuses 1 'the files of --in-file are not of this model' -m "$model" -f "$text" -c 32 --chunks 1 --in-file other.gguf
[ ! -s out ] || fail "files of another model are refused after a chunk: $(cat out)"
exit $failed
