"""The golden set: jobs with the releases and the refusals that they must lead to."""
