/* The types of the KV cache, as -ctk and -ctv name them; the default is first. */
#ifndef TOOLS_CACHE_TYPES_H
#define TOOLS_CACHE_TYPES_H

#define TOOL_CACHE_TYPES "f16 (default), f32, bf16, q8_0, q4_0"

static const char *const tool_cache_types[] = {"f16", "f32", "bf16", "q8_0", "q4_0", NULL};

#endif
