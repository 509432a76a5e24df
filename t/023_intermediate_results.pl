# Functions of Citus that read intermediate results are plan sources though they are volatile; no other
# volatile function is.  Citus is not needed: an extension of its name has functions that behave alike.
use strict;
use warnings;
use FindBin;
use lib $FindBin::RealBin;
use GpuJoin;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_node('intermediate', preload => 1);
# ALTER EXTENSION wants no control file
$node->safe_psql('postgres', q{
	SET allow_system_table_mods = on;
	INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
		SELECT 99999, 'citus', 10, oid, false, '13' FROM pg_namespace WHERE nspname = 'pg_catalog';
	CREATE TABLE result (id text, k int, v bigint, t text);
	INSERT INTO result SELECT CASE WHEN i % 3 = 0 THEN 'r_0' ELSE 'r_1' END, i % 100, i, 'text ' || i % 50 FROM generate_series(1, 30000) i;
	CREATE FUNCTION pg_catalog.read_intermediate_result(result_id text, format text DEFAULT 'csv') RETURNS SETOF record
		LANGUAGE plpgsql STRICT VOLATILE PARALLEL SAFE AS $$ BEGIN
			RAISE NOTICE 'reads %', result_id;
			IF result_id = 'none' THEN RAISE EXCEPTION 'result "none" does not exist'; END IF;
			RETURN QUERY SELECT k, v, t FROM public.result WHERE id = result_id;
		END $$;
	CREATE FUNCTION pg_catalog.read_intermediate_results(result_ids text[], format text DEFAULT 'csv') RETURNS SETOF record
		LANGUAGE plpgsql STRICT VOLATILE PARALLEL SAFE AS $$ BEGIN
			RAISE NOTICE 'reads %', result_ids;
			RETURN QUERY SELECT k, v, t FROM public.result WHERE id = ANY (result_ids);
		END $$;
	ALTER EXTENSION citus ADD FUNCTION pg_catalog.read_intermediate_result(text, text);
	ALTER EXTENSION citus ADD FUNCTION pg_catalog.read_intermediate_results(text[], text);
	-- one that has the name alone
	CREATE FUNCTION public.read_intermediate_result(result_id int) RETURNS TABLE (k int, v bigint, t text)
		LANGUAGE sql VOLATILE AS $$ SELECT k, v, t FROM public.result $$;
	-- one of the extension that has another name
	CREATE FUNCTION pg_catalog.fetch_intermediate_result(text) RETURNS SETOF record
		LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN QUERY SELECT k, v, t FROM public.result; END $$;
	ALTER EXTENSION citus ADD FUNCTION pg_catalog.fetch_intermediate_result(text);
	CREATE FUNCTION now_volatile() RETURNS text LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN 'r_0'; END $$;
	CREATE FUNCTION side_effect() RETURNS SETOF int LANGUAGE plpgsql VOLATILE AS $$ BEGIN
		RAISE NOTICE 'reads'; RETURN QUERY SELECT generate_series(0, 59); END $$;
	ANALYZE result;
});

# What Citus writes for a CTE, and for the merge tasks of a repartition join.
my $cte = "(SELECT r.k, r.v, r.t FROM read_intermediate_result('r_1', 'binary') r (k int, v bigint, t text)) cte";
my $merged = "(SELECT r.k, r.v, r.t FROM read_intermediate_results(ARRAY['r_0', 'r_1'], 'binary') r (k int, v bigint, t text)) merged";
my %queries = (
	'a CTE' => "SELECT count(*), sum(f.v + cte.v) FROM f JOIN $cte USING (k)",
	'groups' => "SELECT d.name, count(*), sum(cte.v) FROM d JOIN $cte USING (k) GROUP BY d.name ORDER BY 1",
	'rows' => "SELECT count(t) FROM (SELECT cte.t || f.t AS t FROM f JOIN $cte ON f.id = cte.v AND f.k = cte.k OFFSET 0) x",
	'an outer join' => "SELECT count(*), count(cte.v), sum(f.v) FROM f LEFT JOIN $cte ON f.id = cte.v",
	'a repartition join' => "SELECT count(*), sum(m.v + cte.v) FROM (SELECT * FROM $merged) m JOIN $cte ON m.v = cte.v",
	'a semi join' => "SELECT count(*), sum(f.v) FROM f WHERE id IN (SELECT v FROM $cte)",
	'a subquery' => "SELECT count(*), sum(f.v) FROM f JOIN d USING (k) WHERE f.id > (SELECT avg(v)::int FROM $cte)");

# Runs a query: its answer, and how often each result was read.
sub run
{
	my ($query, $settings) = @_;
	my ($out, $err);
	$node->psql('postgres', GpuJoin::session() . "$settings; $query", stdout => \$out, stderr => \$err);
	my $reads = () = $err =~ /reads/g;
	return ($out, $reads, $err);
}

ok(on_device($node), 'there is a device');
foreach my $name (sort keys %queries)
{
	my $query = $queries{$name};
	my ($expected, $native_reads) = run($query, 'SET gpujoin.enabled = off');
	my ($answer, $reads) = run($query, '');
	is(how($node, $query), 'GpuJoin', "$name: on the device");
	is($answer, $expected, "$name: the same answer");
	is($reads, $native_reads, "$name: read as often");
	foreach my $point (qw(submit build probe output))
	{
		($answer, $reads, my $errors) = run($query, "SET gpujoin.fail_at = '$point'");
		$answer = $expected if $point eq 'output' && $answer eq '' && $errors =~ /after rows had been returned/;
		is($answer, $expected, "$name: the same answer after a failure ($point)");
		cmp_ok($reads, '<=', 2 * $native_reads, "$name: read again at most once ($point)");
	}
}
my ($none, undef, $error) = run("SELECT count(*) FROM f JOIN (SELECT k FROM read_intermediate_result('none') r (k int, v bigint, t text)) x USING (k)", '');
like($error, qr/result "none" does not exist/, 'an error of such a function is the error of the query');

# what is left to PostgreSQL
my %refused = (
	'read_intermediate_result(integer)' => 'read_intermediate_result(1) r',
	'fetch_intermediate_result(text)' => "fetch_intermediate_result('r_0') r (k int, v bigint, t text)",
	'now_volatile()' => 'read_intermediate_result(now_volatile()) r (k int, v bigint, t text)',
	'side_effect()' => 'side_effect() r (k)');
foreach my $function (sort keys %refused)
{
	my $plan = $node->safe_psql('postgres', GpuJoin::session() . "SET gpujoin.explain_reasons = 'on'; EXPLAIN (COSTS OFF) SELECT count(*) FROM f JOIN $refused{$function} USING (k)");
	unlike($plan, qr/GpuJoin/, "$function: PostgreSQL's plan");
	like($plan, qr/volatile function (public\.)?\Q$function\E/, "$function: EXPLAIN says why");
}

# in a CTE any function can be volatile: it runs once, whatever happens
my $effect = 'WITH x AS MATERIALIZED (SELECT * FROM side_effect() AS r (k)) SELECT count(*), sum(f.v) FROM f JOIN x USING (k)';
my ($expected) = run($effect, 'SET gpujoin.enabled = off');
is(how($node, $effect), 'GpuJoin', 'a CTE with a side effect: on the device');
foreach my $point (qw(never submit build probe))
{
	my ($answer, $reads) = run($effect, "SET gpujoin.fail_at = '$point'");
	is($answer, $expected, "the same answer ($point)");
	is($reads, 1, "and the side effect once ($point)");
}
$node->stop;
done_testing();
