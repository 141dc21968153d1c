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
#include <string.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_media llm_media;

/* Rows that are added. */
typedef struct llm_media_rows {
    const float *row; /* [n][n_row]; NULL: they come later (llm_media_fill) */
    int64_t n, n_row; /* n_row 0: only their ids and places are wanted */
    /* [n][3]: the place of each in the picture: its time, line and column, or one of the two kinds below in place of the time. NULL: they have one place after the other,
     * as words have */
    const int32_t *place;
    int64_t n_pos; /* the tokens behind them are so many places behind the first row; mostly n */
    int64_t
        n_alone; /* so many of the first rows stand by themselves, as tokens do: none of the others begins or ends with them */
} llm_media_rows;

/* Rows that a text names where it wants: they stand in no line, or each time at the end of the line whose rows stand before. */
enum { LLM_MEDIA_APART = -1, LLM_MEDIA_ENDS_LINE = -2 };

/* One row of the table. */
typedef struct llm_media_row {
    const float *row; /* [n_row] */
    int64_t n_row;
    int64_t i, n, n_pos; /* number i of the n that were added together */
    int32_t first;       /* the id of number 0 */
    bool has_place;
    int32_t place[3]; /* without a place: i */
    int32_t token;    /* to which it is added, if it stands in a text (llm_media_add_to) */
} llm_media_row;

enum { LLM_MEDIA_ID = 32 };

/* A table that keeps up to so many bytes of rows that nobody holds. */
GGL_NODISCARD ggl_status llm_media_new(llm_media **out, size_t most_bytes, ggl_error *err);
void llm_media_free(llm_media *m); /* NULL is fine */

/* Adds rows that a digest of their contents (SHA-256) identifies, and sets *first to the id of the first one; the others follow, downwards:
 * *first - 1 .. They are held once. If they are there already, nothing is copied. GGL_NOMEM; GGL_LIMIT: there are too many. */
GGL_NODISCARD ggl_status llm_media_add(llm_media *m, const uint8_t id[LLM_MEDIA_ID],
                                       const llm_media_rows *rows, int32_t *first, ggl_error *err);
/* Sets rows number i to i + n - 1 of those that begin with this id and come later; who adds them holds them, and runs no text that reads a row which has not come.
 * When nobody holds such rows any more, they are dropped at once. */
void llm_media_fill(llm_media *m, int32_t first, int64_t i, const float *row, int64_t n);
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

/* --- places in a text --------------------------------------------------------------------------- */

/* A token's or row's place, as pos.t, pos.y, pos.x, pos.line, pos.column and pos.picture of descriptors. */
enum {
    LLM_PLACE_T,
    LLM_PLACE_Y,
    LLM_PLACE_X,
    LLM_PLACE_LINE,
    LLM_PLACE_COLUMN,
    LLM_PLACE_PICTURE,
    LLM_N_PLACES
};

/* --- places: inline, as sessions and training, which are in two libraries, both ask --- */

/* What the places of the next element follow from; zeros before the first one. */
typedef struct llm_places {
    int32_t behind;     /* how many places fewer than elements there were */
    int32_t n_pictures; /* that have begun */
    /* Of the picture whose rows stood last: the id of its first row, or 0; the place at which it begins; time, line and column of the last row. */
    int32_t first, begin, at[3];
    int32_t
        added; /* the id of the row that is added to the last element; 0: none is. The caller's, of which llm_places_next makes nothing */
} llm_places;

/* True if a row of a picture does not stand behind the last one of the same picture. */
static inline bool llm_places_begins(const llm_places *p, const llm_media_row *row) {
    bool is_behind = false, is_same = row->first == p->first;
    for (int k = 0; k < 3 && is_same; k++) {
        is_behind = row->place[k] > p->at[k];
        is_same = row->place[k] == p->at[k];
    }
    return row->first != p->first || !is_behind;
}

/* Sets the places of the element at position pos: of row, or of a token (n and n_pos 1, has_place false). Elements come in their order. */
static inline void llm_places_next(llm_places *p, int64_t pos, const llm_media_row *row,
                                   int32_t place[LLM_N_PLACES]) {
    const bool ends_line =
                   row->has_place && row->place[0] == LLM_MEDIA_ENDS_LINE && row->first == p->first,
               is_in_line = ends_line || (row->has_place && row->place[0] >= 0);
    for (int k = 0; k < LLM_N_PLACES; k++)
        place[k] = (int32_t)(k < LLM_PLACE_LINE ? pos - p->behind : pos);
    if (!is_in_line) {
        if (!row->has_place && row->i + 1 == row->n)
            p->behind = (int32_t)(p->behind + row->n - row->n_pos);
        return;
    }
    if (ends_line) {
        p->at[2] = (int32_t)(p->at[2] + (int64_t)1);
    } else {
        if (llm_places_begins(p, row)) {
            p->first = row->first;
            p->begin = place[LLM_PLACE_T];
            p->n_pictures = (int32_t)(p->n_pictures + (int64_t)1);
        }
        memcpy(p->at, row->place, sizeof p->at);
    }
    for (int k = 0; k < 3; k++)
        place[k] = (int32_t)((int64_t)p->begin + p->at[k]);
    place[LLM_PLACE_LINE] = p->at[1];
    place[LLM_PLACE_COLUMN] = p->at[2];
    place[LLM_PLACE_PICTURE] = (int32_t)((int64_t)p->n_pictures - 1);
    /* what follows is behind all of the picture, also behind what ends its lines */
    const int64_t n_pos = ends_line && p->at[2] >= row->n_pos ? (int64_t)p->at[2] + 1 : row->n_pos;
    p->behind = (int32_t)(pos + 1 - p->begin - n_pos);
}

#ifdef __cplusplus
}
#endif
#endif
