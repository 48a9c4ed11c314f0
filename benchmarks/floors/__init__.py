"""The floors: what ours costs against the least that could do it, each a ratio of samples taken side by side."""

from benchmarks.floors import appending, listing, processes, reading, stalling

ROWS = (*appending.ROWS, *reading.ROWS, *stalling.ROWS, *listing.ROWS, *processes.ROWS)
