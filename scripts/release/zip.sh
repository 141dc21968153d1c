# The programs for Windows, each a file that needs no other, in an archive; and those for ARM in another, if the C
# library for them was built.
make_zip() {
    make_zip_for x86_64 windows x86-64 wine wineserver
    if [ -e build/windows-libraries-aarch64/lib/libcurl.a ]; then
        make_zip_for aarch64 windows_aarch64 ARM "$PWD/build/wine-aarch64/wine" "$PWD/build/wine-aarch64/wineserver"
    else
        note "  no archive for ARM: scripts/windows-libraries.sh --aarch64 build/windows-libraries-aarch64 was not run"
    fi
}
# make_zip_for PROCESSOR TOOLCHAIN WORDS WINE WINESERVER: WORDS is what users call the processor
make_zip_for() {
    local processor=$1 toolchain=$2 words=$3 wine=$4 wineserver=$5
    local name=ggml-lite-$label-windows-$processor build=build/package-$toolchain libraries=build/windows-libraries top=$tmp/$toolchain installed=$tmp/stage/$toolchain program file said
    [ "$processor" = x86_64 ] || libraries+=-$processor
    hold build
    note "  building in $build .."
    if [ "$processor" = x86_64 ] && wanted llm-server && [ -d tools/llm-server ]; then
        scripts/windows-libraries.sh "$libraries" || fail "llm-server cannot be built for Windows (--without zip leaves the archive out)"
    fi
    cmake -S . -B "$build" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/$toolchain.cmake" -DCMAKE_FIND_ROOT_PATH="$PWD/$libraries" -DCMAKE_BUILD_TYPE=Release -DGGL_TESTS=OFF \
        -DCMAKE_C_FLAGS="-ffile-prefix-map='$PWD=.'" >"$tmp/log" 2>&1 || fail "cmake: $(tail -20 "$tmp/log")"
    cmake --build "$build" -j "$(nproc)" >"$tmp/log" 2>&1 || fail "the build for Windows failed: $(tail -20 "$tmp/log")"
    DESTDIR=$installed cmake --install "$build" --prefix /usr --strip >"$tmp/log" 2>&1 || fail "cmake --install: $(tail -20 "$tmp/log")"
    mkdir -p "$top/$name"
    for file in "$installed"/usr/bin/*.exe; do
        program=$(basename "$file" .exe)
        ! wanted "$program" || cp "$file" "$top/$name/"
    done
    [ -n "$(ls "$top/$name")" ] || fail "none of the programs is built for Windows"
    wanted_on_windows "$top/$name"
    cp LICENSE NOTICE "$top/$name/"
    [ ! -e "$top/$name/llm-server.exe" ] || [ ! -d tools/llm-server ] || [ -e "$libraries/libmicrohttpd-licence.txt" ] || fail "$libraries has no licence of libmicrohttpd"
    for file in "$installed/usr/share/doc/ggml-lite/llm-server-page-licences.txt" "$libraries/libmicrohttpd-licence.txt"; do
        [ ! -e "$top/$name/llm-server.exe" ] || [ ! -e "$file" ] || cp "$file" "$top/$name/"
    done
    [ ! -e "$top/$name/llm-bench.exe" ] || [ ! -e "$libraries/libcurl-licence.txt" ] || cp "$libraries/libcurl-licence.txt" "$top/$name/"
    [ ! -e "$libraries/mingw-w64-licence.txt" ] || cp "$libraries/mingw-w64-licence.txt" "$top/$name/"
    sed 's/$/\r/' >"$top/$name/README.txt" <<END
ggml-lite $label: language models on your own computer

llm-server.exe  A double click starts a small model that is inside, and shows its page in
                the browser. Ctrl-C in its window ends it. With a model of your own:
                llm-server -m model.gguf --open
llm-cli.exe     A double click starts a conversation with the same small model in a window.
                llm-cli -m model.gguf, or llm-cli -hf OWNER/NAME, which downloads one.

Each program is one file, which needs no other and no installation; --help says what it
does. Windows 10 or later, on a processor of $words.

NOTICE names the authors of what the programs contain. llm-server.exe also has libmicrohttpd,
under the GNU Lesser General Public License 2.1 or later; its sources are those of the Debian
package of that name, and those of these programs are published beside this archive, so that it
can be linked with another version: scripts/windows-libraries.sh builds the library.
llm-bench.exe has libcurl, under the licence in libcurl-licence.txt.
END
    find "$top" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
    (cd "$top" && find "$name" -type f | sort | zip -q -X "-$level" -@ "$out/$name.zip") || fail "zip fails"
    made+=("$name.zip")
    if ! command -v "$wine" >/dev/null; then
        note "  $name.zip was not tried, which needs $wine"
        return
    fi
    export WINEPREFIX=$tmp/wine-$processor WINEDEBUG=-all
    unset DISPLAY # no program needs it
    ends_wine=("$wineserver" -k)
    for file in "$top/$name"/*.exe; do
        said=$("$wine" "$file" --version 2>/dev/null) || fail "$file does not run under wine"
        said=${said%%[$'\r\n']*}
        [ "${said%% (*}" = "$(basename "$file" .exe) $version" ] || fail "$file --version prints '$said', not version $version"
    done
    [ ! -e "$top/$name/llm-cli.exe" ] || tells_a_story "$wine" "$top/$name/llm-cli.exe"
    "${ends_wine[@]}" 2>/dev/null || true
    ends_wine=()
}
wanted_on_windows() { # FOLDER: has every program that was asked for
    local program
    for program in "${programs[@]}"; do
        [ -e "$1/$program.exe" ] || fail "$program is not built for Windows (--without zip leaves the archive out)"
    done
}
