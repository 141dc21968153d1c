/* Notes and errors of a conversion; see convert_impl.h. */
#include "convert_impl.h"

ggl_status llm_converter_no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory");
}

bool llm_converter_note(llm_converter *c, const char *text) {
    char *all = ggl_arena_printf(&c->arena, "%s%s\n", c->notes ? c->notes : "", text);
    c->notes = all;
    return all != NULL;
}
