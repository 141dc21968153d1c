#!/bin/sh
# The recipe of the small siblings in tests/data: one model each of the families gpt2, qwen2 and qwen3.
#
#   tools/train/siblings.sh [WORK] [FAMILY ..]    WORK: folder for texts and models, default /tmp/siblings; the results are WORK/stories-FAMILY.gguf
#
# Less than ten minutes of one free processor core for each. What it needs, and its variables, are those of train.sh.
set -eu
. "$(dirname "$0")/recipe.sh"
work=${1:-/tmp/siblings}
[ $# = 0 ] || shift

[ -e "$work/valid-prose.txt" ] || python3 "$here/corpus.py" --text "$text" --out "$work" --stories "$(part 45000)" --prose 0.05
head -n 8000 "$work/train.jsonl" >"$work/sample.jsonl"
for family in ${*:-gpt2 qwen2 qwen3}; do
    dir=$work/$family pre=qwen2
    set -- --set .attention.layer_norm_rms_epsilon=1e-6 --set .attention.head_count_kv=2 --set .feed_forward_length=256 --set .rope.freq_base=1000000.0
    case $family in
    gpt2)
        pre=gpt-2
        set -- --set .attention.layer_norm_epsilon=1e-5 --set .feed_forward_length=384 --init position_embd.weight=0,0.02
        ;;
    qwen2) set -- "$@" --with 'blk.*.attn_q.bias' --with 'blk.*.attn_k.bias' --with 'blk.*.attn_v.bias' ;;
    qwen3) set -- "$@" --set .attention.key_length=32 --set .attention.value_length=32 ;;
    *)
        echo "siblings.sh: the families are gpt2, qwen2 and qwen3, not $family" >&2
        exit 2
        ;;
    esac
    mkdir -p "$dir"
    llm-tokenize train "$work/sample.jsonl" --json-field text -o "$dir/vocab.gguf" --model bpe --pre $pre --vocab-size 1536 \
        --bos '<|endoftext|>' --eos '<|endoftext|>'
    [ -e "$dir/new.gguf" ] || llm-train new $family --tokenizer "$dir/vocab.gguf" -o "$dir/new.gguf" --sigma 0.1 \
        --set general.name=stories-$family --set general.author='the project' --set general.license=CC0-1.0 \
        --set .context_length=256 --set .embedding_length=96 --set .block_count=4 --set .attention.head_count=4 "$@"
    stories "$work" "$dir" 2048 1850 256 '<|endoftext|>'
    finish "$dir/4.gguf" "$work/stories-$family.gguf" 256 "$work/valid-world.txt" "$work/valid-prose.txt"
    llm-cli -m "$work/stories-$family.gguf" -p "Once upon a time" --temp 0 -n 120
done
