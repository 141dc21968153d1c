/* Signs become parts of words, and words get plausible lengths, by the rules of the published program (openai/whisper, timing.py), but within their
 * pieces; and words follow each other. */
#include <math.h>
#include <stdlib.h>

#include "ggl/alloc.h"
#include "speech_words.h"
#include "word_split.h"

static const char before[] = "\"'\u201c\u00bf([{-";
static const char after[] = "\"'.\u3002,\uff0c!\uff01?\uff1f:\uff1a\u201d)]}\u3001";
static const char sentence_ends[] = ".\u3002!\uff01?\uff1f";

static const char *text_of(const speech_words *w, const speech_word *x) {
    return w->text + x->text;
}

static bool is_of(const char *list, const speech_words *w, const speech_word *x) {
    return llm_word_is_of(list, text_of(w, x), x->n_text);
}

/* --- how long words are ------------------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the words that take any time, at most 0.7 s. None: 0. */
static double usual_length(const speech_words *w, double *length) {
    size_t n = 0;
    for (size_t k = 0; k < w->n; k++) {
        length[n] = w->word[k].end - w->word[k].start;
        n += length[n] != 0;
    }
    if (n == 0)
        return 0;
    qsort(length, n, sizeof *length, compare);
    return fmin(0.7, (length[(n - 1) / 2] + length[n / 2]) / 2);
}

/* At ends of sentences, no word is longer than twice the usual length. */
static void shorten_at_ends(speech_words *w, double most) {
    for (size_t k = 1; most > 0 && k < w->n; k++) {
        speech_word *x = &w->word[k];
        if (!(x->end - x->start > most))
            continue;
        if (is_of(sentence_ends, w, x))
            x->end = x->start + most;
        else if (is_of(sentence_ends, w, x - 1))
            x->start = x->end - most;
    }
}

/* --- signs -------------------------------------------------------------------------------------- */

/* Signs that open, such as quotes, become the beginning of the word behind them. */
static void join_openers(speech_words *w, const speech_piece *p) {
    speech_word *const word = w->word + p->first;
    for (size_t k = p->n_words, next = k - 1; k-- > 1;) { /* word k - 1, and the one behind it */
        speech_word *x = &word[k - 1], *y = &word[next];
        const char *s = text_of(w, x);
        size_t n = x->n_text;
        const bool has_space = n > 0 && *s == ' ';
        llm_word_trim(&s, &n);
        if (!has_space || !llm_word_is_of(before, s, n)) {
            next = k - 1;
            continue;
        }
        y->text = x->text;
        y->n_text += x->n_text;
        x->n_text = 0;
    }
}

/* Signs that close become the end of the word before them. */
static void join_closers(speech_words *w, const speech_piece *p) {
    speech_word *const word = w->word + p->first;
    for (size_t k = 1, last = 0; k < p->n_words; k++) {
        speech_word *x = &word[last], *y = &word[k];
        const bool ends_in_space = x->n_text > 0 && text_of(w, x)[x->n_text - 1] == ' ';
        if (ends_in_space || !is_of(after, w, y)) {
            last = k;
            continue;
        }
        x->text = x->n_text > 0 ? x->text : y->text;
        x->n_text += y->n_text;
        y->n_text = 0;
    }
}

/* --- pieces ------------------------------------------------------------------------------------- */

static double rounded(double seconds) {
    return floor(100 * seconds + 0.5) / 100;
}

/* After a pause, the first two words are not longer than twice the usual length each. */
static void shorten_first(speech_word *x, size_t n, double usual, double last_end) {
    const double most = 2 * usual;
    speech_word *y = n > 1 ? x + 1 : NULL;
    if (!(x->end - last_end > 4 * usual) ||
        !(x->end - x->start > most || (y && y->end - x->start > 2 * most)))
        return;
    if (y && y->end - y->start > most)
        x->end = y->start = fmax(y->end / 2, y->end - most);
    x->start = fmax(0, x->end - most);
}

/* Words that are much longer than their piece begin and end with it. */
static void fit(const speech_piece *p, speech_word *first, speech_word *last, double usual) {
    if (p->start < first->end && p->start - 0.5 > first->start)
        first->start = fmax(0, fmin(first->end - usual, p->start));
    if (p->end > last->start && p->end + 0.5 < last->end)
        last->end = fmax(last->start + usual, p->end);
}

/* Moves the words of the piece to *n_kept, without those that are parts of others. */
static void take(speech_words *w, double begin, speech_piece *p, size_t *n_kept) {
    const size_t from = p->first, n = p->n_words;
    p->first = *n_kept;
    for (size_t k = from; k < from + n; k++) {
        speech_word x = w->word[k];
        if (x.n_text == 0)
            continue;
        x.start = rounded(begin + x.start);
        x.end = rounded(begin + x.end);
        w->word[(*n_kept)++] = x;
    }
    p->n_words = *n_kept - p->first;
}

/* Lets words begin where the one before them ended, at `from`, or later, and end by the limit. */
static void put_in_order(speech_word *x, size_t n, double from, double limit) {
    for (size_t k = 0; k < n; from = x[k++].end) {
        x[k].start = fmax(from, fmin(x[k].start, limit));
        x[k].end = fmax(x[k].start, fmin(x[k].end, limit));
    }
}

ggl_status llm_speech_words_place(speech_words *w, double begin, double limit, speech_piece *piece,
                                  size_t n, double *last_end, ggl_error *err) {
    double *length = ggl_calloc(w->n + 1, sizeof *length);
    if (!length)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the times of words");
    const double usual = usual_length(w, length);
    ggl_free(length);
    shorten_at_ends(w, 2 * usual);
    size_t n_kept = 0;
    for (size_t k = 0; k < n; k++) {
        speech_piece *p = &piece[k];
        if (p->n_words == 0)
            continue;
        join_openers(w, p);
        join_closers(w, p);
        take(w, begin, p, &n_kept);
        speech_word *first = w->word + p->first, *last = first + p->n_words - 1;
        shorten_first(first, p->n_words, usual, *last_end);
        fit(p, first, last, usual);
        put_in_order(first, p->n_words, *last_end, limit);
        p->start = first->start;
        *last_end = p->end = last->end;
    }
    w->n = n_kept;
    return GGL_OK;
}
