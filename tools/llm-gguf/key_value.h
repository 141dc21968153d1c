/* KEY=TYPE:VALUE of command lines, as values of a GGUF file. */
#ifndef TOOLS_GGUF_KEY_VALUE_H
#define TOOLS_GGUF_KEY_VALUE_H

#include "ggl/internal/gguf.h"

typedef struct key_value {
    char *key;            /* freed by key_value_fini */
    ggl_gguf_type type;   /* of the value, or of an array's elements */
    bool is_array, typed; /* typed: the command line says the type */
    char *text;           /* the value's text, n bytes and a NUL; freed by key_value_fini */
    size_t n;
} key_value;

/* Reads "KEY=VALUE", "KEY=TYPE:VALUE" or "KEY=TYPE:@FILE" (the file's bytes; "@@x" stands for "@x").
 * Returns -1, or an exit code after a message. */
int key_value_read(const char *tool, const char *word, key_value *out);
void key_value_fini(key_value *v);

/* Puts it into the writer. `old`: the value that it replaces, whose type it has if the command line
 * does not say one; NULL: none. Returns -1, or an exit code after a message. */
int key_value_put(const char *tool, ggl_gguf_writer *w, const key_value *v,
                  const ggl_gguf_value *old);

#endif
