/* Parts of a message's content, in OpenAI's form: {"type": "text", "text": "Hi"}. */
#ifndef LLM_PARTS_H
#define LLM_PARTS_H

#include "common/json.h"
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
bool llm_part_is_picture(const json_value *part);
bool llm_part_is_sound(const json_value *part);
/* Finds the address of a picture: "image_url", "url" or "image" is a string, or an object with "url". GGL_USAGE: there is none. */
GGL_NODISCARD ggl_status llm_part_address(ggl_str *out, const json_value *part, ggl_error *err);
/* Finds the base64 of a sound, {"input_audio": {"data": .., "format": ..}}; the format has no effect, because the file says what it is. GGL_USAGE: there
 * is none. */
GGL_NODISCARD ggl_status llm_part_sound(ggl_str *digits, const json_value *part, ggl_error *err);
/* Finds the base64 in an address of the form data:image/TYPE;base64,DIGITS. False: it has another form. */
bool llm_part_digits(ggl_str *digits, ggl_str address);
/* Decodes base64 into *bytes, which the caller frees by ggl_free. GGL_USAGE: it is not base64, or empty; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_part_bytes(unsigned char **bytes, size_t *n, ggl_str digits,
                                        bool is_sound, ggl_error *err);

/* --- conversations ------------------------------------------------------------------------------ */

/* Copies the JSON of a conversation with contents that are texts: the parts of a list, [{"type": "text", "text": "Hi"}, ..],
 * become lines, pictures and sounds become their marks, without a line break around them, and arguments of calls that are a JSON object in a string become the
 * object. A picture or file in the result of a tool that is not shown becomes a text that says so. `name`: of the text, for
 * messages. marks: NULL: nothing is shown. The caller frees *text, of *n bytes and a NUL, by ggl_free. GGL_FORMAT: it is no JSON, has no messages, or one
 * without a role or content; GGL_UNSUPPORTED: a part is a picture, sound or file that is not shown; GGL_USAGE: another part that is no
 * text, or a picture or sound that is not given as it must be; GGL_LIMIT; GGL_NOMEM; or as marks->show. */
GGL_NODISCARD ggl_status llm_talk_texts(ggl_str json, const char *name, const llm_part_marks *marks,
                                        char **text, size_t *n, ggl_error *err);

#endif
