"""What the Redis adapter promises beyond the contract."""
