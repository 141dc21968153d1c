/* Byte-level BPE: published strings, a naive second implementation over a vocabulary that the test
 * trains, long runs, round trips, special tokens, hostile files. */
#include "tokenizer_test.h"

#include "ggl/alloc.h"
#include "llm/internal/tokenizer.h"
#include "seed.h"
#include "text/unicode.h"

enum { N_MERGES = 400 };

/* The GPT-2 alphabet by its definition: printable Latin-1 as it is, the others from U+0100 on, in
 * order. */
static const char *spell(int byte) {
    static char table[256][3];
    int next = 0x100;
    for (int b = 0; b < 256 && !table[255][0]; b++) {
        bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        int c = printable ? b : next++;
        if (c < 0x80)
            table[b][0] = (char)c;
        else
            memcpy(table[b], (char[]){(char)(0xc0 | c >> 6), (char)(0x80 | (c & 0x3f))}, 2);
    }
    return table[byte];
}

static void begin(vocab *v) {
    *v = (vocab){.model = "gpt2"};
    for (int b = 0; b < 256; b++)
        add(v, spell(b), 0, NORMAL);
}

static ggl_gguf_writer *write_pre(vocab *v, const char *pre) {
    v->pre = pre;
    return write_vocab(v);
}

static llm_tokenizer *from_pre(vocab *v, const char *pre) {
    return opened(write_pre(v, pre));
}

/* ---- rules ---- */

TEST(merging) {
    static vocab v;
    begin(&v);
    add_merge(&v, "b", "c"); /* rank 0: before a b */
    add_merge(&v, "a", "b");
    add_merge(&v, "a", "bc");
    add_merge(&v, "d", "d");
    add_merge(&v, "dd", "dd");
    add_merge(&v, "Ġ", "a");
    add_merge(&v, "a", "b"); /* again: the first rank holds */
    ADD_ALL(&v, 0, "bc", "ab", "abc", "dd", "dddd", "Ġa");
    add(&v, "xyz", 0, NORMAL); /* a token that no merges make */
    llm_tokenizer *t = from_pre(&v, "gpt-2");
    REQUIRE(t);
    CHECK_STR(pieces(t, "abc", 0), "abc");
    CHECK_STR(pieces(t, "abab", 0), "ab|ab");
    CHECK_STR(pieces(t, "abcb", 0), "abc|b");
    CHECK_STR(pieces(t, "ddddddd", 0), "dddd|dd|d"); /* of equals the leftmost */
    CHECK_STR(pieces(t, "a a\n b", 0), "a|Ġa|Ċ|Ġ|b");
    CHECK_STR(pieces(t, "é\x01", 0), "Ã|©|ā");
    CHECK_STR(pieces(t, "xyz", 0), "x|y|z");
    CHECK_STR(pieces(t, "", 0), "");
    CHECK_STR(pieces(t, "\xff\xc3z", 0), "ÿ|Ã|z"); /* no UTF-8: byte by byte */
    ggl_str s = llm_token_text(t, 0xc3, false);
    CHECK(s.n == 1 && s.s[0] == '\xc3');
    llm_tokenizer_free(t);

    t = from_pre(&v, "llama-bpe"); /* a word that is a token is taken as it is */
    REQUIRE(t);
    CHECK_STR(pieces(t, "xyz", 0), "xyz");
    CHECK_STR(pieces(t, "xyzz", 0), "x|y|z|z");
    llm_tokenizer_free(t);
}

/* With normalizer.nfc, texts between special tokens are composed, and nothing else of them changes. */
TEST(composed) {
    static vocab v;
    for (int nfc = 0; nfc < 2; nfc++) {
        begin(&v);
        add_merge(&v, "Ã", "©"); /* the bytes of e with an acute accent */
        add(&v, "Ã©", 0, NORMAL);
        add(&v, "<e\xcc\x81>", 0, USER);
        ggl_gguf_writer *w = write_pre(&v, "gpt-2");
        ggl_gguf_put(w, "tokenizer.ggml.normalizer.nfc", GGL_GGUF_BOOL, false,
                     &(uint8_t){(uint8_t)nfc}, 1);
        llm_tokenizer *t = opened(w);
        REQUIRE(t);
        CHECK_STR(pieces(t, "\xc3\xa9", 0), "Ã©");
        CHECK_STR(pieces(t, "e\xcc\x81", 0), nfc ? "Ã©" : "e|Ì|ģ");
        CHECK_STR(pieces(t, "xe\xcc\x81\xff\xc3", 0), nfc ? "x|Ã©|ÿ|Ã" : "x|e|Ì|ģ|ÿ|Ã");
        CHECK_STR(pieces(t, "<e\xcc\x81>e\xcc\x81", 0),
                  nfc ? "<e\xcc\x81>|Ã©" : "<e\xcc\x81>|e|Ì|ģ");
        /* a mark that begins a text, marks in another order, Hangul, and one that does not compose */
        CHECK_STR(pieces(t, "\xcc\x81", 0), "Ì|ģ");
        CHECK_STR(pieces(t, "e\xcc\xa3\xcc\x81", 0), nfc ? "á|º|¹|Ì|ģ" : "e|Ì|£|Ì|ģ");
        CHECK_STR(pieces(t, "e\xcc\x81\xcc\xa3", 0), nfc ? "á|º|¹|Ì|ģ" : "e|Ì|ģ|Ì|£");
        CHECK_STR(pieces(t, "\xe1\x84\x80\xe1\x85\xa1", 0), nfc ? "ê|°|Ģ" : "á|Ħ|Ģ|á|ħ|¡");
        CHECK_STR(pieces(t, "\xe0\xa5\x98", 0),
                  nfc ? "à|¤|ķ|à|¤|¼" : "à|¥|ĺ"); /* a composition that is excluded */
        llm_tokenizer_free(t);
    }
}

/* Keys of later files whose values are not known here. */
TEST(later_keys) {
    static vocab v;
    static const struct {
        const char *key, *text;
        bool flag, refused;
    } c[] = {{"tokenizer.ggml.metaspace.prepend_scheme", "never", false, true},
             {"tokenizer.ggml.metaspace.prepend_scheme", "first", false, true},
             {"tokenizer.ggml.dna_auto_tags", NULL, true, true},
             {"tokenizer.ggml.dna_auto_tags", NULL, false, false},
             {"tokenizer.ggml.clean_spaces", NULL, true, false}};
    begin(&v);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        ggl_gguf_writer *w = write_pre(&v, "gpt-2");
        if (c[i].text)
            ggl_gguf_put_string(w, c[i].key, c[i].text, strlen(c[i].text));
        else
            ggl_gguf_put(w, c[i].key, GGL_GGUF_BOOL, false, &(uint8_t){c[i].flag}, 1);
        if (c[i].refused) {
            refuse(w, GGL_UNSUPPORTED, c[i].key);
            continue;
        }
        llm_tokenizer_free(opened(w));
    }
    ggl_gguf_writer *w = write_pre(&v, "gpt-2");
    ggl_gguf_put_string(w, "tokenizer.ggml.normalizer.nfc", "true", 4);
    refuse(w, GGL_FORMAT, "tokenizer.ggml.normalizer.nfc");
}

/* Merges whose results are not tokens are undone; bytes without a token are dropped. */
TEST(pieces_that_are_missing) {
    static vocab v;
    v = (vocab){.model = "gpt2"};
    add(&v, "a", 0, NORMAL);
    add(&v, "b", 0, NORMAL);
    add(&v, "abc", 0, NORMAL);
    add(&v, "bb", 0, CONTROL);
    add(&v, "é", 0, NORMAL); /* spells the byte 0xe9 */
    add_merge(&v, "a", "b");
    add_merge(&v, "ab", "c");
    add_merge(&v, "b", "b");
    llm_tokenizer *t = from_pre(&v, "gpt-2");
    REQUIRE(t);
    CHECK_STR(pieces(t, "abc", 0), "abc");
    CHECK_STR(pieces(t, "abz", 0), "a|b");
    CHECK_STR(pieces(t, "c", 0), "");
    CHECK_STR(pieces(t, "bb", 0), "b|b"); /* text cannot forge a control token */
    CHECK_STR(pieces(t, "bb", LLM_TOKENIZE_SPECIAL), "bb");
    llm_tokenizer_free(t);
}

TEST(special_tokens_and_ends) {
    static vocab v;
    begin(&v);
    int32_t bos = add(&v, "<|begin|>", 0, CONTROL), im = add(&v, "<|im_end|>", 0, CONTROL);
    int32_t user = add(&v, "<|end|>", 0, USER), fake = add(&v, "<|eot_id|>", 0, NORMAL),
            tool = add(&v, "  ", 0, USER);
    int32_t odd = add(&v, "日", 0, NORMAL), eot = add(&v, "STOP", 0, CONTROL);
    ggl_gguf_writer *w = write_pre(&v, "qwen2");
    put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    put_u32(w, "tokenizer.ggml.eot_token_id", (uint32_t)eot);
    llm_tokenizer *t = opened(w);
    REQUIRE(t);
    CHECK_INT(llm_tokenizer_bos(t), bos);
    CHECK_INT(llm_tokenizer_eos(t), -1);
    CHECK(llm_tokenizer_is_eog(t, im) && llm_tokenizer_is_eog(t, user) &&
          llm_tokenizer_is_eog(t, eot));
    CHECK(!llm_tokenizer_is_eog(t, fake) && !llm_tokenizer_is_eog(t, bos));
    const unsigned all = LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL;
    CHECK_STR(pieces(t, "a<|im_end|>\n", all), "a|<|im_end|>|Ċ"); /* this pre-tokenizer adds none */
    CHECK_STR(pieces(t, "a   b<|end|>", 0), "a|  |Ġ|b|<|end|>");  /* user-defined ones always */
    CHECK_STR(pieces(t, "<|im", all), "<|||i|m");
    char *text;
    size_t size;
    ggl_error err = {0};
    REQUIRE_OK(
        llm_detokenize(t, (int32_t[]){bos, tool, odd, user, im}, 5, false, &text, &size, &err),
        &err);
    CHECK_STR(text, "  日<|end|>"); /* what spells no bytes stands for itself */
    ggl_free(text);
    llm_tokenizer_free(t);

    int32_t turn = add(&v, "<|return|>", 0, CONTROL); /* then <|end|> ends less than the turn */
    w = write_pre(&v, "llama-bpe");
    put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    REQUIRE((t = opened(w)));
    CHECK(llm_tokenizer_is_eog(t, turn) && llm_tokenizer_is_eog(t, im) &&
          !llm_tokenizer_is_eog(t, user));
    CHECK_STR(pieces(t, "a", all), "<|begin|>|a"); /* this one does, */
    llm_tokenizer_free(t);
    w = write_pre(&v, "llama-bpe");
    put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    ggl_gguf_put(w, "tokenizer.ggml.add_bos_token", GGL_GGUF_BOOL, false, &(uint8_t){0}, 1);
    REQUIRE((t = opened(w)));
    CHECK_STR(pieces(t, "a", all), "a"); /* but the key decides */
    llm_tokenizer_free(t);
}

/* ---- hostile files ---- */

TEST(refused) {
    static vocab v;
    begin(&v);
    refuse(write_pre(&v, "nonesuch"), GGL_UNSUPPORTED,
           "tokenizer.ggml.pre is 'nonesuch', which is not supported here (supported: default, "
           "gpt-2, ");
    refuse(write_pre(&v, ""), GGL_UNSUPPORTED, "tokenizer.ggml.pre is ''");
    refuse(write_pre(&v, "qwn2"), GGL_UNSUPPORTED, ", ..); did you mean 'qwen2'?");

    ggl_gguf_writer *w = write_pre(&v, NULL);
    put_u32(w, "tokenizer.ggml.pre", 1);
    refuse(w, GGL_FORMAT, "tokenizer.ggml.pre");

    const char *broken[] = {"ab", " ab", "ab ", "", " ", "  "};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        v.n_merge = 0;
        add_merge(&v, "a", "b");
        v.merge[v.n_merge++] = (ggl_str){broken[i], strlen(broken[i])};
        refuse(write_pre(&v, "gpt-2"), GGL_FORMAT, "tokenizer.ggml.merges: entry 1 is '");
    }
    for (int k = 0; k < 3; k++) {
        w = ggl_gguf_writer_new();
        ggl_gguf_put_string(w, "tokenizer.ggml.model", "gpt2", 4);
        ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", v.piece, v.n);
        if (k == 1)
            ggl_gguf_put(w, "tokenizer.ggml.merges", GGL_GGUF_I32, true, v.type, v.n);
        else if (k == 2)
            ggl_gguf_put_string(w, "tokenizer.ggml.merges", "a b", 3);
        refuse(w, GGL_FORMAT,
               k == 0   ? "tokenizer.ggml.merges is missing"
               : k == 1 ? "merges is an array of i32, not an array of strings"
                        : "merges is string, not an array of strings");
    }
}

/* A million merges, mostly of strings that are not tokens. */
LONG_TEST(a_million_merges) {
    enum { N = 1000000 };
    static vocab v;
    begin(&v);
    char *text = malloc((size_t)N * 16);
    ggl_str *s = malloc(N * sizeof *s);
    REQUIRE(text && s);
    for (int i = 0; i < N; i++) {
        int n = snprintf(text + (size_t)i * 16, 16, "%x %x", (unsigned)i % 4096, (unsigned)i / 16);
        s[i] = (ggl_str){text + (size_t)i * 16, (size_t)n};
    }
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "tokenizer.ggml.model", "gpt2", 4);
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", v.piece, v.n);
    ggl_gguf_put_strings(w, "tokenizer.ggml.merges", s, N);
    free(s);
    llm_tokenizer *t = opened(w);
    REQUIRE(t);
    free(text);
    round_trip(t, "0123456789abcdef deadbeef 77777", 31, 0);
    llm_tokenizer_free(t);
}

TEST(failing_allocations) {
    static vocab v;
    begin(&v);
    add_merge(&v, "s", "o");
    add_merge(&v, "so", "m");
    add(&v, "so", 0, NORMAL);
    fail_each_allocation(write_pre(&v, "llama-bpe"), 20);
    fail_each_allocation(write_pre(&v, "tiny_aya"), 20);
}

/* ---- the second implementation ---- */

/* a, b and c, one after the other, cut to MAX_PIECE. */
static void put_strings(char *s, const char *a, const char *b, const char *c) {
    const char *const parts[] = {a, b, c};
    size_t n = 0;
    for (int i = 0; i < 3; i++)
        for (const char *p = parts[i]; *p && n + 1 < MAX_PIECE; p++)
            s[n++] = *p;
    s[n] = '\0';
}

typedef struct word {
    char sym[512][MAX_PIECE];
    int n;
} word;

static int compare_strings(const void *a, const void *b) {
    return strcmp(a, *(const char *const *)b);
}

static int compare_pointers(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Places in an array of strings, found by bisection. */
typedef struct sorted {
    const char *s[MAX_PIECES];
    char (*all)[MAX_PIECE];
    size_t n;
} sorted;

static void sort(sorted *x, char (*all)[MAX_PIECE], size_t n) {
    x->all = all;
    x->n = n;
    for (size_t i = 0; i < n; i++)
        x->s[i] = all[i];
    qsort(x->s, n, sizeof *x->s, compare_pointers);
}

static int place(const sorted *x, const char *s) {
    const char *const *found = bsearch(s, x->s, x->n, sizeof *x->s, compare_strings);
    return found ? (int)((*found - x->all[0]) / MAX_PIECE) : -1;
}

static void join_at(word *w, int i) {
    char joined[MAX_PIECE];
    put_strings(joined, w->sym[i], "", w->sym[i + 1]);
    memcpy(w->sym[i], joined, MAX_PIECE);
    memmove(w->sym[i + 1], w->sym[i + 2], (size_t)(w->n - i - 2) * sizeof *w->sym);
    w->n--;
}

/* Joins the pair of lowest rank, of equals the leftmost, until there is none. */
static void naive_merge(word *w, const sorted *merges) {
    for (;;) {
        int best = -1, best_rank = 0;
        for (int i = 0; i + 1 < w->n; i++) {
            char pair[MAX_PIECE];
            put_strings(pair, w->sym[i], " ", w->sym[i + 1]);
            int rank = place(merges, pair);
            if (rank >= 0 && (best < 0 || rank < best_rank)) {
                best = i;
                best_rank = rank;
            }
        }
        if (best < 0)
            return;
        join_at(w, best);
    }
}

/* Learns merges as BPE does: the most frequent pair of the words' symbols, again and again. */
static void train(vocab *v) {
    static const char text[] =
        "the cat and the dog , then they're there . I'll 'LL it's don't we've you'd "
        "123 1234 2024 99 das ist größer über für они это что на не 中文 中国 日本 語 the the and "
        "and 😁 😁🚀 🚀 "
        "hello Hello HELLO world World     \n\n  \t x = y ; != == >= ... !!! ??? -- ' '' a a a e e "
        "e i i o o é é ü";
    static word words[128];
    int n_words = 0;
    for (const char *s = text; *s && n_words < 128;) {
        size_t n = 1 + strcspn(s + 1, " ");
        words[n_words].n = 0;
        for (size_t i = 0; i < n; i++)
            strcpy(words[n_words].sym[words[n_words].n++], spell((unsigned char)s[i]));
        n_words++;
        s += n;
    }
    begin(v);
    while (v->n_merge < N_MERGES) {
        static struct {
            char pair[MAX_PIECE];
            int count;
        } pairs[4096];
        int n_pairs = 0, best = -1;
        for (int k = 0; k < n_words; k++)
            for (int i = 0; i + 1 < words[k].n; i++) {
                char pair[MAX_PIECE];
                put_strings(pair, words[k].sym[i], " ", words[k].sym[i + 1]);
                int j = 0;
                while (j < n_pairs && strcmp(pairs[j].pair, pair) != 0)
                    j++;
                if (j == n_pairs && strlen(pair) < 30) {
                    strcpy(pairs[n_pairs].pair, pair);
                    pairs[n_pairs++].count = 0;
                }
                if (j < n_pairs &&
                    (++pairs[j].count, best < 0 || pairs[j].count > pairs[best].count))
                    best = j;
            }
        if (best < 0)
            break;
        char left[MAX_PIECE], right[MAX_PIECE], joined[MAX_PIECE];
        sscanf(pairs[best].pair, "%63s %63s", left, right);
        add_merge(v, left, right);
        put_strings(joined, left, "", right);
        add(v, joined, 0, NORMAL);
        for (int k = 0; k < n_words; k++)
            for (int i = 0; i + 1 < words[k].n; i++)
                if (strcmp(words[k].sym[i], left) == 0 && strcmp(words[k].sym[i + 1], right) == 0)
                    join_at(&words[k], i);
    }
}

static bool letter(uint32_t c) {
    return llm_unicode_properties(c) & UNICODE_L;
}
static bool number(uint32_t c) {
    return llm_unicode_properties(c) & UNICODE_N;
}
static bool space(uint32_t c) {
    return llm_unicode_properties(c) & UNICODE_WHITE;
}
static bool other(uint32_t c) {
    return c != 0x110000 && !letter(c) && !number(c) && !space(c);
}
static bool newline(uint32_t c) {
    return c == '\r' || c == '\n';
}
static uint32_t lower(uint32_t c) {
    return c >= 'A' && c <= 'Z' ? c + 32 : c == 0x17f ? 's' : c;
}

static size_t contraction(const uint32_t *c, size_t i, bool fold) {
    if (c[i] != '\'' || c[i + 1] == 0x110000)
        return 0;
    uint32_t a = fold ? lower(c[i + 1]) : c[i + 1], b = fold ? lower(c[i + 2]) : c[i + 2];
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* The end of the run of spaces at i, but for its last if something follows. */
static size_t spaces(const uint32_t *c, size_t i) {
    size_t end = i;
    while (space(c[end]))
        end++;
    return c[end] != 0x110000 && end > i + 1 ? end - 1 : end;
}

/* Where the word at c[i] ends; c ends with 0x110000. The rules of GPT-2. */
static size_t word_end_gpt2(const uint32_t *c, size_t i) {
    size_t n = contraction(c, i, false), j = i + (c[i] == ' ');
    if (n > 0)
        return i + n;
    bool (*const kinds[])(uint32_t) = {letter, number, other};
    for (int k = 0; k < 3; k++)
        if (kinds[k](c[j])) {
            while (kinds[k](c[j]))
                j++;
            return j;
        }
    return spaces(c, i);
}

/* Those of Llama 3 (numbers of up to three digits) and Qwen 2 (of one). */
static size_t word_end_llama3(const uint32_t *c, size_t i, size_t most_digits) {
    size_t n = contraction(c, i, true), j = i;
    if (n > 0)
        return i + n;
    if (letter(c[i]) || (!newline(c[i]) && !number(c[i]) && letter(c[i + 1]))) {
        for (j = i + 1; letter(c[j]);)
            j++;
        return j;
    }
    while (number(c[j]) && j - i < most_digits)
        j++;
    if (j > i)
        return j;
    j = i + (c[i] == ' ');
    if (other(c[j])) {
        while (other(c[j]))
            j++;
        while (newline(c[j]))
            j++;
        return j;
    }
    size_t last = 0;
    for (j = i; space(c[j]); j++)
        last = newline(c[j]) ? j + 1 : last;
    return last > 0 ? last : spaces(c, i);
}

static uint32_t random_character(uint64_t *seed) {
    static const uint32_t odd[] = {
        '\'',  '\'',  ' ',    ' ',     ' ',     '\n',   '\r',   '\t',   's',    'S',
        0x17f, 'l',   'L',    'v',     'e',     'r',    'E',    't',    'd',    'm',
        '1',   '2',   '9',    0xb2,    0xbd,    0x661,  0x2167, 0xa0,   0x3000, 0x2028,
        0x85,  0x301, 0x200d, 0x1f601, 0x1f680, 0x4e2d, 0x6587, 0x43e,  0x44d,  0xe9,
        0xfc,  0xdf,  '.',    '!',     '=',     0x3002, 0xad,   0xfffd, 0};
    static const uint32_t ends[] = {0x80, 0x250, 0x3100, 0x10000, 0x20000, 0x110000};
    uint32_t u;
    if (test_random(seed) % 4)
        return test_random(seed) % 3 ? odd[test_random(seed) % (sizeof odd / sizeof *odd)]
                                     : (uint32_t)('a' + test_random(seed) % 26);
    do
        u = (uint32_t)(test_random(seed) % ends[test_random(seed) % 6]);
    while (u >= 0xd800 && u < 0xe000); /* surrogates are none */
    return u;
}

static size_t naive_encode(const uint32_t *c, size_t n, int rules, const sorted *tokens,
                           const sorted *merges, int32_t *out) {
    static word w;
    size_t n_out = 0;
    for (size_t i = 0, end; i < n; i = end) {
        end = rules == 0 ? word_end_gpt2(c, i) : word_end_llama3(c, i, rules == 1 ? 3 : 1);
        w.n = 0;
        for (; i < end; i++) {
            char utf8[4];
            size_t bytes = put_utf8(c[i], utf8);
            for (size_t k = 0; k < bytes; k++)
                strcpy(w.sym[w.n++], spell((unsigned char)utf8[k]));
        }
        naive_merge(&w, merges);
        for (int k = 0; k < w.n; k++)
            out[n_out++] = place(tokens, w.sym[k]);
    }
    return n_out;
}

/* Other strings each day. */
TEST(same_as_naive) {
    const int n_strings = sample_is_all() ? 100000 : TEST_SANITIZED ? 6000 : 30000;
    static const char *const names[] = {"gpt-2", "llama-bpe", "qwen2"};
    static vocab v;
    static sorted tokens, merges;
    train(&v);
    CHECK(v.n_merge > 150);
    sort(&tokens, v.text, v.n);
    sort(&merges, v.merge_text, v.n_merge);
    uint64_t seed = sample_seed();
    for (int rules = 0; rules < 3; rules++) {
        llm_tokenizer *t = from_pre(&v, names[rules]);
        REQUIRE(t);
        for (int i = rules; i < n_strings; i += 3) {
            uint32_t c[64];
            char text[256];
            int32_t want[256];
            size_t n = test_random(&seed) % 32, size = 0;
            for (size_t k = 0; k < n; k++)
                size += put_utf8(c[k] = random_character(&seed), text + size);
            c[n] = c[n + 1] = c[n + 2] = 0x110000;
            size_t n_want = naive_encode(c, n, rules, &tokens, &merges, want);
            llm_tokens got = {0};
            CHECK_OK(llm_tokenize(t, text, size, 0, &got, NULL), NULL);
            bool same = got.n == n_want &&
                        (n_want == 0 || memcmp(got.id, want, n_want * sizeof *want) == 0);
            llm_tokens_fini(&got);
            if (!CHECK_MSG(same, "%s: string %d '%.*s' differs", names[rules], i, (int)size, text))
                break;
        }
        llm_tokenizer_free(t);
    }
}

/* ---- long texts, round trips ---- */

TEST(long_runs) {
    static const char *const fills[] = {"a",    " ",   "1", "\n",  "\xf0\x9f\x98\x81",
                                        "\xff", "the", "'", "\t ", "é"};
    static const char *const names[] = {"gpt-2", "llama-bpe", "qwen2", "default"};
    enum { BIG = 40000 };
    static char text[BIG];
    static vocab v;
    train(&v);
    add_merge(&v, "a", "a");
    add_merge(&v, "aa", "aa");
    add_merge(&v, "Ġ", "Ġ");
    add(&v, "aa", 0, NORMAL);
    add(&v, "aaaa", 0, NORMAL);
    for (int k = 0; k < 4; k++) {
        llm_tokenizer *t = from_pre(&v, names[k]);
        REQUIRE(t);
        for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
            for (size_t i = 0; i < BIG; i++)
                text[i] = fills[f][i % strlen(fills[f])];
            char what[64];
            snprintf(what, sizeof what, "%s, '%s'", names[k], fills[f]);
            test_linear(what, steps_of(t, text, BIG / 10, NULL), steps_of(t, text, BIG, NULL), 10);
        }
        round_trip(t, text, BIG, 0);
        llm_tokenizer_free(t);
    }
}

/* Inverts h ^= h >> n, for n >= 32. */
static uint64_t unshift(uint64_t h, int n) {
    return h ^ h >> n;
}

/* Strings of 8 bytes that a table with a fixed hash (this one was used here) puts all into one
 * place: h = 8 * golden ratio, h = (h ^ string) * k, h ^= h >> 32, h *= k, h ^= h >> 33. */
static void colliding_string(uint64_t i, char *s) {
    const uint64_t k = 0xff51afd7ed558ccdu;
    uint64_t inverse = k, h = unshift(i << 24, 33);
    for (int round = 0; round < 5; round++) /* Newton: each doubles the bits that are right */
        inverse *= 2 - k * inverse;
    h = unshift(h * inverse, 32) * inverse ^ 8 * 0x9e3779b97f4a7c15u;
    memcpy(s, &h, 8);
}

/* Steps to make a tokenizer of 256 bytes' tokens and n others, all special or none. */
static uint64_t steps_to_make(size_t n, int32_t type, void (*spell_it)(uint64_t i, char *s)) {
    static vocab v;
    begin(&v);
    size_t all = n + v.n;
    ggl_str *s = ggl_calloc(all, sizeof *s);
    int32_t *types = ggl_calloc(all, sizeof *types);
    char *text = ggl_calloc(n, 8);
    memcpy(s, v.piece, v.n * sizeof *s);
    for (size_t i = 0; i < n; i++) {
        spell_it(i, text + 8 * i);
        s[v.n + i] = (ggl_str){text + 8 * i, 8};
    }
    for (size_t i = 0; i < all; i++)
        types[i] = i < v.n ? NORMAL : type;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "tokenizer.ggml.model", "gpt2", 4);
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", s, all);
    ggl_gguf_put_strings(w, "tokenizer.ggml.merges", s, 0);
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, types, all);
    llm_tokenizer *t;
    ggl_error err = {0};
    ggl_n_steps = 0;
    CHECK_OK(from_writer(&t, w, &err), &err);
    llm_tokenizer_free(t);
    ggl_free(s);
    ggl_free(types);
    ggl_free(text);
    return ggl_n_steps;
}

static void spell_short(uint64_t i, char *s) {
    memset(s, 'x', 8);
    for (int k = 0; k < 4; k++)
        s[k] = (char)('a' + (i >> 4 * k & 15));
}

/* 04-slow-tokenizer.py of the search for hostile files. */
TEST(tokens_made_to_be_slow) {
    for (int special = 0; special < 2; special++) {
        int32_t type = special ? CONTROL : NORMAL;
        test_linear("tokens that collide", steps_to_make(4000, type, colliding_string),
                    steps_to_make(40000, type, colliding_string), 10);
        test_linear("plain tokens", steps_to_make(4000, type, spell_short),
                    steps_to_make(40000, type, spell_short), 10);
    }
}

TEST(round_trips) {
    enum { N_STRINGS = TEST_SANITIZED ? 2000 : 10000 };
    static vocab v;
    static const char *const names[] = {"gpt-2", "llama-bpe", "deepseek-llm", "tekken"};
    train(&v);
    for (int k = 0; k < 4; k++) {
        llm_tokenizer *t = from_pre(&v, names[k]);
        uint64_t seed = sample_seed();
        REQUIRE(t);
        for (int i = 0; i < N_STRINGS; i++) {
            char text[256];
            size_t n = 0, wanted = test_random(&seed) % 48;
            for (size_t j = 0; j < wanted; j++)
                if (i % 2)
                    text[n++] = (char)test_random(&seed);
                else
                    n += put_utf8(random_character(&seed), text + n);
            if (!round_trip(t, text, n, 0))
                break;
        }
        llm_tokenizer_free(t);
    }
}

/* ---- reference files ---- */

TEST(published_strings) {
    static const char separator[] = "\n__ggml_vocab_test__\n";
    static const char *const names[] = {"gpt-2",  "llama-bpe", "qwen2",          "llama-spm",
                                        "phi-3",  "bert-bge",  "nomic-bert-moe", "rwkv",
                                        "plamo2", "gemma-4",   "carbon"};
    int n_files = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char name[3][128];
        for (int i = 0; i < 3; i++)
            snprintf(name[i], sizeof name[i], "tokenizers/ggml-vocab-%s.gguf%s", names[k],
                     i == 0   ? ""
                     : i == 1 ? ".inp"
                              : ".out");
        const char *path = test_shared(name[0]), *inputs = test_shared(name[1]),
                   *outputs = test_shared(name[2]);
        if (!path || !inputs || !outputs)
            continue;
        ggl_error err = {0};
        ggl_gguf *file;
        llm_tokenizer *t;
        REQUIRE_OK(
            ggl_gguf_open(&file, path,
                          &(ggl_gguf_params){.size = sizeof(ggl_gguf_params), .meta_only = true},
                          &err),
            &err);
        REQUIRE_OK(llm_tokenizer_new(&t, file, &err), &err);
        ggl_gguf_close(file);
        const char *kind = llm_tokenizer_kind_name(t);
        size_t n_in, n_out;
        char *in = (char *)test_read_file(inputs, &n_in),
             *out = (char *)test_read_file(outputs, &n_out), *line = out;
        REQUIRE(in && out);
        in[n_in] = out[n_out] = '\0';
        int count = 0;
        for (char *s = in, *end; (end = strstr(s, separator)) != NULL;
             s = end + strlen(separator), count++) {
            llm_tokens got = {0};
            CHECK_OK(llm_tokenize(t, s, (size_t)(end - s), 0, &got, &err), &err);
            char *next = strchr(line, '\n');
            if (next)
                *next++ = '\0';
            size_t i = 0;
            bool same = true;
            for (char *stop; *line; line = stop, i++) {
                long id = strtol(line, &stop, 10);
                if (stop == line)
                    break;
                same = same && i < got.n && got.id[i] == id;
            }
            CHECK_MSG(same && i == got.n, "%s: '%.*s' has other ids", names[k], (int)(end - s), s);
            llm_tokens_fini(&got);
            if (strcmp(kind, "wordpiece") != 0 && strcmp(kind, "unigram") != 0) /* they normalize */
                round_trip(t, s, (size_t)(end - s), 0);
            line = next ? next : out + n_out;
        }
        CHECK(count > 10);
        n_files++;
        free(in);
        free(out);
        llm_tokenizer_free(t);
    }
    if (n_files == 0)
        SKIP_NOT_SHIPPED("published vocabularies");
}
