#!/bin/sh
# The recipe of the built-in chat model: the built-in model learns conversations about its story world.
#
#   tools/train/train-chat.sh [WORK]    WORK: folder for texts and models, default /tmp/train-chat; the result is WORK/stories-chat.gguf
#
# Half an hour of one free processor core. What it needs, and its variables, are those of train.sh; BASE is the model that learns, default builtin:stories.
set -eu
. "$(dirname "$0")/recipe.sh"
work=${1:-/tmp/train-chat}
prose=$text/fairytaleqa-stories.txt
mkdir -p "$work"

if [ ! -e "$work/start.gguf" ]; then
    n=$(part 9600)
    python3 "$here/talk.py" --prose "$prose" --count "$n" --short --out "$work/short.jsonl"
    python3 "$here/talk.py" --prose "$prose" --first "$n" --count "$(part 11000)" --out "$work/long.jsonl"
    python3 "$here/talk.py" --prose "$prose" --held-out --count "$(part 150)" --out "$work/valid.jsonl"
    end=$(llm-train add-tokens "${BASE:-builtin:stories}" --special '<|system|>' --special '<|user|>' --special '<|assistant|>' --special '<|end|>' \
        -o "$work/marks.gguf" | sed -n 's/ *\([0-9]*\)  "<|end|>"/\1/p')
    llm-gguf set "$work/marks.gguf" -o "$work/start.gguf" general.name=str:stories-chat llama.context_length=2048 \
        "tokenizer.ggml.eos_token_id=$end" "tokenizer.ggml.eot_token_id=u32:$end" "tokenizer.chat_template=str:$(cat "$here/chat.jinja")"
fi
set -- -c 2048 -b 4096 --sequences 4096 --epochs 1 -lr 4e-3 --decay 0.05 --f32 --valid "$work/valid.jsonl" --valid-every -1
learn "$work/start.gguf" "$work/1.gguf" "$work/short.jsonl" --warmup "$(part 100)" --schedule constant "$@"
learn "$work/1.gguf" "$work/2.gguf" "$work/long.jsonl" --warmup "$(part 20)" --hold 0.25 "$@"
finish "$work/2.gguf" "$work/stories-chat.gguf" 2048
llm-cli -m "$work/stories-chat.gguf" -cnv -st -p "Hello!" --temp 0 -n 40
