/* Keys and tensors of GGUF files as text. */
#ifndef TOOLS_GGUF_TEXT_H
#define TOOLS_GGUF_TEXT_H

#include "ggl/internal/gguf.h"

/* Returns the text of a key; "" if there is none. */
ggl_str text_of_key(const ggl_gguf *f, const char *key);
/* Returns the layer of "blk.12.attn_q.weight" and the rest of the name; -1: not in a layer. */
int tensor_layer(ggl_str name, ggl_str *rest);
/* Returns how many bytes are before "blk.12." in the name of a layer's tensor: 4 for "enc.blk.12.attn_q"; SIZE_MAX: it is of no layer. */
size_t tensor_layer_at(ggl_str name);
/* Returns the number of elements; 0 also if it overflows, as it can for a type that is unknown. */
uint64_t tensor_elements(const ggl_gguf_tensor *t);
/* Writes the shape, like "[64, 64]"; returns buf. */
const char *tensor_shape(const ggl_gguf_tensor *t, char *buf, size_t size);
/* Returns the type's name; "?" if nothing is known of it. */
const char *tensor_type(const ggl_gguf_tensor *t);
/* Writes element i of a value: a number, with that many digits if it is an f64, true or false; "" for a
 * string. Returns buf. */
enum { NUMBER_TEXT = 32 };
const char *number_text(const ggl_gguf_value *v, uint64_t i, int digits, char buf[NUMBER_TEXT]);
/* Writes a key's value in at most `size` bytes: "32", "[1, 2, 3, .. 40 of them]", "\"llama\"";
 * returns buf. */
const char *value_text(const ggl_gguf_value *v, char *buf, size_t size);
/* The same in at most `most` bytes if one element of a list, or 16 bytes of a string, fit in
 * that. */
const char *value_text_within(const ggl_gguf_value *v, size_t most, char *buf, size_t size);

#endif
