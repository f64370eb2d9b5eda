"""From experiments to results: settings, measurements, intervals, and where each came from."""
