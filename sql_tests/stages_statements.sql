-- Stages and subqueries that have become joins, in statements that stop, go back, run again, or see
-- other rows: LATERAL, nested loops, cursors, savepoints, prepared statements, policies.
-- t/031_stages.pl has those that other sessions or gpujoind's end meet.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE o (ok int, ck int, price numeric(12,2));
INSERT INTO o SELECT i, i % 97, i % 1000 / 8.0 FROM generate_series(1, 800) i;
CREATE TABLE li (ok int, pk int, q numeric(12,2), n int8);
INSERT INTO li SELECT nullif(i / 4, 7), i % 41, nullif(i % 50, 13) + 0.25, i % 1000 FROM generate_series(1, 3000) i;
CREATE TABLE p (pk int, name text);
INSERT INTO p SELECT i, 'p' || i FROM generate_series(0, 50) i;
VACUUM ANALYZE o, li, p;

-- the same rows, by whom, how many stages and subqueries that run for each row there are
CREATE FUNCTION ran(query text) RETURNS text LANGUAGE sql AS $$
	SELECT concat(gj_same(query), ', stages: ',
		(SELECT count(*) FROM jsonb_path_query(gj_explain(query), 'strict $.**?(@."Custom Plan Provider" == "GpuJoin").Sources[*]?(@.Kind == "stage")')),
		CASE WHEN gj_explain(query)::text ~ '"Subplan Name": "\(?SubPlan' THEN ', subplan' END)
$$;

-- again for each row: LATERAL with a parameter in the stage, in the join that reads it, in a stage of
-- a stage; what is the same each time; in the select list
SELECT ran('SELECT p.pk, x.* FROM p, LATERAL (SELECT count(*) c, sum(s.q) FROM o JOIN (SELECT ok, sum(q) q FROM li WHERE li.pk = p.pk GROUP BY ok) s USING (ok)) x WHERE p.pk < 12');
SELECT ran('SELECT p.pk, x.* FROM p, LATERAL (SELECT count(*) c, sum(s.q) FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok) s USING (ok) WHERE o.ck + p.pk = 2 * p.pk) x WHERE p.pk < 12');
SELECT ran('SELECT p.pk, x.* FROM p, LATERAL (SELECT count(*) c, sum(s.q) FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok) s USING (ok) WHERE o.ck = p.pk) x WHERE p.pk < 12');
SELECT ran('SELECT p.pk, x.* FROM p LEFT JOIN LATERAL (SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok HAVING count(*) > p.pk) s USING (ok) WHERE o.ck = p.pk ORDER BY o.ok LIMIT 3) x ON true WHERE p.pk < 12');
SELECT ran('SELECT p.pk, x.* FROM p, LATERAL (SELECT n, count(*) c FROM (SELECT ok, count(*) n FROM li WHERE li.pk <= p.pk GROUP BY ok) s GROUP BY n) x WHERE p.pk < 12');
SELECT ran('SELECT p.pk, x.* FROM p, LATERAL (SELECT count(*) c, sum(s.q) FROM o JOIN (SELECT ok, sum(q) q FROM li JOIN p p2 USING (pk) WHERE li.n > 80 * p.pk AND p2.pk <> p.pk GROUP BY ok) s USING (ok)) x WHERE p.pk < 12');
SELECT ran('SELECT p.pk, x.* FROM p, LATERAL (SELECT c, count(*) FROM (SELECT ok, count(*) c FROM li JOIN p p2 USING (pk) WHERE li.n > 80 * p.pk GROUP BY ok) s GROUP BY c) x WHERE p.pk < 12');
SELECT ran('SELECT p.pk, (SELECT max(s.q) FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok) s USING (ok) WHERE o.ck > p.pk AND o.price > (SELECT min(q) FROM li WHERE li.ok = o.ok)) FROM p WHERE p.pk < 12');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_material = off;
SELECT ran('SELECT p.name, x.c FROM p JOIN (SELECT o.ck, count(*) + random() * 0 AS c FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok) s USING (ok) GROUP BY o.ck OFFSET 0) x ON x.ck > p.pk + 85');
RESET enable_hashjoin;
RESET enable_mergejoin;
RESET enable_material;

-- cursors: back and forth, held, more than one at a time, closed early
\set query 'SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok HAVING sum(q) > 140) s USING (ok) WHERE o.price >= (SELECT max(q) - 30 FROM li WHERE li.ok = o.ok) ORDER BY 1'
SELECT ran(:'query');
BEGIN;
DECLARE c SCROLL CURSOR FOR :query;
DECLARE d CURSOR WITH HOLD FOR :query;
DECLARE e NO SCROLL CURSOR FOR SELECT n, count(*) FROM (SELECT ok, count(*) n FROM li GROUP BY ok) s GROUP BY n ORDER BY n;
FETCH 2 FROM c;
FETCH 1 FROM d;
FETCH 2 FROM e;
FETCH LAST FROM c;
FETCH RELATIVE -1 FROM c;
FETCH FIRST FROM c;
FETCH BACKWARD 1 FROM c;
FETCH ABSOLUTE 3 FROM c;
MOVE FORWARD ALL FROM c;
FETCH BACKWARD 1 FROM c;
CLOSE e;
-- what comes in the middle does not harm what is open
SAVEPOINT s;
SELECT 1 / (s.n - 4) FROM o JOIN (SELECT ok, count(*) n FROM li GROUP BY ok) s USING (ok);
ROLLBACK TO s;
FETCH RELATIVE -1 FROM c;
DECLARE f CURSOR FOR SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok) s USING (ok) ORDER BY 1;
FETCH 1 FROM f;
ROLLBACK TO s;
FETCH 1 FROM f;
ROLLBACK TO s;
SELECT ran('SELECT count(*), sum(s.q) FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok) s USING (ok)');
-- a cursor does not see what its own transaction changes later
DECLARE g CURSOR FOR SELECT o.ok, s.n FROM o JOIN (SELECT ok, count(*) n FROM li GROUP BY ok) s USING (ok) ORDER BY 1;
DELETE FROM li WHERE ok < 3;
FETCH 2 FROM g;
SELECT ran('SELECT o.ok, s.n FROM o JOIN (SELECT ok, count(*) n FROM li GROUP BY ok) s USING (ok)');
ROLLBACK TO s;
SELECT ran('SELECT o.ok, s.n FROM o JOIN (SELECT ok, count(*) n FROM li GROUP BY ok) s USING (ok)');
COMMIT;
FETCH 1 FROM d;
CLOSE d;

-- errors that are caught, while stages are open and after they have ended
CREATE FUNCTION caught() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n int := 0;
BEGIN
	FOR i IN 1..6 LOOP
		BEGIN
			FOR r IN SELECT o.ok, s.n FROM o JOIN (SELECT ok, count(*) n FROM li GROUP BY ok) s USING (ok) LOOP
				n := n + 1;
				IF i = 2 THEN PERFORM 1 / (r.n - r.n); END IF;
				EXIT WHEN i = 3;
			END LOOP;
		EXCEPTION WHEN division_by_zero THEN
			n := n + 1000;
		END;
	END LOOP;
	RETURN n;
END $$;
SELECT caught();
DROP FUNCTION caught;

-- prepared: generic and custom plans, parameters in stages, in unnested subqueries, NULLs
PREPARE staged(numeric, int, int) AS SELECT o.ok, s.q FROM o JOIN (SELECT ok, sum(q) q FROM li WHERE pk < $2 GROUP BY ok HAVING sum(q) > $1 AND count(*) >= $3) s USING (ok) WHERE o.ck <> $3;
PREPARE unnested(numeric, int) AS SELECT ok FROM o WHERE price > (SELECT max(q) * $1 FROM li WHERE li.ok = o.ok AND pk < $2) AND ck NOT IN (SELECT pk FROM p WHERE pk < $2);
CREATE TABLE answers (mode text, query text, answer text[]);
SET plan_cache_mode = force_generic_plan;
INSERT INTO answers SELECT 'generic', q, gj_rows('EXECUTE ' || q) FROM unnest(ARRAY['staged(50.5, 30, 1)', 'staged(NULL, 30, 1)', 'staged(20, NULL, 1)', 'staged(20, 40, 2)', 'unnested(0.5, 30)', 'unnested(NULL, 30)', 'unnested(2, NULL)', 'unnested(2, 0)']) q;
SELECT gj_how('EXECUTE staged(50.5, 30, 1)'), gj_how('EXECUTE unnested(0.5, 30)');
SET plan_cache_mode = force_custom_plan;
INSERT INTO answers SELECT 'custom', query, gj_rows('EXECUTE ' || query) FROM answers WHERE mode = 'generic';
SET gpujoin.enabled = off;
INSERT INTO answers SELECT 'native', query, gj_rows('EXECUTE ' || query) FROM answers WHERE mode = 'generic';
SET gpujoin.enabled = on;
SELECT query, cardinality(a.answer), count(DISTINCT b.answer) FROM answers a JOIN answers b USING (query) WHERE a.mode = 'native' GROUP BY 1, 2 ORDER BY 1;
RESET plan_cache_mode;
-- tables change under a cached plan
SET plan_cache_mode = force_generic_plan;
SELECT cardinality(gj_rows('EXECUTE staged(50.5, 30, 1)'));
UPDATE li SET q = q + 20;
SELECT cardinality(gj_rows('EXECUTE staged(50.5, 30, 1)'));
ALTER TABLE li ALTER ok TYPE bigint;
SELECT gj_how('EXECUTE staged(50.5, 30, 1)'), cardinality(gj_rows('EXECUTE staged(50.5, 30, 1)'));
CREATE INDEX ON li (ok);
SELECT gj_how('EXECUTE staged(50.5, 30, 1)'), cardinality(gj_rows('EXECUTE staged(50.5, 30, 1)'));
RESET plan_cache_mode;
DEALLOCATE ALL;

-- policies and barriers: in what a stage reads, and in what reads it
CREATE ROLE gj_staged;
GRANT SELECT ON o, li, p TO gj_staged;
ALTER TABLE li ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON li TO gj_staged USING (pk < 10);
CREATE POLICY known ON li TO gj_staged USING (pk IN (SELECT pk FROM p WHERE name < 'p3'));
ALTER TABLE o ENABLE ROW LEVEL SECURITY;
CREATE POLICY dear ON o TO gj_staged USING (price > (SELECT avg(pk) FROM p WHERE p.pk = o.ck));
CREATE VIEW seen WITH (security_barrier) AS SELECT ok, count(*) AS n, sum(q) AS t FROM li WHERE pk < 10 GROUP BY ok;
CREATE VIEW low WITH (security_barrier) AS SELECT * FROM li WHERE pk < 10;
CREATE VIEW rich WITH (security_barrier) AS SELECT ok, ck, price FROM o WHERE price > (SELECT avg(q) FROM li WHERE li.ok = o.ok);
GRANT SELECT ON seen, low, rich TO gj_staged;
CREATE FUNCTION peeks(hidden bool) RETURNS bool LANGUAGE plpgsql COST 0.0001 AS $$
BEGIN
	IF hidden THEN RAISE WARNING 'a hidden row is seen'; END IF;
	RETURN true;
END $$;
SET ROLE gj_staged;
SELECT ran('SELECT count(*), sum(s.q) FROM p JOIN (SELECT pk, sum(n) q FROM li GROUP BY pk) s USING (pk)');
SELECT ran('SELECT count(*), sum(s.q) FROM o JOIN (SELECT ok, sum(q) q FROM li GROUP BY ok) s USING (ok)');
SELECT ran('SELECT p.name, count(*) FROM p JOIN li USING (pk) WHERE n > (SELECT avg(n) FROM li l WHERE l.pk = p.pk) GROUP BY p.name');
SELECT ran('SELECT pk FROM p WHERE pk NOT IN (SELECT pk FROM li)');
SELECT ran('SELECT p.name, seen.n FROM p JOIN seen ON seen.ok = p.pk WHERE seen.n > 0');
SELECT ran('SELECT p.name, count(*) FROM p JOIN rich ON rich.ck = p.pk GROUP BY p.name');
-- conditions that tell what they see do not see what a barrier hides
SELECT ran('SELECT p.name, s.n FROM p JOIN (SELECT ok, count(*) n FROM low WHERE peeks(pk >= 10) GROUP BY ok) s ON s.ok = p.pk');
SELECT ran('SELECT p.name, count(*) FROM p JOIN rich ON rich.ck = p.pk WHERE peeks(price < 3) GROUP BY p.name');
SELECT ran('SELECT ok FROM rich WHERE peeks(price < 3) AND ck NOT IN (SELECT pk FROM low WHERE peeks(pk >= 10))');
SELECT ran('SELECT p.pk FROM p WHERE p.pk > (SELECT count(*) FROM low WHERE low.pk = p.pk AND low.n > 3)');
-- the answer of a prepared statement is that of who executes it
RESET ROLE;
PREPARE mine AS SELECT count(*), sum(s.q) FROM p JOIN (SELECT pk, sum(n) q FROM li GROUP BY pk) s USING (pk);
EXECUTE mine;
SET ROLE gj_staged;
EXECUTE mine;
RESET ROLE;
EXECUTE mine;
-- who may not read a table may not do so in a stage or a subquery
REVOKE SELECT ON li FROM gj_staged;
SET ROLE gj_staged;
SELECT ran('SELECT count(*), sum(s.q) FROM p JOIN (SELECT pk, sum(n) q FROM li GROUP BY pk) s USING (pk)');
SELECT ran('SELECT ok FROM o WHERE price > (SELECT sum(q) FROM li WHERE li.ok = o.ok)');
SELECT ran('SELECT pk FROM p WHERE pk NOT IN (SELECT pk FROM li)');
SELECT ran('SELECT p.name, seen.n FROM p JOIN seen ON seen.ok = p.pk');
RESET ROLE;

-- a stage whose rows come from a plan runs once for each member of an append: that plan begins again, too
CREATE TABLE again AS SELECT i AS id, i % 2000 AS g, i % 7 AS h FROM generate_series(1, 6000) i;
ANALYZE again;
SELECT ran('SELECT count(*) FROM (SELECT pk FROM li UNION ALL SELECT pk FROM li l) x WHERE x.pk NOT IN (SELECT z.g FROM (SELECT y.g, y.m FROM (SELECT c.g, max(c.h) m FROM again c JOIN (SELECT id FROM again ORDER BY id LIMIT 1500) l ON l.id = c.g GROUP BY c.g) y JOIN again c2 ON c2.id = y.g) z WHERE z.g IS NOT NULL) OR x.pk = 5');
DROP TABLE again;

DROP VIEW seen, low, rich;
DROP TABLE o, li, p, answers;
DROP ROLE gj_staged;
DROP FUNCTION ran, peeks;
