#include "real_fft.h"

#include <stdbool.h>

#include "ggl/alloc.h"
#include "ggl/internal/math.h"

enum { LANES = REAL_FFT_LANES, COMPLEX = 2 * LANES }; /* real parts of all lanes, then imaginary */

static const double PI = 0x1.921fb54442d18p+1;

ggl_status llm_real_fft_init(real_fft *f, int n, ggl_error *err) {
    *f = (real_fft){.n = n, .root = ggl_calloc((size_t)n, 2 * sizeof(double))};
    if (!f->root)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a transform of %d numbers", n);
    for (int k = 0; k < n; k++) {
        f->root[2 * k] = ggl_cos(2 * PI * k / n);
        f->root[2 * k + 1] = -ggl_sin(2 * PI * k / n);
    }
    /* Large factors first, while steps are short: their coefficients are computed once for a step. */
    int left = n / 2;
    for (int p = left; p > 1; p--) {
        bool is_prime = true;
        for (int d = 2; d * d <= p && is_prime; d++)
            is_prime = p == 4 || p % d != 0;
        for (; is_prime && left % p == 0; left /= p)
            f->factor[f->n_factor++] = p;
    }
    return GGL_OK;
}

void llm_real_fft_fini(real_fft *f) {
    ggl_free(f->root);
    *f = (real_fft){0};
}

size_t llm_real_fft_n_work(const real_fft *f) {
    return (size_t)f->n * LANES + 2 * (size_t)f->n;
}

/* to[i] = sum_j coefficient[j] * from[i + j * stride], for n complex numbers of all lanes. */
static void combine(double *to, const double *from, size_t stride, const double *coefficient, int p,
                    int n) {
    for (int i = 0; i < n; i++, to += COMPLEX, from += COMPLEX) {
        double re[LANES] = {0}, im[LANES] = {0};
        const double *a = from;
        for (int j = 0; j < p; j++, a += stride) {
            const double c = coefficient[2 * j], s = coefficient[2 * j + 1];
            for (int l = 0; l < LANES; l++) {
                re[l] += c * a[l] - s * a[LANES + l];
                im[l] += c * a[LANES + l] + s * a[l];
            }
        }
        for (int l = 0; l < LANES; l++) {
            to[l] = re[l];
            to[LANES + l] = im[l];
        }
    }
}

/* A step of Stockham's transform: `done` is the product of the factors before, p this one. Its coefficient for output r of group q is
 * exp(-2 pi i (j r / p + q r done / n)). */
static void step(const real_fft *f, const double *from, double *to, double *coefficient, int done,
                 int p) {
    const int n = f->n / 2, groups = n / done / p;
    for (int q = 0; q < groups; q++)
        for (int r = 0; r < p; r++) {
            int at = done * q * r;
            const int by = r * (n / p);
            for (int j = 0; j < p; j++) {
                coefficient[2 * j] = f->root[4 * at];
                coefficient[2 * j + 1] = f->root[4 * at + 1];
                at += by < n - at ? by : by - n;
            }
            combine(to + (size_t)done * (size_t)(p * q + r) * COMPLEX,
                    from + (size_t)done * (size_t)q * COMPLEX,
                    (size_t)done * (size_t)groups * COMPLEX, coefficient, p, done);
        }
}

/* The spectrum of the even and of the odd numbers, from that of both together, and the two joined. */
static void split(const real_fft *f, const double *z, double *power) {
    const int n = f->n / 2;
    for (int k = 0; k <= n; k++) {
        const double *a = z + (size_t)(k % n) * COMPLEX, *b = z + (size_t)((n - k) % n) * COMPLEX;
        const double c = k < n ? f->root[2 * k] : -1, s = k < n ? f->root[2 * k + 1] : 0;
        double *to = power + (size_t)k * LANES;
        for (int l = 0; l < LANES; l++) {
            const double even_re = a[l] + b[l], even_im = a[LANES + l] - b[LANES + l];
            const double odd_re = a[LANES + l] + b[LANES + l], odd_im = b[l] - a[l];
            const double re = even_re + (c * odd_re - s * odd_im);
            const double im = even_im + (c * odd_im + s * odd_re);
            to[l] = (re * re + im * im) / 4;
        }
    }
}

void llm_real_fft_power(const real_fft *f, double *x, double *work, double *power) {
    double *from = x, *to = work, *const coefficient = work + (size_t)f->n * LANES;
    int done = 1;
    /* numbers 2 i and 2 i + 1 of all lanes are complex number i */
    for (int i = 0; i < f->n_factor; i++) {
        step(f, from, to, coefficient, done, f->factor[i]);
        done *= f->factor[i];
        double *const other = from;
        from = to;
        to = other;
    }
    split(f, from, power);
}
