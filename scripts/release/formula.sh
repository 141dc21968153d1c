# shellcheck shell=bash
# The formula by which Homebrew builds the sources: deploy/homebrew/ggml-lite.rb with the address and the digest of their archive.
make_formula() {
    local name=ggml-lite-$label.tar.gz digest
    digest=$(sha256sum <"$out/$name")
    sed -e "s|@FOLDER@|$url|; s|@ARCHIVE@|$name|; s|@SHA256@|${digest%% *}|; s|@VERSION@|$label|" deploy/homebrew/ggml-lite.rb >"$out/ggml-lite.rb"
    ! grep -n '@[A-Z0-9]*@' "$out/ggml-lite.rb" >&2 || fail "ggml-lite.rb has a placeholder that is not filled in"
    if command -v ruby >/dev/null; then
        ruby -c "$out/ggml-lite.rb" >/dev/null || fail "ggml-lite.rb is no Ruby"
    fi
    made+=(ggml-lite.rb)
}
