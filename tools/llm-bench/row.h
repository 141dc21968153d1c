/* A measured test: what was measured, and the results, also as a list of named values. */
#ifndef TOOLS_BENCH_ROW_H
#define TOOLS_BENCH_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "fields.h"
#include "limits.h"
#include "profile.h"
#include "stats.h"

typedef struct bench_where { /* a placement to be compared */
    char *devices;           /* "vulkan0,cpu"; NULL: not given. Owned by the options */
    const char *split;       /* NULL: not given */
    int64_t n_gpu_layers;    /* negative: not given */
    int width;               /* most characters of the names in its rows; 0: not known */
} bench_where;

typedef struct bench_test { /* one combination of the command line's values */
    const char *model;      /* the path, or name of a built-in model */
    int64_t n_prompt, n_gen, n_depth, n_batch, n_ubatch, n_threads, n_sequences;
    int type_k, type_v; /* ggl_type */
    const bench_where *where;
    const char *guesses; /* what guesses: "draft", "own" or "lookup"; NULL: nothing */
} bench_test;

/* Generation with guesses, beside the same without. The row's samples are those with guesses. */
typedef struct bench_guesses {
    const char *draft;                                         /* path; "": there is none */
    double plain[BENCH_MAX_SAMPLES], ratio[BENCH_MAX_SAMPLES]; /* tokens per second; its gain */
    bench_summary s_plain, s_ratio;
    int64_t n_tokens, n_guessed,
        n_right; /* of all texts in all runs; n_tokens without the first of each text */
    int64_t n_steps, n_declined; /* in which guesses were asked for; in which they did not pay */
    int n_texts, n_differ;       /* texts of a run; those that are not the same without guesses */
} bench_guesses;

typedef struct bench_row {
    bench_test test;
    char model_type[96], cpu[96], isa[64], time[32], types[2][8];
    /* "vulkan0=20,cpu=12"; the names of those devices, without the CPU */
    char backend[96], device[160];
    double n_gpu_layers;
    double model_size, n_params;
    int n; /* samples */
    double ns[BENCH_MAX_SAMPLES], ts[BENCH_MAX_SAMPLES];
    bench_summary s_ns, s_ts; /* summaries of ns and ts */
    double gb, gmac;          /* 1e9 bytes and multiply-adds per second; 0: does not apply */
    bench_limits limit;       /* empty if layers are on several backends */
    char limit_of[96];        /* "2 threads (avx512vnni)", "vulkan0" */
    double percent;           /* 0: not known */
    /* The speed as a percentage of what the first model's predicts, by the bytes of a token and the
     * multiply-adds of a prompt; 0: not known. */
    double of_first;
    double peak_memory, load_ns, first_token_ns;
    bench_guesses *guesses; /* NULL: nothing guesses */
    bench_profile *profile; /* [2]: of the prompt and of generation; NULL: not requested */
} bench_row;

enum { BENCH_MAX_FIELDS = 80 };

/* Writes the fields, which borrow from the row; returns how many. Keys that llama-bench also has
 * get its names. */
int bench_row_fields(const bench_row *r, bench_field out[BENCH_MAX_FIELDS]);
/* Tokens of a step of the model, one of which is its own; the share of guesses that were used; the share of steps without guesses, because they did
 * not pay. NaN: there were none. */
double bench_guesses_per_step(const bench_guesses *g);
double bench_guesses_right(const bench_guesses *g);
double bench_guesses_declined(const bench_guesses *g);
/* True if the devices and the split are the same; -ngl may differ. */
bool bench_where_equal(const bench_where *a, const bench_where *b);
/* True if all numbers and the model are the same; the placement may differ. */
bool bench_test_equal(const bench_test *a, const bench_test *b);
/* True if all numbers are the same; the model and the placement may differ. */
bool bench_test_alike(const bench_test *a, const bench_test *b);
/* Writes "pp512", "tg128 @ d4096", "pp512+tg128", "tg64 x4" or "tg128 draft"; returns buf. */
const char *bench_test_text(const bench_test *t, char *buf, unsigned size);

#endif
