from diary_mcp import Reply, Replies
