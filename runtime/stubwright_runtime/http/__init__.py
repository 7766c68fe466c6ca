"""Tools that call HTTP APIs."""
