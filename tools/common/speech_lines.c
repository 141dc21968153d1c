#include "speech_lines.h"

#include <string.h>

#include "ggl/internal/alloc.h"

enum { PAUSE = 3 }; /* seconds */

bool lines_are_wanted(const lines *l) {
    return l->most_words || l->most_width || l->most_lines || l->highlight;
}

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static int64_t characters(const char *s, size_t n) {
    int64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)s[i] & 0xc0) != 0x80;
    return count;
}

static bool append(lines *l, const char *s, size_t n) {
    if (!ggl_grow(&l->text, &l->cap_text, l->n_text + n + 1, 1)) {
        l->failed = true;
        return false;
    }
    for (size_t i = 0; i < n; i++) /* ends of lines are ours */
        l->text[l->n_text + i] = s[i] == '\n' || s[i] == '\r' ? ' ' : s[i];
    l->n_text += n;
    return true;
}

/* --- a subtitle --------------------------------------------------------------------------------- */

/* Calls put with the text in which word k is underlined. */
static void put_highlighted(lines *l, size_t k) {
    static const char begin[] = "<u>", end[] = "</u>";
    const line_word *w = &l->word[k];
    size_t n = 0, from = w->text;
    if (!ggl_grow(&l->shown, &l->cap_shown, l->n_text + 8, 1)) {
        l->failed = true;
        return;
    }
    while (from < w->text + w->n && is_space(l->text[from]))
        from++;
    const struct {
        const char *s;
        size_t n;
    } part[] = {{l->text, from},
                {begin, strlen(begin)},
                {l->text + from, w->text + w->n - from},
                {end, strlen(end)},
                {l->text + w->text + w->n, l->n_text - w->text - w->n}};
    for (size_t i = 0; i < sizeof part / sizeof *part; n += part[i++].n)
        memcpy(l->shown + n, part[i].s, part[i].n);
    l->put(l->ctx, w->start, w->end, l->shown, n);
}

/* Calls put for the words so far, of which one at least must show something: a subtitle is not empty. */
static void put_subtitle(lines *l) {
    if (l->n == 0 || l->failed)
        return;
    double last = l->word[0].start;
    l->n = l->n_text > 0 ? l->n : 0;
    if (!l->highlight && l->n > 0)
        l->put(l->ctx, last, l->word[l->n - 1].end, l->text, l->n_text);
    for (size_t k = 0; l->highlight && k < l->n && !l->failed; k++) {
        if (l->word[k].start > last) /* nothing is said in between */
            l->put(l->ctx, last, l->word[k].start, l->text, l->n_text);
        put_highlighted(l, k);
        last = l->word[k].end;
    }
    l->n = l->n_text = 0;
    l->n_lines = l->width = 0;
}

/* --- words -------------------------------------------------------------------------------------- */

/* Adds a word. ends: the subtitle ends before it, if it has words. */
static void add(lines *l, const llm_word *w, bool ends) {
    const char *s = w->text;
    size_t n = w->n;
    const bool flows = l->most_lines > 0, pauses = flows && w->start - l->last > PAUSE;
    const int64_t width = characters(s, n);
    const bool has_room = !l->most_width || l->width + width <= l->most_width;
    bool is_next = false; /* it begins another line of the subtitle */
    if (l->width > 0 && has_room && !pauses && !ends) {
        l->width += width;
    } else {
        for (; n > 0 && is_space(*s); s++)
            n--;
        while (n > 0 && is_space(s[n - 1]))
            n--;
        if (ends || (flows && (pauses || l->n_lines >= l->most_lines)))
            put_subtitle(l);
        is_next = l->width > 0 && n > 0;
        l->n_lines++;
        l->width = characters(s, n);
    }
    const size_t at = l->n_text;
    if (!ggl_grow(&l->word, &l->cap, l->n + 1, sizeof *l->word) || !append(l, " ", is_next) ||
        !append(l, s, n)) {
        l->failed = true;
        return;
    }
    if (is_next)
        l->text[at] = '\n';
    l->word[l->n++] = (line_word){w->start, w->end, at, l->n_text - at};
    l->last = w->start;
}

void lines_add(lines *l, const llm_speech *piece) {
    if (l->n == 0 && piece->n_words > 0)
        l->last = piece->word[0].start;
    for (size_t k = 0; k < piece->n_words && !l->failed; k++) {
        const bool is_next = l->most_words > 0 && (int64_t)k % l->most_words == 0;
        add(l, &piece->word[k], (k == 0 || is_next) && l->most_lines == 0);
    }
}

void lines_end(lines *l) {
    put_subtitle(l);
    ggl_free(l->word);
    ggl_free(l->text);
    ggl_free(l->shown);
    l->word = NULL;
    l->text = l->shown = NULL;
}
