/* Gets models from the Hugging Face Hub, or from a URL, into a cache folder: $LLM_CACHE, or ggml-lite in the user's folder for caches.
 * A model that is there is asked for by one request, whether it is the current one; without a network it is used as it is.
 *
 *     const hub_wanted w = {.repo = "USER/REPO:Q4_K_M"};
 *     char *path;
 *     if (llm_hub_get(&path, &w, &err) == GGL_OK)
 *         .. open path ..
 *     free(path);
 *
 * Environment: HF_TOKEN, an access token; HF_ENDPOINT or MODEL_ENDPOINT, the URL of another hub; what curl reads (https_proxy). */
#ifndef HUB_H
#define HUB_H

#include "watch.h"

/* Members may be NULL, except for either repo or url. */
typedef struct hub_wanted {
    const char *repo; /* USER/REPO or USER/REPO:QUANT, or the address of its page */
    const char *
        file; /* of the repository; NULL: by QUANT, else Q4_K_M, else Q8_0, else the first GGUF file, else the folder */
    const char *url;   /* of a GGUF file; the other parts of a split model lie beside it */
    const char *token; /* for private and gated repositories; NULL: HF_TOKEN */
    const char *
        arch; /* the descriptor by which a folder is checked before its weights come; NULL: a built-in one */
    /* Also get the repository's eye (mmproj), if it has one beside a GGUF file: set to its path, which the caller frees by free(), or to NULL. NULL:
     * it is not wanted */
    char **eye;
    bool offline;    /* use what is in the cache, and no network */
    bool no_weights; /* of a Hugging Face folder, get no weights */
    hub_watch watch;
} hub_wanted;

/* Gets a model, and sets *path to its GGUF file or Hugging Face folder, which the caller frees by free(). A download that was
 * interrupted goes on. On failure *path is NULL. GGL_USAGE: *w or HF_ENDPOINT is wrong; GGL_NOT_FOUND: there is no such
 * repository or file, or it may not be read; GGL_CANCELLED: w->watch.stopped; GGL_IO, GGL_FORMAT, GGL_LIMIT, GGL_UNSUPPORTED (there is
 * no program curl), GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_hub_get(char **path, const hub_wanted *w, ggl_error *err);

/* Reads what is at the address that a stranger has given, of https or http: at most n_most bytes, within some seconds. Only public addresses are
 * connected to, never this machine, its network, or the services of a cloud; so are those of at most three redirects. No proxy is used. The
 * caller frees *bytes by ggl_free. GGL_USAGE: it is no such address, or not public; GGL_LIMIT: there are more bytes; GGL_NOT_FOUND,
 * GGL_IO, GGL_FORMAT: it cannot be read; GGL_CANCELLED: watch->stopped; GGL_UNSUPPORTED: there is no program curl; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_hub_read_public(unsigned char **bytes, size_t *n, const char *url,
                                             size_t n_most, const hub_watch *watch, ggl_error *err);

/* A model of a repository: a GGUF file with its parts, or the Hugging Face folder. */
typedef struct hub_model {
    const char *path; /* of the first part; of a folder's weights or config.json */
    uint64_t size;    /* bytes of all files */
    int n_files;
    bool folder, cached;
} hub_model;

/* Calls `each` for every model of w->repo, sorted by path, the folder last. Fails as hub_get. */
GGL_NODISCARD ggl_status llm_hub_models(const hub_wanted *w,
                                        void (*each)(void *user, const hub_model *m), void *user,
                                        ggl_error *err);

/* Something in the cache. */
typedef struct hub_cached {
    const char *
        path; /* what opens the model: its GGUF file, or the Hugging Face folder; or the place of a problem */
    const char *repo; /* USER/REPO; NULL: a file from a URL, or a problem */
    const char *file; /* within the repository; "": the folder */
    uint64_t size;    /* bytes of all files */
    int n_files;
    bool
        is_whole; /* false: files are missing, or of an older version, because a download was interrupted */
    const char *problem; /* why what is at `path` is no model; NULL: it is one */
} hub_cached;

/* Calls `each` for what is in the cache, sorted by path, and sets *folder to the cache's folder, which the caller frees by free().
 * GGL_NOT_FOUND: there is no place for a cache; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_hub_list_cache(char **folder,
                                            void (*each)(void *user, const hub_cached *c),
                                            void *user, ggl_error *err);

#endif
