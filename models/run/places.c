/* Where tokens and rows stand in a text with pictures. */
#include <string.h>

#include "llm/internal/media.h"

/* True if a row of a picture does not stand behind the last one of the same picture. */
static bool begins(const llm_places *p, const llm_media_row *row) {
    bool is_behind = false, is_same = row->first == p->first;
    for (int k = 0; k < 3 && is_same; k++) {
        is_behind = row->place[k] > p->at[k];
        is_same = row->place[k] == p->at[k];
    }
    return row->first != p->first || !is_behind;
}

void llm_places_next(llm_places *p, int64_t pos, const llm_media_row *row,
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
        if (begins(p, row)) {
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
