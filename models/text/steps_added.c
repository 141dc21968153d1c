/* Added tokens of a tokenizer.json. The library looks for them from left to right, the longest one at a place; those that it does not want
 * after all, within a word or because special tokens are text, still take their characters. */
#include "steps.h"

#include "ggl/internal/steps.h"
#include "unicode.h"

/* A place of a text at which a token may begin: a node of the automaton. */
typedef struct start {
    size_t at;
    int32_t node;
} start;

/* Lists the starts from the last to the first. */
static bool find_starts(const automaton *x, const char *s, size_t n, start **out, size_t *n_out) {
    size_t cap = 0;
    int32_t state = 0;
    *out = NULL;
    *n_out = 0;
    for (size_t i = n; i-- > 0;) {
        state = llm_automaton_step(x, state, (unsigned char)s[i]);
        const int32_t found = x->node[state].found;
        if (found == 0)
            continue;
        if (*n_out == cap && !ggl_grow(out, &cap, *n_out + 1, sizeof **out))
            return false;
        (*out)[(*n_out)++] = (start){i, found};
    }
    return true;
}

static bool touches(const llm_spans *given, size_t from, size_t to) {
    size_t low = 0,
           high = given ? given->n
                        : 0; /* the first stretch that ends behind `from` is in [low, high] */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (given->at[middle].to <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return given && low < given->n && given->at[low].from < to;
}

static bool is_word(uint32_t c) {
    return c < 0x110000 && (llm_unicode_step(c) & STEP_WORD);
}

static bool is_white(uint32_t c) {
    return c < 0x110000 && (llm_unicode_properties(c) & UNICODE_WHITE);
}

/* Takes the last character of s[0..n), n > 0; returns its bytes. */
static size_t last_character(const char *s, size_t n, uint32_t *c) {
    size_t len = 1;
    while (len < 4 && len < n && ((unsigned char)s[n - len] & 0xc0) == 0x80)
        len++;
    if (ggl_utf8_length(s + n - len, len) != len)
        len = 1;
    ggl_str x = {s + n - len, len};
    *c = llm_take_char(&x);
    return len;
}

static bool word_before(const char *s, size_t at) {
    uint32_t c;
    return at > 0 && (last_character(s, at, &c), is_word(c));
}

static bool word_after(const char *s, size_t n, size_t at) {
    ggl_str x = {s + at, n - at};
    return at < n && is_word(llm_take_char(&x));
}

static size_t strip_left(const char *s, size_t from, size_t least) {
    uint32_t c;
    for (size_t len; from > least; from -= len) {
        len = last_character(s, from, &c);
        if (!is_white(c))
            break;
    }
    return from < least ? least : from;
}

static size_t strip_right(const char *s, size_t n, size_t to) {
    for (ggl_str x = {s + to, n - to}; x.n > 0; to = n - x.n)
        if (!is_white(llm_take_char(&x)))
            break;
    return to;
}

ggl_status llm_step_added_find(const step_added_list *list, const automaton *tokens, const char *s,
                               size_t n, bool special, const llm_spans *given, size_t offset,
                               step_match **out, size_t *n_out, ggl_error *err) {
    start *starts;
    size_t n_starts, cap = 0, taken = 0, done = 0;
    bool ok = find_starts(tokens, s, n, &starts, &n_starts);
    *out = NULL;
    *n_out = 0;
    while (ok && n_starts > 0) {
        const start x = starts[--n_starts];
        if (x.at < taken)
            continue;
        int32_t node = x.node;
        while (node != 0 && list->item[tokens->node[node].id].special &&
               touches(given, offset + x.at, offset + x.at + tokens->node[node].depth))
            node = llm_automaton_next(tokens, node);
        if (node == 0)
            continue;
        const step_added *added = &list->item[tokens->node[node].id];
        size_t from = x.at, to = x.at + tokens->node[node].depth;
        taken = to;
        if ((added->special && !special) ||
            (added->single_word && (word_before(s, from) || word_after(s, n, to))))
            continue;
        if (added->lstrip)
            from = strip_left(s, from, done);
        if (added->rstrip)
            to = to < done
                     ? done
                     : strip_right(s, n, to); /* what the token before has stripped is white */
        done = to;
        if (from >= to) /* the token before has taken its white space: the library drops it */
            continue;
        if (*n_out == cap && !ggl_grow(out, &cap, *n_out + 1, sizeof **out))
            ok = false;
        else
            (*out)[(*n_out)++] = (step_match){from, to, added->id};
    }
    ggl_free(starts);
    if (ok)
        return GGL_OK;
    ggl_free(*out);
    *out = NULL;
    *n_out = 0;
    return llm_step_no_memory(err);
}
