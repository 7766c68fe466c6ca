"""OpenAPI documents (3.0, 3.1 and 3.2) as manifests whose tools are implemented by HTTP calls.

    documents → operations → arguments, results ← schemas
                          ↘ apis, naming → assembling → accepted

Each module has one job. An operation that needs an unsupported feature is omitted, with a note that names the feature.
The package never guesses, fetches or executes.
"""
