/* Finds a smallest form that fails like another: makes one thing after another smaller, keeps
 * what still fails, and ends when nothing can be made smaller. */
#include "case.h"

enum { MAX_STEPS = 72 };

typedef struct shrinking {
    const conform_case *info;
    ggl_backend *b;
    conform_result *r; /* of the least so far */
    int tries, most;
} shrinking;

/* Tries a form. If it fails in the same way, *s->r becomes its result and true is returned. False
 * also if the form has no valid graph. */
static bool takes(shrinking *s, const conform_form *f) {
    conform_result r;
    if (s->tries >= s->most)
        return false;
    s->tries++;
    if (conform_check_form(s->info, f, s->b, &r) != s->r->outcome)
        return false;
    *s->r = r;
    return true;
}

/* Writes numbers below x in ascending order: `least`, then x less a half, a quarter, .. of it.
 * Returns how many. */
static int smaller(int64_t x, int64_t least, int64_t *out) {
    int n = 0;
    if (x <= least)
        return 0;
    out[n++] = least;
    if (least == 0 && x > 1)
        out[n++] = 1;
    for (int64_t part = x / 2; part > 0 && n < MAX_STEPS; part /= 2)
        if (x - part > out[n - 1])
            out[n++] = x - part;
    return n;
}

static bool shrink_batch(shrinking *s) {
    int64_t n[MAX_STEPS];
    int count = smaller(s->r->form.n, 1, n);
    for (int i = 0; i < count; i++) {
        conform_form f = s->r->form;
        f.n = n[i];
        f.n_batch = f.n_batch < n[i] ? f.n_batch : n[i];
        if (takes(s, &f))
            return true;
    }
    return false;
}

static bool shrink_cuts(shrinking *s) {
    conform_form whole = s->r->form, simple = s->r->form;
    whole.n_batch = whole.n;
    whole.chunk = 0;
    simple.chunk = 0;
    return (s->r->form.n_batch < s->r->form.n && takes(s, &whole)) ||
           (s->r->form.chunk && takes(s, &simple));
}

static bool shrink_slots(shrinking *s) {
    conform_form f = s->r->form;
    f.n_slots = 1;
    return s->r->form.n_slots > 1 && takes(s, &f);
}

static bool shrink_view(shrinking *s) {
    for (int64_t view = 0; view < 2 && view < s->r->form.view; view++) {
        conform_form f = s->r->form;
        f.view = view;
        if (takes(s, &f))
            return true;
    }
    return false;
}

static bool shrink_options(shrinking *s) {
    for (unsigned bit = 1; bit < CONFORM_ALL; bit *= 2) {
        conform_form f = s->r->form;
        f.with &= ~bit;
        if (f.with != s->r->form.with && takes(s, &f))
            return true;
    }
    return false;
}

static bool shrink_values(shrinking *s) {
    static const conform_values plain[] = {CONFORM_ONES, CONFORM_WHOLE, CONFORM_ORDINARY};
    enum { N = sizeof plain / sizeof *plain };
    for (int i = 0; i < N && plain[i] != s->r->form.values; i++) {
        conform_form f = s->r->form;
        f.values = plain[i];
        if (takes(s, &f))
            return true;
    }
    return false;
}

/* Makes a size smaller, or with `together` all sizes equal to it, as operands whose sizes must
 * agree. */
static bool shrink_size(shrinking *s, int k, bool together) {
    int64_t was = s->r->form.size[k], size[MAX_STEPS];
    int count = smaller(was, 0, size);
    for (int i = 0; i < count; i++) {
        conform_form f = s->r->form;
        for (int j = 0; j < CONFORM_SIZES; j++)
            if (j == k || (together && f.size[j] == was))
                f.size[j] = size[i];
        if (takes(s, &f))
            return true;
    }
    return false;
}

static bool shrink_sizes(shrinking *s) {
    bool shrunk = false;
    for (int k = 0; k < CONFORM_SIZES; k++) {
        while (shrink_size(s, k, true))
            shrunk = true;
        while (shrink_size(s, k, false))
            shrunk = true;
    }
    return shrunk;
}

int conform_shrink(const conform_case *info, ggl_backend *b, conform_result *r, int most) {
    static bool (*const steps[])(shrinking *) = {shrink_batch, shrink_cuts,    shrink_slots,
                                                 shrink_view,  shrink_options, shrink_sizes,
                                                 shrink_values};
    shrinking s = {.info = info, .b = b, .r = r, .most = most};
    bool again = r->outcome == CONFORM_WRONG || r->outcome == CONFORM_FAILED;
    while (again) {
        again = false;
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            again = steps[i](&s) || again;
    }
    return s.tries;
}
