# shellcheck shell=bash disable=SC2034
# For other scripts: apt-get with lists of packages of its own, so that those of this Debian system stay as they are.
# own_apt KIND FOLDER OPTION..: sets the array `apt` to the command, for the system's sources of packages: of programs (deb) or of their sources (deb-src).
own_apt() {
    local kind=$1 folder=$2 list
    shift 2
    mkdir -p "$folder/sources" "$folder/lists/partial" "$folder/cache/archives/partial"
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed "s/^Types:.*/Types: $kind/" "$list" >"$folder/sources/$(basename "$list")"
    done
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ ! -e "$list" ] || sed -n "s/^deb /$kind /p" "$list" >"$folder/sources/$(basename "$list" .list).list"
    done
    apt=(apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/sources" -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder/cache"
        -o APT::Sandbox::User= "$@")
    "${apt[@]}" update >"$folder/apt.log" 2>&1 || { echo "apt-get has no lists of packages: $(tail -n 3 "$folder/apt.log")" >&2 && return 1; }
}
