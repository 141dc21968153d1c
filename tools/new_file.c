#include "new_file.h"

#include <errno.h>
#include <unistd.h>

bool new_file_end(FILE *file, const char *temporary, const char *path, int error) {
    if (!error && (fflush(file) != 0 || fsync(fileno(file)) != 0))
        error = errno;
    if (fclose(file) != 0 && !error)
        error = errno;
    if (!error && rename(temporary, path) != 0)
        error = errno;
    if (error)
        unlink(temporary);
    errno = error;
    return error == 0;
}

void new_file_abort(FILE *file, const char *temporary) {
    fclose(file);
    unlink(temporary);
}
