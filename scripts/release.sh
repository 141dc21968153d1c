#!/bin/bash
# Makes the files of a release, and tries each of them; docs/releases.md says what they are and when it is run. --help: the options.
# Each part is a file of scripts/release/, which defines the function make_PART.
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
caller=$PWD
cd "$(dirname "$0")/.."

parts=(source static image deb wheel zip npm formula) # in the order in which they are made

usage() {
    cat <<'END'
usage: scripts/release.sh [options] [FOLDER]

Makes the files of a release in FOLDER (default: build/release-VERSION), and SHA256SUMS:

  source   the sources
  static   programs that need no shared library
  image    an image for containers that has nothing but such programs
  deb      a package for Debian and Ubuntu
  wheel    a Python package with the library
  zip      programs for Windows, and those for ARM if the C library for them was built before (docs/releases.md)
  npm      a package for JavaScript, and a page that runs models without a server
  formula  how Homebrew builds the sources (needs --url)

The same commit and compiler give the same bytes. If a file cannot be made, or fails when it is tried, FOLDER stays as
it was.

  --snapshot      a release of any commit, tagged or not, whose files may be changed
  --target CPU    make files for this processor; default: this machine's. aarch64 can be made on other machines, too,
                  without deb and zip, by Debian's gcc-aarch64-linux-gnu and qemu-user-static
  --libc NAME     the C library of static programs: musl or glibc; default: musl, if it has a compiler here
                  (x86_64-linux-musl-gcc, musl-gcc), and glibc for programs that cannot be linked with it
  --url ADDRESS   where the files will be published, such as https://example.org/releases/1.0.0
  --build DIR     pack what was built in this folder (default: folders build/package.. are configured and built)
  --without PART  leave a part out; repeatable
  --program NAME  pack this program only, such as llm-cli, to try the script; repeatable
  --level N       compress with 0 (quick) to 9 (small, default)
  -h, --help      print this

The default folders are in the clone.

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
# among WORD LIST..: the word is one of the list
among() {
    local word=$1 other
    shift
    for other in "$@"; do
        [ "$word" != "$other" ] || return 0
    done
    return 1
}
listed() { # WORD..: with commas
    local all=$*
    echo "${all// /, }"
}

snapshot='' given='' folder='' level=9 programs=() machine=$(uname -m) target='' libc='' url=''
declare -A without=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    --snapshot) snapshot=1 ;;
    --build | --without | --program | --level | --target | --libc | --url)
        [ $# -gt 1 ] || wrong "$1 needs a value"
        case $1 in
        --build) [ -n "$2" ] && given=$(from_caller "$2") || wrong "--build needs a folder" ;;
        --without) among "$2" "${parts[@]}" && without[$2]=1 || wrong "--without '$2': one of $(listed "${parts[@]}")" ;;
        --program) [ -n "$2" ] && programs+=("$2") || wrong "--program needs a name" ;;
        --level) level=$2 ;;
        --target) target=$2 ;;
        --libc) among "$2" musl glibc && libc=$2 || wrong "--libc '$2': musl or glibc" ;;
        --url) [[ $2 =~ ^[a-z]+://[A-Za-z0-9._~:/@%+-]+$ ]] && url=${2%/} || wrong "--url '$2': no address such as https://example.org/releases" ;;
        esac
        shift
        ;;
    -*) wrong "unknown option '$1'" ;;
    *) [ -z "$folder" ] && [ -n "$1" ] && folder=$(from_caller "$1") || wrong "one folder is expected: '$1'" ;;
    esac
    shift
done
[ ${#without[@]} -lt ${#parts[@]} ] || wrong "all parts are left out"
case $level in [0-9]) ;; *) wrong "--level '$level': 0 to 9" ;; esac
[ -z "$given" ] || [ -f "$given/CMakeCache.txt" ] || wrong "--build '$given': no build folder of CMake"
[ -z "$given" ] || [ -z "$libc" ] || wrong "--libc says how to build, and --build names what was built"
: "${target:=$machine}"
across='' # a name that parts put before those of tools, if the files are for another processor than this machine's
runner=() # runs the programs then
if [ "$target" != "$machine" ]; then
    among "$target" aarch64 || wrong "--target '$target': aarch64, or this machine's, $machine"
    across=$target-linux-gnu-
    runner=("qemu-$target-static")
fi

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
need flock util-linux
tar --version | grep -q 'GNU tar' || fail "GNU tar is needed, which sorts files and sets their owners"
if [ -n "$across" ]; then
    need "${across}gcc" "gcc-${across%-}"
    echo 'int main(void) { return 0; }' | "${across}gcc" -x c -o /dev/null - 2>/dev/null ||
        fail "${across}gcc finds no C library (Debian: libc6-dev-arm64-cross)"
    need "${runner[0]}" qemu-user-static
    if [ -z "${without[deb]:-}" ]; then
        note "deb: left out, as Debian's tools find what programs for $target need on a machine with that processor only"
        without[deb]=1
    fi
fi
if [ -z "${without[zip]:-}" ] && { [ "$target" != x86_64 ] || [ -n "$given" ]; }; then
    note "zip: left out, as $([ -n "$given" ] && echo "--build names what was built for this system" || echo "programs for Windows are for x86_64 only")"
    without[zip]=1
fi
if [ -z "${without[npm]:-}" ] && { [ -n "$across" ] || [ -n "$given" ]; }; then
    note "npm: left out, as $([ -n "$given" ] && echo "--build names what was built for this system" || echo "the package is the same for all processors")"
    without[npm]=1
fi
if [ -z "${without[formula]:-}" ] && { [ -n "${without[source]:-}" ] || [ -z "$url" ]; }; then
    note "formula: left out, as $([ -z "$url" ] && echo "--url does not say where the sources will be" || echo "it names the digest of the sources, which are left out")"
    without[formula]=1
fi
[ -n "${without[static]:-}" ] || need xz xz-utils
if [ -z "${without[deb]:-}" ]; then
    need dpkg-deb dpkg
    need dpkg-shlibdeps dpkg-dev
fi
[ -n "${without[wheel]:-}" ] || need python3 python3
if [ -z "${without[zip]:-}" ]; then
    need zip zip
    need x86_64-w64-mingw32-gcc-posix "gcc-mingw-w64-x86-64-posix; --without zip leaves programs for Windows out"
fi

if [ -z "${without[npm]:-}" ]; then
    need clang-19 "clang-19 lld-19 llvm-19 libclang-rt-19-dev-wasm32 libclang-rt-19-dev-wasm64 wasi-libc; --without npm leaves the package for JavaScript out"
    need node nodejs
fi

# Files come into the folder when all of them were tried.
tmp=$(mktemp -d) out=
ends_wine=() # ends the wineserver of a part that uses one, which would stay beside a folder that is gone
trap '"${ends_wine[@]:-true}" 2>/dev/null || true; rm -rf "$tmp" ${out:+"$out"}' EXIT
out=$(mktemp -d "$folder/.release.XXXXXX") || fail "'$folder' cannot be written"
made=()

# says PROGRAM: it runs, and has the version
says() {
    local said
    said=$("${runner[@]}" "$1" --version) || fail "$1 does not run"
    said=${said%%$'\n'*}
    [ "${said%% (*}" = "$(basename "$1") $version" ] || fail "$1 --version prints '$said', not version $version"
}
# tells_a_story COMMAND..: llm-cli, run by the command, writes the text that the built-in model always writes
tells_a_story() {
    "$@" -q -p "Once upon a time" -n 4 -s 1 >"$tmp/said" 2>&1 || fail "$* fails: $(cat "$tmp/said")"
}
# packed FOLDER..: prints folders of the folder where it is called as a tar archive, the same bytes each time
packed() {
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$@"
}

# hold FOLDER: builds below it, or packs what was built in it, alone. Two runs at once, or one beside what an interrupted one has left
# running, would write the same objects and libraries. The programs that are started here have the lock, too, until they end.
held=''
hold() {
    [ "$held" != "$1" ] || return 0
    mkdir -p "$1"
    exec 9>"$1/release.lock" || fail "$1/release.lock cannot be written"
    if ! flock -n 9; then
        note "  waits for another release.sh, or what is left of one, which works in $1"
        flock 9
    fi
    held=$1
}
# tree NAME OPTION..: builds all in build/NAME with these options of cmake, or takes the folder of --build. Sets `build`, and `usr`, where
# it is installed with the programs that were asked for.
tree() {
    local name=$1 program path
    shift
    build=build/$name
    if [ -n "$given" ]; then
        name=given build=$given
    elif [ -n "$across" ]; then
        name=$name-$target build=$build-$target
        set -- -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/$target.cmake" "$@"
    fi
    usr=$tmp/stage/$name/usr
    [ ! -d "$usr" ] || return 0
    hold "${given:-build}"
    if [ -z "$given" ]; then
        note "  building in $build .."
        # the flag is read by a shell and by make
        case $PWD in *[\'\"\\\`\$\#=]*) fail "the path of the clone, $PWD, has one of the characters ' \" \\ \` \$ # =, which a flag of the compiler cannot have" ;; esac
        cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DGGL_TESTS=OFF -DCMAKE_C_FLAGS="-ffile-prefix-map='$PWD=.'" "$@" >"$tmp/log" 2>&1 ||
            fail "cmake: $(tail -20 "$tmp/log")"
        cmake --build "$build" -j "$(nproc)" >"$tmp/log" 2>&1 || fail "the build failed: $(tail -20 "$tmp/log")"
    fi
    # The prefix of a package is /usr: fixed names, wherever it is staged.
    DESTDIR=$tmp/stage/$name cmake --install "$build" --prefix /usr --strip >"$tmp/log" 2>&1 || fail "cmake --install: $(tail -20 "$tmp/log")"
    for path in "$usr"/bin/* "$usr"/share/man/man1/* "$usr"/share/*/completions/* "$usr"/share/*/site-functions/* "$usr"/share/*/vendor_completions.d/*; do
        program=${path##*/} && program=${program#_}
        wanted "${program%%.*}" || rm -f "$path"
    done
    wanted llm-server || rm -f "$usr/share/doc/ggml-lite/llm-server-page-licences.txt"
}
wanted() { # PROGRAM: it was asked for
    [ ${#programs[@]} = 0 ] || among "$1" "${programs[@]}"
}
# The build by the system's compiler, with whatever the system has.
system_tree() {
    local program
    tree package
    for program in "${programs[@]}"; do
        [ -x "$usr/bin/$program" ] || fail "$build has no program $program"
    done
}

for part in "${parts[@]}"; do
    # shellcheck source=/dev/null
    . "scripts/release/$part.sh"
done
for part in "${parts[@]}"; do
    [ -z "${without[$part]:-}" ] || continue
    note "$part .."
    "make_$part"
done

(cd "$out" && sha256sum "${made[@]}" >SHA256SUMS)
rm -f "$folder/SHA256SUMS" # never beside files of which it does not have the digests
(cd "$out" && mv -f "${made[@]}" "$folder/" && mv -f SHA256SUMS "$folder/")
cd "$folder"
sha256sum -c --quiet SHA256SUMS || fail "the digests do not fit"
note "in $folder:"
ls -l "${made[@]}" SHA256SUMS | awk '{ printf "%12d  %s\n", $5, $9 }'
