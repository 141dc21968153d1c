/* Parts of answers as streams have them. */
#ifndef SERVER_PIECES_H
#define SERVER_PIECES_H

#include "llm-server/dialect.h"

/* Gives a part; a call in pieces of n_piece bytes, if n_piece is not 0 and the dialect takes pieces. */
static inline void give_in_pieces(const dialect *d, const answer *x, const answer_choice *c,
                                  const answer_part *p, size_t n_piece, llm_json_out *out) {
    answer_part piece = *p;
    if (p->kind != PART_CALL || !d->takes_pieces || n_piece == 0) {
        d->part(x, c, p, out);
        return;
    }
    piece.goes_on = true;
    piece.arguments = (ggl_str){"", 0};
    d->part(x, c, &piece, out);
    piece.name = piece.id = piece.arguments;
    piece.is_continued = true;
    piece.n_tokens = 0;
    for (size_t i = 0; i < p->arguments.n; i += n_piece) {
        const size_t left = p->arguments.n - i;
        piece.arguments = (ggl_str){p->arguments.s + i, left < n_piece ? left : n_piece};
        piece.goes_on = left > n_piece;
        d->part(x, c, &piece, out);
    }
}

#endif
