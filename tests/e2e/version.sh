#!/bin/bash
# CMakeLists.txt states the version, and nothing else does: version.sh SOURCE_DIR TOOL..
# Each tool prints its name and the version; llm-server says in a second line what its page contains. No other file of the sources has the number, or a version of its own.
set -eu
source=$1
shift
failed=0
fail() {
    echo "$*"
    failed=1
}
version=$(sed -n 's/^project(ggml-lite VERSION \([0-9]*\.[0-9]*\.[0-9]*\) .*/\1/p' "$source/CMakeLists.txt")
[ -n "$version" ] || { echo "no version in CMakeLists.txt"; exit 1; }
for tool; do
    got=$("$tool" --version) || fail "$tool --version failed"
    if [ "$(basename "$tool")" = llm-server ]; then
        [[ $got =~ $'\n'"the page contains "[^$'\n']+$ ]] || fail "llm-server --version does not say what its page contains: $got"
        got=${got%%$'\n'*}
    fi
    if [ -e "$source/.git" ]; then # the commit; it may have become another since the build
        [[ $got =~ ^(.*)" ("[0-9a-f]{10,}(-dirty)?")"$ ]] || fail "$tool --version shows no commit: $got"
        got=${BASH_REMATCH[1]-}
    fi
    [ "$got" = "$(basename "$tool") $version" ] || fail "$tool --version: '$got', not '$(basename "$tool") $version'"
done

# The commit of a checkout, with -dirty if a file of it was changed; nothing of a folder that is none, also within a checkout.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
says() { # FOLDER: what --version would show of sources there
    cmake -DSOURCE="$1" -DOUT="$tmp/commit.c" -P "$source/cmake/commit.cmake"
    sed -n 's/^const char tool_commit\[\] = "\(.*\)";$/\1/p' "$tmp/commit.c"
}
if command -v git >/dev/null && command -v cmake >/dev/null; then
    mkdir "$tmp/clone" "$tmp/clone/archive"
    echo 1 >"$tmp/clone/file"
    here=(git -C "$tmp/clone" -c user.name=a -c user.email=a@b)
    "${here[@]}" init -q && "${here[@]}" add file && "${here[@]}" commit -qm 1
    hash=$("${here[@]}" rev-parse HEAD)
    [ "$(says "$tmp/clone")" = "${hash:0:10}" ] || fail "a clone: $(says "$tmp/clone"), not $hash"
    touch -d 2001-01-01 "$tmp/commit.c"
    says "$tmp/clone" >/dev/null
    [ "$(date -r "$tmp/commit.c" +%Y)" = 2001 ] || fail "the same commit is written again, which links all programs"
    [ -z "$(says "$tmp/clone/archive")" ] || fail "an archive in a clone: $(says "$tmp/clone/archive")"
    echo 2 >"$tmp/clone/file"
    [ "$(says "$tmp/clone")" = "${hash:0:10}-dirty" ] || fail "a changed clone: $(says "$tmp/clone"), not $hash-dirty"
fi

cd "$source"
# The number itself. The changelog has it in a heading; texts of others' files, in tests, and their versions, in findings, may have it by chance.
places=(--exclude-dir=.git --exclude-dir=build --exclude-dir=tests --exclude-dir=findings --exclude=CHANGELOG.md)
found=$(grep -rInE "${places[@]}" "(^|[^0-9.])${version//./\\.}([^0-9.]|\$)" . | grep -v '^\./CMakeLists.txt:[0-9]*:project(' || true)
[ -z "$found" ] || fail "the version stands in a second place: $found"
# Any number that looks like a version of this project, also an old one.
found=$(grep -rInE "${places[@]}" --include='*.py' --include='*.toml' --include='*.in' --include='*.cmake' --include='*.sh' \
    "^ *(__version__|version|VERSION) *[=:] *[\"']?[0-9]+\.[0-9]" . || true)
[ -z "$found" ] || fail "a file has a version of its own: $found"
found=$(grep -hoE '(find_package\(ggml-lite |libllm\.so\.)[0-9]+\.[0-9]+' docs/*.md README.md | grep -vF "${version%.*}" || true)
[ -z "$found" ] || fail "a page shows another version than ${version%.*}: $found"
grep -qF "## [$version]" CHANGELOG.md || fail "CHANGELOG.md has no section [$version]"
exit $failed
