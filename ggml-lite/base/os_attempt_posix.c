/* os_attempt.h, by functions of C. */
#include "ggl/internal/os_attempt.h"

bool ggl_os_attempt(os_attempt *a, void (*run)(void *arg), void *arg) {
    if (setjmp(a->back) != 0)
        return false;
    run(arg);
    return true;
}

void ggl_os_abandon(os_attempt *a) {
    longjmp(a->back, 1);
}
