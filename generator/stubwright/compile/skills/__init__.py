"""Agent skills that a server gives to hosts (SEP-2640): read, checked, and made resources of."""
