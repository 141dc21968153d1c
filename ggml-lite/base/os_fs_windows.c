/* os_fs.h for Windows. Folders may be written with '/' and with '\\'; paths that the system makes have '/' here. */
#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ggl/internal/os_fs.h"
#include "os_wide.h"

/* --- names in UTF-16 -------------------------------------------------------------------------- */

wchar_t *ggl_os_wide(const char *s) {
    const int n = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, s, -1, NULL, 0);
    wchar_t *w = n > 0 ? malloc((size_t)n * sizeof *w) : NULL;
    if (!w) {
        errno = n > 0 ? ENOMEM : EILSEQ;
        return NULL;
    }
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, s, -1, w, n);
    return w;
}

char *ggl_os_narrow(const wchar_t *w) {
    const int n = WideCharToMultiByte(CP_UTF8, 0, w, -1, NULL, 0, NULL, NULL);
    char *s = n > 0 ? malloc((size_t)n) : NULL;
    if (!s) {
        errno = ENOMEM;
        return NULL;
    }
    WideCharToMultiByte(CP_UTF8, 0, w, -1, s, n, NULL, NULL);
    return s;
}

bool ggl_os_failed(void) {
    static const struct {
        DWORD code;
        int number;
    } of[] = {{ERROR_FILE_NOT_FOUND, ENOENT},
              {ERROR_PATH_NOT_FOUND, ENOENT},
              {ERROR_INVALID_NAME, ENOENT},
              {ERROR_BAD_PATHNAME, ENOENT},
              {ERROR_ACCESS_DENIED, EACCES},
              {ERROR_SHARING_VIOLATION, EACCES},
              {ERROR_LOCK_VIOLATION, EWOULDBLOCK},
              {ERROR_IO_PENDING, EWOULDBLOCK},
              {ERROR_FILE_EXISTS, EEXIST},
              {ERROR_ALREADY_EXISTS, EEXIST},
              {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
              {ERROR_OUTOFMEMORY, ENOMEM},
              {ERROR_COMMITMENT_LIMIT, ENOMEM},
              {ERROR_DISK_FULL, ENOSPC},
              {ERROR_HANDLE_DISK_FULL, ENOSPC},
              {ERROR_DIRECTORY, ENOTDIR},
              {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
              {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
              {ERROR_BROKEN_PIPE, EPIPE},
              {ERROR_NO_DATA, EPIPE},
              {ERROR_NOT_SUPPORTED, ENOSYS},
              {ERROR_INVALID_HANDLE, EBADF},
              {ERROR_WRITE_PROTECT, EROFS},
              {ERROR_USER_MAPPED_FILE, EBUSY},
              {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG}};
    const DWORD code = GetLastError();
    errno = EIO;
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++)
        if (of[k].code == code)
            errno = of[k].number;
    return false;
}

void ggl_os_use_slashes(char *s) {
    for (; *s; s++)
        if (*s == '\\')
            *s = '/';
}

/* --- what is there ---------------------------------------------------------------------------- */

static int64_t to_ns(FILETIME t) {
    const int64_t of_1970 = 116444736000000000; /* the system counts units of 100 ns from 1601 */
    const int64_t units = ((int64_t)t.dwHighDateTime << 32 | t.dwLowDateTime) - of_1970;
    return units < INT64_MIN / 100   ? INT64_MIN /* before 1678; 0: the disk has no such times */
           : units > INT64_MAX / 100 ? INT64_MAX
                                     : units * 100;
}

/* True for a link, and not for what only is stored elsewhere, such as files of clouds. */
static bool is_link(HANDLE h) {
    FILE_ATTRIBUTE_TAG_INFO t;
    return GetFileInformationByHandleEx(h, FileAttributeTagInfo, &t, sizeof t) &&
           t.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT &&
           IsReparseTagNameSurrogate(t.ReparseTag);
}

static bool stat_handle(HANDLE h, os_stat *out) {
    BY_HANDLE_FILE_INFORMATION i;
    const DWORD type = GetFileType(h);
    *out = (os_stat){.kind = OS_DEVICE, .n_names = 1};
    if (type == FILE_TYPE_PIPE || type == FILE_TYPE_CHAR) {
        out->kind = type == FILE_TYPE_PIPE ? OS_PIPE : OS_DEVICE;
        DWORD mode; /* all of a console are one */
        out->id = GetConsoleMode(h, &mode) ? 0 : (uint64_t)(uintptr_t)h;
        out->disk = UINT64_MAX;
        return true;
    }
    if (!GetFileInformationByHandle(h, &i))
        return ggl_os_failed();
    *out = (os_stat){.kind = is_link(h)                                      ? OS_LINK
                             : i.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? OS_FOLDER
                                                                             : OS_FILE,
                     .size = (uint64_t)i.nFileSizeHigh << 32 | i.nFileSizeLow,
                     .modified = to_ns(i.ftLastWriteTime),
                     .disk = i.dwVolumeSerialNumber,
                     .id = (uint64_t)i.nFileIndexHigh << 32 | i.nFileIndexLow,
                     .n_names = i.nNumberOfLinks};
    return true;
}

/* Opens a file or a folder to look at it. */
static HANDLE open_to_look(const char *path, DWORD access, DWORD flags) {
    wchar_t *w = ggl_os_wide(path);
    HANDLE h = w ? CreateFileW(w, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                               NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS | flags, NULL)
                 : INVALID_HANDLE_VALUE;
    if (w && h == INVALID_HANDLE_VALUE)
        (void)ggl_os_failed();
    free(w);
    return h;
}

static bool stat_path(const char *path, DWORD flags, os_stat *out) {
    HANDLE h = open_to_look(path, FILE_READ_ATTRIBUTES, flags);
    *out = (os_stat){0};
    if (h == INVALID_HANDLE_VALUE)
        return false;
    const bool is = stat_handle(h, out);
    CloseHandle(h);
    return is;
}

bool ggl_os_stat(const char *path, os_stat *out) {
    return stat_path(path, 0, out);
}

bool ggl_os_stat_link(const char *path, os_stat *out) {
    return stat_path(path, FILE_FLAG_OPEN_REPARSE_POINT, out);
}

bool ggl_os_stat_fd(int fd, os_stat *out) {
    HANDLE h = (HANDLE)_get_osfhandle(fd);
    *out = (os_stat){0};
    return h != INVALID_HANDLE_VALUE && h != (HANDLE)-2 && stat_handle(h, out);
}

bool ggl_os_exists(const char *path) {
    os_stat s;
    return ggl_os_stat(path, &s);
}

static bool may(const char *path, DWORD access) {
    HANDLE h = open_to_look(path, access, 0);
    if (h == INVALID_HANDLE_VALUE)
        return false;
    CloseHandle(h);
    return true;
}

bool ggl_os_may_read(const char *path) {
    return may(path, GENERIC_READ);
}

bool ggl_os_may_use_folder(const char *path) {
    return may(path, FILE_LIST_DIRECTORY | FILE_ADD_FILE | FILE_TRAVERSE);
}

bool ggl_os_disk_left(const char *path, uint64_t *bytes) {
    ULARGE_INTEGER left;
    os_stat s;
    char *folder = ggl_os_real_path(path), *end;
    if (!folder)
        return false;
    if (ggl_os_stat(folder, &s) && s.kind != OS_FOLDER && (end = ggl_os_last_separator(folder)))
        end[1] = '\0';
    wchar_t *w = ggl_os_wide(folder);
    const bool is = w && GetDiskFreeSpaceExW(w, &left, NULL, NULL);
    *bytes = is ? left.QuadPart : 0;
    free(w);
    free(folder);
    return is;
}

/* --- descriptors ------------------------------------------------------------------------------ */

int ggl_os_open(const char *path, int flags) {
    const bool reads = flags & OS_READ || !(flags & OS_WRITE), writes = flags & OS_WRITE;
    const DWORD access = (reads ? GENERIC_READ : 0) | (writes ? GENERIC_WRITE : 0),
                how = !(flags & OS_CREATE) ? OPEN_EXISTING
                      : flags & OS_NEW     ? CREATE_NEW
                                           : OPEN_ALWAYS;
    wchar_t *w = ggl_os_wide(path);
    os_stat s;
    if (!w)
        return -1;
    HANDLE h = CreateFileW(w, access, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                           how, flags & OS_NO_LINK ? FILE_FLAG_OPEN_REPARSE_POINT : 0, NULL);
    if (h == INVALID_HANDLE_VALUE) {
        (void)ggl_os_failed();
        if (errno == EACCES && ggl_os_is_folder(path))
            errno = EISDIR;
        free(w);
        return -1;
    }
    free(w);
    if (flags & OS_NO_LINK && stat_handle(h, &s) && s.kind == OS_LINK) {
        CloseHandle(h);
        errno = EMLINK;
        return -1;
    }
    const int fd = _open_osfhandle((intptr_t)h, _O_BINARY | _O_NOINHERIT |
                                                    (flags & OS_APPEND ? _O_APPEND : 0) |
                                                    (writes ? 0 : _O_RDONLY));
    if (fd < 0)
        CloseHandle(h);
    return fd;
}

int ggl_os_close(int fd) {
    return _close(fd);
}

static unsigned piece(size_t n) {
    return n < 1 << 30 ? (unsigned)n : 1u << 30;
}

int64_t ggl_os_read(int fd, void *to, size_t n) {
    return _read(fd, to, piece(n));
}

int64_t ggl_os_write(int fd, const void *from, size_t n) {
    return _write(fd, from, piece(n));
}

int64_t ggl_os_read_at(int fd, void *to, size_t n, int64_t at) {
    HANDLE h = (HANDLE)_get_osfhandle(fd);
    const int64_t before = _lseeki64(fd, 0, SEEK_CUR); /* a read at a place moves it here */
    OVERLAPPED o = {.Offset = (DWORD)at, .OffsetHigh = (DWORD)(at >> 32)};
    DWORD got = 0;
    const bool is = ReadFile(h, to, piece(n), &got, &o) || GetLastError() == ERROR_HANDLE_EOF;
    if (!is)
        (void)ggl_os_failed();
    (void)_lseeki64(fd, before, SEEK_SET);
    return is ? (int64_t)got : -1;
}

int64_t ggl_os_seek(int fd, int64_t at, int whence) {
    return _lseeki64(fd, at, whence);
}

bool ggl_os_truncate(int fd, int64_t size) {
    return _chsize_s(fd, size) == 0;
}

bool ggl_os_sync(int fd) {
    return FlushFileBuffers((HANDLE)_get_osfhandle(fd)) || ggl_os_failed();
}

bool ggl_os_let_wait(int fd) {
    (void)fd; /* reads always wait */
    return true;
}

/* The lock lies behind every file's end, because what is locked here can be neither read nor written by others. */
bool ggl_os_lock(int fd, bool alone, bool waits) {
    HANDLE h = (HANDLE)_get_osfhandle(fd);
    OVERLAPPED o = {.Offset = 0, .OffsetHigh = 0x7fffffff};
    (void)UnlockFileEx(h, 0, 1, 0, &o); /* what it has: a lock that is shared becomes another one */
    return LockFileEx(
               h, (alone ? LOCKFILE_EXCLUSIVE_LOCK : 0) | (waits ? 0 : LOCKFILE_FAIL_IMMEDIATELY),
               0, 1, 0, &o) ||
           ggl_os_failed();
}

/* --- streams ---------------------------------------------------------------------------------- */

FILE *ggl_os_fdopen(int fd, const char *mode) {
    wchar_t how[8] = {0};
    size_t n = 0;
    for (; *mode && n < 4; mode++)
        how[n++] = (wchar_t)*mode;
    if (!wcschr(how, L'b')) /* bytes as they are */
        how[n++] = L'b';
    return _wfdopen(fd, how);
}

FILE *ggl_os_fopen(const char *path, const char *mode) {
    const int both = strchr(mode, '+') ? OS_READ | OS_WRITE : 0,
              how = *mode == 'r'   ? OS_READ | both
                    : *mode == 'a' ? OS_WRITE | OS_CREATE | OS_APPEND | both
                                   : OS_WRITE | OS_CREATE | both;
    const int fd = ggl_os_open(path, how);
    if (fd >= 0 && *mode == 'w')
        (void)ggl_os_truncate(fd, 0);
    FILE *f = fd >= 0 ? ggl_os_fdopen(fd, mode) : NULL;
    if (fd >= 0 && !f)
        ggl_os_close(fd);
    return f;
}

FILE *ggl_os_tmpfile(void) {
    return tmpfile();
}

int ggl_os_fileno(FILE *f) {
    return _fileno(f);
}

bool ggl_os_drop_stream(FILE *f) {
    return freopen("NUL", "r+", f) != NULL;
}

bool ggl_os_fseek(FILE *f, int64_t at, int whence) {
    return _fseeki64(f, at, whence) == 0;
}

int64_t ggl_os_ftell(FILE *f) {
    return _ftelli64(f);
}

int ggl_os_getc(FILE *f) {
    return getc(f);
}

int ggl_os_putc(int c, FILE *f) {
    return putc(c, f);
}

/* --- names ------------------------------------------------------------------------------------ */

bool ggl_os_remove(const char *path) {
    wchar_t *w = ggl_os_wide(path);
    const bool done = w && (DeleteFileW(w) || ggl_os_failed());
    free(w);
    return done;
}

/* Renames as POSIX does, also over a file that somebody has open. Windows 10 of 2017 and later can. */
static bool rename_at_once(const wchar_t *from, const wchar_t *to) {
    enum { RENAME_EX = 22, REPLACE = 1, POSIX = 2 };
    typedef struct rename_info {
        ULONG flags;
        HANDLE folder;
        ULONG n;
        wchar_t name[1];
    } rename_info;
    const size_t n = wcslen(to) * sizeof *to, size = sizeof(rename_info) + n;
    rename_info *i = calloc(1, size);
    HANDLE h = i ? CreateFileW(from, DELETE | SYNCHRONIZE,
                               FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                               OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL)
                 : INVALID_HANDLE_VALUE;
    bool done = false;
    if (h != INVALID_HANDLE_VALUE) {
        i->flags = REPLACE | POSIX;
        i->n = (ULONG)n;
        memcpy(i->name, to, n);
        done = SetFileInformationByHandle(h, (FILE_INFO_BY_HANDLE_CLASS)RENAME_EX, i, (DWORD)size);
        CloseHandle(h);
    }
    free(i);
    return done;
}

/* Programs that look for viruses open each new file for a moment: so it is tried again for a second. */
static bool rename_wide(const wchar_t *from, const wchar_t *to) {
    enum { TURNS = 50, PAUSE = 20 };
    for (int turn = 0;; turn++) {
        if (MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
            return true;
        const DWORD why = GetLastError();
        if (why != ERROR_ACCESS_DENIED && why != ERROR_SHARING_VIOLATION)
            return ggl_os_failed();
        if (rename_at_once(from, to))
            return true;
        if (turn == TURNS) {
            errno = GetFileAttributesW(to) != INVALID_FILE_ATTRIBUTES ? EBUSY : EACCES;
            return false;
        }
        Sleep(PAUSE);
    }
}

bool ggl_os_rename(const char *from, const char *to) {
    wchar_t *a = ggl_os_wide(from), *b = ggl_os_wide(to);
    const bool done = a && b && rename_wide(a, b);
    free(a);
    free(b);
    return done;
}

bool ggl_os_make_folder(const char *path, bool is_private) {
    wchar_t *w = ggl_os_wide(path);
    (void)is_private; /* folders of a user's profile are */
    const bool done = w && (CreateDirectoryW(w, NULL) || ggl_os_failed());
    free(w);
    return done;
}

bool ggl_os_remove_folder(const char *path) {
    wchar_t *w = ggl_os_wide(path);
    const bool done = w && (RemoveDirectoryW(w) || ggl_os_failed());
    free(w);
    return done;
}

bool ggl_os_touch(const char *path) {
    HANDLE h = open_to_look(path, FILE_WRITE_ATTRIBUTES, 0);
    FILETIME now;
    if (h == INVALID_HANDLE_VALUE)
        return false;
    GetSystemTimeAsFileTime(&now);
    const bool done = SetFileTime(h, NULL, NULL, &now) || ggl_os_failed();
    CloseHandle(h);
    return done;
}

/* The path with all folders, though links are not followed. */
static char *full_path(const char *path) {
    wchar_t *w = ggl_os_wide(path), *full = NULL;
    const DWORD n = w ? GetFullPathNameW(w, 0, NULL, NULL) : 0;
    if (n > 0 && (full = calloc((size_t)n + 1, sizeof *full)))
        (void)GetFullPathNameW(w, n + 1, full, NULL);
    char *real = full ? ggl_os_narrow(full) : NULL;
    free(w);
    free(full);
    return real;
}

/* Volumes without a letter or a name, as some programs mount them, have no final names. */
char *ggl_os_real_path(const char *path) {
    HANDLE h = open_to_look(path, FILE_READ_ATTRIBUTES, 0);
    if (h == INVALID_HANDLE_VALUE)
        return NULL;
    const DWORD n = GetFinalPathNameByHandleW(h, NULL, 0, FILE_NAME_NORMALIZED);
    wchar_t *w = n > 0 ? calloc((size_t)n + 1, sizeof *w) : NULL;
    const bool found = w && GetFinalPathNameByHandleW(h, w, n + 1, FILE_NAME_NORMALIZED) > 0;
    char *real = !found ? full_path(path)
                        : ggl_os_narrow(wcsncmp(w, L"\\\\?\\", 4) == 0 && w[5] == L':' ? w + 4 : w);
    free(w);
    CloseHandle(h);
    if (real)
        ggl_os_use_slashes(real);
    return real;
}

bool ggl_os_current_folder(char *out, size_t size) {
    wchar_t w[4096];
    const DWORD n = GetCurrentDirectoryW(sizeof w / sizeof *w, w);
    char *s = n > 0 && n < sizeof w / sizeof *w ? ggl_os_narrow(w) : NULL;
    const bool fits = s && strlen(s) < size;
    if (fits) {
        strcpy(out, s);
        ggl_os_use_slashes(out);
    }
    free(s);
    return fits;
}

bool ggl_os_is_absolute(const char *path) {
    const bool drive = ((path[0] >= 'A' && path[0] <= 'Z') || (path[0] >= 'a' && path[0] <= 'z')) &&
                       path[1] == ':';
    const char first =
        path[drive ? 2 : 0]; /* "::1" is an address, and "C:name" begins in a folder of the drive */
    return first == '/' || first == '\\';
}

bool ggl_os_separates(char c) {
    return c == '/' || c == '\\';
}

const char *ggl_os_name_rule(const char *path) {
    const char *end = ggl_os_last_separator(path), *name = end ? end + 1 : path;
    if (!end && ((*name >= 'A' && *name <= 'Z') || (*name >= 'a' && *name <= 'z')) &&
        name[1] == ':')
        name += 2; /* a drive */
    const size_t n = strlen(name);
    bool is_bad = n > 0 && (name[n - 1] == '.' || name[n - 1] == ' ') && strcmp(name, ".") != 0 &&
                  strcmp(name, "..") != 0;
    for (const char *s = name; *s; s++)
        is_bad |= (unsigned char)*s < 32 || strchr("<>:\"|?*", *s);
    return is_bad ? "names of files have no < > : \" | ? * or control characters here, and end in "
                    "neither a dot nor a space"
                  : NULL;
}

/* --- folders ---------------------------------------------------------------------------------- */

struct os_folder {
    HANDLE find;
    WIN32_FIND_DATAW entry;
    bool is_empty; /* there is no `find` */
    bool has;      /* an entry that was not returned yet */
    char *name, *path;
};

os_folder *ggl_os_folder_open(const char *path) {
    const size_t n = strlen(path);
    if (!ggl_os_is_folder(path)) {
        errno = ggl_os_exists(path) ? ENOTDIR : ENOENT;
        return NULL;
    }
    os_folder *f = calloc(1, sizeof *f);
    char *all = malloc(n + 3);
    if (f)
        f->find = INVALID_HANDLE_VALUE;
    if (f && all && (f->path = malloc(n + 1))) {
        memcpy(f->path, path, n + 1);
        snprintf(all, n + 3, "%s%s*", path, n > 0 && ggl_os_separates(path[n - 1]) ? "" : "/");
        wchar_t *w = ggl_os_wide(all);
        f->find = w ? FindFirstFileW(w, &f->entry) : INVALID_HANDLE_VALUE;
        f->is_empty = w && f->find == INVALID_HANDLE_VALUE &&
                      GetLastError() == ERROR_FILE_NOT_FOUND; /* the root of an empty disk */
        if (w && f->find == INVALID_HANDLE_VALUE)
            (void)ggl_os_failed();
        free(w);
    } else {
        errno = ENOMEM;
    }
    free(all);
    if (f && f->find == INVALID_HANDLE_VALUE && !f->is_empty) {
        const int why = errno;
        free(f->path);
        free(f);
        errno = why;
        return NULL;
    }
    if (f)
        f->has = !f->is_empty;
    return f;
}

const char *ggl_os_folder_next(os_folder *f) {
    while (f->has) {
        free(f->name);
        f->name = ggl_os_narrow(f->entry.cFileName);
        f->has = FindNextFileW(f->find, &f->entry);
        if (f->name && strcmp(f->name, ".") != 0 && strcmp(f->name, "..") != 0)
            return f->name;
    }
    return NULL;
}

bool ggl_os_folder_stat(const os_folder *f, const char *name, os_stat *out) {
    const size_t size = strlen(f->path) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path) {
        errno = ENOMEM;
        return false;
    }
    snprintf(path, size, "%s/%s", f->path, name);
    const bool is = ggl_os_stat(path, out);
    free(path);
    return is;
}

void ggl_os_folder_close(os_folder *f) {
    if (!f)
        return;
    if (!f->is_empty)
        FindClose(f->find);
    free(f->name);
    free(f->path);
    free(f);
}
