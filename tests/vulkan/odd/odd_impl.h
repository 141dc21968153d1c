/* Shared by the files of the library. */
#ifndef ODD_IMPL_H
#define ODD_IMPL_H

#include <stdbool.h>

#include "api.h"
#include "odd.h"

/* The functions of the machine's library that are wrapped. */
typedef struct odd_functions {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define FUNCTION(level, result, name, parameters) result(*name) parameters;
#include "functions.def"
#undef FUNCTION
} odd_functions;

extern odd_functions odd_real;
extern odd_asked odd_all_asked;

/* True if ODD_VULKAN contains the word. */
bool odd_is(const char *word);

/* A function in place of the machine's. */
typedef struct odd_wrapped {
    const char *name;
    PFN_vkVoidFunction ours;
} odd_wrapped;
#define WRAP(name, f) {"vk" #name, (PFN_vkVoidFunction)f},

/* null.c: those of a device on which nothing is executed. */
extern const odd_wrapped odd_null[];
extern const size_t odd_n_null;

/* matrix.c, for the word matrix. */
/* Returns the function of VK_KHR_cooperative_matrix; NULL: it is none. */
PFN_vkVoidFunction odd_matrix_function(const char *name);
/* Set what a query asks for, if it does. */
void odd_matrix_features(VkPhysicalDeviceFeatures2 *f);
void odd_matrix_properties(VkPhysicalDeviceProperties2 *p);
/* Takes the extension's features out of a chain, in which they are not first; true if they are there. */
bool odd_matrix_remove(const void *chain);

/* counts.c: keeps the compiler's counts of a new pipeline in *p. */
void odd_count(VkDevice d, VkPipeline pipeline, odd_pipeline *p);

#endif
