/* Opens several adapters for a model. */
#ifndef LIBRARY_ADAPTER_LIST_H
#define LIBRARY_ADAPTER_LIST_H

#include "llm/internal/adapter.h"
#include "llm/internal/model.h"
#include "llm/llm.h"

/* Checks what p says of adapters and control vectors, without opening any. GGL_USAGE. */
ggl_status llm_adapter_list_check(const llm_open_params *p, ggl_error *err);
/* Opens the adapters and control vectors of p, which was checked, and checks that they fit the model, and the former the eye or ear beside it (NULL: there is
 * none). *use, of *n_use elements, has the adapters first, and then the control vectors. It is freed by llm_adapter_list_close; after a failure, too: it then
 * has those before the one that failed. vary: those that can, vary (llm_adapter_use), but for those of tasks, and control vectors. */
ggl_status llm_adapter_list_open(llm_adapter_use **use, size_t *n_use, const llm_open_params *p,
                                 bool vary, const llm_model *m, const llm_model *eye,
                                 ggl_error *err);
void llm_adapter_list_close(llm_adapter_use *use, size_t n); /* after the session */

#endif
