#include "buckets.h"

enum { MIDDLE = 16 };

/* Returns the distance between buckets near n. */
static int64_t step_at(int64_t n) {
    return n <= VK_SMALL_BUCKETS ? 1 : n <= VK_LARGE_BUCKET ? MIDDLE : VK_LARGE_BUCKET;
}

int64_t ggl_vk_bucket_for(int64_t n, int64_t n_max) {
    const int64_t step = step_at(n), up = (n + step - 1) / step * step;
    return up < n_max ? up : n_max;
}

int64_t ggl_vk_bucket_within(int64_t n, int64_t n_max) {
    const int64_t step = step_at(n), down = n / step * step;
    return n >= n_max ? n_max : down > 0 ? down : VK_SMALL_BUCKETS;
}
