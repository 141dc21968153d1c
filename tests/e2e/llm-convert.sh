#!/bin/bash
# llm-convert as users run it, on a folder written here, with the smallest possible model. llm-convert.sh PROGRAM
set -u
convert=$1
source "$(dirname "$0")/common.sh"

# expect CODE WORDS ARGS..: the exit code, the words on standard error, nothing on standard output, no file after a failure
expect() {
    local code=$1 words=$2
    shift 2
    rm -f "$tmp/out.gguf"
    "$convert" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    local got=$?
    [ $got = "$code" ] || fail "llm-convert $*: exit code $got, not $code: $(head -c 300 "$tmp/err")"
    grep -qF -- "$words" "$tmp/err" || fail "llm-convert $*: no '$words' in: $(head -c 300 "$tmp/err")"
    [ ! -s "$tmp/out" ] || fail "llm-convert $*: writes to standard output"
    if [ "$code" = 0 ]; then
        [ "$(head -c 4 "$tmp/out.gguf")" = GGUF ] || fail "llm-convert $*: no GGUF file"
    else
        [ ! -e "$tmp/out.gguf" ] || fail "llm-convert $*: a file is left"
    fi
    [ -z "$(find "$tmp" -name '*.tmp-*')" ] || fail "llm-convert $*: a temporary file is left"
}

cat >"$tmp/own.arch" <<'END'
arch own
language 1
n_embd = .embedding_length
token_embd [n_embd, n_vocab]
norm [n_embd]
logits = linear(rms_norm(token_embd[token], norm, 0.1), token_embd)
convert OwnForCausalLM:
  .vocab_size       <- config.vocab_size
  .embedding_length <- config.hidden_size
  token_embd <- "embed"
  norm       <- "norm" + 1
END
model=$tmp/model
mkdir "$model"
echo '{"architectures": ["OwnForCausalLM"], "vocab_size": 3, "hidden_size": 2}' >"$model/config.json"
head='{"embed": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}, "norm": {"dtype": "F32", "shape": [2], "data_offsets": [24, 32]}}  '
{
    printf "\\x$(printf %x ${#head})\\0\\0\\0\\0\\0\\0\\0%s" "$head"
    head -c 32 /dev/zero
} >"$model/model.safetensors"

expect 0 "OwnForCausalLM: architecture own, by $tmp/own.arch" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch"
grep -q 'note: the folder has no tokenizer' "$tmp/err" || fail "no note that there is no tokenizer"
echo "IQ== 0" >"$model/tokenizer.model"
expect 1 "tokenizer.model: a file of tiktoken; how text is cut into words is in the code of the tokenizer's class, and the folder names none" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch"
expect 0 "own" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --no-tokenizer
rm "$model/tokenizer.model"
grep -q '2 tensors' "$tmp/err" || fail "the number of tensors is not told"
expect 0 "own" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --type f16
expect 1 "$model has no tokenizer, so --vocab-only leaves nothing to write" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --vocab-only
cp -r "$model" "$tmp/vocab"
echo '{"pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}' >"$tmp/vocab/tokenizer.json"
expect 0 "own" "$tmp/vocab" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --vocab-only
# a name for nothing: the model's size says how many tokens there can be
sed -i 's/"ab": 2/"ab": 16777215/' "$tmp/vocab/tokenizer.json"
expect 1 "the tokenizer has 16777216 tokens, but the model has rows for 3" "$tmp/vocab" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --vocab-only
sed 's/^  .vocab_size .*/  .vocab_size <- none/' "$tmp/own.arch" >"$tmp/sizeless.arch"
sed -i 's/^  token_embd/  ignore config.vocab_size\n  token_embd/' "$tmp/sizeless.arch"
expect 1 "it has 3 tokens with ids up to 16777215, but the number of the model's tokens is unknown" "$tmp/vocab" -o "$tmp/out.gguf" --arch "$tmp/sizeless.arch" --vocab-only
expect 2 "leave nothing to write" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --vocab-only --no-tokenizer
expect 2 "--extra-tokens" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --extra-tokens keep
# a class that config.json does not name, or another one
cp -r "$model" "$tmp/nameless"
sed -i 's/"architectures": \["OwnForCausalLM"\], //' "$tmp/nameless/config.json"
expect 1 "\"architectures\" is not a list with a name, so the kind of model is unknown; set it by --arch-class NAME" "$tmp/nameless" -o "$tmp/out.gguf"
expect 0 "OwnForCausalLM: architecture own" "$tmp/nameless" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --arch-class OwnForCausalLM
# sections that ask for their class get the chosen one
sed 's/^  token_embd/  require config.architectures[0] == "OwnForCausalLM", "another class"\n  token_embd/' "$tmp/own.arch" >"$tmp/asking.arch"
expect 0 "OwnForCausalLM: architecture own" "$tmp/nameless" -o "$tmp/out.gguf" --arch "$tmp/asking.arch" --arch-class OwnForCausalLM
cp -r "$model" "$tmp/misnamed"
sed -i 's/"OwnForCausalLM"/"OtherForCausalLM"/' "$tmp/misnamed/config.json"
expect 0 "OwnForCausalLM: architecture own" "$tmp/misnamed" -o "$tmp/out.gguf" --arch "$tmp/asking.arch" --arch-class OwnForCausalLM
expect 1 "own.arch has no convert section for 'Other', which --arch-class names. There are sections for OwnForCausalLM." "$model" -o "$tmp/out.gguf" \
    --arch "$tmp/own.arch" --arch-class Other
expect 1 "'OwnForCausalLm', which --arch-class names (did you mean 'OwnForCausalLM'?)" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch" \
    --arch-class OwnForCausalLm
expect 1 "no built-in descriptor converts 'LlamaForCausaILM', which --arch-class names (did you mean 'LlamaForCausalLM'?)" "$model" -o "$tmp/out.gguf" \
    --arch-class LlamaForCausaILM
# a tokenizer that is not known, and none asked for
cp -r "$model" "$tmp/unknown"
echo '{"model": {"type": "Markov", "vocab": []}}' >"$tmp/unknown/tokenizer.json"
expect 1 "the tokenizer's type 'Markov' is not supported, only BPE, Unigram, WordLevel and WordPiece are; --no-tokenizer leaves the tokenizer out" "$tmp/unknown" \
    -o "$tmp/out.gguf" --arch "$tmp/own.arch"
expect 1 "WordPiece are" "$tmp/unknown" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --vocab-only
grep -q -e --no-tokenizer "$tmp/err" && fail "--vocab-only is told to leave out the tokenizer: $(cat "$tmp/err")"
expect 0 "own" "$tmp/unknown" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --no-tokenizer
grep -q note "$tmp/err" && fail "--no-tokenizer: $(cat "$tmp/err")"
expect 1 "no built-in descriptor converts 'OwnForCausalLM'" "$model" -o "$tmp/out.gguf"
# the message of the run before names no class: none is of its family
head -c 1500 "$tmp/err" | grep -q 'There are sections for [0-9]* classes (docs/models.md lists them)' || fail "a class of no family: $(cat "$tmp/err")"
expect 1 ", Qwen2VLForConditionalGeneration, Qwen2_5_VLForConditionalGeneration, Qwen2AudioForConditionalGeneration, Qwen2MoeForCausalLM, " "$model" -o "$tmp/out.gguf" --arch-class Qwen2VLForSomething
grep -q 'LlamaForCausalLM' "$tmp/err" && fail "classes of other families are named: $(cat "$tmp/err")"
expect 1 "no built-in descriptor converts the eye or ear of 'OwnForCausalLM'" "$model" --mmproj "$tmp/out.gguf"
grep -q 'Gemma3ForConditionalGeneration' "$tmp/err" || fail "no classes of eyes are named: $(cat "$tmp/err")"
expect 2 "--mmproj cannot be used together with --vocab-only: an eye or ear has none" "$model" --mmproj "$tmp/out.gguf" --vocab-only
expect 2 "--arch is for one file: give -o and --mmproj one after the other" "$model" --mmproj "$tmp/out.gguf" -o "$tmp/out.gguf" --arch own.arch
expect 1 "$tmp/none: the folder does not exist" "$tmp/none" -o "$tmp/out.gguf"
expect 1 "$model/config.json: is a file; give the folder that contains config.json, '$model'" "$model/config.json" -o "$tmp/out.gguf"
# a message names the folder, also where the folder's name is part of a word in it
mkdir "$tmp/o" && echo '{"architectures": ["LlamaForCausalLM"], "vocab_size": 4, "quantization_config": {"bits": 4, "quant_method": "quark"}}' >"$tmp/o/config.json"
expect 1 "config.json" "$tmp/o" -o "$tmp/out.gguf"
(cd "$tmp" && "$convert" o -o out.gguf --vocab-only 2>err </dev/null)
grep -q '^llm-convert: o: ' "$tmp/err" || fail "the folder is not named: $(cat "$tmp/err")"
expect 1 "its folder does not exist" "$model" -o "$tmp/none/out.gguf" --arch "$tmp/own.arch"
expect 1 "none.arch" "$model" -o "$tmp/out.gguf" --arch "$tmp/none.arch"
expect 2 "-o FILE is missing, as in: llm-convert '$model' -o model.gguf" "$model"
expect 2 "'q8_0' is not one of auto, f32, f16, bf16; llm-quantize makes all other types" "$model" --outtype q8_0 -o "$tmp/x.gguf"
expect 2 "which FOLDER" -o "$tmp/out.gguf"
expect 2 "argument 1 is empty" "" -o "$tmp/out.gguf"
expect 2 "-o: the value FILE is empty" "$model" -o ""
expect 2 "only one folder can be converted at a time" "$model" "$model" -o "$tmp/out.gguf"
expect 2 "did you mean -o 'out.gguf'?" "$model" out.gguf
mkdir "$tmp/files"
printf 'GGUF\3\0\0\0' > "$tmp/files/a.gguf"
expect 1 "a.gguf: is a GGUF file already; llm-quantize makes other types of it" "$tmp/files/a.gguf" -o "$tmp/out.gguf"
printf '\211PNG\r\n' > "$tmp/files/a.png"
expect 1 "a.png: is neither a folder with config.json nor a llama2.c checkpoint" "$tmp/files/a.png" -o "$tmp/out.gguf"
printf 'version https://git-lfs.github.com/spec/v1\n' > "$tmp/files/a.bin"
expect 1 "a.bin: this is a Git LFS pointer" "$tmp/files/a.bin" -o "$tmp/out.gguf"
expect 2 "--type" "$model" -o "$tmp/out.gguf" --type q8_0
# a value without a name, and a pattern for it
mkdir "$tmp/empty" && cp "$model/model.safetensors" "$tmp/empty"
sed 's/}$/, "": 5}/' "$model/config.json" >"$tmp/empty/config.json"
expect 1 "--ignore-config ''" "$tmp/empty" -o "$tmp/out.gguf" --arch "$tmp/own.arch"
expect 0 '"" = 5 is ignored at your request' "$tmp/empty" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --ignore-config ''
# dry runs: standard output, no file, all faults at once
dry() { # CODE ARGS..
    local code=$1
    shift
    rm -f "$tmp/out.gguf"
    "$convert" "$@" --dry-run >"$tmp/out" 2>"$tmp/err" </dev/null
    local got=$?
    [ $got = "$code" ] || fail "llm-convert $* --dry-run: exit code $got, not $code: $(cat "$tmp/err" "$tmp/out")"
    [ ! -e "$tmp/out.gguf" ] && [ -z "$(find "$tmp" -name '*.tmp-*')" ] || fail "llm-convert $* --dry-run: a file is left"
}
dry 0 "$model" --arch "$tmp/own.arch"
grep -qx '  own.embedding_length  *2  *u32  *9' "$tmp/out" || fail "--dry-run: a key: $(cat "$tmp/out")"
grep -qx '  embed  *F32  \[2, 3\]  *10 token_embd.weight' "$tmp/out" || fail "--dry-run: a tensor: $(cat "$tmp/out")"
grep -qx 'no faults: it would be written' "$tmp/out" || fail "--dry-run: $(tail -1 "$tmp/out")"
grep -q 'the weights themselves were not checked' "$tmp/out" || fail "--dry-run: $(tail -2 "$tmp/out")"
sed -i 's/16777215/2/' "$tmp/vocab/tokenizer.json"
dry 0 "$tmp/vocab" --arch "$tmp/own.arch" -o "$tmp/out.gguf" --vocab-only
grep -q 'the weights themselves' "$tmp/out" && fail "--dry-run --vocab-only speaks of weights"
grep -q embed.*F32 "$tmp/out" && fail "--dry-run --vocab-only shows tensors"
dry 1 "$model"
cp -r "$model" "$tmp/faults"
echo '{"architectures": ["OwnForCausalLM"], "vocab_size": 4, "hidden_size": 2, "clip_qkv": 8, "odd": {"x": "y\u001b"}}' >"$tmp/faults/config.json"
sed -e 's/"norm" + 1/"nor" + 1/' -e 's/^  \.vocab_size/  require config.vocab_size == 3, "the size is"\n  .unknown <- 5\n  .vocab_size/' "$tmp/own.arch" >"$tmp/faults.arch"
dry 1 "$tmp/faults" --arch "$tmp/faults.arch" -o "$tmp/out.gguf"
for words in 'clip_qkv  *8' 'odd.x  *"y\\x1b"' 'norm  *F32  \[2\]  *UNREAD' 'faults.arch:8:11: error: the size is: config.vocab_size = 4' \
    'faults.arch:9:3: error: key own.unknown = 5 is not read by' 'tensor token_embd.weight is \[2, 3\], declared' \
    'nothing in the folder is the source of norm.weight; it comes from nor.weight' '7 faults: nothing would be written'; do
    grep -q -- "$words" "$tmp/out" || fail "--dry-run: no '$words' in: $(cat "$tmp/out")"
done
sed 's/config.hidden_size/config.nothing/' "$tmp/own.arch" >"$tmp/nokey.arch" # then it is not known what tensors there are
dry 1 "$model" --arch "$tmp/nokey.arch"
grep -q 'config.nothing is missing in config.json' "$tmp/out" || fail "--dry-run without a key: $(cat "$tmp/out")"
grep -qx '  embed  *F32  \[2, 3\]  *?' "$tmp/out" || fail "--dry-run without a key: $(cat "$tmp/out")"

# at the user's own risk
expect 1 "clip_qkv = 8, odd.x = " "$tmp/faults" -o "$tmp/out.gguf" --arch "$tmp/own.arch"
grep -q -- "--ignore-config 'clip_qkv'" "$tmp/err" || fail "--ignore-config is not named: $(cat "$tmp/err")"
sed -i 's/"vocab_size": 4/"vocab_size": 3/' "$tmp/faults/config.json"
expect 0 "note: clip_qkv = 8, odd.x = \"y\x1b\" are ignored at your request" "$tmp/faults" -o "$tmp/out.gguf" --arch "$tmp/own.arch" \
    --ignore-config 'clip*' --ignore-config 'odd.*'
expect 0 "note: --ignore-config '*' matches nothing unread" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --ignore-config '*'
expect 0 "note: clip_qkv = 8, odd.x = \"y\x1b\" are ignored at your request" "$tmp/faults" -o "$tmp/out.gguf" --arch "$tmp/own.arch" \
    --ignore-config clip_qkv --ignore-config odd --ignore-config hidden_size --ignore-tensor 'x.*'
for words in "--ignore-config 'hidden_size' matches nothing" "--ignore-tensor 'x.*' matches nothing"; do
    grep -qF -- "$words" "$tmp/err" || fail "no note '$words': $(cat "$tmp/err")"
done
[ "$(grep -c 'matches nothing' "$tmp/err")" = 2 ] || fail "a pattern that fits is blamed: $(cat "$tmp/err")"
sed -e 's/^norm .*//' -e '/^  norm /d' -e 's/, norm, 0.1/, none, 0.1/' "$tmp/own.arch" >"$tmp/nonorm.arch"
expect 1 "tensor norm: read by no line" "$model" -o "$tmp/out.gguf" --arch "$tmp/nonorm.arch"
expect 0 "note: norm is ignored at your request" "$model" -o "$tmp/out.gguf" --arch "$tmp/nonorm.arch" --ignore-tensor 'n*m'
dry 0 "$tmp/faults" --arch "$tmp/nonorm.arch" --ignore-tensor norm --ignore-config '*'
grep -q 'norm .*ignored at your request' "$tmp/out" || fail "--dry-run --ignore-tensor: $(cat "$tmp/out")"

# numbers that cannot be meant: an epsilon below zero, a number beyond f32, weights that are none
sed -e 's/norm, 0.1)/norm, .attention.layer_norm_rms_epsilon) * .logit_scale/' \
    -e 's/^  token_embd <-/  .attention.layer_norm_rms_epsilon <- config.eps\n  .logit_scale <- config.scale ?? 1\n  token_embd <-/' "$tmp/own.arch" >"$tmp/eps.arch"
cp -r "$model" "$tmp/odd"
for eps in -1 0 2 1e-60; do
    echo "{\"architectures\": [\"OwnForCausalLM\"], \"vocab_size\": 3, \"hidden_size\": 2, \"eps\": $eps}" >"$tmp/odd/config.json"
    expect 1 "own.attention.layer_norm_rms_epsilon has the value $eps, which cannot be right" "$tmp/odd" -o "$tmp/out.gguf" --arch "$tmp/eps.arch"
    grep -q "$tmp/odd: $tmp/eps.arch:10:3: error:" "$tmp/err" || fail "no folder, no line: $(cat "$tmp/err")"
done
echo '{"architectures": ["OwnForCausalLM"], "vocab_size": 3, "hidden_size": 2, "eps": 0, "scale": 1e39}' >"$tmp/odd/config.json"
dry 1 "$tmp/odd" --arch "$tmp/eps.arch"
for words in 'own.attention.layer_norm_rms_epsilon has the value 0, which cannot be right' 'own.logit_scale has the value 1e+39, which is too large'; do
    [ "$(grep -c "$words" "$tmp/out")" = 1 ] || fail "--dry-run: '$words' stands not once in: $(cat "$tmp/out")"
done
sed -i 's/"eps": 0, "scale": 1e39/"eps": 1e-6/' "$tmp/odd/config.json"
expect 0 "own" "$tmp/odd" -o "$tmp/out.gguf" --arch "$tmp/eps.arch"
grep -q 'makes no sense\|NaN' "$tmp/err" && fail "a good model is blamed: $(cat "$tmp/err")"
printf '\0\0\300\177\0\0\200\177' | dd of="$tmp/odd/model.safetensors" bs=1 seek=$((8 + ${#head})) conv=notrunc 2>/dev/null
for type in auto f16 bf16; do
    expect 1 "llm-convert: $tmp/odd: tensor 'token_embd.weight': 2 of its 6 weights are NaN or infinite; it comes from embed: the folder is damaged" "$tmp/odd" -o "$tmp/out.gguf" \
        --arch "$tmp/eps.arch" --type $type
done
# what stands in place of a file
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n' >"$tmp/pointer"
for file in config.json model.safetensors tokenizer.json; do
    rm -rf "$tmp/lfs" && cp -r "$tmp/vocab" "$tmp/lfs" && cp "$tmp/pointer" "$tmp/lfs/$file"
    expect 1 "$tmp/lfs/$file: this is a Git LFS pointer, not the file itself: 'git lfs pull'" "$tmp/lfs" -o "$tmp/out.gguf" --arch "$tmp/own.arch"
done
printf '\357\273\277{}' >"$tmp/lfs/config.json"
expect 1 "lfs/config.json: the text begins with a byte order mark" "$tmp/lfs" -o "$tmp/out.gguf" --arch "$tmp/own.arch"
sed 's/3/NaN/' "$model/config.json" >"$tmp/lfs/config.json"
expect 1 "or a list of these: it is the number nan" "$tmp/lfs" -o "$tmp/out.gguf" --arch "$tmp/own.arch"
head -c 100 "$model/model.safetensors" >"$tmp/cut"
cp "$tmp/cut" "$model/model.safetensors"
expect 1 "model.safetensors: the file has 100 bytes, too few for its header" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch"
if [ -w /dev/full ]; then
    "$convert" --help >/dev/full 2>/dev/null && fail "a full disk goes unnoticed"
fi
"$convert" --help | grep -q -- '--vocab-only' || fail "--help"
exit $failed
