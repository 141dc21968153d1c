/* Keys of a conversion with the types that files have them in. */
#ifndef LLM_CONVERT_KEYS_H
#define LLM_CONVERT_KEYS_H

#include "arch_convert.h"

/* The type of a key that has numbers: f32 if its name is one of those that always are (docs/architectures.md, "The types of keys"),
 * or a value is not whole; else an integer, i32 in lists. */
ggl_gguf_type convert_number_type(const converted_key *k);
/* The type's name, "u32", "[i32]". */
const char *convert_type_text(const converted_key *k);
GGL_NODISCARD ggl_status convert_put_key(ggl_gguf_writer *w, const converted_key *k,
                                         ggl_error *err);

#endif
