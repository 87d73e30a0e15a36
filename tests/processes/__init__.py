"""Workers as processes of their own, on stores that processes can share."""
