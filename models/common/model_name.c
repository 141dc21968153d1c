#include "model_name.h"

#include <stddef.h>
#include <string.h>

#include "ggl/internal/text.h"
#include "ggl/internal/os_fs.h"

/* True for the files of sentence-transformers' modules: 1_Pooling/config.json, 2_Dense/model.safetensors. */
static bool is_of_module(const char *name) {
    static const char *const names[] = {"_Pooling/config.json", "_Dense/config.json",
                                        "_Dense/model.safetensors"};
    const size_t n = strspn(name, "0123456789");
    for (size_t i = 0; n > 0 && i < sizeof names / sizeof *names; i++)
        if (strcmp(name + n, names[i]) == 0)
            return true;
    return false;
}

bool llm_model_name_of_folder(const char *name) {
    static const char *const names[] = {"added_tokens.json",
                                        "chat_template.jinja",
                                        "config.json",
                                        "config_sentence_transformers.json",
                                        "generation_config.json",
                                        "merges.txt",
                                        "model.safetensors.index.json",
                                        "modules.json",
                                        "preprocessor_config.json",
                                        "processor_config.json",
                                        "sentencepiece.bpe.model",
                                        "spiece.model",
                                        "spm.model",
                                        "tekken.json",
                                        "tokenizer.json",
                                        "tokenizer.model",
                                        "tokenizer_config.json",
                                        "vocab.json",
                                        "vocab.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return is_of_module(name);
}

bool llm_model_name_is_aside(const char *path) {
    const char *slash = ggl_os_last_separator(path), *name = slash ? slash + 1 : path;
    return ggl_case_find(name, "mmproj") || ggl_case_find(name, "imatrix");
}

/* True if the name has this word between its ends, dashes and the like, in any case of letters. */
static bool has_word(const char *name, const char *word) {
    const size_t n = strlen(word);
    for (const char *s = name; (s = ggl_case_find(s, word)); s++)
        if ((s == name || strchr("-._", s[-1])) && (!s[n] || strchr("-._", s[n])))
            return true;
    return false;
}

int llm_model_name_eye_rank(const char *path) {
    static const char *const liked[] = {"f16", "bf16", "q8_0", "f32"};
    enum { N = sizeof liked / sizeof *liked };
    const char *slash = ggl_os_last_separator(path), *name = slash ? slash + 1 : path;
    int k = 0;
    if (!ggl_case_find(name, "mmproj"))
        return -1;
    while (k < N && !has_word(name, liked[k]))
        k++;
    return k;
}
