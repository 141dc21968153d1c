#!/bin/bash
# Makes the files of a release, and tries each of them; docs/releases.md says what they are and when it is run. --help: the options.
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
caller=$PWD
cd "$(dirname "$0")/.."

usage() {
    cat <<'END'
usage: scripts/release.sh [options] [FOLDER]

Makes the files of a release in FOLDER (default: build/release-VERSION): sources, static programs and a package for
Debian and Ubuntu, for this machine's processor, and SHA256SUMS. The same commit and compiler give the same bytes. If a
file cannot be made, or fails when it is tried, FOLDER stays as it was.

  --snapshot      a release of any commit, tagged or not, whose files may be changed
  --build DIR     pack what was built in this folder (default: build/package, which is configured and built here)
  --without PART  leave a part out: source, static or deb; repeatable
  --program NAME  pack this program only, such as llm-cli, to try the script; repeatable
  --level N       compress with 0 (quick) to 9 (small, default)
  -h, --help      print this

Both default folders are in the clone.

Exit code: 0: done; 1: something failed, or the commit is not fit for a release; 2: wrong arguments.
END
}
wrong() {
    echo "release.sh: $*; --help lists the options" >&2
    exit 2
}
fail() {
    echo "release.sh: $*" >&2
    exit 1
}
note() {
    echo "$*" >&2
}
# from_caller FOLDER: as a path that means the same here, where `cd` has led
from_caller() {
    case $1 in
    /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$caller/$1" ;;
    esac
}
need() { # PROGRAM PACKAGE
    command -v "$1" >/dev/null || fail "the program $1 is missing (Debian: $2)"
}

snapshot= build= folder= level=9 programs=()
declare -A without=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    --snapshot) snapshot=1 ;;
    --build | --without | --program | --level)
        [ $# -gt 1 ] || wrong "$1 needs a value"
        case $1 in
        --build) [ -n "$2" ] && build=$(from_caller "$2") || wrong "--build needs a folder" ;;
        --without)
            case $2 in
            source | static | deb) without[$2]=1 ;;
            *) wrong "--without '$2': one of source, static, deb" ;;
            esac
            ;;
        --program) [ -n "$2" ] && programs+=("$2") || wrong "--program needs a name" ;;
        --level) level=$2 ;;
        esac
        shift
        ;;
    -*) wrong "unknown option '$1'" ;;
    *) [ -z "$folder" ] && [ -n "$1" ] && folder=$(from_caller "$1") || wrong "one folder is expected: '$1'" ;;
    esac
    shift
done
[ ${#without[@]} -lt 3 ] || wrong "all parts are left out"
case $level in [0-9]) ;; *) wrong "--level '$level': 0 to 9" ;; esac
[ -z "$build" ] || [ -f "$build/CMakeCache.txt" ] || wrong "--build '$build': no build folder of CMake"

# The commit and its version.
need git git
[ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ] || fail "this folder is not a clone: a release is made of a commit"
version=$(sed -n 's/^project(ggml-lite VERSION \([0-9]*\.[0-9]*\.[0-9]*\) .*/\1/p' CMakeLists.txt)
[ -n "$version" ] || fail "CMakeLists.txt has no version"
label=$version deb_version=$version
if [ -n "$snapshot" ]; then
    commit=$(git rev-parse --short=12 HEAD)
    label=$version-g$commit deb_version=$version~g$commit
else
    changed=$(git status --porcelain)
    [ -z "$changed" ] || fail "there are changes that are not committed (--snapshot allows them):
$changed"
    tags=$(git tag --points-at HEAD)
    grep -qxF "v$version" <<<"$tags" ||
        fail "the commit has $([ -n "$tags" ] && echo "the tag" $tags || echo "no tag"), and CMakeLists.txt the version $version: the tag v$version is expected (--snapshot: any)"
    grep -q "^## \[$version\]" CHANGELOG.md || fail "CHANGELOG.md has no section [$version]"
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
folder=${folder:-build/release-$label}
mkdir -p "$folder" || fail "'$folder' cannot be made"
folder=$(cd "$folder" && pwd)
need sha256sum coreutils
tar --version | grep -q 'GNU tar' || fail "GNU tar is needed, which sorts files and sets their owners"
[ -n "${without[static]:-}" ] || need xz xz-utils
if [ -z "${without[deb]:-}" ]; then
    need dpkg-deb dpkg
    need dpkg-shlibdeps dpkg-dev
fi

# Files come into the folder when all of them were tried.
tmp=$(mktemp -d) out=
trap 'rm -rf "$tmp" ${out:+"$out"}' EXIT
out=$(mktemp -d "$folder/.release.XXXXXX") || fail "'$folder' cannot be written"
made=()

# says PROGRAM: it runs, and has the version
says() {
    local said
    said=$("$1" --version) || fail "$1 does not run"
    said=${said%%$'\n'*}
    [ "${said%% (*}" = "$(basename "$1") $version" ] || fail "$1 --version prints '$said', not version $version"
}

if [ -z "${without[source]:-}" ]; then
    note "sources .."
    name=ggml-lite-$label
    git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip "-n$((level > 0 ? level : 1))" >"$out/$name.tar.gz"
    made+=("$name.tar.gz")
    [ "$(tar -tzf "$out/$name.tar.gz" | grep -vc '/$')" -eq "$(git ls-tree -r --name-only HEAD | wc -l)" ] ||
        fail "$name.tar.gz does not have the files of the commit"
fi

if [ -z "${without[static]:-}" ] || [ -z "${without[deb]:-}" ]; then
    if [ -z "$build" ]; then
        build=build/package
        note "configuring $build .."
        # the flag is read by a shell and by make
        case $PWD in *[\'\"\\\`\$\#=]*) fail "the path of the clone, $PWD, has one of the characters ' \" \\ \` \$ # =, which a flag of the compiler cannot have" ;; esac
        cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DGGL_TESTS=OFF -DCMAKE_C_FLAGS="-ffile-prefix-map='$PWD=.'" >"$tmp/log" 2>&1 ||
            fail "cmake: $(tail -20 "$tmp/log")"
        note "building in $build .."
        cmake --build "$build" -j "$(nproc)" >"$tmp/log" 2>&1 || fail "the build failed: $(tail -20 "$tmp/log")"
    fi
    # The prefix of a package is /usr: fixed names, wherever it is staged.
    DESTDIR=$tmp/stage cmake --install "$build" --prefix /usr --strip >"$tmp/log" 2>&1 || fail "cmake --install: $(tail -20 "$tmp/log")"
    usr=$tmp/stage/usr
    licences=$usr/share/doc/ggml-lite/llm-server-page-licences.txt
    grep -qx llm-server <<<"$(printf '%s\n' "${programs[@]:-llm-server}")" || rm -f "$licences"
    [ ${#programs[@]} -gt 0 ] || mapfile -t programs < <(cd "$usr/bin" && ls)
    for program in "${programs[@]}"; do
        [ -x "$usr/bin/$program" ] || fail "$build has no program $program"
    done
    for path in "$usr"/bin/* "$usr"/share/man/man1/* "$usr"/share/*/completions/* "$usr"/share/*/site-functions/* "$usr"/share/*/vendor_completions.d/*; do
        name=${path##*/} && name=${name#_}
        grep -qxF "${name%%.*}" < <(printf '%s\n' "${programs[@]}") || rm "$path"
    done
fi

if [ -z "${without[static]:-}" ]; then
    note "static programs .."
    targets=$(cmake --build "$build" --target help | { grep -oE 'llm-[a-z]+-static' || true; } | sort -u)
    [ -n "$targets" ] || fail "this system has no static C library (--without static leaves the static programs out)"
    mapfile -t targets < <(printf '%s-static\n' "${programs[@]}" | grep -xF "$targets")
    [ ${#targets[@]} -gt 0 ] ||
        fail "${programs[*]} has no static form: libmicrohttpd.a is missing (Debian: libmicrohttpd-dev; --without static leaves the static programs out)"
    cmake --build "$build" --target "${targets[@]}" -j "$(nproc)" >"$tmp/log" 2>&1 ||
        fail "static programs cannot be linked (--without static leaves them out): $(tail -5 "$tmp/log")"
    name=ggml-lite-$label-linux-$(uname -m)-static
    top=$tmp/$name
    mkdir -p "$top/bin"
    left_out=
    for tool in "${programs[@]}"; do
        if grep -qxF "$tool-static" < <(printf '%s\n' "${targets[@]}"); then
            cp "$build/bin/static/$tool" "$top/bin/" && strip "$top/bin/$tool"
        else
            left_out="$left_out $tool"
        fi
    done
    [ -z "$left_out" ] || note "left out of the static programs, because a library has no static form:$left_out"
    cp -r "$usr/share" "$top/share"
    rm -r "$top/share/doc"
    cp LICENSE NOTICE "$top/"
    [ ! -f "$licences" ] || cp "$licences" "$top/"
    cat >"$top/README.txt" <<END
ggml-lite $version: programs that need no shared library, for Linux on $(uname -m).

Try:        bin/llm-cli
Install:    cp -r bin share /usr/local/
${left_out:+Left out:  $left_out
}
They load no shared libraries: there are no Vulkan devices, no plug-ins, and no llm-bench serve. Packages of a system and
builds of the sources have them.

LICENSE is that of ggml-lite. The page of llm-server contains libraries in JavaScript, if there is a file
llm-server-page-licences.txt, which has their licences. The programs contain the system's C library, and llm-server contains libmicrohttpd. If these
are glibc and libmicrohttpd, they are under the GNU LGPL, version 2.1 or later; "cmake --build BUILD --target
static-programs" in the sources of this release links the programs with other versions of them.
END
    # xz finds what the programs have in common: the archive is a ninth of one by gzip.
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$tmp" -cf - "$name" |
        xz -T1 "-$level" >"$out/$name.tar.xz"
    made+=("$name.tar.xz")
    mkdir "$tmp/try"
    tar -xJf "$out/$name.tar.xz" -C "$tmp/try"
    for program in "$tmp/try/$name"/bin/*; do
        says "$program"
        ! grep -q NEEDED <<<"$(readelf -d "$program" 2>/dev/null)" || fail "$program needs a shared library"
    done
    [ ! -x "$tmp/try/$name/bin/llm-cli" ] || "$tmp/try/$name/bin/llm-cli" -q -p "Once upon a time" -n 4 -s 1 >"$tmp/log" 2>&1 ||
        fail "the static llm-cli: $(cat "$tmp/log")"
fi

if [ -z "${without[deb]:-}" ]; then
    note "package for Debian .."
    architecture=$(dpkg --print-architecture)
    name=ggml-lite_${deb_version}_$architecture.deb
    root=$tmp/stage doc=$tmp/stage/usr/share/doc/ggml-lite
    mv "$usr/share/zsh/site-functions" "$usr/share/zsh/vendor-completions"
    { cat LICENSE && echo && cat NOTICE; } >"$doc/copyright"
    rm "$doc/LICENSE" "$doc/NOTICE"
    cp CHANGELOG.md "$doc/changelog"
    gzip -n9 "$doc/changelog" "$usr"/share/man/man1/*.1
    strip --strip-debug "$usr"/lib/*.a
    mkdir -p "$root/DEBIAN" "$tmp/depends/debian"
    printf 'Source: ggml-lite\n\nPackage: ggml-lite\nArchitecture: any\n' >"$tmp/depends/debian/control"
    depends=$(cd "$tmp/depends" && dpkg-shlibdeps -O "$usr"/bin/* "$usr"/lib/libllm.so.*.*.* 2>"$tmp/log") ||
        fail "dpkg-shlibdeps: $(tail -5 "$tmp/log")"
    # of files alone, as the size of a folder depends on the file system
    size=$(find "$usr" -type f -printf '%s\n' | awk '{ n += $1 } END { printf "%d", (n + 1023) / 1024 }')
    cat >"$root/DEBIAN/control" <<END
Package: ggml-lite
Version: $deb_version
Architecture: $architecture
Maintainer: $(git log -1 --format='%an <%ae>')
Installed-Size: $size
Depends: ${depends#shlibs:Depends=}
Recommends: curl
Section: science
Priority: optional
Description: language models on your own computer
 Programs that chat with language models, continue texts, serve programs and
 browsers, convert and quantize models, and measure speed and quality. They
 run GGUF files, Hugging Face folders and llama2.c checkpoints.
 .
 The package also has the library libllm with its headers.
END
    echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    find "$root" -type d -exec chmod 755 {} +
    find "$root" -type f -exec chmod 644 {} +
    chmod 755 "$usr"/bin/*
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz "-z$level" --build "$root" "$out/$name" >"$tmp/log" 2>&1 || fail "dpkg-deb: $(cat "$tmp/log")"
    made+=("$name")
    dpkg-deb -x "$out/$name" "$tmp/deb"
    for program in "$tmp"/deb/usr/bin/*; do
        says "$program"
        [ -f "$tmp/deb/usr/share/man/man1/$(basename "$program").1.gz" ] || fail "$name has no manual page of $(basename "$program")"
    done
    [ "$(dpkg-deb -f "$out/$name" Version)" = "$deb_version" ] || fail "$name has another version"
    if command -v lintian >/dev/null; then
        lintian --no-tag-display-limit "$out/$name" >&2 || note "lintian found something"
    fi
fi

(cd "$out" && sha256sum "${made[@]}" >SHA256SUMS)
rm -f "$folder/SHA256SUMS" # never beside files of which it does not have the digests
(cd "$out" && mv -f "${made[@]}" "$folder/" && mv -f SHA256SUMS "$folder/")
cd "$folder"
sha256sum -c --quiet SHA256SUMS || fail "the digests do not fit"
note "in $folder:"
ls -l "${made[@]}" SHA256SUMS | awk '{ printf "%12d  %s\n", $5, $9 }'
