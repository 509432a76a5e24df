/*
 * published.c
 *	  The file from which sessions read what a planner wants to know; see wire/published.h.
 */
#define _GNU_SOURCE
#include "published.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log.h"

#define GJ_PUBLISHED_SIZE	((1 + GJ_PUBLISHED_PAGES) * (size_t) GJ_PUBLISHED_PAGE)

/* Until it is complete. */
#define GJ_PUBLISHED_NEW	GJ_PUBLISHED_NAME ".new"

static uint8_t *published;		/* mapped; NULL: nothing is published */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* for what is written */

static GjPublishedPage *
page_at(uint32_t n)
{
	return (GjPublishedPage *) (published + (1 + n) * (size_t) GJ_PUBLISHED_PAGE);
}

/* Maps a new file, whose blocks are there: a full disk would be a SIGBUS later.  Sets errno. */
static uint8_t *
map_new(void)
{
	int			fd;
	void	   *memory = MAP_FAILED;

	unlink(GJ_PUBLISHED_NEW);
	fd = open(GJ_PUBLISHED_NEW, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return NULL;
	errno = posix_fallocate(fd, 0, GJ_PUBLISHED_SIZE);
	if (errno == 0)
		memory = mmap(NULL, GJ_PUBLISHED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

void
gj_published_open(uint64_t incarnation)
{
	published = map_new();
	if (published)
	{
		((GjPublishedHead *) published)->incarnation = incarnation;
		for (uint32_t i = 0; i < GJ_PUBLISHED_PAGES; i++)
			page_at(i)->incarnation = incarnation;
		/* one that is still mapped elsewhere keeps its own file */
		if (rename(GJ_PUBLISHED_NEW, GJ_PUBLISHED_NAME) == 0)
			return;
		munmap(published, GJ_PUBLISHED_SIZE);
		published = NULL;
	}
	gj_log(GJ_WARNING, "could not make \"%s\", planners will not know what is resident: %s",
		   GJ_PUBLISHED_NAME, strerror(errno));
}

void
gj_published_device(const GjDeviceInfo *info)
{
	GjPublishedHead *head = (GjPublishedHead *) published;

	if (!published || info->kind >= GJ_PUBLISHED_KINDS ||
		__atomic_load_n(&head->present[info->kind], __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&lock);
	if (!head->present[info->kind])
	{
		head->device[info->kind] = *info;
		__atomic_store_n(&head->present[info->kind], 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
}

/* The file's entry, or a free one, or NULL. */
static GjPublishedFile *
find_entry(const GjRelationKey *relation)
{
	GjPublishedPage *page = page_at(gj_published_page(relation));
	GjPublishedFile *free_one = NULL;

	for (uint32_t i = 0; i < GJ_PUBLISHED_FILES; i++)
	{
		if (memcmp(&page->file[i].relation, relation, sizeof(*relation)) == 0)
			return &page->file[i];
		if (page->file[i].relation.relation == 0 && !free_one)
			free_one = &page->file[i];
	}
	return free_one;
}

void
gj_published_pages(const GjRelationKey *relation, uint32_t kind, int64_t npages)
{
	GjPublishedFile *file;
	uint64_t	empty = 0;

	if (!published || npages == 0 || relation->relation == 0 || kind >= GJ_PUBLISHED_KINDS)
		return;
	pthread_mutex_lock(&lock);
	file = find_entry(relation);
	if (file && file->relation.relation == 0)
	{
		/* one that found no room before may take pages away that were never added */
		if (npages > 0)
		{
			memset(file->npages, 0, sizeof(file->npages));
			file->npages[kind] = (uint64_t) npages;
			__atomic_thread_fence(__ATOMIC_RELEASE);
			file->relation = *relation;
		}
	}
	else if (file)
	{
		file->npages[kind] = npages < 0 && (uint64_t) -npages > file->npages[kind] ? 0 :
			file->npages[kind] + (uint64_t) npages;
		for (uint32_t i = 0; i < GJ_PUBLISHED_KINDS; i++)
			empty |= file->npages[i];
		if (empty == 0)
			memset(&file->relation, 0, sizeof(file->relation));
	}
	pthread_mutex_unlock(&lock);
}

void
gj_published_remove(void)
{
	if (published)
		unlink(GJ_PUBLISHED_NAME);
}
