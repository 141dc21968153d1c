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
for program in git dpkg-deb dpkg-shlibdeps xz python3 readelf; do
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
cp -r "$source"/scripts/release{.sh,} "$clone/scripts"
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
refused 2 "one of source, static, image, deb, wheel, zip, npm, formula" --without sources
refused 2 "--without '': one of source, static" --without ''
refused 2 "all parts are left out" --without source --without static --without image --without deb --without wheel --without zip --without npm --without formula
refused 2 "--libc 'newlib': musl or glibc" --libc newlib
refused 2 "--target 'vax': aarch64, or this machine's" --target vax
refused 2 "--url 'a b': no address" --url 'a b'
refused 2 "--program needs a name" --program ''
refused 2 "--build needs a folder" --build ''
refused 2 "no build folder of CMake" --build "$tmp"
refused 2 "0 to 9" --level ten
refused 2 "one folder is expected" a b
in_clone checkout CHANGELOG.md
in_clone tag "v$(sed -n 's/^project(ggml-lite VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")"
"$clone/scripts/release.sh" --without static --without image --without deb --without wheel --without zip --without npm "$tmp/fit" >"$tmp/log" 2>&1 || fail "a commit that is fit for a release: $(cat "$tmp/log")"

# A small project with the names of this one, in a folder with a space, is built and packed by the script.
clone="$tmp/a clone"
mkdir -p "$clone"/{scripts,data,cmake,library,deploy,python/src/ggml_lite}
cp -r "$source"/scripts/release{.sh,} "$clone/scripts"
cp "$source"/cmake/{old_glibc,aarch64,cross_linux,windows}.cmake "$clone/cmake"
cp -r "$source/library/glibc" "$clone/library"
cp -r "$source/deploy/homebrew" "$clone/deploy"
cp -r "$source/python/backend" "$source/python/README.md" "$clone/python"
cp "$source"/python/src/ggml_lite/{_find,_version}.py "$clone/python/src/ggml_lite"
cat >"$clone/python/src/ggml_lite/__init__.py" <<'END'
from . import _find

class Model:
    def __init__(self, name):
        self.library = _find.load()

    def generate(self, prompt, max_tokens, seed):
        return "" if self.library.later(2) else "2"

class Training:
    loss = 1

    def __init__(self, name, texts, n_steps, n_ctx):
        pass

    def step(self):
        return self
END
echo build >"$clone/.gitignore"
touch "$clone"/{LICENSE,NOTICE,CHANGELOG.md,data/llm-cli.1,data/llm-cli,data/_llm-cli,data/llm-cli.fish}
cat >"$clone/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(ggml-lite VERSION 1.2.3 LANGUAGES C)
option(SMALL_STATIC "" ON)
find_package(Threads REQUIRED)
include(cmake/old_glibc.cmake)
if(WIN32)
    add_link_options(-static)
endif()
foreach(library llm llm-train)
    add_library(${library} SHARED main.c)
    target_link_libraries(${library} PRIVATE m Threads::Threads ${CMAKE_DL_LIBS})
    if(NOT CMAKE_C_COMPILER MATCHES "musl|mingw")
        ggl_old_glibc(${library})
    endif()
    set_target_properties(${library} PROPERTIES VERSION 1.2.3)
endforeach()
add_library(llm-archive STATIC main.c)
install(TARGETS llm llm-train llm-archive DESTINATION lib)
foreach(tool llm-cli llm-server)
    add_executable(${tool} main.c)
    target_link_libraries(${tool} PRIVATE m Threads::Threads)
    install(TARGETS ${tool} DESTINATION bin)
    install(FILES data/llm-cli.1 DESTINATION share/man/man1 RENAME ${tool}.1)
endforeach()
if(SMALL_STATIC)
    add_executable(llm-cli-static EXCLUDE_FROM_ALL main.c)
    target_link_options(llm-cli-static PRIVATE -static)
    target_link_libraries(llm-cli-static PRIVATE m Threads::Threads)
    set_target_properties(llm-cli-static PROPERTIES OUTPUT_NAME llm-cli RUNTIME_OUTPUT_DIRECTORY bin/static)
endif()
install(FILES LICENSE NOTICE DESTINATION share/doc/ggml-lite)
install(FILES data/llm-cli DESTINATION share/bash-completion/completions)
install(FILES data/_llm-cli DESTINATION share/zsh/site-functions)
install(FILES data/llm-cli.fish DESTINATION share/fish/vendor_completions.d)
END
cat >"$clone/main.c" <<'END'
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
static void *square(void *x) {
    struct stat st;
    *(double *)x = pow(*(double *)x, 2) + stat("/", &st);
    return NULL;
}
int later(int n) { // 0 for 2; by functions that have newer versions
    double x = n;
    pthread_t t;
    return pthread_create(&t, NULL, square, &x) != 0 || pthread_join(t, NULL) != 0 || x != 4;
}
const char where[] = __FILE__;
int main(int argc, char **argv) {
    (void)argc;
    char *name = argv[0] + strlen(argv[0]);
    while (name > argv[0] && name[-1] != '/' && name[-1] != '\\')
        name--;
    if (strstr(name, ".exe"))
        *strstr(name, ".exe") = 0;
    printf("%s %s\n", name, getenv("SMALL_VERSION") ? getenv("SMALL_VERSION") : "1.2.3");
    return 0;
}
END
in_clone init
in_clone add .
in_clone commit -m one
small() { # ARGUMENT..
    "$clone/scripts/release.sh" --snapshot --level 0 "$@" >"$tmp/log" 2>&1 || fail "release.sh $*: $(cat "$tmp/log")"
}
small --libc glibc --without zip --without npm --url https://example.org/1.2.3/ "$tmp/small"
for program in "$clone/build/package/llm-cli" "$clone/build/package/bin/static/llm-cli"; do
    ! grep -qF "$clone" "$program" || fail "$program has the path of the clone"
done
grep -q "left out .*: llm-server" "$tmp/log" || fail "llm-server is not said to be left out: $(cat "$tmp/log")"
# Paths are those of the caller's folder. The sizes of folders, which depend on the file system, change no byte.
mkdir "$tmp/du"
printf '#!/bin/sh\necho "123456 $*"\n' >"$tmp/du/du" && chmod +x "$tmp/du/du"
(cd "$tmp" && PATH=$tmp/du:$PATH small --build "a clone/build/package" --url https://example.org/1.2.3 ./again; exit $failed) || failed=1
diff -r "$tmp/small" "$tmp/again" || fail "the size of a folder, or where it is, changes files"
[ "$(ls -A "$tmp/again" | wc -l)" = 7 ] || fail "not 7 files: $(ls -A "$tmp/again")"
# Two at once do not build in one folder: the second one waits.
only="--without source --without deb --without wheel --without image --without zip --without npm"
(
    flock 9
    touch "$tmp/working"
    sleep 2
    rm "$tmp/working"
) 9>"$clone/build/package/release.lock" &
until [ -e "$tmp/working" ]; do sleep 0.1; done
# shellcheck disable=SC2086
small $only --build "$clone/build/package" "$tmp/waited"
[ ! -e "$tmp/working" ] || fail "two runs work in one folder"
grep -q "waits for another release.sh" "$tmp/log" || fail "it does not say that it waits: $(cat "$tmp/log")"
wait
# The library in the wheel runs with old systems, where the table of old versions has the processor.
case $(uname -m) in
x86_64 | aarch64) [ -f "$tmp/small/ggml_lite-1.2.3-py3-none-manylinux_2_17_$(uname -m).whl" ] || fail "the wheel has another name: $(ls "$tmp/small")" ;;
esac
# The formula has the digest of the sources.
digest=$(sha256sum <"$(echo "$tmp"/small/*.tar.gz)")
for words in "sha256 \"${digest%% *}\"" "url \"https://example.org/1.2.3/ggml-lite-1.2.3-g"; do
    grep -qF "$words" "$tmp/small/ggml-lite.rb" || fail "'$words' is not in ggml-lite.rb: $(cat "$tmp/small/ggml-lite.rb")"
done
# The image's index names the manifest, this the layer, and that has the program.
mkdir "$tmp/image"
tar -xf "$tmp"/small/*-image-*.tar -C "$tmp/image"
at=$tmp/image/blobs/sha256
layer=$at/$(grep -oE '"layers".*' "$at/$(grep -oE '[0-9a-f]{64}' "$tmp/image/index.json")" | grep -oE '[0-9a-f]{64}')
[ "$(tar -tzf "$layer" | grep -v '/$')" = "usr/local/bin/llm-cli
usr/share/doc/ggml-lite/LICENSE
usr/share/doc/ggml-lite/NOTICE" ] || fail "the image has other files: $(tar -tzf "$layer")"
# musl is preferred where it has a compiler, and llm-server, which has no static form here, is looked for with glibc.
if command -v "$(uname -m)-linux-musl-gcc" musl-gcc >/dev/null; then
    # shellcheck disable=SC2086
    small $only "$tmp/musl"
    grep -q "linked with musl: llm-cli" "$tmp/log" || fail "musl is not used: $(cat "$tmp/log")"
    tar -xJOf "$(echo "$tmp"/musl/*-static.tar.xz)" --wildcards '*/README.txt' | grep -q "musl: llm-cli" || fail "README.txt does not name musl"
    small $only --libc musl --program llm-cli "$tmp/musl"
    [ -f "$clone/build/package-musl/CMakeCache.txt" ] || fail "musl has no folder"
else
    refused 1 "--libc musl: there is no" --snapshot $only --libc musl "$tmp/musl"
    echo "musl has no compiler here"
fi
# Programs for Windows: the same bytes from another folder, too.
if [ "$(uname -m)" = x86_64 ] && command -v x86_64-w64-mingw32-gcc-posix >/dev/null && command -v zip >/dev/null; then
    only_zip="--without source --without deb --without wheel --without image --without static --without npm"
    # shellcheck disable=SC2086
    small $only_zip "$tmp/windows"
    cp -r "$clone" "$tmp/elsewhere"
    rm -rf "$tmp/elsewhere/build"
    # shellcheck disable=SC2086
    "$tmp/elsewhere/scripts/release.sh" --snapshot --level 0 $only_zip "$tmp/windows.again" >"$tmp/log" 2>&1 || fail "zip: $(cat "$tmp/log")"
    diff -r "$tmp/windows" "$tmp/windows.again" || fail "the folder of the clone changes the programs for Windows"
    [ "$(python3 -m zipfile -l "$(echo "$tmp"/windows/*.zip)" | grep -c "windows-x86_64/\(llm-cli.exe\|llm-server.exe\|LICENSE\|NOTICE\|README.txt\) ")" = 5 ] ||
        fail "the archive has other files: $(python3 -m zipfile -l "$(echo "$tmp"/windows/*.zip)")"
else
    echo "no compiler for Windows"
fi
# Another processor: no package, and a wheel that nothing here runs.
links() { # COMPILER: it has a C library
    echo 'int main(void) { return 0; }' | "$1" -x c -o "$tmp/linked" - 2>/dev/null
}
if [ "$(uname -m)" != aarch64 ] && links aarch64-linux-gnu-gcc && command -v qemu-aarch64-static >/dev/null; then
    small --target aarch64 --without source "$tmp/arm"
    for words in "deb: left out" "was not tried" "left out .*: llm-server"; do
        grep -q "$words" "$tmp/log" || fail "--target aarch64: '$words' is not said: $(cat "$tmp/log")"
    done
    for file in ggml-lite-1.2.3-g*-linux-aarch64-static.tar.xz ggml-lite-1.2.3-g*-image-aarch64.tar ggml_lite-1.2.3-py3-none-manylinux_2_17_aarch64.whl; do
        ls "$tmp"/arm/$file >/dev/null || fail "--target aarch64 makes no $file: $(ls "$tmp/arm")"
    done
    tar -xJOf "$tmp"/arm/*-static.tar.xz --wildcards '*/bin/llm-cli' >"$tmp/program"
    readelf -h "$tmp/program" | grep -q AArch64 || fail "--target aarch64: llm-cli is for another processor"
else
    echo "no compiler, or no emulator, for another processor"
fi
# What fails leaves the files as they were.
SMALL_VERSION=9.9.9 refused 1 "prints 'llm-cli 9.9.9', not version 1.2.3" --snapshot --level 1 --build "$clone/build/package" "$tmp/again"
diff -r "$tmp/small" "$tmp/again" || fail "a failure changes files"
refused 1 "llm-server has no static form: libmicrohttpd.a is missing" --snapshot --build "$clone/build/package" --program llm-server "$tmp/again"
refused 2 "--libc says how to build" --libc musl --build "$clone/build/package"
if cmake -S "$clone" -B "$tmp/dynamic" -DSMALL_STATIC=OFF >"$tmp/log" 2>&1 && cmake --build "$tmp/dynamic" >"$tmp/log" 2>&1; then
    refused 1 "no static C library" --snapshot --build "$tmp/dynamic" "$tmp/again"
else
    fail "cmake: $(cat "$tmp/log")"
fi
mv "$clone" "$tmp/a=clone"
clone=$tmp/a=clone
refused 1 "one of the characters" --snapshot --without source --without npm --without zip "$tmp/again"
[ $failed = 0 ] || exit 1

# This build's libllm.so may need libraries that not every system has, so there is no wheel of it.
# The second time with another umask, time zone and temporary folder.
run() {
    "$source/scripts/release.sh" --snapshot --build "$build" --without wheel --level 0 --program llm-cli "$1" >"$tmp/log" 2>&1 || { fail "release.sh: $(cat "$tmp/log")"; exit 1; }
}
head=$(git -C "$source" rev-parse HEAD)
run "$tmp/one"
cat "$tmp/log"
mkdir "$tmp/other"
(umask 077 && export TZ=Asia/Tokyo TMPDIR=$tmp/other && run "$tmp/two") || exit 1
tar -xJOf "$tmp"/one/*-static.tar.xz --wildcards '*/bin/llm-cli' >"$tmp/llm-cli"
readelf -lW "$tmp/llm-cli" | grep -q 'GNU_STACK.* 0x800000 ' || fail "with musl, threads of the static llm-cli would have small stacks: $(readelf -lW "$tmp/llm-cli")"
[ "$(git -C "$source" rev-parse HEAD)" = "$head" ] || skip "a commit was made between two runs"
n=0
for file in "$tmp"/one/*; do
    cmp "$file" "$tmp/two/${file##*/}" || fail "two runs differ in ${file##*/}"
    n=$((n + 1))
done
[ $n = 5 ] || fail "$n files, not 5: $(ls "$tmp/one")"
exit $failed
