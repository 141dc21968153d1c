#!/bin/bash
# llm-convert as a user meets it, on a folder written here: the smallest model there is. llm-convert.sh PROGRAM
set -u
convert=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

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
grep -q '2 tensors' "$tmp/err" || fail "the number of tensors is not told"
expect 0 "own" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --type f16
expect 0 "own" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch" --vocab-only
expect 1 "no built-in descriptor converts 'OwnForCausalLM'" "$model" -o "$tmp/out.gguf"
expect 1 "config.json" "$tmp/none" -o "$tmp/out.gguf"
expect 1 "its folder does not exist" "$model" -o "$tmp/none/out.gguf" --arch "$tmp/own.arch"
expect 1 "none.arch" "$model" -o "$tmp/out.gguf" --arch "$tmp/none.arch"
expect 2 "-o FILE is missing" "$model"
expect 2 "which FOLDER" -o "$tmp/out.gguf"
expect 2 "argument 1 is empty" "" -o "$tmp/out.gguf"
expect 2 "-o: the value FILE is empty" "$model" -o ""
expect 2 "one folder at a time" "$model" "$model" -o "$tmp/out.gguf"
expect 2 "--type" "$model" -o "$tmp/out.gguf" --type q8_0
# numbers that cannot be meant: an epsilon below zero is noted, weights that are none are refused
sed -e 's/norm, 0.1)/norm, .attention.layer_norm_rms_epsilon)/' \
    -e 's/^  token_embd <-/  .attention.layer_norm_rms_epsilon <- config.eps\n  token_embd <-/' "$tmp/own.arch" >"$tmp/eps.arch"
cp -r "$model" "$tmp/odd"
for eps in -1 0 2; do
    echo "{\"architectures\": [\"OwnForCausalLM\"], \"vocab_size\": 3, \"hidden_size\": 2, \"eps\": $eps}" >"$tmp/odd/config.json"
    expect 0 "note: own.attention.layer_norm_rms_epsilon is $eps, which makes no sense" "$tmp/odd" -o "$tmp/out.gguf" --arch "$tmp/eps.arch"
done
sed -i 's/"eps": 2/"eps": 1e-6/' "$tmp/odd/config.json"
expect 0 "own" "$tmp/odd" -o "$tmp/out.gguf" --arch "$tmp/eps.arch"
grep -q 'makes no sense\|NaN' "$tmp/err" && fail "a good model is blamed: $(cat "$tmp/err")"
printf '\0\0\300\177\0\0\200\177' | dd of="$tmp/odd/model.safetensors" bs=1 seek=$((8 + ${#head})) conv=notrunc 2>/dev/null
for type in auto f16 bf16; do
    expect 1 "tensor 'token_embd.weight': 2 of its 6 weights are NaN or infinite; it comes from embed: the folder is damaged" "$tmp/odd" -o "$tmp/out.gguf" \
        --arch "$tmp/eps.arch" --type $type
done
head -c 100 "$model/model.safetensors" >"$tmp/cut"
cp "$tmp/cut" "$model/model.safetensors"
expect 1 "model.safetensors: the file has 100 bytes, too few for its header" "$model" -o "$tmp/out.gguf" --arch "$tmp/own.arch"
if [ -w /dev/full ]; then
    "$convert" --help >/dev/full 2>/dev/null && fail "a full disk goes unnoticed"
fi
"$convert" --help | grep -q -- '--vocab-only' || fail "--help"
exit $failed
