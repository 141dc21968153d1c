/* The objects that a model can learn from, by their keys. */
#ifndef TRAIN_DATA_SHAPES_H
#define TRAIN_DATA_SHAPES_H

#include "common/json.h"
#include "data_impl.h"

/* Adds the items of an object. GGL_FORMAT: its keys are none that are known, or one has a wrong value. */
GGL_NODISCARD ggl_status llm_train_object(train_data *d, const json_value *object, ggl_error *err);

#endif
