//! Harness of the loom models.
