"""Background jobs: work that outlives a page, a browser and a restart of the server.

A job is a row in the store and a process of its own, `python -m app.jobs ID`, in a folder of its own. The page writes
the row and reads it; the worker proves by its claim that the job is still its own, says how far it is, and looks
whether it should stop. A worker that died is noticed by everyone who looks at the queue.
"""
