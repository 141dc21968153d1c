/* Recognizes files that a user gave in place of a text, such as archives and programs: by their first bytes, or because their bytes cannot be text. No threads. */
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
/* True for the beginning of a table of Apache Parquet. */
bool llm_is_parquet(ggl_str bytes);
/* True for bytes that are no text in UTF-8, nor in an encoding that writes ASCII as it is, such as windows-1251 or Shift-JIS: a NUL is
 * among them, or more than one of 32 is a control character other than white space and ESC. */
bool llm_is_binary(ggl_str bytes);

/* Advice for tables that the function of pandas reads. */
#define LLM_TABLE_ADVICE(read)                                                                     \
    "write it as lines of JSON, such as with Python: pandas." read                                 \
    "(FILE).to_json('data.jsonl', orient='records', lines=True, force_ascii=False)"

#endif
