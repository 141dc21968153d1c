/* A regular expression matcher: a backtracking machine over code points, whose properties are
 * looked up once.
 *
 * Its time must be linear in the text:
 *
 * A repeated character class is a single instruction, a run, and all places to back up to after it
 * are a single stack entry. A run may turn out long but useless, such as the spaces of \s+$ before
 * a word, and would be scanned again from each of its characters. Therefore each run instruction
 * remembers up to where its class matches, and for a range of positions that the instructions after
 * it fail there; both depend only on the position.
 *
 * A pattern may also try the same choice at the same place again and again, such as the loop of (?:a|a)*b in each run of a's.
 * Where a text makes it do so, it notes the choices that failed; these depend only on the position, too.
 *
 * A lookahead with a loop, such as "digits in threes up to the end of the number", would scan to
 * the end of the number from each digit. Therefore it is computed for all positions of a piece
 * at once, from right to left. For each position p there is a bit per instruction: the
 * lookahead's end can be reached from this instruction at p. Instructions that consume a
 * character use the bits of p + 1, the others those of p. */
#include <string.h>

#include "ggl/internal/steps.h"
#include "pretok_impl.h"
#include "tokenizer_impl.h"
#include "unicode.h"

static bool set_has(const set *s, uint32_t c, unsigned properties) {
    return c < 128 ? s->ascii[c / 64] >> (c % 64) & 1 : llm_pretok_set_holds(s, c, properties);
}

enum { RETRY_SPLIT = -1, RETRY_NOTE = -2 };

/* Where to continue after a failure: at pc, from position `last`, then last - 1, down to
 * `first`. `tried` is the position that failed before. */
typedef struct retry {
    int32_t pc,
        run; /* run: its index, RETRY_SPLIT, or RETRY_NOTE: nothing to try, the split at pc has failed */
    uint32_t first, last, tried;
} retry;

/* What a run instruction knows about the piece [first, last). Its class matches in [holds_first,
 * holds_last) but not at holds_last. The instructions after it fail at fails_first .. fails_last
 * (no positions if first > last). */
typedef struct run_memory {
    bool known;
    uint32_t first, last, holds_first, holds_last, fails_first, fails_last;
} run_memory;

/* Results of a lookahead for each position of the piece [first, last]: a byte each. */
typedef struct reach {
    uint8_t *holds;
    size_t cap;
    uint32_t first, last;
    bool known;
} reach;

/* Splits that fail in the piece [first, last): a bit for each of them and each position, once `spent` is more than a pattern needs that
 * tries nothing twice. */
typedef struct split_memory {
    bool known, notes;
    uint32_t first, last;
    size_t spent; /* choices that were taken back */
    uint64_t *failed;
    size_t cap;
} split_memory;

enum { SPENT_PER_CHARACTER = 64, MOST_NOTES = 1 << 28 }; /* MOST_NOTES: bytes */

typedef struct runner {
    const pretok_program *const *programs;
    int n_programs;
    const char *text; /* start of the characters not yet emitted as words */
    ggl_status (*word)(void *context, const char *s, size_t n);
    void *context;
    /* a window of the text */
    const char *whole;
    size_t n, read; /* bytes; read: those that were in a window */
    size_t cap_c, cap_properties;
    uint32_t *c; /* code points; STRAY + byte for an invalid byte */
    uint16_t *properties;
    uint32_t n_window;       /* characters */
    const pretok_program *p; /* the current program, and the characters that it sees */
    uint32_t first, last;
    reach *reaches;
    run_memory *runs;
    split_memory *splits;
    retry *stack;
    size_t n_stack, cap_stack;
    bool touched; /* what was found depends on where the characters end */
    bool no_memory;
} runner;

static bool match(runner *r, int32_t pc, uint32_t at, uint32_t *end);

static bool is_word(const runner *r, uint32_t at) {
    return (r->properties[at] & UNICODE_WORD) ||
           (r->c[at] < 0x100 && r->c[at] > 0 &&
            memchr(llm_pretok_word_numbers, (int)r->c[at], sizeof llm_pretok_word_numbers));
}

/* True at \b: exactly one of the neighbors is a word character. */
static bool on_border(runner *r, uint32_t at) {
    r->touched |= at == r->last;
    bool before = at > r->first && is_word(r, at - 1);
    bool behind = at < r->last && is_word(r, at);
    return before != behind;
}

/* As Oniguruma: a newline at the end of the text begins no line. */
static bool on_line_begin(runner *r, uint32_t at) {
    r->touched |= at == r->last;
    return at == r->first || (at < r->last && r->c[at - 1] == '\n');
}

static bool on_line_end(runner *r, uint32_t at) {
    r->touched |= at == r->last;
    return at == r->last || r->c[at] == '\n';
}

static bool one_holds(runner *r, const instruction *i, uint32_t at) {
    if (at >= r->last) {
        r->touched = true;
        return false;
    }
    return i->op == OP_CHAR ? r->c[at] == (uint32_t)i->a
                            : set_has(&r->p->sets[i->a], r->c[at], r->properties[at]);
}

static bool lookahead(runner *r, int32_t pc, uint32_t at);

/* Returns bits for position `at`: bit i is set if the lookahead's end can be reached from
 * instruction pc + i. next: the bits for at + 1. */
static uint64_t reach_bits(runner *r, int32_t pc, int n, uint32_t at, uint64_t next) {
    uint64_t bits = 0, before;
    do { /* repeated because loops jump back */
        before = bits;
        GGL_STEPS(n);
        for (int i = n - 1; i >= 0; i--) {
            const instruction *k = &r->p->code[pc + i];
            bool holds = false;
            switch ((op)k->op) {
            case OP_MATCH:
                holds = true;
                break;
            case OP_CHAR:
            case OP_SET:
                holds = (next >> (i + 1) & 1) && one_holds(r, k, at);
                break;
            case OP_SPLIT:
                holds = (bits >> (i + k->a) & 1) || (bits >> (i + k->b) & 1);
                break;
            case OP_JUMP:
                holds = bits >> (i + k->a) & 1;
                break;
            case OP_LOOKAHEAD:
                holds = (bits >> (i + 1 + k->a) & 1) && lookahead(r, pc + i, at);
                break;
            case OP_BEGIN:
                holds = at == r->first && (bits >> (i + 1) & 1);
                break;
            case OP_END:
                holds = at == r->last && (bits >> (i + 1) & 1);
                break;
            case OP_LINE_BEGIN:
                holds = on_line_begin(r, at) && (bits >> (i + 1) & 1);
                break;
            case OP_LINE_END:
                holds = on_line_end(r, at) && (bits >> (i + 1) & 1);
                break;
            case OP_BORDER:
                holds = on_border(r, at) && (bits >> (i + 1) & 1);
                break;
            case OP_RUN: /* never inside a lookahead */
                break;
            }
            bits |= (uint64_t)holds << i;
        }
    } while (bits != before);
    return bits;
}

/* Evaluates a lookahead with a loop, by a table over all positions of the piece. */
static bool looping_holds(runner *r, const instruction *k, int32_t pc, uint32_t at) {
    reach *t = &r->reaches[k->i_reach - 1];
    r->touched = true;
    if (!t->known || t->first != r->first || t->last != r->last) {
        size_t n = (size_t)(r->last - r->first) + 1;
        if (n > t->cap && !ggl_grow(&t->holds, &t->cap, n, 1)) {
            r->no_memory = true;
            return false;
        }
        uint64_t bits = 0;
        for (uint32_t i = r->last + 1; i-- > r->first;) {
            bits = reach_bits(r, pc + 1, k->a, i, bits);
            t->holds[i - r->first] = bits & 1;
        }
        t->known = true;
        t->first = r->first;
        t->last = r->last;
    }
    return t->holds[at - r->first];
}

static bool lookahead(runner *r, int32_t pc, uint32_t at) {
    const instruction *k = &r->p->code[pc];
    uint32_t end;
    bool holds;
    if (k->i_reach)
        holds = looping_holds(r, k, pc, at);
    else if (k->a == 2 && (k[1].op == OP_SET || k[1].op == OP_CHAR))
        holds = one_holds(r, &k[1], at);
    else
        holds = match(r, pc + 1, at, &end);
    return holds != k->no;
}

static bool push(runner *r, retry t) {
    if (r->n_stack == r->cap_stack &&
        !ggl_grow(&r->stack, &r->cap_stack, r->n_stack + 1, sizeof *r->stack)) {
        r->no_memory = true;
        return false;
    }
    r->stack[r->n_stack++] = t;
    return true;
}

/* Returns what a run instruction knows, forgetting knowledge of another piece. */
static run_memory *memory_of(runner *r, int32_t run) {
    run_memory *m = &r->runs[run];
    if (!m->known || m->first != r->first || m->last != r->last)
        *m = (run_memory){.known = true, .first = r->first, .last = r->last, .fails_first = 1};
    return m;
}

/* Returns how many characters the run takes from `at`. */
static uint32_t run_length(runner *r, const instruction *k, uint32_t at) {
    const set *s = &r->p->sets[k->a];
    uint32_t n = 0, most = r->last - at < k->max ? r->last - at : k->max;
    run_memory *m = k->max == NO_LIMIT ? memory_of(r, k->b) : NULL;
    if (m && at >= m->holds_first && at < m->holds_last) {
        r->touched |= m->holds_last == r->last;
        return m->holds_last - at;
    }
    while (n < most && set_has(s, r->c[at + n], r->properties[at + n]))
        n++;
    GGL_STEPS(n);
    r->touched |= at + n == r->last;
    if (m) {
        m->holds_first = at;
        m->holds_last = at + n;
    }
    return n;
}

/* Records that the instructions after the run fail at `at`. */
static void remember_failure(run_memory *m, uint32_t at) {
    if (m->fails_first > m->fails_last) {
        m->fails_first = m->fails_last = at;
    } else if (at + 1 == m->fails_first) {
        m->fails_first = at;
    } else if (at == m->fails_last + 1) {
        m->fails_last = at;
    } else if (at < m->fails_first || at > m->fails_last) {
        m->fails_first = m->fails_last = at; /* not adjacent: forget the old range */
    }
}

static size_t note_of(const runner *r, const instruction *k, uint32_t at) {
    return (size_t)k->min * ((size_t)(r->last - r->first) + 1) + (at - r->first);
}

static bool notes_splits(const runner *r) {
    const split_memory *m = r->splits;
    return m->notes && m->first == r->first && m->last == r->last;
}

static bool split_failed(const runner *r, const instruction *k, uint32_t at) {
    const size_t bit = note_of(r, k, at);
    return r->splits->failed[bit / 64] >> (bit % 64) & 1;
}

static void note_failure(runner *r, const instruction *k, uint32_t at) {
    const size_t bit = note_of(r, k, at);
    if (notes_splits(r))
        r->splits->failed[bit / 64] |= (uint64_t)1 << (bit % 64);
}

/* Counts a choice that was taken back, and begins to note them if there are too many. */
static void count_spent(runner *r) {
    split_memory *m = r->splits;
    const size_t n = (size_t)(r->last - r->first) + 1;
    if (!m->known || m->first != r->first || m->last != r->last) {
        m->known = true;
        m->notes = false;
        m->first = r->first;
        m->last = r->last;
        m->spent = 0;
    }
    if (m->notes || ++m->spent < SPENT_PER_CHARACTER * n)
        return;
    const size_t words = ((size_t)r->p->n_split * n + 63) / 64;
    if (words > MOST_NOTES / 8 ||
        (words > m->cap && !ggl_grow(&m->failed, &m->cap, words, sizeof *m->failed))) {
        r->no_memory = true;
        return;
    }
    memset(m->failed, 0, words * sizeof *m->failed);
    GGL_STEPS(words);
    m->notes = true;
}

/* Pops the next place to try. False if none is left. */
static bool back(runner *r, size_t base, int32_t *pc, uint32_t *at) {
    while (r->n_stack > base && !r->no_memory) {
        GGL_STEPS(1);
        retry *t = &r->stack[r->n_stack - 1];
        bool more = true;
        if (t->run == RETRY_NOTE) {
            note_failure(r, &r->p->code[t->pc], t->last);
            r->n_stack--;
            continue;
        }
        if (t->run == RETRY_SPLIT) {
            count_spent(r);
        } else {
            run_memory *m = memory_of(r, t->run);
            remember_failure(m, t->tried);
            if (t->last >= m->fails_first && t->last <= m->fails_last) {
                more = m->fails_first > t->first;
                t->last = more ? m->fails_first - 1 : t->last;
            }
        }
        *pc = t->pc;
        *at = t->tried = t->last;
        if (!more || t->last-- == t->first)
            r->n_stack--;
        if (more)
            return true;
    }
    return false;
}

/* Runs the program from pc at position `at`; *end is where the match ends. The first successful
 * path counts, as in Perl. False: no match. */
static bool match(runner *r, int32_t pc, uint32_t at, uint32_t *end) {
    const size_t base = r->n_stack;
    for (;;) {
        const instruction *k = &r->p->code[pc];
        bool ok = true;
        GGL_STEPS(1);
        switch ((op)k->op) {
        case OP_MATCH:
            r->n_stack = base;
            *end = at;
            return true;
        case OP_CHAR:
        case OP_SET:
            ok = one_holds(r, k, at++);
            pc++;
            break;
        case OP_RUN: {
            uint32_t n = run_length(r, k, at);
            ok = n >= k->min;
            if (ok && !k->no && n > k->min)
                ok = push(r, (retry){pc + 1, k->b, at + k->min, at + n - 1, at + n});
            at += n;
            pc++;
            break;
        }
        case OP_SPLIT:
            if (notes_splits(r))
                ok = !split_failed(r, k, at) && push(r, (retry){pc, RETRY_NOTE, at, at, at});
            ok = ok && push(r, (retry){pc + k->b, RETRY_SPLIT, at, at, at});
            pc += k->a;
            break;
        case OP_JUMP:
            pc += k->a;
            break;
        case OP_LOOKAHEAD:
            ok = lookahead(r, pc, at);
            pc += 1 + k->a;
            break;
        case OP_BEGIN:
            ok = at == r->first;
            pc++;
            break;
        case OP_END:
            ok = at == r->last;
            r->touched |= ok;
            pc++;
            break;
        case OP_LINE_BEGIN:
            ok = on_line_begin(r, at);
            pc++;
            break;
        case OP_LINE_END:
            ok = on_line_end(r, at);
            pc++;
            break;
        case OP_BORDER:
            ok = on_border(r, at);
            pc++;
            break;
        }
        if (!ok && !back(r, base, &pc, &at)) {
            r->n_stack = base;
            return false;
        }
    }
}

static size_t utf8_size(uint32_t c) {
    return c < 0x80 || c >= STRAY ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static ggl_status check_length(size_t n, ggl_error *err) {
    return n <= UINT32_MAX / 4
               ? GGL_OK
               : ggl_fail(err, GGL_LIMIT,
                          "a text of %zu bytes is too long, at most %u are supported", n,
                          UINT32_MAX / 4);
}

/* --- windows ---------------------------------------------------------------------------------- */

/* The matcher sees a window of the text. A match that depends on where the window ends is looked for again in one that goes further. */
enum { WINDOW = 1 << 16 }; /* characters, at first */

/* Reads characters until the window has `most` of them, or the text ends. False: out of memory. */
static bool fill(runner *r, size_t most) {
    const size_t left = r->n - r->read,
                 want = most - r->n_window < left ? most : r->n_window + left;
    if ((want > r->cap_c && !ggl_grow(&r->c, &r->cap_c, want, sizeof *r->c)) ||
        (want > r->cap_properties &&
         !ggl_grow(&r->properties, &r->cap_properties, want, sizeof *r->properties)))
        return false;
    while (r->read < r->n && r->n_window < most) {
        const char *s = r->whole + r->read;
        const size_t len = (unsigned char)*s < 0x80 ? 1 : llm_utf8_length(s, r->n - r->read);
        const uint32_t c = llm_pretok_decode(s, len);
        r->c[r->n_window] = c;
        r->properties[r->n_window++] = (uint16_t)llm_unicode_properties(c < STRAY ? c : 0xfffd);
        r->read += len;
    }
    return true;
}

/* Moves the window on, so that it begins with the character before `keep`, and goes further. Returns how many characters are gone from its
 * beginning; UINT32_MAX: out of memory. */
static uint32_t move_on(runner *r, uint32_t keep) {
    const uint32_t gone = keep > 0 ? keep - 1 : 0;
    r->n_window -= gone;
    memmove(r->c, r->c + gone, r->n_window * sizeof *r->c);
    memmove(r->properties, r->properties + gone, r->n_window * sizeof *r->properties);
    return fill(r, r->n_window < WINDOW / 2 ? WINDOW : 2 * (size_t)r->n_window) ? gone : UINT32_MAX;
}

/* Forgets what is known of other characters. */
static void forget(reach *reaches, int n_reach, run_memory *runs, int n_run, split_memory *splits) {
    for (int i = 0; i < n_reach; i++)
        reaches[i].known = false;
    for (int i = 0; i < n_run; i++)
        runs[i].known = false;
    splits->known = splits->notes = false;
}

/* --- splitting -------------------------------------------------------------------------------- */

/* What programs[level] and later ones know. */
typedef struct level {
    reach *reaches;
    run_memory *runs;
    split_memory *splits;
} level;

static level below(const runner *r, int k, level at) {
    return (level){at.reaches + r->programs[k]->n_reach, at.runs + r->programs[k]->n_run,
                   at.splits + 1};
}

/* Looks for a match of programs[k] at i, in the characters [first, last). */
static bool match_at(runner *r, int k, level at, uint32_t first, uint32_t last, uint32_t i,
                     uint32_t *end) {
    r->p = r->programs[k]; /* other levels have set their own */
    r->reaches = at.reaches;
    r->runs = at.runs;
    r->splits = at.splits;
    r->first = first;
    r->last = last;
    return match(r, 0, i, end);
}

/* Splits the characters [first, last) of the window, of which there is one at least unless k > 0, by programs[k] and then by the later ones. */
static ggl_status split(runner *r, int k, level at, uint32_t first, uint32_t last) {
    if (first == last)
        return GGL_OK;
    if (k == r->n_programs) {
        const char *start = r->text;
        for (uint32_t i = first; i < last; i++)
            r->text += utf8_size(r->c[i]);
        return r->word(r->context, start, (size_t)(r->text - start));
    }
    const level next = below(r, k, at);
    uint32_t from = first, end;
    ggl_status s = GGL_OK;
    for (uint32_t i = first; i < last && s == GGL_OK;) {
        const bool found = match_at(r, k, at, first, last, i, &end);
        if (r->no_memory)
            return GGL_NOMEM;
        if (found) {
            s = split(r, k + 1, next, from, i);
            from = i;
        }
        if (found && end > i && s == GGL_OK) {
            s = split(r, k + 1, next, i, end);
            from = end;
        }
        i = found && end > i ? end : i + 1;
    }
    return s == GGL_OK ? split(r, k + 1, next, from, last) : s;
}

/* Splits the whole text by programs[0], and then by the later ones. A piece that is not split yet stays in the window. */
static ggl_status split_windows(runner *r, level at, int n_reach, int n_run) {
    if (r->n_programs == 0)
        return r->word(r->context, r->whole, r->n);
    const level next = below(r, 0, at);
    uint32_t from = 0, end;
    ggl_status s = fill(r, WINDOW) ? GGL_OK : GGL_NOMEM;
    for (uint32_t i = 0; s == GGL_OK && (i < r->n_window || r->read < r->n);) {
        r->touched = i == r->n_window;
        const bool found = match_at(r, 0, at, 0, r->n_window, i, &end);
        if (r->no_memory)
            return GGL_NOMEM;
        if (r->touched && r->read < r->n) {
            const uint32_t gone = move_on(r, from);
            forget(at.reaches, n_reach, at.runs, n_run, at.splits);
            s = gone == UINT32_MAX ? GGL_NOMEM : GGL_OK;
            i -= gone;
            from -= gone;
            continue;
        }
        if (found) {
            s = split(r, 1, next, from, i);
            from = i;
        }
        if (found && end > i && s == GGL_OK) {
            s = split(r, 1, next, i, end);
            from = end;
        }
        i = found && end > i ? end : i + 1;
    }
    return s == GGL_OK ? split(r, 1, next, from, r->n_window) : s;
}

ggl_status llm_pretok_split(const pretok_program *const *programs, int n_programs, const char *text,
                            size_t n, ggl_status (*word)(void *context, const char *s, size_t n),
                            void *context, ggl_error *err) {
    runner r = {.programs = programs,
                .n_programs = n_programs,
                .text = text,
                .word = word,
                .context = context,
                .whole = text,
                .n = n};
    int n_reach = 0, n_run = 0;
    ggl_status s;
    if (n == 0)
        return GGL_OK;
    if ((s = check_length(n, err)) != GGL_OK)
        return s;
    for (int i = 0; i < n_programs; i++) {
        n_reach += programs[i]->n_reach;
        n_run += programs[i]->n_run;
    }
    level at = {ggl_calloc((size_t)n_reach, sizeof *at.reaches),
                ggl_calloc((size_t)n_run, sizeof *at.runs),
                ggl_calloc((size_t)n_programs, sizeof *at.splits)};
    s = at.reaches && at.runs && at.splits ? split_windows(&r, at, n_reach, n_run) : GGL_NOMEM;
    if (s == GGL_NOMEM)
        s = ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu bytes", n);
    for (int i = 0; at.reaches && i < n_reach; i++)
        ggl_free(at.reaches[i].holds);
    for (int i = 0; at.splits && i < n_programs; i++)
        ggl_free(at.splits[i].failed);
    ggl_free(at.reaches);
    ggl_free(at.runs);
    ggl_free(at.splits);
    ggl_free(r.c);
    ggl_free(r.properties);
    ggl_free(r.stack);
    return s;
}

/* --- all matches of one program ---------------------------------------------------------------- */

struct pretok_finder {
    runner r;
    split_memory splits;
    size_t cap_reaches, cap_runs;
};

pretok_finder *llm_pretok_finder_new(void) {
    return ggl_calloc(1, sizeof(pretok_finder));
}

void llm_pretok_finder_free(pretok_finder *f) {
    if (!f)
        return;
    for (size_t i = 0; i < f->cap_reaches; i++)
        ggl_free(f->r.reaches[i].holds);
    ggl_free(f->r.reaches);
    ggl_free(f->r.runs);
    ggl_free(f->splits.failed);
    ggl_free(f->r.c);
    ggl_free(f->r.properties);
    ggl_free(f->r.stack);
    ggl_free(f);
}

static bool begin_text(pretok_finder *f, const pretok_program *p, const char *text, size_t n) {
    runner *r = &f->r;
    const size_t n_reach = (size_t)p->n_reach, n_run = (size_t)p->n_run, before = f->cap_reaches;
    if ((n_reach > before &&
         !ggl_grow(&r->reaches, &f->cap_reaches, n_reach, sizeof *r->reaches)) ||
        (n_run > f->cap_runs && !ggl_grow(&r->runs, &f->cap_runs, n_run, sizeof *r->runs)))
        return false;
    for (size_t i = before; i < f->cap_reaches; i++)
        r->reaches[i] = (reach){0};
    r->splits = &f->splits;
    forget(r->reaches, p->n_reach, r->runs, p->n_run, r->splits);
    r->whole = text;
    r->n = n;
    r->read = 0;
    r->n_window = 0;
    r->p = p;
    r->first = 0;
    r->n_stack = 0;
    r->no_memory = false;
    return fill(r, WINDOW);
}

ggl_status llm_pretok_find(pretok_finder *f, const pretok_program *p, const char *text, size_t n,
                           pretok_found *found, void *context, ggl_error *err) {
    runner *r = &f->r;
    ggl_status s = check_length(n, err);
    if (s != GGL_OK)
        return s;
    bool ok = begin_text(f, p, text, n), after_match = false; /* a match ends at i */
    size_t at = 0;                                            /* the byte of character i */
    for (uint32_t i = 0, end; ok && s == GGL_OK && i <= r->n_window;) {
        r->last = r->n_window;
        r->touched = i == r->last;
        const bool matches = match(r, 0, i, &end) && (end > i || !after_match);
        ok = !r->no_memory;
        if (r->touched && r->read < n) {
            const uint32_t gone = move_on(r, i);
            forget(r->reaches, p->n_reach, r->runs, p->n_run, r->splits);
            ok = ok && gone != UINT32_MAX;
            i -= gone;
            continue;
        }
        const uint32_t next = matches && end > i ? end : i + 1;
        size_t to = at;
        for (uint32_t k = i; k < next && k < r->last; k++)
            to += utf8_size(r->c[k]);
        if (ok && matches)
            s = found(context, at, end > i ? to : at);
        after_match = matches && end > i;
        at = to;
        i = next;
    }
    return ok ? s : ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu bytes", n);
}
