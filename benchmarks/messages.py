"""Made-up messages between agents, in the style of working notes, to count the tokens that a frame adds."""

from __future__ import annotations

# 60 to 120 words: the work done, its effect on the recipient, and a question or a next step.
USUAL = (
    "I have split the price rules out of checkout.py into pricing/rules.py, one function a rule, and the old entry point"
    " now only calls them in order. The tests of the discount table pass; the two for rounding in test_totals.py fail,"
    " because they expect half-up and the new code uses the decimal context of the caller. I think the tests are right, so"
    " I will set ROUND_HALF_UP in pricing/__init__.py unless you depend on the old behaviour in the invoice export. Can you"
    " look at invoices/export.py, lines 40 to 75, and tell me before I push? I have not touched it. The branch is"
    " lane/pricing-rules, four commits, and each of them passes by itself if you want to read them in order.",
    "The migration 0042_orders_add_region is on the branch and runs in both directions on a copy of the staging data; it"
    " takes eleven seconds for two million rows. It locks the orders table for the last step, so please don't deploy it"
    " together with your change to the order queue. If you need the new column earlier, read it through"
    " OrderRepository.region(), which falls back to the customer's address while the column is empty.",
    "Your change to the retry loop in client/http.py makes test_client_gives_up flaky here: about one run in thirty hangs"
    " until the timeout. The jitter can become zero, and then the loop never yields to the timer. I did not touch the file"
    " since you own it. A lower bound of ten milliseconds in backoff() fixes it for me in five hundred runs. The failing"
    " run and the seed are in build/flaky-7731.log if you want to see it. Will you take it, or shall I?",
    "Before you start on the search page: the index no longer has the field full_text. I replaced it by title_terms and"
    " body_terms, because ranking both together hid exact titles. Queries that name full_text fail with a 400 now instead of"
    " an empty result, which is on purpose. The helper build_query() in search/query.py does the right thing for all"
    " callers that I found; the admin report is the only one that builds its own query, and I believe that report is yours.",
    "I disagree with moving the session cache into Redis in this work unit. The reason for the slow login is not the cache:"
    " the profile in notes/login-profile.txt shows 380 of 450 milliseconds in the password hash, which runs twice, once in"
    " the middleware and once in the view. Removing the second call gets us under the target without a new service to"
    " operate. I propose that we do that first, measure again on staging, and decide about the cache with the new figures."
    " If it still takes more than 150 milliseconds then, I will write the cache myself, behind the interface that you drafted,"
    " without a change to the views. Do you agree?",
    "The contract tests for the payment webhook are done and cover the four events that we handle, with the signatures that"
    " the provider documents. Two things surprised me. The provider sends the amount as a string in minor units for JPY and"
    " as a number everywhere else, and it repeats an event with the same id but a new timestamp when we answer later than"
    " three seconds. So the handler must compare ids only. Your handler compares the whole body; can you change that in"
    " payments/webhook.py while you are there? The recorded events are in tests/payments/recorded/, without their secrets,"
    " and make webhook-replay sends them to a local server.",
    "Handing over WU-118 to you as agreed. Done: the parser reads both formats, the old one with a deprecation warning; the"
    " writer only writes the new one; docs/config.md is updated. Not done: the command that converts existing files, and"
    " the check in CI that no old file is left in examples/. Watch out for comments at the end of a line, which the old"
    " parser kept and the new one attaches to the following key. Branch lane/config-v2 is rebased on main and green.",
    "The build on main is red since your merge of the logging change: mypy finds three errors in workers/scheduler.py,"
    " because log_event() now returns None instead of the event. So either the scheduler keeps"
    " its own reference or log_event() returns the event again. I would do the former, it is four lines. I am in the middle"
    " of the lease code in the same file, therefore I would rather do it myself to avoid a conflict.",
    "Question about the rate limiter that you wrote last week. The limiter counts a request when it starts, so a slow"
    " upload that takes two minutes counts once, but a client that opens the connection and waits also counts once. In the"
    " load test that means ten idle clients can lock out everybody behind the same proxy. Was counting at the start a"
    " decision, or only simpler? If it was only simpler, I would count when the body begins to arrive, and keep the old"
    " behaviour for requests without a body. The test that shows it is test_idle_clients in the branch lane/limiter.",
    "The screenshots in the visual tests differ by one pixel in the header on the new runner image, since the font package"
    " went from 2.37 to 2.38. I pinned the old version in the runner's Dockerfile rather than accept 214 new screenshots in"
    " the middle of your redesign. Please take the pin out, and regenerate the screenshots, in the same commit that merges"
    " the redesign; the command is make snapshots, and it takes about six minutes with four workers. If the"
    " redesign slips past this week, tell me, and I will do it separately on Friday so that the pin does not stay.",
)

# 12 to 16 words: short acknowledgements.
SHORT = (
    "The parser drops tabs in the third column; is that on purpose?",
    "Done, pushed as 3f9c2d1. The flaky test is gone on my machine.",
    "Please don't touch workers/scheduler.py until noon, I am moving the lease code.",
    "Agreed, half-up it is. I will change the two tests and leave the export alone.",
    "CI is red on main since the last merge: mypy, three errors, all in one file.",
)

# About 280 words: a plan or a report.
LONG = tuple(" ".join(USUAL[at : at + 3]) for at in (0, 3, 6))
