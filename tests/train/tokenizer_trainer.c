/* Training of tokenizers, against slow and plain second implementations. */
#include <math.h>

#include "alloc_fail.h"
#include "steps.h"
#include "unit/tokenizer_file.h"
#include "llm/internal/load.h"
#include "llm/internal/tokenizer_trainer.h"
#include "vocabulary/trainer_impl.h"
#include "vocabulary/unigram_impl.h"

enum { MOST_TOKENS = 400, MOST_TEXT = 4096, MOST_WORDS = 512, MOST_UNITS = 2048 };

/* --- helpers ---------------------------------------------------------------------------------- */

/* A trained tokenizer of one text; NULL: it failed, with *err. */
static llm_tokenizer_trainer *trained(const llm_vocabulary_params *p, const char *text, size_t n,
                                      ggl_error *err) {
    llm_tokenizer_trainer *t = NULL;
    const ggl_str one = {text, n};
    ggl_status s = llm_tokenizer_trainer_new(&t, p, err);
    if (s == GGL_OK)
        s = llm_tokenizer_trainer_add(t, &one, 1, err);
    if (s == GGL_OK)
        s = llm_tokenizer_trainer_train(t, err);
    if (s != GGL_OK) {
        llm_tokenizer_trainer_free(t);
        return NULL;
    }
    return t;
}

/* The tokenizer, from the keys. */
static llm_tokenizer *from_trainer(const llm_tokenizer_trainer *t) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    llm_tokenizer *out = NULL;
    ggl_error err = {0};
    if (CHECK_OK(llm_tokenizer_trainer_put(t, w, &err), &err))
        CHECK_OK(from_writer(&out, w, &err), &err);
    return out;
}

/* A random text of n characters of an alphabet: words, and runs of one letter. */
static size_t random_text(char *s, size_t n, uint64_t *seed, const char *letters) {
    const size_t n_letters = strlen(letters);
    size_t at = 0;
    while (at < n) {
        const uint64_t r = test_random(seed);
        const char c = letters[r % n_letters];
        const size_t times = r >> 32 & 7 ? 1 : 1 + (r >> 40 & 15);
        for (size_t i = 0; i < times && at < n; i++)
            s[at++] = c;
    }
    s[n] = '\0';
    return n;
}

/* --- merges ----------------------------------------------------------------------------------- */

/* Byte-pair encoding as its definition says: all pairs are counted again for each merge. */
typedef struct slow {
    char token[MOST_TOKENS][300];
    size_t units[MOST_TOKENS]; /* bytes or characters of each */
    int n;
    int word[MOST_WORDS][MOST_UNITS], n_in[MOST_WORDS];
    long count[MOST_WORDS];
    int n_words;
    char merge[MOST_TOKENS][601];
    int n_merges;
    long pairs[MOST_TOKENS][MOST_TOKENS];
} slow;

static int slow_find(const slow *s, const char *text) {
    int i = s->n - 1;
    while (i >= 0 && strcmp(s->token[i], text) != 0)
        i--;
    return i;
}

static void slow_add(slow *s, const char *text, size_t units) {
    snprintf(s->token[s->n], sizeof s->token[0], "%s", text);
    s->units[s->n++] = units;
}

/* Cuts text of letters and spaces: a word is a space, if there is one, and letters; each space before another one is a word, or
 * with `runs` all of them together. */
static void slow_words(slow *s, const char *text, const char *space, bool prefix, bool runs) {
    char spaced[MOST_TEXT + 2];
    snprintf(spaced, sizeof spaced, "%s%s", prefix ? " " : "", text);
    for (const char *p = spaced; *p;) {
        int unit[MOST_UNITS], n = 0;
        do
            if (*p == ' ')
                unit[n++] = slow_find(s, space), p++;
        while (runs && *p == ' ' && (p[1] == ' ' || p[1] == '\0'));
        const bool is_run = n > 1 || (n == 1 && *p == ' ');
        while (!is_run && *p && *p != ' ' && n < MOST_UNITS)
            unit[n++] = slow_find(s, (const char[]){*p, 0}), p++;
        int k = 0;
        while (k < s->n_words &&
               !(s->n_in[k] == n && memcmp(s->word[k], unit, (size_t)n * sizeof *unit) == 0))
            k++;
        if (k == s->n_words) {
            memcpy(s->word[k], unit, (size_t)n * sizeof *unit);
            s->n_in[k] = n;
            s->n_words++;
        }
        s->count[k]++;
    }
}

static void slow_train(slow *s, int n_vocab, long min_count, size_t max_units) {
    while (s->n < n_vocab) {
        memset(s->pairs, 0, sizeof s->pairs);
        for (int w = 0; w < s->n_words; w++)
            for (int i = 0; i + 1 < s->n_in[w]; i++)
                s->pairs[s->word[w][i]][s->word[w][i + 1]] += s->count[w];
        long best = 0;
        int left = -1, right = -1;
        for (int a = 0; a < s->n; a++)
            for (int b = 0; b < s->n; b++)
                if (s->pairs[a][b] > best && s->units[a] + s->units[b] <= max_units)
                    best = s->pairs[a][b], left = a, right = b;
        if (best < min_count || left < 0)
            return;
        char both[600];
        snprintf(both, sizeof both, "%s%s", s->token[left], s->token[right]);
        int id = slow_find(s, both);
        if (id < 0)
            slow_add(s, both, s->units[left] + s->units[right]), id = s->n - 1;
        char merge[601];
        snprintf(merge, sizeof merge, "%s %s", s->token[left], s->token[right]);
        memcpy(s->merge[s->n_merges++], merge, sizeof merge);
        for (int w = 0; w < s->n_words; w++) {
            int n = 0;
            for (int i = 0; i < s->n_in[w]; i++)
                if (i + 1 < s->n_in[w] && s->word[w][i] == left && s->word[w][i + 1] == right)
                    s->word[w][n++] = id, i++;
                else
                    s->word[w][n++] = s->word[w][i];
            s->n_in[w] = n;
        }
    }
}

static uint64_t slow_tokens(const slow *s) {
    uint64_t n = 0;
    for (int w = 0; w < s->n_words; w++)
        n += (uint64_t)(s->n_in[w] * s->count[w]);
    return n;
}

/* The 256 bytes in their usual order, as GPT-2 spells them. */
static void slow_bytes(slow *s) {
    for (int pass = 0, other = 0; pass < 2; pass++)
        for (int b = 0; b < 256; b++) {
            const bool plain = (b >= 33 && b < 127) || (b >= 161 && b != 173);
            const int c = plain ? b : pass ? 256 + other++ : 0;
            if (plain != (pass == 0))
                continue;
            char text[3] = {(char)c};
            if (c >= 128)
                text[0] = (char)(0xc0 | c >> 6), text[1] = (char)(0x80 | (c & 63));
            slow_add(s, text, 1);
        }
}

static void same_tokens(const slow *s, const llm_tokenizer_trainer *t, size_t first,
                        const char *what) {
    if (!CHECK_INT(t->n - first, s->n))
        return;
    for (int i = 0; i < s->n; i++) {
        const ggl_str got = t->token[first + (size_t)i].s;
        if (!CHECK_MSG(ggl_str_is(got, s->token[i]), "%s: token %d is '%.*s', not '%s'", what, i,
                       (int)got.n, got.s, s->token[i]))
            return;
    }
}

TEST(merges_of_bytes_are_those_of_a_slow_count) {
    static const char *const alphabets[] = {"a", "ab ", "abc ", "aab ", "abcdefgh "};
    slow *s = malloc(sizeof *s);
    char text[MOST_TEXT + 1];
    for (uint64_t k = 0; k < 60; k++) {
        uint64_t seed = k + test_random(&(uint64_t){k});
        ggl_error err = {0};
        (void)random_text(text, 20 + test_random(&seed) % 1200, &seed, alphabets[k % 5]);
        const llm_vocabulary_params p = {.size = sizeof p,
                                         .n_vocab = 256 + (int32_t)(test_random(&seed) % 60),
                                         .min_count = 1 + (int64_t)(test_random(&seed) % 3),
                                         .max_length = k % 3 ? 0 : 2 + (int32_t)(k % 5)};
        memset(s, 0, sizeof *s);
        slow_bytes(s);
        slow_words(s, text, "\u0120", false, true);
        slow_train(s, p.n_vocab, p.min_count, p.max_length ? (size_t)p.max_length : 256);
        llm_tokenizer_trainer *t = trained(&p, text, strlen(text), &err);
        if (!CHECK_MSG(t, "%s", err.msg))
            continue;
        same_tokens(s, t, 0, text);
        CHECK_INT(t->n_merge, s->n_merges);
        for (int i = 0; i < s->n_merges && (size_t)i < t->n_merge; i++) {
            char got[600];
            const ggl_str a = t->token[t->merge[i].left].s, b = t->token[t->merge[i].right].s;
            snprintf(got, sizeof got, "%.*s %.*s", (int)a.n, a.s, (int)b.n, b.s);
            CHECK_STR(got, s->merge[i]);
        }
        CHECK_INT(llm_tokenizer_trainer_result(t).n_tokens, slow_tokens(s));
        llm_tokenizer_trainer_free(t);
    }
    free(s);
}

TEST(merges_of_characters_are_those_of_a_slow_count) {
    slow *s = malloc(sizeof *s);
    char text[MOST_TEXT + 1];
    for (uint64_t k = 0; k < 30; k++) {
        uint64_t seed = k + 1000;
        ggl_error err = {0};
        (void)random_text(text, 20 + test_random(&seed) % 900, &seed, k % 2 ? "abc " : "aab ");
        const llm_vocabulary_params p = {.size = sizeof p,
                                         .kind = LLM_VOCABULARY_SPM,
                                         .n_vocab = 259 + 4 + (int32_t)(test_random(&seed) % 40),
                                         .coverage = 1,
                                         .no_space_prefix = k % 3 == 0};
        memset(s, 0, sizeof *s);
        slow_add(s, "\u2581", 1); /* a space is below all letters */
        for (const char *c = "abc"; *c; c++)
            if (strchr(text, *c))
                slow_add(s, (const char[]){*c, 0}, 1);
        slow_words(s, text, "\u2581", !p.no_space_prefix, false);
        slow_train(s, p.n_vocab - 259, 2, 16);
        llm_tokenizer_trainer *t = trained(&p, text, strlen(text), &err);
        if (CHECK_MSG(t, "%s", err.msg))
            same_tokens(s, t, 259, text);
        llm_tokenizer_trainer_free(t);
    }
    free(s);
}

/* Steps to learn 64 merges from one word: n times one letter, or two letters at random. */
static uint64_t steps_of(size_t n, bool is_run) {
    char *text = malloc(n);
    uint64_t seed = 7;
    ggl_error err = {0};
    for (size_t i = 0; i < n; i++)
        text[i] = is_run || test_random(&seed) >> 60 & 1 ? 'a' : 'b';
    const llm_vocabulary_params p = {.size = sizeof p, .n_vocab = 256 + 64, .max_length = 65536};
    ggl_n_steps = 0;
    llm_tokenizer_trainer *t = trained(&p, text, n, &err);
    CHECK_MSG(t, "%s", err.msg);
    llm_tokenizer_trainer_free(t);
    free(text);
    return ggl_n_steps;
}

TEST(one_huge_word_takes_linear_steps) {
    for (int is_run = 0; is_run < 2; is_run++)
        test_linear("one word", steps_of(20000, is_run), steps_of(320000, is_run), 16);
}

/* --- unigram ---------------------------------------------------------------------------------- */

/* The lattice of words, by trying all ways to cut. */
typedef struct ways {
    const unigram_pieces *u;
    size_t end;
    uint32_t way[MOST_UNITS];
    int n;
    double sum, best; /* of probabilities; the best score */
    double *expected; /* of pieces; added with p / all, once `all` is known */
    double all, weight;
    uint32_t without;
} ways;

static bool is_at(const unigram_pieces *u, size_t piece, size_t at) {
    const unigram_piece *p = &u->piece[piece];
    return memcmp(u->x->at + p->at, u->x->at + at, p->n * sizeof *u->x->at) == 0;
}

static void all_ways(ways *w, size_t at, double p, double score) {
    if (at == w->end) {
        w->sum += p;
        w->best = score > w->best ? score : w->best;
        for (int i = 0; i < w->n && w->all > 0; i++)
            w->expected[w->way[i]] += w->weight * p / w->all;
        return;
    }
    for (size_t k = 0; k < w->u->n; k++) {
        const unigram_piece *x = &w->u->piece[k];
        if (k == w->without || at + x->n > w->end || !is_at(w->u, k, at))
            continue;
        w->way[w->n++] = (uint32_t)k;
        all_ways(w, at + x->n, p * x->p, score + x->score);
        w->n--;
    }
}

/* A trainer with words that are not trained yet, their symbols, and seeds. */
static llm_tokenizer_trainer *seeded(const char *text, int n_seed, train_text *x,
                                     unigram_pieces *u) {
    const llm_vocabulary_params p = {.size = sizeof p,
                                     .kind = LLM_VOCABULARY_UNIGRAM,
                                     .n_vocab = 4096,
                                     .coverage = 1,
                                     .n_seed = n_seed,
                                     .n_threads = 2};
    llm_tokenizer_trainer *t = NULL;
    const ggl_str one = {text, strlen(text)};
    ggl_error err = {0};
    CHECK_OK(llm_tokenizer_trainer_new(&t, &p, &err), &err);
    CHECK_OK(llm_tokenizer_trainer_add(t, &one, 1, &err), &err);
    CHECK_OK(llm_vocabulary_read_symbols(t, x, &err), &err);
    CHECK_OK(llm_vocabulary_add_base(t, x, &err), &err);
    CHECK_OK(llm_unigram_seed(t, x, u, &err), &err);
    return t;
}

static void unseeded(llm_tokenizer_trainer *t, train_text *x, unigram_pieces *u) {
    llm_unigram_fini(u);
    llm_vocabulary_text_fini(x);
    llm_tokenizer_trainer_free(t);
}

TEST(expected_counts_are_sums_over_all_ways) {
    char text[MOST_TEXT + 1];
    for (uint64_t k = 0; k < 12; k++) {
        uint64_t seed = 50 + k;
        (void)random_text(text, 40 + 10 * k, &seed, k % 2 ? "abc  " : "aaab  ");
        train_text x;
        unigram_pieces u;
        ggl_error err = {0};
        llm_tokenizer_trainer *t = seeded(text, 40, &x, &u);
        unigram_count *count = calloc(u.n, sizeof *count), *cut = calloc(u.n, sizeof *cut);
        double *want = calloc(u.n, sizeof *want), *loss = calloc(u.n, sizeof *loss);
        CHECK(u.n > x.n_symbols);
        CHECK_OK(llm_unigram_expect(&u, count, 2, &err), &err);
        CHECK_OK(llm_unigram_cut(&u, cut, 2, &err), &err);
        double best = 0, got_best = 0, n_all = 0, words = 0;
        for (size_t w = 0; w < x.n_words; w++) {
            ways way = {
                .u = &u, .end = u.word_at[w + 1] - 1, .best = -INFINITY, .without = UINT32_MAX};
            if (way.end - u.word_at[w] > 12)
                continue;
            all_ways(&way, u.word_at[w], 1, 0);
            way = (ways){.u = &u,
                         .end = way.end,
                         .best = -INFINITY,
                         .without = UINT32_MAX,
                         .all = way.sum,
                         .weight = (double)x.weight[w],
                         .expected = want};
            all_ways(&way, u.word_at[w], 1, 0);
            best += way.best * (double)x.weight[w];
        }
        bool all_short = true;
        for (size_t w = 0; w < x.n_words; w++) {
            all_short = all_short && u.word_at[w + 1] - 1 - u.word_at[w] <= 12;
            words += (double)x.weight[w];
        }
        for (size_t i = 0; i < u.n && all_short; i++) {
            const double got = ldexp((double)count[i], -UNIGRAM_COUNT_BITS);
            CHECK_MSG(fabs(got - want[i]) < 1e-4,
                      "text %d: piece %zu is expected %.9g times, not %.9g", (int)k, i, got,
                      want[i]);
            got_best += (double)cut[i] * u.piece[i].score;
            n_all += (double)cut[i];
        }
        if (all_short)
            CHECK_MSG(fabs(got_best - best) < 1e-8 * fabs(best),
                      "the best ways score %.12g, not %.12g", got_best, best);
        /* without a piece, its best division takes its place */
        CHECK_OK(llm_unigram_losses(&u, cut, loss, 2, &err), &err);
        for (size_t i = x.n_symbols; i < u.n && all_short; i++) {
            if (cut[i] == 0) {
                CHECK(loss[i] == 0);
                continue;
            }
            ways way = {.u = &u,
                        .end = u.piece[i].at + u.piece[i].n,
                        .best = -INFINITY,
                        .without = (uint32_t)i};
            all_ways(&way, u.piece[i].at, 1, 0);
            CHECK(isfinite(way.best) && isfinite(loss[i]));
            /* if it is divided into characters a, b: f (log f/s - sum of log (f_a + f)/(s + f)) / words */
            const double f = (double)cut[i], s = n_all;
            if (u.piece[i].n == 2) {
                const uint32_t a = x.at[u.piece[i].at] - 1, b = x.at[u.piece[i].at + 1] - 1;
                const double all = log(s + f),
                             want_loss = f / words *
                                         (log(f / s) - (log((double)cut[a] + f) - all) -
                                          (log((double)cut[b] + f) - all));
                CHECK_MSG(fabs(loss[i] - want_loss) < 1e-9, "the loss is %.9g, not %.9g", loss[i],
                          want_loss);
            }
        }
        free(count), free(cut), free(want), free(loss);
        unseeded(t, &x, &u);
    }
}

TEST(seeds_are_strings_with_their_places) {
    train_text x;
    unigram_pieces u;
    llm_tokenizer_trainer *t = seeded("the then these other the xthex", 1000, &x, &u);
    for (size_t w = 0; w < x.n_words; w++)
        for (size_t at = u.word_at[w]; at + 1 < u.word_at[w + 1]; at++) {
            size_t n = 0;
            for (size_t k = 0; k < u.n; k++)
                n += at + u.piece[k].n < u.word_at[w + 1] && is_at(&u, k, at);
            CHECK_INT(u.first[at + 1] - u.first[at], n);
            for (size_t k = u.first[at]; k < u.first[at + 1]; k++)
                CHECK(is_at(&u, u.begins[k], at));
        }
    bool has_the = false; /* 3 letters, which "▁the" does not have everywhere */
    for (size_t k = x.n_symbols; k < u.n; k++) {
        char s[64 * 4 + 1];
        size_t n = 0;
        for (uint32_t i = 0; i < u.piece[k].n; i++)
            n += llm_vocabulary_spell(x.code[x.at[u.piece[k].at + i] - 1], s + n);
        s[n] = '\0';
        has_the = has_the || strcmp(s, "the") == 0;
        CHECK(strcmp(s, "th") != 0); /* each th is the beginning of the */
    }
    CHECK(has_the);
    unseeded(t, &x, &u);
}

/* Sums of long words do not become 0: characters are expected as often as the text has them. */
TEST(long_words_keep_their_probability) {
    char text[4001];
    uint64_t seed = 3;
    for (int k = 0; k < 4000; k++)
        text[k] = (char)('a' + test_random(&seed) % 26);
    text[4000] = '\0';
    train_text x;
    unigram_pieces u;
    ggl_error err = {0};
    llm_tokenizer_trainer *t = seeded(text, 5000, &x, &u);
    unigram_count *count = calloc(u.n, sizeof *count);
    CHECK_OK(llm_unigram_expect(&u, count, 1, &err), &err);
    double sum = 0;
    for (size_t i = 0; i < u.n; i++)
        sum += ldexp((double)count[i], -UNIGRAM_COUNT_BITS) * u.piece[i].n;
    CHECK_MSG(fabs(sum - 4001) < 0.1, "%.9g characters are expected, not 4001", sum);
    free(count);
    unseeded(t, &x, &u);
}

TEST(digamma_has_its_known_values) {
    static const double known[][2] = {{1, -0.5772156649015329},
                                      {0.5, -1.9635100260214235},
                                      {10, 2.2517525890667211},
                                      {1e6, 13.815510057964191}};
    for (int i = 0; i < 4; i++)
        CHECK_MSG(fabs(llm_digamma(known[i][0]) - known[i][1]) < 1e-9, "digamma(%g) is %.17g",
                  known[i][0], llm_digamma(known[i][0]));
}

/* --- whole tokenizers ------------------------------------------------------------------------- */

static const char story[] =
    "Once upon a time there was a little girl. The little girl had a little dog, and the dog had a "
    "ball.\n"
    "\"Where is the ball?\" asked the girl. The dog did not say where the ball was; dogs don't.\n\n"
    "Es war einmal ein kleines Mädchen. Das Mädchen hatte einen kleinen Hund.   In 1984 & 1985: "
    "\u4f60\u597d\u3002\n"
    "The girl and the dog went home. There the ball was! \"There is the ball,\" said the little "
    "girl.\n";

static llm_tokenizer *from_json(const char *path) {
    const llm_load_params load = {.size = sizeof load, .vocab_only = true};
    ggl_gguf *file = NULL;
    llm_tokenizer *t = NULL;
    ggl_error err = {0};
    if (CHECK_OK(llm_load(&file, path, NULL, &load, &err), &err))
        CHECK_OK(llm_tokenizer_new(&t, file, &err), &err);
    ggl_gguf_close(file);
    return t;
}

/* Both give the same ids, which become the text again. */
static void same_ids(const llm_tokenizer *a, const llm_tokenizer *b, const char *text, size_t n) {
    const unsigned flags = LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL;
    llm_tokens x = {0}, y = {0};
    char *back = NULL;
    size_t n_back = 0;
    ggl_error err = {0};
    CHECK_OK(llm_tokenize(a, text, n, flags, &x, &err), &err);
    CHECK_OK(llm_tokenize(b, text, n, flags, &y, &err), &err);
    if (CHECK_INT(x.n, y.n))
        CHECK_MSG(x.n == 0 || memcmp(x.id, y.id, x.n * sizeof *x.id) == 0, "other ids of '%.*s'",
                  (int)n, text);
    CHECK_OK(llm_detokenize(b, y.id, y.n, true, &back, &n_back, &err), &err);
    CHECK_MSG(n_back == n && memcmp(back, text, n) == 0, "'%.*s' became '%.*s'", (int)n, text,
              (int)n_back, back);
    ggl_free(back);
    llm_tokens_fini(&x);
    llm_tokens_fini(&y);
}

static const char with_special[] = " a  <|x|> b\u00fc\u0161\n\n\tdog's \U0001f600";

TEST(both_files_give_the_same_ids_and_the_text_again) {
    static const struct {
        llm_vocabulary_kind kind;
        int32_t n_vocab;
        const char *pre, *special;
        bool is_exact; /* a text is divided as it was when the last piece was learned */
    } cases[] = {{LLM_VOCABULARY_BPE, 400, NULL, "<|x|>", true},
                 {LLM_VOCABULARY_BPE, 330, "llama-bpe", "<|x|>", false},
                 {LLM_VOCABULARY_BPE, 330, "deepseek-v3", NULL, true},
                 {LLM_VOCABULARY_BPE, 330, "bloom", "\u0161", true},
                 {LLM_VOCABULARY_SPM, 420, NULL, NULL, false},
                 {LLM_VOCABULARY_SPM, 420, "qwen2", "<|x|>", false},
                 {LLM_VOCABULARY_UNIGRAM, 420, NULL, "<|x|>", true},
                 {LLM_VOCABULARY_UNIGRAM, 360, NULL, NULL, true}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char path[4096];
        ggl_error err = {0};
        const llm_vocabulary_params p = {.size = sizeof p,
                                         .kind = cases[k].kind,
                                         .n_vocab = cases[k].n_vocab,
                                         .pre = cases[k].pre,
                                         .special = &cases[k].special,
                                         .n_special = cases[k].special != NULL,
                                         .no_space_prefix = k == 5 || k == 7};
        llm_tokenizer_trainer *t = trained(&p, story, sizeof story - 1, &err);
        snprintf(path, sizeof path, "%s/%zu.json", test_folder(), k);
        if (!CHECK_MSG(t, "%s", err.msg))
            continue;
        CHECK_OK(llm_tokenizer_trainer_write(t, path, &err), &err);
        const uint64_t n_tokens = llm_tokenizer_trainer_result(t).n_tokens;
        llm_tokenizer *a = from_trainer(t), *b = from_json(path);
        llm_tokenizer_trainer_free(t);
        if (!a || !b)
            continue;
        same_ids(a, b, story, sizeof story - 1);
        if (cases[k].is_exact) {
            llm_tokens ids = {0};
            CHECK_OK(llm_tokenize(a, story, sizeof story - 1, 0, &ids, &err), &err);
            CHECK_INT(ids.n, n_tokens);
            llm_tokens_fini(&ids);
        }
        same_ids(a, b, "", 0);
        /* a space is put after a special token, too, and is not taken away there */
        if (cases[k].kind == LLM_VOCABULARY_BPE || p.no_space_prefix)
            same_ids(a, b, with_special, sizeof with_special - 1);
        uint64_t seed = k;
        for (int i = 0; i < 200; i++) {
            char s[64];
            const size_t n = test_random(&seed) % sizeof s;
            for (size_t c = 0; c < n; c++)
                s[c] = cases[k].kind == LLM_VOCABULARY_UNIGRAM
                           ? (char)(test_random(&seed) % 127 + 1)
                           : (char)test_random(&seed);
            same_ids(a, b, s, n);
        }
        llm_tokenizer_free(a);
        llm_tokenizer_free(b);
    }
}

/* Texts with bos and eos, whose ids both forms have. */
TEST(ends_are_added) {
    for (int kind = 0; kind < 3; kind++) {
        char path[4096];
        ggl_error err = {0};
        const llm_vocabulary_params p = {.size = sizeof p,
                                         .kind = (llm_vocabulary_kind)kind,
                                         .n_vocab = 400,
                                         .bos = "<begin>",
                                         .eos = "<end>",
                                         .add_bos = true,
                                         .add_eos = true};
        llm_tokenizer_trainer *t = trained(&p, story, sizeof story - 1, &err);
        REQUIRE(t);
        CHECK_OK(llm_tokenizer_trainer_write(t, test_folder(), &err), &err);
        snprintf(path, sizeof path, "%s/tokenizer.json", test_folder());
        llm_tokenizer *a = from_trainer(t), *b = from_json(path);
        for (int i = 0; i < 2; i++) {
            llm_tokens ids = {0};
            const llm_tokenizer *one = i ? b : a;
            CHECK_OK(llm_tokenize(one, "dog", 3, LLM_TOKENIZE_BOS, &ids, &err), &err);
            CHECK(ids.n >= 3 && ids.id[0] == llm_tokenizer_bos(one) &&
                  ids.id[ids.n - 1] == llm_tokenizer_eos(one));
            CHECK(llm_tokenizer_is_eog(one, llm_tokenizer_eos(one)));
            CHECK(ggl_str_is(llm_token_piece(one, ids.id[0]), "<begin>"));
            llm_tokens_fini(&ids);
        }
        llm_tokenizer_free(a);
        llm_tokenizer_free(b);
        llm_tokenizer_trainer_free(t);
    }
}

/* Threads share texts: the file has the same bytes for any number. */
TEST(threads_change_nothing) {
    enum { N_TEXTS = 9, N = 12000 };
    ggl_str texts[N_TEXTS];
    char *text = malloc(N_TEXTS * N + 1), *first = NULL;
    uint64_t seed = 11;
    size_t n_first = 0;
    for (int k = 0; k < N_TEXTS; k++)
        texts[k] = (ggl_str){text + k * N, random_text(text + k * N, N, &seed, "etaoins  ")};
    for (int k = 0; k < 6; k++) {
        const llm_vocabulary_params p = {.size = sizeof p,
                                         .kind = (llm_vocabulary_kind)(k / 2),
                                         .n_vocab = 500,
                                         .n_threads = k % 2 ? 5 : 1,
                                         .n_seed = 2000};
        ggl_error err = {0};
        llm_tokenizer_trainer *t = NULL;
        char *json = NULL;
        size_t n_json = 0;
        CHECK_OK(llm_tokenizer_trainer_new(&t, &p, &err), &err);
        CHECK_OK(llm_tokenizer_trainer_add(t, texts, N_TEXTS, &err), &err);
        CHECK_OK(llm_tokenizer_trainer_train(t, &err), &err);
        CHECK_OK(llm_tokenizer_trainer_json(t, &json, &n_json, &err), &err);
        if (k % 2)
            CHECK(n_json == n_first && memcmp(json, first, n_json) == 0);
        ggl_free(first);
        first = json;
        n_first = n_json;
        llm_tokenizer_trainer_free(t);
    }
    ggl_free(first);
    free(text);
}

/* A long text is cut into parts, where no word is cut. */
TEST(long_texts_are_cut_between_words) {
    static const char line[] = "the dog's \u00e4\n";
    enum { LINE = sizeof line - 1, TIMES = 300000 };
    char *text = malloc((size_t)LINE * TIMES);
    ggl_error err = {0};
    for (size_t i = 0; i < TIMES; i++)
        memcpy(text + i * LINE, line, LINE);
    const llm_vocabulary_params p = {.size = sizeof p, .n_vocab = 256, .n_threads = 3};
    llm_tokenizer_trainer *t = trained(&p, text, (size_t)LINE * TIMES, &err);
    if (CHECK_MSG(t, "%s", err.msg)) {
        CHECK_INT(llm_tokenizer_trainer_result(t).n_words, 5);
        CHECK_INT(llm_tokenizer_trainer_result(t).n_tokens, (long long)LINE * TIMES);
    }
    llm_tokenizer_trainer_free(t);
    free(text);
}

/* Special tokens divide texts, and are no part of what is counted. */
TEST(special_tokens_are_not_learned) {
    static const char text[] = "ab<|end|>ab<|end|>ab<|end|>ab";
    const char *special[] = {"<|end|>", "<|other|>"};
    const llm_vocabulary_params p = {
        .size = sizeof p, .n_vocab = 300, .special = special, .n_special = 2};
    ggl_error err = {0};
    llm_tokenizer_trainer *t = trained(&p, text, sizeof text - 1, &err);
    REQUIRE(t);
    const llm_vocabulary_result r = llm_tokenizer_trainer_result(t);
    CHECK_INT(r.n_vocab, 259); /* special ones, bytes, and ab alone */
    CHECK_INT(r.n_special, 2);
    CHECK_INT(r.n_merges, 1);
    CHECK_INT(r.n_tokens, 4);
    CHECK_INT(r.n_words, 1);
    llm_tokenizer_trainer_free(t);
}

/* Rare characters become bytes, and NUL never is a piece. */
TEST(coverage_leaves_rare_characters_out) {
    char text[2000];
    ggl_error err = {0};
    memset(text, 'a', sizeof text);
    memcpy(text + 100, "\xe4\xbd\xa0", 3);
    text[200] = '\0';
    text[300] = (char)0xff;
    const llm_vocabulary_params p = {
        .size = sizeof p, .kind = LLM_VOCABULARY_UNIGRAM, .n_vocab = 280, .coverage = 0.99};
    llm_tokenizer_trainer *t = trained(&p, text, sizeof text, &err);
    REQUIRE(t);
    CHECK_INT(llm_tokenizer_trainer_result(t).n_base, 257);
    CHECK(llm_vocabulary_find_token(t, (ggl_str){"aa", 2}) >= 0);
    CHECK(llm_vocabulary_find_token(t, (ggl_str){"\xe4\xbd\xa0", 3}) < 0);
    llm_tokenizer *k = from_trainer(t);
    llm_tokens ids = {0};
    CHECK_OK(llm_tokenize(k, "\xe4\xbd\xa0", 3, 0, &ids, &err), &err);
    CHECK_INT(ids.n, 6); /* three bytes, and those of the space before it */
    llm_tokens_fini(&ids);
    llm_tokenizer_free(k);
    llm_tokenizer_trainer_free(t);
}

static void refuses(llm_vocabulary_params p, const char *text, ggl_status status,
                    const char *words) {
    ggl_error err = {0};
    p.size = sizeof p;
    llm_tokenizer_trainer *t = trained(&p, text, strlen(text), &err);
    CHECK(!t);
    CHECK_INT(err.status, status);
    CHECK_HAS(err.msg, words);
    llm_tokenizer_trainer_free(t);
}

TEST(mistakes_are_errors) {
    const char *a = "a", *empty = "", *bad = "\xff", *byte = "<0x41>";
    refuses((llm_vocabulary_params){.n_vocab = 255}, "text", GGL_USAGE,
            "256 bytes and 0 characters need 256");
    refuses((llm_vocabulary_params){.kind = LLM_VOCABULARY_SPM, .n_vocab = 262}, "text", GGL_USAGE,
            "3 special tokens, 256 bytes and 4 characters need 263");
    refuses((llm_vocabulary_params){.n_vocab = 300}, "", GGL_USAGE,
            "there is no text to learn from");
    refuses((llm_vocabulary_params){.n_vocab = 300, .pre = "nothing"}, "text", GGL_UNSUPPORTED,
            "'nothing'");
    refuses((llm_vocabulary_params){.n_vocab = 300, .pre = "gemma4"}, "text", GGL_USAGE,
            "for pieces of characters");
    refuses((llm_vocabulary_params){.n_vocab = 300, .special = &a, .n_special = 1}, "text",
            GGL_USAGE, "the special token 'a' is spelled like the token of a byte");
    refuses(
        (llm_vocabulary_params){
            .n_vocab = 300, .kind = LLM_VOCABULARY_SPM, .special = &byte, .n_special = 1},
        "text", GGL_USAGE, "'<0x41>' is spelled like the token of a byte");
    refuses((llm_vocabulary_params){.n_vocab = 300, .special = &empty, .n_special = 1}, "text",
            GGL_USAGE, "is empty");
    refuses((llm_vocabulary_params){.n_vocab = 300, .special = &bad, .n_special = 1}, "text",
            GGL_USAGE, "not UTF-8");
    refuses((llm_vocabulary_params){.n_vocab = 300, .add_bos = true}, "text", GGL_USAGE, "bos");
    refuses((llm_vocabulary_params){.n_vocab = 300, .coverage = 2}, "text", GGL_USAGE,
            "coverage is 2");
    refuses((llm_vocabulary_params){.n_vocab = 0}, "text", GGL_USAGE, "n_vocab is 0");
    refuses((llm_vocabulary_params){.n_vocab = 300,
                                    .kind = LLM_VOCABULARY_UNIGRAM,
                                    .unknown = "",
                                    .no_byte_fallback = true},
            "text", GGL_USAGE, "there has to be an unknown token");
}

static bool never(void *ctx, const char *what, size_t done, size_t total) {
    (void)what, (void)done, (void)total;
    return --*(int *)ctx > 0;
}

TEST(progress_can_end_it) {
    for (int kind = 0; kind < 3; kind++)
        for (int calls = 1; calls < 3; calls++) {
            int left = calls;
            refuses((llm_vocabulary_params){.kind = (llm_vocabulary_kind)kind,
                                            .n_vocab = 400,
                                            .progress = never,
                                            .ctx = &left},
                    story, GGL_CANCELLED, "cancelled");
        }
}

static bool train_and_put(void *arg) {
    const llm_vocabulary_params p = {.size = sizeof p,
                                     .kind = *(llm_vocabulary_kind *)arg,
                                     .n_vocab = 330,
                                     .special = &(const char *){"<|x|>"},
                                     .n_special = 1};
    llm_tokenizer_trainer *t = trained(&p, "the dog and the cat\n the dog<|x|>", 32, NULL);
    ggl_gguf_writer *w = t ? ggl_gguf_writer_new() : NULL;
    char *text = NULL;
    void *data = NULL;
    size_t n;
    bool ok = w && llm_tokenizer_trainer_put(t, w, NULL) == GGL_OK &&
              ggl_gguf_writer_write_memory(w, &data, &n, NULL) == GGL_OK &&
              llm_tokenizer_trainer_json(t, &text, &n, NULL) == GGL_OK;
    ggl_free(text);
    ggl_free(data);
    ggl_gguf_writer_free(w);
    llm_tokenizer_trainer_free(t);
    return ok;
}

TEST(failed_allocations_are_errors) {
    for (int kind = 0; kind < 3; kind++)
        CHECK(alloc_fail_each(train_and_put, &(llm_vocabulary_kind){(llm_vocabulary_kind)kind}) >
              20);
}
