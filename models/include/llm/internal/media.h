/* Rows that stand for tokens: what a model sees of a picture or hears of a sound, kept in a table that sessions read
 * (llm_session_params.media). A text names a row by a token id below 0, so whatever handles tokens handles rows: prompts, slots and
 * prefixes that are shared. Rows of equal contents have the same ids, which depend on the contents alone, as far as two do not collide in 31 bits.
 *
 * Threads: any number may use a table at the same time. A row that llm_media_get has found is there as long as somebody holds its picture, or
 * the thread that runs the session does nothing else. */
#ifndef LLM_MEDIA_H
#define LLM_MEDIA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_media llm_media;

/* Rows that are added. */
typedef struct llm_media_rows {
    const float *row; /* [n][n_row] */
    int64_t n, n_row; /* n_row 0: only their ids and places are wanted */
    /* [n][3]: the place of each, behind that of the first, as pos.t, pos.y and pos.x; NULL: 0, 1, 2 .. in all three */
    const int32_t *place;
    int64_t n_pos; /* the tokens behind them are so many places behind the first row; mostly n */
    int64_t
        n_alone; /* so many of the first rows stand by themselves, as tokens do: none of the others begins or ends with them */
} llm_media_rows;

/* One row of the table. */
typedef struct llm_media_row {
    const float *row; /* [n_row] */
    int64_t n_row;
    int64_t i, n, n_pos; /* number i of the n that were added together */
    int32_t place[3];
    int32_t token; /* to which it is added, if it stands in a text (llm_media_add_to) */
} llm_media_row;

enum { LLM_MEDIA_ID = 32 };

/* A table that keeps up to so many bytes of rows that nobody holds. */
GGL_NODISCARD ggl_status llm_media_new(llm_media **out, size_t most_bytes, ggl_error *err);
void llm_media_free(llm_media *m); /* NULL is fine */

/* Adds rows that a digest of their contents (SHA-256) identifies, and sets *first to the id of the first one; the others follow, downwards:
 * *first - 1 .. They are held once. If they are there already, nothing is copied. GGL_NOMEM; GGL_LIMIT: there are too many. */
GGL_NODISCARD ggl_status llm_media_add(llm_media *m, const uint8_t id[LLM_MEDIA_ID],
                                       const llm_media_rows *rows, int32_t *first, ggl_error *err);
/* Finds rows by their digest, and holds them once more. False: they are not there. */
bool llm_media_find(llm_media *m, const uint8_t id[LLM_MEDIA_ID], int32_t *first, int64_t *n);
/* Takes back one hold of the rows that begin with this id. Rows that nobody holds are dropped when there are too many of them, those first
 * that were added or found the longest ago. If they are added again, they have the same ids, which for long no others get meanwhile. */
void llm_media_release(llm_media *m, int32_t first);
/* Sets the digest, the first id and the number of the rows to which an id belongs, also of rows that were dropped. False: nobody has it. */
bool llm_media_whose(llm_media *m, int32_t id, uint8_t digest[LLM_MEDIA_ID], int32_t *first,
                     int64_t *n);
/* Keeps ids for n rows that are not there, as if they had been added and dropped: a sequence from a file names them. *first is the id that they
 * have then, or have already. GGL_FORMAT: others of this digest are there, and are not n; GGL_NOMEM, GGL_LIMIT. */
GGL_NODISCARD ggl_status llm_media_expect(llm_media *m, const uint8_t id[LLM_MEDIA_ID], int64_t n,
                                          int32_t *first, ggl_error *err);
/* Says to which tokens rows in a text are added: the first one of those that were added together, and the others. They do not change once rows are there. */
void llm_media_add_to(llm_media *m, int32_t first, int32_t others);
/* Finds the row with this id; false: there is none, or it was dropped. m may be NULL. */
bool llm_media_get(const llm_media *m, int32_t id, llm_media_row *out);

#ifdef __cplusplus
}
#endif
#endif
