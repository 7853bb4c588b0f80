"""Tables that a site adds to the platform: each module here is one, with its rows, its asset and its checks."""
