/* A Vulkan library for tests: it passes every call on to the machine's own, and makes the device look
 * like others that this machine lacks. It is built as libvulkan.so.1, which the backend opens by that
 * name. The environment variable ODD_VULKAN is a list of words, separated by spaces:
 *
 *   portability   the device leaves out parts of Vulkan: an instance lists it only if it asks for such
 *                 devices, and a device must enable VK_KHR_portability_subset
 *   bindings      a shader can use 4 storage buffers
 *   some_bindings a shader can use 13 storage buffers
 *   families      queue family 0 draws and computes, family 1 only computes
 *   uncached      an integrated device with two kinds of memory: 0 is the device's own, which the host
 *                 sees but does not cache; 1 is the host's, cached
 *   full          the first kind of memory is full: with uncached the device's own
 *   coherent      the second kind of memory is only for devices with a feature that is off
 *                 (VK_AMD_device_coherent_memory), and the third is like it otherwise (with uncached)
 *   no_memory     no kind of memory suits a buffer
 *   no_submit     work cannot be submitted: the host has no memory for it
 *   matrix        the device has matrix units for f16, and no shader is compiled (with null)
 *   null          nothing is executed, and memory is the host's: for a driver that compiles shaders for
 *                 a device that is not there (RADV's "null device", RADV_FORCE_FAMILY=navi21). Of each
 *                 pipeline the driver's own counts are kept */
#ifndef ODD_H
#define ODD_H

#include <stddef.h>
#include <stdint.h>

enum { ODD_MAX_SPEC = 17, ODD_MAX_PIPELINES = 512 };

/* What the driver's compiler made of a shader. */
typedef struct odd_pipeline {
    const uint32_t *code; /* the shader's SPIR-V, a copy that is never freed */
    size_t n_words;
    uint32_t spec[ODD_MAX_SPEC];
    uint32_t n_spec;
    uint64_t vector_registers, scalar_registers;
    uint64_t spilled;        /* vector registers whose values are in memory */
    uint64_t scalar_spilled; /* scalar registers whose values are in lanes of vector registers */
    uint64_t scratch;        /* bytes of memory for each invocation */
    uint64_t instructions;
    /* of the machine code: most loads from memory under way at the same time; instructions of the
     * shortest loop with at least half of all products, and its products: multiplications with an
     * addition */
    uint64_t loads_in_flight, loop_instructions, loop_products;
} odd_pipeline;

/* What the backend has asked for. */
typedef struct odd_asked {
    uint32_t matrix;                                  /* features of matrix units, with null */
    uint32_t family;                                  /* of the device's queue */
    uint32_t memory_type;                             /* of the last allocation that succeeded */
    uint32_t n_refused;                               /* allocations that found the memory full */
    uint32_t n_buffers;                               /* that were created and not destroyed */
    uint32_t n_dispatches, n_barriers, n_submissions; /* recorded; with null */
    uint32_t n_pipelines;
    odd_pipeline pipeline[ODD_MAX_PIPELINES]; /* with null, in the order in which they were made */
} odd_asked;

/* Exported by the library, for dlsym. */
#define ODD_ASKED "odd_vulkan_asked"
typedef const odd_asked *odd_asked_fn(void);

#endif
