/*
 * reasons.h
 *	  Why parts of a query are not done by the device, as EXPLAIN says it.
 *
 * Reasons are collected while EXPLAIN plans a query (gj_explaining), and at no other time.  A
 * part is what one GpuJoin could do: the joins of a query level, its aggregates, its order.
 * The place that finds an obstacle writes it down with gj_refuse(); who gives up the part for
 * it turns that into the part's reason.  All memory is of the planner's context.
 */
#ifndef GJ_REASONS_H
#define GJ_REASONS_H

#include "nodes/pathnodes.h"

typedef struct GjPart GjPart;

/* True while EXPLAIN, which will ask for reasons, plans. */
extern bool gj_explaining;

/*
 * A part of this query level that reads `relids`; `what` as in "Join of".  One that exists is
 * found again.  NULL while nobody asks.
 */
extern GjPart *gj_part(PlannerInfo *root, const char *what, Relids relids);

/* Puts other parts in the place of those noted so far, which it returns. */
extern List *gj_swap_parts(List *others);

/* Writes an obstacle down in place of the last one; false, for its caller to return. */
extern bool gj_refuse(const char *format,...) pg_attribute_printf(1, 2);
/* The same unless there is one. */
extern bool gj_refuse_else(const char *format,...) pg_attribute_printf(1, 2);
/* The same, followed by the obstacle that was noted before, the cause of this one. */
extern bool gj_refuse_because(const char *format,...) pg_attribute_printf(1, 2);
/* The last obstacle, NULL if there is none; puts `text`, which can be NULL, in its place. */
extern char *gj_swap_obstacle(char *text);

/* The last obstacle is the part's reason, unless it has one. */
extern void gj_part_refused(GjPart *part);
/* The last obstacle makes a join of these relations PostgreSQL's, below what is offloaded. */
extern void gj_part_refused_for(PlannerInfo *root, Relids relids);
/* Why sources of what `above` is are rows of child plans. */
struct GjBuilder;
extern void gj_note_plan_sources(PlannerInfo *root, const struct GjBuilder *builder,
								 GjPart *above);
/* `part` is of interest only if the plan has `base`, below it. */
extern void gj_part_above(GjPart *part, GjPart *base);
/* The device can do it, at this cost; PostgreSQL at that of `native`. */
extern void gj_part_offered(GjPart *part, const Path *path, const Path *native);
/* The plan has it. */
extern void gj_part_used(GjPart *part);

/* Names for texts: a function with its arguments, a type, an expression of the query. */
extern const char *gj_function_name(Oid function);
extern const char *gj_type_name(Oid type);
extern const char *gj_expr_text(PlannerInfo *root, Node *expr);
/*
 * True if there is a volatile function that a program may not evaluate, which is noted
 * (volatile.c).
 */
extern bool gj_is_volatile(Node *node);
/* Notes parts of a query level that no device does, whatever they are. */
extern void gj_note_never_done(PlannerInfo *root, UpperRelationKind stage);

extern void gj_reasons_init(void);

#endif							/* GJ_REASONS_H */
