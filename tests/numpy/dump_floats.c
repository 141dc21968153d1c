/* dump-floats FILE.gguf: the elements of all tensors as f32, one after the other, on the standard
 * output. For check_weights.py. */
#include <stdio.h>
#include <stdlib.h>

#include "ggl/gguf.h"
#include "ggl/internal/types.h"

static int dump(const ggl_gguf_tensor *t) {
    const ggl_type_info *type = ggl_type_get((int)t->type);
    float x[256];
    if (type->block > 256)
        return 1;
    const int64_t n = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    for (int64_t at = 0; at < n; at += type->block) {
        ggl_to_float(type, t->data, t->ne[0], at, type->block, x);
        if (fwrite(x, sizeof *x, (size_t)type->block, stdout) != (size_t)type->block)
            return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    ggl_gguf *f;
    ggl_error err;
    if (argc != 2 || ggl_gguf_open(&f, argv[1], NULL, &err) != GGL_OK) {
        fprintf(stderr, "%s\n", argc == 2 ? err.msg : "usage: dump-floats FILE.gguf");
        return 1;
    }
    int failed = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f) && !failed; i++)
        failed = dump(ggl_gguf_tensor_at(f, i));
    ggl_gguf_close(f);
    return failed || fflush(stdout) != 0;
}
