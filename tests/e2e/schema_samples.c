/* Writes random texts that fit schemas. Reads a schema on each line of stdin, and writes for each a line
 * "refused MESSAGE", or N lines of JSON texts and an empty one.
 *
 *     schema_samples SEED N
 *
 * Each byte is a token. One that the mask allows is chosen at random; after some of them, so few tokens
 * are left that the mask leads to the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm/internal/grammar.h"

enum { BUDGET = 300, N_BYTES = 256, WORDS = N_BYTES / 32 };

static uint64_t state;

static uint32_t random_below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

static void must(ggl_status st, const ggl_error *err) {
    if (st != GGL_OK) {
        fprintf(stderr, "schema_samples: %s\n", err->msg);
        exit(1);
    }
}

/* One of the allowed bytes, letters and digits less often, so that texts have structure; -1: none. */
static int choose(const uint32_t *allowed) {
    int all[N_BYTES], rare[N_BYTES];
    uint32_t n = 0, n_rare = 0;
    for (int b = 0; b < N_BYTES; b++) {
        if (!(allowed[b / 32] >> (b % 32) & 1))
            continue;
        if (strchr("\"{}[],: ", b) && b)
            all[n++] = b;
        else
            rare[n_rare++] = b;
    }
    if (n_rare > 0 && (n == 0 || random_below(3) > 0))
        return rare[random_below(n_rare)];
    return n > 0 ? all[random_below(n)] : -1;
}

/* Writes a text; line breaks, which are white space, as spaces. */
static void sample(llm_matcher *m, int budget) {
    ggl_error err = {0};
    uint32_t allowed[WORDS];
    const int32_t *ending;
    int32_t n;
    llm_matcher_reset(m);
    must(llm_matcher_ending(m, &ending, &n, &err), &err);
    budget = n > budget ? n : budget;
    for (; budget > 0 && !llm_matcher_must_end(m); budget--) {
        if (llm_matcher_is_complete(m) && random_below(4) == 0)
            break;
        must(llm_matcher_mask(m, budget, allowed, &err), &err);
        const int b = choose(allowed);
        if (b < 0)
            break;
        must(llm_matcher_accept_token(m, b, &err), &err);
        putchar(b == '\n' || b == '\r' ? ' ' : b);
    }
    printf(llm_matcher_is_complete(m) ? "\n" : " INCOMPLETE\n");
}

int main(int argc, char **argv) {
    ggl_error err = {0};
    ggl_str byte[N_BYTES];
    char bytes[N_BYTES];
    llm_vocab *v;
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    state = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    for (int b = 0; b < N_BYTES; b++) {
        bytes[b] = (char)b;
        byte[b] = (ggl_str){&bytes[b], 1};
    }
    must(llm_vocab_from_texts(&v, byte, NULL, N_BYTES, &err), &err);
    while ((len = getline(&line, &cap, stdin)) > 0) {
        llm_grammar *g;
        llm_matcher *m;
        if (llm_grammar_from_schema(&g, line, (size_t)len, "schema", &err) != GGL_OK) {
            printf("refused %s\n", err.msg);
            continue;
        }
        must(llm_matcher_new(&m, g, v, &err), &err);
        for (int i = argc > 2 ? atoi(argv[2]) : 1; i > 0; i--)
            sample(m, (int)random_below(BUDGET));
        printf("\n");
        llm_matcher_free(m);
        llm_grammar_free(g);
    }
    llm_vocab_free(v);
    free(line);
    return 0;
}
