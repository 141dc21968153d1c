#!/usr/bin/env python3
"""Makes all nano models, those of ./typed.py included, with arrays that refuse operations whose last bits depend on numpy's version, and checks ./sums.py.

    fixtures.py [--cli ..] [--dir ..]     (./CMakeLists.txt passes both to all scripts; they are not used)

Refused are reductions such as sum() and std(), products of matrices, and functions such as exp() and sin(), of which every version of numpy has
its own. Only what makes a model counts; forward passes are compared within limits, and are not run here. Exit code 0, 1.
"""
import sys
from functools import partial

import numpy as np

import nano
import sums
import typed

EXACT = {"add", "subtract", "multiply", "divide", "true_divide", "negative", "absolute", "sqrt", "maximum", "minimum", "floor", "rint", "sign", "square",
         "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "bitwise_and", "bitwise_or", "left_shift", "right_shift", "logical_and",
         "logical_or", "logical_not", "isfinite", "copysign", "remainder", "floor_divide", "reciprocal", "positive", "invert", "bitwise_xor", "ldexp"}


class Refused(Exception):
    pass


class Exact(np.ndarray):
    """An array with which only exact and correctly rounded operations are possible."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **named):
        whole = all(getattr(x, "dtype", np.dtype(int)).kind in "biu" for x in inputs)
        sums_up = method == "reduce" and not whole and ufunc.__name__ not in ("maximum", "minimum")
        if ufunc.__name__ not in EXACT or sums_up or method in ("accumulate", "reduceat", "outer"):
            raise Refused(f"{ufunc.__name__}.{method}: use tests/numpy/sums.py")
        plain = [np.asarray(x) if isinstance(x, Exact) else x for x in inputs]
        if out is not None:
            named["out"] = tuple(np.asarray(x) if isinstance(x, Exact) else x for x in out)
        done = getattr(ufunc, method)(*plain, **named)
        return done.view(Exact) if isinstance(done, np.ndarray) else done

    def __array_function__(self, function, types, args, kwargs):
        if function.__name__ in ("dot", "matmul", "einsum", "inner", "outer", "tensordot", "vdot", "linspace", "interp", "convolve", "trace"):
            raise Refused(f"{function.__name__}()")
        return super().__array_function__(function, types, args, kwargs)


class Random:
    """A generator whose arrays are Exact ones."""

    def __init__(self, seed):
        self.of = REAL(seed)

    def __getattr__(self, name):
        method = getattr(self.of, name)

        def draw(*args, **named):
            drawn = method(*[np.asarray(a) if isinstance(a, Exact) else a for a in args], **named)
            return drawn.view(Exact) if isinstance(drawn, np.ndarray) else drawn
        return draw


REAL = np.random.default_rng


def put(weights, name, values):
    weights[name] = np.ascontiguousarray(values, np.float32).view(Exact)


def refuses():
    """Whether Exact finds what it is to find."""
    x = Random(1).normal(size=(3, 4))
    faults = [name for name, call in (("std", lambda: x.std()), ("mean", lambda: x.mean(-1)), ("sum", lambda: np.sum(x)), ("@", lambda: x @ x.T),
                                      ("exp", lambda: np.exp(x)), ("dot", lambda: np.dot(x, x.T)), ("**", lambda: x**3)) if not raises(call)]
    if faults:
        print("not refused:", *faults)
    return not faults


def raises(call):
    try:
        call()
    except Refused:
        return True
    return False


def sums_are_right():
    ok = True
    for n in (1, 7, 8, 127, 128, 129, 1000, 8192, 8193, 70000):
        x = REAL(n).integers(-99, 99, n).astype(np.float32)
        ok &= float(sums.total(x)) == int(x.astype(np.int64).sum())  # integers, so that every order gives the same
        y = REAL(n).normal(size=n)
        ok &= abs(sums.mean(y) - y.mean()) < 1e-12 and abs(sums.std(y) - y.std()) < 1e-12
    lost = np.float32([1 << 24, 1, 1, 1])  # of 8 lanes, each has one element; neighbours first
    ok &= float(sums.total(lost)) == float(np.float32(np.float32((1 << 24) + 1) + np.float32(2)))
    if not ok:
        print("tests/numpy/sums.py does not add as it says")
    return ok


def main():
    ok = refuses() and sums_are_right()
    nano.Weights.put = put
    np.random.default_rng = Random
    total = sums.total
    sums.total = lambda x: total(np.asarray(x))
    failed = 0
    made = {"plain, constructs": nano.load_others, "typed": typed.cases, **{name: partial(nano.load_family, name) for name in nano.FAMILIES}}
    for name, make in made.items():
        try:
            make()
        except Refused as e:
            print(f"{name}: {e}")
            failed += 1
    print(f"{len(nano.CASES)} models")
    return 0 if ok and not failed and len(nano.CASES) > 400 else 1


if __name__ == "__main__":
    sys.exit(main())
