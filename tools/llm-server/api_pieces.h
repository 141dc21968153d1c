/* Pieces that several APIs have in common: fields of requests, and parts of answers. */
#ifndef LLM_SERVER_API_PIECES_H
#define LLM_SERVER_API_PIECES_H

#include "dialect.h"

/* Reads the model's name, for a FIELD_FN row. */

ggl_status read_model(ask *a, const json_value *v, const server_facts *facts, ggl_error *err);
/* Appends formatted text, of at most 512 bytes, as it is. */
void put_format(llm_json_out *out, const char *fmt, ...) GGL_PRINTF(2, 3);
/* Appends the model's name, as the client gave it, as a JSON string. */
void put_model(llm_json_out *out, const answer *x);
/* Appends a number that JSON can hold: minus infinity becomes -9999, as in OpenAI's answers. */
void put_logprob(llm_json_out *out, double logprob);
/* Appends the bytes of a text as a list of numbers. */
void put_bytes(llm_json_out *out, ggl_str s);
/* Appends the members of llama.cpp's generation_settings that say how tokens are drawn, without braces. */
void put_sampling(llm_json_out *out, const llm_sampler_params *p);
/* Appends llama.cpp's object "timings" of a choice. */
void put_timings(llm_json_out *out, const answer_choice *c);
/* Returns a token's text, which may be a part of a character. */
ggl_str token_text(const server_facts *facts, int32_t id);

#endif
