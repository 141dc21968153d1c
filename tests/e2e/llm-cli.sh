#!/bin/bash
# llm-cli as users run it: a pipe, a typo, a missing file, a truncated one, a full disk. llm-cli.sh PROGRAM MODEL [threads]
# `threads`: only the tests with several threads, for the thread sanitizer
set -u
cli=$1 model=$2 only=${3:-}
gpt2=${model%/models/builtin/*}/tests/data/stories-gpt2.gguf
source "$(dirname "$0")/common.sh"

# expect CODE WORDS ARGS..: the exit code, and the words in what it says on standard error; one line of it
expect() {
    local code=$1 words=$2
    shift 2
    exits "$code" "$cli" "$@"
    prints "$words" "$tmp/err"
    [ ! -s "$tmp/out" ] || [ "$code" = 0 ] || [ "$(wc -l <"$tmp/err")" -gt 1 ] || fail "llm-cli $*: printed before it failed"
    [ "$(wc -l <"$tmp/err")" -le 4 ] || [ "$code" = 0 ] || fail "llm-cli $*: $(wc -l <"$tmp/err") lines of error"
}

# --- it writes -----------------------------------------------------------------------------------------------------------
"$cli" -p "Once upon a time" -n 40 --temp 0 >"$tmp/a" 2>"$tmp/err" </dev/null || fail "the built-in model does not run"
grep -q '^Once upon a time' "$tmp/a" || fail "the prompt does not come first"
[ "$(wc -w <"$tmp/a")" -gt 20 ] || fail "few words: $(cat "$tmp/a")"
grep -q 't/s' "$tmp/err" && grep -q 'peak memory' "$tmp/err" || fail "no timings"
"$cli" -m "$model" -p "Once upon a time" -n 40 --temp 0 >"$tmp/b" 2>/dev/null </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "the file and the built-in model differ"
printf 'Once upon a time' | "$cli" -n 40 --temp 0 >"$tmp/b" 2>/dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "a piped prompt gives another text"
printf 'Once upon a time' >"$tmp/prompt"
"$cli" -f "$tmp/prompt" -n 40 --temp 0 >"$tmp/b" 2>/dev/null </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "a prompt from a file gives another text"
printf 'Once upon a time\n' | "$cli" -n 40 --temp 0 >"$tmp/b" 2>/dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "the newline at the end of a piped prompt is the model's"
printf 'Once upon a time\n' >"$tmp/prompt"
"$cli" -f "$tmp/prompt" -n 40 --temp 0 >"$tmp/b" 2>/dev/null </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "the newline at the end of a prompt's file is the model's"
printf 'Once upon a time\r\n' | "$cli" -n 40 --temp 0 >"$tmp/b" 2>/dev/null # as Windows writes lines
cmp -s "$tmp/a" "$tmp/b" || fail "a newline of Windows is not removed"
printf 'Once upon a time\n\n' | "$cli" -n 0 >"$tmp/b" 2>/dev/null # one, not all
printf 'Once upon a time\n\n' | cmp -s - "$tmp/b" || fail "more than one newline is taken off: $(od -c "$tmp/b" | tail -3)"
"$cli" -p "Once upon a time" -n 40 --temp 0 --no-display-prompt >"$tmp/b" 2>/dev/null </dev/null
[ "$(printf 'Once upon a time'; cat "$tmp/b")" = "$(cat "$tmp/a")" ] || fail "--no-display-prompt"
"$cli" -p "Once upon a time" -n 40 --temp 0 --trace "$tmp/trace.json" >"$tmp/b" 2>/dev/null </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "--trace changes the text"
grep -q '"cat":"node"' "$tmp/trace.json" && [ "$(tail -n 1 "$tmp/trace.json")" = "]" ] || fail "--trace wrote no timeline"
"$cli" -p "Once upon a time" -n 40 --temp 0 --shadow=0.5 >"$tmp/b" 2>"$tmp/err" </dev/null || fail "--shadow doubts the CPU"
cmp -s "$tmp/a" "$tmp/b" || fail "--shadow changes the text"
grep -q 'cpu against cpu: [1-9][0-9]* nodes checked .* 0 beyond' "$tmp/err" || fail "--shadow: $(cat "$tmp/err")"
for type in f32 bf16 q8_0 q4_0; do
    "$cli" -ctk "$type" -ctv "$type" -p "Once upon a time" -n 40 --temp 0 >"$tmp/b" 2>/dev/null </dev/null || fail "-ctk $type"
    "$cli" -ctk "$type" --cache-type-v "$type" -p "Once upon a time" -n 40 --temp 0 -t 3 -ub 3 --cpu-mask-isa all >"$tmp/c" \
        2>/dev/null </dev/null || fail "-ctk $type in portable code"
    cmp -s "$tmp/b" "$tmp/c" || fail "a cache of $type: another text in portable code"
done
expect 2 "the built-in models are builtin:stories, builtin:chat, builtin:words, builtin:shapes and builtin:shapes-eye" -m builtin:x -p x
expect 2 "q4_0" -ctv q6_k -p x
"$cli" --no-mmap -p "Once upon a time" -n 40 --temp 0 -t 1 -ub 3 >"$tmp/b" 2>/dev/null -m "$model" </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "--no-mmap -t 1 -ub 3 gives another text"
"$cli" --no-repack -p "Once upon a time" -n 40 --temp 0 >"$tmp/b" 2>/dev/null -m "$model" </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "--no-repack gives another text"
"$cli" --plan=nodes --no-repack >"$tmp/b" 2>/dev/null </dev/null || fail "--plan --no-repack"
grep -q ' repacked ' "$tmp/b" && fail "--no-repack repacks"
"$cli" --f16-as-bf16 -p "Once upon a time" -n 40 --temp 0 >"$tmp/b" 2>/dev/null </dev/null || fail "--f16-as-bf16"
cmp -s "$tmp/a" "$tmp/b" || fail "--f16-as-bf16 gives another text of a model without f16 weights"
cp "$model" "$tmp/model.gguf"
for start in first second; do
    "$cli" --repack-cache -m "$tmp/model.gguf" -p "Once upon a time" -n 40 --temp 0 >"$tmp/b" 2>"$tmp/err.$start" </dev/null
    cmp -s "$tmp/a" "$tmp/b" || fail "--repack-cache gives another text"
done
if "$cli" --plan=nodes -m "$model" 2>/dev/null </dev/null | grep -q ' repacked '; then
    grep -q 'model.gguf.repack keeps' "$tmp/err.first" || fail "no file of repacked weights: $(cat "$tmp/err.first")"
    grep -q 'are from .*model.gguf.repack' "$tmp/err.second" || fail "it is not used: $(cat "$tmp/err.second")"
    "$cli" --repack-cache="$tmp/model.gguf" -m "$tmp/model.gguf" -p x -n 1 >/dev/null 2>"$tmp/err" </dev/null
    [ $? = 2 ] && grep -q 'also the file of -m' "$tmp/err" && cmp -s "$model" "$tmp/model.gguf" || fail "--repack-cache over the model"
    "$cli" --repack-cache="$tmp/none/x" -p x -n 1 -m "$model" >/dev/null 2>"$tmp/err" </dev/null || fail "no folder for the cache"
    grep -q 'not saved' "$tmp/err" || fail "no folder for the cache is not told"
    # copies are made between tokens, and the timings tell; but not if so few tokens come that they would not pay
    "$cli" --repack-cache="$tmp/none/x" -p x --ignore-eos -c 40 -m "$model" >/dev/null 2>"$tmp/err" </dev/null
    grep -q '^repacking .* ms of the generation' "$tmp/err" || fail "the time of repacking is not shown: $(cat "$tmp/err")"
    "$cli" -p x --ignore-eos -n 8 -m "$model" >/dev/null 2>"$tmp/err" </dev/null
    grep -q '^repacking' "$tmp/err" && fail "8 tokens: weights are repacked: $(cat "$tmp/err")"
    "$cli" -p x -n 8 -m "$model" --json-output 2>/dev/null </dev/null | grep -q '"repacking_ms": 0.000' || fail "--json-output: repacking_ms"
fi
"$cli" --repack-cache -p x -n 1 >/dev/null 2>"$tmp/err" </dev/null || fail "--repack-cache of the built-in model"
grep -q 'is not a file' "$tmp/err" || fail "--repack-cache of the built-in model: $(cat "$tmp/err")"
"$cli" --cpu-mask-isa all -p "Once upon a time" -n 40 --temp 0 >"$tmp/b" 2>/dev/null </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "the portable code gives another text"
"$cli" -p "One day" -n 30 -s 7 >"$tmp/a" 2>/dev/null </dev/null
"$cli" -p "One day" -n 30 --seed 7 -t 3 >"$tmp/b" 2>/dev/null </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "a seed gives two texts"
"$cli" -n 20 -s 1 >"$tmp/a" 2>/dev/null <&- || fail "no prompt and no standard input"
[ -s "$tmp/a" ] || fail "nothing without a prompt"
"$cli" --plan=nodes >"$tmp/a" 2>"$tmp/err" </dev/null || fail "--plan"
[ "$(grep -v '^ ' "$tmp/a" | grep -cE '^.{81}')" = 0 ] || fail "rows of --plan that are wider than 80 columns: $(cat "$tmp/a")"
"$cli" --plan -c 1000000 -ctk f32 -ctv f32 >"$tmp/b" 2>/dev/null </dev/null || fail "--plan of a large context"
[ "$(grep -v '^ ' "$tmp/b" | grep -cE '^.{81}')" = 0 ] || fail "--plan of a large context: $(cat "$tmp/b")"
grep -q 'memory' "$tmp/a" && grep -q 'attend' "$tmp/a" || fail "--plan shows no memory or no nodes"
"$cli" -c 24 -p "Once upon a time" --temp 0 --ignore-eos >/dev/null 2>"$tmp/err" </dev/null || fail "-c 24"
grep -q 'context of 24 tokens is full' "$tmp/err" || fail "the full context is not told"
# a shifted context goes on; the note comes once; what follows is what the tokens that stay give as a prompt
"$cli" -p "Once upon a time" -n 60 --temp 0 -c 24 --keep 4 --on-full shift --ignore-eos >"$tmp/a" 2>"$tmp/err" </dev/null ||
    fail "--on-full shift"
[ "$(grep -c 'were dropped' "$tmp/err")" = 1 ] || fail "a shift is told $(grep -c 'were dropped' "$tmp/err") times"
[ "$(wc -w <"$tmp/a")" -gt 40 ] || fail "a shifted context does not go on"
"$cli" -p "Once upon a time" -n 60 --temp 0 -c 24 --keep 4 --context-shift --ignore-eos >"$tmp/b" 2>/dev/null </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "--context-shift differs from --on-full shift"
expect 2 "--on-full" -p x --on-full sometimes

# --- where it runs ---------------------------------------------------------------------------------------------------------
"$cli" -C 1 --prio -1 -p "Once upon a time" -n 40 --temp 0 >"$tmp/b" 2>"$tmp/err" </dev/null || fail "--cpu-mask 1"
"$cli" -p "Once upon a time" -n 40 --temp 0 >"$tmp/a" 2>/dev/null </dev/null
cmp -s "$tmp/a" "$tmp/b" || fail "--cpu-mask 1 gives another text"
expect 2 "'0xg' is not a hexadecimal number" --cpu-mask 0xg -n 1
expect 2 "names no CPU" --cpu-mask 0 -n 1
expect 2 "CPU 4095" --cpu-mask 8$(printf '0%.0s' $(seq 1023)) -n 1
expect 1 "none of these CPUs" --cpu-mask 8$(printf '0%.0s' $(seq 255)) -n 1
expect 2 "--prio" --prio 4 -n 1

expect 2 "-t: 1024 is out of range, 1 to 512 is allowed" -t 1024 -p x
expect 0 "prompt" -t 512 -p x -n 1
[ "$only" = threads ] && exit $failed

# --- logits ---------------------------------------------------------------------------------------------------------------
"$cli" --tokens 1,300,301,302 -n 0 --logits "$tmp/l.npy" >"$tmp/out" 2>/dev/null </dev/null || fail "--logits"
[ ! -s "$tmp/out" ] || fail "-n 0 --tokens printed something"
head -c 6 "$tmp/l.npy" | tail -c 5 | grep -q NUMPY || fail "--logits wrote no .npy"
expect 1 "$tmp/none/l.npy" --tokens 1,2 -n 0 --logits "$tmp/none/l.npy"
ls "$tmp"/l.npy.* >/dev/null 2>&1 && fail "a temporary file is left"

# --- logits that are no numbers -----------------------------------------------------------------------------------------------
key=llama.attention.layer_norm_rms_epsilon
cp "$model" "$tmp/nan.gguf"
at=$(($(grep -obUa "$key" "$model" | head -n 1 | cut -d: -f1) + ${#key} + 4))
printf '\0\0\200\277' | dd of="$tmp/nan.gguf" bs=1 seek=$at conv=notrunc 2>/dev/null # -1
expect 1 "after 3 tokens none of the 2048 logits is a finite number (2048 are NaN)" -m "$tmp/nan.gguf" --tokens 1,2,3 -n 8
prints "nan.gguf: key 'llama.attention.layer_norm_rms_epsilon' is -1, but 0 to 0.1 is expected: models have about 1e-05" "$tmp/err"
grep -q 'llm-gguf check MODEL finds damage in the file' "$tmp/err" || fail "no advice for NaN: $(cat "$tmp/err")"
# the error begins a line, where text and errors go to one place
"$cli" -m "$tmp/nan.gguf" -p 'Once upon' -n 8 >"$tmp/both" 2>&1 </dev/null
grep -q '^llm-cli: after ' "$tmp/both" || fail "the error stands behind the text: $(cat "$tmp/both")"
"$cli" -m "$tmp/nan.gguf" -p 'Once upon' -n 8 2>/dev/null </dev/null | cmp -s - <(printf 'Once upon') || fail "an error on standard error adds to standard output"
[ ! -s "$tmp/out" ] || fail "text was made of logits that are no numbers: $(head -c 100 "$tmp/out")"
sed 's/^logits = linear(\(.*\))$/all = linear(\1)\nlogits = where(iota(n_vocab) == 7, sqrt(0*all - 1), all)/' \
    "${model%/builtin/*}/archs/llama.arch" >"$tmp/some.arch" # one that is NaN: the text goes on without it
"$cli" --arch "$tmp/some.arch" -p "Once upon a time" -n 40 --temp 0 >"$tmp/b" 2>"$tmp/err" </dev/null || fail "one NaN logit ends the text"
[ "$(grep -c 'warning: after 5 tokens 1 of 2048 logits are NaN' "$tmp/err")" = 1 ] || fail "one NaN logit is not noted: $(cat "$tmp/err")"
"$cli" -p "Once upon a time" -n 40 --temp 0 2>/dev/null </dev/null | cmp -s - "$tmp/b" || fail "one NaN logit changes the text"

# --- a tokenizer with more tokens than the model: not the user's fault ------------------------------------------------------
cp "$model" "$tmp/few.gguf"
after() { echo $(($(grep -obUa "$1" "$model" | tail -n 1 | cut -d: -f1) + ${#1} + $2)); } # after WORDS N: the place N bytes further
for at in $(after llama.vocab_size 4) $(after token_embd.weight 12); do
    printf '\144\0' | dd of="$tmp/few.gguf" bs=1 seek=$at conv=notrunc 2>/dev/null # 100 of 2048
done
expect 1 "the tokenizer has 2048 tokens, but llama.vocab_size is 100" -m "$tmp/few.gguf" -p "Once upon a time"
expect 1 "the tokenizer has 2048 tokens, but llama.vocab_size is 100" -m "$tmp/few.gguf" --tokens 1 # before any prompt is looked at
expect 2 "token 2048 is not in the vocabulary of 2048" --tokens 1,2048

# --- what users get wrong --------------------------------------------------------------------------------------------------
expect 1 "none.gguf" -m "$tmp/none.gguf" -p x
expect 1 "$tmp" -m "$tmp" -p x
: >"$tmp/empty.gguf"
expect 1 "empty.gguf" -m "$tmp/empty.gguf" -p x
printf 'PK\003\004 and so on, and on, and on' >"$tmp/zip.gguf"
expect 1 "GGUF" -m "$tmp/zip.gguf" -p x
expect 2 "did you mean" --tmep 0
# flags of llama.cpp: another flag that looks like one is no help
expect 1 "the file has no chat template (tokenizer.chat_template); --chat-template NAME|FILE gives one" -m "$model" -cnv
expect 2 "there is no flag '-dr': models come from the Hugging Face Hub, -hf USER/REPO" -dr a/b
expect 2 "no weight that is read has a matching name" -ot nothing=cpu -p x -n 1
expect 2 "unknown flag '-cvt'; did you mean '-ctv'?" -cvt f16
# the nearest flag, not a longer one that begins so; and names that are accepted, although --help does not list them
expect 2 "unknown flag '--gpu-layer'; did you mean '--gpu-layers'?" --gpu-layer 3
expect 2 "unknown flag '--imag'; did you mean '--image'?" --imag x
expect 2 "unknown flag '--max-token'; did you mean '--max-tokens'?" --max-token 3
expect 2 "unknown flag '--image-mi'; did you mean '--image-min-tokens'?" --image-mi 3
"$cli" -p "Once upon a time" --n-predict 40 --temperature 0 -no-cnv -e --mmap -ctk F16 >"$tmp/b" 2>"$tmp/err" </dev/null || fail "spellings of llama.cpp: $(cat "$tmp/err")"
cmp -s "$tmp/a" "$tmp/b" || fail "spellings of llama.cpp: another text"
expect 2 "abc" --temp abc
expect 2 "--temp" --temp
expect 2 "top-p" --top-p 7
expect 2 "together" -p a -f b
expect 1 "-f: none.txt: No such file" -f none.txt
expect 1 "No such file or directory; did you mean -hf 'nobody/none-GGUF:Q8_0', which downloads it?" -m nobody/none-GGUF:Q8_0 -p x
expect 1 "No such file or directory; did you mean -mu 'https://example.org/x.gguf', which downloads it?" -m https://example.org/x.gguf -p x
expect 1 "none: there is no such file, and no built-in descriptor of that name" --arch none -p x
expect 1 "--arch: ./none: No such file" --arch ./none -p x
for name in llama llama.arch; do # a built-in one, where there is no such file
    (cd "$tmp" && "$cli" --arch $name -p "Once upon a time" -n 40 --temp 0 >"$tmp/b" 2>/dev/null </dev/null)
    cmp -s "$tmp/a" "$tmp/b" || fail "--arch $name: another text"
done
printf '\xef\xbb\xbf' | cat - "${model%/builtin/*}/archs/llama.arch" >"$tmp/marked.arch"
"$cli" --arch "$tmp/marked.arch" -p "Once upon a time" -n 40 --temp 0 >"$tmp/b" 2>"$tmp/err" </dev/null || fail "a byte order mark: $(cat "$tmp/err")"
cmp -s "$tmp/a" "$tmp/b" || fail "a byte order mark changes the text"
expect 2 "-1 to 9007199254740992 is allowed" -s -2 -p x
expect 2 "together" --no-repack --repack-cache
expect 2 "together" --no-repack --f16-as-bf16
expect 2 "--tokens" --tokens 1,x
expect 2 "the mask (--cpu-mask-isa): 'avx1024' cannot be masked; the known names are: cpu: all avx2" --cpu-mask-isa avx512,avx1024 -p x
expect 1 "the prompt has 9 tokens, but the context only 4" -c 4 --split cpu=99 --tokens 1,2,3,4,5,6,7,8,9 # before the split is applied
expect 1 "cli: the context has 1500 tokens, but this model only 256 positions; -c sets a shorter one" -m "$gpt2" -c 1500 -p x
expect 1 "cli: -ctk and -ctv: keys with heads of 24 elements cannot be cached as q8_0, which needs multiples of 32" -m "$gpt2" -ctk q8_0 -p x
! grep -q '[.]arch' "$tmp/err" || fail "a line of the descriptor is named: $(cat "$tmp/err")"
GGL_CPU_MASK=garbage expect 2 "GGL_CPU_MASK: 'garbage' cannot be masked; the known names are: all avx2" -p x
for flag in -m -f --arch --logits --tokens --device --trace --split --cpu-mask-isa --cpu-mask --place; do
    expect 2 "$flag: the value" $flag ""
    grep -q 'is empty' "$tmp/err" || fail "$flag '': $(cat "$tmp/err")"
done
expect 0 "note: the model was trained on 512 tokens at once" -c 4096 -p x -n 1
expect 1 "GiB for the KV cache" -c 1000000000 -p x -n 1
fits=$(sed -n "s/.*; -c \([0-9]*\) would fit$/\1/p" "$tmp/err")
[ "${fits:-0}" -gt 512 ] && [ "$fits" -lt 1000000000 ] || fail "no context that fits: $(cat "$tmp/err")"
# a process that may have fewer addresses than the machine has memory; programs with a sanitizer do not begin then
if (ulimit -v 60000 && "$cli" --version) >/dev/null 2>&1; then
    (ulimit -v 60000 && "$cli" -t 1 -c 100000 -p x -n 1) >/dev/null 2>"$tmp/err" </dev/null && fail "a cache beyond ulimit -v"
    prints "do not fit into the memory of cpu (58.6 MiB)" "$tmp/err"
    # copies of weights that it may not have are not made
    (ulimit -v 60000 && "$cli" -t 1 -c 64 -p x -n 1) >/dev/null 2>"$tmp/err" </dev/null || fail "weights beyond ulimit -v: $(cat "$tmp/err")"
    prints "used as they are in the file, because the limit of addresses (ulimit -v) has" "$tmp/err"
fi
"$cli" -s=3 -n=4 -p x >"$tmp/a" 2>/dev/null </dev/null && "$cli" -s 3 -n 4 -p x >"$tmp/b" 2>/dev/null </dev/null
[ -s "$tmp/a" ] && cmp -s "$tmp/a" "$tmp/b" || fail "-s=3 is not -s 3"
"$cli" -p "" -n 4 >"$tmp/a" 2>/dev/null </dev/null || fail "an empty prompt"
expect 2 "vocabulary" --tokens 1,99999999 -n 0
expect 1 "context" -c 4 -p "Once upon a time there was a little girl and a dog"
expect 1 "nothing-here.arch" --arch "$tmp/nothing-here.arch" -p x
expect 2 "reference" --backend cpuu -p x
expect 2 "not a share of the runs" --shadow=2 -p x
expect 2 "not a share of the runs" --shadow=often -p x
expect 2 "No such file" --backend ./nothing-here.so -p x
expect 1 "cannot be loaded" --backend "$tmp/zip.gguf" -p x
expect 1 "/nowhere/trace.json" --trace /nowhere/trace.json -p x
"$cli" --trace /dev/full -p x -n 4 >/dev/null 2>"$tmp/err" </dev/null
[ $? = 1 ] && grep -q "the trace: /dev/full: cannot be written: No space left" "$tmp/err" || fail "a timeline on a full disk"
expect 1 "nothing-here.gguf" --lora "$tmp/nothing-here.gguf" -p x
expect 1 "is not an adapter: its key general.type is missing" --lora "$model" -p x
expect 2 "has no scale; FILE:SCALE" --lora-scaled a.gguf -p x
expect 1 "a.gguf" --lora-scaled a.gguf 0.5 -p x
expect 2 "has an empty name in its list" --lora ,a.gguf -p x
cat >"$tmp/typo.arch" <<'END'
arch llama
language 1
token_embd [.embedding_length, n_vocab]
x = token_embd[token]
logits = linear(rmsnorm(x, none, 1), token_embd)
END
expect 1 "typo.arch:5:17: error" --arch "$tmp/typo.arch" -p x
expect 1 "did you mean rms_norm" --arch "$tmp/typo.arch" -p x
size=$(stat -c %s "$model")
for i in $(seq 0 49); do
    head -c $((size * i / 50)) "$model" >"$tmp/cut.gguf"
    expect 1 "cut.gguf" -m "$tmp/cut.gguf" -p x
done
"$cli" -p "Once" -n 40 2>"$tmp/err" </dev/null >/dev/full
[ $? = 1 ] || fail "a full disk is not noticed"
"$cli" -p "Once" -n 200 --ignore-eos 2>"$tmp/err" </dev/null | head -c 10 >/dev/null
[ "${PIPESTATUS[0]}" -le 1 ] || fail "a closed pipe: exit code ${PIPESTATUS[0]}"
exit $failed
