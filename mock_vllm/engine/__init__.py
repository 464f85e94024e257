"""The engine behind the routes: one queue, an executor, one worker a rank."""
