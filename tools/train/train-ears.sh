#!/bin/sh
# The recipe of the built-in model that hears: voices, sounds, training, check.
#
#   tools/train/train-ears.sh [WORK]    WORK: folder for sounds and models, default /tmp/train-ears; the result is WORK/words.gguf
#
# It needs the synthesizers espeak-ng, flite and festival with three voices (the Debian packages espeak-ng, flite, festival, festvox-kallpc16k, festvox-kdlpc16k and
# festvox-us-slt-hts), Python with NumPy (python3-numpy), and the programs of this project. The vocabulary, a token for each word and each time, is that of the
# built-in model. Interrupted, it goes on where it was when it is started again. recipe.sh lists its variables.
set -eu
. "$(dirname "$0")/recipe.sh"
work=${1:-/tmp/train-ears}
py=${PYTHON:-python3}
mkdir -p "$work"

[ -e "$work/test.npz" ] || $py "$here/speak.py" --out "$work"
[ -e "$work/sounds/talk.jsonl" ] || $py "$here/speech.py" --voices "$work/train.npz" --out "$work/sounds" --count "$(part "${SOUNDS:-10000}")"
[ -e "$work/0.gguf" ] || llm-train new whisper --tokenizer "${VOCABULARY:-builtin:words}" -o "$work/0.gguf" --sigma 0.1 \
    --init 'token_embd.weight=0,0.1' --init '*position_embd.weight=0,0.1' \
    --set general.name=words --set general.author='the project' --set general.license=CC0-1.0 \
    --set .embedding_length=96 --set .feed_forward_length=256 --set .block_count=3 --set .decoder_block_count=2 --set .attention.head_count=3 \
    --set .context_length=48 --set .audio.context_length=250 --set .audio.mel_count=80 --set .vocab_size=285 --set .decoder_start_token_id=31 \
    --set .multilingual=false --set '.suppress_tokens=[32]'
set -- -c 48 -b 65536 --beta2 0.98 --decay 0.05
learn "$work/0.gguf" "$work/1.gguf" "$work/sounds/words.jsonl" --sequences 32 --steps "$(part "${WORDS:-1200}")" --warmup "$(part 100)" --schedule constant -lr 5e-3 "$@"
learn "$work/1.gguf" "$work/2.gguf" "$work/sounds/talk.jsonl" --sequences 20 --steps "$(part "${TALKS:-2500}")" --warmup "$(part 20)" --hold 0.4 -lr 5e-3 "$@"
# Sounds that it has not heard, since it knows the first ones by heart: three times as many at the end, or 7 % of words are wrong in place of 5. They need 9 GB.
[ -e "$work/more/talk.jsonl" ] || $py "$here/speech.py" --voices "$work/train.npz" --out "$work/more" --count "$(part "${SOUNDS:-7000}")" --seed 2
learn "$work/2.gguf" "$work/3.gguf" "$work/more/talk.jsonl" --sequences 20 --steps "$(part "${TALKS:-2000}")" --warmup "$(part 20)" --hold 0.3 -lr 4e-3 "$@"
[ -e "$work/most/talk.jsonl" ] || $py "$here/speech.py" --voices "$work/train.npz" --out "$work/most" --count "$(part "${SOUNDS:-30000}")" --seed 3
learn "$work/3.gguf" "$work/4.gguf" "$work/most/talk.jsonl" --sequences 20 --steps "$(part "${TALKS:-4500}")" --warmup "$(part 20)" --hold 0.3 -lr 4e-3 "$@"
llm-quantize -q --no-search "$work/4.gguf" "$work/words.gguf" q8_0
$py "$here/check_ears.py" --data "$work" --transcribe "$bin/llm-transcribe" --model "$work/words.gguf" --count "$(part 600)"
