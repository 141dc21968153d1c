#!/bin/bash
# llm-arch doctor with another engine's logits and with a text, and llm-arch verify with given tokens.
# doctor.sh LLM-ARCH LLM-CLI LLM-QUANTIZE MODEL FOLDER-OF-ARCHS FOLDER-OF-DATA
set -u
arch=$1 cli=$2 quantize=$3 quantized=$4 archs=$5 data=$6
source "$(dirname "$0")/common.sh"

# expect CODE WORDS ARGS..: the exit code, and the words in what it says on either stream
expect() {
    local code=$1 words=$2
    shift 2
    exits "$code" "$arch" "$@"
    prints "$words"
}
says() { grep -qF -- "$1" "$tmp/out" || fail "no '$1' in: $(cat "$tmp/out")"; }
says_not() { ! grep -F -- "$1" "$tmp/out" || fail "'$1' in: $(cat "$tmp/out")"; }

# logits FILE ARCH MODEL IDS: what MODEL, read by ARCH, makes of IDS
logits() {
    "$cli" -m "$3" --arch "$2" --tokens "$4" -n 0 -ctk f32 -ctv f32 --logits "$1" >/dev/null 2>"$tmp/err" </dev/null ||
        fail "logits by $2: $(cat "$tmp/err")"
}

# weights in f32, so that nothing but the reading makes a difference
model=$tmp/stories.gguf gpt2=$tmp/gpt2.gguf
"$quantize" --allow-requantize "$quantized" "$model" F32 >/dev/null || fail "stories in f32"
"$quantize" --allow-requantize "$data/stories-gpt2.gguf" "$gpt2" F32 >/dev/null || fail "gpt2 in f32"

ids=1,403,407,261,378,367,432,317,491,263,285,399,410,471,286,302
sed 's/rope_pair/rope_half/' "$archs/llama.arch" >"$tmp/half.arch"
sed 's/linear(h, attn_q)/1.5 * linear(h, attn_q)/' "$archs/llama.arch" >"$tmp/sharp.arch"
sed 's/silu(linear/1.0005 * silu(linear/' "$archs/llama.arch" >"$tmp/bent.arch"
logits "$tmp/want.npy" "$archs/llama.arch" "$model" $ids

# --- doctor by logits -----------------------------------------------------------------------------------------------------
by=(--logits "$tmp/want.npy" --tokens $ids)
expect 0 "no reading is nearer than the descriptor's" doctor "$model" "${by[@]}"
says "the logits agree: "
says "16 tokens, a range of "
says_not "<-"
expect 0 "the logits agree: " doctor "$model" --logits "$tmp/want.npy" --tokens "[${ids//,/, }]"

# one reading is nearer, and named
expect 0 "the nearest is rotated pairs: neighbours; make this change first" doctor "$model" --arch "$tmp/half.arch" "${by[@]}"
says "with this change the logits agree: "
[ "$(grep -c '<- nearer' "$tmp/out")" = 1 ] && grep -q '^  rotated pairs .*<- nearer' "$tmp/out" || fail "marked: $(cat "$tmp/out")"

# a choice that goes through a name of the descriptor's, which nothing else reads
sed -e 's/attention(q, k, v)/attention(q, k, v, scale = steep)/' -e 's|^n_expert |steep = 1.5 / sqrt(d)\nn_expert |' "$archs/llama.arch" \
    >"$tmp/steep.arch"
expect 0 "the nearest is attention scale: 1 / sqrt of the head's size; make" doctor "$model" --arch "$tmp/steep.arch" "${by[@]}"
says_not "cannot be built"

# a key with several that serve where it is absent
sed 's/[.]rope[.]freq_base ?? 10000/.rope.freq_base ?? .rope.global.freq_base ?? (500000) * 2/' "$archs/llama.arch" >"$tmp/base.arch"
expect 0 "read as" doctor "$model" --arch "$tmp/base.arch" "${by[@]}"
says_not "cannot be built"

# a fault that is none of the choices: where it is
expect 0 "no reading is nearer" doctor "$model" --arch "$tmp/sharp.arch" "${by[@]}"
says "the largest difference is at token "
says "the first token agrees ("
says_not "GELU"
says_not "the logits agree"

# a scale that nothing in the file says: of all logits, and of what the first layer sees
sed 's/^logits = /logits = 0.25 * /' "$archs/llama.arch" >"$tmp/quarter.arch"
expect 0 "no reading is nearer" doctor "$model" --arch "$tmp/quarter.arch" "${by[@]}"
says "all logits there are 4 times those here"
sed 's/^x = given(/x = 3 * given(/' "$archs/llama.arch" >"$tmp/loud.arch"
expect 0 "no reading is nearer" doctor "$model" --arch "$tmp/loud.arch" "${by[@]}"
says "the first token, which sees no other, is "
says_not "all logits there"

# a difference of the size that GELU in half precision makes, in a model with GELU and in one without
expect 0 "no reading is nearer" doctor "$model" --arch "$tmp/bent.arch" "${by[@]}"
says_not "GELU"
says_not "the first token agrees"
sed 's/gelu(linear/1.0005 * gelu(linear/' "$archs/gpt2.arch" >"$tmp/bent2.arch"
logits "$tmp/gelu.npy" "$archs/gpt2.arch" "$gpt2" 1,40,41,42,43,44,45,46
expect 0 "a GELU in half precision, which some engines have, makes differences of this size" \
    doctor "$gpt2" --arch "$tmp/bent2.arch" --logits "$tmp/gelu.npy" --tokens 1,40,41,42,43,44,45,46
says "no reading is nearer"
says_not "<-"
expect 0 "the logits agree: " doctor "$gpt2" --logits "$tmp/gelu.npy" --tokens 1,40,41,42,43,44,45,46

# weights that are quantized
logits "$tmp/q8_0.npy" "$archs/llama.arch" "$quantized" $ids
expect 0 "with quantized weights, engines round activations" doctor "$quantized" --arch "$tmp/bent.arch" --logits "$tmp/q8_0.npy" --tokens $ids
expect 0 "with quantized weights, engines round activations" doctor "$quantized" "${by[@]}"
says_not "<-"

# a model without a tokenizer has logits, too
sed 's/tokenizer[.]ggml[.]model/tokenizer.ggml.modem/' "$model" >"$tmp/plain.gguf"
expect 1 "tokenizer" doctor "$tmp/plain.gguf" --text "$0"
expect 0 "the logits agree: " doctor "$tmp/plain.gguf" "${by[@]}"

# as described the logits are NaN
key=llama.attention.layer_norm_rms_epsilon
cp "$model" "$tmp/nan.gguf"
at=$(($(grep -obUa "$key" "$model" | head -n 1 | cut -d: -f1) + ${#key} + 4))
printf '\0\0\200\277' | dd of="$tmp/nan.gguf" bs=1 seek=$at conv=notrunc 2>/dev/null # an epsilon of -1
expect 1 "with the descriptor as it is, the model's logits are NaN: only the readings above that have a difference give numbers" doctor "$tmp/nan.gguf" "${by[@]}"
says_not "<-"

# --- files of logits that do not fit --------------------------------------------------------------------------------------
refused() { expect 1 "$1" doctor "$model" --logits "$2" --tokens $ids; [ ! -s "$tmp/out" ] || fail "a table before '$1'"; }
refused "none.npy" "$tmp/none.npy"
refused "is not a .npy file" "$model"
: >"$tmp/empty.npy"
refused "empty.npy" "$tmp/empty.npy"
head -c 1000 "$tmp/want.npy" >"$tmp/cut.npy"
refused "cut.npy: has 872 bytes of data, but not those of 16 rows of 2048 numbers" "$tmp/cut.npy"
sed "s/'<f4'/'<f2'/" "$tmp/want.npy" >"$tmp/f2.npy"
refused "f2.npy: has elements '<f2', not '<f4': save it as float32" "$tmp/f2.npy"
sed "s/(16, 2048)/(8, 4096) /" "$tmp/want.npy" >"$tmp/8.npy"
refused "8.npy has logits of 8 tokens, but --tokens has 16" "$tmp/8.npy"
sed "s/(16, 2048)/(32768, 1)/" "$tmp/want.npy" >"$tmp/1.npy"
refused "1.npy has logits of 32768 tokens, but --tokens has 16" "$tmp/1.npy"
expect 1 "gelu.npy has logits of 8 tokens, but --tokens has 16" doctor "$model" --logits "$tmp/gelu.npy" --tokens $ids
{ head -c 128 "$tmp/want.npy" | sed "s/(16, 2048)/(16, 2000)/"; tail -c +129 "$tmp/want.npy" | head -c $((4 * 16 * 2000)); } >"$tmp/2000.npy"
refused "2000.npy has 2000 logits for each token, but the model has a vocabulary of 2048" "$tmp/2000.npy"
for k in nan:'\377\377\377\377':NaN inf:'\0\0\200\377':-inf; do
    IFS=: read -r name bytes words <<<"$k"
    cp "$tmp/want.npy" "$tmp/$name.npy"
    printf "$bytes" | dd of="$tmp/$name.npy" bs=1 seek=$((128 + 4 * (3 * 2048 + 17))) conv=notrunc 2>/dev/null
    refused "$name.npy: logit 17 of token 3 is $words, which is not a finite number" "$tmp/$name.npy"
done
{ head -c 128 "$tmp/want.npy"; head -c $((4 * 16 * 2048)) /dev/zero; } >"$tmp/zero.npy"
refused "zero.npy: all logits are 0" "$tmp/zero.npy"

# --- options --------------------------------------------------------------------------------------------------------------
expect 2 "a text is needed: --text FILE; or logits: --logits FILE --tokens IDS" doctor "$model"
expect 2 "--text and --logits cannot be used together" doctor "$model" --text "$0" "${by[@]}"
expect 2 "--text and --tokens cannot be used together" doctor "$model" --text "$0" --tokens 1,2
expect 2 "--logits needs the tokens" doctor "$model" --logits "$tmp/want.npy"
expect 2 "--tokens needs the logits" doctor "$model" --tokens 1,2
expect 2 "-n works only with --text" doctor "$model" "${by[@]}" -n 4
expect 2 "-c 8: less than the 16 tokens" doctor "$model" "${by[@]}" -c 8
expect 0 "the logits agree: " doctor "$model" "${by[@]}" -c 64
expect 2 "'1;2' is not a list of ids" doctor "$model" --logits "$tmp/want.npy" --tokens '1;2'
expect 2 "token 2048 is not in the vocabulary of 2048" doctor "$model" --logits "$tmp/want.npy" --tokens "${ids/403/2048}"

# --- doctor by a text that the model cannot predict: it says so, and marks nothing -------------------------------------------
for i in $(seq 40); do echo "Zq$((i * 7919 % 1000)) #x@W&J^k<vX}Q%~"; done >"$tmp/noise"
for a in "$archs/llama.arch" "$tmp/half.arch"; do
    expect 0 "these weights allow no verdict" doctor "$model" --arch "$a" --text "$tmp/noise"
    says_not "<-"
done

# --- verify of given tokens -----------------------------------------------------------------------------------------------
expect 0 "tokens       16" verify "$model" --tokens $ids
says "nodes agree with the reference"
expect 0 "tokens       2" verify "$model" --tokens "[1, 403]"
expect 0 "tokens       3" verify "$model" --tokens $ids -n 3
expect 0 "nodes agree with the reference" verify "$tmp/plain.gguf" --tokens 1,2,3
expect 1 "tokenizer" verify "$tmp/plain.gguf" -p x
expect 2 "--tokens: token 2048 is not in the vocabulary of 2048" verify "$model" --tokens 1,2048
expect 2 "'one' is not a list of ids such as 1,2,3" verify "$model" --tokens one
expect 2 "-p, -f and --tokens cannot be used together" verify "$model" --tokens 1 -p x
expect 2 "-p, -f and --tokens cannot be used together" verify "$model" -p x -f "$0"
expect 2 "--tokens has 4097 ids, but at most 4096 can be run" verify "$model" --tokens "$(seq -s, 4097)"
exit $failed
