#!/bin/bash
# ./test reads GGL_TEST_SEED as a decimal number, whatever it begins with, and refuses what is none; `near` gives ctest the
# numbers of tests, because an expression of their names may be too long: test_script.sh SOURCE_DIR
# `clients` and `real` check their arguments first. The programs that it calls are replaced: they only print what they were called with.
set -u
source=$1
. "$source/tests/e2e/common.sh"
mkdir -p "$tmp/clone/cmake" "$tmp/clone/build" "$tmp/bin"
cp "$source/test" "$tmp/clone"
cat >"$tmp/clone/cmake/setup.sh" <<'END'
can_build_in() { :; }
cannot_build() { exit 1; }
need() { :; }
need_header() { :; }
need_cmake() { :; }
need_python() { :; }
need_file() { :; }
want() { :; }
want_header() { :; }
compiles() { [ -z "${NO_CROSS:-}" ]; }
want_page_libraries() { :; }
install_needed() { :; }
END
for program in cmake ctest python3; do
    cat >"$tmp/bin/$program" <<'END'
#!/bin/bash
[ "${0##*/}" != python3 ] || echo 1
[ "${0##*/}" != ctest ] || echo "100% tests passed: $*"
[[ "${0##*/} $*" != ctest*-N* ]] || echo "Total Tests: 1"
echo "${0##*/} with the seed ${GGL_TEST_SEED-that is not set}" >>"$SEEDS"
END
    chmod +x "$tmp/bin/$program"
done
export SEEDS=$tmp/seeds
test_with() { # SEED
    : >"$SEEDS"
    said=$(PATH=$tmp/bin:$PATH GGL_TEST_SEED=$1 "$tmp/clone/test" 2>&1)
}

# 9 % 8 is 1: the second turn, an odd day
for seed in 9 09 0009; do
    test_with $seed || fail "GGL_TEST_SEED=$seed: exit code $?: $said"
    grep -q "cpu\[.\](Haswell)" <<<"$said" && grep -q "^== tests tsan" <<<"$said" || fail "GGL_TEST_SEED=$seed: another processor: $said"
    grep -q "GGL_TEST_SEED=9$" <<<"$said" || fail "GGL_TEST_SEED=$seed is not printed: $said"
    ! grep -v "with the seed 9$" "$SEEDS" || fail "GGL_TEST_SEED=$seed: programs get another one"
done
# without its compiler, the processor's tests are left out, and that is said
NO_CROSS=1 test_with 6 || fail "without a compiler: exit code $?: $said"
grep -q "skipped: no gcc-arm-linux-gnueabihf" <<<"$said" && ! grep -q "cpu\[" <<<"$said" || fail "without a compiler: $said"
NO_CROSS=1 test_with 3 || fail "without a compiler: exit code $?: $said"
grep -q "cpu\[.\](SandyBridge)" <<<"$said" || fail "a processor of this build: $said"
# on even days, other processors have their turn, and the thread sanitizer has none
test_with 8 || fail "GGL_TEST_SEED=8: exit code $?: $said"
grep -q "cpu\[.\](max|cortex-a53|a64fx|cortex-a76)" <<<"$said" && ! grep -q "^== tests tsan" <<<"$said" || fail "an even day: $said"
# an empty one is the number of the day
test_with "" || fail "an empty GGL_TEST_SEED: exit code $?: $said"
for seed in x 8x -1 0x8 1.5 " 8" 12345678901234567890; do
    test_with "$seed"
    code=$?
    [ $code = 2 ] || fail "GGL_TEST_SEED='$seed': exit code $code, not 2"
    [[ $said == *"GGL_TEST_SEED is '$seed'"* ]] || fail "GGL_TEST_SEED='$seed' is not named: $said"
    [ ! -s "$SEEDS" ] || fail "GGL_TEST_SEED='$seed': something ran"
done
said=$(PATH=$tmp/bin:$PATH "$tmp/clone/test" near "$tmp/clone/test" 2>&1) || fail "near: exit code $?: $said"
grep -q "^100% tests passed: .* -I 1$" <<<"$said" || fail "near: ctest does not get the numbers: $said"
# What clients and real ask of others: a question, or a name that nothing has, is answered before anything is installed or built.
if command -v python3 >/dev/null; then
    rm "$tmp/bin/python3"
    ln -s "$source/tests" "$tmp/clone/tests"
    export GGL_REAL_CACHE=$tmp/cache PYTHONDONTWRITEBYTECODE=1
    for what in real clients; do
        : >"$SEEDS"
        said=$(PATH=$tmp/bin:$PATH "$tmp/clone/test" $what --help 2>&1) || fail "$what --help: exit code $?: $said"
        grep -q "^usage: ./test $what \[" <<<"$said" || fail "$what --help: $said"
        said=$(PATH=$tmp/bin:$PATH "$tmp/clone/test" $what speeech 2>&1)
        code=$?
        [ $code = 2 ] && grep -q "there is no .* 'speeech'; there are " <<<"$said" || fail "$what speeech: exit code $code: $said"
        [ ! -s "$SEEDS" ] && [ ! -e "$tmp/cache" ] || fail "$what speeech: something ran: $(cat "$SEEDS")"
    done
fi
exit $failed
