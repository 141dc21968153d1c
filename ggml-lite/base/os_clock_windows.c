/* os_clock.h for Windows. */
#include "ggl/internal/os_clock.h"

#include <windows.h>

#include <limits.h>

#ifndef CREATE_WAITABLE_TIMER_HIGH_RESOLUTION /* headers older than Windows 10 of 2018 */
#define CREATE_WAITABLE_TIMER_HIGH_RESOLUTION 2
#endif

enum { SECOND = 1000000000, UNIT = 100 /* ns of the system's times */ };

int64_t ggl_os_clock(void) {
    LARGE_INTEGER now, each;
    (void)QueryPerformanceCounter(&now);
    (void)QueryPerformanceFrequency(&each);
    const int64_t whole = now.QuadPart / each.QuadPart, rest = now.QuadPart % each.QuadPart;
    return whole * SECOND + rest * SECOND / each.QuadPart;
}

double ggl_os_seconds(void) {
    return 1e-9 * (double)ggl_os_clock();
}

int64_t ggl_os_time(void) {
    const int64_t of_1970 = 116444736000000000; /* the system counts from 1601 */
    FILETIME t;
    GetSystemTimePreciseAsFileTime(&t);
    const int64_t units = (int64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
    return (units - of_1970) * UNIT;
}

/* Sleep() alone is exact to 16 ms only. */
void ggl_os_sleep(int64_t ns) {
    if (ns <= 0)
        return;
    LARGE_INTEGER due = {.QuadPart = -(ns / UNIT + (ns % UNIT > 0))}; /* negative: from now on */
    HANDLE timer =
        CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);
    if (!timer) /* before Windows 10 of 2018 */
        timer = CreateWaitableTimerExW(NULL, NULL, 0, TIMER_ALL_ACCESS);
    if (timer && SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE))
        (void)WaitForSingleObject(timer, INFINITE);
    else
        Sleep((DWORD)(ns / 1000000 < INT32_MAX ? ns / 1000000 + 1 : INT32_MAX));
    if (timer)
        (void)CloseHandle(timer);
}

/* The system's functions know the years from 1970 to 3000. Calendars repeat after 400 years, with the days of the week. */
static bool parts_of(errno_t (*split)(struct tm *out, const __time64_t *t), int64_t seconds,
                     struct tm *parts) {
    const int64_t cycle = INT64_C(146097) * 86400;
    int64_t n = 0;
    struct tm found;
    if (seconds < 0 || seconds >= 2 * cycle)
        n = seconds / cycle - 1 - (seconds % cycle < 0);
    const __time64_t t = seconds - n * cycle;
    if (split(&found, &t) != 0)
        return false;
    const int64_t year = found.tm_year + 400 * n;
    if (year < INT_MIN || year > INT_MAX)
        return false;
    *parts = found;
    parts->tm_year = (int)year;
    return true;
}

bool ggl_os_utc_parts(int64_t seconds, struct tm *parts) {
    return parts_of(_gmtime64_s, seconds, parts);
}

bool ggl_os_local_parts(int64_t seconds, struct tm *parts) {
    return parts_of(_localtime64_s, seconds, parts);
}

/* The days from the first of March of the year 0 to that of year y: a year that begins in March has its leap day at its end. */
static int64_t days_before(int64_t y) {
    const int64_t eras = (y >= 0 ? y : y - 399) / 400, of_era = y - eras * 400;
    return eras * 146097 + of_era * 365 + of_era / 4 - of_era / 100;
}

/* The system's own function refuses years before 1970. */
int64_t ggl_os_utc_seconds(const struct tm *parts) {
    const int64_t months = (int64_t)parts->tm_year * 12 + parts->tm_mon + 1900 * 12 - 2;
    const int64_t year = (months >= 0 ? months : months - 11) / 12, month = months - year * 12;
    /* In this year, months of 31, 30, 31, 30 and 31 days follow each other: 153 in five. */
    const int64_t days = days_before(year) + (153 * month + 2) / 5 + parts->tm_mday - 1,
                  of_1970 = days_before(1969) + (153 * 10 + 2) / 5;
    return ((days - of_1970) * 24 + parts->tm_hour) * 3600 + (int64_t)parts->tm_min * 60 +
           parts->tm_sec;
}
