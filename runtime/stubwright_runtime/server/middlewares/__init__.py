"""What each message of a server passes through, whatever it asks for."""
