#include "hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/user_path.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"
#include "hub_impl.h"

#define ENDPOINT "https://huggingface.co"

/* --- places ----------------------------------------------------------------------------------- */

/* $LLM_CACHE, or the user's folder for caches. */
static ggl_status find_cache(hub *h, ggl_error *err) {
    const char *value = getenv("LLM_CACHE");
    h->cache =
        value && *value ? ggl_copy_text(value) : llm_user_path("XDG_CACHE_HOME", ".cache", "");
    return h->cache ? GGL_OK
                    : ggl_fail(err, GGL_NOT_FOUND,
                               "there is no folder for downloaded models: set LLM_CACHE, or HOME");
}

/* True if the first n bytes of s are the URL of a server that may see the token. Without a host, as in "https://", every URL
 * would begin like it. */
static bool is_endpoint(const char *s, size_t n) {
    const size_t n_scheme = strncmp(s, "https://", 8) == 0 ? 8 : 7;
    if (!llm_hub_is_url(s) || n <= n_scheme || s[n_scheme] == '/' || s[n_scheme] == ':')
        return false;
    for (size_t i = n_scheme; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || s[i] == 127 || strchr("?#@\\", s[i]))
            return false;
    return true;
}

/* MODEL_ENDPOINT is llama.cpp's variable, HF_ENDPOINT that of Hugging Face's own programs. */
static ggl_status read_endpoint(hub *h, ggl_error *err) {
    static const char *const names[] = {"MODEL_ENDPOINT", "HF_ENDPOINT"};
    const char *value = ENDPOINT, *from = "";
    for (size_t i = sizeof names / sizeof *names; i-- > 0;)
        if (getenv(names[i]) && *getenv(names[i])) {
            value = getenv(names[i]);
            from = names[i];
        }
    size_t n = strlen(value);
    while (n > 0 && value[n - 1] == '/')
        n--;
    if (!is_endpoint(value, n) || n >= sizeof h->endpoint)
        return ggl_fail(err, GGL_USAGE,
                        "%s: '%s' is not the URL of a server, such as https://huggingface.co", from,
                        value);
    snprintf(h->endpoint, sizeof h->endpoint, "%.*s", (int)n, value);
    return GGL_OK;
}

/* --- the calls -------------------------------------------------------------------------------- */

static ggl_status begin(hub *h, const hub_wanted *w, ggl_error *err) {
    const char *token = w->token ? w->token : getenv("HF_TOKEN");
    *h = (hub){.w = w,
               .token = token && *token ? token : NULL,
               .list.no_weights = w->no_weights,
               .cached.no_weights = w->no_weights,
               .mark = -1};
    if (!w->repo == !w->url)
        return ggl_fail(err, GGL_USAGE, "either a repository or a URL names a model");
    const ggl_status st = read_endpoint(h, err);
    return st == GGL_OK ? find_cache(h, err) : st;
}

static void end(hub *h) {
    llm_hub_list_fini(&h->list);
    llm_hub_list_fini(&h->cached);
    if (h->mark >= 0)
        ggl_os_close(h->mark);
    free(h->cache);
    free(h->folder);
    free(h->path);
    free(h->eye);
}

ggl_status llm_hub_get(char **path, const hub_wanted *w, ggl_error *err) {
    hub h;
    *path = NULL;
    if (w->eye)
        *w->eye = NULL;
    ggl_status st = begin(&h, w, err);
    if (st == GGL_OK)
        st = w->repo ? llm_hub_get_repo(&h, err) : llm_hub_get_url(&h, err);
    if (st == GGL_OK) {
        *path = h.path;
        h.path = NULL;
    }
    if (st == GGL_OK && w->eye) {
        *w->eye = h.eye;
        h.eye = NULL;
    }
    end(&h);
    return st;
}

ggl_status llm_hub_models(const hub_wanted *w, void (*each)(void *user, const hub_model *m),
                          void *user, ggl_error *err) {
    hub h;
    ggl_status st = begin(&h, w, err);
    if (st == GGL_OK && !w->repo)
        st = ggl_fail(err, GGL_USAGE, "a URL has no list of models");
    if (st == GGL_OK)
        st = llm_hub_list_models(&h, each, user, err);
    end(&h);
    return st;
}

ggl_status llm_hub_list_cache(char **folder, void (*each)(void *user, const hub_cached *c),
                              void *user, ggl_error *err) {
    hub h = {.mark = -1};
    *folder = NULL;
    ggl_status st = find_cache(&h, err);
    if (st == GGL_OK)
        st = llm_hub_each_cached(&h, each, user, err);
    if (st == GGL_OK) {
        *folder = h.cache;
        h.cache = NULL;
    }
    end(&h);
    return st;
}
