#!/bin/sh
# The whole recipe of the built-in model that sees, on a Debian 12: packages, training, export, check.
#
#   tools/train/train-eyes.sh [WORK]    WORK: folder for tokens and checkpoints, default /tmp/train-eyes
#
# It installs (as root) what train.sh and siblings.sh install. Training takes about a quarter of an hour of one free core; interrupted, it
# goes on where it was. NO_INSTALL=1 skips the packages. The last step needs the programs: cmake --build build/release.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
work=${1:-/tmp/train-eyes}
out=$repo/models/builtin
py=/usr/bin/python3                     # Debian's, the one that sees the packages
export OMP_WAIT_POLICY=passive          # waiting threads sleep: the machine may have other work

if [ -z "${NO_INSTALL:-}" ]; then
    apt-get update
    apt-get install -y --no-install-recommends python3-torch python3-numpy python3-regex libopenblas0-pthread
fi

bf16=; grep -q avx512_bf16 /proc/cpuinfo && bf16=--bf16
nice -n 19 $py "$here/eyes.py" --work "$work" $bf16
$py "$here/export_senses.py" --eyes --work "$work" --out "$out/shapes.gguf" --eye "$out/shapes-eye.gguf" --template "$here/shapes.jinja"
PYTHONPATH=$repo/python/src $py "$here/check_eyes.py" --library "$repo/build/release/lib/libllm.so" \
    --model "$out/shapes.gguf" --eye "$out/shapes-eye.gguf" --count 1000
