/* Texts that belong together, or not: what models learn from that make vectors of texts, or give a score to two of them. */
#ifndef TRAIN_DATA_MATCHES_H
#define TRAIN_DATA_MATCHES_H

#include "common/json.h"
#include "data_impl.h"

/* Adds the items of an object with "query" or "anchor", texts that belong to it in "positive" or "pos" (a group for each), and texts that do not in
 * "neg", "negative", "negative_1" and the like. */
GGL_NODISCARD ggl_status llm_train_match(train_data *d, const json_value *o, ggl_error *err);
/* Adds those of an object with "sentence1", "sentence2", and a number "score" or "label". */
GGL_NODISCARD ggl_status llm_train_scored(train_data *d, const json_value *o, ggl_error *err);

#endif
