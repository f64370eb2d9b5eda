"""The networks: VED, AED and AO, and the trace that an analysis asks of them."""
