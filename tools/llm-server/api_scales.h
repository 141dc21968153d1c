/* Lists of scales of adapters, in the form of llama.cpp's server: [{"id": 0, "scale": 0.5}]. */
#ifndef LLM_SERVER_API_SCALES_H
#define LLM_SERVER_API_SCALES_H

#include "api_shape.h"

/* Checks the form of a list. GGL_USAGE: it is no list, or a row is wrong; the message has its place. */
GGL_NODISCARD ggl_status api_check_scales(const json_value *list, ignored_fields *x,
                                          ggl_error *err);
/* Reads a row of such a list. */
void api_read_scale(const json_value *row, double *id, double *scale);

#endif
