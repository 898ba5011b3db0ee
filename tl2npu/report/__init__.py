"""Reports: one file per output format. They see result dataclasses only."""
