"""What waits while a store cannot be reached, and how it comes into the store later."""
