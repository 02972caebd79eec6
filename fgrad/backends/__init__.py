"""Where Plans run: one module or package per backend, each turning a Plan into an executable."""
