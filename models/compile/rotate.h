/* Weights that are stored rotated (rotate.c). Every function does nothing, or returns its argument, if the file has none. */
#ifndef LLM_ARCH_ROTATE_H
#define LLM_ARCH_ROTATE_H

#include "compile.h"

/* True for the keys that say which weights are rotated, and how. */
bool llm_arch_rotate_reads(ggl_str key);
/* Reads these keys and sets ev->rotate. False: reported. */
bool llm_arch_rotate_init(arch_eval *ev);
void llm_arch_rotate_fini(arch_eval *ev);
/* Notes how the weight w is stored, which is the file's tensor `name`, or some of its rows. False: reported. */
bool llm_arch_rotate_weight(arch_eval *ev, const ggl_tensor *w, const char *name);
/* Says that t, a parameter or another weight with the same data, is stored as `as` is. False: reported. */
bool llm_arch_rotate_same(arch_eval *ev, const ggl_tensor *t, const ggl_tensor *as);
/* True if t is a rotated weight, or cut from one. */
bool llm_arch_is_rotated(const arch_eval *ev, const ggl_tensor *t);
/* Returns the row of which t was made for a product; t if it was not turned. */
const ggl_tensor *llm_arch_before_rotation(const arch_eval *ev, const ggl_tensor *t);
/* Returns the input x of a product with w as the weight, if it is rotated, wants it. NULL: reported. */
ggl_tensor *llm_arch_rotate_input(arch_eval *ev, arch_place p, ggl_tensor *x, const ggl_tensor *w);
/* Takes a new node. Returns it, or for a lookup in a rotated table the row as it was before. NULL: reported, as for any use that is not known. */
ggl_tensor *llm_arch_rotate_output(arch_eval *ev, arch_place p, ggl_tensor *t);

#endif
