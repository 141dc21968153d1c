#include "model_name.h"

#include <stddef.h>
#include <string.h>

#include "ggl/internal/text.h"
#include "ggl/internal/os_fs.h"

bool llm_model_name_of_folder(const char *name) {
    static const char *const names[] = {"added_tokens.json",
                                        "artifact.metadata",
                                        "chat_template.jinja",
                                        "config.json",
                                        "config_sentence_transformers.json",
                                        "generation_config.json",
                                        "merges.txt",
                                        "model.safetensors.index.json",
                                        "modules.json",
                                        "preprocessor_config.json",
                                        "processor_config.json",
                                        "qwen.tiktoken",
                                        "rwkv_vocab_v20230424.txt",
                                        "sentence_albert_config.json",
                                        "sentence_bert_config.json",
                                        "sentence_camembert_config.json",
                                        "sentence_distilbert_config.json",
                                        "sentence_roberta_config.json",
                                        "sentence_xlm-roberta_config.json",
                                        "sentence_xlnet_config.json",
                                        "sentencepiece.bpe.model",
                                        "spiece.model",
                                        "spm.model",
                                        "tekken.json",
                                        "tiktoken.model",
                                        "tokenizer.json",
                                        "tokenizer.model",
                                        "tokenizer.tiktoken",
                                        "tokenizer_config.json",
                                        "vocab.json",
                                        "vocab.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
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
