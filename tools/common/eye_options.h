/* Options of eyes and ears that several tools have: rows of a table for args_parse. o: a pointer to the tool's struct, which has members of
 * these names. llm-cli, llm-embed, llm-server */
#ifndef TOOLS_EYE_OPTIONS_H
#define TOOLS_EYE_OPTIONS_H

#include <inttypes.h>

#include "args.h"
#include "report.h"

/* clang-format off */
#define EYE_OPTIONS(o)                                                                             \
    {"-mm --mmproj", ARG_STRING, &(o)->mmproj, .value = "FILE",                                    \
     .help = "the eye or the ear of a model that sees or hears: the file beside its own, mostly "  \
             "named mmproj-*.gguf, or a Hugging Face folder that has an eye"},                     \
    {"--image-min-tokens", ARG_INT, &(o)->image_min_tokens, .value = "N", .min = 1, .max = 65536, \
     .help = "of an eye that sees pictures near their own size (Qwen-VL, Pixtral): make smaller "  \
             "ones larger, until they take N tokens (default: the file's key)"},                   \
    {"--image-max-tokens", ARG_INT, &(o)->image_max_tokens, .value = "N", .min = 1, .max = 65536, \
     .help = "likewise: make larger pictures smaller, so that they take at most N tokens, which saves time"}
/* clang-format on */

/* mmproj: the eye, when all options have named theirs. Returns -1, or an exit code. */
static inline int eye_options_check(const char *tool, const char *mmproj, int64_t least,
                                    int64_t most) {
    if ((least > 0 || most > 0) && !mmproj)
        return tool_error(tool, 2, "%s needs the model's eye: --mmproj FILE",
                          least > 0 ? "--image-min-tokens" : "--image-max-tokens");
    if (most > 0 && least > most)
        return tool_error(tool, 2,
                          "--image-min-tokens %" PRId64 " exceeds --image-max-tokens %" PRId64,
                          least, most);
    return -1;
}

#endif
