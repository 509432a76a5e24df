/*
 * tpcgen.c
 *	  Rows of TPC-H and of the Star Schema Benchmark, as COPY text.
 *
 *	tpcgen tpch|ssb TABLE SCALE [PART PARTS]
 *
 * Written from the published specifications (TPC-H 3.0.1, clause 4.2; O'Neil, O'Neil,
 * Chen, "Star Schema Benchmark", revision 3): cardinalities, domains, distributions,
 * and the dependencies between columns are theirs; random numbers and the words of
 * comments are not dbgen's, so answers differ from published ones.  Every value is a
 * function of table, row and column, so that parts (PART of 0 .. PARTS-1) can be made
 * by processes side by side, and are the same each time.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Table
{
	const char *benchmark;
	const char *name;
	double		rows;			/* at scale 1; negative: at every scale */
	void		(*row) (uint64_t i);
} Table;

static double scale = 1;
static uint64_t seed;			/* of the table */

/* ---- random numbers: splitmix64 of (table, row, column) */

static uint64_t
mix(uint64_t x)
{
	x += 0x9E3779B97F4A7C15u;
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
	x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
	return x ^ (x >> 31);
}

/* Uniform in low .. high. */
static int64_t
uniform_in(uint64_t table, uint64_t row, unsigned column, int64_t low, int64_t high)
{
	return low + (int64_t) (mix(mix(table * 1000003 + column) ^ row) % (uint64_t) (high - low + 1));
}

#define R(row, column, low, high) uniform_in(seed, row, column, low, high)
#define PICK(row, column, list) (list)[R(row, column, 0, (int64_t) (sizeof(list) / sizeof((list)[0])) - 1)]

static uint64_t
scaled(double rows)
{
	double		n = rows * scale;

	return n < 1 ? 1 : (uint64_t) (n + 0.5);
}

/* ---- values */

/* Days since 1992-01-01 as a date. */
static void
civil(int days, int *y, int *m, int *d)
{
	static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int			year = 1992,
				month = 0;

	for (;;)
	{
		int			n = year % 4 == 0 ? 366 : 365;	/* no century within the range */

		if (days < n)
			break;
		days -= n;
		year++;
	}
	for (;;)
	{
		int			n = length[month] + (month == 1 && year % 4 == 0);

		if (days < n)
			break;
		days -= n;
		month++;
	}
	*y = year;
	*m = month + 1;
	*d = days + 1;
}

static void
put_date(int days)
{
	int			y,
				m,
				d;

	civil(days, &y, &m, &d);
	printf("\t%04d-%02d-%02d", y, m, d);
}

static void
put_cents(int64_t cents)
{
	printf("\t%s%" PRId64 ".%02d", cents < 0 ? "-" : "", (cents < 0 ? -cents : cents) / 100, (int) ((cents < 0 ? -cents : cents) % 100));
}

/* A random string of low .. high characters. */
static void
put_address(uint64_t row, unsigned column, int low, int high)
{
	static const char set[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ, ";
	int			n = (int) R(row, column, low, high);

	putchar('\t');
	for (int i = 0; i < n; i++)
		putchar(set[R(row * 64 + (uint64_t) i, column + 500, 0, (int64_t) sizeof(set) - 2)]);
}

static void
put_phone(uint64_t row, unsigned column, int nation)
{
	printf("\t%d-%03d-%03d-%04d", nation + 10, (int) R(row, column, 100, 999), (int) R(row, column + 1, 100, 999),
		   (int) R(row, column + 2, 1000, 9999));
}

/* Words up to low .. high characters. */
static void
put_comment(uint64_t row, unsigned column, int low, int high)
{
	static const char *const words[] = {
		"foxes", "ideas", "theodolites", "pinto beans", "instructions", "dependencies", "excuses", "platelets",
		"asymptotes", "courts", "dolphins", "multipliers", "sauternes", "warthogs", "frets", "dinos", "attainments",
		"somas", "braids", "hockey players", "frays", "warhorses", "dugouts", "notornis", "epitaphs", "pearls",
		"tithes", "waters", "orbits", "gifts", "sheaves", "depths", "sentiments", "decoys", "realms", "pains",
		"grouches", "escapades", "accounts", "packages", "requests", "deposits", "special", "pending", "unusual",
		"express", "furious", "sly", "careful", "blithe", "quick", "fluffy", "slow", "quiet", "ruthless", "thin",
		"close", "dogged", "daring", "brave", "stealthy", "permanent", "enticing", "idle", "busy", "regular",
	"final", "ironic", "even", "bold", "silent", "sleep", "wake", "are", "cajole", "haggle", "nag", "use", "boost"};
	int			n = (int) R(row, column, low, high);
	int			at = 0;

	putchar('\t');
	for (int i = 0; at < n; i++)
	{
		const char *word = PICK(row * 64 + (uint64_t) i, column + 600, words);
		int			length = (int) strlen(word);

		if (at > 0 && at < n)
		{
			putchar(' ');
			at++;
		}
		if (length > n - at)
			length = n - at;
		printf("%.*s", length, word);
		at += length;
	}
}

static const char *const regions[] = {"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"};
static const struct
{
	const char *name;
	int			region;
}			nations[] = {
	{"ALGERIA", 0}, {"ARGENTINA", 1}, {"BRAZIL", 1}, {"CANADA", 1}, {"EGYPT", 4}, {"ETHIOPIA", 0}, {"FRANCE", 3},
	{"GERMANY", 3}, {"INDIA", 2}, {"INDONESIA", 2}, {"IRAN", 4}, {"IRAQ", 4}, {"JAPAN", 2}, {"JORDAN", 4},
	{"KENYA", 0}, {"MOROCCO", 0}, {"MOZAMBIQUE", 0}, {"PERU", 1}, {"CHINA", 2}, {"ROMANIA", 3}, {"SAUDI ARABIA", 4},
	{"VIETNAM", 2}, {"RUSSIA", 3}, {"UNITED KINGDOM", 3}, {"UNITED STATES", 1}
};
static const char *const segments[] = {"AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"};
static const char *const priorities[] = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"};
static const char *const instructions[] = {"DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"};
static const char *const modes[] = {"REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"};
static const char *const type1[] = {"STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"};
static const char *const type2[] = {"ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"};
static const char *const type3[] = {"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"};
static const char *const box1[] = {"SM", "LG", "MED", "JUMBO", "WRAP"};
static const char *const box2[] = {"CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"};
static const char *const colors[] = {
	"almond", "antique", "aquamarine", "azure", "beige", "bisque", "black", "blanched", "blue", "blush", "brown",
	"burlywood", "burnished", "chartreuse", "chiffon", "chocolate", "coral", "cornflower", "cornsilk", "cream",
	"cyan", "dark", "deep", "dim", "dodger", "drab", "firebrick", "floral", "forest", "frosted", "gainsboro",
	"ghost", "goldenrod", "green", "grey", "honeydew", "hot", "indian", "ivory", "khaki", "lace", "lavender",
	"lawn", "lemon", "light", "lime", "linen", "magenta", "maroon", "medium", "metallic", "midnight", "mint",
	"misty", "moccasin", "navajo", "navy", "olive", "orange", "orchid", "pale", "papaya", "peach", "peru", "pink",
	"plum", "powder", "puff", "purple", "red", "rose", "rosy", "royal", "saddle", "salmon", "sandy", "seashell",
	"sienna", "sky", "slate", "smoke", "snow", "spring", "steel", "tan", "thistle", "tomato", "turquoise", "violet",
"wheat", "white", "yellow"};

#define NCOLORS ((int) (sizeof(colors) / sizeof(colors[0])))
#define LAST_ORDER_DAY 2405		/* 1998-08-02: ENDDATE - 151 days */
#define CURRENT_DAY 1263		/* 1995-06-17 */

static int64_t
retail_price(int64_t part)
{
	return 90000 + (part / 10) % 20001 + 100 * (part % 1000);
}

/* ---- TPC-H */

static void
h_region(uint64_t i)
{
	printf("%" PRIu64 "\t%s", i, regions[i]);
	put_comment(i, 1, 31, 115);
	putchar('\n');
}

static void
h_nation(uint64_t i)
{
	printf("%" PRIu64 "\t%s\t%d", i, nations[i].name, nations[i].region);
	put_comment(i, 1, 31, 114);
	putchar('\n');
}

static void
h_supplier(uint64_t i)
{
	int			nation = (int) R(i, 1, 0, 24);
	uint64_t	n = scaled(10000);
	/* 5 of 10 000 complain, 5 recommend */
	uint64_t	every = n < 2000 ? n / 2 : 2000;

	printf("%" PRIu64 "\tSupplier#%09" PRIu64, i + 1, i + 1);
	put_address(i, 2, 10, 40);
	printf("\t%d", nation);
	put_phone(i, 3, nation);
	put_cents(R(i, 6, -99999, 999999));
	put_comment(i, 7, 25, 60);
	if (every > 1 && i % every == every / 2)
		printf(" Customer slow Complaints");
	else if (every > 1 && i % every == every - 1)
		printf(" Customer bold Recommends");
	putchar('\n');
}

static void
h_part(uint64_t i)
{
	int64_t		key = (int64_t) i + 1;
	int			maker = (int) R(i, 1, 1, 5);
	int			words[5];

	printf("%" PRId64, key);
	for (int w = 0; w < 5; w++)
	{
		bool		again;

		words[w] = (int) R(i, 10 + (unsigned) w, 0, NCOLORS - 1);
		do
		{
			again = false;
			for (int v = 0; v < w; v++)
				if (words[v] == words[w])
				{
					words[w] = (words[w] + 1) % NCOLORS;
					again = true;
				}
		} while (again);
		printf("%c%s", w == 0 ? '\t' : ' ', colors[words[w]]);
	}
	printf("\tManufacturer#%d\tBrand#%d%d\t%s %s %s\t%d\t%s %s", maker, maker, (int) R(i, 2, 1, 5), PICK(i, 3, type1),
		   PICK(i, 4, type2), PICK(i, 5, type3), (int) R(i, 6, 1, 50), PICK(i, 7, box1), PICK(i, 8, box2));
	put_cents(retail_price(key));
	put_comment(i, 9, 5, 22);
	putchar('\n');
}

/* The i-th (0 .. 3) of the suppliers of a part. */
static int64_t
part_supplier(int64_t part, int64_t i)
{
	int64_t		n = (int64_t) scaled(10000);

	return (part + i * (n / 4 + (part - 1) / n)) % n + 1;
}

static void
h_partsupp(uint64_t i)
{
	int64_t		part = (int64_t) (i / 4) + 1;

	printf("%" PRId64 "\t%" PRId64 "\t%d", part, part_supplier(part, (int64_t) (i % 4)), (int) R(i, 1, 1, 9999));
	put_cents(R(i, 2, 100, 100000));
	put_comment(i, 3, 49, 198);
	putchar('\n');
}

static void
h_customer(uint64_t i)
{
	int			nation = (int) R(i, 1, 0, 24);

	printf("%" PRIu64 "\tCustomer#%09" PRIu64, i + 1, i + 1);
	put_address(i, 2, 10, 40);
	printf("\t%d", nation);
	put_phone(i, 3, nation);
	put_cents(R(i, 6, -99999, 999999));
	printf("\t%s", PICK(i, 7, segments));
	put_comment(i, 8, 29, 116);
	putchar('\n');
}

/* The facts of an order and its lines that both tables tell. */
typedef struct Line
{
	int64_t		part;
	int64_t		supplier;
	int			quantity;
	int64_t		price;			/* cents */
	int			discount;		/* hundredths */
	int			tax;
	int			shipped;		/* days */
	int			committed;
	int			received;
} Line;

static uint64_t
order_key(uint64_t i)
{
	return i / 8 * 32 + i % 8 + 1;
}

static int
order_day(uint64_t i)
{
	return (int) uniform_in(77, i, 1, 0, LAST_ORDER_DAY);
}

static int
order_lines(uint64_t i)
{
	return (int) uniform_in(77, i, 2, 1, 7);
}

static Line
order_line(uint64_t order, int number)
{
	uint64_t	row = order * 8 + (uint64_t) number;
	Line		line;

	line.part = uniform_in(78, row, 1, 1, (int64_t) scaled(200000));
	line.supplier = part_supplier(line.part, uniform_in(78, row, 2, 0, 3));
	line.quantity = (int) uniform_in(78, row, 3, 1, 50);
	line.price = line.quantity * retail_price(line.part);
	line.discount = (int) uniform_in(78, row, 4, 0, 10);
	line.tax = (int) uniform_in(78, row, 5, 0, 8);
	line.shipped = order_day(order) + (int) uniform_in(78, row, 6, 1, 121);
	line.committed = order_day(order) + (int) uniform_in(78, row, 7, 30, 90);
	line.received = line.shipped + (int) uniform_in(78, row, 8, 1, 30);
	return line;
}

static void
h_orders(uint64_t i)
{
	int			lines = order_lines(i);
	int			open = 0;
	int64_t		total = 0;
	int64_t		customers = (int64_t) scaled(150000);
	int64_t		customer = R(i, 1, 1, customers);

	/* a third of the customers never orders */
	if (customer % 3 == 0)
		customer = customer > 1 ? customer - 1 : 1;
	for (int l = 0; l < lines; l++)
	{
		Line		line = order_line(i, l);

		open += line.shipped > CURRENT_DAY;
		total += line.price * (100 + line.tax) * (100 - line.discount);
	}
	printf("%" PRIu64 "\t%" PRId64 "\t%c", order_key(i), customer, open == 0 ? 'F' : open == lines ? 'O' : 'P');
	put_cents((total + 5000) / 10000);
	put_date(order_day(i));
	printf("\t%s\tClerk#%09d\t0", PICK(i, 2, priorities), (int) R(i, 3, 1, (int64_t) scaled(1000)));
	put_comment(i, 4, 19, 78);
	putchar('\n');
}

static void
h_lineitem(uint64_t i)
{
	int			lines = order_lines(i);

	for (int l = 0; l < lines; l++)
	{
		uint64_t	row = i * 8 + (uint64_t) l;
		Line		line = order_line(i, l);

		printf("%" PRIu64 "\t%" PRId64 "\t%" PRId64 "\t%d\t%d", order_key(i), line.part, line.supplier, l + 1, line.quantity);
		put_cents(line.price);
		put_cents(line.discount);
		put_cents(line.tax);
		printf("\t%c\t%c", line.received <= CURRENT_DAY ? (R(row, 1, 0, 1) ? 'R' : 'A') : 'N',
			   line.shipped > CURRENT_DAY ? 'O' : 'F');
		put_date(line.shipped);
		put_date(line.committed);
		put_date(line.received);
		printf("\t%s\t%s", PICK(row, 2, instructions), PICK(row, 3, modes));
		put_comment(row, 4, 10, 43);
		putchar('\n');
	}
}

/* ---- Star Schema Benchmark */

/* Nation's name, cut and padded to nine, and a digit. */
static void
put_city(int nation, int number)
{
	printf("\t%-9.9s%d", nations[nation].name, number);
}

static uint64_t
ssb_parts(void)
{
	double		factor = 1;

	for (double s = 2; s <= scale; s *= 2)
		factor++;
	return scale < 1 ? scaled(200000) : (uint64_t) (200000 * factor);
}

/* The columns that customers and suppliers have in common. */
static void
put_party(uint64_t i, const char *what)
{
	int			nation = (int) R(i, 1, 0, 24);

	printf("%" PRIu64 "\t%s#%09" PRIu64, i + 1, what, i + 1);
	put_address(i, 2, 10, 25);
	put_city(nation, (int) R(i, 3, 0, 9));
	printf("\t%s\t%s", nations[nation].name, regions[nations[nation].region]);
	put_phone(i, 4, nation);
}

static void
s_customer(uint64_t i)
{
	put_party(i, "Customer");
	printf("\t%s\n", PICK(i, 7, segments));
}

static void
s_supplier(uint64_t i)
{
	put_party(i, "Supplier");
	putchar('\n');
}

static void
s_part(uint64_t i)
{
	int			maker = (int) R(i, 1, 1, 5);
	int			category = (int) R(i, 2, 1, 5);
	int			color = (int) R(i, 4, 0, NCOLORS - 1);

	printf("%" PRIu64 "\t%s %s\tMFGR#%d\tMFGR#%d%d\tMFGR#%d%d%d\t%s\t%s %s %s\t%d\t%s %s\n", i + 1, colors[color],
		   colors[(color + 1 + (int) R(i, 5, 0, NCOLORS - 2)) % NCOLORS], maker, maker, category, maker, category,
		   (int) R(i, 3, 1, 40), PICK(i, 6, colors), PICK(i, 7, type1), PICK(i, 8, type2), PICK(i, 9, type3),
		   (int) R(i, 10, 1, 50), PICK(i, 11, box1), PICK(i, 12, box2));
}

static int
date_key(int days)
{
	int			y,
				m,
				d;

	civil(days, &y, &m, &d);
	return y * 10000 + m * 100 + d;
}

static void
s_date(uint64_t i)
{
	static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
	static const char *const months[] = {"January", "February", "March", "April", "May", "June", "July", "August",
	"September", "October", "November", "December"};
	static const char *const seasons[] = {"Winter", "Spring", "Summer", "Fall", "Christmas"};
	int			y,
				m,
				d,
				y0,
				m0,
				d0,
				weekday = (int) ((i + 3) % 7),	/* 1992-01-01 was a Wednesday */
				day = (int) i,
				day_of_year;

	civil(day, &y, &m, &d);
	for (day_of_year = 1;; day_of_year++)
	{
		if (day - day_of_year < 0)
			break;
		civil(day - day_of_year, &y0, &m0, &d0);
		if (y0 != y)
			break;
	}
	printf("%d\t%s %d, %d\t%s\t%s\t%d\t%d\t%.3s%d\t%d\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%d\t%d\n", date_key(day), months[m - 1], d, y,
		   days[weekday], months[m - 1], y, y * 100 + m, months[m - 1], y, weekday + 1, d, day_of_year, m,
		   (day_of_year - 1) / 7 + 1,
		   seasons[m == 12 ? 4 : m <= 2 ? 0 : m <= 5 ? 1 : m <= 8 ? 2 : 3], weekday == 6, date_key(day + 1) % 100 == 1,
		   (m == 12 && d == 25) || (m == 1 && d == 1) || (m == 7 && d == 4), weekday != 0 && weekday != 6);
}

static void
s_lineorder(uint64_t i)
{
	int			lines = order_lines(i);
	int			day = (int) R(i, 1, 0, 2405);
	int64_t		customer = R(i, 2, 1, (int64_t) scaled(30000));
	const char *priority = PICK(i, 3, priorities);
	int64_t		parts = (int64_t) ssb_parts();
	int64_t		total = 0;

	for (int pass = 0; pass < 2; pass++)
		for (int l = 0; l < lines; l++)
		{
			uint64_t	row = i * 8 + (uint64_t) l;
			int64_t		part = R(row, 4, 1, parts);
			int			quantity = (int) R(row, 5, 1, 50);
			int64_t		price = quantity * retail_price(part);
			int			discount = (int) R(row, 6, 0, 10);
			int			tax = (int) R(row, 7, 0, 8);

			if (pass == 0)
			{
				total += price;
				continue;
			}
			printf("%" PRIu64 "\t%d\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%d\t%s\t0\t%d\t%" PRId64 "\t%" PRId64 "\t%d\t%" PRId64 "\t%" PRId64 "\t%d\t%d\t%s\n",
				   order_key(i), l + 1, customer, part, R(row, 8, 1, (int64_t) scaled(2000)), date_key(day), priority,
				   quantity, price, total, discount, price * (100 - discount) / 100, 6 * retail_price(part) / 10, tax,
				   date_key(day + (int) R(row, 9, 30, 90)), PICK(row, 10, modes));
		}
}

static const Table tables[] = {
	{"tpch", "region", -5, h_region}, {"tpch", "nation", -25, h_nation}, {"tpch", "supplier", 10000, h_supplier},
	{"tpch", "part", 200000, h_part}, {"tpch", "partsupp", 800000, h_partsupp}, {"tpch", "customer", 150000, h_customer},
	/* lineitem: of as many orders */
	{"tpch", "orders", 1500000, h_orders}, {"tpch", "lineitem", 1500000, h_lineitem},
	{"ssb", "customer", 30000, s_customer}, {"ssb", "supplier", 2000, s_supplier}, {"ssb", "part", 0, s_part},
	{"ssb", "date", -2556, s_date}, {"ssb", "lineorder", 1500000, s_lineorder}
};

int
main(int argc, char **argv)
{
	uint64_t	part = 0,
				parts = 1;

	if (argc == 4 || argc == 6)
		scale = atof(argv[3]);
	if (argc == 6)
	{
		part = strtoull(argv[4], NULL, 10);
		parts = strtoull(argv[5], NULL, 10);
	}
	for (size_t t = 0; (argc == 4 || argc == 6) && scale > 0 && part < parts && t < sizeof(tables) / sizeof(tables[0]); t++)
	{
		const Table *table = &tables[t];
		uint64_t	n;

		if (strcmp(argv[1], table->benchmark) != 0 || strcmp(argv[2], table->name) != 0)
			continue;
		n = table->rows < 0 ? (uint64_t) -table->rows : table->rows > 0 ? scaled(table->rows) : ssb_parts();
		/* partsupp has four rows for each part */
		if (table->row == h_partsupp)
			n = scaled(200000) * 4;
		seed = t + 1;
		for (uint64_t i = n * part / parts; i < n * (part + 1) / parts; i++)
			table->row(i);
		return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
	}
	fprintf(stderr, "usage: tpcgen tpch|ssb TABLE SCALE [PART PARTS]\n");
	return 2;
}
