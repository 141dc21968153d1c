/* The pieces with the highest sum of scores (Viterbi's algorithm), as models/text/best_path.c finds them: of a text that is normalized
 * first (tokenizer_unigram.c), and from the end of a text to its beginning (tokenizer_plamo2.c). Instead of an automaton, a walk through the
 * sorted keys finds the pieces that begin at a place, so a place takes at most as many steps as the longest piece has bytes. */
#include <math.h>

#include "encoder.h"
#include "../models/text/charsmap.h"
#include "../models/text/fold.h"

#define NONE UINT32_MAX

/* The best path to a place. */
typedef struct step {
    double score;
    uint32_t other; /* the place before it, and then the one after it; NONE: no path leads here */
    int32_t id;     /* the token between the two; -1: a character that is no piece */
} step;

/* --- normalized text -------------------------------------------------------------------------- */

typedef struct unigram {
    small_encoder *e;
    const small_words *w;
    char *text; /* normalized; a space stands for U+2581 */
    size_t n, cap;
    bool started, space_waits;
    bool after_unknown;           /* the last token was the unknown one */
    step *step;                   /* by place, counted from `start` */
    size_t start, most, cap_step; /* steps [0, most] are set */
} unigram;

static bool put(unigram *u, const char *c, size_t n) {
    if (!ggl_grow(&u->text, &u->cap, u->n + n, 1))
        return false;
    memcpy(u->text + u->n, c, n);
    u->n += n;
    return true;
}

static bool add_character(unigram *u, const char *c, size_t n, bool is_mark) {
    const bool space = *c == ' ';
    if (space && u->w->merge_spaces) {
        u->space_waits = u->started;
        return true;
    }
    if ((!u->started ? u->w->add_space : u->space_waits) && !put(u, " ", 1))
        return false;
    u->started = true;
    u->space_waits = false;
    return is_mark ? put(u, " ", 1) : put(u, c, n);
}

/* Replaces strings of the map, and bytes that are not UTF-8 by U+FFFD. */
static bool normalize(unigram *u, const char *text, size_t n) {
    bool is_mark;
    for (size_t i = 0, used; i < n; i += used) {
        ggl_str c = {text + i, 0};
        used = 0;
        if (u->w->map && llm_charsmap_find(u->w->map, text + i, n - i, &used, &c, NULL) != GGL_OK)
            return false;
        if (used == 0) {
            used = small_character(text + i, n - i, &is_mark);
            c = used == 1 && (unsigned char)text[i] >= 0x80 ? (ggl_str){"\xef\xbf\xbd", 3}
                                                            : (ggl_str){text + i, used};
        }
        for (size_t k = 0, len; k < c.n; k += len) {
            len = small_character(c.s + k, c.n - k, &is_mark);
            if (!add_character(u, c.s + k, len, is_mark))
                return false;
        }
    }
    return true;
}

/* --- its best pieces -------------------------------------------------------------------------- */

/* Offers a path to place `to` by a token from place `from`. Of equal paths the one with the longest last token counts: it comes first. */
static bool offer(unigram *u, size_t from, size_t to, double score, int32_t id) {
    if (!ggl_grow(&u->step, &u->cap_step, to + 1, sizeof *u->step))
        return false;
    while (u->most < to)
        u->step[++u->most].other = NONE;
    step *s = &u->step[to];
    score += u->step[from].score;
    if (s->other == NONE || score > s->score)
        *s = (step){score, (uint32_t)from, id};
    return true;
}

static bool emit(unigram *u, int32_t id, const char *s, size_t n) {
    const bool unknown = id < 0 && !small_has_bytes(u->w, s, n),
               again = unknown && u->after_unknown;
    u->after_unknown = unknown;
    if (id >= 0)
        return small_append(u->e, id);
    return again || small_append_bytes(u->e, s, n);
}

/* Emits the tokens of the best path to place `end`, where the next path begins. */
static bool give_out(unigram *u, size_t end) {
    uint32_t next = NONE, at = (uint32_t)(end - u->start);
    while (at > 0) { /* each place learns the next one */
        const uint32_t before = u->step[at].other;
        u->step[at].other = next;
        next = at;
        at = before;
    }
    for (size_t from = 0; next != NONE; next = u->step[next].other) {
        if (!emit(u, u->step[next].id, u->text + u->start + from, next - from))
            return false;
        from = next;
    }
    u->start = end;
    u->most = 0;
    return true;
}

/* Walks from place p as far as pieces go; *reach becomes the end of that, if it is further. With `len`, the bytes of the character at
 * p, offers the pieces, and the character if it is none. */
static bool walk_from(unigram *u, size_t p, size_t len, size_t *reach) {
    const small_keys *k = &u->w->pieces;
    small_walk at = small_walk_begin(k);
    bool known = false;
    size_t i = p;
    for (; i < u->n && small_walk_on(u->w, k, &at, (unsigned char)u->text[i]); i++) {
        const int32_t id = len > 0 ? small_walk_token(u->w, k, &at) : -1;
        known = known || (id >= 0 && i + 1 - p == len);
        if (id >= 0 && !offer(u, p - u->start, i + 1 - u->start, (double)u->w->score[id], id))
            return false;
    }
    *reach = i > *reach ? i : *reach;
    return len == 0 || known || offer(u, p - u->start, p + len - u->start, u->w->unknown_score, -1);
}

static bool cut(unigram *u) {
    size_t reach = 0; /* the end of all beginnings of pieces that start before p */
    bool is_mark;
    if (!ggl_grow(&u->step, &u->cap_step, 1, sizeof *u->step))
        return false;
    for (size_t p = 0, len; p < u->n; p += len) {
        len = small_character(u->text + p, u->n - p, &is_mark);
        /* no piece spans this place: sums begin again, as those of best_path.c, which would be rounded otherwise */
        if (p > u->start && reach < p + len && !give_out(u, p))
            return false;
        if (p == u->start)
            u->step[0] = (step){.id = -1};
        for (size_t i = p; i < p + len; i++)
            if (!walk_from(u, i, i == p ? len : 0, &reach))
                return false;
    }
    return u->n == u->start || give_out(u, u->n);
}

bool small_encode_best(small_encoder *e, const char *text, size_t n) {
    const folding fold = {e->w->strip, e->w->lower};
    unigram u = {.e = e, .w = e->w};
    char *folded = NULL;
    size_t cap = 0;
    if (fold.strip || fold.lower) {
        if (!llm_fold_text(&fold, text, n, &folded, &n, &cap))
            return false;
        text = folded;
    }
    return normalize(&u, text, n) && cut(&u);
}

/* --- from the end ----------------------------------------------------------------------------- */

/* Returns the length of the last character of s[0..n), n > 0. */
static size_t last_length(const char *s, size_t n) {
    for (size_t len = 1; len <= 4 && len <= n; len++)
        if (ggl_utf8_length(s + n - len, len) == len)
            return len;
    return 1;
}

bool small_encode_best_back(small_encoder *e, const char *text, size_t n) {
    static const double unit = 1e4, unknown = -1000 * 1e4;
    const small_keys *k = &e->w->pieces;
    step *s = ggl_calloc(n + 1, sizeof *s); /* other 0: no path leads here; s[n] is the end */
    if (!s)
        return false;
    for (size_t p = n; p > 0;) {
        const size_t len = last_length(text, p);
        step best = {.id = -1};
        p -= len;
        small_walk at = small_walk_begin(k);
        for (size_t i = p; i < n && small_walk_on(e->w, k, &at, (unsigned char)text[i]); i++) {
            const int32_t id = small_walk_token(e->w, k, &at);
            if (id < 0 || (i + 1 < n && s[i + 1].other == 0))
                continue;
            const double score = s[i + 1].score + round((double)e->w->score[id] * unit);
            if (best.other == 0 || score >= best.score) /* of equal ones the longest */
                best = (step){score, (uint32_t)(i + 1), id};
        }
        const double score = s[p + len].score + unknown;
        s[p] =
            best.other == 0 || score > best.score ? (step){score, (uint32_t)(p + len), -1} : best;
    }
    for (size_t i = 0; i < n; i = s[i].other)
        if (!(s[i].id >= 0 ? small_append(e, s[i].id)
                           : small_append_bytes(e, text + i, s[i].other - i)))
            return false;
    return true;
}
