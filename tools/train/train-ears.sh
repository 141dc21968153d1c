#!/bin/sh
# The whole recipe of the built-in model that hears, on a Debian 12: packages, voices, training, export, check.
#
#   tools/train/train-ears.sh [WORK]    WORK: folder for sounds and checkpoints, default /tmp/train-ears
#
# It installs (as root) the synthesizers espeak-ng, flite and festival with three voices, and what train.sh installs. Speaking takes about
# two minutes of one free core, training about a quarter of an hour; interrupted, it goes on where it was. NO_INSTALL=1 skips the packages.
# The last step needs the programs: cmake --build build/release.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
work=${1:-/tmp/train-ears}
py=/usr/bin/python3                     # Debian's, the one that sees the packages
export OMP_WAIT_POLICY=passive          # waiting threads sleep: the machine may have other work

if [ -z "${NO_INSTALL:-}" ]; then
    apt-get update
    apt-get install -y --no-install-recommends python3-torch python3-numpy libopenblas0-pthread \
        espeak-ng flite festival festvox-kallpc16k festvox-kdlpc16k festvox-us-slt-hts
fi

[ -e "$work/test.npz" ] || $py "$here/speak.py" --out "$work"
bf16=; grep -q avx512_bf16 /proc/cpuinfo && bf16=--bf16
nice -n 19 $py "$here/ears.py" --data "$work" --work "$work" $bf16
$py "$here/export_senses.py" --ears --work "$work" --out "$repo/models/builtin/words.gguf"
$py "$here/check_ears.py" --data "$work" --transcribe "$repo/build/release/bin/llm-transcribe" --model "$repo/models/builtin/words.gguf"
