#include "fold.h"

#include "ggl/internal/steps.h"

int llm_fold_strip(uint32_t c, uint32_t part[UNICODE_MOST_PARTS]) {
    const int n = llm_unicode_decompose(c, part);
    int count = 0;
    for (int i = 0; i < n; i++)
        if (!(llm_unicode_step(part[i]) & STEP_NO_SPACE))
            part[count++] = part[i];
    return count;
}

int llm_fold_character(const folding *f, uint32_t c, uint32_t part[FOLD_MOST_PARTS]) {
    uint32_t from[UNICODE_MOST_PARTS] = {c};
    const int n = f->strip ? f->strip(c, from) : 1;
    int count = 0;
    for (int i = 0; i < n; i++) {
        uint32_t mark = 0;
        part[count++] = f->lower ? f->lower(from[i], &mark) : from[i];
        if (mark) /* only of U+0130, which is decomposed otherwise */
            part[count++] = mark;
    }
    return count;
}

bool llm_fold_text(const folding *f, const char *text, size_t n, char **out, size_t *n_out,
                   size_t *cap) {
    *n_out = 0;
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t part[FOLD_MOST_PARTS];
        len = ggl_utf8_length(text + i, n - i);
        GGL_STEPS(1);
        if (!ggl_grow(out, cap, *n_out + 4 * FOLD_MOST_PARTS, 1))
            return false;
        if (len == 0) {
            (*out)[(*n_out)++] = text[i];
            len = 1;
            continue;
        }
        const int n_part = llm_fold_character(f, llm_unicode_decode(text + i, len), part);
        for (int k = 0; k < n_part; k++)
            *n_out += llm_unicode_encode(part[k], *out + *n_out);
    }
    return true;
}
