# shellcheck shell=bash
# A package for Debian and Ubuntu.
make_deb() {
    local architecture name root doc depends size program
    system_tree
    architecture=$(dpkg --print-architecture)
    name=ggml-lite_${deb_version}_$architecture.deb
    root=$tmp/deb-root
    cp -a "${usr%/usr}" "$root"
    usr=$root/usr doc=$root/usr/share/doc/ggml-lite
    mv "$usr/share/zsh/site-functions" "$usr/share/zsh/vendor-completions"
    { cat LICENSE && echo && cat NOTICE; } >"$doc/copyright"
    rm "$doc/LICENSE" "$doc/NOTICE"
    cp CHANGELOG.md "$doc/changelog"
    gzip -n9 "$doc/changelog" "$usr"/share/man/man1/*.1
    strip --strip-debug "$usr"/lib/*.a
    mkdir -p "$root/DEBIAN" "$tmp/depends/debian"
    printf 'Source: ggml-lite\n\nPackage: ggml-lite\nArchitecture: any\n' >"$tmp/depends/debian/control"
    depends=$(cd "$tmp/depends" && dpkg-shlibdeps -O "$usr"/bin/* "$usr"/lib/libllm.so.*.*.* 2>"$tmp/log") ||
        fail "dpkg-shlibdeps: $(tail -5 "$tmp/log")"
    # of files alone, as the size of a folder depends on the file system
    size=$(find "$usr" -type f -printf '%s\n' | awk '{ n += $1 } END { printf "%d", (n + 1023) / 1024 }')
    cat >"$root/DEBIAN/control" <<END
Package: ggml-lite
Version: $deb_version
Architecture: $architecture
Maintainer: $(git log -1 --format='%an <%ae>')
Installed-Size: $size
Depends: ${depends#shlibs:Depends=}
Recommends: curl
Section: science
Priority: optional
Description: language models on your own computer
 Programs that chat with language models, continue texts, serve programs and
 browsers, convert and quantize models, and measure speed and quality. They
 run GGUF files, Hugging Face folders and llama2.c checkpoints.
 .
 The package also has the libraries libllm and libllm-train with headers.
END
    echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    find "$root" -type d -exec chmod 755 {} +
    find "$root" -type f -exec chmod 644 {} +
    chmod 755 "$usr"/bin/*
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz "-z$level" --build "$root" "$out/$name" >"$tmp/log" 2>&1 || fail "dpkg-deb: $(cat "$tmp/log")"
    made+=("$name")
    dpkg-deb -x "$out/$name" "$tmp/deb"
    for program in "$tmp"/deb/usr/bin/*; do
        says "$program"
        [ -f "$tmp/deb/usr/share/man/man1/$(basename "$program").1.gz" ] || fail "$name has no manual page of $(basename "$program")"
    done
    [ "$(dpkg-deb -f "$out/$name" Version)" = "$deb_version" ] || fail "$name has another version"
    if command -v lintian >/dev/null; then
        lintian --no-tag-display-limit "$out/$name" >&2 || note "lintian found something"
    fi
}
