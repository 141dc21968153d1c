#include <string.h>

#include "ggl/internal/file.h"
#include "ggl/internal/number.h"
#include "tool.h"

double lora_read_scale(char *word) {
    char *at = word + strlen(word);
    while (at > word && at[-1] != '=' && at[-1] != ':')
        at--;
    const size_t n = strlen(at);
    if (at == word || n == 0 || ggl_file_exists(word) || ggl_number_length(at, n) != n)
        return 1;
    at[-1] = '\0';
    return ggl_number_value(at, n);
}
