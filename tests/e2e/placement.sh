#!/usr/bin/env bash
# Placement: llm-cli with layers and weights on several backends. $1: llm-cli, $2: a model of five layers, $3: a backend
# that has little memory, $4: a backend that has products only, $5: one whose buffers are small.
set -u
cli=$1 model=$2 small=$3 products=$4 pieces=$5
source "$(dirname "$0")/common.sh"
text() { "$cli" -m "$model" -p "Once upon a time" -n 24 --temp 0 "$@" 2>"$tmp/err" </dev/null; }
expect() { # code, words of the message, arguments
    local want=$1 words=$2; shift 2
    exits "$want" "$cli" -m "$model" -p x -n 1 "$@"
    prints "$words" "$tmp/err"
}

text >"$tmp/a" || fail "the CPU alone"
while read -r options; do
    # shellcheck disable=SC2086
    text $options >"$tmp/b" || fail "$options: $(cat "$tmp/err")"
    cmp -s "$tmp/a" "$tmp/b" || fail "$options: another text"
done <<'END'
--device cpu1
--device cpu1,cpu
-dev CPU1,Cpu -ngl 2
-dev cpu1,cpu2 -ts 2,3
-dev none -ngl 3
--split CPU=2,Cpu1=3
--split cpu=0,cpu1=5
--split cpu=2,cpu1=3
--split cpu=1,cpu1=1,cpu2=3
--split cpu=2,cpu1=3 -ub 2
--place blk.*.ffn_*=cpu1
--place token_embd.weight=cpu1 --place blk.3.*=cpu2 --strict
-ot \.ffn_.*=CPU1,token_embd=CPU2 --cpu-moe
--device cpu,cpu1 -ngl 2
--device cpu1 --fit
--device cpu1 --split auto
END
text --split cpu=2,cpu1=3 >/dev/null
grep -q 'layers: cpu=2,cpu1=3' "$tmp/err" || fail "the split is not told"
"$cli" -m "$model" --split cpu=2,cpu1=3 --plan >"$tmp/plan" 2>/dev/null </dev/null || fail "--plan of a split"
grep -Eq '^1 +cpu +every token +0-1 ' "$tmp/plan" && grep -Eq '^2 +cpu1 +every token +2-4 ' "$tmp/plan" ||
    fail "the plan of a split: $(cat "$tmp/plan")"
grep -q 'blk.1 x from cpu: 512 bytes for each token' "$tmp/plan" || fail "the border is not in the plan: $(cat "$tmp/plan")"
"$cli" -m "$model" --place 'blk.*.ffn_*=cpu1' --plan 2>/dev/null </dev/null | grep -c '^[0-9][0-9]* *cpu1 ' | grep -qx 5 ||
    fail "feed-forward of five layers elsewhere is not five segments"
for rule in '\.ffn_=CPU1' 'blk\.\d+\.(?:ffn_down|ffn_gate|ffn_up|ffn_norm)=cpu1'; do
    "$cli" -m "$model" -ot "$rule" --plan 2>/dev/null </dev/null | grep -c '^[0-9][0-9]* *cpu1 ' | grep -qx 5 || fail "-ot $rule: another plan"
done
"$cli" --list-devices >"$tmp/devices" || fail "--list-devices"
grep -q '^cpu  .*threads.*MiB' "$tmp/devices" && grep -q '^reference ' "$tmp/devices" || fail "$(cat "$tmp/devices")"

# a device that is too small for all, but not for some
small=(-c 64 -ub 4 --device "$small")
expect 1 "the device is full; 3 of 5 layers would fit: -ngl 3, or --fit" "${small[@]}"
expect 1 "the device is full; 3 of 5 layers would fit" "${small[@]}" -ngl 4
expect 0 "layers: cpu=2,mine=3" "${small[@]}" -ngl 3
expect 0 "layers: cpu=2,mine=3" "${small[@]}" --fit
expect 0 "layers: cpu=5" "${small[@]}" --split auto # it is slower, too
grep -q 'with 3 of 5 layers on ' "$tmp/err" || fail "--split auto does not tell what it measured: $(cat "$tmp/err")"

# a device whose buffers are smaller than the cache of all layers, but not than that of one
pieces=(-ub 4 --device "$pieces")
"$cli" -m "$model" -c 2048 "${pieces[@]}" --plan >"$tmp/plan" 2>/dev/null </dev/null || fail "--plan of a cache in several buffers"
grep -Eq '^mine +0.00 +1.[0-9]* +0.00 +0.00 +2.50 ' "$tmp/plan" || fail "the cache is not of several buffers: $(cat "$tmp/plan")"
text -c 256 "${pieces[@]}" >"$tmp/one" || fail "a cache in one buffer: $(cat "$tmp/err")"
text -c 2048 "${pieces[@]}" --fit >"$tmp/b" && cmp -s "$tmp/one" "$tmp/b" || fail "a cache in several buffers: $(cat "$tmp/b" "$tmp/err")"
grep -q "layers: mine=5" "$tmp/err" || fail "--fit does not use a device on which all fits: $(cat "$tmp/err")"
expect 1 "MiB for all positions and slots; mine supports at most 1.0 MiB in one buffer; fewer positions" -c 65536 "${pieces[@]}"

# a backend that has products only: with --strict it gets what --place names, and the CPU the rest
only=(--place "blk.*.ffn_norm.weight=cpu" --place "blk.*.ffn_*.weight=$products" # the first that fits counts
    --place "blk.*.attn_?.weight=$products" --place "blk.*.attn_output.weight=$products")
text "${only[@]}" --strict >"$tmp/b" && [ -s "$tmp/b" ] || fail "products alone, strictly: $(cat "$tmp/err")"
"$cli" -m "$model" "${only[@]}" --plan >"$tmp/plan" 2>"$tmp/err" </dev/null || fail "the plan of products alone"
n=$(grep -c '^[0-9][0-9]* *mine ' "$tmp/plan") # the last layer has 5: its query is in the tail, its key and value in the trunk
[ "$n" = 21 ] || fail "products of five layers run in $n segments, not in 4 for each layer and one more: $(cat "$tmp/plan")"
grep -q ', not mine\|run elsewhere' "$tmp/plan" "$tmp/err" && fail "the plan reports nodes that nobody placed there"
expect 1 "does not run on mine: it has products only" --place "*=$products" --strict

# a device that the processor plays is no GPU: used by its name, never chosen
if grep -q '^vulkan0  *(software)' "$tmp/devices"; then
    for options in "-ngl 99" "--fit" "--split auto" "-ts 1"; do
        # shellcheck disable=SC2086
        expect 0 "note: all layers run on the CPU: there is no GPU; vulkan0 is emulated by the processor" $options
        grep -q 'layers: cpu' "$tmp/err" && ! grep -q 'vulkan0=' "$tmp/err" || fail "$options: $(cat "$tmp/err")"
        # shellcheck disable=SC2086
        expect 1 "no device for layers: there is no GPU" $options --strict
    done
    expect 0 "layers: vulkan0=5" -ngl 99 --device vulkan0
    expect 0 "layers: cpu=3,vulkan0=2" --split cpu=3,vulkan0=2
    expect 0 "layers: cpu=2,vulkan0=3" -dev Vulkan0 -ngl 3
elif ! grep -q '^vulkan0 ' "$tmp/devices"; then
    expect 0 "note: all layers run on the CPU: " -ngl 99
fi

expect 2 "that is 4 layers; the model has 5" --split cpu=2,cpu1=2
expect 2 "'cpu' is neither NAME=LAYERS" --split cpu,cpu1=5
expect 2 "'cpu=x' is neither NAME=LAYERS" --split cpu=x
expect 2 "'auot' is neither NAME=LAYERS, as in vulkan0=20,cpu=12, nor auto" --split auot
expect 2 "cli: --device: this build has no backend 'cup'; did you mean 'cpu'? it has: cpu, " --device cup
expect 2 "cli: --backend: this build has no backend 'cpuu1'; did you mean 'cpu'?" --backend=cpuu1
expect 2 "cli: -dev: this build has no backend 'cpu01'" -dev cpu01
expect 2 "cli: -dev: 'CPU1' is named twice" -dev cpu1,CPU1
expect 2 "cli: -dev: the name of a backend is empty; one comma divides two names" -dev cpu1,
expect 2 "cli: --device: the name of a backend is empty; one comma divides two names" --device ,cpu1
expect 2 "--split: '' is neither NAME=LAYERS" --split cpu=5,
expect 2 "--split: the name of a backend is empty" --split =5
expect 2 "cli: -dev None,cpu1: 'none' stands for the CPU alone; name either it or devices" -dev None,cpu1
expect 2 "cli: --device names cpu1, to which --split cpu=5 gives no layers; add it there, as in cpu1=N, or leave it out" --device cpu1 --split cpu=5
expect 0 "layers: cpu1=5" --device cpu,cpu1 --split cpu1=5
expect 0 "layers: cpu1=5" --device cpu1,cpu2 --split cpu1=5 --place 'blk.0.*=cpu2'
expect 0 "layers: cpu1=5" --device cpu1,cpu2 --split cpu1=5,cpu2=0
GGL_CPU_MASK=avx22 expect 2 "cli: GGL_CPU_MASK: 'avx22' cannot be masked; did you mean 'avx2'? the known names are: all " -dev cpu
expect 2 "there is no flag '-sm row': --split rows divides" -sm row
expect 0 "layers: cpu1=4,cpu2=1" -dev cpu1,cpu2 -ts 4,1
expect 0 "layers: cpu=1,cpu1=1,cpu3=3" -dev cpu1,cpu2,cpu3 -ts 1/0/3 -ngl 4
expect 0 "layers: cpu1=5" -dev cpu1,cpu2 --tensor-split 1
expect 2 "-ts 3,1,1: these are 3 proportions for 2 devices" -dev cpu1,cpu2 -ts 3,1,1
expect 2 "-ts 3,x: 'x' is not a proportion" -dev cpu1,cpu2 -ts 3,x
expect 2 "-ts 3,-1: '-1' is not a proportion" -dev cpu1,cpu2 -ts 3,-1
expect 2 "-ts 0,0: no device would get a layer" -dev cpu1,cpu2 -ts 0,0
expect 2 "--split and -ts cannot be used together" --split cpu=2,cpu1=3 -ts 3,1
expect 2 "no backend 'cup'" --split cup=5
expect 2 "no weight that is read has a matching name" --place 'blk.*.nothing=cpu1'
expect 2 "--place 'blk.0.*=cpu2': earlier patterns match all its weights" --place '*=cpu1' --place 'blk.0.*=cpu2'
expect 2 "is not PATTERN=NAME" --place 'blk'
expect 2 "-ot 'nothing=cpu1': no weight that is read has a matching name" -ot 'blk.3=cpu1,nothing=cpu1'
expect 0 "note: --n-cpu-moe has no effect: the model has no experts" --n-cpu-moe 3
expect 0 "note: -ot has no effect: the model has no experts" -ot 'exps=CPU'
expect 0 "note: -ot has no effect: the model has no experts" -ot 'blk\.[01]\.ffn_.*_exps\.=CPU'
expect 2 "-ot 'nothing=cpu1': no weight that is read has a matching name" -ot 'exps=CPU,nothing=cpu1'
expect 2 "cannot be used together" --split cpu=5 -ngl 3
expect 2 "cannot be used together" --fit -ngl 3
expect 2 "--plan=x is not known" --plan=x
exit $failed
