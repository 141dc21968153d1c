#include "builtin.h"

#include <string.h>

#include "builtin_model.h"
#include "ggl/internal/nearest.h"
#include "llm/internal/convert.h"

#define BEFORE  "builtin:"
#define EYE     BEFORE "shapes-eye"
#define STORIES BEFORE "stories"
#define CHAT    BEFORE "chat"
#define SHAPES  BEFORE "shapes"
#define WORDS   BEFORE "words"

ggl_status llm_builtin_refuse(const char *name, ggl_status status, ggl_error *err) {
    static const char *const names[] = {STORIES, CHAT, WORDS, SHAPES, EYE};
    const size_t skip = sizeof BEFORE - 1;
    ggl_nearest near = ggl_nearest_to(name + skip);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ggl_nearest_try(&near, names[i] + skip, SIZE_MAX);
    return ggl_fail(err, status,
                    "%s: the built-in models are " STORIES ", " CHAT ", " WORDS ", " SHAPES
                    " and " EYE "%s%s%s",
                    name, near.best ? "; did you mean " BEFORE : "", near.best ? near.best : "",
                    near.best ? "?" : "");
}

bool llm_builtin_find(const char *name, llm_builtin *out) {
    const llm_builtin models[] = {
        {STORIES, llm_builtin_model, llm_builtin_model_size, NULL},
        {CHAT, llm_builtin_chat_model, llm_builtin_chat_model_size, NULL},
        {SHAPES, llm_builtin_shapes_model, llm_builtin_shapes_model_size, EYE},
        {EYE, llm_builtin_shapes_eye, llm_builtin_shapes_eye_size, NULL},
        {WORDS, llm_builtin_words_model, llm_builtin_words_model_size, NULL},
    };
    *out = (llm_builtin){0};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (!name || strcmp(name, models[i].name) == 0) {
            *out = models[i];
            return true;
        }
    return strncmp(name, BEFORE, sizeof BEFORE - 1) == 0;
}

const char *llm_builtin_eye(const char *path) {
    llm_builtin b = {0};
    return path && llm_builtin_find(path, &b) ? b.eye : NULL;
}

const char *llm_eye_of(const char *model, ggl_error *why) {
    const char *built_in = llm_builtin_eye(model);
    return built_in ? built_in : model && llm_convert_finds_eye(model, why) ? model : NULL;
}
