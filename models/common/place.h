/* Places in texts that people write (descriptors, grammars, schemas), and messages about them:
 *
 *     list.gbnf:3:14: error: rule 'itm' is not defined
 *         3 | root ::= itm+
 *           |          ^^^ */
#ifndef LLM_PLACE_H
#define LLM_PLACE_H

#include "ggl/status.h"
#include "ggl/str.h"

/* n bytes from offset `at` of a text; `name` stands for the text in messages. */
typedef struct llm_place {
    const char *name;
    ggl_str text;
    size_t at, n;
} llm_place;

/* Computes line and column of a place, both from 1; columns count characters, not bytes. */
void llm_place_line_col(llm_place p, int *line, int *col);
/* Writes "name:line:col: error: message", then the source line, a caret and the hint to err (which
 * may be NULL). `chain`, which may be NULL, is appended to the first line; `hint` may be NULL, too.
 * Returns s. */
ggl_status llm_place_failv(ggl_error *err, ggl_status s, llm_place p, const char *chain,
                           const char *hint, const char *fmt, va_list args);

#endif
