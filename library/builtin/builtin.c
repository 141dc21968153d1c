#include "builtin.h"

#include <string.h>

#include "builtin_model.h"

#define EYE "builtin:shapes-eye"

const char *llm_builtin_names(void) {
    return "builtin:stories, builtin:chat, builtin:words, builtin:shapes and " EYE;
}

bool llm_builtin_find(const char *name, llm_builtin *out) {
    const llm_builtin models[] = {
        {"builtin:stories", llm_builtin_model, llm_builtin_model_size, NULL},
        {"builtin:chat", llm_builtin_chat_model, llm_builtin_chat_model_size, NULL},
        {"builtin:shapes", llm_builtin_shapes_model, llm_builtin_shapes_model_size, EYE},
        {EYE, llm_builtin_shapes_eye, llm_builtin_shapes_eye_size, NULL},
        {"builtin:words", llm_builtin_words_model, llm_builtin_words_model_size, NULL},
    };
    *out = (llm_builtin){0};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (!name || strcmp(name, models[i].name) == 0) {
            *out = models[i];
            return true;
        }
    return strncmp(name, "builtin:", 8) == 0;
}

const char *llm_builtin_eye(const char *path) {
    llm_builtin b = {0};
    return path && llm_builtin_find(path, &b) ? b.eye : NULL;
}
