#!/bin/sh
# The recipe of the built-in chat model: fine-tunes the built-in model on conversations about its story world.
#
#   tools/train/train-chat.sh [WORK]    WORK: folder for checkpoints, default /tmp/train-chat
#
# It installs (as root) Debian's python3-torch, python3-numpy and libopenblas0-pthread. Training takes about
# half an hour of one free processor core; interrupted, it goes on where it was when the script is started again.
# NO_INSTALL=1 and TEXT as in train.sh.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
work=${1:-/tmp/train-chat}
text=${TEXT:-$repo/../shared/text}
builtin=$repo/models/builtin
py=/usr/bin/python3                     # Debian's, the one that sees the packages
export OMP_WAIT_POLICY=passive

if [ -z "${NO_INSTALL:-}" ]; then
    apt-get update
    apt-get install -y --no-install-recommends python3-torch python3-numpy libopenblas0-pthread
fi

bf16=; grep -q avx512_bf16 /proc/cpuinfo && bf16=--bf16      # half the time where the processor has it
prose=$text/fairytaleqa-stories.txt
nice -n 19 $py "$here/tune.py" --base "$builtin/stories.gguf" --prose "$prose" --work "$work" $bf16
$py "$here/export.py" --work "$work" --template "$here/chat.jinja" --name stories-chat --out "$builtin/stories-chat.gguf"
$py "$here/check_talk.py" "$builtin/stories-chat.gguf" --prose "$prose"
$py "$here/check_gguf.py" "$builtin/stories-chat.gguf" --turns "$repo/tests/data/chat.txt" >"$repo/tests/data/chat-answers.txt"
