/* The descriptors that are compiled in: CMake embeds models/archs/ and writes the table
 * arch_embedded.h. */
#include <string.h>

#include "language.h"

#define EMBEDDED(symbol, name)                                                                     \
    extern const unsigned char symbol[];                                                           \
    extern const size_t symbol##_size;
#include "arch_embedded.h"
#undef EMBEDDED

static const struct {
    const char *name;
    const unsigned char *text;
    const size_t *n;
} embedded[] = {
#define EMBEDDED(symbol, name) {name, symbol, &symbol##_size},
#include "arch_embedded.h"
#undef EMBEDDED
};
#define N_EMBEDDED (sizeof embedded / sizeof *embedded)
#define PRELUDE    "prelude.arch"

const char *llm_arch_prelude_text(size_t *n) {
    for (size_t k = 0; k < N_EMBEDDED; k++)
        if (strcmp(embedded[k].name, PRELUDE) == 0) {
            *n = *embedded[k].n;
            return (const char *)embedded[k].text;
        }
    *n = 0;
    return "";
}

bool llm_arch_builtin(int k, const char **name, const char **text, size_t *n) {
    for (size_t i = 0; i < N_EMBEDDED; i++) {
        if (strcmp(embedded[i].name, PRELUDE) == 0 || k-- > 0)
            continue;
        *name = embedded[i].name;
        *text = (const char *)embedded[i].text;
        *n = *embedded[i].n;
        return true;
    }
    return false;
}

bool llm_arch_builtin_named(const char *name, const char **file, const char **text, size_t *n) {
    const size_t stem = strlen(name);
    for (int k = 0; llm_arch_builtin(k, file, text, n); k++)
        if (strcmp(*file, name) == 0 ||
            (strncmp(*file, name, stem) == 0 && strcmp(*file + stem, ".arch") == 0))
            return true;
    return false;
}
