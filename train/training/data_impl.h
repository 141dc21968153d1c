/* What the files of data.h share: the items, and how one is made. */
#ifndef TRAIN_DATA_IMPL_H
#define TRAIN_DATA_IMPL_H

#include <string.h>

#include "data.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/xxh64.h"

/* Tokens [first, end) of an item count, `weight` each. */
typedef struct train_run {
    uint32_t first, end;
    float weight; /* above 0 */
} train_run;

typedef struct train_entry {
    uint64_t at;     /* its first token in the pool; pieces of a document share one */
    size_t run;      /* its first run; those of the next item follow */
    uint32_t n : 31; /* tokens that are read; it has one more */
    uint32_t begins : 1;
    uint32_t n_counted; /* n if it has no runs: all count, 1 each */
    uint32_t
        reading; /* what it reads, counted from 1; 0: nothing, or what stands among its tokens */
} train_entry;

/* A file that is read again for each step. */
typedef struct train_file {
    uint8_t id[LLM_MEDIA_ID];
    char *path;          /* NULL: data */
    unsigned char *data; /* [n_data] */
    size_t n_data;
    double offset, duration;
    uint32_t first, n_parts; /* its readings */
    bool is_sound;
} train_file;

typedef struct train_reading {
    uint64_t
        at; /* the number of its first row among those of all that stand in texts; of a text, its first token in the pool */
    int64_t n;
    uint32_t file;
} train_reading;

typedef struct train_read_table {
    train_file *file;
    size_t n_files, cap_files;
    uint32_t *place; /* [n_places], of files by their ids: numbers from 1 */
    size_t n_places;
    train_reading *reading;
    size_t n, cap;
    uint64_t n_rows;
    /* What the record has shown, and the file of each. */
    llm_shown_file *shown;
    uint32_t *shown_file;
    size_t n_shown, cap_shown, cap_shown_file;
} train_read_table;

struct train_data {
    train_data_params p;
    train_kind kind;
    bool wide;    /* a token takes four bytes, not two */
    void **block; /* the pool, in pieces that stay where they are */
    size_t n_blocks, cap_blocks;
    uint64_t n_pool; /* tokens */
    train_entry *entry;
    size_t n, cap;
    train_run *run;
    size_t n_runs, cap_runs;
    double *score; /* [records], of TRAIN_SCORED */
    size_t cap_scores;
    ggl_xxh64 digest;
    train_data_stats stats;
    size_t told;      /* bytes of a file of which the program was told */
    bool told_no_end; /* the note that texts or answers have no token at their end */
    bool told_no_tools;
    train_read_table reads;
    char *folder; /* of the file that is read, with its '/'; NULL: none */
};

/* A sequence that is about to become an item. */
typedef struct train_draft {
    llm_tokens tokens, types; /* types: of two texts side by side; else none */
    train_run *run;           /* which tokens count */
    size_t n_runs, cap_runs;
    bool is_cut;
    uint32_t reading; /* as train_entry.reading */
} train_draft;

/* Adds to the digest of all items. */
static inline void train_digest_number(train_data *d, uint64_t x) {
    unsigned char byte[8];
    for (int i = 0; i < 8; i++)
        byte[i] = (unsigned char)(x >> 8 * i);
    ggl_xxh64_add(&d->digest, byte, sizeof byte);
}

static inline void train_digest_float(train_data *d, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    train_digest_number(d, bits);
}

/* --- data_items.c ----------------------------------------------------------------------------- */

void llm_train_items_fini(train_data *d);
/* All data are of one kind, but texts and answers go together. GGL_FORMAT: this kind does not go with what was read before. */
GGL_NODISCARD ggl_status llm_train_set_kind(train_data *d, train_kind kind, ggl_error *err);
/* Adds a text that an item reads, cut to n_ctx tokens with its last one kept. *reading: its number. */
GGL_NODISCARD ggl_status llm_train_add_read(train_data *d, llm_tokens *text, uint32_t *reading,
                                            bool *is_cut, ggl_error *err);
/* Adds a document of n >= 2 tokens, cut into as many items as it takes. */
GGL_NODISCARD ggl_status llm_train_add_document(train_data *d, const int32_t *id, size_t n,
                                                ggl_error *err);

/* Says how much of a file is read, but not for each line. GGL_CANCELLED. */
GGL_NODISCARD ggl_status llm_train_progress(train_data *d, size_t done, size_t total,
                                            ggl_error *err);

void llm_train_draft_fini(train_draft *s);
void llm_train_draft_clear(train_draft *s);
/* Tokens [first, end) count, `weight` (above 0) each, but for those that are rows. */
GGL_NODISCARD ggl_status llm_train_draft_count(train_draft *s, size_t first, size_t end,
                                               float weight, ggl_error *err);
/* Adds an item, cut if it is too long. begins: it is the first of its record. *added: it was not left out. */
GGL_NODISCARD ggl_status llm_train_add(train_data *d, train_draft *s, bool begins, bool *added,
                                       ggl_error *err);
/* Adds both items of a pair, the chosen one first, or none. */
GGL_NODISCARD ggl_status llm_train_add_pair(train_data *d, train_draft side[2], ggl_error *err);
/* Adds n items that belong together; of TRAIN_SCORED, with their number. Each has a token more than is read. */
GGL_NODISCARD ggl_status llm_train_add_group(train_data *d, const train_draft *s, size_t n,
                                             double score, ggl_error *err);

#endif
