/* What a model learns from: items, each a sequence of tokens of which some count. They are made of files of texts, of prompts and
 * answers, of conversations, or of preferences (docs/training-data.md).
 *
 *     train_data *d;
 *     train_data_params p = {.tokenizer = tokenizer, .chat = chat, .n_ctx = 512};
 *     if (llm_train_data_new(&d, &p, &err) != GGL_OK || llm_train_data_read(d, "talks.jsonl", &err) != GGL_OK) ..
 *     for (int64_t k = 0; k < llm_train_data_n(d); k++) {
 *         const int64_t n = llm_train_data_length(d, k);
 *         llm_train_data_get(d, k, token, target, weight);         // of n tokens each, as llm_train_batch has them
 *     }
 *     llm_train_data_free(d);
 *
 * A conversation is rendered by the model's chat template, and an answer's prompt has the tokens that it has when the model is used.
 *
 * Threads: one at a time reads files; while none does, any number may get items. */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include "llm/internal/chat.h"
#include "llm/internal/tokenizer.h"
#include "file_senses.h"

typedef struct train_data train_data;

typedef enum train_kind {
    TRAIN_NOTHING, /* no file was read */
    TRAIN_TEXT,    /* all tokens count */
    TRAIN_ANSWERS, /* there are answers: what comes before them does not count */
    TRAIN_PAIRS,   /* items 2k and 2k + 1 are a chosen and a rejected answer */
    TRAIN_MATCHES, /* a text, one that belongs to it, and any number that do not; of a model that scores: each of these behind the first text */
    TRAIN_SCORED /* items 2k and 2k + 1 are two texts, and a number says how much they belong together; of a model that scores: item k is both */
} train_kind;

#define TRAIN_NOW "2026-01-01T12:00:00"

typedef struct train_data_params {
    const llm_tokenizer *tokenizer; /* borrowed */
    const llm_chat *chat;           /* borrowed; NULL: conversations are refused */
    int64_t n_ctx;                  /* the most tokens of an item that the model reads */
    bool all;                       /* all tokens count, also those of prompts; not of pairs */
    bool
        drop_long; /* conversations and answers that are longer are left out, not cut at their end */
    bool plain;    /* names of special tokens in texts stay text; in conversations they never do */
    const char *
        separator; /* between the documents of a text file, borrowed; NULL: the file is one document */
    /* The time for chat templates that show the date, such as "2026-03-09T14:05:06", borrowed; NULL: TRAIN_NOW. It is not that of the
     * call, so that the data have the same tokens tomorrow. */
    const char *now;
    /* What is put before texts of the kinds from TRAIN_MATCHES on, borrowed: before the first of a group, those that are compared with it, and others. */
    ggl_str query_prompt, document_prompt, text_prompt;
    bool scores; /* the model gives a score to two texts: both become one item, without prompts */
    const llm_file_senses *senses; /* borrowed; NULL: the model reads its tokens alone */
    /* Are told what was left out; and how many bytes of a file are read, false: stop (GGL_CANCELLED). NULL is fine. */
    void (*note)(void *user, const char *text);
    bool (*progress)(void *user, size_t done, size_t total);
    void *user;
} train_data_params;

/* GGL_USAGE: n_ctx is no number of tokens, or the separator is empty; GGL_NOMEM. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_train_data_new(train_data **out, const train_data_params *params,
                                            ggl_error *err);
void llm_train_data_free(train_data *d); /* NULL is fine */

/* Adds the items of a regular file: JSON, by its name or by how it begins, or else a text. May be called for several. The message
 * begins with the path, and has the line. GGL_FORMAT: a line is wrong, or nothing in the file can be learned from;
 * GGL_UNSUPPORTED: a format that is not read, a conversation without a chat template, or with one that does not show where answers begin;
 * GGL_IO, GGL_LIMIT, GGL_NOMEM, GGL_CANCELLED. Items of the lines before the wrong one may then have been added. */
GGL_NODISCARD ggl_status llm_train_data_read(train_data *d, const char *path, ggl_error *err);

/* The same for what a file would contain. name: stands for the path. */
GGL_NODISCARD ggl_status llm_train_data_add(train_data *d, const char *name, ggl_str text,
                                            ggl_error *err);

train_kind llm_train_data_kind(const train_data *d);
int64_t llm_train_data_n(const train_data *d);                  /* items */
int64_t llm_train_data_length(const train_data *d, int64_t k);  /* tokens that are read; >= 1 */
int64_t llm_train_data_counted(const train_data *d, int64_t k); /* those of them that count */
double llm_train_data_weight(const train_data *d, int64_t k);   /* and the sum of their weights */
/* How many items belong together from item k on, which is the first of them: 1 of texts and answers. */
int64_t llm_train_data_group(const train_data *d, int64_t k);
/* How many groups begin in a list of n items. */
int64_t llm_train_data_n_groups(const train_data *d, const int64_t *item, int64_t n);
/* Of TRAIN_SCORED: the number of the group that item k begins. */
double llm_train_data_score(const train_data *d, int64_t k);
/* Item k begins a document, a conversation, or a group. */
bool llm_train_data_begins(const train_data *d, int64_t k);
/* Sets token[length], target[length] and weight[length] (how much the target counts: 1, if nothing else was said; 0: not at all). target and weight may be NULL. Of kinds from
 * TRAIN_MATCHES on they mean nothing. A token below 0 is a row of a picture or a sound (llm_train_data_row), and no target that counts. */
void llm_train_data_get(const train_data *d, int64_t k, int32_t *token, int32_t *target,
                        float *weight);
/* Sets type[length]: as llm_batch.type. */
void llm_train_data_get_types(const train_data *d, int64_t k, int32_t *type);

/* What items read besides: each reading is a part of a picture or a sound, speech, or a text. */
int64_t llm_train_data_n_readings(const train_data *d);
int64_t llm_train_data_reading_length(const train_data *d,
                                      int64_t r); /* rows of the input, or tokens */
/* Returns what item k reads; -1: nothing, or what stands among its tokens. */
int64_t llm_train_data_reading(const train_data *d, int64_t k);
/* Returns the reading of which the token, which is below 0, is a row, and sets *row to its number there. */
int64_t llm_train_data_row(const train_data *d, int32_t token, int64_t *row);
/* Gets a reading that is a text: token[its length]. */
void llm_train_data_get_text(const train_data *d, int64_t r, int32_t *token);
/* Reads one of a file. *x has the file that was read before, if *file is its number, else it is forgotten; -1: none. GGL_FORMAT: the file has changed since
 * the data were read; and as that. *out is to be freed in any case. */
GGL_NODISCARD ggl_status llm_train_data_read_part(const train_data *d, int64_t r, llm_noticed *x,
                                                  int64_t *file, llm_noticed_part *out,
                                                  ggl_error *err);

/* A number of all items' tokens and of what counts, and of the contents of files: other data have another one. */
uint64_t llm_train_data_digest(const train_data *d);

typedef struct train_data_stats {
    int64_t n_items,
        n_records; /* records: documents, conversations, prompts with an answer, pairs */
    int64_t n_tokens, n_counted; /* that are read, and those of them that count */
    int64_t n_cut;               /* items that were cut at their end */
    int64_t n_empty;             /* texts and answers without text: left out */
    int64_t
        n_long; /* items that were left out because what counts begins after n_ctx; with drop_long, all that are longer */
    int64_t n_silent; /* conversations without an answer that counts: left out */
    int64_t n_same;   /* pairs of equal answers: left out */
    int64_t
        n_alone; /* of a model that scores: texts without one that does not belong to them, left out */
} train_data_stats;
train_data_stats llm_train_data_stats(const train_data *d);

#endif
