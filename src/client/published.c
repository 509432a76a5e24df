/*
 * published.c
 *	  Reads what gpujoind tells every session without being asked (wire/published.h).
 *
 * The file stays open, for a planner asks about each table several times.  It is opened anew once a
 * second: the next gpujoind makes a new one.
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "storage/fd.h"
#include "utils/timestamp.h"

#include "client/published.h"

#define GJ_OPEN_AGAIN		1000	/* ms */

static int	published_fd = -1;
static TimestampTz open_again;

static void
close_file(void)
{
	if (published_fd < 0)
		return;
	close(published_fd);
	ReleaseExternalFD();
	published_fd = -1;
}

static void
open_file(void)
{
	close_file();
	open_again = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), GJ_OPEN_AGAIN);
	if (!AcquireExternalFD())
		return;
	published_fd = open(GJ_PUBLISHED_NAME, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (published_fd < 0)
		ReleaseExternalFD();
}

static bool
read_page(uint32 page, void *memory, size_t nbytes)
{
	return published_fd >= 0 &&
		pread(published_fd, memory, nbytes, (off_t) page * GJ_PUBLISHED_PAGE) == (ssize_t) nbytes;
}

bool
gj_published_device(uint64 incarnation, uint32 kind, GjDeviceInfo *info)
{
	GjPublishedHead head;

	open_file();
	if (!read_page(0, &head, sizeof(head)) || head.incarnation != incarnation ||
		head.present[kind] != 1 || head.device[kind].memory_total == 0)
		return false;
	*info = head.device[kind];
	info->name[sizeof(info->name) - 1] = '\0';
	return true;
}

double
gj_published_pages(const GjRelationKey *file, uint32 kind)
{
	GjPublishedPage page;

	if (GetCurrentTimestamp() >= open_again)
		open_file();
	if (!read_page(1 + gj_published_page(file), &page, sizeof(page)))
		return 0;
	for (int i = 0; i < GJ_PUBLISHED_FILES; i++)
	{
		if (memcmp(&page.file[i].relation, file, sizeof(*file)) == 0)
			return page.file[i].npages[kind];
	}
	return 0;
}
