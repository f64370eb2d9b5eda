"""From experiments to results: settings, measurements, and where each number came from."""
