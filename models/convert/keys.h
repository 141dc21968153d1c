/* Keys of a conversion with the types that files have them in. */
#ifndef LLM_CONVERT_KEYS_H
#define LLM_CONVERT_KEYS_H

#include "conversion.h"

/* The type of a key that has numbers: f32 if its name is one of those that always are (docs/architectures.md, "The types of keys"),
 * or a value is not whole; else an integer, i32 in lists. */
ggl_gguf_type llm_convert_number_type(const converted_key *k);
/* The type's name, "u32", "[i32]". */
const char *llm_convert_type_text(const converted_key *k);
/* Its value for messages: 12, "yarn", [1, 2, 3, ..] of 28; returns buf. */
const char *llm_convert_value_text(const converted_key *k, char *buf, size_t size);
/* GGL_FORMAT: a key, or a tensor that was computed, has a number that cannot be meant, such as an epsilon of -1, or that f32 does not
 * hold. */
GGL_NODISCARD ggl_status llm_convert_check_numbers(arch_conversion *c, ggl_error *err);
GGL_NODISCARD ggl_status llm_convert_put_key(ggl_gguf_writer *w, const converted_key *k,
                                             ggl_error *err);

#endif
