/* Parts of a message's content, in OpenAI's form: {"type": "text", "text": "Hi"}. */
#ifndef LLM_PARTS_H
#define LLM_PARTS_H

#include "common/json.h"
#include "llm/internal/talk.h"
#include "llm/internal/tokenizer.h"

typedef struct llm_text_part {
    ggl_str text;  /* valid as long as the document */
    bool left_out; /* it is a picture, sound or file, and the text says so */
} llm_text_part;

/* How parts that are pictures or sounds are read. */
typedef struct llm_part_marks {
    const llm_marks *in_text; /* marks of what was shown before; NULL: there are none */
    bool pictures, sounds;    /* are shown; others are refused */
    /* Shows the bytes of a file, and sets *mark to what stands for it, valid until the next call. */
    ggl_status (*show)(void *ctx, bool is_sound, const unsigned char *bytes, size_t n,
                       ggl_str *mark, ggl_error *err);
    void *ctx;
} llm_part_marks;

/* Reads a part. A picture, sound or file is refused, except in the result of a tool (in_result), which each later request
 * repeats. marks: what is shown, which a message about a type names. GGL_USAGE: the part has no "type", a
 * type that is not known, or no text; GGL_UNSUPPORTED: it is a picture, sound or file. */
GGL_NODISCARD ggl_status llm_part_read(llm_text_part *out, const json_value *part, bool in_result,
                                       const llm_part_marks *marks, ggl_error *err);
/* The text that stands for a picture, or for another file. */
ggl_str llm_part_left_out(bool is_picture);

/* --- pictures and sounds ------------------------------------------------------------------------ */

/* True for a part that is a picture, {"type": "image_url", ..} and such, or a sound, {"type": "input_audio", ..}. */
GGL_INTERNAL_API bool llm_part_is_picture(const json_value *part);
GGL_INTERNAL_API bool llm_part_is_sound(const json_value *part);
/* True for {"type": "tool_reference", "tool_name": ..}, which names a tool in the result of a search and is no text (llm_talk_message.reference). */
bool llm_part_is_reference(const json_value *part);
/* Finds the address of a picture: "image_url", "url" or "image" is a string, or an object with "url". GGL_USAGE: there is none. */
GGL_NODISCARD ggl_status llm_part_address(ggl_str *out, const json_value *part, ggl_error *err);
/* Finds the base64 of a sound, {"input_audio": {"data": .., "format": ..}}; the format has no effect, because the file says what it is. GGL_USAGE: there
 * is none. */
GGL_NODISCARD ggl_status llm_part_sound(ggl_str *digits, const json_value *part, ggl_error *err);
/* Finds the base64 in an address of the form data:image/TYPE;base64,DIGITS. False: it has another form. */
bool llm_part_digits(ggl_str *digits, ggl_str address);
/* Decodes base64 into *bytes, which the caller frees by ggl_free. GGL_USAGE: it is not base64, or empty; GGL_NOMEM. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_part_bytes(unsigned char **bytes, size_t *n,
                                                         ggl_str digits, bool is_sound,
                                                         ggl_error *err);

/* --- contents ----------------------------------------------------------------------------------- */

/* Puts the parts of a list together, in the arena: texts as lines, pictures and sounds as their marks, without a line break around them. reader:
 * NULL: as one with no marks. GGL_LIMIT: it has 4 GiB; GGL_NOMEM; or as reader->part. */
GGL_NODISCARD ggl_status llm_parts_text(ggl_str *out, ggl_arena *arena, const json_value *list,
                                        bool in_result, const llm_part_reader *reader,
                                        ggl_error *err);
/* Reads parts as `marks` say, which must live as long. */
GGL_INTERNAL_API llm_part_reader llm_part_marks_reader(const llm_part_marks *marks);

#endif
