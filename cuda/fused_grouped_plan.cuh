/*
 * fused_grouped_plan.cuh
 *	  What filters and sums of a plan of the fused operator with groups are for kernels that serve
 *	  integers without NULLs (fused_grouped.cuh), if they can be that: host code.
 */
#ifndef GJ_CUDA_FUSED_GROUPED_PLAN_CUH
#define GJ_CUDA_FUSED_GROUPED_PLAN_CUH

#include <algorithm>
#include <tuple>
#include <vector>

#include "fused_grouped.cuh"

/* ---- what values can be */

typedef struct Interval
{
	__int128 low;
	__int128 high;
} Interval;

static inline bool
fits(const Interval &x, bool narrow)
{
	return narrow ? x.low >= INT32_MIN && x.high <= INT32_MAX
				  : x.low >= INT64_MIN && x.high <= INT64_MAX;
}

static inline Interval
add(const Interval &x, const Interval &y)
{
	return {x.low + y.low, x.high + y.high};
}

static inline Interval
negative(const Interval &x)
{
	return {-x.high, -x.low};
}

/* Both fit 64 bits. */
static inline Interval
multiply(const Interval &x, const Interval &y)
{
	const __int128 ends[] = {x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high};

	return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

/* The greatest of x without sign. */
static inline unsigned __int128
greatest(const Interval &x)
{
	return (unsigned __int128) std::max(x.high, -x.low);
}

/* ---- making the plan */

/* Factors of an argument; join as GjFusedFactor has it. */
typedef struct Argument
{
	GroupedFactor factor[GJ_FUSED_FACTORS];
	uint8_t join[GJ_FUSED_FACTORS];
	uint32_t n;
	Interval values;
} Argument;

struct Maker
{
	const GjFusedPlan *plan;
	const GjFusedPart *parts;
	const Input &input;
	Grouped *to;
	Interval values[GJ_FUSED_AGGREGATES] = {};        /* of a sum */
	unsigned __int128 most[GJ_FUSED_AGGREGATES] = {}; /* of these, without sign */

	Maker(const GjFusedPlan *p, const GjFusedPart *some, const Input &i, Grouped *g)
		: plan(p), parts(some), input(i), to(g)
	{
		*to = {};
		to->ncolumns = plan->ncolumns;
		to->naggregates = plan->naggregates;
	}

	uint64_t
	nrows() const
	{
		uint64_t n = 0;

		for (uint32_t p = 0; p < input.nparts; p++)
			n += parts[p].nrows;
		return n;
	}

	/* True if a column is one of the probe source that suits in all parts: suits(column). */
	template <typename Suits>
	bool
	all_parts(int32_t column, uint32_t slot, Suits suits) const
	{
		if (column < 0 || slot != 0)
			return false;
		for (uint32_t p = 0; p < input.nparts; p++)
		{
			/* those of parts without rows may be missing */
			if (parts[p].nrows > 0 && !suits(parts[p].columns[column - (int) plan->first_column]))
				return false;
		}
		return true;
	}

	bool
	is_integer(int32_t column, uint32_t slot) const
	{
		return all_parts(column, slot,
						 [](const GjColumn &c) {
							 return c.nulls == NULL && c.kind != GJ_REF &&
									(c.packed || c.kind == GJ_INT4);
						 });
	}

	Interval values_of_column(int32_t column) const;
	bool make_filters();
	bool add_factor(Argument *argument, uint32_t join, int32_t column, uint32_t slot, uint32_t op,
					int64_t constant) const;
	bool split_argument(const GjFusedExpr &e, Argument *argument) const;
	bool bound_argument(const Argument &argument, bool narrow, Interval *values) const;
	bool make_argument(const GjFusedExpr &e, Argument *argument) const;
	bool add_products(const Argument &argument, uint32_t sum);
	bool make_sums();
	void order_products();
};

/* What values of an integer column can be, as far as its description says. */
static inline Interval
interval_of(const GjColumn &column)
{
	Interval x = {INT32_MIN, INT32_MAX};

	if (!column.packed)
		return x;
	/* a factor can need all 64 bits, but no value is greater than they can be */
	x.low = column.base;
	x.high = std::min(x.low + (__int128) (uint64_t) column.factor *
								  (__int128) ((UINT64_C(1) << 8 * column.packed) - 1),
					  (__int128) INT64_MAX);
	if (column.narrow)
		x = {std::max(x.low, (__int128) INT32_MIN), std::min(x.high, (__int128) INT32_MAX)};
	return x;
}

inline Interval
Maker::values_of_column(int32_t column) const
{
	Interval all = {0, 0};

	for (uint32_t p = 0; p < input.nparts; p++)
	{
		if (parts[p].nrows == 0)
			continue;

		const Interval x = interval_of(parts[p].columns[column - (int) plan->first_column]);

		all = {std::min(all.low, x.low), std::max(all.high, x.high)};
	}
	return all;
}

inline bool
Maker::make_filters()
{
	if (plan->filter.form == GJ_FUSED_NONE)
		return true;
	if (plan->filter.form != GJ_FUSED_ALL_TERMS || plan->filter.n > GROUPED_FILTERS)
		return false;
	for (uint32_t k = 0; k < plan->filter.n; k++)
	{
		const GjFusedExpr &term = plan->terms[plan->filter.first + k];
		GroupedFilter &filter = to->filter[to->nfilters++];

		filter.column = term.a;
		if (term.form == GJ_FUSED_ANSWER)
		{
			filter.answer = true;
			filter.low = term.arg;
			if (!all_parts(term.a, term.slot_a,
						   [](const GjColumn &c)
						   { return c.nulls == NULL && c.packed && c.answers != NULL; }))
				return false;
			continue;
		}
		/* a span says at least one value */
		if (term.form != GJ_FUSED_RANGE || !is_integer(term.a, term.slot_a) ||
			term.constant > term.high)
			return false;
		filter.low = term.constant;
		filter.span = (uint64_t) term.high - (uint64_t) term.constant;
	}
	return true;
}

/* ---- sums */

/* Adds constant <op> column, or one of them; false: it cannot be one. */
inline bool
Maker::add_factor(Argument *argument, uint32_t join, int32_t column, uint32_t slot, uint32_t op,
				  int64_t constant) const
{
	GroupedFactor &f = argument->factor[argument->n];

	if (column >= 0 ? !is_integer(column, slot) : op != GJ_OP_LOAD)
		return false;
	f.column = (int16_t) column;
	f.op = (uint8_t) op;
	f.minus = join == GJ_OP_SUB_I;
	/* of a column alone it is not read, and 0 makes it like others */
	f.constant = column >= 0 && op == GJ_OP_LOAD ? 0 : constant;
	argument->join[argument->n++] = (uint8_t) join;
	return true;
}

/* The factors of an expression; false: it is something else than products. */
inline bool
Maker::split_argument(const GjFusedExpr &e, Argument *argument) const
{
	argument->n = 0;
	if (e.form == GJ_FUSED_PRODUCTS)
	{
		for (uint32_t k = 0; k < e.arg; k++)
		{
			const GjFusedFactor &f = plan->factors[e.expr + k];

			if (!add_factor(argument, f.join, f.column, f.slot, f.op, f.constant))
				return false;
		}
		return true;
	}
	if (e.form != GJ_FUSED_SIMPLE || e.is_float)
		return false;
	if (e.op == GJ_OP_LOAD)
		return add_factor(argument, GJ_OP_ADD_I, e.a, e.slot_a, GJ_OP_LOAD, e.constant);
	if ((e.op != GJ_OP_ADD_I && e.op != GJ_OP_SUB_I && e.op != GJ_OP_MUL_I) ||
		(e.arg != GJ_INT8 && e.arg != GJ_INT4))
		return false;
	if (e.a < 0 && e.b >= 0 && e.op != GJ_OP_MUL_I)
		return add_factor(argument, GJ_OP_ADD_I, e.b, e.slot_b, e.op, e.constant);
	return add_factor(argument, GJ_OP_ADD_I, e.a, e.slot_a, GJ_OP_LOAD, e.constant) &&
		   add_factor(argument, e.op, e.b, e.slot_b, GJ_OP_LOAD, e.constant);
}

/* What an argument can come to; false: something on the way there may overflow. */
inline bool
Maker::bound_argument(const Argument &argument, bool narrow, Interval *values) const
{
	Interval product = {0, 0};
	bool minus = false;

	*values = {0, 0};
	for (uint32_t k = 0; k < argument.n; k++)
	{
		const GroupedFactor &f = argument.factor[k];
		Interval x = {f.constant, f.constant};

		if (f.column >= 0)
		{
			const Interval column = values_of_column(f.column);

			x = add(x, f.op == GJ_OP_SUB_I ? negative(column) : column);
		}
		if (!fits(x, false))
			return false;
		if (argument.join[k] == GJ_OP_MUL_I)
			product = multiply(product, x);
		else
		{
			*values = add(*values, minus ? negative(product) : product);
			product = x;
			minus = argument.join[k] == GJ_OP_SUB_I;
		}
		if (!fits(product, false) || !fits(*values, false))
			return false;
	}
	*values = add(*values, minus ? negative(product) : product);
	return fits(*values, narrow);
}

inline bool
Maker::make_argument(const GjFusedExpr &e, Argument *argument) const
{
	const bool narrow = e.form == GJ_FUSED_SIMPLE && e.op != GJ_OP_LOAD && e.arg == GJ_INT4;

	return split_argument(e, argument) && bound_argument(*argument, narrow, &argument->values);
}

static inline std::tuple<int16_t, uint8_t, bool, int64_t>
order_of(const GroupedFactor &f)
{
	return std::make_tuple(f.column, f.op, f.minus, f.constant);
}

static inline bool
same_factors(const GroupedFactor *x, const GroupedFactor *y, uint32_t n)
{
	return std::equal(x, x + n, y,
					  [](const GroupedFactor &a, const GroupedFactor &b)
					  { return order_of(a) == order_of(b); });
}

static inline bool
same_argument(const Argument &x, const Argument &y)
{
	return x.n == y.n && same_factors(x.factor, y.factor, x.n) &&
		   std::equal(x.join, x.join + x.n, y.join);
}

inline bool
Maker::add_products(const Argument &argument, uint32_t sum)
{
	if (to->nfactors + argument.n > GJ_FUSED_FACTORS)
		return false;
	for (uint32_t k = 0; k < argument.n; k++)
	{
		if (argument.join[k] != GJ_OP_MUL_I)
			to->product[to->nproducts++] = {(uint8_t) to->nfactors, 0, 0, (uint8_t) sum};
		to->product[to->nproducts - 1].n++;
		to->factor[to->nfactors++] = argument.factor[k];
	}
	return true;
}

inline bool
Maker::make_sums()
{
	std::vector<Argument> arguments; /* of sums */

	for (uint32_t a = 0; a < plan->naggregates; a++)
	{
		const GjFusedExpr &e = plan->exprs[plan->aggregate_expr[a]];
		const uint32_t op = plan->aggregate_op[a];
		Argument argument;

		to->sum_of[a] = GJ_FUSED_AGGREGATES;
		if (gj_agg_is_distinct(op))
		{
			to->distinct |= 1u << a;
			continue;
		}
		if (op == GJ_AGG_COUNT_STAR || (op == GJ_AGG_COUNT && e.form == GJ_FUSED_NONE))
			continue;
		if ((op != GJ_AGG_SUM_I && op != GJ_AGG_COUNT) || !make_argument(e, &argument))
			return false;
		if (op == GJ_AGG_COUNT)
			continue;
		/* sum and avg of the same have an expression each */
		for (uint32_t s = 0; s < to->nsums; s++)
		{
			if (same_argument(arguments[s], argument))
				to->sum_of[a] = (uint8_t) s;
		}
		if (to->sum_of[a] < GJ_FUSED_AGGREGATES)
			continue;
		if (!add_products(argument, to->nsums))
			return false;
		arguments.push_back(argument);
		values[to->nsums] = argument.values;
		most[to->nsums] = greatest(argument.values);
		to->sum_of[a] = (uint8_t) to->nsums++;
	}
	return true;
}

/* Orders products by their factors, so that one comes behind its beginning. */
inline void
Maker::order_products()
{
	const GroupedFactor *factor = to->factor;

	std::sort(to->product, to->product + to->nproducts,
			  [factor](const GroupedProduct &x, const GroupedProduct &y)
			  {
				  const auto less = [](const GroupedFactor &a, const GroupedFactor &b)
				  { return order_of(a) < order_of(b); };

				  return std::lexicographical_compare(factor + x.first, factor + x.first + x.n,
													  factor + y.first, factor + y.first + y.n,
													  less);
			  });
	for (uint32_t k = 1; k < to->nproducts; k++)
	{
		const GroupedProduct &before = to->product[k - 1];
		GroupedProduct &p = to->product[k];

		if (before.n <= p.n && same_factors(factor + before.first, factor + p.first, before.n))
			p.done = before.n;
	}
}

#endif /* GJ_CUDA_FUSED_GROUPED_PLAN_CUH */
