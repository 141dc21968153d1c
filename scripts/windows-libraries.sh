#!/bin/bash
# Builds libraries for Windows that Debian has no packages of: windows-libraries.sh [--aarch64] FOLDER; or unpacks Debian's wine for ARM: windows-libraries.sh --wine FOLDER
#
# For x86-64 it builds libmicrohttpd, which llm-server needs, and libcurl, which `llm-bench serve` needs; then cmake -DCMAKE_TOOLCHAIN_FILE=cmake/windows.cmake -DCMAKE_FIND_ROOT_PATH=FOLDER finds it. For ARM it builds
# also what a compiler needs: the headers, the C runtime, the import libraries and the threads of mingw-w64, for cmake/windows_aarch64.cmake. The sources are those of a
# Debian system's source packages, whose signatures apt-get checks. Needs make, dpkg-dev and gcc-mingw-w64-x86-64-posix, or for ARM clang-16, lld-16 and llvm-16.
#
# FOLDER/wine, after --wine, runs programs for ARM on this machine by qemu (Debian: qemu-user-static).
set -euo pipefail
export LC_ALL=C
fail() {
    echo "windows-libraries.sh: $*" >&2
    exit 1
}
. "$(dirname "$0")/own-apt.sh"
what=x86_64
case ${1:-} in
--aarch64 | --wine)
    what=${1#--}
    shift
    ;;
esac
[ $# = 1 ] && [ "${1#-}" = "$1" ] || { echo "usage: windows-libraries.sh [--aarch64 | --wine] FOLDER" >&2 && exit 2; }
host=$what-w64-mingw32
case $what in
x86_64)
    compiler=$host-gcc-posix made=lib/libcurl.a debian="gcc-mingw-w64-x86-64-posix, make, apt, dpkg-dev" packages=(libmicrohttpd curl)
    needed=("$compiler" make dpkg-source)
    ;;
aarch64)
    compiler=clang-16 made=lib/libcurl.a debian="clang-16, lld-16, llvm-16, make, apt, dpkg-dev" packages=(libmicrohttpd curl mingw-w64)
    needed=("$compiler" ld.lld-16 llvm-{ar,ranlib,nm,dlltool,objdump,windres}-16 make dpkg-source)
    ;;
wine)
    made=wine debian="qemu-user-static, apt, dpkg" packages=(wine64)
    needed=(qemu-aarch64-static dpkg-deb)
    ;;
esac
for program in "${needed[@]}" apt-get; do
    command -v "$program" >/dev/null || fail "the program $program is missing (Debian: $debian)"
done
mkdir -p "$1" || fail "'$1' cannot be made"
folder=$(cd "$1" && pwd)
[ ! -e "$folder/$made" ] || exit 0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

if [ $what = wine ]; then
    own_apt deb "$tmp" -o APT::Architecture=arm64 -o APT::Architectures=arm64
else
    own_apt deb-src "$tmp"
fi
cd "$tmp"
get() { # COMMAND..: of apt-get, which fetches the packages
    "${apt[@]}" "$@" "${packages[@]}" >"$tmp/log" 2>&1 || fail "apt-get $1 ${packages[*]} fails: $(tail -n 3 "$tmp/log")"
}

if [ $what = wine ]; then
    : >status # with all packages that these need
    get install -y -d -o Dir::State::status="$tmp/status" -o APT::Install-Recommends=0
    for file in cache/archives/*.deb; do
        dpkg-deb -x "$file" "$folder"
    done
    # qemu runs the dynamic linker, which is told where libraries are, and has to lie beside the program: wine finds its own files beside what runs it. With `qemu -L FOLDER`,
    # the folder / would be another one than outside, and wine would not find its drives. Wine starts each further program by calling its preloader, and its server by name.
    bin=$folder/usr/lib/wine
    cp -L "$folder/lib/ld-linux-aarch64.so.1" "$bin/ld.so"
    run="exec qemu-aarch64-static '$bin/ld.so' --library-path '$folder/lib/aarch64-linux-gnu:$folder/usr/lib/aarch64-linux-gnu'"
    printf '#!/bin/sh\n%s "$@"\n' "$run" >"$bin/wine-preloader"
    cp "$bin/wine-preloader" "$bin/wine64-preloader"
    printf '#!/bin/sh\n%s "%s" "$@"\n' "$run" "$bin/wineserver64" >"$bin/wineserver"
    chmod +x "$bin"/wine*
    # Without a display, wine's desktop starts itself again and again. Wine calls its loader by this name for that program alone, so that it does not start at all.
    echo 'no program' >"$bin/wine"
    ln -sfn usr/lib/wine/wineserver "$folder/wineserver"
    printf '#!/bin/sh\nexport WINELOADERNOEXEC=1\n%s "%s" "$@"\n' "$run" "$bin/wine64" >"$tmp/wine"
    chmod +x "$tmp/wine"
    mv "$tmp/wine" "$folder/wine" # the last one
    exit 0
fi
get source

# build NAME SOURCES OPTION..: configures the sources and installs them, or those in their folders `parts`, in the folder
parts=(.)
build() {
    local name=$1 sources=$2 part
    shift 2
    mkdir "$tmp/$name"
    {
        cd "$tmp/$name" && "$sources/configure" -q --host=$host --prefix="$folder" "${tools[@]}" CFLAGS="-O2 -ffile-prefix-map='$tmp=.'" "$@" &&
            for part in "${parts[@]}"; do make -s -C "$part" -j "$(nproc)" && make -s -C "$part" install || exit 1; done
    } >"$tmp/log" 2>&1 || fail "$name cannot be built: $(tail -n 5 "$tmp/log")"
}
tools=("CC=$compiler")
if [ $what = aarch64 ]; then
    mingw=$(echo "$tmp"/mingw-w64-*/)
    ln -s "$folder" "$tmp/system" # a path without blanks
    clang="$compiler --target=$host --sysroot=$tmp/system -fuse-ld=lld-16"
    tools=(CC="$clang" AS="$clang -c" CCAS="$clang" AR=llvm-ar-16 RANLIB=llvm-ranlib-16 NM=llvm-nm-16 DLLTOOL=llvm-dlltool-16 OBJDUMP=llvm-objdump-16
        RC=llvm-windres-16 RCFLAGS="--target=$host -I$tmp/system/include")
    # Windows 10 has the universal C runtime, whose functions are those of C11.
    build headers "$mingw/mingw-w64-headers" --with-default-msvcrt=ucrt --with-default-win32-winnt=0x0a00
    build runtime "$mingw/mingw-w64-crt" --with-default-msvcrt=ucrt --enable-libarm64 --disable-lib32 --disable-lib64 --disable-libarm32
    # Functions that the compiler calls. Of those that it has for ARM, programs need one: __chkstk touches the pages of a new stack frame of x15 * 16 bytes, from the
    # nearest to the farthest, because the system only extends a stack page by page. It may change x16 and x17.
    cat >"$tmp/chkstk.S" <<'END'
.globl __chkstk
__chkstk:
    sub x16, sp, x15, uxtx #4
    mov x17, sp
1:  sub x17, x17, #4096
    ldrb wzr, [x17]
    cmp x17, x16
    b.hi 1b
    ret
END
    $compiler --target=$host -c "$tmp/chkstk.S" -o "$tmp/chkstk.o"
    llvm-ar-16 rcs "$folder/lib/libgcc.a" "$tmp/chkstk.o"
    llvm-ar-16 rcs "$folder/lib/libgcc_eh.a" # clang asks for it
    build threads "$mingw/mingw-w64-libraries/winpthreads" --disable-shared --enable-static
    cp "$mingw/COPYING.MinGW-w64-runtime/COPYING.MinGW-w64-runtime.txt" "$folder/mingw-w64-licence.txt"
fi
cp "$tmp"/libmicrohttpd-*/COPYING "$folder/libmicrohttpd-licence.txt" # first: the file of the last library says that all is there
cp "$tmp"/curl-*/COPYING "$folder/libcurl-licence.txt"
build libmicrohttpd "$(echo "$tmp"/libmicrohttpd-*/)" --disable-shared --enable-static --disable-https --disable-doc --disable-examples --disable-curl
no=() # HTTP and HTTPS alone
for part in ftp file ldap ldaps rtsp dict telnet tftp pop3 imap smb smtp gopher mqtt manual; do no+=(--disable-$part); done
for part in zlib brotli zstd libpsl libgsasl librtmp libidn2 nghttp2; do no+=(--without-$part); done
parts=(include lib) # without the program
# It formats numbers by mingw-w64's functions, as the programs do, and its threads are those of Windows.
build libcurl "$(echo "$tmp"/curl-*/)" CPPFLAGS=-D__USE_MINGW_ANSI_STDIO=1 --disable-pthreads --disable-shared --enable-static --with-schannel "${no[@]}"
