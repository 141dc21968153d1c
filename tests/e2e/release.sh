#!/bin/bash
# scripts/release.sh makes its files of a build, twice the same bytes, and refuses what is no release: release.sh SOURCE_DIR BUILD_DIR
set -u
source=$1 build=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() {
    echo "$*"
    failed=1
}
skip() {
    echo "skipped: $*"
    exit 77
}
for program in git dpkg-deb dpkg-shlibdeps xz; do
    command -v $program >/dev/null || skip "there is no $program"
done
git -C "$source" rev-parse HEAD >/dev/null 2>&1 || skip "the sources are no clone"

# refused CODE WORDS ARGUMENT..: in a small clone, the script ends with CODE and says WORDS
clone=$tmp/clone
refused() {
    local code=$1 words=$2 said
    shift 2
    said=$("$clone/scripts/release.sh" "$@" 2>&1)
    [ $? = "$code" ] || fail "release.sh $*: exit code $?, not $code: $said"
    [[ $said == *"$words"* ]] || fail "release.sh $*: '$words' is not in: $said"
}
mkdir -p "$clone/scripts"
cp "$source/scripts/release.sh" "$clone/scripts"
cp "$source/CMakeLists.txt" "$source/CHANGELOG.md" "$clone"
refused 1 "not a clone"
in_clone() {
    git -C "$clone" -c user.name=A -c user.email=a@example.org -c init.defaultBranch=main "$@" >/dev/null 2>&1 || fail "git $*"
}
in_clone init
in_clone add .
in_clone commit -m one
refused 1 "has no tag"
in_clone tag v99.0.0
refused 1 "has the tag v99.0.0, and CMakeLists.txt the version"
echo >>"$clone/CHANGELOG.md"
refused 1 "changes that are not committed"
refused 2 "unknown option '--no-such'" --no-such
refused 2 "one of source, static, deb" --without sources
refused 2 "no build folder of CMake" --build "$tmp"
refused 2 "0 to 9" --level ten
refused 2 "one folder is expected" a b
in_clone checkout CHANGELOG.md
in_clone tag "v$(sed -n 's/^project(ggml-lite VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")"
"$clone/scripts/release.sh" --without static --without deb "$tmp/fit" >"$tmp/log" 2>&1 || fail "a commit that is fit for a release: $(cat "$tmp/log")"
[ $failed = 0 ] || exit 1

# The second time with another umask, time zone and temporary folder.
run() {
    "$source/scripts/release.sh" --snapshot --build "$build" --level 0 --program llm-cli "$1" >"$tmp/log" 2>&1 || { fail "release.sh: $(cat "$tmp/log")"; exit 1; }
}
run "$tmp/one"
cat "$tmp/log"
mkdir "$tmp/other"
(umask 077 && export TZ=Asia/Tokyo TMPDIR=$tmp/other && run "$tmp/two") || exit 1
n=0
for file in "$tmp"/one/*; do
    cmp "$file" "$tmp/two/${file##*/}" || fail "two runs differ in ${file##*/}"
    n=$((n + 1))
done
[ $n = 4 ] || fail "$n files, not 4: $(ls "$tmp/one")"
exit $failed
