-- The same transfer, with all four statements sent at once: one round trip instead of four.
\set first random(0, :rows - 1)
\set other random(1, :rows - 1)
\set second (:first + :other) % :rows
\set payer least(:first, :second)
\set payee greatest(:first, :second)
\startpipeline
BEGIN;
UPDATE account SET balance = balance - 1 WHERE id = :payer;
UPDATE account SET balance = balance + 1 WHERE id = :payee;
END;
\endpipeline
