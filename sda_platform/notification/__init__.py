"""Messages to people about alerts: rules, channels, and what each channel was sent."""
