/* Opens several adapters for a model. */
#ifndef LIBRARY_ADAPTER_LIST_H
#define LIBRARY_ADAPTER_LIST_H

#include "llm/internal/adapter.h"
#include "llm/internal/model.h"
#include "llm/llm.h"

/* Opens the adapters from[0 .. n), and checks that they fit the model and the eye or ear beside it (NULL: there is none). *use, of *n_use elements, is freed by
 * llm_adapter_list_close; after a failure, too: it then has those before the one that failed. vary: those that can, vary (llm_adapter_use), but for those of tasks. */
ggl_status llm_adapter_list_open(llm_adapter_use **use, size_t *n_use, const llm_lora *from,
                                 size_t n, bool vary, const llm_model *m, const llm_model *eye,
                                 ggl_error *err);
void llm_adapter_list_close(llm_adapter_use *use, size_t n); /* after the session */

#endif
