/* Pictures that a model sees, or sounds that it hears: a second file, its eye or ear, makes rows of them, which stand for tokens of the text model. */
#ifndef LIBRARY_SENSES_H
#define LIBRARY_SENSES_H

#include "loading.h"
#include "noticing.h"

/* Opens the file of an eye or an ear, or of both: then the calls below are for both of them. An ear beside an eye whose kind is not known is left out, which is noted.
 * GGL_UNSUPPORTED: it makes no rows of pictures or sounds; else as llm_open. */
ggl_status llm_eye_open(llm_eye **out, const llm_loading *l, ggl_error *err);
void llm_eye_close(llm_eye *e); /* NULL is fine */
/* What a model cannot do whose eye or ear is left out, for a note: "sees no pictures", "hears no sounds" or both. e: what was opened; NULL: nothing was, and the file or
 * folder says what it is. */
const char *llm_eye_lack(const llm_eye *e, const char *mmproj);
/* Lets the descriptor's other texts stand around pictures (or_begin, or_end) if the model's tokenizer has their first token, but not that of the usual ones. */
void llm_eye_choose_texts(llm_eye *e, const llm_tokenizer *t);
/* Notes that the eye is of another family than the text model, if its descriptor shows that: the tokenizer of the model lacks a special token that stands
 * beside pictures or sounds. note may be NULL. */
void llm_eye_note_other(const llm_eye *e, const llm_model *model, const llm_tokenizer *t,
                        void (*note)(void *ctx, const char *text), void *ctx);
/* Prepares for texts of a model to whose tokens rows are added, or in which (adds false) they stand in place of tokens. GGL_UNSUPPORTED: the ear is for the other kind, or
 * the tokenizer lacks the tokens with which a sound stands in a text. */
GGL_NODISCARD ggl_status llm_eye_begin_text(llm_eye *e, bool adds, const llm_tokenizer *t,
                                            ggl_error *err);
/* Where its rows are kept. */
llm_media *llm_eye_media(const llm_eye *e);
/* Plans its stages for the backends of p, which tells what memory they take; nothing is allocated. Statuses of llm_stages_plan. */
ggl_status llm_eye_plan(llm_eye *e, const llm_session_params *p, ggl_error *err);
/* GGL_FORMAT: the rows that its planned stages make have not as many numbers as the text model takes. */
ggl_status llm_eye_fits(const llm_eye *e, int64_t n_given, ggl_error *err);
/* Makes its stages, which run on the backends of p: those that were planned for the same ones. n_given: numbers of a row that the text model takes. GGL_FORMAT: the
 * eye's rows have others; else as llm_stages_new. */
ggl_status llm_eye_start(llm_eye *e, const llm_session_params *p, int64_t n_given, ggl_error *err);

/* Lets it use those of the adapters that have pairs for it (llm_adapter_use.beside), which are borrowed, and remembers that its rows are theirs. Stages that there
 * are are made again, beside the old ones, if these adapters or their scales are others; after a failure it is as it was. Statuses of llm_stages_new; without stages,
 * GGL_NOMEM, and none if n is 0. */
ggl_status llm_eye_adapt(llm_eye *e, const llm_adapter_use *use, size_t n, ggl_error *err);

/* The stages of this one alone; NULL: they are neither planned nor started. */
const llm_stages *llm_eye_stages(const llm_eye *e);
/* The ear beside the eye; NULL: there is none. */
const llm_eye *llm_eye_other(const llm_eye *e);
/* The bytes that the planned stages take on a backend, by index, with the rows between them if these are in its memory. */
struct ggl_memory;
void llm_eye_memory(const llm_eye *e, int backend, bool is_host, struct ggl_memory *out);

/* Frees the stages, whose backends are closed next; the rows that there are stay. NULL is fine. */
void llm_eye_stop(llm_eye *e);

#endif
