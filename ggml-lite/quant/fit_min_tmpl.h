/* ggl_fit_mins and ggl_fit_rows_mins: types with minima, for LANES runs at once. fit_min.c and fit_min_avx2.c include this file. */
#include <math.h>

#include "fit_block.h"

/* LANES runs. x is the distance from the run's offset, so it is not negative, and the sums over it
 * keep their digits even if all elements are nearly the same. The model is offset + x ~ s * q + m. */
struct runs {
    vf x[FIT_RUN], w[FIT_RUN];
    vf offset, most, sum_w, mean; /* mean: of x, by weight */
};

/* The sums of a line with its best codes q: of w times p = q - centre, p^2, the line's errors e, e * p and
 * e^2. What another line through the same codes gains is computed from these errors, which are
 * small, not from the elements: where one element has nearly all of the weight, the errors of the
 * others are less than the last digit of the sum of all w * x^2. The centre is near the mean of
 * the codes for the same reason. */
struct sums {
    vf centre, p, p2, e, ep, ee;
};

static void read_runs(struct runs *r, const float *x, const float *w, int n, bool below_zero) {
    const vf zero = vf_all(0.0f);
    vf low = lane_heads(x, n), high = low, sum_x = zero;
    lanes_of(x, n, r->x);
    lanes_of(w, n, r->w);
    for (int i = 1; i < n; i++) {
        low = vf_pick(r->x[i] < low, r->x[i], low);
        high = vf_pick(r->x[i] > high, r->x[i], high);
    }
    r->offset = below_zero ? vf_pick(low > zero, zero, low) : low;
    r->most = high - r->offset;
    r->sum_w = zero;
    for (int i = 0; i < n; i++) {
        r->x[i] -= r->offset;
        r->sum_w += r->w[i];
        sum_x += r->w[i] * r->x[i];
    }
    r->mean = sum_x / r->sum_w;
}

/* Returns the sums of the line scale * q + m, of which m is without the offset. */
static struct sums sums_of(const fit_form *f, const struct runs *r, vf scale, vf m) {
    const vf zero = vf_all(0.0f);
    const vf inverse = vf_pick(scale == zero, zero, vf_all(1.0f) / scale);
    struct sums s = {inverse * (r->mean - m), zero, zero, zero, zero, zero};
    for (int i = 0; i < f->n; i++) {
        const vf x = r->x[i] - m, q = fit_value(f, inverse * x);
        const vf p = q - s.centre, e = x - scale * q, wp = r->w[i] * p, we = r->w[i] * e;
        s.p += wp;
        s.p2 += wp * p;
        s.e += we;
        s.ep += we * p;
        s.ee += we * e;
    }
    return s;
}

/* The best line so far: x ~ scale * q + m. steepness: how much a wrong scale costs, with the best minimum for it. */
struct line {
    vf scale, m, error, steepness;
};

/* Takes the least-squares line through the codes of the line scale * q + m, whose sums are s, if it is better. Its minimum is at most
 * -offset if the type has none above zero. */
static void keep_better(struct line *best, const struct runs *r, vf scale, vf m,
                        const struct sums *s, bool below_zero) {
    const vf zero = vf_all(0.0f);
    const vf det = r->sum_w * s->p2 - s->p * s->p;
    const vf ds = (r->sum_w * s->ep - s->e * s->p) / det;
    const vf dn = (s->p2 * s->e - s->p * s->ep) / det;
    vf error = s->ee - ds * s->ep - dn * s->e;
    struct line to = {scale + ds, m + dn - ds * s->centre, error, det / r->sum_w};
    if (below_zero) {
        const vi above = to.m + r->offset > zero;
        const vf by = -r->offset - m; /* the minimum becomes zero: all errors change by this */
        const vf q = s->p + s->centre * r->sum_w;
        const vf q2 = s->p2 + s->centre * (s->p + q), eq = s->ep + s->centre * s->e - by * q;
        const vf clamped = s->ee - by * (s->e + s->e - by * r->sum_w) - eq * eq / q2;
        to.scale = vf_pick(above, scale + eq / q2, to.scale);
        to.error = vf_pick(above, clamped, to.error);
        to.m = vf_pick(above, -r->offset, to.m);
        to.steepness = vf_pick(above, q2, to.steepness);
    }
    vi better =
        (det > zero) & (to.scale > zero) & (to.error + vf_all(FIT_NOISE) * s->ee < best->error);
    best->scale = vf_pick(better, to.scale, best->scale);
    best->m = vf_pick(better, to.m, best->m);
    best->error = vf_pick(better, to.error, best->error);
    best->steepness = vf_pick(better, to.steepness, best->steepness);
}

/* Finds scales and minima, the latter without the offset. A run without a line (all elements are the
 * same) has scale 0. */
static struct line search(const fit_form *f, const struct runs *r, bool below_zero) {
    const vf zero = vf_all(0.0f);
    struct line best = {zero, r->mean, vf_all(INFINITY), zero};
    vf most = vf_pick(r->most > zero, r->most, vf_all(1.0f));
    for (int k = 0; k <= f->n_steps; k++) { /* last as the published encoders */
        const float more = k < f->n_steps ? f->first + f->step * (float)k : 0.0f;
        const float factor = (float)f->high + more;
        const vf scale = most * vf_all(1.0f / factor), m = zero;
        struct sums s = sums_of(f, r, scale, m);
        keep_better(&best, r, scale, m, &s, below_zero);
    }
    static const float beside[] = {0.96f, 1.04f, 0.98f, 1.02f, 0.99f, 1.01f, 1.0f, 1.0f};
    for (size_t k = 0; k < sizeof beside / sizeof *beside; k++) {
        const vf scale = best.scale * vf_all(beside[k]), m = best.m;
        struct sums s = sums_of(f, r, scale, m);
        if (beside[k] == 1.0f) /* the very errors, no difference of sums */
            best.error = vf_pick(scale > zero, s.ee, best.error);
        keep_better(&best, r, scale, m, &s, below_zero);
    }
    return best;
}

/* The state of the search for the integer scales and minima of a block. The sums are over all
 * elements, of a = integer scale times code, b = integer minimum, and the error e. */
struct trial {
    float d, dmin;
    double error, aa, ab, bb, ae, be;
    vf scale[FIT_RUNS / LANES], min[FIT_RUNS / LANES];
};

static vf whole(vf x, int high) {
    return fit_value(&(fit_form){.low = 0, .high = high}, x);
}

/* What is found for LANES runs. */
struct choice {
    vf k, l, error, aa, ab, ae, be;
};

/* Takes the integer scale k with the minimum l if that is better. Returns the minimum that is best for k and these codes, not rounded. */
static vf try_choice(const fit_form *f, const struct runs *r, const struct trial *t, vf k, vf l,
                     struct choice *c) {
    const vf scale = k * vf_all(t->d), m = -l * vf_all(t->dmin);
    const struct sums s = sums_of(f, r, scale, m - r->offset);
    const vf q = s.p + s.centre * r->sum_w, q2 = s.p2 + s.centre * (s.p + q);
    const vi better = s.ee < c->error;
    c->error = vf_pick(better, s.ee, c->error);
    c->k = vf_pick(better, k, c->k);
    c->l = vf_pick(better, l, c->l);
    c->aa = vf_pick(better, k * k * q2, c->aa);
    c->ab = vf_pick(better, k * l * q, c->ab);
    c->ae = vf_pick(better, k * (s.ep + s.centre * s.e), c->ae);
    c->be = vf_pick(better, l * s.e, c->be);
    return m + s.e / r->sum_w;
}

/* Chooses the integers of LANES runs near the wanted line, and adds their sums to t. */
static void choose_runs(const fit_form *f, const struct runs *r, const struct line *wanted,
                        struct trial *t, int b) {
    const vf inverse = vf_all(t->dmin > 0.0f ? 1.0f / t->dmin : 0.0f);
    struct choice c = {.error = vf_all(INFINITY)};
    const vf middle = wanted->scale / vf_all(t->d);
    const vf m = -(wanted->m + r->offset), l = whole(m * inverse, f->min_high);
    const vf lower = whole((m + wanted->scale) * inverse, f->min_high); /* all codes one more */
    for (int beside = -1; beside <= 1; beside++) {
        const vf k = whole(middle + vf_all((float)beside), f->scale_high);
        const vf other = whole(-try_choice(f, r, t, k, l, &c) * inverse, f->min_high);
        if (vi_any(other != l))
            (void)try_choice(f, r, t, k, other, &c);
        if (beside == 0 && vi_any(lower != l))
            (void)try_choice(f, r, t, k, lower, &c);
    }
    t->scale[b] = c.k;
    t->min[b] = c.l;
    lanes_add(&t->error, c.error);
    lanes_add(&t->aa, c.aa);
    lanes_add(&t->ab, c.ab);
    lanes_add(&t->bb, c.l * c.l * r->sum_w);
    lanes_add(&t->ae, c.ae);
    lanes_add(&t->be, c.be);
}

static void choose(const fit_form *f, const struct runs *r, const struct line *wanted,
                   struct trial *t) {
    t->error = t->aa = t->ab = t->bb = t->ae = t->be = 0.0;
    for (int b = 0; b < FIT_BLOCK / f->n / LANES; b++)
        choose_runs(f, &r[b], &wanted[b], t, b);
}

/* Sets t->d and t->dmin to the best ones for the integers and codes of t; false: t has these
 * already, or they are not valid. */
static bool better_factors(struct trial *t, int exponent) {
    const double det = t->aa * t->bb - t->ab * t->ab;
    double d = t->aa > 0.0 ? t->ae / t->aa : 0.0, dmin = 0.0;
    if (det > 1e-9 * t->aa * t->bb) {
        d = (t->ae * t->bb - t->ab * t->be) / det;
        dmin = (t->ab * t->ae - t->aa * t->be) / det;
    }
    const float d16 = ggl_fit_f16(t->d + (float)d, exponent);
    const float min16 = ggl_fit_f16(t->dmin + (float)dmin, exponent);
    if (!(d16 > 0.0f) || !(min16 >= 0.0f) || (d16 == t->d && min16 == t->dmin))
        return false;
    t->d = d16;
    t->dmin = min16;
    return true;
}

static void put_codes(const fit_form *f, const float *x, const struct trial *t, fit_block *out) {
    for (int i = 0; i < FIT_BLOCK; i += LANES) {
        const int run = i / f->n;
        const float k = t->scale[run / LANES][run % LANES], l = t->min[run / LANES][run % LANES];
        const float scale = k * t->d;
        vf v;
        memcpy(&v, x + i, sizeof v);
        v = fit_value(f, (v + vf_all(l * t->dmin)) * vf_all(scale != 0.0f ? 1.0f / scale : 0.0f));
        out->scale[run] = (int)k;
        out->min[run] = (int)l;
        for (int e = 0; e < LANES; e++)
            out->code[i + e] = (uint8_t)v[e];
    }
}

/* Sets the factors from which the search begins. A run whose elements do not need all codes can have a minimum one or two steps
 * lower: the last start takes that into account. */
static void start_factors(const fit_form *f, const struct runs *r, const struct line *wanted,
                          fit_start *scale, fit_start *min) {
    const int n = FIT_BLOCK / f->n;
    float s[FIT_RUNS], m[FIT_RUNS], steep[FIT_RUNS], sum_w[FIT_RUNS];
    fit_start lower[FIT_STARTS];
    for (int b = 0; b < n / LANES; b++) {
        const vf min_of = -(wanted[b].m + r[b].offset), zero = vf_all(0.0f);
        lanes_store(s + LANES * b, wanted[b].scale);
        lanes_store(m + LANES * b, vf_pick(min_of < zero, zero, min_of));
        lanes_store(steep + LANES * b, wanted[b].steepness);
        lanes_store(sum_w + LANES * b, r[b].sum_w);
    }
    ggl_fit_starts(&(fit_numbers){s, steep, NULL, n, 0, f->scale_high}, scale);
    ggl_fit_starts(&(fit_numbers){m, sum_w, NULL, n, 0, f->min_high}, min);
    ggl_fit_starts(&(fit_numbers){m, sum_w, s, n, 0, f->min_high}, lower);
    scale[f->n_starts - 1] = scale[0];
    min[f->n_starts - 1] = lower[0];
}

void FIT(ggl_fit_mins)(const fit_form *f, const float *src, const float *importance,
                       fit_block *out) {
    enum { ROUNDS = 4 };
    fit_source s;
    struct runs r[FIT_RUNS / LANES];
    struct line wanted[FIT_RUNS / LANES];
    fit_start scale[FIT_STARTS], min[FIT_STARTS];
    *out = (fit_block){0};
    if (!ggl_fit_read(&s, src, importance, FIT_BLOCK))
        return;
    for (int b = 0, at = 0; at < FIT_BLOCK; b++, at += f->n * LANES) {
        read_runs(&r[b], s.x + at, s.w + at, f->n, true);
        wanted[b] = search(f, &r[b], true);
    }
    start_factors(f, r, wanted, scale, min);
    struct trial t = {.d = 0.0f}, best = {.error = INFINITY};
    for (int start = 0; start < f->n_starts; start++) {
        t.d = ggl_fit_f16(scale[start].d, s.exponent);
        t.dmin = ggl_fit_f16(min[start].d, s.exponent);
        if (t.d == 0.0f) /* all elements of each run are the same: minima alone hold them */
            t.d = 1.0f;
        choose(f, r, wanted, &t);
        if (t.error < best.error)
            best = t;
    }
    t = best;
    for (int round = 1; round < ROUNDS && better_factors(&t, s.exponent); round++) {
        choose(f, r, wanted, &t);
        if (t.error < best.error)
            best = t;
    }
    put_codes(f, s.x, &best, out);
    const double d = (double)best.d, dmin = (double)best.dmin;
    const double yy = d * d * best.aa - 2 * d * dmin * best.ab + dmin * dmin * best.bb;
    double xx = 0.0;
    for (int i = 0; i < FIT_BLOCK; i++)
        xx += (double)(s.w[i] * s.x[i] * s.x[i]);
    const float gain = ggl_fit_gain(xx, yy + d * best.ae - dmin * best.be);
    out->d = ldexpf(best.d * gain, s.exponent);
    out->dmin = ldexpf(best.dmin * gain, s.exponent);
}

/* --- blocks of 32 -------------------------------------------------------------------------- */

/* Takes the line with its factors as f16 if it is better. Sets it to the least-squares line through its codes. */
static void try_line(const fit_form *f, const struct runs *r, const fit_source *s,
                     struct line *line, struct line *best) {
    vf scale = line->scale, m = line->m + r->offset;
    for (int l = 0; l < LANES; l++) {
        scale[l] = ggl_fit_f16(scale[l], s[l].exponent);
        m[l] = ggl_fit_f16(m[l], s[l].exponent);
    }
    const struct sums sums = sums_of(f, r, scale, m - r->offset);
    const vi better = sums.ee < best->error;
    best->scale = vf_pick(better, scale, best->scale);
    best->m = vf_pick(better, m, best->m);
    best->error = vf_pick(better, sums.ee, best->error);
    *line = (struct line){scale, m - r->offset, vf_all(INFINITY), vf_all(0.0f)};
    keep_better(line, r, scale, m - r->offset, &sums, false);
}

/* Multiplies the line by ggl_fit_gain, where it can be rounded to f16 once more. It cannot where a large weight is that of an element
 * near 0, which is the difference of scale * q and the minimum. */
static void lengthen(const struct runs *r, const fit_source *s, const vf *q, vf xx, vf xy,
                     struct line *best) {
    struct line longer = *best;
    for (int l = 0; l < LANES; l++) {
        const float gain = ggl_fit_gain((double)xx[l], (double)xy[l]);
        longer.scale[l] = ggl_fit_f16(longer.scale[l] * gain, s[l].exponent);
        longer.m[l] = ggl_fit_f16(longer.m[l] * gain, s[l].exponent);
    }
    vf error = vf_all(0.0f);
    for (int i = 0; i < FIT_RUN; i++) {
        const vf e = r->x[i] + r->offset - (q[i] * longer.scale + longer.m);
        error += r->w[i] * e * e;
    }
    const vf least = best->error; /* and what the length costs: least * xx / (xx - least) */
    const vi good = (error * (xx - least) <= vf_all(1.02f) * least * xx) | (least >= xx);
    best->scale = vf_pick(good, longer.scale, best->scale);
    best->m = vf_pick(good, longer.m, best->m);
}

static void fit_lanes(const fit_form *f, const float *src, const float *importance, fit_rows *out,
                      int first) {
    fit_source s[LANES];
    float x[LANES * FIT_RUN], w[LANES * FIT_RUN];
    struct runs r;
    for (int l = 0; l < LANES; l++) {
        out->d[first + l] = ggl_fit_read_run(&s[l], src, importance, first + l);
        memcpy(x + FIT_RUN * l, s[l].x, FIT_RUN * sizeof *x);
        memcpy(w + FIT_RUN * l, s[l].w, FIT_RUN * sizeof *w);
    }
    read_runs(&r, x, w, f->n, false);
    const vf zero = vf_all(0.0f);
    /* from the smallest element to the largest, as the published encoders */
    struct line plain = {r.most * vf_all(1.0f / (float)f->high), zero, zero, zero};
    struct line line = search(f, &r, false), best = {zero, line.m, vf_all(INFINITY), zero};
    try_line(f, &r, s, &plain, &best);
    for (int round = 0; round < 3; round++)
        try_line(f, &r, s, &line, &best);
    const vf inverse = vf_pick(best.scale == zero, zero, vf_all(1.0f) / best.scale);
    vf q[FIT_RUN], xx = zero, xy = zero;
    for (int i = 0; i < FIT_RUN; i++) {
        const vf element = r.x[i] + r.offset;
        q[i] = fit_value(f, inverse * (element - best.m));
        xx += r.w[i] * element * element;
        xy += r.w[i] * element * (q[i] * best.scale + best.m);
        for (int l = 0; l < LANES; l++)
            out->code[FIT_RUN * (first + l) + i] = (uint8_t)q[i][l];
    }
    lengthen(&r, s, q, xx, xy, &best);
    for (int l = 0; l < LANES; l++) {
        out->d[first + l] += ldexpf(best.scale[l], s[l].exponent);
        out->m[first + l] = ldexpf(best.m[l], s[l].exponent);
    }
}

void FIT(ggl_fit_rows_mins)(const fit_form *f, const float *src, const float *importance,
                            fit_rows *out) {
    for (int first = 0; first < FIT_AT_ONCE; first += LANES)
        fit_lanes(f, src, importance, out, first);
}
