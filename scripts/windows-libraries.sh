#!/bin/bash
# Builds libmicrohttpd, which llm-server needs, for Windows: windows-libraries.sh FOLDER. Then cmake -DCMAKE_TOOLCHAIN_FILE=cmake/windows.cmake
# -DCMAKE_FIND_ROOT_PATH=FOLDER finds it. The sources are those of a Debian system's source packages, whose signatures apt-get checks. Needs gcc-mingw-w64-x86-64-posix,
# make and dpkg-dev.
set -euo pipefail
export LC_ALL=C
fail() {
    echo "windows-libraries.sh: $*" >&2
    exit 1
}
[ $# = 1 ] && [ "${1#-}" = "$1" ] || { echo "usage: windows-libraries.sh FOLDER" >&2 && exit 2; }
compiler=x86_64-w64-mingw32-gcc-posix
for program in $compiler make apt-get dpkg-source; do
    command -v $program >/dev/null || fail "the program $program is missing (Debian: gcc-mingw-w64-x86-64-posix, make, apt, dpkg-dev)"
done
mkdir -p "$1" || fail "'$1' cannot be made"
folder=$(cd "$1" && pwd)
[ ! -e "$folder/lib/libmicrohttpd.a" ] || exit 0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The system's own sources of packages, with their sources in place of programs; the system's lists stay as they are.
mkdir -p "$tmp/sources" "$tmp/lists/partial"
for list in /etc/apt/sources.list.d/*.sources; do
    [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$tmp/sources/$(basename "$list")"
done
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -e "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >"$tmp/sources/$(basename "$list" .list).list"
done
apt=(apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$tmp/sources" -o Dir::State::Lists="$tmp/lists" -o APT::Sandbox::User=)
cd "$tmp"
{ "${apt[@]}" update && "${apt[@]}" source libmicrohttpd; } >"$tmp/log" 2>&1 || fail "no sources of libmicrohttpd: $(tail -3 "$tmp/log")"
cd "$tmp"/libmicrohttpd-*/
cp COPYING "$folder/libmicrohttpd-licence.txt" # first: the library's file is the last one
{
    ./configure -q CC=$compiler --host=x86_64-w64-mingw32 --prefix="$folder" --disable-shared --enable-static --disable-https --disable-doc --disable-examples \
        --disable-curl CFLAGS="-O2 -ffile-prefix-map='$PWD=.'" &&
        make -s -j "$(nproc)" -C src/microhttpd && make -s -C src/include install && make -s -C src/microhttpd install
} >"$tmp/log" 2>&1 || fail "libmicrohttpd cannot be built: $(tail -5 "$tmp/log")"
