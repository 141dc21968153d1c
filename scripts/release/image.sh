# shellcheck shell=bash
# An image for containers, from scratch: static programs, and folders to mount files at. It is an archive of the OCI's image layout, with the
# list that `docker load` of older versions reads.

# blob FILE: moves the file to the name that its digest gives it; prints the digest
blob() {
    local digest
    digest=$(sha256sum <"$1")
    mv "$1" "$layout/blobs/sha256/${digest%% *}"
    echo "${digest%% *}"
}
size_of() { # DIGEST
    stat -c %s "$layout/blobs/sha256/$1"
}

make_image() {
    local name=ggml-lite-$label-image-$target.tar layout=$tmp/layout root=$tmp/image program architecture layer inside config manifest digest run=()
    local inside_programs=() kinds='application/vnd.oci.image'
    static_programs
    for program in llm-server llm-cli; do
        [ ! -e "$static_top/bin/$program" ] || inside_programs+=("$program")
    done
    [ ${#inside_programs[@]} -gt 0 ] || fail "neither llm-server nor llm-cli is among the static programs, so an image has nothing to run (--without image leaves it out)"
    case $target in x86_64) architecture=amd64 ;; aarch64) architecture=arm64 ;; *) architecture=$target ;; esac

    mkdir -p "$root/usr/local/bin" "$root/usr/share/doc/ggml-lite" "$root/tmp" "$root/models" "$root/prompts" "$layout/blobs/sha256"
    cp "${inside_programs[@]/#/$static_top/bin/}" "$root/usr/local/bin/"
    cp "$static_top"/{LICENSE,NOTICE} "$root/usr/share/doc/ggml-lite/"
    [ ! -f "$static_top/llm-server-page-licences.txt" ] || cp "$static_top/llm-server-page-licences.txt" "$root/usr/share/doc/ggml-lite/"
    chmod 1777 "$root/tmp"
    (
        cd "$root" || exit 1
        packed models tmp usr >"$tmp/layer.tar"
        tar --mtime="@$SOURCE_DATE_EPOCH" --owner=65534 --group=65534 --numeric-owner --format=gnu -rf "$tmp/layer.tar" prompts # a volume gets this owner
    )
    inside=$(sha256sum <"$tmp/layer.tar") && inside=${inside%% *}
    gzip "-n$((level > 0 ? level : 1))" "$tmp/layer.tar"
    layer=$(blob "$tmp/layer.tar.gz")

    local entry=\"/usr/local/bin/${inside_programs[0]}\" ports=''
    [ "${inside_programs[0]}" != llm-server ] || entry="$entry,\"--host\",\"0.0.0.0\"" ports='"ExposedPorts":{"8080/tcp":{}},'
    printf '{"created":"%s","architecture":"%s","os":"linux","config":{"User":"65534:65534",%s"Env":["PATH=/usr/local/bin"],"Entrypoint":[%s],"WorkingDir":"/","Labels":{"org.opencontainers.image.title":"ggml-lite","org.opencontainers.image.version":"%s","org.opencontainers.image.licenses":"MIT"}},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"%s","created_by":"scripts/release.sh"}]}' \
        "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" "$architecture" "$ports" "$entry" "$label" "$inside" \
        "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)" >"$tmp/config"
    config=$(blob "$tmp/config")
    printf '{"schemaVersion":2,"mediaType":"%s.manifest.v1+json","config":{"mediaType":"%s.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"%s.layer.v1.tar+gzip","digest":"sha256:%s","size":%s}]}' \
        "$kinds" "$kinds" "$config" "$(size_of "$config")" "$kinds" "$layer" "$(size_of "$layer")" >"$tmp/manifest"
    manifest=$(blob "$tmp/manifest")
    echo '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
    printf '{"schemaVersion":2,"mediaType":"%s.index.v1+json","manifests":[{"mediaType":"%s.manifest.v1+json","digest":"sha256:%s","size":%s,"platform":{"architecture":"%s","os":"linux"},"annotations":{"io.containerd.image.name":"docker.io/library/ggml-lite:%s","org.opencontainers.image.ref.name":"%s"}}]}' \
        "$kinds" "$kinds" "$manifest" "$(size_of "$manifest")" "$architecture" "$label" "$label" >"$layout/index.json"
    printf '[{"Config":"blobs/sha256/%s","RepoTags":["ggml-lite:%s"],"Layers":["blobs/sha256/%s"]}]' "$config" "$label" "$layer" >"$layout/manifest.json"
    (cd "$layout" && packed blobs index.json manifest.json oci-layout) >"$out/$name"
    made+=("$name")

    # Its programs run where there is nothing else.
    mkdir -p "$tmp/unpacked" "$tmp/container"
    tar -xf "$out/$name" -C "$tmp/unpacked"
    for digest in "$config" "$manifest" "$layer"; do
        [ "$(sha256sum <"$tmp/unpacked/blobs/sha256/$digest")" = "$digest  -" ] || fail "$name is damaged"
    done
    tar -xzf "$tmp/unpacked/blobs/sha256/$layer" -C "$tmp/container" --no-same-owner
    if [ -n "$across" ]; then
        run=("${runner[0]}")
    elif [ "$(id -u)" = 0 ]; then
        run=(chroot "$tmp/container")
    elif unshare --user --map-root-user chroot "$tmp/container" "/usr/local/bin/${inside_programs[0]}" --version >/dev/null 2>&1; then
        run=(unshare --user --map-root-user chroot "$tmp/container")
    else
        note "  without rights for chroot, the programs of the image are tried outside"
    fi
    local prefix=$tmp/container
    [[ " ${run[*]} " != *" chroot "* ]] || prefix=
    for program in "${inside_programs[@]}"; do
        "${run[@]}" "$prefix/usr/local/bin/$program" --version >/dev/null || fail "$program does not run in the image"
    done
    [ ! -e "$tmp/container/usr/local/bin/llm-cli" ] || tells_a_story "${run[@]}" "$prefix/usr/local/bin/llm-cli"
}
