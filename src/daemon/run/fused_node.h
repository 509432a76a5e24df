/*
 * fused_node.h
 *	  What the instructions of an expression come to, in forms that a device evaluates without them.
 */
#ifndef GJ_DAEMON_RUN_FUSED_NODE_H
#define GJ_DAEMON_RUN_FUSED_NODE_H

#include "state.h"

/* What a register holds, as far as it has a common form. */
typedef enum GjNodeKind
{
	GJ_NODE_OTHER,
	GJ_NODE_CONSTANT,
	GJ_NODE_COLUMN,
	GJ_NODE_BINARY,				/* of columns and constants */
	GJ_NODE_TEXT,				/* a column's bytes, or a constant's; nterms: 1 if they are guarded */
	GJ_NODE_HASH,				/* of a column's bytes, or a half of their key */
	GJ_NODE_AND,				/* of binary ones that cannot fail, columns, answers, ranges and bytes
								 * that are like others; or alternatives of these */
	GJ_NODE_TRUTH,				/* whether terms are true: never NULL */
	GJ_NODE_UNTRUTH,			/* whether they are not */
	GJ_NODE_NULL,
	GJ_NODE_ONLY_IF,			/* factors where terms are true, else NULL */
	GJ_NODE_CASE				/* factors where terms are true, else 0 */
} GjNodeKind;

#define GJ_NODE_FACTORS 8			/* of a value */

/* Besides what its kind says, a node can be a sum of products: then it has factors. */
typedef struct GjNode
{
	GjNodeKind	kind;
	uint32_t	nterms;			/* BINARY, COLUMN: 1 */
	uint32_t	nfactors;
	GjFusedExpr term[GJ_FUSED_TERMS];
	GjFusedFactor factor[GJ_NODE_FACTORS];
} GjNode;

/* Follows an expression's instructions; *node is what it comes to. */
extern void gj_node_follow(const GjRun *run, uint32_t e, GjNode *node);

/* Makes a node the column. */
extern void gj_node_column(const GjRun *run, uint32_t column, GjNode *node);

/* True if a node can be terms of a condition: they are not all evaluated. */
extern bool gj_node_is_condition(const GjNode *node);

/* Adds a node's terms to the plan's, which have room; returns how many they have become. */
extern uint8_t gj_node_add_terms(GjFusedPlan *plan, const GjNode *node);

#endif							/* GJ_DAEMON_RUN_FUSED_NODE_H */
