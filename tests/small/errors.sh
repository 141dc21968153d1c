#!/usr/bin/env bash
# What llm-arch compile says about models and files that cannot be: errors.sh LLM-ARCH LLM-TRAIN SOURCE_DIR
source "$(dirname "$0")/../e2e/common.sh"
arch=$1 train=$2 source=$3

exits 2 "$arch" compile -o "$tmp/plan.c"
prints "MODEL"
exits 2 "$arch" compile builtin:stories
prints "-o FILE.c is missing"
exits 2 "$arch" compile builtin:stories -o "$tmp/plan.txt"
prints "the name of the file must end with .c"
for name in int main words small o2 sets0_1 small_view; do # names that C or the plan itself has
    exits 2 "$arch" compile builtin:stories -o "$tmp/$name.c"
    prints "$name means something else"
    [ ! -e "$tmp/$name.c" ] && [ ! -e "$tmp/$name.h" ] || fail "$ran: left a file"
done
exits 2 "$arch" compile builtin:stories -c 0x -o "$tmp/plan.c"
exits 2 "$arch" compile builtin:stories -ctk q5_0 -o "$tmp/plan.c"
prints "q5_0"
exits 2 "$arch" compile builtin:stories --type q9_0 -o "$tmp/plan.c"
prints "--type: there is no 'q9_0'; did you mean 'Q4_0'? llm-quantize --help lists mixes and types"
exits 2 "$arch" compile builtin:stories --type q4_0 -o "$tmp/plan.c"
prints "llm-arch compile: --type: the built-in models are quantized already"
exits 1 "$arch" compile "$tmp/none.gguf" -o "$tmp/plan.c"
prints "none.gguf"
exits 1 "$arch" compile builtin:stories -o "$tmp/no/plan.c"
prints "no/plan.c"
mkdir "$tmp/folder.c"
exits 1 "$arch" compile builtin:stories -o "$tmp/folder.c"
mkdir "$tmp/plan.h"
exits 1 "$arch" compile builtin:stories -o "$tmp/plan.c"
prints "plan.h"
[ ! -e "$tmp/plan.c" ] || fail "$ran: left a plan without a header"
rmdir "$tmp/plan.h"

# a model whose file is cut off, anywhere
exits 0 "$train" new llama --tokenizer builtin:stories --set .block_count=1 --set .embedding_length=32 --set .feed_forward_length=32 \
    --set .attention.head_count=2 --set .attention.layer_norm_rms_epsilon=0.00001 --set .context_length=64 -o "$tmp/model.gguf"
size=$(stat -c %s "$tmp/model.gguf")
for part in 1 3 5 7 9; do
    head -c $((size * part / 10)) "$tmp/model.gguf" >"$tmp/cut.gguf"
    exits 1 "$arch" compile "$tmp/cut.gguf" -o "$tmp/plan.c"
    prints "cut.gguf"
    [ ! -e "$tmp/plan.c" ] && [ ! -e "$tmp/plan.h" ] || fail "$ran: left a file"
done

# what it prints, and writes
exits 0 "$arch" compile "$tmp/model.gguf" -o "$tmp/my-plan.c"
prints "a context of 64 tokens"
prints "RAM"
prints "#define MY_PLAN_RAM" "$tmp/my-plan.h"
prints "#define MY_PLAN_WORK(n) (69 * (size_t)(n) + 208)" "$tmp/my-plan.h"
prints "const small_plan my_plan = " "$tmp/my-plan.c"
prints '#include "my-plan.h"' "$tmp/my-plan.c"
exits 2 "$arch" compile "$tmp/model.gguf" -o "$tmp/a\"b.c"
prints "quotes"
exits 0 "$arch" compile "$tmp/model.gguf" -c 16 -ctk f32 -ctv f32 -o "$tmp/my-plan.c"
prints "#define MY_PLAN_N_CTX 16" "$tmp/my-plan.h"
! grep -q "trained on" "$tmp/err" || fail "$ran: $(cat "$tmp/err")"
exits 0 "$arch" compile "$tmp/model.gguf" -c 65 -o "$tmp/my-plan.c"
prints "the model was trained on 64 tokens at once"
exits 0 "$arch" compile -q "$tmp/model.gguf" -c 65 -o "$tmp/my-plan.c"
[ ! -s "$tmp/out" ] && [ ! -s "$tmp/err" ] || fail "$ran: prints $(cat "$tmp/out" "$tmp/err")"

# what the program has to forbid
exits 0 "${arch%/*}/llm-gguf" set "$tmp/model.gguf" 'tokenizer.ggml.suppress_tokens=arr[i32]:1,3' -o "$tmp/suppressing.gguf"
exits 0 "$arch" compile "$tmp/suppressing.gguf" -o "$tmp/my-plan.c"
prints "the plan lacks the 2 tokens of tokenizer.ggml.suppress_tokens: set their logits to -INFINITY before small_greedy or small_draw"

# make cannot have spaces in names, and says so
mkdir "$tmp/a b"
ln -s "$source/small" "$tmp/a b/small"
for args in "-f '$tmp/a b/small/small.mk'" "-f '$source/small/small.mk' OUT='$tmp/a b'"; do
    exits 2 sh -c "make -n $args runtime"
    prints "has a space, which make cannot have in names"
done
exits 1 "$arch" compile builtin:shapes-eye -o "$tmp/plan.c"
prints "builtin:shapes-eye: the model writes no texts: it makes rows of pictures"
# a model that hears reads more than tokens
exits 1 "$arch" compile builtin:words -o "$tmp/plan.c"
prints "builtin:words: the model writes down what it hears, which llm-transcribe does; small boards run models that continue a text"
exit $failed
