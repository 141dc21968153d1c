#!/bin/bash
# The library for WebAssembly, built by clang and run by node, Chromium and Firefox, computes the bits of this build: run.sh SOURCE_DIR BUILD_DIR
# GGL_TEST_LONG: all digests, not a few; and without vector instructions, too.
set -u
export LC_ALL=C.UTF-8
source=$1 here=$2/bin
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() {
    echo "$*"
    failed=1
}
node -e 'process.exit(process.versions.node.split(".")[0] < 18 ? 1 : 0)' 2>/dev/null || { echo "skipped: node 18 or later is not installed (Debian: nodejs)" && exit 77; }
clang=
for name in clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 clang; do
    [ -n "$clang" ] || ! echo 'int main(void) { return 0; }' | "$name" --target=wasm32-wasi -x c - -o "$tmp/try.wasm" 2>/dev/null || clang=$name
done
[ -n "$clang" ] || { echo "skipped: no clang links programs for WebAssembly (Debian: clang, lld, wasi-libc, libclang-rt-14-dev-wasm32)" && exit 77; }

options=(-DCMAKE_C_COMPILER="$clang")
tests="kernels_slots kernels_products kernels_attend"
build() { # NAME SIMD TARGET..: configures and builds
    cmake -S "$source" -B "$2/$1" -DCMAKE_TOOLCHAIN_FILE="$source/cmake/wasm.cmake" "${options[@]}" -DGGL_TESTS=ON -DGGL_SMALL=ON -DGGL_WASM_SIMD="$3" \
        -DCMAKE_C_FLAGS_RELEASE="-O1 -DNDEBUG" >"$tmp/log" 2>&1 || { tail -20 "$tmp/log" && exit 1; }
    cmake --build "$2/$1" -j 2 --target "${@:4}" >"$tmp/log" 2>&1 || { grep -E "error|undefined" "$tmp/log" | head -20 && exit 1; }
    ! grep -q "warning:" "$tmp/log" || fail "the compiler warns: $(grep -m 3 "warning:" "$tmp/log")"
}
run() { # PROGRAM ARGUMENTS..
    timeout 300 node "$source/npm/run.mjs" "$@"
}
check() { # BUILD: kernels, digests of models, and a program
    for name in $tests; do
        run "$1/bin/tests/test-conformance-$name.wasm" >"$tmp/said" 2>&1 || fail "$1, $name: $(tail -5 "$tmp/said")"
    done
    run "$1/bin/tests/digest.wasm" "${kind[@]}" 2>"$tmp/said" | grep -v '^samples are chosen' >"$tmp/digests" || fail "$1, digest: $(cat "$tmp/said")"
    [ -s "$tmp/digests" ] && ! grep -Fxvf "$tmp/want" "$tmp/digests" || fail "$1: these digests are not those of this build"
    want=$("$here/llm-cli" -q -p "Once upon a time" -n 60 -s 1 --temp 0.8 2>/dev/null </dev/null)
    found=$(run "$1/bin/llm-cli.wasm" -q -p "Once upon a time" -n 60 -s 1 --temp 0.8 2>/dev/null </dev/null)
    [ -n "$want" ] && [ "$want" = "$found" ] || fail "llm-cli: '$found', not '$want'"
}

kind=(few)
[ -z "${GGL_TEST_LONG:-}" ] || kind=()
"$here/tests/digest" "${kind[@]}" 2>/dev/null | grep -v '^samples are chosen' >"$tmp/want"
targets=(digest llm-cli)
for name in $tests; do targets+=("test-conformance-$name"); done
wasm=$2/wasm
build wasm "$2" ON "${targets[@]}" test-conformance-fused_simd128 llm-quantize llm-convert llm-gguf llm-bench ggml-lite-js
check "$wasm"
run "$wasm/bin/tests/test-conformance-fused_simd128.wasm" >"$tmp/said" 2>&1 || fail "fused multiply-adds: $(tail -5 "$tmp/said")"
if [ -n "${GGL_TEST_LONG:-}" ]; then
    build wasm-scalar "$2" OFF "${targets[@]}"
    check "$2/wasm-scalar"
fi

# files: written whole, read by relative paths, and bad ones
mkdir "$tmp/größe"
cd "$tmp" || exit 1
"$here/llm-quantize" -q --allow-requantize builtin:stories want.gguf q4_0 >/dev/null 2>&1
for turn in 1 2; do
    run "$wasm/bin/llm-quantize.wasm" -q --allow-requantize builtin:stories größe/kleiner.gguf q4_0 >/dev/null 2>said || fail "llm-quantize, $turn: $(cat said)"
    cmp -s want.gguf größe/kleiner.gguf || fail "llm-quantize, $turn: another file"
done
[ "$(ls größe)" = kleiner.gguf ] || fail "left behind: $(ls größe)"
[ "$(run "$wasm/bin/llm-cli.wasm" -q -m größe/kleiner.gguf -p Once -n 20 -s 1 2>/dev/null </dev/null)" = "$("$here/llm-cli" -q -m want.gguf -p Once -n 20 -s 1 2>/dev/null </dev/null)" ] ||
    fail "another text of a file"
run "$wasm/bin/llm-cli.wasm" -m größe/nicht.gguf -p a >/dev/null 2>said
[ $? = 1 ] && grep -q 'nicht.gguf: No such file' said || fail "a file that is not there: $(cat said)"
run "$wasm/bin/llm-cli.wasm" -hf user/repo -p a >/dev/null 2>said
[ $? = 1 ] && grep -q 'cannot start curl.*(-m FILE)' said || fail "a download: $(cat said)"
head -c 5000 want.gguf >größe/kurz.gguf
run "$wasm/bin/llm-cli.wasm" -m größe/kurz.gguf -p a >/dev/null 2>said
[ $? = 1 ] && grep -q 'kurz.gguf' said || fail "a file that is cut off: $(cat said)"
# threads: the same texts, also with more of them than cores, and of a model whose products are divided
want=$("$here/llm-cli" -q -m want.gguf -p "Once upon a time, there was a fox" -n 40 -s 1 2>/dev/null </dev/null)
for n in 2 3 9; do
    found=$(run --threads $n "$wasm/bin/llm-cli.wasm" -q -m größe/kleiner.gguf -p "Once upon a time, there was a fox" -n 40 -s 1 -t $n 2>said </dev/null)
    [ -n "$want" ] && [ "$want" = "$found" ] || fail "$n threads: '$found', not '$want': $(cat said)"
done
run --threads 3 "$wasm/bin/llm-bench.wasm" -p 32 -n 0 -r 1 --no-limits 2>&1 | grep -q '3 threads' || fail "not all of the program's threads are used"
run --threads 1 "$wasm/bin/llm-cli.wasm" -p a -t 3 >/dev/null 2>said
[ $? = 1 ] && grep -q 'started with 1 thread, and cannot have 3: -t 1, or' said || fail "three threads of one: $(cat said)"
run --threads 2 "$wasm/bin/llm-cli.wasm" -p a -t 3 >/dev/null 2>said
[ $? = 1 ] && grep -q 'started with 2 threads, and cannot have 3: -t 2, or' said || fail "three threads of two: $(cat said)"
run --thread 2 "$wasm/bin/llm-cli.wasm" -p a >/dev/null 2>said
[ $? = 2 ] && grep -q "^unknown flag '--thread'; usage: " said || fail "a typo: $(cat said)"
run --threads 0 "$wasm/bin/llm-cli.wasm" -p a >/dev/null 2>said
[ $? = 2 ] && grep -q -e '--threads 0: an integer from 1 to' said || fail "no thread: $(cat said)"

[ "$(echo "Once upon a time" | run "$wasm/bin/llm-cli.wasm" -q -n 20 -s 1 2>/dev/null)" = "$(echo "Once upon a time" | "$here/llm-cli" -q -n 20 -s 1 2>/dev/null)" ] || fail "a prompt from a pipe"

# sizes beyond 32 bits: a tensor of 128 MiB is read, and a checkpoint whose sizes come to its own modulo 2^32 is refused
python3 - <<'END'
import struct
def string(s):
    return struct.pack("<Q", len(s)) + s.encode()
with open("large.gguf", "wb") as f:
    f.write(b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + string("general.architecture") + struct.pack("<I", 8) + string("llama"))
    f.write(string("a") + struct.pack("<IQQIQ", 2, 4096, 16384, 1, 0))
    f.truncate((f.tell() + 31) // 32 * 32 + 4096 * 16384 * 2)
with open("wraps.bin", "wb") as f:
    f.write(struct.pack("<7i", 64, 64, 1, 1, 1, 65536, 16711230))
    f.truncate(284)
END
run "$wasm/bin/llm-gguf.wasm" show large.gguf >said 2>&1 && grep -q 4096 said && ! grep -qE "too large|defect" said || fail "a tensor of 128 MiB: $(cat said)"
run "$wasm/bin/llm-convert.wasm" wraps.bin --no-tokenizer -o wraps.gguf >said 2>&1
[ $? = 1 ] && grep -q "284 bytes, but a llama2.c checkpoint" said || fail "a checkpoint whose sizes wrap around: $(cat said)"

# the package, and the page
GGL_WASM_TEST=$wasm/package:$here/llm-cli:$source/models/builtin node --test "$source/tests/wasm/package.mjs" >said 2>&1 || fail "the package: $(cat said)"
browsers=()
for name in ${CHROMIUM:-chromium chromium-browser google-chrome google-chrome-stable}; do
    command -v "$name" >/dev/null && browsers+=(chromium) && break
done
for name in ${FIREFOX:-firefox firefox-esr}; do
    command -v "$name" >/dev/null && browsers+=(firefox) && break
done
websocket= # node 22 has what Firefox is driven by, and node 20 if it is asked
node -e 'process.exit(typeof WebSocket === "function" ? 0 : 1)' || websocket=--experimental-websocket
node $websocket -e 0 2>/dev/null || { echo "Firefox is not tried: it needs node 20.10 or later" && websocket='' && browsers=("${browsers[@]/firefox/}"); }
echo "browsers: ${browsers[*]:-none (Debian: chromium, firefox-esr)}"
in_browsers() { # FILE BUILD_AND_FOLDERS [BROWSER]: a test in each browser, or in this one
    for browser in ${browsers[*]}; do
        [ "$browser" = "${3:-$browser}" ] || continue
        GGL_WASM_BROWSER=$browser GGL_WASM_TEST=$2 node $websocket --test "$source/tests/wasm/$1" >said 2>&1 || fail "$1 in $browser: $(cat said)"
    done
}
if [ -n "${browsers[*]}" ]; then
    in_browsers page.mjs "$wasm/web:$here/llm-cli:$source/models/builtin"
    in_browsers programs.mjs "32:$wasm:$here:$source/models/builtin" firefox # Chromium's engine is node's
    # addresses of 64 bits, which node has from version 24 on; without the compiler, or the sources of the C library, they are not tried
    "$source/scripts/wasm64-library.sh" "$2/wasm64-library" 2>said || { echo "addresses of 64 bits are not tried: $(cat said)" && exit $failed; }
    options=(-DGGL_WASM64="$2/wasm64-library")
    build wasm64 "$2" ON "${targets[@]}" ggml-lite-js
    # lld 19 looks for a function of the C library in the first archive that has one of that name, be it static, and then links none at all
    names() { # FOLDER LETTERS: of the functions of these kinds in its archives
        find "$1" -name '*.a' -print0 | xargs -0 llvm-nm-19 --defined-only 2>/dev/null | awk -v kinds="^[$2]" '$2 ~ kinds { print $3 }' | sort -u
    }
    names "$2/wasm64" t >ours
    names "$2/wasm64-library" TW >theirs
    [ -s ours ] && [ -s theirs ] && [ -z "$(comm -12 ours theirs)" ] || fail "static functions have names of the C library's: $(comm -12 ours theirs)"
    in_browsers programs.mjs "64:$2/wasm64:$here:$source/models/builtin"
fi
exit $failed
