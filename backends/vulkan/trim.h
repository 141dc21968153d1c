/* Removes from a shader the code that its specialization constants exclude. A module has the code
 * of all types of weights and all forms of an operator, and a pipeline uses a small part of it.
 * Drivers find that out, too, but late: without trimming, Mesa takes about five times as long to
 * create a pipeline. */
#ifndef VULKAN_TRIM_H
#define VULKAN_TRIM_H

#include <stddef.h>
#include <stdint.h>

/* Trims a valid module of n_words words, whose specialization constant i has the value spec[i].
 * The constants remain in the module, so the pipeline needs their values, too. Returns the number
 * of words of the result, at most n_words, in *out, which the caller frees by ggl_free; 0 if out
 * of memory. Code that the function does not understand is kept. */
size_t ggl_vk_trim(const uint32_t *code, size_t n_words, const uint32_t *spec, int n_spec,
                   uint32_t **out);

#endif
