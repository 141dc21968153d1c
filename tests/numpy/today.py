"""What a test looks at today, where all of it would take long: a part, chosen by GGL_TEST_SEED or else the number of the day; all of it if
GGL_TEST_LONG is set, as by ./test long."""

import os
import random
import time


def sample(what, items, n):
    """n of the items in their order, and a line that tells how to see them again; all of them if n is None or enough."""
    items = list(items)
    if not n or n >= len(items) or os.environ.get("GGL_TEST_LONG"):
        return items
    seed = int(os.environ.get("GGL_TEST_SEED", time.time() // 86400))
    print(f"{what}: {n} of {len(items)} are chosen by GGL_TEST_SEED={seed}")
    chosen = set(random.Random(f"{seed} {what}").sample(range(len(items)), n))
    return [x for i, x in enumerate(items) if i in chosen]
