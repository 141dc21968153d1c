# Sourced by ./run and ./test: installs missing programs through Debian's package manager. It changes nothing that is installed
# already, and first prints what it installs, and why.
needed=()

# need COMMAND PACKAGE WHY
need() {
    command -v "$1" >/dev/null 2>&1 || { echo "needed: $2 ($3)" >&2; needed+=("$2"); }
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

install_needed() {
    [ ${#needed[@]} -gt 0 ] || return 0
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null 2>&1 || {
            echo "please install as root: apt-get install ${needed[*]}" >&2
            exit 1
        }
        as_root=(sudo)
    fi
    command -v apt-get >/dev/null 2>&1 || {
        echo "this machine has no apt-get; please install what the packages ${needed[*]} of Debian hold" >&2
        exit 1
    }
    echo "installing: ${needed[*]}" >&2
    "${as_root[@]}" apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${needed[@]}" >&2
    needed=()
}
