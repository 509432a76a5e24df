/*
 * uuid.h
 *	  Uuids as two halves of 64 bits, which are numbers in the order of uuids.
 */
#ifndef GJ_UUID_H
#define GJ_UUID_H

#include "plan/device_expr.h"

/* The uuid whose halves are two integers, as an expression that PostgreSQL evaluates. */
extern Expr *gj_make_uuid(Expr *first, Expr *second);

/* Half 0 or 1 of such an expression; NULL: it is another one. */
extern Expr *gj_half_of_uuid(const Expr *uuid, int half);

/* True of = and <> of two uuids of which one is a column of a stage. */
extern bool gj_compares_stage_uuid(const GjBuilder *builder, const OpExpr *op);

/* Compiles that as two comparisons.  False: it is another operator. */
extern bool gj_compile_uuid_equal(GjCompileContext *cxt, OpExpr *op, int depth);

#endif							/* GJ_UUID_H */
