/* Lines of models whose tokens read something else: a sound whose speech they write down, or a text that they answer. */
#ifndef TRAIN_DATA_SPEECH_H
#define TRAIN_DATA_SPEECH_H

#include "common/json.h"
#include "data_impl.h"

/* Adds the item of a sound with what is said in it. GGL_FORMAT: the object has no such keys, or one has a wrong value; GGL_LIMIT: the sound is longer than a
 * window; and as llm_train_show. */
GGL_NODISCARD ggl_status llm_train_speech(train_data *d, const json_value *o, ggl_error *err);
/* Adds the item of a text and its answer, which follows the token with which answers begin. */
GGL_NODISCARD ggl_status llm_train_answered(train_data *d, ggl_str text, ggl_str answer,
                                            ggl_error *err);

#endif
