/* Prints the hints of all tools, for flags.py: the tool, the kind of answer, the names and the text, separated by tabs. */
#include <stdio.h>

#include "common/hints.h"

int main(void) {
    static const char *const kinds[] = {"refused", "same", "nothing", "nothing", "nothing"};
    static const struct {
        const char *tool;
        const arg_hints *hints;
    } table[] = {{"llm-cli", &cli_hints},
                 {"llm-server", &server_hints},
                 {"llm-bench", &bench_hints},
                 {"llm-imatrix", &imatrix_hints},
                 {"llm-perplexity", &perplexity_hints},
                 {"llm-tokenize", &tokenize_hints},
                 {"llm-embed", &embed_hints},
                 {"llm-quantize", &quantize_hints},
                 {"llm-convert", &convert_hints},
                 {"llm-gguf", &gguf_hints},
                 {"llm-lora", &lora_hints},
                 {"llm-transcribe", &transcribe_hints}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (const arg_hint *h = table[i].hints->row; h->names; h++)
            if (h->tools & table[i].hints->tool)
                printf("%s\t%s\t%s\t%s\n", table[i].tool, kinds[h->kind], h->names, h->text);
    return 0;
}
