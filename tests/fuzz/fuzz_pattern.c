/* Regular expressions and shell patterns for names: up to the first newline a pattern, behind it a text. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "common/glob.h"
#include "common/pattern.h"

enum { MOST = 4096 }; /* longer ones only take longer */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size = size < MOST ? size : MOST;
    const char *const s = (const char *)data, *const end = memchr(s, '\n', size);
    const size_t n = end ? (size_t)(end - s) : size, n_text = end ? size - n - 1 : 0;
    const ggl_str pattern = {s, n}, text = {end ? end + 1 : s, n_text};
    llm_pattern *p, *fresh;
    (void)llm_stars_match(pattern, '1', text);
    (void)llm_glob_matches(pattern, text);
    if (llm_pattern_read(&p, pattern, NULL) != GGL_OK)
        return 0;
    for (size_t i = 0; i <= n_text; i = 2 * i + 1) /* what it learns from these changes no answer */
        (void)llm_pattern_matches(p, (ggl_str){text.s, i});
    require(llm_pattern_read(&fresh, pattern, NULL) == GGL_OK);
    require(llm_pattern_matches(p, text) == llm_pattern_matches(fresh, text));
    llm_pattern_free(p);
    llm_pattern_free(fresh);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const seeds[] = {
        "blk\\.(1[0-9]|2[0-3]|\\d)\\.ffn_.*_(?:ch)?exps\nblk.21.ffn_gate_chexps.weight",
        "^([[:alpha:]_]+\\.){2,3}[^]a-c\\w-]{,4}?$\nabc.d_e.\xc3\xa9\xff-.weight",
        "(a*)*(b|\\<c\\>|\\bd|^)+x{1,40}|[[.-.]-[=a=]]\naaaabcd c xxxxxxxxxxxxxxxxxx",
        "blk.*.[!a-c]??_\\*[]x]*[[:digit:]]\nblk.12.attn_*].7",
    };
    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return false;
    *size = strlen(seeds[k]);
    *data = malloc(*size);
    if (!*data)
        abort();
    memcpy(*data, seeds[k], *size);
    return true;
}
