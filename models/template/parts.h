/* Parts of a message's content, in OpenAI's form: {"type": "text", "text": "Hi"}. */
#ifndef LLM_PARTS_H
#define LLM_PARTS_H

#include "common/json.h"

typedef struct llm_part {
    ggl_str text;  /* valid as long as the document */
    bool left_out; /* it is a picture, sound or file, and the text says so */
} llm_part;

/* Reads a part. A picture, sound or file is refused, except in the result of a tool (in_result), which each later request
 * repeats. GGL_USAGE: the part has no "type", a
 * type that is not known, or no text; GGL_UNSUPPORTED: it is a picture, sound or file. */
GGL_NODISCARD ggl_status llm_part_read(llm_part *out, const json_value *part, bool in_result,
                                       ggl_error *err);
/* The text that stands for a picture, or for another file. */
ggl_str llm_part_left_out(bool is_picture);

#endif
