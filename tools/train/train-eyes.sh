#!/bin/sh
# The recipe of the built-in model that sees: drawings, tokenizer, an eye and a text model that learn together from nothing, check.
#
#   tools/train/train-eyes.sh [WORK]    WORK: folder for drawings and models, default /tmp/train-eyes; the results are WORK/shapes.gguf and
#                                       WORK/shapes-eye.gguf
#
# It needs Python with NumPy (python3-numpy), which draws, and the programs of this project. Interrupted, it goes on where it was when it is started again. recipe.sh
# lists its variables.
set -eu
. "$(dirname "$0")/recipe.sh"
work=${1:-/tmp/train-eyes}
py=${PYTHON:-python3}
mkdir -p "$work"

# draw N: the drawings of a stage, none of which another stage has seen.
draw() {
    [ -e "$work/pictures$1/done" ] || $py "$here/pictures.py" --seed "$1" --out "$work/pictures$1" --count "$(part "${PICTURES:-30000}")"
    touch "$work/pictures$1/done"
}

if [ ! -e "$work/0-eye.gguf" ]; then
    $py "$here/pictures.py" --words "$work/words.jsonl"
    llm-tokenize train "$work/words.jsonl" --json-field text -o "$work/vocab.gguf" --model bpe --pre qwen2 --vocab-size 400 \
        --special '<|endoftext|>' --special '<|user|>' --special '<|assistant|>' --special '<|end|>' --bos '<|endoftext|>' --eos '<|end|>'
    llm-train new llama --tokenizer "$work/vocab.gguf" -o "$work/text.gguf" --sigma 0.1 \
        --set general.name=shapes --set general.author='the project' --set general.license=CC0-1.0 \
        --set .vocab_size=400 --set .context_length=512 --set .embedding_length=96 --set .block_count=3 --set .feed_forward_length=256 \
        --set .attention.head_count=3 --set .attention.head_count_kv=3 --set .attention.layer_norm_rms_epsilon=1e-5 \
        --set .rope.dimension_count=32 --set .rope.freq_base=10000.0
    llm-gguf set "$work/text.gguf" -o "$work/0.gguf" general.max_images=u32:1 "tokenizer.chat_template=str:$(cat "$here/shapes.jinja")"
    llm-train new clip-llava -o "$work/eye.gguf" --sigma 0.1 --init 'v.position_embd.weight=0,0.3' \
        --with v.patch_embd.bias --with 'v.post_ln.*' --with 'v.blk.*.bias' \
        --set general.name=shapes-eye --set general.author='the project' --set general.license=CC0-1.0 --set general.type=mmproj \
        --set .has_vision_encoder=true --set .projector_type=mlp --set .use_gelu=true --set .vision.image_size=64 --set .vision.patch_size=8 \
        --set .vision.embedding_length=96 --set .vision.feed_forward_length=288 --set .vision.block_count=3 --set .vision.attention.head_count=3 \
        --set .vision.projection_dim=96 --set .vision.attention.layer_norm_epsilon=1e-5 --set '.vision.feature_layer=[3]' \
        --set .vision.image_fit=pad --set .vision.image_resample=pil_cubic --set .vision.image_mean=0.5 --set .vision.image_std=0.5
    llm-gguf set "$work/eye.gguf" -o "$work/0-eye.gguf" 'clip.vision.image_mean=arr[f32]:0.5,0.5,0.5' 'clip.vision.image_std=arr[f32]:0.5,0.5,0.5'
fi

# look N FILE ARGS..: both learn from FILE, from what they were after step N - 1.
look() {
    n=$1 file=$2
    shift 2
    [ -e "$work/$n.gguf" ] && return
    llm-train -m "$work/$((n - 1)).gguf" --mmproj "$work/$((n - 1))-eye.gguf" "$file" -o "$work/$n.now" --mmproj-out "$work/$n-eye.gguf" --resume \
        -t "${THREADS:-$(nproc)}" --optimizer muon --beta2 0.98 --decay 0.05 -b 65536 "$@"
    mv "$work/$n.now" "$work/$n.gguf"
}

# The drill first: its answers tell the eye of each patch what it shows, which the few words of an answer would teach much more slowly.
draw 1
look 1 "$work/pictures1/patches.jsonl" --sequences 48 --steps "$(part "${DRILLS:-1200}")" --warmup "$(part 100)" --schedule constant -lr 5e-3
look 2 "$work/pictures1/talk.jsonl" --sequences 32 --steps "$(part "${TALKS:-2300}")" --warmup "$(part 20)" --hold 0.4 -lr 5e-3
draw 2
look 3 "$work/pictures2/talk.jsonl" --sequences 32 --steps "$(part "${TALKS:-3000}")" --warmup "$(part 20)" --hold 0.3 -lr 4e-3
draw 3
look 4 "$work/pictures3/talk.jsonl" --sequences 32 --steps "$(part "${TALKS:-2300}")" --warmup "$(part 20)" --hold 0.3 -lr 3e-3
llm-quantize -q --no-search "$work/4.gguf" "$work/shapes.gguf" q8_0
llm-quantize -q --no-search "$work/4-eye.gguf" "$work/shapes-eye.gguf" q8_0
$py "$here/check_eyes.py" --cli llm-cli --model "$work/shapes.gguf" --eye "$work/shapes-eye.gguf" --count "$(part 200)" --least "${LEAST:-90}"
