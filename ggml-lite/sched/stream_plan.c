#include "stream_plan.h"

/* The least window, if there is memory for it: what the disk reads while the processor is busy. */
static const size_t WINDOW = (size_t)64 << 20;

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

stream_plan ggl_stream_plan(const stream_needs *n) {
    stream_plan p = {0};
    if (n->memory == 0 || (n->each <= n->memory && n->chosen <= n->memory - n->each))
        return p;
    /* A byte of what each run reads saves more than a byte of what a run may choose. */
    p.chosen = n->each < n->memory ? n->memory - n->each : 0;
    if (p.chosen < n->memory / 8)
        p.chosen = n->memory / 8;
    p.chosen = least(p.chosen, n->chosen);
    const size_t rest = n->memory - p.chosen;
    if (n->each <= rest) {
        p.kept = n->each;
        return p;
    }
    /* One weight is read while the next one arrives. */
    const double twice = 2 * (double)n->largest * (double)(n->each - rest) / (double)n->each;
    p.window = least(WINDOW, rest / 4);
    if (twice > (double)p.window)
        p.window = twice < (double)(rest / 2) ? (size_t)twice : rest / 2;
    p.kept = rest - p.window;
    return p;
}

void ggl_stream_keep(const stream_plan *p, const size_t *size, size_t n, bool *is_kept) {
    size_t all = 0, seen = 0, kept = 0;
    for (size_t i = 0; i < n; i++)
        all += size[i];
    for (size_t i = 0; i < n; i++) {
        seen += size[i];
        const double due = (double)p->kept * (double)seen / (double)all;
        is_kept[i] = size[i] <= p->kept - kept && (double)kept + (double)size[i] / 2 <= due;
        kept += is_kept[i] ? size[i] : 0;
    }
}
