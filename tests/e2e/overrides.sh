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
    ! grep -q '\\x0a' "$tmp/err" || fail "lines of the error are in one: $(cat "$tmp/err")"
}

# --- llm-cli -------------------------------------------------------------------------------------------------------------
run plain
run same --override-kv llama.rope.freq_base=float:10000
cmp -s "$tmp/plain" "$tmp/same" || fail "the file's own value changes the text"
run base --override-kv llama.rope.freq_base=float:60
cmp -s "$tmp/plain" "$tmp/base" && fail "--override-kv changes nothing"
run short --override-kv .rope.freq_base=int:60
cmp -s "$tmp/base" "$tmp/short" || fail "a key of the architecture is another one without its name"
exits 0 "$bin/llm-cli" -m "$model" -p x -n 1 --override-kv llama.context_length=int:64 # which rope_scaled names, too, and the engine reads
exits 0 "$bin/llm-cli" -m "$model" -p x -n 1 --override-kv .pooling_type=int:1
refused 1 'llama.embedding_length = 7 (overridden): ' llm-cli -m "$model" -p x -n 1 --override-kv .embedding_length=int:7
run last --override-kv .rope.freq_base=float:5 --override-kv llama.rope.freq_base=float:60
cmp -s "$tmp/base" "$tmp/last" || fail "the last value does not count"
run two --override-kv '.rope.freq_base=float:60,general.name=str:a, b=c,.rope.scaling.factor=float:3'
run both --override-kv .rope.freq_base=float:60 --override-kv .rope.scaling.factor=float:3
cmp -s "$tmp/two" "$tmp/both" || fail "two overrides with a comma are not two"
cmp -s "$tmp/two" "$tmp/base" && fail "the second override after a comma is lost"

# --- llama.cpp's flags of the rotation: the logits of the file that has their keys -------------------------------------------
logits() { # OUT ARGS..
    local out=$1
    shift
    exits 0 "$bin/llm-cli" -p "Once upon a time, in a land far away, there was a" -n 0 --logits "$tmp/$out" "$@"
}

as_file() { # NAME "KEYS" FLAGS..: the flags say what the keys do
    local name=$1 keys=$2
    shift 2
    # shellcheck disable=SC2086
    exits 0 "$bin/llm-gguf" set "$model" $keys -o "$tmp/$name.gguf"
    logits "$name.file" -m "$tmp/$name.gguf"
    logits "$name.flags" -m "$model" "$@"
    cmp -s "$tmp/$name.file" "$tmp/$name.flags" || fail "$*: other logits than those of $keys"
    cmp -s "$tmp/plain.npy" "$tmp/$name.flags" && fail "$*: nothing changes"
}

logits plain.npy -m "$model"
type=llama.rope.scaling.type=str:yarn orig=llama.rope.scaling.original_context_length=u32:12 factor=llama.rope.scaling.factor=f32
yarn="--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 12"
# shellcheck disable=SC2086
{
    as_file base llama.rope.freq_base=f32:500 --rope-freq-base 500
    as_file linear $factor:4 --rope-freq-scale 0.25
    as_file yarn "$type $orig $factor:4" $yarn
    as_file part "$type $orig $factor:4 llama.rope.scaling.yarn_ext_factor=f32:0.5" $yarn --yarn-ext-factor 0.5
    as_file off "$type $factor:4 llama.rope.scaling.yarn_ext_factor=f32:0 llama.rope.scaling.yarn_attn_factor=f32:1.3" \
        --rope-scaling yarn --rope-scale 4 --yarn-ext-factor 0 --yarn-attn-factor 1.3
    as_file betas "$type $orig $factor:4 llama.rope.scaling.yarn_beta_fast=f32:3 llama.rope.scaling.yarn_beta_slow=f32:0.5" $yarn \
        --yarn-beta-fast 3 --yarn-beta-slow 0.5
    logits defaults $yarn -m "$model" --yarn-ext-factor -1 --yarn-attn-factor 1 --yarn-beta-fast -1 --yarn-beta-slow -1 --rope-freq-base 0
    cmp -s "$tmp/yarn.flags" "$tmp/defaults" || fail "llama.cpp's defaults change the logits"
    logits both -m "$model" $yarn --override-kv .rope.scaling.factor=float:2
    cmp -s "$tmp/yarn.flags" "$tmp/both" || fail "a flag does not count before --override-kv"
    logits unstretched -m "$tmp/yarn.gguf" --rope-scaling none
    cmp -s "$tmp/plain.npy" "$tmp/unstretched" || fail "--rope-scaling none leaves a file's YaRN on"
}
refused 2 "--rope-scale and --rope-freq-scale say the same: give one" llm-cli -m "$model" -p x --rope-scale 2 --rope-freq-scale 0.5
refused 2 "'su' is not one of none, linear, yarn" llm-cli -m "$model" -p x --rope-scaling su
refused 2 "--rope-freq-scale is 1e-40" llm-cli -m "$model" -p x --rope-freq-scale 1e-40
refused 2 "Flags that set them: --rope-scale" llm-cli -m "$model" -p x --rope-scaling none --rope-scale 4
refused 2 "--yarn-attn-factor is for other scalings" llm-cli -m "$model" -p x --rope-scaling yarn --rope-scale 2 --yarn-attn-factor 1.2
for tool in llm-cli "llm-perplexity -f $text -c 64 --chunks 1" "llm-imatrix -f $text -c 64 --chunks 1 -o $tmp/im.gguf" "llm-bench -p 8 -n 0 -r 1" \
    "llm-server --port 0"; do
    [ "${tool%% *}" = llm-bench ] && code=1 || code=2 # llm-bench goes on with other measurements
    # shellcheck disable=SC2086
    refused $code "llama.rope.scaling.yarn_beta_fast = 16: overridden, but nothing reads it" ${tool%% *} -m "$model" ${tool#"${tool%% *}"} --yarn-beta-fast 16
    prints "Flags that set them: --yarn-beta-fast; YaRN's are read only with --rope-scaling yarn" "$tmp/err"
done

one=$(sha256sum <"$model")
refused 2 "--override-kv: 'a' is not KEY=TYPE:VALUE" llm-cli -m "$model" -p x --override-kv a
refused 2 "the TYPE int, float, bool" llm-cli -m "$model" -p x --override-kv a=double:1
refused 2 "'llama.block_count=int:x' is not" llm-cli -m "$model" -p x --override-kv llama.block_count=int:x
refused 2 "lama.rope.freq_base = 2: overridden, but nothing reads it; did you mean llama.rope.freq_base?" llm-cli -m "$model" -p x --override-kv lama.rope.freq_base=int:2
refused 2 "llama.rope.speed = 2: overridden, but nothing reads it" llm-cli -m "$model" -p x --override-kv .rope.speed=int:2
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

# --- defaults of sampling that a file has ------------------------------------------------------------------------------------
seeded() { # OUT SEED ARGS..
    local out=$1 seed=$2
    shift 2
    "$bin/llm-cli" -m "$tmp/sampling.gguf" -p "Once upon a time" -n 24 -s "$seed" "$@" >"$tmp/$out" 2>"$tmp/$out.err" </dev/null ||
        fail "llm-cli $*: $(cat "$tmp/$out.err")"
}
exits 0 "$bin/llm-gguf" set "$model" general.sampling.temp=f32:0 general.sampling.top_k=i32:1 -o "$tmp/sampling.gguf"
for seed in 1 2; do
    seeded file.$seed $seed
    seeded none.$seed $seed --no-file-sampling
    seeded warm.$seed $seed --temp 1
    seeded wild.$seed $seed --temp 1 --top-k 0
done
cmp -s "$tmp/file.1" "$tmp/plain" && cmp -s "$tmp/file.2" "$tmp/plain" || fail "temp 0 of the file: seeds count"
cmp -s "$tmp/none.1" "$tmp/none.2" && fail "--no-file-sampling: the file counts"
cmp -s "$tmp/warm.1" "$tmp/warm.2" || fail "--temp: top_k of the file does not count"
cmp -s "$tmp/wild.1" "$tmp/wild.2" && fail "--top-k: top_k of the file counts"
ran="llm-cli" # without a flag, with one, with all
prints "note: the model's file sets temperature 0, top_k 1; --no-file-sampling ignores that" "$tmp/file.1.err"
prints "note: the model's file sets top_k 1; --no-file-sampling ignores that" "$tmp/warm.1.err"
grep -q "the model's file sets" "$tmp/wild.1.err" "$tmp/none.1.err" && fail "a note about nothing"
seeded quiet 1 -q
[ -s "$tmp/quiet.err" ] && fail "-q: $(cat "$tmp/quiet.err")"
exits 0 "$bin/llm-gguf" set "$model" general.sampling.top_p=f32:1.5 'tokenizer.ggml.suppress_tokens=arr[i32]:5,2048' general.sampling.mirostat=i32:1 -o "$tmp/wrong.gguf"
exits 1 "$bin/llm-gguf" check "$tmp/wrong.gguf"
prints "general.sampling.top_p is 1.5, but must be from 0 to 1; it is not used"
prints "tokenizer.ggml.suppress_tokens lists 1 token that tokenizer.ggml.tokens, of 2048, does not have"
grep -q mirostat "$tmp/out" && fail "mirostat 1 is no fault of a file"
exits 0 "$bin/llm-perplexity" -m "$tmp/wrong.gguf" -f "$text" -c 64 --chunks 1 # which samples nothing
grep -q "sampling" "$tmp/err" && fail "llm-perplexity: $(cat "$tmp/err")"

# --- other tools -----------------------------------------------------------------------------------------------------------
for key in 10000 60; do
    "$bin/llm-perplexity" -m "$model" -f "$text" -c 64 --chunks 2 --override-kv .rope.freq_base=float:$key >"$tmp/ppl.$key" 2>"$tmp/err" ||
        fail "llm-perplexity: $(cat "$tmp/err")"
done
cmp -s "$tmp/ppl.10000" "$tmp/ppl.60" && fail "llm-perplexity: --override-kv changes nothing"
for tool in "llm-perplexity -f $text -c 64 --chunks 1" "llm-imatrix -f $text -c 64 --chunks 1 -o $tmp/im.gguf" "llm-bench -p 8 -n 0 -r 1" \
    "llm-server --port 0"; do
    [ "${tool%% *}" = llm-bench ] && code=1 || code=2 # llm-bench goes on with other measurements
    # shellcheck disable=SC2086
    refused $code "llama.rope.speed = 2: overridden" ${tool%% *} -m "$model" ${tool#* } --override-kv .rope.speed=int:2
    # shellcheck disable=SC2086
    refused 2 "--override-kv: 'x' is not KEY=TYPE:VALUE" ${tool%% *} -m "$model" ${tool#* } --override-kv x
done
exit $failed
