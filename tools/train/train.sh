#!/bin/sh
# The whole recipe of the built-in model, on a Debian 12: packages, corpus, tokenizer, training, export, check.
#
#   tools/train/train.sh [WORK]         WORK: folder for corpus and checkpoints, default /tmp/train
#
# It installs (as root) Debian's python3-torch, python3-numpy, python3-sentencepiece, python3-matplotlib and
# libopenblas0-pthread; without the last, matrix products run about fourteen times slower. Training takes
# about half an hour on two cores; interrupted, it goes on where it was when the script is started again.
# NO_INSTALL=1 skips the packages; TEXT=folder says where the prose lies, default ../shared/text.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
work=${1:-/tmp/train}
text=${TEXT:-$repo/../shared/text}
out=$repo/models/builtin
py=/usr/bin/python3                     # Debian's, the one that sees the packages
export OMP_WAIT_POLICY=passive          # waiting threads sleep: the machine may have other work

if [ -z "${NO_INSTALL:-}" ]; then
    apt-get update
    apt-get install -y --no-install-recommends python3-torch python3-numpy python3-sentencepiece \
        python3-matplotlib libopenblas0-pthread
fi

if [ ! -e "$work/train.bin" ]; then
    $py "$here/corpus.py" --text "$text" --out "$work"
    $py "$here/tokenizer.py" --work "$work"
fi
bf16=; grep -q avx512_bf16 /proc/cpuinfo && bf16=--bf16      # half the time where the processor has it
nice -n 19 $py "$here/train.py" --work "$work" $bf16
$py "$here/export.py" --work "$work" --out "$out/stories.gguf"
$py "$here/plot.py" --work "$work" --out "$out/loss.png"
$py "$here/check_gguf.py" "$out/stories.gguf"
$py "$here/check_gguf.py" "$out/stories.gguf" --loss "$work/valid-world.txt"
