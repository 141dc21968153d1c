/* os_terminal.h for Windows. */
#include "ggl/internal/os_terminal.h"

#include <windows.h>

#include <io.h>

bool ggl_os_is_terminal(int fd) {
    DWORD mode;
    return _isatty(fd) && GetConsoleMode((HANDLE)_get_osfhandle(fd), &mode);
}

int ggl_os_terminal_columns(int fd) {
    CONSOLE_SCREEN_BUFFER_INFO i;
    return GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(fd), &i)
               ? i.srWindow.Right - i.srWindow.Left + 1
               : 0;
}
