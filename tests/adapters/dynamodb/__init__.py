"""What is DynamoDB's own, and the tools that look at what is sent to it."""
