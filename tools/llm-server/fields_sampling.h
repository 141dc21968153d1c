/* Fields that several APIs share. The names are those of llama.cpp's server, which clients send to all of
 * these APIs. Their rows are put into a table by
 *
 *     static const field fields[] = {
 *     #include "fields_sampling.def"
 *     #include "fields_llamacpp.def"
 *         {"n", FIELD_INT, .at = FIELD_AT(n_choices), .min = 1, .max = 128},
 *         {0}};
 */
#ifndef LLM_SERVER_FIELDS_SAMPLING_H
#define LLM_SERVER_FIELDS_SAMPLING_H

#include <float.h>

#include "dialect.h"

typedef ggl_status field_fn(ask *a, const json_value *v, const server_facts *facts, ggl_error *err);

field_fn field_top_k, field_dry_breakers, field_mirostat, field_samplers, field_grammar,
    field_json_schema, field_guided_json, field_n_probs, field_cache_prompt, field_time_limit,
    field_diffusion_steps, field_diffusion_block, field_diffusion_eps, field_diffusion_order,
    field_diffusion_order_temp, field_diffusion_cfg;

/* Accepts any value: for fields that are read later, or whose names alone are to be checked. */
field_fn field_any;
/* Accept one value of a field that is refused otherwise: 0, a negative number, false, true, "", [] or {}. */
field_fn field_is_zero, field_is_negative, field_is_false, field_is_true, field_is_empty;
field_fn field_lora;

/* Sets what the answer must fit, from a schema (any value; its text is written to the arena). GGL_USAGE:
 * another field has set it already. */
ggl_status ask_set_form(ask *a, ask_form form, const json_value *v, ggl_error *err);
/* Copies out's text to the arena and frees out; *s: the copy. GGL_NOMEM, also if out has failed. */
ggl_status ask_keep(ask *a, llm_json_out *out, ggl_str *s, ggl_error *err);

#endif
