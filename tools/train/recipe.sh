# What train.sh, siblings.sh and train-chat.sh share; they source it.
#
#   BIN      folder of the programs, default build/release/bin
#   TEXT     folder with the prose, default ../shared/text
#   THREADS  default: all cores
#   PART     makes everything so many times smaller, to try the recipe in seconds: PART=400
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
bin=${BIN:-$repo/build/release/bin}
text=${TEXT:-$repo/../shared/text}
PATH=$bin:$PATH

# part N: N, divided by PART.
part() {
    echo $((($1 + ${PART:-1} - 1) / ${PART:-1}))
}

# learn IN OUT ARGS..: a command of a training. Interrupted, it goes on where it was when the script is started again; what is done is not done again.
learn() {
    from=$1 to=$2
    shift 2
    [ -e "$to" ] && return
    llm-train -m "$from" -o "$to.now" --resume -t "${THREADS:-$(nproc)}" --optimizer muon --beta2 0.98 "$@"
    mv "$to.now" "$to"
}

# stories WORK DIR TOKENS THIRD CONTEXT BETWEEN: trains DIR/new.gguf on WORK's texts to DIR/4.gguf, with TOKENS in each step. Windows begin short, because
# a head that attends equally to 64 tokens still sees the name, and one that attends to 512 hardly does; the first ones have drills between
# them. The rate stays, and falls in the third command, which has THIRD steps. The last one reads three stories at a time, with the tokens BETWEEN,
# so that a full context, and a story after another, are nothing new.
stories() {
    work=$1 dir=$2 tokens=$3 third=$4 context=$5 between=$6
    set -- -b "$tokens" --decay 0.1
    head -n "$(part $((400 * tokens / 293)))" "$work/train.jsonl" >"$dir/first.jsonl"
    head -n "$(part $((400 * tokens / 273)))" "$work/drills.jsonl" >>"$dir/first.jsonl"
    tail -n "$(part 20000)" "$work/train.jsonl" | awk -v between="$between" '{
        sub(/^[{]"text": "/, "")
        sub(/"[}]$/, "")
        row = row (n++ % 3 ? between : "") $0
        if (n % 3 == 0) {
            print "{\"text\": \"" row "\"}"
            row = ""
        }
    }' >"$dir/last.jsonl"
    learn "$dir/new.gguf" "$dir/1.gguf" "$dir/first.jsonl" -c 64 --steps "$(part 400)" --warmup "$(part 60)" --schedule constant -lr 5e-3 "$@"
    learn "$dir/1.gguf" "$dir/2.gguf" "$work/train.jsonl" -c 128 --steps "$(part 500)" --warmup "$(part 20)" --schedule constant -lr 5e-3 -s 1 "$@"
    learn "$dir/2.gguf" "$dir/3.gguf" "$work/train.jsonl" -c "$context" --steps "$(part "$third")" --warmup "$(part 20)" --hold 0.4 -lr 5e-3 -s 2 "$@"
    learn "$dir/3.gguf" "$dir/4.gguf" "$dir/last.jsonl" -c "$context" --steps "$(part 250)" --warmup "$(part 20)" -lr 2e-3 -s 3 "$@"
}

# finish IN OUT CONTEXT TEXT..: the file as it is shipped, and its perplexity on texts that it has not seen.
finish() {
    from=$1 out=$2 context=$3
    shift 3
    llm-quantize -q --no-search "$from" "$out" q8_0
    llm-gguf check "$out"
    for file; do
        echo "$(basename "$file"): $(llm-perplexity -q -m "$out" -f "$file" -c "$context" --chunks "$(part 1000)")"
    done
}
