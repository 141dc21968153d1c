/* What the numbers in a prompt cache (llm/internal/prompt_cache.h) depend on besides model and session. */
#ifndef LIBRARY_CACHE_SETTINGS_H
#define LIBRARY_CACHE_SETTINGS_H

#include "place/placement.h"

enum { LLM_CACHE_SETTINGS = 1000 }; /* bytes of the text, with its NUL */

/* Writes llm_prompt_cache_params.also: the adapters by name and scale, and the devices whose results are their own. All
 * CPUs compute the same bits. False: the text did not fit. */
bool llm_cache_settings(char text[LLM_CACHE_SETTINGS], const llm_adapter_use *use, size_t n,
                        const llm_placement *p);

#endif
