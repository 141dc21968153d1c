#include "keys.h"

#include <string.h>

enum { QUANTIZATION_VERSION = 2 }; /* of the block formats, as in general.quantization_version */

void llm_quant_put_keys(ggl_gguf_writer *w, const ggl_gguf *f, const quant_choice *c) {
    static const char version_key[] = "general.quantization_version",
                      type_key[] = "general.file_type";
    const quant_mix *mix = c->mix;
    const bool copy = !mix && !c->type;
    uint32_t version = QUANTIZATION_VERSION, file_type = mix ? (uint32_t)mix->file_type : 0;
    /* a type without a number gets no key, rather than a wrong one */
    bool version_put = false, type_put = !mix;
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
        if (v->key.n > 6 && memcmp(v->key.s, "split.", 6) == 0)
            continue;
        if (copy) { /* what the file says of its types is still true of most tensors */
            ggl_gguf_put_value(w, v);
        } else if (ggl_str_is(v->key, version_key)) {
            ggl_gguf_put(w, version_key, GGL_GGUF_U32, false, &version, 1);
            version_put = true;
        } else if (ggl_str_is(v->key, type_key)) {
            if (mix)
                ggl_gguf_put(w, type_key, GGL_GGUF_U32, false, &file_type, 1);
            type_put = true;
        } else {
            ggl_gguf_put_value(w, v);
        }
    }
    if (!version_put && !copy)
        ggl_gguf_put(w, version_key, GGL_GGUF_U32, false, &version, 1);
    if (!type_put)
        ggl_gguf_put(w, type_key, GGL_GGUF_U32, false, &file_type, 1);
}
