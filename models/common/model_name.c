#include "model_name.h"

#include <stddef.h>
#include <string.h>

bool llm_model_name_of_folder(const char *name) {
    static const char *const names[] = {"added_tokens.json",
                                        "chat_template.jinja",
                                        "config.json",
                                        "generation_config.json",
                                        "merges.txt",
                                        "model.safetensors.index.json",
                                        "sentencepiece.bpe.model",
                                        "spiece.model",
                                        "spm.model",
                                        "tokenizer.json",
                                        "tokenizer.model",
                                        "tokenizer_config.json",
                                        "vocab.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool llm_model_name_is_aside(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strcasestr(name, "mmproj") || strcasestr(name, "imatrix");
}

bool llm_ends_with(const char *name, const char *end) {
    const size_t n = strlen(name), n_end = strlen(end);
    return n >= n_end && strcmp(name + n - n_end, end) == 0;
}
