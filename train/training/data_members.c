#include "data_members.h"

const json_value *llm_train_member(const json_value *object, const char *name) {
    const json_value *v = llm_json_get(object, name);
    return v && v->kind != JSON_NULL ? v : NULL;
}

ggl_status llm_train_text_of(const json_value *object, const char *name, bool optional,
                             ggl_str *out, ggl_error *err) {
    const json_value *v = llm_train_member(object, name);
    *out = v && v->kind == JSON_STRING ? json_str(v) : (ggl_str){"", 0};
    if ((v && v->kind == JSON_STRING) || (!v && optional))
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT, "\"%s\" must be a string, not %s", name,
                    v ? llm_json_kind_text((json_kind)v->kind) : "missing");
}
