# Sourced by ./run and ./test: installs missing programs through Debian's package manager. It changes nothing that is installed
# already, and first prints what it installs, and why.
needed=()

# need COMMAND PACKAGE WHY
need() {
    command -v "$1" >/dev/null 2>&1 || { echo "needed: $2 ($3)" >&2; needed+=("$2"); }
}

# want COMMAND PACKAGE WHY: as `need`, but without the package less is tested, and nothing fails.
wanted=()
want() {
    command -v "$1" >/dev/null 2>&1 || { echo "wanted: $2 ($3)" >&2; wanted+=("$2"); }
}

# need_file FILE PACKAGE WHY
need_file() {
    [ -e "$1" ] || { echo "needed: $2 ($3)" >&2; needed+=("$2"); }
}

# need_python MODULE PACKAGE WHY
need_python() {
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c "import $1" >/dev/null 2>&1 && return 0
    done
    echo "needed: $2 ($3)" >&2
    needed+=("$2")
}

# apt_get COMMAND..: apt-get as root
apt_get() {
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get "$@" >&2
}

install_needed() {
    local all=("${needed[@]}" "${wanted[@]}")
    [ ${#all[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null 2>&1; then
        echo "please install as root: apt-get install ${all[*]}" >&2
        [ ${#needed[@]} -eq 0 ] || exit 1
        return 0
    fi
    command -v apt-get >/dev/null 2>&1 || {
        echo "this machine has no apt-get; please install what the packages ${all[*]} of Debian hold" >&2
        [ ${#needed[@]} -eq 0 ] || exit 1
        return 0
    }
    echo "installing: ${all[*]}" >&2
    apt_get update -qq
    [ ${#needed[@]} -eq 0 ] || apt_get install -y -qq --no-install-recommends "${needed[@]}"
    [ ${#wanted[@]} -eq 0 ] || apt_get install -y -qq --no-install-recommends "${wanted[@]}" ||
        echo "not installed: ${wanted[*]}; tests that need them are skipped" >&2
    needed=()
    wanted=()
}
