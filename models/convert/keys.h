/* Keys of a conversion, with their types in the GGUF file. */
#ifndef LLM_CONVERT_KEYS_H
#define LLM_CONVERT_KEYS_H

#include "conversion.h"
#include "ggl/internal/gguf.h"

/* Returns the type of a key with numbers: f32 if its name is one that always is
 * (docs/architectures.md, "The types of keys") or a value is not whole; else an integer type,
 * i32 in lists. */
ggl_gguf_type llm_convert_number_type(const converted_key *k);
/* Returns the name of the key's type, "u32" or "[i32]". */
const char *llm_convert_type_text(const converted_key *k);
/* Writes the key's value for messages: 12, "yarn", [1, 2, 3, ..] of 28; returns buf. */
const char *llm_convert_value_text(const converted_key *k, char *buf, size_t size);
/* Fails with GGL_FORMAT if a value of config.json says that there are no layers, tokens and the like, or fewer of something than none. */
GGL_NODISCARD ggl_status llm_convert_check_counts(arch_conversion *c, ggl_error *err);
/* Fails with GGL_FORMAT if a key or a computed tensor has a number that must be wrong, such as
 * an epsilon of -1, or that f32 cannot hold. */
GGL_NODISCARD ggl_status llm_convert_check_numbers(arch_conversion *c, ggl_error *err);
GGL_NODISCARD ggl_status llm_convert_put_key(ggl_gguf_writer *w, const converted_key *k,
                                             ggl_error *err);

#endif
