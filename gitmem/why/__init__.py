"""Why a line is as it is: who made it, what was agreed, and what was known then."""
