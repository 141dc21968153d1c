/* Compares gradients with differences of the loss. */
#ifndef TRAIN_GRADIENT_CHECK_H
#define TRAIN_GRADIENT_CHECK_H

#include "llm/internal/model.h"
#include "llm/train.h"

/* llm_verify_gradients of an opened model; params are complete. */
GGL_NODISCARD ggl_status llm_train_check_gradients(const llm_model *m, ggl_backend *reference,
                                                   const llm_gradients_params *params,
                                                   llm_gradients_result *result, ggl_error *err);

#endif
