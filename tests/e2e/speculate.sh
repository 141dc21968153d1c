#!/usr/bin/env bash
# speculate.sh LLM_CLI LLM_QUANTIZE SOURCE_DIR: guesses and prompt caches change no text; files that do not fit are named.
set -u
cli=$1 quantize=$2 source=$3
source "$(dirname "$0")/common.sh"
model=$source/models/builtin/stories.gguf other=$source/tests/data/stories-gpt2.gguf
story='Once upon a time there was a cat. The cat said: I am a cat. The dog said: I am a dog. The cat said:'

# run FILE ARGS..: the text of the story goes to FILE, what is said to $tmp/err
run() {
    local out=$1
    shift
    "$cli" -p "$story" -n 60 --ignore-eos "$@" >"$out" 2>"$tmp/err" </dev/null || fail "llm-cli $*: $(cat "$tmp/err")"
}

# --- guesses -------------------------------------------------------------------------------------------------------------
"$quantize" --allow-requantize "$model" "$tmp/draft.gguf" Q4_0 >/dev/null 2>"$tmp/err" || fail "llm-quantize: $(cat "$tmp/err")"
for how in "--temp 0" "--seed 3" "--seed 4 --temp 2 --repeat-penalty 1.2"; do
    run "$tmp/plain" $how
    for guess in "--lookup" "--draft $tmp/draft.gguf" "-md $model --draft-p-min 0 --draft-max 5" "--lookup --draft-max 64 --draft-min 3" \
        "--draft $tmp/draft.gguf -cd 70 -devd cpu"; do
        for place in "" "-t 3 -ub 4" "-ub 1" "--split cpu=2,cpu1=3" "-ctk q8_0"; do
            [ "$place" != "-ctk q8_0" ] || run "$tmp/plain" $how $place
            run "$tmp/guessed" $how $guess $place
            cmp -s "$tmp/plain" "$tmp/guessed" || fail "$how $guess $place: another text"
            grep -q '^guesses .*tokens .*right' "$tmp/err" || fail "$how $guess $place: no number of guesses: $(cat "$tmp/err")"
        done
        run "$tmp/plain" $how
    done
done
exits 1 "$cli" -p x -n 1 --draft "$other"
prints "another vocabulary: 1536 tokens, the model 2048"
exits 1 "$cli" -m "$other" -p x -n 1 --draft "$source/tests/data/stories-qwen2.gguf"
prints "another vocabulary"
exits 1 "$cli" -p x -n 1 --draft "$tmp/none.gguf"
prints "--draft: $tmp/none.gguf"
exits 2 "$cli" -p x -n 1 --draft 8
prints "--draft-max sets the number"
exits 2 "$cli" -p x -n 1 --draft "$model" --lookup
prints "cannot be used together"
exits 2 "$cli" -p x -n 1 --lookup --draft-max 4 --draft-min 5
prints "--draft-min 5 is more than --draft-max 4"
exits 2 "$cli" -p x -n 1 --lookup --draft-n 4 --draft-n-min 5 # options are named as they were typed
prints "--draft-n-min 5 is more than --draft-n 4"
exits 2 "$cli" -p x -n 1 -nr --f16-as-bf16
prints "--f16-as-bf16 and -nr cannot be used together"
exits 2 "$cli" -p x -n 1 -cd 100
prints "-cd needs --draft"

# --- a prompt cache ------------------------------------------------------------------------------------------------------
cache=$tmp/a.cache
run "$tmp/plain" --seed 3
run "$tmp/with" --seed 3 --prompt-cache "$cache"
cmp -s "$tmp/plain" "$tmp/with" && [ -s "$cache" ] && ! grep -q 'from cache' "$tmp/err" || fail "the first run: $(cat "$tmp/err")"
cp "$cache" "$tmp/first"
run "$tmp/with" --seed 3 --prompt-cache "$cache" -t 2 -ub 5
cmp -s "$tmp/plain" "$tmp/with" || fail "another text with a cache"
grep -q 'prompt .* 1 tokens' "$tmp/err" && grep -q '^from cache *[0-9]* tokens' "$tmp/err" || fail "nothing from the cache: $(cat "$tmp/err")"
cmp -s "$cache" "$tmp/first" || fail "a file that has the whole prompt is written again"
run "$tmp/with" --seed 3 --prompt-cache "$cache" --prompt-cache-all --lookup
cmp -s "$tmp/plain" "$tmp/with" || fail "another text with --prompt-cache-all"
# what was generated is now the beginning of a prompt
longer=$(cat "$tmp/plain")
"$cli" -p "$longer" --no-escape -n 20 --temp 0 >"$tmp/a" 2>/dev/null </dev/null
"$cli" -p "$longer" --no-escape -n 20 --temp 0 --prompt-cache "$cache" --prompt-cache-ro >"$tmp/b" 2>"$tmp/err" </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "another text after the saved answer"
[ "$(sed -n 's/^from cache *\([0-9]*\) .*/\1/p' "$tmp/err")" -gt 80 ] || fail "the answer is not in the cache: $(cat "$tmp/err")"

# --- files that do not fit -----------------------------------------------------------------------------------------------
cp "$cache" "$tmp/ours"
"$cli" -m "$other" -p "$story" -n 5 --prompt-cache "$cache" --prompt-cache-ro >/dev/null 2>"$tmp/err" </dev/null || fail "another model's cache"
grep -q 'made with another model: builtin:stories; now: stories-gpt2.gguf' "$tmp/err" || fail "another model: $(cat "$tmp/err")"
cmp -s "$cache" "$tmp/ours" || fail "--prompt-cache-ro changes the file"
exits 2 "$cli" -m "$other" -p "$story" -n 5 --prompt-cache "$cache"
prints "$cache: this prompt cache belongs to the model builtin:stories, and is left as it is"
cmp -s "$cache" "$tmp/ours" || fail "another model's cache is overwritten"
run "$tmp/with" --seed 3 --prompt-cache "$cache" --prompt-cache-ro -ctk q8_0
grep -q "keys of type f16" "$tmp/err" || fail "another type: $(cat "$tmp/err")"
run "$tmp/with" --seed 3 --prompt-cache "$cache" --prompt-cache-ro --split cpu=2,cpu1=3
grep -q "^from cache" "$tmp/err" || fail "another split of processors: $(cat "$tmp/err")"
run "$tmp/with" --seed 3 --prompt-cache "$cache" --prompt-cache-ro --device reference
grep -q "another setting: none; now: on double precision" "$tmp/err" || fail "another device: $(cat "$tmp/err")"
run "$tmp/with" --seed 3 --prompt-cache "$cache" --prompt-cache-ro --f16-as-bf16
grep -q "another setting: none; now: f16 as bf16" "$tmp/err" || fail "another rounding: $(cat "$tmp/err")"
printf 'x' | dd of="$cache" bs=1 seek=3000 conv=notrunc 2>/dev/null
run "$tmp/with" --seed 3 --prompt-cache "$cache"
grep -q "$cache: .*damaged.*runs without it" "$tmp/err" && cmp -s "$tmp/plain" "$tmp/with" || fail "a damaged file: $(cat "$tmp/err")"
run "$tmp/with" --seed 3 --prompt-cache "$cache"
grep -q '^from cache' "$tmp/err" && cmp -s "$tmp/plain" "$tmp/with" || fail "a damaged file is not written again: $(cat "$tmp/err")"
printf 'my notes' >"$tmp/notes"
exits 2 "$cli" -p "$story" -n 1 --prompt-cache "$tmp/notes"
prints "not a prompt cache"
[ "$(cat "$tmp/notes")" = 'my notes' ] || fail "a file of another kind is overwritten"
exits 1 "$cli" -p "$story" -n 1 --prompt-cache "$tmp/none/x"
prints "--prompt-cache: $tmp/none"
[ ! -s "$tmp/out" ] || fail "a path that cannot be written is found only at the end"
run "$tmp/with" --prompt-cache "$tmp/none" --prompt-cache-ro
grep -q 'there is no such file' "$tmp/err" || fail "--prompt-cache-ro without a file: $(cat "$tmp/err")"
exits 2 "$cli" -p x --prompt-cache-all
prints "need --prompt-cache FILE"
exits 2 "$cli" -m "$model" -p x -n 1 --prompt-cache "$model"
prints "also the file of -m"

# --- a disk that is full, and several programs at once -------------------------------------------------------------------
run "$tmp/with" --seed 3 --prompt-cache "$cache"
cp "$cache" "$tmp/ours"
(
    trap '' XFSZ
    ulimit -f 2
    "$cli" -p "And then $story" -n 5 --prompt-cache "$cache" >/dev/null 2>"$tmp/err.full" </dev/null
    [ $? -eq 1 ] || echo "exit code 0" >"$tmp/err.full"
)
cmp -s "$cache" "$tmp/ours" && grep -q "the prompt is not saved: $cache" "$tmp/err.full" || fail "a full disk: $(cat "$tmp/err.full")"
for i in 1 2 3 4 5 6; do
    "$cli" -p "$story" -n 60 --ignore-eos --seed 3 --prompt-cache "$cache" --prompt-cache-all >"$tmp/at.$i" 2>"$tmp/err.$i" </dev/null &
done
wait
for i in 1 2 3 4 5 6; do
    cmp -s "$tmp/plain" "$tmp/at.$i" && grep -q '^from cache' "$tmp/err.$i" || fail "several programs at once: $(cat "$tmp/err.$i")"
done
[ "$(find "$tmp" -name '*.tmp-*' | wc -l)" = 0 ] || fail "a temporary file stays"
exit $failed
