/* What items read besides their tokens: files, and the texts of encoders. */
#ifndef TRAIN_DATA_READS_H
#define TRAIN_DATA_READS_H

#include "common/json.h"
#include "data_impl.h"

/* The kinds of a record's files. */
typedef enum train_file_kind { TRAIN_PICTURE, TRAIN_SOUND, TRAIN_FILE_KINDS } train_file_kind;

/* Shows the file that a value names: a path, file://.., data:..;base64,.., or an object with one of these in "path" or "url". *mark: what stands for it in a
 * text, valid until llm_train_reads_let_go. GGL_UNSUPPORTED: the model does not see or hear; GGL_FORMAT, GGL_IO, GGL_LIMIT, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_train_show(train_data *d, train_file_kind kind, const json_value *v,
                                        ggl_str *mark, ggl_error *err);
/* The same for the file that is the digits of base64. */
GGL_NODISCARD ggl_status llm_train_show_digits(train_data *d, train_file_kind kind, ggl_str digits,
                                               ggl_str *mark, ggl_error *err);
/* Reads speech: `seconds` of it from `offset` on, 0: to its end. *reading: its number. */
GGL_NODISCARD ggl_status llm_train_hear(train_data *d, const json_value *v, double offset,
                                        double seconds, uint32_t *reading, ggl_error *err);
/* A record has ended: nothing of it is named any more. */
void llm_train_reads_let_go(train_data *d);
void llm_train_reads_fini(train_data *d);
/* Returns what stands in the pool for a row of a file that the record has shown; >= 0: nobody has shown it. */
int32_t llm_train_row_in_pool(const train_data *d, int32_t id);

#endif
