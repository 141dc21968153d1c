#!/bin/bash
# The Python package, installed without a network and used from outside the tree: python.sh SOURCE_DIR LIBRARY LLM_CLI PYTHON SANITIZE CC
# Exit code 77: skipped, the reason is printed.
set -u
source=$1 library=$2 cli=$3 python=$4 sanitize=$5 cc=$6
. "$source/tests/e2e/common.sh"
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1 PIP_NO_CACHE_DIR=1 LLM_CLI=$cli
unset PYTHONPATH PYTHONHOME GGML_LITE_LIBRARY
cd "$tmp" || exit 1

skip() {
    echo "skipped: $*"
    exit 77
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' || skip "the package needs Python 3.8, this is $("$python" --version 2>&1)"

# A library with the address sanitizer works only in a process that has loaded the sanitizer before; python itself leaks.
preload=()
case $sanitize in
*address*)
    for name in "libclang_rt.asan-$(uname -m).so" libclang_rt.asan.so libasan.so; do
        path=$("$cc" -print-file-name="$name")
        [ "$path" = "$name" ] || break
    done
    preload=(env "LD_PRELOAD=$path" ASAN_OPTIONS=detect_leaks=0)
    "${preload[@]}" "$python" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$library" ||
        skip "python does not start with the address sanitizer of $cc"
    ;;
?*) skip "python does not run with -fsanitize=$sanitize" ;;
esac

has_pip=1
# installed NAME PYTHON [VENV FLAG..]: $run is a python for which the package is installed, in a virtual environment of its own, or in a
# folder if this python makes none
installed() {
    local name=$1 with=$2
    shift 2
    if "$with" -m venv "$@" "$tmp/$name" >venv.log 2>&1; then
        "$tmp/$name/bin/python" -m pip install "$source/python" >pip.log 2>&1 || fail "pip install: $(tail -5 pip.log)"
        run=("$tmp/$name/bin/python")
    elif "$with" -m pip --version >venv.log 2>&1; then
        "$with" -m pip install --target "$tmp/$name" "$source/python" >pip.log 2>&1 || fail "pip install --target: $(tail -5 pip.log)"
        run=(env "PYTHONPATH=$tmp/$name" "$with")
    else # by the package's own build, as pip would do it
        has_pip=
        (cd "$source/python/backend" && "$with" -c 'import sys, ggml_lite_build as b; b.build_wheel(sys.argv[1])' "$tmp") >build.log 2>&1 ||
            fail "build_wheel: $(tail -5 build.log)"
        "$with" -m zipfile -e "$tmp"/ggml_lite-*.whl "$tmp/$name" && rm "$tmp"/ggml_lite-*.whl
        run=(env "PYTHONPATH=$tmp/$name" "$with")
    fi
}

# passes PYTHON.. -- TEST..: runs tests of the package
passes() {
    local with=()
    while [ "$1" != -- ]; do
        with+=("$1")
        shift
    done
    shift
    (cd tests && "${with[@]}" -m unittest "$@") >test.log 2>&1 || fail "$*: $(tail -60 test.log)"
    grep -E '^(Ran|OK|FAILED)' test.log
    [ -s test.log ] || fail "no tests ran: $*"
}

cp -r "$source/python/tests" tests
cp "$source"/examples/*.py "$source"/tests/e2e/{mock_hub,encoder_file,gguf_file,eye_file}.py tests
export MODEL_FILE=$source/models/builtin/stories.gguf
export PYTHON_PAGE=$source/docs/python.md NUMPY_TESTS=$source/tests/numpy
version=$(sed -n 's/^project(ggml-lite VERSION \([0-9.]*\) .*/\1/p' "$source/CMakeLists.txt")

# With a copy of the library in the package, and without numpy.
GGML_LITE_LIBRARY=$library installed plain "$python"
[ $failed = 0 ] || exit 1
got=$("${preload[@]}" "${run[@]}" -c 'import ggml_lite as g; print(g.__version__, g.library_path())')
case $got in
"$version $tmp"/*) ;;
*) fail "the installed package says '$got', not version $version and a library in $tmp" ;;
esac
"${run[@]}" -c 'import importlib.metadata as m; assert m.version("ggml-lite") == "'"$version"'"' || fail "the package's metadata differ"
passes "${preload[@]}" "${run[@]}" -- test_text test_answers test_embed test_reads test_model test_pictures test_placement test_training test_package test_lm_eval test_docs

# With numpy, for what needs it.
numpy=
for with in "$python" /usr/bin/python3; do
    "$with" -c 'import numpy' 2>/dev/null && numpy=$with && break
done
if [ -n "$numpy" ]; then
    GGML_LITE_LIBRARY=$library installed with_numpy "$numpy" --system-site-packages
    passes "${preload[@]}" "${run[@]}" -- test_model.Numbers test_embed test_speech test_docs
else
    echo "skipped: logits and embeddings: no python3 that imports numpy (Debian: python3-numpy)"
fi

[ -z "$sanitize" ] || exit $failed # how the package is built and installed has nothing to do with the library

# From a copy of the source folder, where there is no library: the error says how to build it.
mkdir clone
cp -r "$source/python" "$source/CMakeLists.txt" clone
(source=$tmp/clone && installed none "$python") >refused 2>&1
if grep -q FAILED refused; then
    grep -q 'no shared library .*cmake --build' *.log || fail "pip install without a library: $(cat refused)"
else
    echo "the package installs without a library, as the system has one: that this fails is not tested"
fi
(source=$tmp/clone && GGML_LITE_LIBRARY=none installed pure "$python" && printf '%s\n' "${run[@]}" >run) || exit 1
mapfile -t run <run
if "${run[@]}" -c 'import ggml_lite; ggml_lite.Model("builtin:stories")' 2>err; then
    echo "the package without a library uses one of the system: its message is not tested"
else
    grep -q 'cmake --build' err || fail "without a library: $(tail -3 err)"
fi
GGML_LITE_LIBRARY=$library "${preload[@]}" "${run[@]}" -c 'import ggml_lite; ggml_lite.Model("builtin:stories")' || fail "GGML_LITE_LIBRARY"

if [ -n "$has_pip" ]; then
    # A source distribution, from which the package installs as from the folder; the library and the licences are those of the project.
    (cd "$source/python/backend" && "$python" -c 'import sys, ggml_lite_build as b; b.build_sdist(sys.argv[1])' "$tmp") || fail "no source distribution"
    GGML_LITE_LIBRARY=$library "${run[@]}" -m pip wheel --no-deps -w wheels ggml_lite-"$version".tar.gz >pip.log 2>&1 || fail "pip wheel: $(tail -5 pip.log)"
    list=$("$python" -m zipfile -l wheels/*.whl)
    for file in ggml_lite/libllm.so ggml_lite/libllm-train.so ggml_lite/py.typed licenses/LICENSE licenses/NOTICE; do
        grep -qF "$file" <<<"$list" || fail "the wheel lacks $file: $list"
    done

    # An editable package is the source folder.
    if "${run[@]}" -m pip install -e clone/python >pip.log 2>&1; then
        got=$("${run[@]}" -c 'import ggml_lite; print(ggml_lite.__file__)')
        [ "$got" = "$(cd clone && pwd -P)/python/src/ggml_lite/__init__.py" ] || fail "an editable package is at '$got'"
        mkdir -p clone/build/release/lib
        touch clone/CMakePresets.json
        ln -s "$library" clone/build/release/lib/libllm.so
        "${run[@]}" -c 'import ggml_lite; ggml_lite.Model("builtin:stories")' || fail "build/*/lib"
    else
        fail "pip install -e: $(tail -5 pip.log)"
    fi
else
    echo "skipped: source distribution and editable package: $python has no pip (Debian: python3-venv)"
fi

# Types, in the package and for those who use it.
if command -v mypy >/dev/null; then
    # mypy belongs to the system's python3, which may be another one than that with numpy
    mypy=(mypy --cache-dir="$tmp/mypy" ${numpy:+--python-executable "$numpy"})
    (cd "$source/python" && "${mypy[@]}") >mypy.log 2>&1 || fail "mypy: $(head -20 mypy.log)"
    cat >user.py <<'END'
from typing import List
from ggml_lite import Call, Model, Stream, Training

with Model("builtin:stories", n_ctx=64) as model:
    text: str = model.generate("Once", max_tokens=3, seed=1, stop=["."], logit_bias={5: False})
    calls: List[Call] = model.answer("Hi", tools=[], tool_choice="auto").tool_calls
    texts: List[str] = [result.text for result in model.batch(["a", {"prompt": "b", "seed": 1}], max_tokens=2)]
    score: float = model.logprobs("a", "b").total
    stream: Stream = model.stream([1, 2], temperature=0)
    wrong: int = model.generate("Once")
    model.generate("Once", max_tokens="3")
    Model("builtin:stories", verbose=True)
with Training("builtin:chat", ["a.jsonl"], lora=True, matrix="blk.*") as training:
    training.run("out.gguf", each=lambda report: report.loss < 5)
    left: float = training.step().seconds_left or 0
    training.write("out.gguf", f32="yes")
END
    MYPYPATH=$source/python/src "${mypy[@]}" --strict --enable-incomplete-feature=Unpack user.py >mypy.log 2>&1
    [ "$(grep -cE '^user.py:1([0-2]|6): error' mypy.log) $(grep -c error: mypy.log)" = "4 4" ] || fail "types: $(cat mypy.log)"
else
    echo "skipped: types: there is no mypy"
fi

[ -z "$(find "$source/python" -newer tests -name '*.so')" ] || fail "the installation has written into the source folder"
exit $failed
