/* The commit from which the programs were built. */
#ifndef TOOLS_COMMIT_H
#define TOOLS_COMMIT_H

/* Its first digits, with "-dirty" after them if files of the checkout were changed; "": the sources were no checkout. */
extern const char tool_commit[];
extern const long tool_commit_number; /* of commits up to it; 0: not known */

#endif
