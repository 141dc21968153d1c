/* What the steps of a training have reported, and whether it has diverged. */
#ifndef TRAIN_HISTORY_H
#define TRAIN_HISTORY_H

#include "common/json_write.h"
#include "llm/train.h"

typedef struct train_history {
    llm_training_report *at; /* [n] */
    int64_t n;
    size_t cap;
    double smooth, least; /* the mean of the last losses, and the least it has been */
    int64_t least_at;     /* the step of that */
} train_history;

void llm_train_history_fini(train_history *h);
/* False: the loss or the gradient is NaN or infinite. */
bool llm_train_history_is_finite(const llm_training_report *r);
/* Adds the report of the next step. GGL_LIMIT: the training has diverged, or the first step is not finite; `advice` ends the message, in
 * the first case after the rate. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_train_history_add(train_history *h, const llm_training_report *r,
                                               const char *advice, ggl_error *err);
/* Writes all of it as a JSON string, and reads one; `name` is the file, for messages. GGL_FORMAT: it is none of a history. */
void llm_train_history_write(const train_history *h, llm_json_out *out);
GGL_NODISCARD ggl_status llm_train_history_read(train_history *h, const json_value *v,
                                                const char *name, ggl_error *err);

#endif
