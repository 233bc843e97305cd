"""What a repair takes in: calls whose process is gone, and records that were set aside."""
