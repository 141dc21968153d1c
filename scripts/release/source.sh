# shellcheck shell=bash
# The sources, as `git archive` gives them.
make_source() {
    local name=ggml-lite-$label
    git -c tar.umask=0022 archive --format=tar --prefix="$name/" HEAD | gzip "-n$((level > 0 ? level : 1))" >"$out/$name.tar.gz"
    made+=("$name.tar.gz")
    [ "$(tar -tzf "$out/$name.tar.gz" | grep -vc '/$')" -eq "$(git ls-tree -r --name-only HEAD | wc -l)" ] ||
        fail "$name.tar.gz does not have the files of the commit"
}
