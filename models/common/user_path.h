/* Files that belong to the user, as the XDG Base Directory Specification places them. */
#ifndef COMMON_USER_PATH_H
#define COMMON_USER_PATH_H

/* Returns FOLDER/ggml-lite/REST, and FOLDER/ggml-lite if rest is "". FOLDER is the value of the environment variable
 * ("XDG_CACHE_HOME") if that is an absolute path, else $HOME/UNDER_HOME (".cache"). NULL: neither
 * variable is an absolute path, or out of memory. The caller frees it. */
char *llm_user_path(const char *variable, const char *under_home, const char *rest);

#endif
