/*
 * session/resident.c
 *	  The messages about resident data between a session and its backend (src/wire/resident.h): it
 *	  answers an ASK, reads the fragments of a USE, and uses all fragments without an ASK where
 *	  the backend allows that.
 *
 * Answers and uses lie in memory that the backend can write.  So a value that matters is read
 * only once.
 */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/store/store.h"
#include "daemon/base/base.h"

/* ---- answers */

/* Sends the answers that are ready. */
static GjStatus
send_answers(GjSession *session)
{
	GjMsgSlot	message = {GJ_MSG_RESIDENT, session->output_slot, 0, session->ask.nanswers};

	if (!session->ask.answers)
		return GJ_OK;
	if (session->fail_point == GJ_FAIL_ANSWER)
		return GJ_INJECTED;
	session->output_free &= ~(1u << session->output_slot);
	session->expected = true;
	session->ask.answers = NULL;
	session->ask.nanswers = session->ask.answer_bytes = 0;
	return gj_session_send(session, &message, sizeof(message)) ? GJ_OK : GJ_CANCELLED;
}

static GjStatus
answer_space(void *arg, uint8_t **memory, uint32_t *nbytes)
{
	GjSession  *session = arg;

	if (GJ_OUTPUT_SLOT_SIZE - session->ask.answer_bytes < GJ_LEAST_ANSWER)
		GJ_TRY(send_answers(session));
	if (!session->ask.answers)
		GJ_TRY(gj_session_output_slot(session, &session->ask.answers));
	*memory = session->ask.answers + session->ask.answer_bytes;
	*nbytes = GJ_OUTPUT_SLOT_SIZE - session->ask.answer_bytes;
	return GJ_OK;
}

static void
answered(void *arg, uint32_t nbytes)
{
	GjSession  *session = arg;

	session->ask.answer_bytes += nbytes;
	session->ask.nanswers++;
}

/* ---- fragments in use */

/* Fragments to be used: those of one source. */
typedef struct GjUses
{
	uint32_t	source;
	bool		last;			/* the source ends with them */
	uint32_t	n;
	GjUse	   *uses;
} GjUses;

/* True if the loader can use fragments of a source; `last`: and end it. */
static bool
may_use(const GjSession *session, const GjSession *loader, uint32_t source, bool last)
{
	/* its end may have come already, behind this message */
	return !((last ? loader->load.ended : loader->load.finished) >> source & 1) &&
		gj_team_accepts(session->run, source);
}

/* The loader has used the last fragments of a source. */
static GjStatus
end_used(GjSession *session, GjSession *loader, uint32_t source)
{
	loader->load.ended |= 1u << source;
	return gj_session_source_ended(session, loader, source);
}

/* Hands the fragments of a USE to the run, and the ends of their sources. */
static GjStatus
use_lists(GjSession *session, GjSession *loader, const GjUses *lists, uint32_t n)
{
	for (uint32_t i = 0; i < n && !gj_team_complete(session->run); i++)
	{
		if (!may_use(session, loader, lists[i].source, lists[i].last))
			return GJ_BAD_PROGRAM;
		GJ_TRY(gj_team_use(session->run, lists[i].source, lists[i].n, lists[i].uses));
		if (lists[i].last)
			GJ_TRY(end_used(session, loader, lists[i].source));
	}
	return GJ_OK;
}

/* ---- all that was asked about, without an answer */

/* Bytes of an answer that tells of all fragments asked for, and of pages as the question does. */
static uint64_t
whole_size(const GjAsk *ask)
{
	return sizeof(GjAnswered) + (uint64_t) ask->nfragments * sizeof(GjKnownFragment) +
		(uint64_t) ask->npartial * GJ_PAGES_BYTES;
}

/*
 * What the question says of the pages of a fragment; NULL: all are all-visible.  Fragments are
 * named in ascending order; *next is the next one.
 */
static const GjAskPages *
partial_pages(const GjAsk *ask, const uint8_t *question, uint32_t fragment, uint32_t *next)
{
	const GjAskPages *pages = (const GjAskPages *)
		(question + gj_ask_size(ask) - ask->npartial * sizeof(GjAskPages)) + *next;

	if (*next == ask->npartial || pages->number != fragment)
		return NULL;
	(*next)++;
	return pages;
}

/*
 * True if the answer says that all fragments asked for are there with the LSN of the map, and that
 * the same pages were all-visible as now; *at moves behind it.  It lies where the backend can
 * write: its numbers may be wrong.
 */
static bool
is_whole(const GjAsk *ask, const uint8_t *question, const uint8_t **at, const uint8_t *end)
{
	GjAnswered	head;
	uint32_t	next = 0;

	if (ask->first != 0 || (uint64_t) (end - *at) < whole_size(ask))
		return false;
	memcpy(&head, *at, sizeof(head));
	*at += sizeof(head);
	if (head.n != ask->nfragments)
		return false;
	for (uint32_t i = 0; i < ask->nfragments; i++)
	{
		const GjAskPages *partial = partial_pages(ask, question, i, &next);
		GjKnownFragment known;

		memcpy(&known, *at, sizeof(known));
		*at += sizeof(known);
		if (known.npages != gj_ask_pages(ask, i) || known.flags != (partial ? GJ_KNOWN_BITS : 0) ||
			(partial && memcmp(*at, partial->visible, GJ_PAGES_BYTES) != 0))
			return false;
		*at += partial ? GJ_PAGES_BYTES : 0;
	}
	return next == ask->npartial;
}

/* Adds the fragments of a whole answer; pages go to *bits, which moves behind them. */
static void
add_uses(const GjAsk *ask, const uint8_t *question, const uint8_t *at, GjUses *list,
		 uint64_t **bits)
{
	uint32_t	next = 0;

	at += sizeof(GjAnswered);
	for (uint32_t i = 0; i < ask->nfragments; i++)
	{
		const GjAskPages *partial = partial_pages(ask, question, i, &next);
		GjKnownFragment known;

		memcpy(&known, at, sizeof(known));
		at += sizeof(known) + (partial ? GJ_PAGES_BYTES : 0);
		list->uses[list->n++] = (GjUse) {
			known.id, known.map_lsn, gj_copy_pages(partial ? partial->visible : NULL, bits)
		};
	}
}

/*
 * Takes the answers to the questions of an ASK, in the order in which sources are loaded:
 * lists[nsources].  *uses is the caller's to free; NULL: not everything is there, or it was not
 * asked about.
 */
static GjStatus
take_answers(GjSession *session, uint32_t nbytes, GjUses *lists, GjUse **uses)
{
	const uint8_t *answer = session->ask.answers;
	const uint8_t *end = answer + session->ask.answer_bytes;
	uint32_t	nanswers = 0;
	uint32_t	n = 0;
	uint32_t	npartial = 0;
	uint64_t   *bits;
	GjAsk		ask;

	*uses = NULL;
	for (uint32_t at = 0; at < nbytes; at += (uint32_t) gj_ask_size(&ask), nanswers++)
	{
		memcpy(&ask, session->message + at, sizeof(ask));
		/* some may have gone out already */
		if (nanswers == session->ask.nanswers || !is_whole(&ask, session->message + at, &answer, end))
			return GJ_OK;
		n += ask.nfragments;
		npartial += ask.npartial;
	}
	*uses = malloc((n + 1) * sizeof(GjUse) + npartial * GJ_PAGES_BYTES);
	if (!*uses)
		return GJ_OUT_OF_HOST_MEMORY;
	bits = (uint64_t *) (*uses + n + 1);
	for (uint32_t s = 0, first = 0; s < session->nsources; first += lists[s++].n)
	{
		lists[s] = (GjUses) {(s + 1) % session->nsources, true, 0, *uses + first};
		answer = session->ask.answers;
		for (uint32_t at = 0; at < nbytes; at += (uint32_t) gj_ask_size(&ask))
		{
			memcpy(&ask, session->message + at, sizeof(ask));
			if (ask.source == lists[s].source)
				add_uses(&ask, session->message + at, answer, &lists[s], &bits);
			answer += whole_size(&ask);
		}
		if (lists[s].n > 0)
			continue;
		free(*uses);
		*uses = NULL;
		return GJ_OK;
	}
	return GJ_OK;
}

/* Uses all that was asked about, if it is there, and tells the backend; else sends answers. */
static GjStatus
use_answers(GjSession *session, uint32_t nbytes)
{
	const GjMsgSlot message = {.type = GJ_MSG_RESIDENT};
	GjUses		lists[GJ_MAX_SOURCES];
	GjUse	   *uses;
	GjStatus	status;

	GJ_TRY(take_answers(session, nbytes, lists, &uses));
	if (!uses)
		return send_answers(session);
	session->ask.answers = NULL;
	session->ask.nanswers = session->ask.answer_bytes = 0;
	status = gj_session_send(session, &message, sizeof(message)) ?
		use_lists(session, session, lists, session->nsources) : GJ_CANCELLED;
	free(uses);
	return status;
}

/* True if the questions of the ASK that waits lie within it. */
static bool
check_questions(const GjSession *session)
{
	GjAsk		ask;

	for (uint32_t at = 0; at < session->ask.nbytes; at += (uint32_t) gj_ask_size(&ask))
	{
		if (session->ask.nbytes - at < sizeof(ask))
			return false;
		memcpy(&ask, session->message + at, sizeof(ask));
		if (gj_ask_size(&ask) > session->ask.nbytes - at)
			return false;
	}
	return true;
}

/* Asks the run the questions that wait. */
static GjStatus
ask_run(GjSession *session)
{
	const GjAnswers answers = {.arg = session,.space = answer_space,.answered = answered};
	GjAsk		ask;

	for (uint32_t at = 0; at < session->ask.nbytes; at += (uint32_t) gj_ask_size(&ask))
	{
		memcpy(&ask, session->message + at, sizeof(ask));
		GJ_TRY(gj_team_ask(session->run, session->message + at, &answers));
	}
	return GJ_OK;
}

GjStatus
gj_session_feed_questions(GjSession *session, bool whole)
{
	uint32_t	nbytes = session->ask.nbytes;

	if (!check_questions(session))
		return GJ_BAD_PROGRAM;
	GJ_TRY(ask_run(session));
	session->ask.nbytes = 0;
	return whole ? use_answers(session, nbytes) : send_answers(session);
}

/* ---- USE */

/* Reads the next of what a USE says, once; *at moves behind it.  use->pages are malloc'd. */
static GjStatus
read_use(const uint8_t **at, const uint8_t *end, GjUseHead *head, GjUse *use)
{
	uint64_t   *pages;

	if (end - *at < (ptrdiff_t) sizeof(*head))
		return GJ_BAD_PROGRAM;
	memcpy(head, *at, sizeof(*head));
	*at += sizeof(*head);
	*use = (GjUse) {head->id, head->map_lsn, NULL, head->nlost};
	if (head->source >= GJ_MAX_SOURCES)
		return GJ_BAD_PROGRAM;
	if (!(head->flags & GJ_KNOWN_BITS))
		return GJ_OK;
	if (end - *at < (ptrdiff_t) GJ_PAGES_BYTES)
		return GJ_BAD_PROGRAM;
	pages = malloc(GJ_PAGES_BYTES);
	if (!pages)
		return GJ_OUT_OF_HOST_MEMORY;
	memcpy(pages, *at, GJ_PAGES_BYTES);
	use->pages = pages;
	*at += GJ_PAGES_BYTES;
	return GJ_OK;
}

/*
 * Reads a USE: *nlists lists, whose fragments lie in uses[n], which were zeroed, one list behind
 * the other.
 */
static GjStatus
read_uses(const uint8_t *memory, uint32_t n, GjUse *uses, GjUses *lists, uint32_t *nlists)
{
	const uint8_t *end = memory + GJ_LOAD_SLOT_SIZE;
	GjUses	   *list = NULL;

	*nlists = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		GjUseHead	head;

		GJ_TRY(read_use(&memory, end, &head, &uses[i]));
		if (!list || list->last || list->source != head.source)
		{
			if ((list && !list->last) || *nlists == GJ_MAX_SOURCES)
				return GJ_BAD_PROGRAM;
			list = &lists[(*nlists)++];
			*list = (GjUses) {head.source, false, 0, &uses[i]};
		}
		list->n++;
		list->last = (head.flags & GJ_USE_LAST) != 0;
	}
	return GJ_OK;
}

GjStatus
gj_session_feed_uses(GjSession *session, uint32_t which, const GjMsgSlot *message,
					 const uint8_t *memory)
{
	GjUses		lists[GJ_MAX_SOURCES];
	uint32_t	nlists = 0;
	GjUse	   *uses;
	GjStatus	status;

	if (message->nrows > GJ_LOAD_SLOT_SIZE / sizeof(GjUseHead))
		return GJ_BAD_PROGRAM;
	uses = calloc(message->nrows + 1, sizeof(GjUse));
	if (!uses)
		return GJ_OUT_OF_HOST_MEMORY;
	status = read_uses(memory, message->nrows, uses, lists, &nlists);
	/* nobody waits for the slot where nothing else is to be loaded */
	if (status == GJ_OK && !(nlists > 0 && lists[nlists - 1].last && lists[nlists - 1].source == 0))
		status = gj_session_slot_free(session, which * GJ_LOAD_SLOTS + message->slot);
	if (status == GJ_OK)
		status = use_lists(session, session->loaders.session[which], lists, nlists);
	for (uint32_t i = 0; i < message->nrows; i++)
		free((void *) uses[i].pages);
	free(uses);
	return status;
}
