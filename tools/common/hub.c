#include "hub.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hub_impl.h"
#include "user_path.h"

#define ENDPOINT "https://huggingface.co"

/* --- places ----------------------------------------------------------------------------------- */

/* $LLM_CACHE, or the user's folder for caches. The caller frees it. NULL after a message. */
static char *cache_folder(const char *tool) {
    const char *value = getenv("LLM_CACHE");
    char *path = value && *value ? strdup(value) : user_path("XDG_CACHE_HOME", ".cache", "");
    if (!path)
        (void)tool_error(tool, 1,
                         "there is no folder for downloaded models: set LLM_CACHE, or HOME");
    return path;
}

/* Joins parts of a path with slashes; c may be NULL. */
char *hub_join(const char *a, const char *b, const char *c) {
    const size_t size = strlen(a) + strlen(b) + (c ? strlen(c) : 0) + 3;
    char *s = malloc(size);
    if (s)
        snprintf(s, size, "%s/%s%s%s", a, b, c ? "/" : "", c ? c : "");
    return s;
}

bool hub_is_url(const char *s) {
    return strncmp(s, "https://", 8) == 0 || strncmp(s, "http://", 7) == 0;
}

/* True if the first n bytes of s are the URL of a server that may see the token. Without a host, as in "https://", every URL
 * would begin like it. */
static bool is_endpoint(const char *s, size_t n) {
    const size_t n_scheme = strncmp(s, "https://", 8) == 0 ? 8 : 7;
    if (!hub_is_url(s) || n <= n_scheme || s[n_scheme] == '/' || s[n_scheme] == ':')
        return false;
    for (size_t i = n_scheme; i < n; i++)
        if ((unsigned char)s[i] <= ' ' || s[i] == 127 || strchr("?#@\\", s[i]))
            return false;
    return true;
}

/* MODEL_ENDPOINT is llama.cpp's variable, HF_ENDPOINT that of Hugging Face's own programs. */
static int read_endpoint(hub *h) {
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
        return hub_wrong(h->tool,
                         "%s: '%s' is not the URL of a server, such as https://huggingface.co",
                         from, value);
    snprintf(h->endpoint, sizeof h->endpoint, "%.*s", (int)n, value);
    return -1;
}

/* Reports a wrong argument, escaped for a terminal. Returns 2. */
int hub_wrong(const char *tool, const char *fmt, ...) {
    ggl_error err;
    va_list args;
    va_start(args, fmt);
    (void)ggl_failv(&err, GGL_USAGE, fmt, args);
    va_end(args);
    return tool_error(tool, 2, "%s", err.msg);
}

/* True if a URL is on the endpoint, which may see the token. */
bool hub_is_on_endpoint(const hub *h, const char *url) {
    const size_t n = strlen(h->endpoint);
    return strncmp(url, h->endpoint, n) == 0 && (url[n] == '/' || url[n] == '\0');
}

/* --- the options ------------------------------------------------------------------------------ */

/* Gets a repository's file, or else that of the URL; *path receives it. */
static int get(const char *tool, const hub_options *o, const char *flag, const char *repo,
               const char *file, char **path) {
    const char *token = o->token ? o->token : getenv("HF_TOKEN");
    hub h = {.tool = tool,
             .o = o,
             .arch = path == &o->path[0] ? o->arch : NULL,
             .token = token && *token ? token : NULL,
             .list.no_weights = o->no_weights,
             .cached.no_weights = o->no_weights,
             .mark = -1};
    int code = read_endpoint(&h);
    if (code < 0 && !(h.cache = cache_folder(tool)))
        code = 1;
    if (code < 0)
        code = repo ? hub_get_repo(&h, flag, repo, file) : hub_get_url(&h, o->url);
    hub_list_fini(&h.list);
    hub_list_fini(&h.cached);
    if (h.mark >= 0)
        close(h.mark);
    free(h.cache);
    free(h.folder);
    if (code >= 0) {
        free(h.path);
        return code;
    }
    *path = h.path;
    return -1;
}

int hub_get(const char *tool, hub_options *o, const char **model) {
    if ((o->file || o->list) && !o->repo)
        return tool_error(tool, 2, "%s needs -hf USER/REPO", o->file ? "-hff" : "--hf-list");
    if (!o->repo && !o->url)
        return -1;
    if (o->repo && o->url)
        return tool_error(tool, 2, "-hf and -mu cannot be used together");
    if (*model)
        return tool_error(tool, 2,
                          "-m and %s cannot be used together: the downloaded file is in the cache",
                          o->repo ? "-hf" : "-mu");
    const int code = get(tool, o, "-hf", o->repo, o->file, &o->path[0]);
    if (code < 0)
        *model = o->path[0];
    return code;
}

int hub_get_draft(const char *tool, hub_options *o, const char **draft) {
    if (!o->repo_draft)
        return -1;
    if (*draft)
        return tool_error(tool, 2, "--draft and -hfd cannot be used together");
    const int code = get(tool, o, "-hfd", o->repo_draft, NULL, &o->path[1]);
    if (code < 0)
        *draft = o->path[1];
    return code;
}

void hub_fini(hub_options *o) {
    for (size_t i = 0; i < sizeof o->path / sizeof *o->path; i++) {
        free(o->path[i]);
        o->path[i] = NULL;
    }
}
