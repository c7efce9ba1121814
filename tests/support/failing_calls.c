/* The Nth call that changes a file fails, whoever makes it: Python's own files, Polars, Arrow, typst.
 *
 * Preloaded before libc. Does nothing until it is armed. Only regular files count: what goes through
 * pipes and sockets tells how the test itself goes. Knows no verb.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static uint64_t *count; /* shared by the processes of a run */
static uint64_t failing;
static int number;

void failing_arm(uint64_t *page, uint64_t at, int error_number)
{
	failing = at;
	number = error_number;
	count = page;
}

void failing_disarm(void)
{
	count = NULL;
}

/* Counts a call; whether it is the one that fails. */
static int fails(void)
{
	if (!count || __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST) != failing)
		return 0;
	errno = number;
	return 1;
}

static int on_file(int descriptor)
{
	struct stat status;
	return count && descriptor > 2 && !fstat(descriptor, &status) && S_ISREG(status.st_mode);
}

#define ON_DESCRIPTOR(kind, name, types, ...)                            \
	kind name types                                                  \
	{                                                                \
		static kind(*real) types;                                \
		if (!real)                                               \
			real = (kind(*) types)dlsym(RTLD_NEXT, #name);   \
		if (on_file(descriptor) && fails())                      \
			return -1;                                       \
		return real(__VA_ARGS__);                                \
	}

#define ON_NAMES(name, types, ...)                                       \
	int name types                                                   \
	{                                                                \
		static int(*real) types;                                 \
		if (!real)                                               \
			real = (int(*) types)dlsym(RTLD_NEXT, #name);    \
		if (fails())                                             \
			return -1;                                       \
		return real(__VA_ARGS__);                                \
	}

ON_DESCRIPTOR(ssize_t, write, (int descriptor, const void *from, size_t bytes), descriptor, from, bytes)
ON_DESCRIPTOR(ssize_t, writev, (int descriptor, const struct iovec *from, int parts), descriptor, from, parts)
ON_DESCRIPTOR(ssize_t, pwrite, (int descriptor, const void *from, size_t bytes, off_t at), descriptor, from, bytes, at)
ON_DESCRIPTOR(ssize_t, pwrite64, (int descriptor, const void *from, size_t bytes, off_t at), descriptor, from, bytes, at)
ON_DESCRIPTOR(int, fsync, (int descriptor), descriptor)
ON_DESCRIPTOR(int, fdatasync, (int descriptor), descriptor)
ON_DESCRIPTOR(int, ftruncate, (int descriptor, off_t length), descriptor, length)
ON_DESCRIPTOR(int, ftruncate64, (int descriptor, off_t length), descriptor, length)
ON_NAMES(rename, (const char *from, const char *to), from, to)
ON_NAMES(renameat, (int old, const char *from, int new, const char *to), old, from, new, to)
ON_NAMES(renameat2, (int old, const char *from, int new, const char *to, unsigned flags), old, from, new, to, flags)
ON_NAMES(link, (const char *from, const char *to), from, to)
ON_NAMES(linkat, (int old, const char *from, int new, const char *to, int flags), old, from, new, to, flags)
