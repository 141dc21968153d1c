#!/bin/bash
# llm-quantize as users run it. llm-quantize.sh PROGRAM LLM_CLI MODEL (a Q8_0 file)
set -u
quantize=$1 cli=$2 model=$3
source "$(dirname "$0")/common.sh"

# run CODE ARGS..: the exit code; results in $tmp/stdout, messages in $tmp/stderr
run() {
    local code=$1
    shift
    "$quantize" "$@" >"$tmp/stdout" 2>"$tmp/stderr" </dev/null
    local got=$?
    [ $got = "$code" ] || fail "llm-quantize $*: exit code $got, not $code: $(head -c 300 "$tmp/stderr")"
    if [ "$code" = 0 ]; then
        [ ! -s "$tmp/stderr" ] || fail "llm-quantize $*: says $(head -c 300 "$tmp/stderr")"
    else
        [ ! -s "$tmp/stdout" ] || fail "llm-quantize $*: prints results after an error"
    fi
    [ -z "$(find "$tmp" -name '*.tmp-*')" ] || fail "llm-quantize $*: a temporary file is left"
}

# expect CODE WORDS ARGS..: that, with words on standard error, and no file
expect() {
    local code=$1 words=$2
    shift 2
    rm -f "$tmp/out.gguf"
    run "$code" "$@"
    grep -qF -- "$words" "$tmp/stderr" || fail "llm-quantize $*: no '$words' in: $(head -c 300 "$tmp/stderr")"
    [ ! -e "$tmp/out.gguf" ] || fail "llm-quantize $*: a file is left"
}

says() {
    grep -qE -- "$1" "$tmp/stdout" || fail "no '$1' in: $(head -c 1000 "$tmp/stdout")"
}

f32=$tmp/f32.gguf
run 0 --allow-requantize "$model" "$f32" F32
says 'bits per weight'

# q8_0 is copied, and comes back from f32 byte by byte
run 0 "$model" "$tmp/a.gguf" Q8_0
says 'tensors .* 0 of them in another type'
run 0 "$f32" "$tmp/b.gguf" q8_0
cmp "$tmp/a.gguf" "$tmp/b.gguf" || fail "q8_0 by way of f32 has other bytes"
run 0 "$tmp/a.gguf" "$tmp/c.gguf" Q8_0
cmp "$tmp/a.gguf" "$tmp/c.gguf" || fail "q8_0 to q8_0 changes bytes"

# the bytes do not depend on the threads
run 0 -t 1 --pure "$f32" "$tmp/t1.gguf" Q4_0
run 0 -t 3 --pure "$f32" "$tmp/t3.gguf" Q4_0
cmp "$tmp/t1.gguf" "$tmp/t3.gguf" || fail "the bytes depend on the threads"
says '^error +rmse [0-9.e+-]+ max [0-9.e+-]+ relative 0?[0-9.]+e-0[12]'
"$cli" -m "$tmp/t1.gguf" -p "Once upon a time" -n 20 --temp 0 >"$tmp/text" 2>/dev/null || fail "the q4_0 model does not run"
grep -q 'Once upon a time' "$tmp/text" || fail "the q4_0 model says nothing"

# what each tensor gets
run 0 --dry-run "$f32" "$tmp/none.gguf" Q8_0
says '^token_embd\.weight +[0-9]+x[0-9]+ +f32 -> q8_0 +[0-9.]+ [kM]B +[0-9.]+ [kM]B$'
says '^blk\.0\.attn_norm\.weight +[0-9]+ +f32 +512 bytes +512 bytes$'
[ ! -e "$tmp/none.gguf" ] || fail "--dry-run writes"
run 0 --dry-run "$f32" F16
says '^blk\.0\.attn_q\.weight .* f32 -> f16 '
run 0 --dry-run --pure --tensor-type 'blk\.\d\.attn_v=f16' --tensor-type 'attn_=q8_0' --token-embedding-type bf16 "$f32" Q4_0
says '^blk\.0\.attn_v\.weight .* f32 -> f16 '
says '^blk\.0\.attn_k\.weight .* f32 -> q8_0 '
says '^blk\.0\.ffn_up\.weight .* f32 -> q4_0 '
says '^token_embd\.weight .* f32 -> bf16 '
run 0 --dry-run --output-tensor-type f16 "$f32" Q8_0
says '^(output|token_embd)\.weight .* f32 -> f16 '
run 0 -v "$f32" "$tmp/v.gguf" Q8_0
says '^tensor +shape +type +rmse +max +relative$'
says '^blk\.0\.attn_q\.weight .* f32 -> q8_0 +[0-9.]+e[0-9+-]+ +[0-9.]+e[0-9+-]+ +[0-9.]+e[0-9+-]+$'

# the file tells its type, and no key is lost
key() { # key FILE NAME: whether the file has the key
    grep -aq -- "$2" "$1"
}
for name in general.file_type general.quantization_version tokenizer.ggml.tokens; do
    key "$tmp/t1.gguf" "$name" || fail "the key $name is missing"
done
u32_of() { # u32_of FILE KEY: its value
    local at
    at=$(LC_ALL=C grep -aobF -- "$2" "$1" | head -1 | cut -d: -f1)
    od -An -tu4 -j $((at + ${#2} + 4)) -N4 "$1" | tr -d ' '
}
[ "$(u32_of "$tmp/t1.gguf" general.file_type)" = 2 ] || fail "general.file_type of Q4_0 is not 2"
[ "$(u32_of "$tmp/a.gguf" general.file_type)" = 7 ] || fail "general.file_type of Q8_0 is not 7"
[ "$(u32_of "$f32" general.file_type)" = 0 ] || fail "general.file_type of F32 is not 0"
[ "$(u32_of "$tmp/a.gguf" general.quantization_version)" = 2 ] || fail "general.quantization_version is not 2"

# a model in two parts becomes one file
u64() { printf "\\x$(printf %02x "$1")\0\0\0\0\0\0\0"; }
string() {
    u64 ${#1}
    printf %s "$1"
}
part() { # part NUMBER NAME: 64 x 2 zeros in f32
    local file=$tmp/split-0000$(($1 + 1))-of-00002.gguf
    {
        printf 'GGUF\3\0\0\0'
        u64 1
        u64 3
        string split.no
        printf "\\2\\0\\0\\0\\$1\\0"
        string split.count
        printf '\2\0\0\0\2\0'
        string split.tensors.count
        printf '\5\0\0\0\2\0\0\0'
        string "$2"
        printf '\2\0\0\0'
        u64 64
        u64 2
        printf '\0\0\0\0'
        u64 0
    } >"$file"
    truncate -s $((($(stat -c %s "$file") + 31) / 32 * 32 + 512)) "$file"
}
part 0 a.weight
part 1 b.weight
run 0 -v "$tmp/split-00001-of-00002.gguf" "$tmp/whole.gguf" Q8_0
says '^a\.weight .* f32 -> q8_0 '
says '^b\.weight .* f32 -> q8_0 '
key "$tmp/whole.gguf" split.count && fail "split.count is kept"
run 0 "$tmp/whole.gguf" "$tmp/whole2.gguf" Q8_0
cmp "$tmp/whole.gguf" "$tmp/whole2.gguf" || fail "a joined model changes when it is copied"
cp "$tmp/split-00002-of-00002.gguf" "$tmp/part2"
run 2 "$tmp/split-00001-of-00002.gguf" "$tmp/split-00002-of-00002.gguf" Q8_0
cmp "$tmp/part2" "$tmp/split-00002-of-00002.gguf" || fail "the second part was written over"

# what cannot be
out=$tmp/out.gguf
expect 2 "did you mean 'Q4_K_M'" "$f32" "$out" Q4_KM
expect 2 "did you mean 'q8_0'" "$f32" "$out" Q8_0 --tensor-type attn=q8-0
expect 2 "'attn' is not PATTERN=TYPE" "$f32" "$out" Q8_0 --tensor-type attn
expect 2 "is not a regular expression" "$f32" "$out" Q8_0 --tensor-type 'attn(=f16'
expect 2 "no tensor that can be quantized has a matching name" "$f32" "$out" Q8_0 --tensor-type nothing=f16
expect 2 "no tensor that can be quantized has a matching name" "$f32" "$out" Q8_0 --tensor-type attn_norm=f16
expect 2 "--output-tensor-type: 'x' is not a type; llm-quantize --help lists them" "$f32" "$out" Q8_0 --output-tensor-type x
expect 1 "type i32 can only be read" "$f32" "$out" i32
expect 1 "TYPE: this build does not have type Q4_2" "$f32" "$out" Q4_2
expect 2 "OUT is missing, as in" "$f32" Q8_0
exits 0 "$quantize" "$f32" "$tmp/threads.gguf" Q8_0 2 # llama.cpp's NTHREADS
exits 0 "$quantize" "$f32" "$tmp/flag.gguf" Q8_0 -t 2
cmp -s "$tmp/threads.gguf" "$tmp/flag.gguf" || fail "IN OUT TYPE NTHREADS is not -t NTHREADS"
for more in 0 x 1000 "-t 2 2"; do
    # shellcheck disable=SC2086
    expect 2 "only IN, OUT and TYPE" "$f32" "$out" Q8_0 $more
done
expect 2 "unknown flag '--pur'; did you mean '--pure'" "$f32" "$out" Q8_0 --pur
expect 1 "is already q8_0" "$model" "$out" --pure Q4_0
expect 1 "No such file or directory" "$tmp/missing.gguf" "$out" Q8_0
expect 1 "its folder does not exist" "$f32" "$tmp/no/out.gguf" Q8_0
head -c 100000 "$f32" >"$tmp/cut.gguf"
expect 1 "cut.gguf: " "$tmp/cut.gguf" "$out" Q8_0
cp "$f32" "$tmp/same.gguf"
run 2 "$tmp/same.gguf" "$tmp/same.gguf" Q8_0
ln -s same.gguf "$tmp/link.gguf"
run 2 "$tmp/link.gguf" "$tmp/same.gguf" Q8_0
cmp "$f32" "$tmp/same.gguf" || fail "the source was changed"
(
    trap - EXIT
    ulimit -f 100
    expect 1 "cannot be written" "$f32" "$out" F16
    exit $failed
) || failed=1
if [ -w /dev/full ]; then
    "$quantize" --dry-run "$f32" F16 >/dev/full 2>/dev/null && fail "a full disk goes unnoticed"
fi

# rows that are no whole blocks: another type, in a line with what that costs
gpt2=$(dirname "$0")/../data/stories-gpt2.gguf # rows of 96
run 0 --dry-run --allow-requantize "$gpt2" Q4_K_M
narrow() { # the paragraph on narrow rows as one line
    sed -n '/^narrow rows/,/^size/p' "$tmp/stdout" | tr -s '\n ' ' '
}
narrow | grep -q '^narrow rows 16 tensors have a larger type .*: 0.32 MiB instead of 0.27 (4 q5_1, not q5_k; 10 q5_0, not q4_k; 2 q8_0, not q6_k)' || fail "narrow rows: $(narrow)"
[ "$(grep -cE '[a-z0-9]\*( |$)' "$tmp/stdout")" = 16 ] || fail "--dry-run does not mark the tensors with narrow rows"
awk 'length > 80' "$tmp/stdout" | grep . && fail "lines of more than 80 columns"
run 0 --allow-requantize -v "$gpt2" "$out" Q4_K_M
[ "$(grep -cE '[a-z0-9]\*( |$)' "$tmp/stdout")" = 16 ] || fail "-v does not mark the tensors with narrow rows"
awk 'length > 80' "$tmp/stdout" | grep . && fail "lines of more than 80 columns"
run 0 --dry-run --allow-requantize "$gpt2" Q8_0
grep -q '^narrow rows' "$tmp/stdout" && fail "rows of whole blocks are called narrow"
rm -f "$out"

# a weight that the type cannot hold, in the middle of the file
size=$(stat -c %s "$f32")
weight() { # weight BYTES: $tmp/odd.gguf has it
    cp "$f32" "$tmp/odd.gguf"
    printf "$1" | dd of="$tmp/odd.gguf" bs=1 seek=$((size / 8 * 4)) conv=notrunc 2>/dev/null
}
expect 2 "argument 2 is empty" "$f32" "" Q8_0
expect 2 "argument 1 is empty" "" "$out" Q8_0
expect 2 "-t: 513 is out of range, 1 to 512 is allowed" -t 513 "$f32" "$out" Q8_0
run 0 -t 512 "$f32" "$out" Q8_0
rm -f "$out"
weight '\0\0\200\177' # infinity
expect 1 "infinite, which is not allowed in weights" "$tmp/odd.gguf" "$out" Q8_0
grep -q "odd.gguf: tensor '" "$tmp/stderr" || fail "the file that is read, and the tensor, are not named: $(cat "$tmp/stderr")"
grep -q "$out" "$tmp/stderr" && fail "the file that is written is blamed: $(cat "$tmp/stderr")"
weight '\0\0\300\177' # NaN
expect 1 "NaN, which is not allowed in weights" "$tmp/odd.gguf" "$out" F16
weight '\0\44\164\111' # 1e6
expect 1 "1e+06, is too large for f16" "$tmp/odd.gguf" "$out" F16
run 0 "$tmp/odd.gguf" "$out" BF16
rm -f "$out"

# an importance matrix in the old format: for each column of two tensors, i % 5
imatrix() { # imatrix COLUMNS: $tmp/im.dat
    python3 - "$1" "$tmp/im.dat" <<'END'
import struct, sys
n = int(sys.argv[1])
with open(sys.argv[2], "wb") as f:
    f.write(struct.pack("<i", 2))
    for name in b"blk.0.ffn_up.weight", b"blk.0.attn_q.weight":
        f.write(struct.pack("<i", len(name)) + name + struct.pack("<ii", 1, n))
        f.write(struct.pack("<%df" % n, *(i % 5 for i in range(n))))
    f.write(struct.pack("<ii", 3, 5) + b"a.txt")
END
}
run 0 --dry-run "$f32" F32
columns=$(sed -n 's/^blk\.0\.attn_q\.weight *\([0-9]*\)x.*/\1/p' "$tmp/stdout")
imatrix "$columns"
run 0 --imatrix "$tmp/im.dat" --pure -t 1 "$f32" "$tmp/i1.gguf" Q4_0
says '^             .*tensors, all columns counted alike$'
says '^importance   known for 2 of the 36 tensors that use it, from 3 chunks of text;$'
awk 'length > 80' "$tmp/stdout" | grep . && fail "lines of more than 80 columns"
run 0 --imatrix "$tmp/im.dat" --pure -t 3 -v "$f32" "$tmp/i3.gguf" Q4_0
says '^blk\.0\.ffn_gate\.weight .* f32 -> q4_0\? '
cmp "$tmp/i1.gguf" "$tmp/i3.gguf" || fail "with importance, the bytes depend on the threads"
cmp -s "$tmp/i1.gguf" "$tmp/t1.gguf" && fail "importance changes nothing"
for name in file dataset entries_count chunks_count; do
    key "$tmp/i1.gguf" "quantize.imatrix.$name" || fail "the key quantize.imatrix.$name is missing"
done
[ "$(u32_of "$tmp/i1.gguf" quantize.imatrix.entries_count)" = 2 ] || fail "quantize.imatrix.entries_count is not 2"
[ "$(u32_of "$tmp/i1.gguf" quantize.imatrix.chunks_count)" = 3 ] || fail "quantize.imatrix.chunks_count is not 3"
"$cli" -m "$tmp/i1.gguf" -p "Once upon a time" -n 20 --temp 0 >"$tmp/text" 2>/dev/null || fail "the model with importance does not run"
run 0 --imatrix "$tmp/im.dat" --exclude-weights attn_q --dry-run "$f32" Q4_0
says '^importance   known for 1 of the 3[0-9] tensors that use it, from 3 chunks of text;'
run 0 --imatrix "$tmp/im.dat" --include-weights 'ffn_.*weight' --dry-run "$f32" Q4_0
says '^importance   known for 1 of the 3[0-9] tensors that use it, from 3 chunks of text;'
expect 2 "no entry of" --imatrix "$tmp/im.dat" --include-weights nothing "$f32" "$out" Q4_0
expect 2 "there is no --imatrix" --exclude-weights attn "$f32" "$out" Q4_0
expect 2 "give one of them" --imatrix "$tmp/im.dat" --exclude-weights attn --include-weights q "$f32" "$out" Q4_0
sed 's/blk\./blx./g' "$tmp/im.dat" >"$tmp/other.dat"
expect 1 "none of its 2 entries is of a tensor of" --imatrix "$tmp/other.dat" "$f32" "$out" Q4_0
expect 1 "cut.gguf" --imatrix "$tmp/cut.gguf" "$f32" "$out" Q4_0
imatrix $((columns + 1))
expect 1 "entry 'blk.0.attn_q.weight' has $((columns + 1)) columns and 1 matrices, but the tensor" --imatrix "$tmp/im.dat" "$f32" "$out" Q4_0
run 0 --allow-requantize "$gpt2" "$out" IQ2_M
run 0 "$f32" "$out" Q4_K_M
says '^importance   not known: with --imatrix self, less is lost$'

# a text that the model writes; arch.numpy.quantize_loss checks what is gained
run 0 --imatrix self --dry-run "$f32" Q4_0
run 0 --override-kv general.architecture=str:nothing "$f32" "$tmp/nothing.gguf" COPY
expect 1 "--imatrix self: the model does not run: " --imatrix self "$tmp/nothing.gguf" "$out" Q4_0
expect 2 "--include-weights" --imatrix self --include-weights '(' "$tmp/nothing.gguf" "$out" Q4_0
expect 1 "No such file" --imatrix ./self "$f32" "$out" Q4_0
rm -f "$out"

# layers, keys, types from a file, the output
run 0 --prune-layers 1-2 "$f32" "$tmp/short.gguf" F32
grep -aq 'blk\.0\.attn_q' "$tmp/short.gguf" || fail "--prune-layers removes layer 0"
layers=$(grep -ao 'blk\.[0-9]*\.attn_q\.weight' "$f32" | wc -l)
[ "$(grep -ao 'blk\.[0-9]*\.attn_q\.weight' "$tmp/short.gguf" | wc -l)" = $((layers - 2)) ] || fail "--prune-layers 1-2 does not remove two layers"
grep -aq "blk\\.$((layers - 2))\\.attn_q" "$tmp/short.gguf" && fail "--prune-layers does not number anew"
"$cli" -m "$tmp/short.gguf" -p "Once upon a time" -n 5 --temp 0 >"$tmp/text" 2>/dev/null || fail "a model without two layers does not run"
expect 2 "there is no layer 99" --prune-layers 0,99 "$f32" "$out" F16
expect 2 "is not a list of layers" --prune-layers "$f32" "$out" F16
expect 2 "would remove all" --prune-layers 0-$((layers - 1)) "$f32" "$out" F16
expect 2 "is not a list of layers" --prune-layers 3-1 "$f32" "$out" F16
expect 2 "is not a list of layers" --prune-layers 1,,2 "$f32" "$out" F16
expect 2 "is not a list of layers" --prune-layers 99999999999999999999 "$f32" "$out" F16
run 0 -q --override-kv general.file_type=int:99 --override-kv my.key=str:a=b:c --override-kv my.half=float:0.5 "$f32" "$tmp/keys.gguf" F16
"$quantize" --override-kv my.key=int:1 --override-kv general.file_type=int:99 --override-kv general.architecture=int:1 "$f32" "$tmp/odd.gguf" F16 >/dev/null 2>"$tmp/stderr"
grep -q "has no key 'my.key'; it is added" "$tmp/stderr" || fail "--override-kv of a new key: $(cat "$tmp/stderr")"
grep -q "'general.architecture' is of type string in .* and becomes u32" "$tmp/stderr" || fail "--override-kv of another type: $(cat "$tmp/stderr")"
grep -q "general.file_type" "$tmp/stderr" && fail "--override-kv of the same type: $(cat "$tmp/stderr")"
[ "$(u32_of "$tmp/keys.gguf" general.file_type)" = 99 ] || fail "--override-kv does not replace"
key "$tmp/keys.gguf" 'a=b:c' || fail "--override-kv does not add"
expect 2 "is not KEY=TYPE:VALUE" --override-kv a.b=int:1x "$f32" "$out" F16
expect 2 "is not KEY=TYPE:VALUE" --override-kv a.b=7 "$f32" "$out" F16
printf '# values=q9\nattn_v=f16 # more bits\r\n\n  ffn_up=q8_0 ' >"$tmp/types"
run 0 --dry-run --tensor-type-file "$tmp/types" "$f32" Q4_0
says '^blk\.0\.attn_v\.weight .* f32 -> f16 '
says '^blk\.0\.ffn_up\.weight .* f32 -> q8_0 '
printf '\n# values\n attn_v f16' >"$tmp/types"
expect 2 "--tensor-type-file: $tmp/types:3: 'attn_v' is not PATTERN=TYPE" --tensor-type-file "$tmp/types" "$f32" "$out" Q4_0
run 0 --keep-split "$tmp/split-00001-of-00002.gguf" "$tmp/kept.gguf" Q8_0
[ -e "$tmp/kept-00001-of-00002.gguf" ] && [ -e "$tmp/kept-00002-of-00002.gguf" ] || fail "--keep-split: the parts are not there"
run 0 "$tmp/kept-00001-of-00002.gguf" "$tmp/joined.gguf" Q8_0
cmp "$tmp/joined.gguf" "$tmp/whole.gguf" || fail "--keep-split: the parts are not the whole"
run 2 --keep-split "$tmp/split-00001-of-00002.gguf" "$tmp/split.gguf" Q8_0

# names in a file do not command the terminal
sed 's/a\.weight/\x1b.weight/' "$tmp/whole.gguf" >"$tmp/escape.gguf"
run 0 --dry-run "$tmp/escape.gguf" Q8_0
says '^\\x1b\.weight '

# Ctrl-C leaves nothing behind: 512 MiB of zeros, most of which take no room on the disk
{
    printf 'GGUF\3\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
    printf '\10\0\0\0\0\0\0\0a.weight\2\0\0\0\0\20\0\0\0\0\0\0\0\200\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'
} >"$tmp/large.gguf"
truncate -s $((96 + 4096 * 32768 * 4)) "$tmp/large.gguf"
for signal in INT TERM; do
    "$quantize" -t 1 --pure "$tmp/large.gguf" "$out" Q4_0 >"$tmp/stdout" 2>"$tmp/stderr" &
    pid=$!
    for ((i = 0; i < 500; i++)); do
        [ -z "$(find "$tmp" -name 'out.gguf.tmp-*')" ] || break
        sleep 0.01
    done
    kill -$signal $pid
    wait $pid
    got=$?
    [ $got = $((128 + $(kill -l $signal))) ] || fail "SIG$signal: exit code $got: $(cat "$tmp/stderr")"
    grep -q 'interrupted; .* was not written' "$tmp/stderr" || fail "SIG$signal: $(cat "$tmp/stderr")"
    [ ! -e "$out" ] || fail "SIG$signal: a file is there"
    [ -z "$(find "$tmp" -name '*.tmp-*')" ] || fail "SIG$signal leaves a temporary file"
done

"$quantize" --help | grep -q 'Q4_K_M' || fail "--help lists no mixes"
exit $failed
