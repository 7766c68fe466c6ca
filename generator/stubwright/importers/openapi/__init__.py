"""OpenAPI documents (3.0, 3.1 and 3.2) as manifests whose tools are implemented by HTTP calls.

    documents → operations → arguments, results ← schemas
                          ↘ apis, naming → assembling → accepted

Each module has one job. A need of an operation that is not supported is named in a note, and the operation is left
out; nothing is guessed, fetched or executed.
"""
