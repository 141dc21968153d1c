# shellcheck shell=bash
# A Python package with the libraries inside. Its name has the oldest glibc with which they run.
make_wheel() {
    local library train others newer newest platform name python
    tree package-wheel -DGGL_TOOLS=OFF -DGGL_MPI=OFF -DGGL_SNDFILE=OFF -DGGL_PNG=OFF -DGGL_JPEG=OFF -DGGL_WEBP=OFF -DGGL_OLD_GLIBC=ON
    library=$(echo "$usr"/lib/libllm.so.*.*.*)
    [ -f "$library" ] || fail "$build has no libllm.so"
    train=${library/libllm/libllm-train}
    [ -f "$train" ] || fail "$build has no libllm-train.so"
    others=$(readelf -d "$library" "$train" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE '(libc|libm|libdl|libpthread)\.so\.[0-9]|libllm\.so\..*|ld-linux.*' || true)
    [ -z "$others" ] || fail "a wheel for every system cannot have a libllm.so that needs ${others//$'\n'/, } (--without wheel leaves it out)"
    newer=$(readelf --dyn-syms -W "$library" "$train" | grep -oE '[A-Za-z0-9_]+@GLIBC_2\.(1[89]|[2-9][0-9])' | sort -u || true)
    [ -z "$newer" ] || note "  libllm.so or libllm-train.so calls functions that are newer than glibc 2.17; library/glibc/old_glibc.c may know older ones: ${newer//$'\n'/, }"
    newest=$(readelf -V "$library" "$train" | grep -oE 'Name: GLIBC_[0-9.]+' | sed 's/.*_//' | sort -uV | tail -n 1)
    [ -n "$newest" ] || fail "libllm.so was not linked with glibc, and a wheel is made for systems with glibc (--without wheel leaves it out)"
    newest=$(printf '%s\n' "$newest" 2.17 | sort -V | tail -n 1) # what is named manylinux begins with 2.5, and that of aarch64 with 2.17
    platform=manylinux_$(cut -d. -f1,2 <<<"$newest" | tr . _)_$target
    name=$(PYTHONDONTWRITEBYTECODE=1 GGML_LITE_LIBRARY=$library python3 -c "import sys; sys.path.insert(0, 'python/backend')
import ggml_lite_build
print(ggml_lite_build.build_wheel(sys.argv[1], {'platform': sys.argv[2]}))" "$out" "$platform" | tail -n 1) || fail "the wheel cannot be made"
    made+=("$name")
    mkdir "$tmp/wheel"
    python3 -m zipfile -e "$out/$name" "$tmp/wheel"
    if [ -n "$across" ]; then
        note "  $name was not tried, which needs a Python for $target"
        return
    fi
    # as a user installs it, if Python can make such folders here
    if python3 -m venv "$tmp/venv" >"$tmp/log" 2>&1; then
        "$tmp/venv/bin/pip" install --no-index --no-deps --disable-pip-version-check -q "$out/$name" >"$tmp/log" 2>&1 || fail "pip install $name: $(cat "$tmp/log")"
        rm -rf "$tmp/wheel"
        python=$tmp/venv/bin/python3
    else
        note "  without python3-venv, $name is tried where it is unpacked"
        python=python3
    fi
    (cd "$tmp" && printf 'Once upon a time there was a cat. %.0s' {1..40} >texts.txt && PYTHONPATH=$tmp/wheel "$python" -c 'from ggml_lite import Model, Training
assert Model("builtin:stories").generate("Once upon a time", max_tokens=4, seed=1)
assert Training("builtin:stories", "texts.txt", n_steps=1, n_ctx=32).step().loss > 0') >"$tmp/log" 2>&1 || fail "$name: $(cat "$tmp/log")"
}
