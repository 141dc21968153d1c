/* What the numbers in a prompt cache (llm/internal/prompt_cache.h) depend on besides model and session. */
#ifndef TOOLS_CACHE_SETTINGS_H
#define TOOLS_CACHE_SETTINGS_H

#include "adapters.h"
#include "placement_options.h"

/* Writes llm_prompt_cache_params.also: the adapters by name and scale, and the devices whose results are their own. All
 * CPUs compute the same bits. */
void cache_settings(char *text, size_t size, bool f16_as_bf16, const tool_adapters *adapters,
                    const llm_placement *p);

#endif
