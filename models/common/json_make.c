#include "json_make.h"

bool llm_json_make_object(json_value *out, ggl_arena *arena, const llm_json_member *m, size_t n) {
    json_value *item = ggl_arena_alloc(arena, 2 * n, sizeof *item);
    for (size_t i = 0; item && i < n; i++) {
        item[i] = m[i].value;
        item[n + i] = llm_json_of_str(m[i].name);
    }
    *out = (json_value){.kind = JSON_OBJECT, .n = (uint32_t)n, .item = item};
    return item != NULL;
}

bool llm_json_make_array(json_value *out, ggl_arena *arena, const json_value *v, size_t n) {
    json_value *item = ggl_arena_alloc(arena, n, sizeof *item);
    if (item && n > 0)
        memcpy(item, v, n * sizeof *item);
    *out = (json_value){.kind = JSON_ARRAY, .n = (uint32_t)n, .item = item};
    return item != NULL;
}

bool llm_json_make_with(json_value *out, ggl_arena *arena, const json_value *object,
                        const char *name, json_value value) {
    const json_value *old = llm_json_get(object, name);
    const size_t n_old = object->n, n = n_old + (old == NULL);
    const size_t at = old ? (size_t)(old - object->item) : n_old;
    json_value *item = ggl_arena_alloc(arena, 2 * n, sizeof *item);
    *out = (json_value){.kind = JSON_OBJECT, .n = (uint32_t)n, .item = item};
    if (!item)
        return false;
    if (n_old > 0) {
        memcpy(item, object->item, n_old * sizeof *item);
        memcpy(item + n, object->item + n_old, n_old * sizeof *item);
    }
    item[at] = value;
    item[n + at] = llm_json_of_text(name);
    return true;
}
