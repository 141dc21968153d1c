/* What a model that learns reads besides its tokens: the files of train/senses.h, read as in use. */
#ifndef LIBRARY_TRAINING_SENSES_H
#define LIBRARY_TRAINING_SENSES_H

#include "context.h"
#include "train/senses.h"

typedef struct training_senses training_senses;

/* Opens an eye or an ear for the model (mmproj, NULL: none), or finds out how the model itself reads sounds or texts. *out is NULL if its tokens
 * read nothing. `of` has what llm_load_named needs besides the path. n_ctx: the most tokens of a text. GGL_UNSUPPORTED, GGL_FORMAT: such a model cannot have, or be, one; as
 * llm_open. */
GGL_NODISCARD ggl_status llm_training_senses_open(training_senses **out, llm_context *c,
                                                  const char *mmproj, const llm_loading *of,
                                                  int64_t n_ctx, ggl_error *err);
void llm_training_senses_close(training_senses *s); /* before the context; NULL is fine */
const train_senses *llm_training_senses_of(const training_senses *s); /* NULL: of NULL */
const llm_model *llm_training_eye(const training_senses *s);          /* NULL: there is none */

#endif
