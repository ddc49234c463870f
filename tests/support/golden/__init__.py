"""The golden set: jobs whose releases and refusals may not change unnoticed."""
