/* An importance matrix of llm/llm.h, for which a tool opens the session itself, because it prints something meanwhile. */
#ifndef LIBRARY_IMPORTANCE_H
#define LIBRARY_IMPORTANCE_H

#include "llm/internal/session.h"
#include "llm/llm.h"

/* Gives a session that is to be opened what llm_imatrix_run needs with these parameters, in windows of n_window tokens; the run then
 * uses the session, if the context is opened to LLM_OPENED_WEIGHTS. *sp is borrowed by m until llm_imatrix_end. GGL_NOMEM. */
ggl_status llm_imatrix_watch(llm_imatrix *m, const llm_imatrix_params *params, int64_t n_window,
                             llm_session_params *sp, ggl_error *err);
/* The same for each copy of the model, as llm_opening.copy. m: the matrix, for which llm_imatrix_watch was called. */
ggl_status llm_imatrix_watch_copy(void *m, int k, llm_session_params *sp, ggl_error *err);
/* The same for llm_own_text. */
void llm_own_text_watch(llm_session_params *sp, int64_t n_window);
/* Takes out what was added, for llm_imatrix_free of measure/imatrix.h; NULL: nothing was. */
struct imatrix *llm_imatrix_take(llm_imatrix *m);

#endif
