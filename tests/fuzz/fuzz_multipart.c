/* Forms with files: the first line is the media type, the rest the body. Parts lie in the body, in order. What a form says about a sound is
 * within its bounds, or refused with a sentence. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "llm-server/multipart.h"
#include "llm-server/speech_form.h"

static void read_ask(speech_api api, speech_vad vad, bool strict, const char *type, ggl_str body) {
    speech_ask a;
    const char *param = NULL;
    ggl_error err = {0};
    const ggl_status st = speech_ask_read(&a, api, vad, strict, type, body, &param, &err);
    const llm_transcribe_params *p = &a.how;
    const char *data = p->data;
    if (st == GGL_OK) {
        require(!param && p->n_data > 0 && data >= body.s && data + p->n_data <= body.s + body.n);
        require(a.format < N_SPEECH_FORMATS && (!a.streams || a.format <= SPEECH_TEXT));
        require(p->temperature >= 0 && p->temperature <= 1 && p->temperature_step <= 1);
        require(p->offset >= 0 && p->duration >= 0 && p->offset <= 1e8 && p->duration <= 1e8);
        require(isfinite(p->least_logprob) && isfinite(p->least_entropy) && isfinite(p->no_speech));
        require(p->n_beams >= 0 && p->n_best >= 0 && (!strict || a.ignored.n == 0));
    } else {
        require(err.status == st && *err.msg);
    }
    speech_ask_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char type[200], boundary[MULTIPART_BOUNDARY + 1];
    multipart_part part[4];
    size_t n = 0;
    ggl_error err = {0};
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    const size_t n_type = line ? (size_t)(line - data) : 0;
    if (!line || n_type >= sizeof type)
        return 0;
    memcpy(type, data, n_type);
    type[n_type] = '\0';
    if (multipart_boundary(type, boundary, &err) != GGL_OK) {
        require(err.status == GGL_FORMAT && *err.msg);
        return 0;
    }
    const ggl_str body = {(const char *)line + 1, size - n_type - 1};
    const ggl_status st = multipart_read(part, 4, &n, boundary, body, &err);
    require(n <= 4 && (st == GGL_OK || (err.status == st && *err.msg)));
    const char *at = body.s;
    for (size_t i = 0; i < n; i++) {
        require(part[i].name.s >= at && part[i].data.s >= part[i].name.s + part[i].name.n);
        at = part[i].data.s + part[i].data.n;
        require(at <= body.s + body.n);
    }
    for (int k = 0; k < 2 * N_SPEECH_APIS; k++)
        read_ask((speech_api)(k / 2), (speech_vad)(size % 3), k % 2, type, body);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const seed[] = {
        "multipart/form-data; boundary=b\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n"
        "\r\nm\r\n--b\r\nContent-Disposition: form-data; name=file; filename=\"a.wav\"\r\n"
        "Content-Type: audio/wav\r\nContent-Transfer-Encoding: binary\r\n\r\nRIFF\r\n--b--\r\n",
        "multipart/form-data; boundary=b\n--b\r\nContent-Disposition: form-data; name=file\r\n\r\n"
        "x\r\n--b\r\nContent-Disposition: form-data; name=temperature\r\n\r\n0.5\r\n--b\r\n"
        "Content-Disposition: form-data; name=response_format\r\n\r\nsrt\r\n--b\r\n"
        "Content-Disposition: form-data; name=offset_t\r\n\r\n1500\r\n--b\r\n"
        "Content-Disposition: form-data; name=language\r\n\r\nde\r\n--b--",
        "multipart/form-data; x=y; boundary=\"a b\"\nabc\r\n--a b \r\n\r\n--a b--"};
    if (k >= (int)(sizeof seed / sizeof *seed))
        return false;
    *size = strlen(seed[k]);
    *data = malloc(*size);
    require(*data != NULL);
    memcpy(*data, seed[k], *size);
    return true;
}
