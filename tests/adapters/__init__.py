"""What single adapters promise beyond the contract."""
