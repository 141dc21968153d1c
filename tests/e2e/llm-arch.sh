#!/bin/bash
# llm-arch as authors of descriptors use it. llm-arch.sh LLM-ARCH LLM-CLI MODEL FOLDER-OF-ARCHS
set -u
arch=$1 cli=$2 model=$3 archs=$4
source "$(dirname "$0")/common.sh"

# expect CODE WORDS ARGS..: the exit code, and the words in what it says on either stream
expect() {
    local code=$1 words=$2
    shift 2
    exits "$code" "$arch" "$@"
    prints "$words"
    ! cat "$tmp/out" "$tmp/err" | grep -F '\x0a' || fail "llm-arch $*: our own newline is escaped"
}

cat >"$tmp/tiny.arch" <<'END'
arch llama
language 1
token_embd [.embedding_length, n_vocab]
x = token_embd[token]
layer l < .block_count:
  attn_norm [.embedding_length]
  x = x + rms_norm(x, attn_norm, 1e-5)
logits = linear(x, token_embd)
END

# --- wrong usage ----------------------------------------------------------------------------------------------------------
expect 2 "usage"
expect 0 "doctor" --help
expect 2 "did you mean 'check'" chek
expect 2 "unknown flag '--nope'; --help lists them" --nope
expect 2 "argument 1 is empty" init "" "$model"
expect 2 "argument 2 is empty" check tiny ""
expect 2 "argument is missing" check
expect 2 "too many" show a b c
expect 2 "did you mean" verify "$model" --wrost 3
expect 1 "no such file" check nothing
expect 1 "this is a model, but a descriptor is expected here" check "$model"
expect 0 "where built-in llama.arch reads them" show "$model" --arch llama
expect 0 "position_embd" show "$archs/../../tests/data/stories-gpt2.gguf" # learned positions: fewer than the usual context
[ -s "$tmp/err" ] && fail "show of a model with few positions: $(cat "$tmp/err")"
expect 0 "llama.arch         $(printf '%4d' "$(wc -l <"$archs/llama.arch")") lines" list
check_piped=$("$arch" check <(cat "$tmp/tiny.arch") 2>&1) || fail "a descriptor from a pipe: $check_piped"
expect 1 "$tmp/none.arch" check "$tmp/none.arch"
expect 1 "none.gguf" show "$tmp/none.gguf"

# --- check ----------------------------------------------------------------------------------------------------------------
expect 0 "made-up models" check "$tmp/tiny.arch"
expect 0 "nodes, on cpu as on the reference" check gpt2
expect 0 "nodes, on reference, cpu as on" check "$tmp/tiny.arch" --backend reference --backend cpu
expect 1 "--backend: " check "$tmp/tiny.arch" --backend abacus
expect 0 "nodes, on cpu" check "$tmp/tiny.arch" --all
expect 1 "are not read by $tmp/tiny.arch:" check "$tmp/tiny.arch" "$model"
! grep -q "made-up" "$tmp/out" "$tmp/err" || fail "made-up models come before the model that was given"
expect 1 "and 41 tensors" check "$tmp/tiny.arch" "$model" --ignore-tensor none
unread=(--ignore-key 'llama.*' --ignore-tensor '*')
expect 0 "ignored at your request: 3 keys llama.*, 41 tensors *" check "$tmp/tiny.arch" "$model" "${unread[@]}"
expect 0 "ignored at your request: 3 keys llama.*, 41 tensors *" graph "$tmp/tiny.arch" "$model" "${unread[@]}"
expect 0 "ignored at your request: 3 keys llama.*, 41 tensors *" verify "$model" --arch "$tmp/tiny.arch" "${unread[@]}"
expect 0 "ignored at your request: 3 keys llama.*, 41 tensors *" diff "$tmp/tiny.arch" "$tmp/tiny.arch" "$model" "${unread[@]}"
expect 0 "ignored at your request: 3 keys llama.*, 41 tensors *" embed "$tmp/tiny.arch" "$model" "$tmp/tiny.gguf" "${unread[@]}"
expect 1 "are not read by general.descriptor:" verify "$tmp/tiny.gguf"
"$cli" -m "$tmp/tiny.gguf" --tokens 1,2 -n 0 "${unread[@]}" 2>"$tmp/err" >/dev/null </dev/null || fail "llm-cli --ignore: $(cat "$tmp/err")"
[ "$(grep -c 'ignored at your request' "$tmp/err")" = 1 ] || fail "llm-cli --ignore: $(cat "$tmp/err")"
expect 0 "no unread key matches the pattern 'llama.logit_skale' to ignore" verify "$model" --ignore-key llama.logit_skale
sed 's/rms_norm/rmsnorm/' "$tmp/tiny.arch" >"$tmp/typo.arch"
expect 1 "typo.arch:7:11: error" check "$tmp/typo.arch"
expect 1 "did you mean rms_norm" check "$tmp/typo.arch"
"$arch" check - <"$tmp/tiny.arch" >"$tmp/out" 2>&1 || fail "check -: $(cat "$tmp/out")"

# --- looking --------------------------------------------------------------------------------------------------------------
narrow() { # the last output fits a terminal of 80 columns, but for paths
    ! grep -vF -e "$model" -e "$tmp" "$tmp/out" | LC_ALL=C grep -E '.{81}' || fail "$1 is wider than 80 columns"
}
expect 0 "llama.arch" list
narrow list
expect 0 "blk.{l}.attn_q.weight" show "$model"
[ ! -s "$tmp/err" ] || fail "show: $(cat "$tmp/err")"
expect 0 "read, llama.arch:5" show "$model"
narrow show
grep -q 'NOT READ' "$tmp/out" && fail "show: $(grep 'NOT READ' "$tmp/out")"
expect 0 "  blk.{l}.attn_q.weight " show "$model" --arch "$tmp/tiny.arch"
narrow "show of what is not read"
grep -q '^  blk.{l}.attn_q.weight .*  NOT READ$' "$tmp/out" || fail "show: $(grep attn_q "$tmp/out")"
grep -q '^  blk.{l}.attn_norm.weight .*l = 0 .. [0-9]*$' "$tmp/out" || fail "show: $(grep attn_norm "$tmp/out")"
grep -q "NOT READ: query heads that share a key head" "$tmp/out" || fail "show: $(cat "$tmp/out")"
expect 0 "harmless: a size of tensors" show "$model" --arch "$tmp/tiny.arch"
expect 1 "nothing.arch" show "$model" --arch "$tmp/nothing.arch"
sed 's/general.architecture/general.architectura/' "$model" >"$tmp/unknown.gguf"
expect 0 "note: it is unknown which keys are read: " show "$tmp/unknown.gguf"
head -c 100000 "$model" >"$tmp/cut.gguf"
expect 0 "note: $tmp/cut.gguf: the file is truncated" show "$tmp/cut.gguf"
expect 0 "note: $tmp/cut.gguf: the file is truncated" diff "$model" "$tmp/cut.gguf"
expect 0 "lines)" diff "$model" "$model"
grep -qE 'the same tensors \([0-9]+ in [0-9]+ lines\)' "$tmp/out" || fail "diff counts lines as tensors: $(cat "$tmp/out")"
expect 0 "bits each" show "$model"
expect 0 "attn_q " graph llama "$model"
grep -qx '' "$tmp/out" && grep -q '^layers\? ' "$tmp/out" || fail "graph: no empty line between its blocks: $(cat "$tmp/out")"
expect 0 "digraph" graph "$tmp/tiny.arch" --format dot
expect 2 "--format" graph llama --format png
expect 0 "enc.conv1 " graph whisper --stage wide # a stage over rows is a graph of its own
# all parts: stages that are graphs of their own, the one that tokens read, the tokens, and what guesses
for part in "wide: after the layers" "enc: layers 0 to 5 (" "rows of wide" "-> cache .* to the tokens" "tokens: layers 0 to 5 (" " from the stage"; do
    "$arch" graph whisper >"$tmp/out" && grep -q -e "$part" "$tmp/out" || fail "graph whisper: no $part in $(cat "$tmp/out")"
done
# the tokens' part begins with what stands before its layers, as it is used
awk '/^tokens: before/ { s = 1 } /^tokens: layers? 0/ { s = s == 1 ? 2 : 9 } s == 1 && /token_embd/ { found = 1 } END { exit !(found && s == 2) }' "$tmp/out" ||
    fail "graph whisper: the embedding does not stand before the layers: $(cat "$tmp/out")"
# columns of the table are those of a terminal, not bytes
[ "$(sed 's/×/x/g; s/·/./g' "$tmp/out" | awk '/enc.attn_norm|enc.attn_q / { print match($0, /(x )?enc[.]attn/) }' | sort -u | wc -l)" = 1 ] ||
    fail "graph whisper: columns are counted in bytes: $(cat "$tmp/out")"
"$arch" graph whisper --format dot >"$tmp/out" || fail "graph whisper --format dot"
[ "$(grep -c 'style=dashed' "$tmp/out")" = 3 ] || fail "no edges from wide to half, from half to enc, and of layers drawn once from enc to the tokens: $(grep dashed "$tmp/out")"
"$arch" graph t5 >"$tmp/out" || fail "graph t5"
awk '/^enc: layers 0/ { s = 1 } /^tokens: / { s = 2 } s == 1 && /dec.attn_q/ { bad = 1 } s == 2 && /enc\./ { bad = 1 } END { exit bad || s != 2 }' "$tmp/out" ||
    fail "parts of t5 are mixed: $(cat "$tmp/out")"
expect 0 "guess: after the layers" graph glm4moe --all
"$arch" graph glm4moe | grep -q 'guess: ' && fail "a model without layers that guess has a part for them"
expect 2 "has no stage 'x' of its own; it has wide" graph whisper --stage x
expect 2 "llama.arch has no stage 'x' of its own" graph llama --stage x
"$arch" graph llama "$model" --format svg -o "$tmp/g.svg" || fail "graph --format svg"
head -c 4 "$tmp/g.svg" | grep -q '<svg' && tail -c 8 "$tmp/g.svg" | grep -q '</svg>' || fail "no whole SVG"
expect 0 "token_embd  768×50257 f16" graph --shape gpt2-124m
expect 0 "layers 0 to 21" graph llama --shape tinyllama-1.1b --format dot
expect 0 "attn_k_norm" graph --shape qwen3-moe-1b # a name that another descriptor has
expect 2 "FILE is missing" graph
expect 2 "did you mean 'tinyllama-1.1b'" graph --shape tinylama
expect 2 "--all cannot be given with it" graph --shape gpt2-124m --all
expect 2 "a model cannot be given with it" graph llama "$model" --shape gpt2-124m
expect 1 "has the architecture 'gpt2'" graph llama --shape gpt2-124m
# the picture in the README is the one that this program draws
"$arch" graph --shape llama-3.2-1b --format svg | cmp - "$archs/../../docs/llama.svg" || fail "docs/llama.svg is out of date"
if command -v python3 >/dev/null; then
    mkdir "$tmp/pictures"
    for a in "$archs"/*.arch; do
        name=$(basename "$a" .arch)
        [ "$name" = prelude ] && continue
        "$arch" graph "$a" --format svg -o "$tmp/pictures/$name.svg" || fail "$a: no picture"
        "$arch" graph "$a" --format svg --all -o "$tmp/pictures/$name-all.svg" || fail "$a: no picture of all"
    done
    python3 "$(dirname "$0")/svg_check.py" "$tmp"/pictures/*.svg || fail "pictures of descriptors"
fi
expect 1 "$tmp/none/x.svg" graph llama --format svg -o "$tmp/none/x.svg"

# --- diff -----------------------------------------------------------------------------------------------------------------
expect 0 "the same nodes" diff llama "$archs/llama.arch"
sed 's/rope_pair/rope_half/' "$archs/llama.arch" >"$tmp/half.arch"
expect 1 "+ 0     rope_half" diff "$archs/llama.arch" "$tmp/half.arch" "$model"
# numbers, and operators between weights and numbers, which are constants of a run
cat >"$tmp/numbers.arch" <<'END'
arch llama
language 1
token_embd [.embedding_length, n_vocab]
x = token_embd[token]
freq = freqs(.rope.dimension_count, 10000)
layer l < .block_count:
  attn_norm [.embedding_length]
  x = x + rms_norm(rope_half(x, freq), attn_norm, 1e-5) / (1 - sigmoid(attn_norm))
logits = linear(x, token_embd)
END
other() { # PATTERN TEXT ..: the descriptor with the text differs, and the lines of the difference have the words
    sed "s/$1/$2/" "$tmp/numbers.arch" >"$tmp/numbers2.arch"
    expect 1 "$3" diff "$tmp/numbers.arch" "$tmp/numbers2.arch" "$model" "${unread[@]}"
    grep -qF -e "$4" "$tmp/out" || fail "diff of $1 and $2: $(cat "$tmp/out")"
}
other 10000 500000 '-       ** 10000 ..' '+       ** 500000 ..'
other '1e-5' '2e-5' '- 0     rms .. (1e-05)' '+ 0     rms .. (2e-05)'
other 'sigmoid' 'tanh' '- 0     sigmoid blk.0.attn_norm.weight:f32' '+ 0     tanh blk.0.attn_norm.weight:f32'
other "(1 - " "(2 - " '- 0     - 1 ..' '+ 0     - 2 ..'
other 'linear(x, token_embd)' '& \/ 0' '/ .. 0' '+ '
# the same nodes, of which one reads another value
sed 's/^layer/y = rope_half(x, freq)\nz = rope_pair(x, freq)\nx = (y + z) * y\n&/' "$tmp/numbers.arch" >"$tmp/wires.arch"
sed 's/\* y$/* z/' "$tmp/wires.arch" >"$tmp/wires2.arch"
expect 0 "the same nodes" diff "$tmp/wires.arch" "$tmp/wires.arch" "$model" "${unread[@]}"
expect 1 "-     of line " diff "$tmp/wires.arch" "$tmp/wires2.arch" "$model" "${unread[@]}"
sed 's/1 - sigmoid(attn_norm)/-(sigmoid(attn_norm) - 1)/' "$tmp/numbers.arch" >"$tmp/numbers2.arch"
expect 0 "the same nodes and constants, which are computed in other ways" diff "$tmp/numbers.arch" "$tmp/numbers2.arch" "$model" "${unread[@]}"
# results that are no numbers are wrong with a model, and with made-up ones if they are with all of them
sed 's/sigmoid(attn_norm)/sqrt(-1 - abs(attn_norm))/' "$tmp/numbers.arch" >"$tmp/numbers2.arch"
expect 1 "numbers2.arch:8 ($model): 20480 of 20480 results are NaN in double precision, too; the first value that has a NaN is" check "$tmp/numbers2.arch" "$model" "${unread[@]}"
expect 1 "results are NaN in double precision" check "$tmp/numbers2.arch"
sed 's/= token_embd\[token\]/& * 1e39/' "$tmp/numbers.arch" >"$tmp/numbers2.arch"
expect 1 "the first value that has a NaN is x = *(..)" check "$tmp/numbers2.arch" "$model" "${unread[@]}"
expect 0 "runs have results that are NaN or infinite, as made-up numbers can make them: clip-janus.arch:20 (" check clip-janus
expect 0 "the same tensors" diff "$model" "$model"
expect 2 "is a model" diff "$model" llama

# --- init: its declarations, with a graph, are a descriptor of the model --------------------------------------------------
"$arch" init - "$model" >"$tmp/init.arch" || fail "init"
grep -q '^  attn_q \[n_embd, n_head\*d\]' "$tmp/init.arch" || fail "init: $(cat "$tmp/init.arch")"
sed -e '/^  # /d' -e '/^logits/d' "$tmp/init.arch" >"$tmp/full.arch"
cat >>"$tmp/full.arch" <<'END'
  h = rms_norm(x, attn_norm, eps)
  q = rope_pair(heads(linear(h, attn_q), n_head), freq, mag)
  k = rope_pair(heads(linear(h, attn_k), n_kv), freq, mag)
  x = x + linear(attention(q, k, heads(linear(h, attn_v), n_kv)), attn_output)
  h = rms_norm(x, ffn_norm, eps)
  x = x + linear(silu(linear(h, ffn_gate)) * linear(h, ffn_up), ffn_down)
logits = linear(rms_norm(x, output_norm, eps), output)
END
"$arch" graph "$tmp/full.arch" "$model" >"$tmp/out" 2>&1 || fail "init and a graph: $(cat "$tmp/out")"
grep -q '# .* ?$' "$tmp/init.arch" && fail "init: open shapes in $(cat "$tmp/init.arch")"
expect 2 "argument 1 is empty" init "" "$model"
# a name that the file does not have is told at once, and check says which it has
expect 0 "note: $model has the architecture 'llama': llm-arch check and the tools need a descriptor of that name (or init - $model)" init mine "$model"
sed 's/^arch llama/arch mine/' "$tmp/full.arch" >"$tmp/mine.arch"
expect 1 "has the architecture 'llama', which this descriptor does not have" check "$tmp/mine.arch" "$model"
grep -q 'write: arch llama' "$tmp/err" || fail "check of another name: $(cat "$tmp/err")"
"$arch" init llama "$model" >"$tmp/out" 2>"$tmp/err" && cmp -s "$tmp/out" "$tmp/init.arch" && [ ! -s "$tmp/err" ] || fail "init NAME: $(cat "$tmp/err")"

# a model of an unknown name: the layer that is left to write is what check names, and the made-up model is not to blame
python3 - "$model" "$tmp/zebra.gguf" <<'END'
import sys
with open(sys.argv[1], "rb") as f:
    data = f.read()
head = data.index(b"tokenizer.")
with open(sys.argv[2], "wb") as f: # names of the same length
    f.write(data[:head].replace(b"llama", b"zebra") + data[head:])
END
"$arch" init - "$tmp/zebra.gguf" >"$tmp/zebra.arch" 2>"$tmp/err" && [ ! -s "$tmp/err" ] || fail "init of an unknown name: $(cat "$tmp/err")"
for of in "$tmp/zebra.gguf" ""; do
    expect 1 "tensor blk.0.attn_norm.weight is declared but does not reach the logits" check "$tmp/zebra.arch" $of
    grep -q 'use it, or remove the line' "$tmp/err" || fail "check of what init wrote does not say what to do: $(cat "$tmp/err")"
    grep -q "'require'" "$tmp/err" && fail "check of what init wrote blames made-up values: $(cat "$tmp/err")"
done
sed "s/^arch llama/arch zebra/" "$tmp/full.arch" >"$tmp/zebra-full.arch"
expect 0 "zebra.gguf: fits" check "$tmp/zebra-full.arch" "$tmp/zebra.gguf"
# one whose keys have another name, about which no error says anything
if [ -x "$(dirname "$arch")/llm-gguf" ]; then
    "$(dirname "$arch")/llm-gguf" set "$model" general.architecture=str:zebra -o "$tmp/renamed.gguf" >"$tmp/out" 2>&1 || fail "llm-gguf set: $(cat "$tmp/out")"
    expect 0 "has no key that begins with 'zebra.', the name of its architecture" init - "$tmp/renamed.gguf"
    grep -q "an error names the$" "$tmp/out" && fail "init says that an error names foreign keys: $(cat "$tmp/out")"
    grep -q '^# Keys that do not begin' "$tmp/out" || fail "init does not say whose keys they are: $(cat "$tmp/out")"
    grep -q '^logits = linear(x, output) # of rms_norm' "$tmp/out" || fail "init passes over output_norm: $(cat "$tmp/out")"
fi

# --- verify ---------------------------------------------------------------------------------------------------------------
expect 0 "nodes agree with the reference" verify "$model"
expect 0 "the same bits" verify "$model" -n 5 -p "Once upon a time"
expect 0 "all are right: off by at most" verify "$model" --gradients --numbers 5 -n 4
expect 2 "reference" verify "$model" --backend none
expect 1 "half.arch" verify "$model" --arch "$tmp/none/half.arch"

# NaN on both sides is no agreement
key=llama.attention.layer_norm_rms_epsilon
cp "$model" "$tmp/nan.gguf"
at=$(($(grep -obUa "$key" "$model" | head -n 1 | cut -d: -f1) + ${#key} + 4))
printf '\0\0\200\277' | dd of="$tmp/nan.gguf" bs=1 seek=$at conv=notrunc 2>/dev/null # an epsilon of -1
expect 1 "16384 of 16384 logits are NaN on the reference, too" verify "$tmp/nan.gguf"
grep -A1 'the first value with a NaN is' "$tmp/out" | grep -q 'rms(..), llama.arch' || fail "the node that makes NaN is not named: $(tail -3 "$tmp/out")"
grep -q 'agree with the reference' "$tmp/out" && fail "verify: NaN agrees"

# --- doctor: a misread rotation shows -------------------------------------------------------------------------------------
# as is what MODEL reads speaks: no truncation, so that no other reading is likelier; one stretch, as the first token begins the story
"$cli" -m "$model" -p "Once upon a time" -n 120 --temp 1 --top-k 0 --top-p 1 --min-p 0 -s 1 --ignore-eos 2>/dev/null >"$tmp/story" </dev/null
expect 1 "with the descriptor as it is, the model's logits are NaN: only the readings above that have a perplexity give numbers" \
    doctor "$tmp/nan.gguf" --text "$tmp/story"
expect 0 "no reading is better" doctor "$model" --text "$tmp/story"
expect 0 "the best is rotated pairs: neighbours" doctor "$model" --text "$tmp/story" --arch "$tmp/half.arch"
expect 2 "--text" doctor "$model"

# --- which descriptor: --arch, search path, the model's own, built in -----------------------------------------------------
origin() { "$cli" --plan "$@" </dev/null 2>&1 | sed -n 's/^descriptor *//p'; }
[ "$(origin -m "$model")" = "built-in llama.arch" ] || fail "not built in: $(origin -m "$model")"
expect 0 "out.gguf" embed "$archs/llama.arch" "$model" "$tmp/out.gguf"
expect 2 "is also the file of MODEL" embed llama "$model" "$model"
expect 1 "tiny.arch" embed "$tmp/tiny.arch" "$model" "$tmp/no.gguf"
[ ! -e "$tmp/no.gguf" ] || fail "a descriptor that does not fit was embedded"
[ "$(origin -m "$tmp/out.gguf")" = "general.descriptor of $tmp/out.gguf" ] || fail "the model's own: $(origin -m "$tmp/out.gguf")"
expect 1 "+ general.descriptor" diff "$model" "$tmp/out.gguf"
mkdir "$tmp/a" "$tmp/b"
cp "$archs/llama.arch" "$tmp/b/llama.arch"
export LLM_ARCH_PATH="$tmp/none::$tmp/a:$tmp/b"
[ "$(origin -m "$tmp/out.gguf")" = "$tmp/b/llama.arch (search path)" ] || fail "search path: $(origin -m "$tmp/out.gguf")"
[ "$(origin -m "$model" --arch "$tmp/half.arch")" = "$tmp/half.arch" ] || fail "--arch: $(origin -m "$model" --arch "$tmp/half.arch")"
echo "arch llama" >"$tmp/a/llama.arch"
"$cli" -m "$model" -p x -n 1 >/dev/null 2>"$tmp/err" </dev/null && fail "a broken descriptor of the search path was passed over"
grep -qF "$tmp/a/llama.arch" "$tmp/err" || fail "the broken descriptor is not named: $(cat "$tmp/err")"
unset LLM_ARCH_PATH

# --- watch ----------------------------------------------------------------------------------------------------------------
wait_for() { # words in the file, for at most 20 s
    for _ in $(seq 200); do
        grep -qF -- "$1" "$2" && return 0
        sleep 0.1
    done
    fail "watch: no '$1' in: $(cat "$2")"
}
cp "$tmp/half.arch" "$tmp/w.arch"
"$cli" -m "$model" --watch --arch "$tmp/w.arch" -p "Once upon a time" -n 12 --temp 0 --place 'blk.*=cpu' --stop nowhere -l 5+0 >"$tmp/out" 2>"$tmp/err" </dev/null &
pid=$!
wait_for "watching" "$tmp/err"
sed 's/silu/sliu/' "$archs/llama.arch" >"$tmp/w.arch"
wait_for "did you mean silu" "$tmp/err"
cp "$archs/llama.arch" "$tmp/w.new" && mv "$tmp/w.new" "$tmp/w.arch"
right=$("$cli" -m "$model" -p "Once upon a time" -n 12 --temp 0 2>/dev/null </dev/null | head -1)
wait_for "$right" "$tmp/out"
kill -INT $pid
wait $pid
[ $? = 130 ] || fail "watch: Ctrl-C"
"$cli" --watch -p x >/dev/null 2>"$tmp/err" </dev/null
[ $? = 2 ] && grep -q -- "--arch" "$tmp/err" || fail "--watch without --arch"
exit $failed
