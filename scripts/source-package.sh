#!/bin/bash
# Gets a source package of this Debian system, whose signature apt-get checks, and unpacks it: source-package.sh PACKAGE FOLDER. The system's lists stay as
# they are.
set -euo pipefail
[ $# = 2 ] || { echo "usage: source-package.sh PACKAGE FOLDER" >&2 && exit 2; }
cd "$2"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/sources" "$tmp/lists/partial" # the system's sources of packages, with their sources in place of programs
for list in /etc/apt/sources.list.d/*.sources; do
    [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$tmp/sources/$(basename "$list")"
done
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -e "$list" ] || sed -n 's/^deb /deb-src /p' "$list" >"$tmp/sources/$(basename "$list" .list).list"
done
apt=(apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$tmp/sources" -o Dir::State::Lists="$tmp/lists" -o APT::Sandbox::User=)
{ "${apt[@]}" update && "${apt[@]}" source "$1"; } >"$tmp/log" 2>&1 || { echo "no sources of $1: $(tail -3 "$tmp/log")" >&2 && exit 1; }
