package chaos

const traceWorkspace = "trace"
