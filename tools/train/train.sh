#!/bin/sh
# The recipe of the built-in model: texts, tokenizer, training, file. It needs Python's standard library and the programs of this project.
#
#   tools/train/train.sh [WORK]    WORK: folder for texts and models, default /tmp/train; the result is WORK/stories.gguf
#
# About half an hour of one free processor core; interrupted, it goes on where it was when it is started again. recipe.sh lists its variables.
set -eu
. "$(dirname "$0")/recipe.sh"
work=${1:-/tmp/train}

[ -e "$work/valid-prose.txt" ] || python3 "$here/corpus.py" --text "$text" --out "$work" --stories "$(part 130000)"
head -n 30000 "$work/train.jsonl" >"$work/sample.jsonl"
llm-tokenize train "$work/sample.jsonl" --json-field text -o "$work/vocab.gguf" --model spm --vocab-size 2048 --coverage 1 --add-bos
[ -e "$work/new.gguf" ] || llm-train new llama --tokenizer "$work/vocab.gguf" -o "$work/new.gguf" --sigma 0.088 \
    --set general.name=stories --set general.author='the project' --set general.license=CC0-1.0 \
    --set .vocab_size=2048 --set .context_length=512 --set .embedding_length=128 --set .block_count=5 --set .feed_forward_length=352 \
    --set .attention.head_count=4 --set .attention.head_count_kv=2 --set .attention.layer_norm_rms_epsilon=1e-5 \
    --set .rope.dimension_count=32 --set .rope.freq_base=10000.0
stories "$work" "$work" 4096 1910 512 '</s><s>'
finish "$work/4.gguf" "$work/stories.gguf" 512 "$work/valid-world.txt" "$work/valid-prose.txt"
llm-cli -m "$work/stories.gguf" -p "Once upon a time" --temp 0 -n 200
