/* Pictures that a model sees, or sounds that it hears: a second file, its eye or ear, makes rows of them, which stand for tokens of the text model. */
#ifndef LIBRARY_SENSES_H
#define LIBRARY_SENSES_H

#include "loading.h"
#include "noticing.h"

/* Opens the file of an eye or an ear. GGL_UNSUPPORTED: it makes no rows of pictures or sounds; else as llm_open. */
ggl_status llm_eye_open(llm_eye **out, const llm_loading *l, ggl_error *err);
void llm_eye_close(llm_eye *e); /* NULL is fine */
/* Returns a special token that stands beside pictures or sounds, which the tokenizer of the text model lacks, as it does if the eye belongs to a model of another
 * family; NULL: it has it, the descriptor names none, or memory is out. */
const char *llm_eye_unknown_token(const llm_eye *e, const llm_tokenizer *t);
/* The name of its descriptor's family. */
const char *llm_eye_family(const llm_eye *e);
/* Where its rows are kept. */
const llm_media *llm_eye_media(const llm_eye *e);
/* Plans its stages for the backends of p, which tells what memory they take; nothing is allocated. Statuses of llm_stages_plan. */
ggl_status llm_eye_plan(llm_eye *e, const llm_session_params *p, ggl_error *err);
/* Makes its stages, which run on the backends of p: those that were planned for the same ones. n_given: numbers of a row that the text model takes. GGL_FORMAT: the
 * eye's rows have others; else as llm_stages_new. */
ggl_status llm_eye_start(llm_eye *e, const llm_session_params *p, int64_t n_given, ggl_error *err);

/* Its stages; NULL: they are neither planned nor started. */
const llm_stages *llm_eye_stages(const llm_eye *e);

/* Frees the stages, whose backends are closed next; the rows that there are stay. NULL is fine. */
void llm_eye_stop(llm_eye *e);

#endif
