#include "builtin.h"

#include <string.h>

#include "builtin_model.h"

bool llm_builtin_find(const char *name, llm_builtin *out) {
    const llm_builtin models[] = {
        {"builtin:stories", llm_builtin_model, llm_builtin_model_size},
        {"builtin:chat", llm_builtin_chat_model, llm_builtin_chat_model_size},
    };
    *out = (llm_builtin){0};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (!name || strcmp(name, models[i].name) == 0) {
            *out = models[i];
            return true;
        }
    return strncmp(name, "builtin:", 8) == 0;
}
