/* Pictures and sounds of requests. Each gets a mark, which stands in the conversation or prompt where the picture does. A mark has random letters that no client
 * can know, so a client's own text never names a picture. */
#ifndef LLM_SERVER_API_IMAGES_H
#define LLM_SERVER_API_IMAGES_H

#include "ask.h"

/* What people see in place of a mark, and by which llama.cpp's prompts say where a picture stands. */
#define IMAGE_PLACE "<__media__>"

enum {
    IMAGE_MOST = 100, /* of a request */
    IMAGE_MARK = 36,  /* bytes of a mark */
    IMAGE_MOST_URL = 4000
};

/* GGL_UNSUPPORTED: the model sees no pictures. */
GGL_NODISCARD ggl_status image_check_seen(const ask *a, ggl_error *err);
/* True if base64, of which nobody says what it is, is a sound: a WAV, or for a model that hears what has no beginning of a picture that the model would see. */
bool image_is_sound(const ask *a, ggl_str digits);
/* Add a picture to the request, and set *mark, which is valid as long as the ask. GGL_UNSUPPORTED: the model sees none, or pictures are not fetched
 * from addresses; GGL_USAGE: it is not given as it must be; GGL_LIMIT: there are too many; GGL_NOMEM. */
GGL_NODISCARD ggl_status image_of_part(ask *a, const json_value *part, ggl_str *mark,
                                       ggl_error *err);
/* The same for a sound, {"input_audio": {"data": base64, "format": ..}}. What the format says has no effect: the file says what it is. */
GGL_NODISCARD ggl_status image_of_sound_part(ask *a, const json_value *part, ggl_str *mark,
                                             ggl_error *err);
/* "data:image/png;base64,..", or an address. */
GGL_NODISCARD ggl_status image_of_url(ask *a, ggl_str url, ggl_str *mark, ggl_error *err);
GGL_NODISCARD ggl_status image_of_base64(ask *a, ggl_str digits, bool is_sound, ggl_str *mark,
                                         ggl_error *err);

/* Finds the first mark in text[*at .. n), and sets *at to its place and *which to the number of its picture. */
bool image_find_mark(const ask *a, const char *text, size_t n, size_t *at, size_t *which);
/* Puts IMAGE_PLACE in place of the marks. Returns the text's new length. */
size_t image_hide_marks(const ask *a, char *text, size_t n);

#endif
