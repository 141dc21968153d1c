#!/bin/sh
# The recipe of the small siblings in tests/data: one model each of the families gpt2, qwen2 and qwen3.
#
#   tools/train/siblings.sh [WORK] [FAMILY ..]     WORK: folder for corpus and checkpoints, default /tmp/siblings
#
# It installs (as root) Debian's python3-torch, python3-numpy, python3-regex and libopenblas0-pthread; each model
# takes less than ten minutes of one core, interrupted it goes on where it was. NO_INSTALL=1 and TEXT as in train.sh.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
work=${1:-/tmp/siblings}
[ $# = 0 ] || shift
text=${TEXT:-$repo/../shared/text}
out=${OUT:-$repo/tests/data}
py=/usr/bin/python3                     # Debian's, the one that sees the packages
export OMP_WAIT_POLICY=passive

if [ -z "${NO_INSTALL:-}" ]; then
    apt-get update
    apt-get install -y --no-install-recommends python3-torch python3-numpy python3-regex libopenblas0-pthread
fi

[ -e "$work/train.txt" ] || $py "$here/corpus.py" --text "$text" --out "$work" --stories 45000 --prose 0.05
bf16=; grep -q avx512_bf16 /proc/cpuinfo && bf16=--bf16      # half the time where the processor has it
for family in ${*:-gpt2 qwen2 qwen3}; do
    case $family in gpt2) pre=gpt-2 ;; *) pre=qwen2 ;; esac
    [ -e "$work/bpe-$pre/valid-prose.bin" ] || $py "$here/bpe.py" --corpus "$work" --work "$work/bpe-$pre" --pre $pre
    mkdir -p "$work/$family"
    nice -n 19 $py "$here/train.py" --family $family --data "$work/bpe-$pre" --work "$work/$family" $bf16 --threads 1 \
        --steps 3000 --tokens 2048 --phases 64:0.2 128:0.45 256:1 --warmup 100
    $py "$here/export.py" --data "$work/bpe-$pre" --work "$work/$family" --out "$out/stories-$family.gguf" \
        --name "stories-$family"
    $py "$here/check_gguf.py" "$out/stories-$family.gguf" --loss "$work/valid-world.txt" --stories 40
    $py "$here/check_gguf.py" "$out/stories-$family.gguf" --count 120
    $py "$here/check_gguf.py" "$out/stories-$family.gguf" --prompt "$(cat "$repo/tests/data/prompt.txt")" --count 40 \
        --plain >"$out/stories-$family.txt"
done
