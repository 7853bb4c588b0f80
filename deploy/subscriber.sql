-- Alerts are delivered to a database of their own: Dagster's records can be emptied without them.
CREATE DATABASE subscriber;
