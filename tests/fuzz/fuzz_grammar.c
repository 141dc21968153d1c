/* Grammars in GBNF, and after a NUL byte a text for them: bytes are matched, then tokens, with masks and
 * endings that must agree. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "llm/internal/grammar.h"

enum { N_TOKENS = 256 + 8 + 1, N_WORDS = (N_TOKENS + 31) / 32 };

/* All bytes, some longer tokens, and an end. Made once; it is never freed. */
static const llm_vocab *vocabulary(void) {
    static llm_vocab *v;
    static char bytes[256];
    static const char *const more[] = {"ab", "\"a", "a\"", "\xc3\xa9", "\xa9x", "((", "12", "\n\n"};
    ggl_str text[N_TOKENS];
    bool is_eog[N_TOKENS] = {0};
    if (v)
        return v;
    for (int i = 0; i < N_TOKENS; i++) {
        if (i < 256)
            bytes[i] = (char)i;
        text[i] = i < 256            ? (ggl_str){&bytes[i], 1}
                  : i < N_TOKENS - 1 ? (ggl_str){more[i - 256], strlen(more[i - 256])}
                                     : (ggl_str){"", 0};
    }
    is_eog[N_TOKENS - 1] = true;
    if (llm_vocab_from_texts(&v, text, is_eog, N_TOKENS, NULL) != GGL_OK)
        abort();
    return v;
}

static bool allowed(const uint32_t *mask, int32_t id) {
    return mask[id / 32] >> (id % 32) & 1;
}

/* A token is allowed exactly if it is accepted. After an ending the text is complete. */
static void check_tokens(llm_matcher *m, int32_t id) {
    uint32_t mask[N_WORDS];
    const int32_t *end;
    int32_t n;
    llm_matcher *copy;
    if (llm_matcher_mask(m, LLM_MATCHER_NO_BUDGET, mask, NULL) != GGL_OK ||
        llm_matcher_ending(m, &end, &n, NULL) != GGL_OK ||
        llm_matcher_copy(&copy, m, NULL) != GGL_OK)
        return;
    ggl_status st = GGL_OK;
    for (int32_t i = 0; i < n && st == GGL_OK; i++)
        st = llm_matcher_accept_token(copy, end[i], NULL);
    if (st == GGL_USAGE || (st == GGL_OK && !llm_matcher_is_complete(copy)))
        abort();
    llm_matcher_free(copy);
    st = llm_matcher_accept_token(m, id, NULL);
    if ((st == GGL_OK && !allowed(mask, id)) || (st == GGL_USAGE && allowed(mask, id)))
        abort();
}

static void match(const llm_grammar *g, const char *s, size_t n) {
    llm_matcher *m;
    size_t n_bytes;
    char words[64];
    if (llm_matcher_new(&m, g, vocabulary(), NULL) != GGL_OK)
        return;
    if (llm_matcher_accept_bytes(m, s, n, &n_bytes, NULL) == GGL_OK) {
        llm_matcher_expected(m, words, sizeof words);
        llm_matcher_reset(m);
        for (size_t i = 0; i < n && i < 16; i++)
            check_tokens(m, (unsigned char)s[i] % 7 == 0 ? 256 + s[i] % 8 : (unsigned char)s[i]);
    }
    llm_matcher_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *s = (const char *)data, *nul = size ? memchr(s, 0, size) : NULL;
    const size_t n = nul ? (size_t)(nul - s) : size;
    llm_grammar *g;
    if (size > 4096 || llm_grammar_from_gbnf(&g, s, n, "fuzz", NULL) != GGL_OK)
        return 0;
    match(g, nul ? nul + 1 : "", nul ? size - n - 1 : 0);
    llm_grammar_free(g);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const struct {
        const char *s;
        size_t n;
    } seeds[] = {
#define SEED(text) {text, sizeof text - 1}
        SEED("root ::= e # sum\ne ::= e \"+\" t | t\nt ::= [0-9]+ | \"(\" e \")\"\0 12+(3)"),
        SEED("root ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f] | \"\\\\\" [nt\"])* "
             "\"\\\"\"\0\"a\\n\xc3\xa9\""),
        SEED("root ::= (\"a\" | \"b\"{2,3} | .){1,4}\n  | root root |\0abbb"),
        SEED("root ::= w (\" \" w)* \"\\n\"?\nw ::= [a-zA-Z\\u00e9]{1,9}\0ab cd\n"),
    };
    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return false;
    *size = seeds[k].n;
    *data = malloc(*size);
    if (!*data)
        abort();
    memcpy(*data, seeds[k].s, *size);
    return true;
}
