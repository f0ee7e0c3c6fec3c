"""Fetching and judging of releases: from the store's queue to rows with a verdict.

`fetcher` runs the queue, `fair_queue` orders it, `result_writer` stores results in batches and
schedules further tries.
"""
