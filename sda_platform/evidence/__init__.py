"""Evidence of alerts for third parties: signed bundles, which are verified without the lake."""
