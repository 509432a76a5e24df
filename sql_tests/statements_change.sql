-- Statements that change tables by what a join gives: INSERT, UPDATE, DELETE, MERGE, CREATE TABLE AS.
-- t/010_statements.pl has those that meet the changes of other sessions.
LOAD 'gpujoin';
\pset format unaligned
\pset tuples_only on
SET gpujoin.force = on;

CREATE TABLE t (id int PRIMARY KEY, k int, v bigint, note text);
INSERT INTO t SELECT i, i % 50, i, 'note ' || i FROM generate_series(1, 500) i;
CREATE TABLE a (k int, x int, name text);
INSERT INTO a SELECT i, i * 3, 'a' || i FROM generate_series(0, 39) i;
CREATE TABLE b (k int, y int);
INSERT INTO b SELECT i, i * 7 FROM generate_series(0, 59, 2) i;
VACUUM ANALYZE t, a, b;

-- What a statement returns and what it leaves in a table, without gpujoin and with it, undone each time; and
-- by whom the rows were found.
CREATE FUNCTION gj_change(statement text, tab text DEFAULT 't') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	native text[];
	forced text[];
	how text;
	native_error text;
	forced_error text;
BEGIN
	FOR pass IN 0 .. 2 LOOP
		BEGIN
			PERFORM set_config('gpujoin.enabled', CASE pass WHEN 0 THEN 'off' ELSE 'on' END, false);
			IF pass = 2 THEN
				how := gj_how(statement);
			ELSIF statement ~* 'returning [^)]*$' THEN
				forced := gj_rows(statement);
			ELSE
				EXECUTE statement;
			END IF;
			forced := forced || gj_rows('SELECT * FROM ' || tab);
			RAISE EXCEPTION 'undone';
		EXCEPTION WHEN others THEN
			IF SQLERRM <> 'undone' THEN
				forced := ARRAY[SQLSTATE, SQLERRM];
			END IF;
		END;
		IF pass = 0 THEN native := forced; END IF;
		EXIT WHEN pass = 1 AND cardinality(forced) = 2 AND forced[1] ~ '^\w{5}$';
		IF pass < 2 THEN
			IF forced IS DISTINCT FROM native THEN
				RETURN format('DIFFERENT: %s, %s', (SELECT array_agg(x) FROM (SELECT unnest(native) x EXCEPT SELECT unnest(forced) LIMIT 3) d),
					(SELECT array_agg(x) FROM (SELECT unnest(forced) x EXCEPT SELECT unnest(native) LIMIT 3) d));
			END IF;
			forced := NULL;
		END IF;
	END LOOP;
	RETURN CASE WHEN how IS NULL THEN 'same error: ' || native[2] ELSE format('same, %s rows, %s', cardinality(native), how) END;
END $$;

-- INSERT and its kin
SELECT gj_change('INSERT INTO t SELECT 1000 + t.id, a.k, b.y, a.name FROM t JOIN a USING (k) JOIN b USING (k)');
SELECT gj_change('INSERT INTO t SELECT 1000 + t.id, a.k, b.y FROM t JOIN a USING (k) JOIN b USING (k) RETURNING id, v, note');
SELECT gj_change('INSERT INTO t SELECT a.k, max(b.y), count(*) FROM t JOIN a USING (k) JOIN b USING (k) GROUP BY 1 ON CONFLICT (id) DO UPDATE SET v = excluded.v, k = -1');
SELECT gj_change('INSERT INTO t SELECT a.k, b.y FROM a JOIN b USING (k) ON CONFLICT DO NOTHING');
SELECT gj_change('CREATE TABLE made AS SELECT t.id, a.name, b.y FROM t JOIN a USING (k) LEFT JOIN b USING (k)', 'made');
SELECT gj_change('CREATE MATERIALIZED VIEW made AS SELECT a.name, count(*), sum(t.v) FROM t JOIN a USING (k) GROUP BY 1', 'made');
SELECT gj_change('WITH moved AS (DELETE FROM t WHERE id < 100 RETURNING k, v) INSERT INTO a SELECT m.k, b.y FROM moved m JOIN b USING (k)', 'a');
SELECT gj_change('WITH j AS MATERIALIZED (SELECT t.id, a.x FROM t JOIN a USING (k)) UPDATE t SET v = j.x FROM j WHERE j.id = t.id');

-- UPDATE ... FROM: the target is one of the relations of the join
SELECT gj_change('UPDATE t SET v = a.x FROM a WHERE t.k = a.k');
SELECT gj_change('UPDATE t SET v = t.v + a.x * b.y, note = a.name FROM a JOIN b USING (k) WHERE t.k = a.k AND t.v > a.x');
SELECT gj_change('UPDATE t SET v = a.x FROM a JOIN b USING (k) WHERE t.k = a.k RETURNING t.*, a.*, b');
SELECT gj_change('UPDATE t SET v = b.y, note = a FROM a LEFT JOIN b USING (k) WHERE t.k = a.k');
SELECT gj_change('UPDATE t SET v = b.y FROM a FULL JOIN b USING (k) WHERE t.k = coalesce(a.k, b.k)');
SELECT gj_change('UPDATE t SET v = o.v FROM t o WHERE o.id = t.id + 1');
SELECT gj_change('UPDATE t SET v = x.column2, note = x.column3 FROM (VALUES (1, 2, ''three''), (9, NULL, ''nine'')) x WHERE x.column1 = t.id');
SELECT gj_change('UPDATE t SET v = f.n FROM generate_series(1, 20) f (n) WHERE f.n = t.id');
SELECT gj_change('UPDATE t SET v = a.x FROM a WHERE t.k = a.k AND t.note LIKE ''%7%'' AND t.ctid > ''(0,3)''');
SELECT gj_change('UPDATE t SET (k, v) = (a.x, a.k) FROM a WHERE t.id BETWEEN a.x AND a.x + 1');
-- a subquery is a join of its own
SELECT gj_change('UPDATE t SET v = s.n FROM (SELECT a.k, sum(a.x + b.y) AS n FROM a JOIN b USING (k) GROUP BY 1) s WHERE t.k = s.k');
SELECT gj_change('UPDATE t SET v = (SELECT sum(a.x) FROM a JOIN b USING (k)) WHERE id < 10');
SELECT gj_change('UPDATE t SET note = s.name FROM (SELECT a.k, a.name FROM a JOIN b USING (k) OFFSET 0) s WHERE t.k = s.k');
-- DELETE
SELECT gj_change('DELETE FROM t USING a JOIN b USING (k) WHERE t.k = a.k');
SELECT gj_change('DELETE FROM t USING a WHERE t.k = a.k AND NOT EXISTS (SELECT FROM b WHERE b.k = a.k) RETURNING t.id, a.*');
SELECT gj_change('DELETE FROM t WHERE v > (SELECT max(a.x) FROM a JOIN b USING (k))');
SELECT gj_change('DELETE FROM t WHERE id NOT IN (SELECT a.x FROM a JOIN b USING (k))');
SELECT gj_change('DELETE FROM t WHERE NOT EXISTS (SELECT FROM a WHERE a.k = t.k)');
SELECT gj_change('DELETE FROM t WHERE id IN (SELECT a.x FROM a JOIN b USING (k) GROUP BY 1)');
-- a semijoin whose inner side's row would have to be known for a recheck
SELECT gj_change('DELETE FROM t WHERE k IN (SELECT k FROM a)');
SELECT gj_change('DELETE FROM t WHERE EXISTS (SELECT FROM a JOIN b USING (k) WHERE a.k = t.k)');
SELECT gj_change('DELETE FROM t USING a WHERE t.id = a.x AND EXISTS (SELECT FROM b WHERE b.k = a.k)');
-- MERGE
SELECT gj_change('MERGE INTO t USING a ON t.id = a.x WHEN MATCHED AND a.k % 2 = 0 THEN UPDATE SET v = a.k, note = a.name
	WHEN MATCHED AND a.k % 3 = 0 THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (a.x, a.k, -1, a.name)');
SELECT gj_change('MERGE INTO t USING (SELECT a.k, a.x, b.y FROM a LEFT JOIN b USING (k)) s ON t.id = s.x + 400 AND s.y > 20
	WHEN MATCHED THEN UPDATE SET v = s.y WHEN NOT MATCHED THEN INSERT (id, v) VALUES (-1 - s.k, s.y)');
SELECT gj_change('MERGE INTO t USING (SELECT a.k, sum(b.y) AS n FROM a JOIN b USING (k) GROUP BY 1) s ON t.id = s.k
	WHEN MATCHED THEN UPDATE SET v = s.n WHEN NOT MATCHED THEN DO NOTHING');
SELECT gj_change('MERGE INTO t USING (SELECT 1 AS id FROM a) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 0');

-- errors are PostgreSQL's, and undo all
SELECT gj_change('UPDATE t SET v = 10 / (a.x - 30) FROM a WHERE t.k = a.k');
SELECT gj_change('UPDATE t SET id = a.k FROM a WHERE t.k = a.k');
-- the device fails: PostgreSQL's plan does the same
SET gpujoin.fail_at = 'probe';
SELECT gj_change('UPDATE t SET v = a.x FROM a JOIN b USING (k) WHERE t.k = a.k');
SELECT gj_change('MERGE INTO t USING a ON t.id = a.x WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (a.x, a.k, -1, a.name)');
RESET gpujoin.fail_at;

-- targets with members of their own are left to PostgreSQL; so are statements that lock rows
CREATE TABLE p (id int, k int, v bigint) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (200);
CREATE TABLE p2 PARTITION OF p DEFAULT;
INSERT INTO p SELECT id, k, v FROM t;
CREATE TABLE child (more int) INHERITS (a);
INSERT INTO child SELECT k, -x, name, 1 FROM a;
VACUUM ANALYZE p, child;
SELECT gj_change('UPDATE p SET v = a.x FROM ONLY a WHERE p.k = a.k', 'p');
SELECT gj_change('DELETE FROM p USING b WHERE p.k = b.k', 'p');
SELECT gj_change('UPDATE a SET x = b.y FROM b WHERE a.k = b.k', 'a');
SELECT gj_change('UPDATE p SET v = s.n FROM (SELECT t.k, count(*) AS n FROM t JOIN b USING (k) GROUP BY 1) s WHERE p.k = s.k', 'p');
-- as sources they are sources
SELECT gj_change('UPDATE t SET v = p.v FROM p JOIN b USING (k) WHERE p.id = t.id');
SELECT gj_change('UPDATE t SET v = a.x FROM ONLY a WHERE t.k = a.k');
SELECT gj_same('SELECT t.id, b.y FROM t JOIN b USING (k) FOR UPDATE'), gj_same('SELECT t.id, b.y FROM t JOIN b USING (k) FOR KEY SHARE OF b');
SELECT gj_same('SELECT t.id, s.n FROM t JOIN (SELECT k, count(*) AS n FROM b JOIN ONLY a USING (k) GROUP BY 1) s USING (k) FOR UPDATE OF t');

-- from results of stages, and from subqueries that have become joins
CREATE FUNCTION staged_change(statement text, tab text DEFAULT 'target') RETURNS text LANGUAGE sql AS $$
	SELECT concat(gj_change(statement, tab), ', stages: ',
		(SELECT count(*) FROM jsonb_path_query(gj_explain(statement), 'strict $.**?(@."Custom Plan Provider" == "GpuJoin").Sources[*]?(@.Kind == "stage")')),
		CASE WHEN gj_explain(statement)::text ~ '"Subplan Name": "\(?SubPlan' THEN ', subplan' END)
$$;
CREATE TABLE target (id int PRIMARY KEY, k int, v bigint, note text);
INSERT INTO target SELECT i, i % 50, i, 'note ' || i FROM generate_series(1, 500) i;
CREATE TABLE c AS SELECT i AS k, i * 3 AS x, 'c' || i AS name FROM generate_series(0, 39) i;
CREATE TABLE d AS SELECT i % 60 AS k, i AS y FROM generate_series(0, 159, 2) i;
VACUUM ANALYZE target, c, d;
\set groups '(SELECT k, count(*) n, sum(v) AS s, max(id) AS m FROM target GROUP BY k)'
SELECT staged_change('INSERT INTO target SELECT 1000 + c.k, c.x, g.s, c.name FROM c JOIN ' || :'groups' || ' g USING (k) WHERE g.n > 3');
SELECT staged_change('INSERT INTO target SELECT g.m, c.k, g.s FROM c JOIN ' || :'groups' || ' g USING (k) ON CONFLICT (id) DO UPDATE SET v = excluded.v + target.v RETURNING *');
SELECT staged_change('INSERT INTO target SELECT 2000 + n, count(*), min(s) FROM ' || :'groups' || ' g GROUP BY n');
SELECT staged_change('INSERT INTO target SELECT 1000 + k, x FROM c WHERE x > (SELECT avg(y) FROM d WHERE d.k <= 20 AND d.k = c.k)');
SELECT staged_change('INSERT INTO target SELECT 1000 + k, x FROM c WHERE k NOT IN (SELECT k FROM d)');
SELECT staged_change('INSERT INTO target WITH w AS (SELECT k, max(y) m FROM d GROUP BY k) SELECT 1000 + w.k, w.m FROM w JOIN w w2 USING (m) WHERE w.k < 40');
SELECT staged_change('CREATE TABLE made AS SELECT c.name, g.s FROM c LEFT JOIN ' || :'groups' || ' g USING (k) WHERE c.x < (SELECT max(y) FROM d WHERE d.k = c.k)', 'made');
SELECT staged_change('UPDATE target SET v = g.s FROM ' || :'groups' || ' g WHERE g.k = target.k AND g.n > 3');
SELECT staged_change('UPDATE target SET v = g.s, note = c.name FROM c JOIN ' || :'groups' || ' g USING (k) WHERE target.k = c.k AND target.v < g.s RETURNING target.*, g.n');
SELECT staged_change('UPDATE target SET v = s.n FROM (SELECT n, count(*) q FROM ' || :'groups' || ' g GROUP BY n) s WHERE s.n = target.id');
SELECT staged_change('UPDATE target SET v = s.x FROM (SELECT k, x FROM c WHERE x > (SELECT avg(y) FROM d WHERE d.k = c.k) OR k < 9) s WHERE s.k = target.k');
SELECT staged_change('UPDATE target SET v = 0 WHERE v > (SELECT sum(y) FROM d WHERE d.k = target.k)');
SELECT staged_change('UPDATE target SET v = 0 WHERE k NOT IN (SELECT k FROM d)');
SELECT staged_change('DELETE FROM target WHERE k IN (SELECT k FROM d GROUP BY k HAVING sum(y) > 100)');
SELECT staged_change('DELETE FROM target USING ' || :'groups' || ' g WHERE g.m = target.id RETURNING target.id, g.n');
SELECT staged_change('DELETE FROM target WHERE EXISTS (SELECT FROM c WHERE c.k = target.k AND x > (SELECT avg(y) FROM d WHERE d.k = c.k))');
SELECT staged_change('MERGE INTO target USING (SELECT c.k, g.s, g.m FROM c LEFT JOIN ' || :'groups' || ' g USING (k)) s ON target.id = s.m
	WHEN MATCHED AND s.k < 10 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.s WHEN NOT MATCHED THEN INSERT VALUES (s.k + 1000, s.k, s.s)');
SELECT staged_change('MERGE INTO target USING (SELECT k, x FROM c WHERE k NOT IN (SELECT k FROM d)) s ON target.id = s.k
	WHEN MATCHED THEN UPDATE SET v = s.x WHEN NOT MATCHED THEN INSERT VALUES (s.k + 1000, s.k, s.x)');
DROP TABLE target, c, d;
DROP FUNCTION staged_change;

-- views, rules, triggers and policies
CREATE VIEW tv AS SELECT id, k, v FROM t WHERE id > 100;
CREATE VIEW barrier WITH (security_barrier) AS SELECT id, k, v FROM t WHERE id % 2 = 0 WITH CHECK OPTION;
SELECT gj_change('UPDATE tv SET v = b.y FROM b WHERE tv.k = b.k');
SELECT gj_change('UPDATE barrier SET v = b.y FROM b WHERE barrier.k = b.k');
SELECT gj_change('UPDATE barrier SET id = b.k + 101 FROM b WHERE barrier.id = b.k');
SELECT gj_change('DELETE FROM barrier USING b WHERE barrier.k = b.k RETURNING *');
CREATE TABLE log (id int, was bigint, now bigint);
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO log SELECT NEW.id, OLD.v, (SELECT sum(a.x) FROM ONLY a JOIN b USING (k) WHERE a.k <= NEW.k);
	RETURN NEW;
END $$;
CREATE TRIGGER before_row BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note_change();
SELECT gj_change('UPDATE t SET v = b.y FROM b WHERE t.k = b.k', 'log');
DROP TRIGGER before_row ON t;
CREATE ROLE gj_changer;
GRANT ALL ON t, b TO gj_changer;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON t USING (id <= 300) WITH CHECK (v >= 0);
SET ROLE gj_changer;
SELECT gj_change('UPDATE t SET v = b.y FROM b WHERE t.k = b.k');
SELECT gj_change('UPDATE t SET v = -b.y FROM b WHERE t.k = b.k');
SELECT gj_change('DELETE FROM t USING b WHERE t.k = b.k');
RESET ROLE;
DROP VIEW tv, barrier;
DROP TABLE t, a, b, p, child, log;
DROP OWNED BY gj_changer;
DROP ROLE gj_changer;
DROP FUNCTION gj_change, note_change;
