/* The matcher of regular expressions. */
#include "pattern_impl.h"

#include "bracket.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/steps.h"
#include "utf8.h"

/* --- sets ------------------------------------------------------------------------------------- */

static bool has_bit(const uint64_t *set, size_t i) {
    return set[i / 64] >> (i % 64) & 1;
}

static void set_bit(uint64_t *set, size_t i) {
    set[i / 64] |= (uint64_t)1 << (i % 64);
}

/* Bits behind those of the instructions. */
static size_t bit_is_begin(const llm_pattern *p) {
    return p->n;
}
static size_t bit_is_word(const llm_pattern *p) {
    return p->n + 1;
}

/* --- making and freeing ------------------------------------------------------------------------ */

static ggl_status allocate_states(llm_pattern *p, ggl_error *err) {
    p->words = (p->n + 2 + 63) / 64;
    p->state = ggl_calloc((PATTERN_STATES + 2) * p->words, sizeof *p->state);
    p->stack = ggl_calloc(p->n, sizeof *p->stack);
    if (!p->state || !p->stack)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    p->seen = p->state + PATTERN_STATES * p->words;
    p->to = p->seen + p->words;
    set_bit(p->state, bit_is_begin(p));
    p->n_states = 1;
    return GGL_OK;
}

ggl_status llm_pattern_read(llm_pattern **out, ggl_str text, ggl_error *err) {
    llm_pattern *p = *out = ggl_calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = llm_pattern_parse(p, text, err);
    if (st == GGL_OK)
        st = allocate_states(p, err);
    if (st != GGL_OK) {
        llm_pattern_free(p);
        *out = NULL;
    }
    return st;
}

void llm_pattern_free(llm_pattern *p) {
    if (!p)
        return;
    ggl_free(p->text);
    ggl_free(p->code);
    ggl_free(p->class);
    ggl_free(p->state);
    ggl_free(p->stack);
    ggl_free(p);
}

/* --- matching --------------------------------------------------------------------------------- */

static bool class_has(pattern_class *k, uint32_t c) {
    if (k->last != c) {
        k->has_last = llm_bracket_read(k->text, k->at, false, c).has;
        k->last = c;
    }
    return k->has_last;
}

static bool takes(const llm_pattern *p, pattern_code code, uint32_t c) {
    if (c == LLM_NO_CHAR)
        return false;
    return code.kind == PATTERN_CLASS ? class_has(&p->class[code.value], c)
                                      : code.kind == PATTERN_ANY || (uint32_t)code.value == c;
}

/* True if the place between two characters is the one that an instruction names. */
static bool is_at(int32_t place, bool is_begin, bool after_word, uint32_t c) {
    const bool before_word = llm_is_word(c);
    return place == '^'   ? is_begin
           : place == '$' ? c == LLM_NO_CHAR
           : place == 'b' ? after_word != before_word
           : place == 'B' ? after_word == before_word
           : place == '<' ? !after_word && before_word
                          : after_word && !before_word;
}

static size_t push(llm_pattern *p, size_t n, size_t at) {
    if (has_bit(p->seen, at))
        return n;
    set_bit(p->seen, at);
    p->stack[n] = (uint32_t)at;
    return n + 1;
}

/* Sets p->to to the instructions behind those that take c, of all to which the set leads. Returns true if the expression has
 * matched, before c. */
static bool follow(llm_pattern *p, const uint64_t *set, uint32_t c) {
    const bool is_begin = has_bit(set, bit_is_begin(p)), after_word = has_bit(set, bit_is_word(p));
    memset(p->seen, 0, 2 * p->words * sizeof *p->seen);
    size_t n = push(p, 0, 0); /* it may begin at any place */
    for (size_t w = 0; w < p->words; w++)
        for (uint64_t bits = set[w]; bits; bits &= bits - 1) {
            const size_t i = 64 * w + (size_t)__builtin_ctzll(bits);
            n = i < p->n ? push(p, n, i) : n;
        }
    while (n > 0) {
        const size_t i = p->stack[--n];
        const pattern_code code = p->code[i];
        GGL_STEPS(1);
        if (code.kind == PATTERN_FOUND)
            return true;
        if (code.kind == PATTERN_SPLIT || code.kind == PATTERN_JUMP)
            n = push(p, n, (size_t)((int64_t)i + code.value));
        if (code.kind == PATTERN_SPLIT ||
            (code.kind == PATTERN_IS_AT && is_at(code.value, is_begin, after_word, c)))
            n = push(p, n, i + 1);
        else if (code.kind < PATTERN_SPLIT && takes(p, code, c))
            set_bit(p->to, i + 1);
    }
    if (llm_is_word(c))
        set_bit(p->to, bit_is_word(p));
    return false;
}

/* Returns the number of the state p->to. */
static int number_of_state(llm_pattern *p) {
    const size_t size = p->words * sizeof *p->to;
    int k = 0;
    while (k < p->n_states && memcmp(p->state + (size_t)k * p->words, p->to, size) != 0)
        k++;
    if (k == PATTERN_STATES) {
        memset(p->next, 0, sizeof p->next);
        k = p->n_states = 1;
    }
    if (k == p->n_states)
        memcpy(p->state + (size_t)p->n_states++ * p->words, p->to, size);
    return k;
}

/* Returns what p->next has, or shall have, for a state and the next character. */
static uint8_t next_state(llm_pattern *p, int from, uint32_t c) {
    GGL_STEPS(1);
    const size_t symbol = c < 128 ? c : PATTERN_SYMBOLS - 1;
    const bool is_kept = c < 128 || c == LLM_NO_CHAR;
    if (is_kept && p->next[from][symbol])
        return p->next[from][symbol];
    const int n_before = p->n_states;
    const uint8_t to = follow(p, p->state + (size_t)from * p->words, c)
                           ? PATTERN_MATCHES
                           : (uint8_t)(number_of_state(p) + 1);
    if (is_kept && p->n_states >= n_before) /* else `from` was forgotten */
        p->next[from][symbol] = to;
    return to;
}

bool llm_pattern_matches(llm_pattern *p, ggl_str text) {
    uint8_t at = 1;
    while (text.n > 0 && at != PATTERN_MATCHES)
        at = next_state(p, at - 1, llm_take_char(&text));
    return at == PATTERN_MATCHES || next_state(p, at - 1, LLM_NO_CHAR) == PATTERN_MATCHES;
}
