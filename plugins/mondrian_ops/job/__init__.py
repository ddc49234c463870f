"""What is asked: the job, its options and sections, what they may say together, policies.

Imports errors alone, and the standard library. Public for others: `job.Job`, made by
`Job.from_dict`; docs/job.md describes its options. And `criterion.Criterion` with `options.option`,
by which a package adds a criterion; docs/extend.md shows one.
"""
