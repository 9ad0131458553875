-- A transfer between two different accounts. Everybody locks the lower id first: no deadlocks.
\set first random(0, :rows - 1)
\set other random(1, :rows - 1)
\set second (:first + :other) % :rows
\set payer least(:first, :second)
\set payee greatest(:first, :second)
BEGIN;
UPDATE account SET balance = balance - 1 WHERE id = :payer;
UPDATE account SET balance = balance + 1 WHERE id = :payee;
END;
