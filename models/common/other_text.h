/* What files are that are given in place of a text: how they begin, and whether their bytes can be text at all. No threads. */
#ifndef MODELS_COMMON_OTHER_TEXT_H
#define MODELS_COMMON_OTHER_TEXT_H

#include <stdbool.h>

#include "ggl/str.h"

/* A kind of file that is no text. */
typedef struct llm_other_file {
    const char *what;   /* what it is, after "this is": "a Parquet file", "compressed (gzip)" */
    const char *advice; /* what to do; NULL: nothing makes a text of it */
} llm_other_file;

/* Returns the kind of file whose beginning the bytes have; NULL: none that is known. */
const llm_other_file *llm_other_file_of(ggl_str bytes);
/* True for bytes that are no text in any encoding of one byte each that is mostly ASCII: a NUL is among them, or more than a quarter are
 * no UTF-8. */
bool llm_is_binary(ggl_str bytes);

/* Advice for tables that the function of pandas reads. */
#define LLM_TABLE_ADVICE(read)                                                                     \
    "write it as lines of JSON, such as with Python: pandas." read                                 \
    "(FILE).to_json('data.jsonl', orient='records', lines=True, force_ascii=False)"

#endif
