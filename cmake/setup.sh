# shellcheck shell=sh
# Sourced by ./run and ./test: finds out what this machine lacks, and installs it by apt-get where there is one. Nothing that is
# installed already changes. Written for any POSIX shell: Alpine has no bash, and macOS has an old one.
#
# Parts are known by the names of Debian's packages; `elsewhere` has their names in other systems.
needed='' wanted=''
packages_log=build/packages.log

# What dpkg calls is in these folders, which the PATH of some users, and that of `su`, lacks.
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin
export PATH

# can_build_in FOLDER: creates the folder; false if nothing can be written there
can_build_in() {
    mkdir -p "$1" 2>/dev/null && [ -w "$1" ] && [ -w build ]
}
cannot_build() {
    echo "$PWD/build cannot be written, so nothing can be built here; clone the repository into a folder of your own" >&2
    exit 1
}

# need COMMAND PACKAGE WHY: the package is needed, unless the command is there
need() {
    command -v "$1" >/dev/null 2>&1 || lacks "$2" "$3"
}

# want COMMAND PACKAGE WHY: as `need`, but without the package less is tested, and nothing fails.
want() {
    command -v "$1" >/dev/null 2>&1 && return
    echo "wanted: $2 ($3)" >&2
    wanted="$wanted $2"
}

# want_page_libraries: what llm-server's page shows texts with; without these packages of Debian it is plainer.
want_page_libraries() {
    command -v apt-get >/dev/null 2>&1 || return 0
    while read -r file package why; do
        [ -e "$1/$file" ] && continue
        echo "wanted: $package ($why)" >&2
        wanted="$wanted $package"
    done <<'END'
nodejs/markdown-it/lib/index.js node-markdown-it shows Markdown on the page of llm-server
nodejs/highlight.js/lib/highlight.js node-highlight.js colours code there
javascript/katex/katex.js libjs-katex draws formulas there
END
}

# need_file FILE PACKAGE WHY
need_file() {
    [ -e "$1" ] || lacks "$2" "$3"
}

# need_header COMPILER HEADER PACKAGE WHY: the compiler should find the header, wherever the system keeps it.
need_header() {
    compiles "$1" "$2" || lacks "$3" "$4"
}

# want_header COMPILER HEADER PACKAGE WHY: as `need_header`, but nothing fails without it.
want_header() {
    compiles "$1" "$2" && return
    echo "wanted: $3 ($4)" >&2
    wanted="$wanted $3"
}

# need_python MODULE PACKAGE WHY
need_python() {
    for python in python3 /usr/bin/python3; do
        "$python" -c "import $1" >/dev/null 2>&1 && return
    done
    lacks "$2" "$3"
}

# lacks PACKAGE WHY
lacks() {
    echo "needed: $1 ($2)" >&2
    needed="$needed $1"
}

# compiles COMPILER HEADER: true if the compiler makes a program that includes the header
compiles() {
    command -v "${1%% *}" >/dev/null 2>&1 || return 1
    printf '#include <stddef.h>\n#include <%s>\nint main(void) { return 0; }\n' "$2" >"build/try.$$.c"
    does=0
    $1 "build/try.$$.c" -o "build/try.$$" >/dev/null 2>&1 || does=1 # $1 is not quoted: it may have arguments ("ccache gcc")
    rm -f "build/try.$$" "build/try.$$.c"
    return $does
}

# need_compiler: any C compiler does. Sets $compiler; where it is not the one that cmake would find, cmake is told by CC.
need_compiler() {
    if [ -n "${CC:-}" ]; then
        compiler=$CC
        compiles "$CC" stdio.h && return
        echo "the environment variable CC is '$CC', which compiles no C program; correct it or unset it" >&2
        exit 1
    fi
    for compiler in cc gcc clang; do
        compiles $compiler stdio.h || continue
        [ $compiler = cc ] || export CC=$compiler
        return
    done
    command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || lacks gcc "the C compiler"
    lacks libc6-dev "the C library's headers"
    compiler=cc
}

# need_cmake: its presets, and the project, need version 3.22.
need_cmake() {
    need cmake cmake "describes the build"
    command -v cmake >/dev/null 2>&1 || return 0
    cmake_version=$(cmake --version | sed -n 's/^cmake version //p')
    case $cmake_version in
    [0-2].* | 3.[0-9].* | 3.1[0-9].* | 3.2[01].*)
        echo "this machine has cmake $cmake_version, and 3.22 or later is needed: see https://cmake.org/download, or install it by" \
            "'pip install cmake'" >&2
        exit 1
        ;;
    esac
}

# elsewhere COLUMN PACKAGES..: prints the names that the packages have in another system; what is not in the table keeps its name.
elsewhere() {
    column=$1
    shift
    for package in "$@"; do
        awk -v package="$package" -v column="$column" '
            $1 == package { found = 1; if ($column != "-") print $column }
            END { if (!found) print package }' <<'END'
Debian             dnf                  apk                pacman         zypper               brew           nix-shell
gcc                gcc                  gcc                gcc            gcc                  -              gcc
libc6-dev          glibc-devel          musl-dev           glibc          glibc-devel          -              -
make               make                 make               make           make                 -              gnumake
cmake              cmake                cmake              cmake          cmake                cmake          cmake
libmicrohttpd-dev  libmicrohttpd-devel  libmicrohttpd-dev  libmicrohttpd  libmicrohttpd-devel  libmicrohttpd  libmicrohttpd
libsndfile1-dev    libsndfile-devel     libsndfile-dev     libsndfile     libsndfile-devel     libsndfile     libsndfile
g++                gcc-c++              g++                gcc            gcc-c++              -              -
pkg-config         pkgconf-pkg-config   pkgconf            pkgconf        pkg-config           pkgconf        pkg-config
python3-numpy      python3-numpy        py3-numpy          python-numpy   python3-numpy        numpy          python3Packages.numpy
END
    done | sort -u | tr '\n' ' ' | sed 's/ $//'
}

# by_hand PACKAGES..: says how to install them on a machine without apt-get
by_hand() {
    as_root=''
    [ "$(id -u)" -eq 0 ] || as_root='sudo '
    if [ "$(uname)" = Darwin ] && ! compiles cc stdio.h; then
        echo "please run: xcode-select --install" >&2 # the compiler and make
    fi
    while read -r manager column command; do
        command -v "$manager" >/dev/null 2>&1 || continue
        case $manager in brew | nix-shell) as_root='' ;; esac
        names=$(elsewhere "$column" "$@")
        [ -z "$names" ] || echo "please run: $as_root$command $names" >&2
        return
    done <<'END'
dnf 2 dnf install
apk 3 apk add
pacman 4 pacman -S --needed
zypper 5 zypper install
brew 6 brew install
nix-shell 7 nix-shell -p
END
    echo "this machine has no package manager that is known here; please install what these packages of Debian hold: $*" >&2
}

# apt_get ARGUMENTS..: apt-get as root, with its output in the log
apt_get() {
    set -- env DEBIAN_FRONTEND=noninteractive "PATH=$PATH" apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 \
        -o Acquire::Retries=1 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 "$@"
    [ "$(id -u)" -eq 0 ] || set -- sudo "$@"
    "$@" >>"$packages_log" 2>&1 </dev/null
}

# may_install COMMAND: asks, if a person is there to answer and ./run or ./test was not called with --yes ($yes)
may_install() {
    [ -z "${yes:-}" ] && [ -t 0 ] && [ -t 2 ] || return 0
    printf 'Install by "%s"? [Y/n] ' "$1" >&2
    read -r answer || answer=n
    case $answer in
    '' | [yY] | [yY][eE][sS]) return 0 ;;
    esac
    return 1
}

# not_installed: reports that the needed packages could not be installed
not_installed() {
    echo "the packages could not be installed; what apt-get printed is in $packages_log:" >&2
    { grep '^[EW]:' "$packages_log" || tail -n 3 "$packages_log"; } | tail -n 3 >&2
    if grep -qE 'Temporary failure|Could not (resolve|connect)|Network is unreachable' "$packages_log"; then
        echo "apt-get cannot reach its servers: is this machine connected to the network?" >&2
    fi
    exit 1
}

install_needed() {
    # not quoted, here and below: words of a list
    # shellcheck disable=SC2086
    set -- $needed $wanted
    [ $# -gt 0 ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        by_hand "$@"
        [ -z "$needed" ] || exit 1
        return 0
    fi
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null 2>&1; then
        echo "please run as root: apt-get install $*" >&2
        [ -z "$needed" ] || exit 1
        return 0
    fi
    as_root=''
    [ "$(id -u)" -eq 0 ] || as_root='sudo '
    if ! may_install "${as_root}apt-get install $*"; then
        echo "nothing was installed" >&2
        [ -z "$needed" ] || exit 1
        return 0
    fi
    echo "installing: $* (output: $packages_log) .." >&2
    : >"$packages_log"
    apt_get update || true # without some index, what is needed may still be there
    # shellcheck disable=SC2086
    [ -z "$needed" ] || apt_get install -y --no-install-recommends $needed || not_installed
    # shellcheck disable=SC2086
    [ -z "$wanted" ] || apt_get install -y --no-install-recommends $wanted ||
        echo "not installed:$wanted ($packages_log says why); ${without:-tests that need them are skipped}" >&2
    needed='' wanted=''
}
