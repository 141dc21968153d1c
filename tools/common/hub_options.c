#include "hub_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtin/builtin.h"
#include "common/amounts.h"
#include "fetch_progress.h"
#include "ggl/internal/show.h"
#include "hub/hub.h"
#include "llm/internal/convert.h"
#include "process.h"

/* --- what happens ----------------------------------------------------------------------------- */

typedef struct watching {
    const char *tool;
    fetch_progress progress;
} watching;

static void on_event(void *user, const hub_event *e) {
    watching *w = user;
    switch (e->kind) {
    case HUB_SAYS:
        tool_say(w->tool, "%s", e->text);
        break;
    case HUB_NOTES:
        tool_note(w->tool, "%s", e->text);
        break;
    case HUB_WARNS:
        tool_warning(w->tool, "%s", e->text);
        break;
    case HUB_BEGINS:
        fetch_progress_begin(&w->progress, w->tool, e->verb, e->name, e->done, e->size);
        break;
    case HUB_GOES_ON:
        fetch_progress_show(&w->progress, e->done);
        break;
    case HUB_STARTS_OVER:
        fetch_progress_restart(&w->progress);
        break;
    case HUB_ENDS:
        fetch_progress_end(&w->progress);
        break;
    }
}

/* Prints why there is no model; returns the exit code. `flag` is what the user typed. */
static int report(const char *tool, const char *flag, ggl_status st, const ggl_error *err) {
    if (process_stopped)
        return process_stop_code();
    return st == GGL_USAGE ? tool_error(tool, 2, "%s: %s", flag, err->msg)
                           : tool_error(tool, 1, "%s", err->msg);
}

static void print_model(void *user, const hub_model *m) {
    char size[AMOUNT_TEXT], what[64] = "";
    (void)user;
    if (m->folder)
        snprintf(what, sizeof what, "  (Hugging Face folder, %d file%s)", m->n_files,
                 llm_amount_s(m->n_files));
    else if (m->n_files > 1)
        snprintf(what, sizeof what, "  (%d parts)", m->n_files);
    ggl_fprint(stdout, "%10s  %s%s%s\n", llm_amount_bytes(size, m->size), m->path, what,
               m->cached ? "  (in the cache)" : "");
}

/* --- the cache -------------------------------------------------------------------------------- */

typedef struct cache_lines {
    const char *tool;
    size_t n;
    double size;
} cache_lines;

/* Writes the file or the parts of a model beside its name. */
static void print_cached(void *user, const hub_cached *m) {
    cache_lines *l = user;
    char size[AMOUNT_TEXT], parts[40] = "";
    if (m->problem) {
        tool_note(l->tool, "%s: %s", m->path, m->problem);
        return;
    }
    if (m->n_files > 1)
        snprintf(parts, sizeof parts, "  (%d %s)", m->n_files, *m->file ? "parts" : "files");
    ggl_fprint(stdout, "%10s  %s  %s%s%s\n", llm_amount_bytes(size, m->size),
               m->repo ? m->repo : m->path, *m->file ? m->file : "Hugging Face folder", parts,
               m->is_whole ? "" : "  (its download was interrupted)");
    l->n++;
    l->size += (double)m->size;
}

/* Returns the exit code. */
static int print_cache(const char *tool) {
    cache_lines l = {.tool = tool};
    ggl_error err = {0};
    char size[AMOUNT_TEXT], *folder;
    if (llm_hub_list_cache(&folder, print_cached, &l, &err) != GGL_OK)
        return tool_error(tool, 1, "%s", err.msg);
    tool_say(tool, "%zu model%s, %s, in %s%s", l.n, llm_amount_s(l.n),
             llm_amount_bytes(size, (uint64_t)l.size), folder,
             l.n > 0 ? "; -hf USER/REPO -hff FILE takes one of a repository" : "");
    free(folder);
    return tool_finish(tool, 0);
}

/* --- the options ------------------------------------------------------------------------------ */

static hub_wanted wanted_of(const hub_options *o, watching *w) {
    return (hub_wanted){.token = o->token,
                        .offline = o->offline,
                        .no_weights = o->no_weights,
                        .watch = {on_event, process_is_stopped, w}};
}

/* wants_eye: also get that of the repository. */
static int get(const char *tool, hub_options *o, const char **model, bool wants_eye) {
    watching w = {.tool = tool};
    ggl_error err = {0};
    if (!o->repo && !o->url && *model &&
        strncmp(*model, "hf:", 3) == 0) { /* as llm_open takes it */
        o->repo = *model + 3;
        *model = NULL;
    }
    const char *flag = o->repo ? "-hf" : "-mu";
    if (o->cache_list)
        return print_cache(tool);
    if ((o->file || o->list) && !o->repo)
        return tool_error(tool, 2, "%s needs -hf USER/REPO", o->file ? "-hff" : "--hf-list");
    if (!o->repo && !o->url)
        return -1;
    if (o->repo && o->url)
        return tool_error(tool, 2, "-hf and -mu cannot be used together");
    if (*model)
        return tool_error(tool, 2,
                          "-m and %s cannot be used together: the downloaded file is in the cache",
                          flag);
    hub_wanted wanted = wanted_of(o, &w);
    wanted.repo = o->repo;
    wanted.file = o->file;
    wanted.url = o->url;
    wanted.arch = o->arch;
    wanted.eye = wants_eye ? &o->eye : NULL;
    const ggl_status st = o->list ? llm_hub_models(&wanted, print_model, NULL, &err)
                                  : llm_hub_get(&o->path[0], &wanted, &err);
    if (st != GGL_OK)
        return report(tool, flag, st, &err);
    if (o->list)
        return tool_finish(tool, 0);
    *model = o->path[0];
    return -1;
}

int tool_hub_get(const char *tool, hub_options *o, const char **model) {
    return get(tool, o, model, false);
}

const char *tool_eye_of(const char *model, ggl_error *why) {
    return llm_eye_of(model, why);
}

int tool_hub_get_seeing(const char *tool, hub_options *o, const char **model, const char **eye) {
    const bool wants = !*eye && !o->no_eye;
    const int code = get(tool, o, model, wants);
    if (code >= 0 || !wants)
        return code;
    ggl_error *why = &o->why_no_eye;
    *eye = o->eye ? o->eye : tool_eye_of(*model, why);
    if (*eye && *eye == *model)
        tool_say(tool,
                 "%s: the eye or ear of this folder is opened, too; --no-mmproj leaves it out",
                 *model);
    else if (why->msg[0])
        tool_note(tool, "an eye or ear of this folder is not opened: %s", why->msg);
    o->eye_came = *eye != NULL;
    return code;
}

int tool_hub_get_draft(const char *tool, hub_options *o, const char **draft) {
    watching w = {.tool = tool};
    ggl_error err = {0};
    if (!o->repo_draft)
        return -1;
    if (*draft)
        return tool_error(tool, 2, "--draft and -hfd cannot be used together");
    hub_wanted wanted = wanted_of(o, &w);
    wanted.repo = o->repo_draft;
    const ggl_status st = llm_hub_get(&o->path[1], &wanted, &err);
    if (st != GGL_OK)
        return report(tool, "-hfd", st, &err);
    *draft = o->path[1];
    return -1;
}

void tool_hub_fini(hub_options *o) {
    for (size_t i = 0; i < sizeof o->path / sizeof *o->path; i++) {
        free(o->path[i]);
        o->path[i] = NULL;
    }
    free(o->eye);
    o->eye = NULL;
}
