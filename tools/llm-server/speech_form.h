/* Forms that ask for the text of a sound: what their fields mean. */
#ifndef LLM_SERVER_SPEECH_FORM_H
#define LLM_SERVER_SPEECH_FORM_H

#include "ask.h"
#include "llm/llm.h"

typedef enum speech_api {
    SPEECH_TRANSCRIPTIONS, /* OpenAI's: the sound's own language, */
    SPEECH_TRANSLATIONS,   /* or English */
    SPEECH_INFERENCE,      /* whisper.cpp's */
    N_SPEECH_APIS
} speech_api;

typedef enum speech_format {
    SPEECH_JSON,
    SPEECH_TEXT,
    SPEECH_SRT,
    SPEECH_VTT,
    SPEECH_VERBOSE,
    N_SPEECH_FORMATS
} speech_format;

/* What a form asks for. */
typedef struct speech_ask {
    speech_api api;
    speech_format format;
    bool streams;
    bool wants_vad,
        needs_vad; /* speech is found first, if the server has a model for that; or it is an error */
    bool finds_speech; /* it is found first */
    bool has_segments; /* timestamp_granularities[] asks for them; how.words: for words */
    /* Without callbacks. `data` lies in the form's body; language and prompt belong to this struct. */
    llm_transcribe_params how;
    ignored_fields ignored;
} speech_ask;

typedef enum speech_treatment { SPEECH_READ, SPEECH_IGNORED, SPEECH_REFUSED } speech_treatment;

typedef struct speech_field {
    const char *name;
    ggl_status (*read)(speech_ask *a, const struct speech_field *f, ggl_str v, ggl_error *err);
    speech_treatment treatment;
    const char *why; /* SPEECH_REFUSED: what to do instead */
    bool is_list;    /* a form may have it several times */
    bool is_of_vad;  /* it says how speech is found, and is ignored if it is not */
} speech_field;

/* The fields of an API; one without a name ends them. */
const speech_field *speech_fields(speech_api api);

/* Whether a server has a model that finds speech, for requests that ask for it or for all. */
typedef enum speech_vad { SPEECH_VAD_NONE, SPEECH_VAD_ASKED, SPEECH_VAD_ALL } speech_vad;

/* Reads a form. *param: the field that is wrong, or NULL. GGL_USAGE, GGL_UNSUPPORTED, GGL_NOMEM, and as multipart_read. The struct is to be
 * freed in any case. */
GGL_NODISCARD ggl_status speech_ask_read(speech_ask *a, speech_api api, speech_vad vad, bool strict,
                                         const char *type, ggl_str body, const char **param,
                                         ggl_error *err);
void speech_ask_fini(speech_ask *a);

#endif
