/* Texts and tokens: special tokens, white space beside them, and the tables that all kinds of tokenizers have. Tables of flash take the place
 * of indices in memory: strings sorted by their bytes, and a walk through them is one through a trie. */
#include "encoder.h"
#include "common/utf8.h"
#include "ggl/internal/steps.h"
#include "memory.h"

/* --- tables ----------------------------------------------------------------------------------- */

const char *small_string(const small_words *w, int32_t string, size_t *n) {
    const uint32_t at = small_number(&w->at, (uint32_t)string);
    *n = small_number(&w->at, (uint32_t)string + 1) - at;
    return w->text + at;
}

static int32_t string_of(const small_keys *k, uint32_t i) {
    return (int32_t)small_number(&k->string, i);
}

static const char *key_of(const small_words *w, const small_keys *k, uint32_t i, size_t *n) {
    const char *s = small_string(w, string_of(k, i), n);
    const bool space = k->unspaced && *n > 0 && *s == ' ';
    *n -= space;
    return s + space;
}

static int32_t token_of(const small_words *w, int32_t string) {
    return string < w->n_vocab ? string : w->other[string - w->n_vocab];
}

int32_t small_find(const small_words *w, const small_keys *k, const char *s, size_t n) {
    for (uint32_t low = 0, high = k->n; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        size_t n_this;
        const char *this = key_of(w, k, middle, &n_this);
        const int order = memcmp(this, s, n_this < n ? n_this : n);
        GGL_STEPS(1);
        if (order == 0 && n_this == n)
            return token_of(w, string_of(k, middle));
        if (order < 0 || (order == 0 && n_this < n))
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

small_walk small_walk_begin(const small_keys *k) {
    return (small_walk){0, k->n, 0};
}

/* Returns the first key of [low, high) that goes on with `byte` or more, which may be 256. */
static uint32_t first_from(const small_words *w, const small_keys *k, const small_walk *at,
                           uint32_t low, unsigned byte) {
    for (uint32_t high = at->high; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        size_t n;
        const char *s = key_of(w, k, middle, &n);
        GGL_STEPS(1);
        if (n <= at->depth || (unsigned char)s[at->depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool small_walk_on(const small_words *w, const small_keys *k, small_walk *at, unsigned char byte) {
    at->low = first_from(w, k, at, at->low, byte);
    at->high = first_from(w, k, at, at->low, byte + 1u);
    at->depth++;
    return at->low < at->high;
}

int32_t small_walk_token(const small_words *w, const small_keys *k, const small_walk *at) {
    size_t n;
    (void)key_of(w, k, at->low, &n); /* the shortest key is the first */
    return n == at->depth ? token_of(w, string_of(k, at->low)) : -1;
}

int32_t small_longest(const small_words *w, const small_keys *k, const char *s, size_t n,
                      unsigned flags, size_t *length) {
    small_walk at = small_walk_begin(k);
    int32_t best = -1;
    for (size_t i = 0; i < n && small_walk_on(w, k, &at, (unsigned char)s[i]); i++) {
        const int32_t token = small_walk_token(w, k, &at);
        if (token >= 0 && (w->flags[token] & flags) == flags) {
            best = token;
            *length = i + 1;
        }
    }
    return best;
}

const char *small_text_of(const small_plan *plan, int32_t token, bool first, size_t *n) {
    const small_words *w = plan->words;
    *n = 0;
    if (!w || token < 0 || token >= w->n_vocab || (w->flags[token] & SMALL_SILENT))
        return "";
    const char *s = small_string(w, token, n);
    const bool is_added =
        first && w->add_space && *n > 0 && *s == ' ' && !(w->flags[token] & SMALL_SPECIAL);
    *n -= is_added;
    return s + is_added;
}

bool small_is_end(const small_plan *plan, int32_t token) {
    return plan->words && token >= 0 && token < plan->words->n_vocab &&
           (plan->words->flags[token] & SMALL_END);
}

/* --- tokens ----------------------------------------------------------------------------------- */

bool small_append(small_encoder *e, int32_t token) {
    if (e->n >= e->most) /* which may be less than nothing */
        return false;
    e->token[e->n++] = token;
    return true;
}

size_t small_character(const char *s, size_t n, bool *is_mark) {
    const size_t len = ggl_utf8_length(s, n);
    *is_mark = len == 3 && memcmp(s, SMALL_MARK, 3) == 0;
    return len > 0 ? len : 1;
}

/* Returns byte i of the spelling of a byte, of which there are *n. */
static unsigned char spelled(const small_words *w, char c, size_t i, size_t *n) {
    const bool is_mark = w->spaced && c == ' ';
    *n = is_mark ? 3 : 1;
    return (unsigned char)(is_mark ? SMALL_MARK[i] : c);
}

bool small_has_bytes(const small_words *w, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0, m = 1; k < m; k++)
            if (w->byte[spelled(w, s[i], k, &m)] < 0)
                return false;
    return true;
}

bool small_append_known(small_encoder *e, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0, m = 1; k < m; k++) {
            const int32_t token = e->w->byte[spelled(e->w, s[i], k, &m)];
            if (token >= 0 && token < e->w->n_vocab && !small_append(e, token))
                return false;
        }
    return true;
}

bool small_append_bytes(small_encoder *e, const char *s, size_t n) {
    return small_has_bytes(e->w, s, n) ? small_append_known(e, s, n)
                                       : small_append(e, e->w->unknown);
}

bool small_is_white(const char *s, size_t n) {
    const uint32_t c = llm_unicode_decode(s, n);
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

/* Returns the bytes of white space that s[0..n) begins with. */
static size_t white_after(const char *s, size_t n) {
    size_t used = 0, len;
    while (used < n && (len = ggl_utf8_length(s + used, n - used)) > 0 &&
           small_is_white(s + used, len))
        used += len;
    return used;
}

/* Returns the bytes of white space that s[0..n) ends with. */
static size_t white_before(const char *s, size_t n) {
    size_t left = n;
    for (size_t len = 1; len <= 3 && len <= left; len++)
        if (ggl_utf8_length(s + left - len, len) == len && small_is_white(s + left - len, len)) {
            left -= len;
            len = 0;
        }
    return n - left;
}

/* Encodes the text between special tokens; the memory is free again after each stretch. */
static bool encode_stretch(small_encoder *e, const char *text, size_t n) {
    small_use_memory(e->work, e->work_size);
    return n == 0 || e->w->encode(e, text, n);
}

static bool encode_all(small_encoder *e, const char *text, size_t n, unsigned flags) {
    const small_words *w = e->w;
    const unsigned wanted = flags & SMALL_WITH_SPECIAL ? 0 : SMALL_USER;
    size_t start = 0;
    if ((flags & SMALL_WITH_ENDS) && w->add_bos && w->bos >= 0 && !small_append(e, w->bos))
        return false;
    for (size_t i = 0; i < n;) {
        size_t n_name;
        const int32_t id = small_longest(w, &w->special, text + i, n - i, wanted, &n_name);
        if (id < 0) {
            i++;
            continue;
        }
        const size_t white = w->flags[id] & SMALL_LEFT ? white_before(text + start, i - start) : 0;
        if (!encode_stretch(e, text + start, i - white - start) || !small_append(e, id))
            return false;
        i += n_name;
        if (w->flags[id] & SMALL_RIGHT)
            i += white_after(text + i, n - i);
        start = i;
    }
    return encode_stretch(e, text + start, n - start) &&
           (!((flags & SMALL_WITH_ENDS) && w->add_eos && w->eos >= 0) || small_append(e, w->eos));
}

int32_t small_encode(const small_plan *plan, const char *text, size_t n, unsigned flags,
                     int32_t *token, int32_t n_token, char *work, size_t work_size) {
    small_encoder e = {
        .w = plan->words, .token = token, .most = n_token, .work = work, .work_size = work_size};
    if (!plan->words)
        return -2;
    return encode_all(&e, text, n, flags) ? e.n : -1;
}
