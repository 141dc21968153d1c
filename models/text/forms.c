/* Forms of Unicode: NFC, NFD, NFKC and NFKD (UAX 15), a character after the other. */
#include "forms.h"

#include <stdlib.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/steps.h"
#include "unicode.h"

/* A character that is decomposed, and its place among those of the text. */
struct unicode_part {
    uint32_t c, place;
    uint8_t combining;
    bool zero;
    bool own; /* it is the first one that a character of the text became */
};
typedef struct unicode_part part;
typedef unicode_former former;

static int by_class(const void *a, const void *b) {
    const part *x = a, *y = b;
    if (x->combining != y->combining)
        return x->combining < y->combining ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Puts the marks of a run into their order; equal ones keep theirs. */
static void sort_run(part *run, size_t n) {
    const size_t from = n > 0 && run[0].combining == 0;
    bool sorted = true;
    for (size_t i = from + 1; i < n; i++)
        sorted = sorted && run[i].combining >= run[i - 1].combining;
    if (!sorted)
        qsort(run + from, n - from, sizeof *run, by_class);
}

/* Makes a character of two. In the library it stands for the first character of the text that is in it. */
static void unite(part *a, const part *b, uint32_t c) {
    a->c = c;
    a->zero = a->own || !b->own ? a->zero : b->zero;
    a->own = a->own || b->own;
}

/* Joins characters of a run with its first one (UAX 15); returns how many are left. */
static size_t compose_run(part *run, size_t n) {
    size_t kept = 0, starter = 0;
    bool has_starter = false;
    unsigned last =
        0; /* the class of the character before, of those that stay behind the starter */
    for (size_t i = 0; i < n; i++) {
        GGL_STEPS(1);
        const bool blocked = kept > starter + 1 && last >= run[i].combining;
        const uint32_t joined =
            has_starter && !blocked ? llm_unicode_compose(run[starter].c, run[i].c) : 0;
        if (joined) {
            unite(&run[starter], &run[i], joined);
            continue;
        }
        if (run[i].combining == 0) {
            starter = kept;
            has_starter = true;
        }
        last = run[i].combining;
        run[kept++] = run[i];
    }
    return kept;
}

static void settle_run(former *f) {
    sort_run(f->run, f->n);
    f->n = f->composes ? compose_run(f->run, f->n) : f->n;
}

/* Writes a run that is settled. */
static bool end_run(former *f) {
    for (size_t i = 0; i < f->n; i++)
        if (!f->put(f->ctx, f->run[i].c, f->run[i].zero))
            return false;
    f->n = 0;
    return true;
}

/* Adds a character of a decomposed text. */
static bool add_part(former *f, uint32_t c, bool zero, bool own) {
    const unsigned combining = c < 0x300 || c >= 0x110000 ? 0 : llm_unicode_combining(c);
    if (combining == 0 && f->n > 0) {
        settle_run(f);
        /* vowels and ends of Hangul, and a few others, join the character before though they combine with none */
        const bool may_join = f->composes && f->n == 1 && f->run[0].combining == 0;
        const uint32_t joined = may_join ? llm_unicode_compose(f->run[0].c, c) : 0;
        if (joined) {
            unite(&f->run[0], &(part){.zero = zero, .own = own}, joined);
            return true;
        }
        if (!end_run(f))
            return false;
    }
    if (f->n == f->cap && !ggl_grow(&f->run, &f->cap, f->n + 1, sizeof *f->run))
        return false;
    f->run[f->n] = (part){c, (uint32_t)f->n, (uint8_t)combining, zero, own};
    f->n++;
    return true;
}

bool llm_form_add(unicode_former *f, uint32_t c, bool zero) {
    uint32_t canonical[UNICODE_MOST_PARTS];
    int n = 0;
    const uint32_t *parts =
        f->compatible && c >= 0xa0 ? llm_unicode_decompose_compatible(c, &n) : NULL;
    if (!parts) {
        canonical[0] = c;
        n = c < 0xc0 || c >= 0x110000 ? 1 : llm_unicode_decompose(c, canonical);
        parts = canonical;
    }
    for (int i = 0; i < n; i++)
        if (!add_part(f, parts[i], zero, i == 0))
            return false;
    return true;
}

bool llm_form_end(unicode_former *f) {
    settle_run(f);
    const bool ok = end_run(f);
    ggl_free(f->run);
    f->run = NULL;
    f->n = f->cap = 0;
    return ok;
}

/* --- a whole text --------------------------------------------------------------------------------- */

/* A text that grows. */
typedef struct written {
    char *s;
    size_t n, cap;
} written;

static bool put(void *ctx, uint32_t c, bool zero) {
    written *w = ctx;
    (void)zero;
    if (!ggl_grow(&w->s, &w->cap, w->n + 4, 1))
        return false;
    if (c >= 0x110000) /* a byte that is no character */
        w->s[w->n++] = (char)(c - 0x110000);
    else
        w->n += llm_unicode_encode(c, w->s + w->n);
    return true;
}

bool llm_compose_text(const char *text, size_t n, char **out, size_t *n_out) {
    written w = {0};
    unicode_former f = {.composes = true, .put = put, .ctx = &w};
    bool ok = true;
    for (ggl_str left = {text, n}; left.n > 0 && ok;)
        ok = llm_form_add(&f, llm_take_char(&left), false);
    ok = llm_form_end(&f) && ok;
    if (!ok) {
        ggl_free(w.s);
        w = (written){0};
    }
    *out = w.s;
    *n_out = w.n;
    return ok;
}
