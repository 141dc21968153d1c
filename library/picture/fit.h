/* Which size a picture gets before a model sees it (llm_arch_picture in llm/internal/arch.h), from its width and height alone.
 *
 * Threads: any number may call these functions at the same time. */
#ifndef LIBRARY_PICTURE_FIT_H
#define LIBRARY_PICTURE_FIT_H

#include <stdint.h>

#include "ggl/status.h"
#include "llm/internal/arch.h"

/* The whole picture is resized to inner_width x inner_height, and lies with its corner at (left, top) of the one that the model sees. What is
 * around it has the rule's color; below 0, what is outside is cut off. */
typedef struct llm_picture_fit {
    int64_t width, height; /* of the picture that the model sees */
    int64_t inner_width, inner_height, left, top;
    int64_t nx, ny; /* patches; what remains of a side beside whole patches is left out */
    int64_t n_rows; /* with those before the patches */
} llm_picture_fit;

/* GGL_USAGE: the rule, or a size below 1; GGL_LIMIT: the rule allows no such shape, or would make more than LLM_PICTURE_SEEN pixels of it.
 * Messages begin with the name. */
enum { LLM_PICTURE_SEEN = 1 << 26 };
GGL_NODISCARD ggl_status llm_picture_fit_for(llm_picture_fit *fit, const llm_arch_picture *rule,
                                             int64_t width, int64_t height, const char *name,
                                             ggl_error *err);
/* The patches of a side of so many pixels that the model sees; with those that fill its last block. */
static inline int64_t llm_picture_patches(const llm_arch_picture *rule, int64_t pixels) {
    const int64_t unit = rule->patch * rule->block;
    return rule->fit == LLM_FIT_TOKENS ? (pixels + unit - 1) / unit * rule->block
                                       : pixels / rule->patch;
}
/* Sets the size and the place of a picture of width x height pixels that is resized to fit into f->width x f->height, in the middle. */
void llm_picture_pad(llm_picture_fit *f, int64_t width, int64_t height);

#endif
