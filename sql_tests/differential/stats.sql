-- Ten questions to the Stack Exchange site "stats" (scripts/load-stats loads it).
-- queries
-- the best posts and the reputation of who wrote them
SELECT p.id, p.score, u.id, u.reputation FROM posts p JOIN users u ON p.owneruserid = u.id WHERE p.score >= 30;

-- questions: how many, how good, by whom
SELECT count(*), avg(u.reputation), max(p.score), sum(p.viewcount), min(p.creationdate)
FROM posts p JOIN users u ON u.id = p.owneruserid WHERE p.posttypeid = 1;

-- badges won on a day when their owner had just joined or came from before 2012
SELECT b.id, b.date, u.creationdate FROM badges b JOIN users u ON b.userid = u.id WHERE u.creationdate < '2012-01-01' AND b.date >= '2014-01-01';

-- duplicates that are better than what they duplicate
SELECT l.id, a.id, b.id, a.score, b.score FROM postlinks l JOIN posts a ON l.postid = a.id JOIN posts b ON l.relatedpostid = b.id
WHERE l.linktypeid = 3 AND a.score > b.score;

-- posts and badges of the same people: millions of pairs, summed
SELECT count(*), sum(p.viewcount), max(p.score) FROM badges b JOIN users u ON b.userid = u.id JOIN posts p ON p.owneruserid = u.id
WHERE u.reputation < 1000;

-- edited by somebody with a better reputation
SELECT p.id, o.reputation, e.reputation FROM posts p JOIN users o ON p.owneruserid = o.id JOIN users e ON p.lasteditoruserid = e.id
WHERE e.reputation > o.reputation AND p.score < 0;

-- the ten users with the highest sum of scores
SELECT u.id, sum(p.score) AS total, count(*) FROM posts p JOIN users u ON p.owneruserid = u.id GROUP BY u.id ORDER BY total DESC, u.id LIMIT 10;

-- unanswered questions of active users in 2014
SELECT p.id, p.viewcount, u.views FROM posts p JOIN users u ON p.owneruserid = u.id
WHERE p.posttypeid = 1 AND p.answercount = 0 AND p.creationdate >= '2014-01-01' AND u.reputation > 500 AND p.favoritecount IS NULL;

-- links between posts of the same author
SELECT count(*), sum(a.score + b.score), count(a.viewcount) FROM postlinks l JOIN posts a ON l.postid = a.id
JOIN posts b ON l.relatedpostid = b.id AND a.owneruserid = b.owneruserid;

-- posts per month by users with more upvotes than downvotes
SELECT date_trunc('month', p.creationdate) AS month, count(*), avg(p.score) FROM posts p JOIN users u ON p.owneruserid = u.id
WHERE u.upvotes > u.downvotes GROUP BY 1;
