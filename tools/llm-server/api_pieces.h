/* Parts of answers that several APIs have in common, besides those of api_openai.h. */
#ifndef LLM_SERVER_API_PIECES_H
#define LLM_SERVER_API_PIECES_H

#include "dialect.h"

/* A text in an arena, which grows by doubling. */
typedef struct kept_text {
    char *s;
    size_t n, cap;
} kept_text;

/* False: out of memory. */
bool keep_text(kept_text *t, ggl_arena *arena, const char *s, size_t n);

/* Appends the bytes of a text as a list of numbers. */
void put_bytes(llm_json_out *out, ggl_str s);
/* Appends the shortest text that is read as the same float; JSON has no infinity, so that is null. */
void put_shortest(llm_json_out *out, float x);
/* Appends the members of llama.cpp's generation_settings that say how tokens are drawn, without braces. */
void put_sampling(llm_json_out *out, const llm_sampler_params *p);
/* Returns a token's text, which may be a part of a character. */
ggl_str token_text(const server_facts *facts, int32_t id);

#endif
