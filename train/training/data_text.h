/* Texts without roles: documents, and prompts with an answer. */
#ifndef TRAIN_DATA_TEXT_H
#define TRAIN_DATA_TEXT_H

#include "data_impl.h"

/* Adds a document, between the tokens that begin and end a text. */
GGL_NODISCARD ggl_status llm_train_text(train_data *d, ggl_str text, ggl_error *err);
/* Makes a draft of a prompt and the text that follows it, which counts, as does the token that ends it. A text without letters makes a draft in
 * which nothing counts. all: the prompt counts, too. */
GGL_NODISCARD ggl_status llm_train_text_draft(train_data *d, train_draft *s, ggl_str prompt,
                                              ggl_str answer, bool all, ggl_error *err);
/* True if a text has nothing but white space. */
bool llm_train_is_blank(ggl_str text);
/* Adds the documents of a file. name: for messages. GGL_FORMAT: it is no text in UTF-8. */
GGL_NODISCARD ggl_status llm_train_documents(train_data *d, const char *name, ggl_str text,
                                             ggl_error *err);

#endif
