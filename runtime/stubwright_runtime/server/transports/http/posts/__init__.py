"""POSTs that are being answered."""
