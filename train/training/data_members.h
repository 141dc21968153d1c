/* Members of the objects that a model can learn from. */
#ifndef TRAIN_DATA_MEMBERS_H
#define TRAIN_DATA_MEMBERS_H

#include "common/json.h"

/* Returns a member; NULL: it is not there, or null, which tables write for that. */
const json_value *llm_train_member(const json_value *object, const char *name);
/* Gets a member that is a text; it may be missing if `optional`. */
GGL_NODISCARD ggl_status llm_train_text_of(const json_value *object, const char *name,
                                           bool optional, ggl_str *out, ggl_error *err);

#endif
