#!/bin/bash
# Builds the C library for WebAssembly with addresses of 64 bits, which no system has yet, from wasi-libc's sources: wasm64-library.sh FOLDER. Then
# cmake -DCMAKE_TOOLCHAIN_FILE=cmake/wasm.cmake -DGGL_WASM64=FOLDER builds programs for models of more than 4 GB. The sources are those of a Debian
# system's source packages, whose signatures apt-get checks. Needs clang-19, lld-19, llvm-19, libclang-rt-19-dev-wasm64,
# make and dpkg-dev.
set -euo pipefail
export LC_ALL=C
fail() {
    echo "wasm64-library.sh: $*" >&2
    exit 1
}
[ $# = 1 ] && [ "${1#-}" = "$1" ] || { echo "usage: wasm64-library.sh FOLDER" >&2 && exit 2; }
# shellcheck source=scripts/own-apt.sh
. "$(dirname "$0")/own-apt.sh"
for program in make apt-get dpkg-source; do
    command -v $program >/dev/null || fail "the program $program is missing (Debian: make, apt, dpkg-dev)"
done
version=19 # those before write single lanes of vectors wrongly with such addresses
command -v clang-$version >/dev/null && command -v llvm-ar-$version >/dev/null && [ -e "$(clang-$version --target=wasm64-wasi -print-libgcc-file-name)" ] ||
    fail "no clang has its library for WebAssembly with 64 bits (Debian: clang-$version lld-$version llvm-$version libclang-rt-$version-dev-wasm64)"
mkdir -p "$1" || fail "'$1' cannot be made"
folder=$(cd "$1" && pwd)
[ ! -e "$folder/wasi-libc-licence.txt" ] || exit 0 # the last file
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
own_apt deb-src "$tmp"
(cd "$tmp" && "${apt[@]}" source wasi-libc) >"$tmp/log" 2>&1 || fail "no sources of wasi-libc: $(tail -n 3 "$tmp/log")"
cd "$tmp"/wasi-libc-*/

# What the library says of 32 bits. Calls of the system get all arguments as 64 bits (npm/wasi.mjs), and lists of addresses and sizes have 64 bits each.
sed -i '/_Static_assert/d; /only supports wasm32; doesn/d' libc-bottom-half/headers/public/wasi/api.h
sed -i -E 's/\(int32_t\) /(int64_t) /g; /__imported_wasi.*\(int32_t arg0/s/int32_t arg/int64_t arg/g' libc-bottom-half/sources/__wasilibc_real.c
musl=libc-top-half/musl/arch/wasm32
sed -i -E '/FAST/!s/INT32_(MIN|MAX)$/INT64_\1/' $musl/bits/stdint.h
sed -i 's/ILP32_OFFBIG/LP64_OFF64/' $musl/bits/posix.h
cat >>$musl/atomic_arch.h <<'END'
#define a_cas_p(p, t, s) (__sync_val_compare_and_swap((void *volatile *)(p), (t), (s)))
END
make -j "$(nproc)" startup_files libc CC=clang-$version AR=llvm-ar-$version NM=llvm-nm-$version TARGET_TRIPLE=wasm64-wasi MULTIARCH_TRIPLE=wasm64-wasi \
    SYSROOT="$tmp/system" EXTRA_CFLAGS="-O2 -DNDEBUG -fno-stack-protector -ffile-prefix-map='$PWD=.'" >"$tmp/log" 2>&1 || fail "wasi-libc cannot be built: $(grep -m 5 -E 'error|Error' "$tmp/log")"
for name in m dl; do # parts of libc.a, which programs for other systems name
    llvm-ar-$version crs "$tmp/system/lib/wasm64-wasi/lib$name.a"
done
cp -r "$tmp/system/." "$folder/"
cat LICENSE* libc-top-half/musl/COPYRIGHT >"$folder/wasi-libc-licence.txt"
