"""Where artifacts are kept, how a store knows that place again, and moving them elsewhere."""
