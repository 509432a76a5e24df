/*
 * segment.c
 *	  The pool of shared memory segments; see segment.h.
 */
#define _GNU_SOURCE
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Idle bytes that the pool keeps; what comes back beyond that is freed. */
#define GJ_POOL_BYTES		(512u * 1024 * 1024)

/* Guarded by `lock`. */
static struct
{
	pthread_mutex_t lock;
	GjSegment  *idle;
	uint64_t	idle_bytes;
	uint64_t	bytes[2];		/* of all segments, by GjDeviceKind */
}			pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A memfd of which every page exists and that can neither shrink nor grow. */
static int
create_memfd(size_t nbytes, GjErrorText *why)
{
	int			fd = memfd_create("gpujoin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int			error;

	if (fd < 0)
	{
		snprintf(why->text, sizeof(why->text), "memfd_create: %s", strerror(errno));
		return -1;
	}
	error = posix_fallocate(fd, 0, nbytes);
	if (error == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		error = errno;
	if (error == 0)
		return fd;
	snprintf(why->text, sizeof(why->text), "could not allocate %zu bytes of shared memory: %s",
			 nbytes, strerror(error));
	close(fd);
	return -1;
}

static void
destroy(GjSegment *segment)
{
	segment->ops->host_unregister(segment->device, segment->memory);
	munmap(segment->memory, segment->nbytes);
	close(segment->fd);
	pthread_mutex_lock(&pool.lock);
	pool.bytes[segment->ops->kind] -= segment->nbytes;
	pthread_mutex_unlock(&pool.lock);
	free(segment);
}

static GjStatus
create(GjDeviceEntry *entry, size_t nbytes, GjSegment **result, GjErrorText *why)
{
	GjSegment  *segment = calloc(1, sizeof(GjSegment));
	int			fd = create_memfd(nbytes, why);
	void	   *memory;
	GjStatus	status = GJ_OUT_OF_HOST_MEMORY;

	if (!segment || fd < 0)
		goto failed;
	memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (memory == MAP_FAILED)
	{
		snprintf(why->text, sizeof(why->text), "mmap: %s", strerror(errno));
		goto failed;
	}
	status = entry->ops->host_register(entry->device, memory, nbytes, why);
	if (status != GJ_OK)
	{
		munmap(memory, nbytes);
		goto failed;
	}
	segment->ops = entry->ops;
	segment->device = entry->device;
	segment->fd = fd;
	segment->memory = memory;
	segment->nbytes = nbytes;
	pthread_mutex_lock(&pool.lock);
	pool.bytes[entry->ops->kind] += nbytes;
	pthread_mutex_unlock(&pool.lock);
	*result = segment;
	return GJ_OK;

failed:
	if (fd >= 0)
		close(fd);
	free(segment);
	return status;
}

GjStatus
gj_segment_get(GjDeviceEntry *entry, size_t nbytes, GjSegment **segment, GjErrorText *why)
{
	GjSegment  *found = NULL;

	pthread_mutex_lock(&pool.lock);
	for (GjSegment **s = &pool.idle; *s; s = &(*s)->next)
	{
		if ((*s)->ops != entry->ops || (*s)->nbytes != nbytes)
			continue;
		found = *s;
		*s = found->next;
		pool.idle_bytes -= nbytes;
		break;
	}
	pthread_mutex_unlock(&pool.lock);
	if (!found)
		return create(entry, nbytes, segment, why);
	*segment = found;
	return GJ_OK;
}

void
gj_segment_put(GjSegment *segment)
{
	bool		keep;

	pthread_mutex_lock(&pool.lock);
	keep = pool.idle_bytes + segment->nbytes <= GJ_POOL_BYTES;
	if (keep)
	{
		segment->next = pool.idle;
		pool.idle = segment;
		pool.idle_bytes += segment->nbytes;
	}
	pthread_mutex_unlock(&pool.lock);
	if (!keep)
		destroy(segment);
}

uint64_t
gj_segment_bytes(const GjDeviceOps *ops)
{
	uint64_t	n;

	pthread_mutex_lock(&pool.lock);
	n = pool.bytes[ops->kind];
	pthread_mutex_unlock(&pool.lock);
	return n;
}

void
gj_segment_stop(void)
{
	GjSegment  *list;

	pthread_mutex_lock(&pool.lock);
	list = pool.idle;
	pool.idle = NULL;
	pool.idle_bytes = 0;
	pthread_mutex_unlock(&pool.lock);
	while (list)
	{
		GjSegment  *next = list->next;

		destroy(list);
		list = next;
	}
}
