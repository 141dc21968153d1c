# shellcheck shell=bash
# The package for JavaScript, with modules whose addresses have 32 and 64 bits, and the page that needs no server.
make_npm() {
    local name=ggml-lite-$label-npm.tgz page=ggml-lite-$label-page top=$tmp/npm library=build/wasm64-library bits build options said
    hold build
    scripts/wasm64-library.sh "$library" || fail "modules for large models cannot be built (--without npm leaves the package out)"
    for bits in 32 64; do
        build=build/package-wasm$bits options=()
        [ $bits = 32 ] || options=(-DGGL_WASM64="$PWD/$library")
        note "  building in $build .."
        rm -rf "$build/package" "$build/web" # what an older commit had
        # beside the toolchain's own flags, which -DCMAKE_C_FLAGS would replace
        CFLAGS="-ffile-prefix-map='$PWD=.'" cmake -S . -B "$build" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/wasm.cmake" "${options[@]}" -DCMAKE_BUILD_TYPE=Release \
            -DGGL_TESTS=OFF -DGGL_TOOLS=OFF >"$tmp/log" 2>&1 || fail "cmake: $(tail -20 "$tmp/log")"
        cmake --build "$build" -j "$(nproc)" --target ggml-lite-js >"$tmp/log" 2>&1 || fail "the build for WebAssembly failed: $(tail -20 "$tmp/log")"
        mkdir -p "$top/package" "$top/$page"
        cp -r "$build"/package/* "$top/package/"
        cp -r "$build"/web/* "$top/$page/"
    done
    cp NOTICE "$library/wasi-libc-licence.txt" "$top/package/"
    cp LICENSE NOTICE "$library/wasi-libc-licence.txt" "$top/$page/"
    chmod -R u=rwX,go=rX "$top"
    (cd "$top" && packed package | gzip "-n$((level > 0 ? level : 1))" >"$out/$name")
    (cd "$top" && packed "$page" | gzip "-n$((level > 0 ? level : 1))" >"$out/$page.tar.gz")
    made+=("$name" "$page.tar.gz")
    # as npm installs it
    mkdir -p "$tmp/node_modules/ggml-lite"
    tar -xzf "$out/$name" --strip-components 1 -C "$tmp/node_modules/ggml-lite"
    cat >"$tmp/try.mjs" <<'END'
import { Model } from "ggml-lite";
const model = await Model.load("builtin:stories");
for await (const piece of model.generate("Once upon a time", { maxTokens: 4, seed: 1 })) if (piece) console.log(model.version);
model.close();
END
    said=$(node "$tmp/try.mjs" 2>&1) || fail "$name: $said"
    [ "${said%%$'\n'*}" = "$version" ] || fail "$name writes '$said', not version $version"
}
