#!/bin/bash
# --override-kv of the tools that run models. overrides.sh BIN MODEL TEXT
set -u
bin=$1 model=$2 text=$3
source "$(dirname "$0")/common.sh"

run() { # OUT ARGS..: the text that llm-cli writes
    local out=$1
    shift
    "$bin/llm-cli" -m "$model" -p "Once upon a time" -n 24 --temp 0 "$@" >"$tmp/$out" 2>"$tmp/err" </dev/null ||
        fail "llm-cli $*: $(cat "$tmp/err")"
}

refused() { # CODE WORDS TOOL ARGS..
    local code=$1 words=$2 tool=$3
    shift 3
    exits "$code" "$bin/$tool" "$@"
    prints "$words" "$tmp/err"
}

# --- llm-cli -------------------------------------------------------------------------------------------------------------
run plain
run same --override-kv llama.rope.freq_base=float:10000
cmp -s "$tmp/plain" "$tmp/same" || fail "the file's own value changes the text"
run base --override-kv llama.rope.freq_base=float:60
cmp -s "$tmp/plain" "$tmp/base" && fail "--override-kv changes nothing"
run short --override-kv .rope.freq_base=int:60
cmp -s "$tmp/base" "$tmp/short" || fail "a key of the architecture is another one without its name"
run last --override-kv .rope.freq_base=float:5 --override-kv llama.rope.freq_base=float:60
cmp -s "$tmp/base" "$tmp/last" || fail "the last value does not count"
run two --override-kv '.rope.freq_base=float:60,general.name=str:a, b=c,.rope.scaling.factor=float:3'
run both --override-kv .rope.freq_base=float:60 --override-kv .rope.scaling.factor=float:3
cmp -s "$tmp/two" "$tmp/both" || fail "two overrides with a comma are not two"
cmp -s "$tmp/two" "$tmp/base" && fail "the second override after a comma is lost"

one=$(sha256sum <"$model")
refused 2 "--override-kv: 'a' is not KEY=TYPE:VALUE" llm-cli -m "$model" -p x --override-kv a
refused 2 "the TYPE int, float, bool" llm-cli -m "$model" -p x --override-kv a=double:1
refused 2 "'llama.block_count=int:x' is not" llm-cli -m "$model" -p x --override-kv llama.block_count=int:x
refused 1 "llama.rope.speed = 2: overridden, but nothing reads it" llm-cli -m "$model" -p x --override-kv .rope.speed=int:2
refused 1 "'tokenizer.ggml.scores' is a list" llm-cli -m "$model" -p x --override-kv tokenizer.ggml.scores=int:2
exits 0 "$bin/llm-cli" -m "$model" -p x -n 1 --override-kv .rope.speed=int:2 --ignore-key llama.rope.speed
[ "$one" = "$(sha256sum <"$model")" ] || fail "the file has changed"

# --- what is kept is of the same values ------------------------------------------------------------------------------------
"$bin/llm-cli" -m "$model" -p "Once upon" -n 4 --temp 0 --prompt-cache "$tmp/cache" --override-kv .rope.freq_base=int:60 \
    >/dev/null 2>&1 </dev/null || fail "--prompt-cache with --override-kv"
refused 0 "with other overridden keys, or the model's file has changed since; the prompt runs without it" llm-cli -m "$model" -p "Once upon" -n 4 --prompt-cache "$tmp/cache"
exits 0 "$bin/llm-cli" -m "$model" -p "Once upon" -n 4 --prompt-cache "$tmp/cache" --override-kv .rope.freq_base=int:61
prints "with other overridden keys" "$tmp/err"
exits 0 "$bin/llm-cli" -m "$model" -p "Once upon" -n 4 --prompt-cache "$tmp/cache" --override-kv .rope.freq_base=int:61
grep -q "overridden keys" "$tmp/err" && fail "--prompt-cache is not used with the same overrides"
cp "$model" "$tmp/m.gguf"
for base in 10000 60 60; do
    "$bin/llm-cli" -m "$tmp/m.gguf" -p "Once upon a time" -n 24 --temp 0 --repack-cache="$tmp/repacked" \
        --override-kv .rope.freq_base=float:$base >"$tmp/cached.$base" 2>"$tmp/err" </dev/null || fail "--repack-cache: $(cat "$tmp/err")"
done
cmp -s "$tmp/cached.60" "$tmp/base" || fail "--repack-cache gives the text of other keys"

# --- other tools -----------------------------------------------------------------------------------------------------------
for key in 10000 60; do
    "$bin/llm-perplexity" -m "$model" -f "$text" -c 64 --chunks 2 --override-kv .rope.freq_base=float:$key >"$tmp/ppl.$key" 2>"$tmp/err" ||
        fail "llm-perplexity: $(cat "$tmp/err")"
done
cmp -s "$tmp/ppl.10000" "$tmp/ppl.60" && fail "llm-perplexity: --override-kv changes nothing"
for tool in "llm-perplexity -f $text -c 64 --chunks 1" "llm-imatrix -f $text -c 64 --chunks 1 -o $tmp/im.gguf" "llm-bench -p 8 -n 0 -r 1" \
    "llm-server --port 0"; do
    # shellcheck disable=SC2086
    refused 1 "llama.rope.speed = 2: overridden" ${tool%% *} -m "$model" ${tool#* } --override-kv .rope.speed=int:2
    # shellcheck disable=SC2086
    refused 2 "--override-kv: 'x' is not KEY=TYPE:VALUE" ${tool%% *} -m "$model" ${tool#* } --override-kv x
done
exit $failed
