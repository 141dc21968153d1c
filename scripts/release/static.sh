# shellcheck shell=bash
# Programs that need no shared library, and the archive of them. scripts/release/image.sh packs some of them, too.
static_top='' # where they are
static_with=() # the C libraries that they contain

# compiler_of_musl: the compiler that links with musl, where it is not the system's
compiler_of_musl() {
    local name
    for name in "$target-linux-musl-gcc" ${across:-musl-gcc}; do
        if [[ $name == *musl-gcc ]] && command -v "$name"; then
            return 0
        fi
    done
    return 1
}
# libc_of BUILD: which C library the build's compiler links with
libc_of() {
    local compiler
    compiler=$(sed -n 's/^set(CMAKE_C_COMPILER "\(.*\)")$/\1/p' "$1"/CMakeFiles/*/CMakeCCompiler.cmake)
    case "$compiler $("$compiler" -dumpmachine)" in
    *musl*) echo musl ;;
    *) echo glibc ;;
    esac
}
musl_tree() { # COMPILER
    # what the system's other libraries were compiled for is glibc
    tree package-musl -DCMAKE_C_COMPILER="$1" -DGGL_MPI=OFF -DGGL_CURL=OFF -DGGL_SNDFILE=OFF -DGGL_PNG=OFF -DGGL_JPEG=OFF -DGGL_WEBP=OFF
}
# link_static: links the programs of the tree that are not there yet
link_static() {
    local known program targets=()
    known=$(cmake --build "$build" --target help | { grep -oE 'llm-[a-z]+-static' || true; } | sort -u)
    for program in $(cd "$usr/bin" && ls); do
        if [ ! -e "$static_top/bin/$program" ] && grep -qxF "$program-static" <<<"$known"; then
            targets+=("$program-static")
        fi
    done
    static_known=$static_known$known
    [ ${#targets[@]} -gt 0 ] || return 0
    cmake --build "$build" --target "${targets[@]}" -j "$(nproc)" >"$tmp/log" 2>&1 ||
        fail "static programs cannot be linked (--without static --without image leaves them out): $(tail -5 "$tmp/log")"
    for program in "${targets[@]%-static}"; do
        cp "$build/bin/static/$program" "$static_top/bin/" && "${across}strip" "$static_top/bin/$program"
    done
    static_with+=("$(libc_of "$build"): $(listed "${targets[@]%-static}")")
    note "  linked with ${static_with[-1]}"
}
# static_programs: sets static_top, with bin, share and the licences
static_programs() {
    local musl='' program left_out=()
    [ -z "$static_top" ] || return 0
    static_top=$tmp/ggml-lite-$label-linux-$target-static static_known=''
    mkdir -p "$static_top/bin"
    if [ -z "$given" ] && [ "$libc" != glibc ]; then
        musl=$(compiler_of_musl) || true
        [ -n "$musl" ] || [ "$libc" != musl ] || fail "--libc musl: there is no $target-linux-musl-gcc$([ -n "$across" ] || echo " or musl-gcc") (Debian: musl-tools; for $target on another processor, musl-dev of that architecture)"
    fi
    if [ -n "$musl" ]; then
        musl_tree "$musl"
        link_static
    fi
    # llm-server alone needs a library, which musl may not have; so the rest is compiled by the system's compiler only if it is to be there
    if [ -z "$musl" ] || { [ "$libc" != musl ] && missing_static; }; then
        system_tree
        link_static
    fi
    [ -n "$static_known" ] || fail "this system has no static C library (--without static --without image leaves the static programs out)"
    mapfile -t left_out < <(for program in $(cd "$usr/bin" && ls) llm-server "${programs[@]}"; do [ -e "$static_top/bin/$program" ] || ! wanted "$program" || echo "$program"; done | sort -u)
    [ -n "$(ls "$static_top/bin")" ] ||
        fail "${left_out[*]} has no static form: libmicrohttpd.a is missing (Debian: libmicrohttpd-dev; --without static --without image leaves the static programs out)"
    static_left_out="${left_out[*]}"
    [ -z "$static_left_out" ] || note "  left out of the static programs, because a library has no static form: $static_left_out"
    cp -r "$usr/share" "$static_top/share"
    rm -r "$static_top/share/doc"
    cp LICENSE NOTICE "$static_top/"
    program=$usr/share/doc/ggml-lite/llm-server-page-licences.txt
    [ ! -f "$program" ] || [ ! -e "$static_top/bin/llm-server" ] || cp "$program" "$static_top/"
    for program in "$static_top"/bin/*; do
        says "$program"
        ! grep -q NEEDED <<<"$(readelf -d "$program" 2>/dev/null)" || fail "$program needs a shared library"
    done
    [ ! -x "$static_top/bin/llm-cli" ] || tells_a_story "${runner[@]}" "$static_top/bin/llm-cli"
}
missing_static() { # a program that was asked for is missing
    local program
    [ ${#programs[@]} -gt 0 ] || return 0
    for program in "${programs[@]}"; do
        [ -e "$static_top/bin/$program" ] || return 0
    done
    return 1
}

make_static() {
    local name
    static_programs
    name=${static_top##*/}
    cat >"$static_top/README.txt" <<END
ggml-lite $version: programs that need no shared library, for Linux on $target.

Try:        bin/llm-cli
Install:    cp -r bin share /usr/local/
${static_left_out:+Left out:  $static_left_out
}
They load no shared libraries: there are no Vulkan devices, no plug-ins, and no llm-bench serve; sounds are read from WAV
files, pictures from PPM and BMP. Packages of a system and builds of the sources have them.

LICENSE is that of ggml-lite. The page of llm-server contains libraries in JavaScript, if there is a file
llm-server-page-licences.txt, which has their licences. The programs contain a C library, and llm-server contains
libmicrohttpd. musl is under the MIT licence: Copyright © 2005-2020 Rich Felker, et al. glibc and libmicrohttpd are
under the GNU LGPL, version 2.1 or later; "cmake --build BUILD --target static-programs" in the sources of this release
links the programs with other versions of them. They are linked with

$(printf '    %s\n' "${static_with[@]}" | fold -s -w 116 | sed '/^ /!s/^/        /; s/ *$//')
END
    # xz finds what the programs have in common: the archive is a ninth of one by gzip.
    (cd "$tmp" && packed "$name") | xz -T1 "-$level" >"$out/$name.tar.xz"
    made+=("$name.tar.xz")
    mkdir "$tmp/try"
    tar -xJf "$out/$name.tar.xz" -C "$tmp/try"
    diff -r "$static_top" "$tmp/try/$name" >/dev/null || fail "$name.tar.xz does not have what was packed"
}
