package client_test

const childEnv = "TIDEMARK_CLIENT_CHILD"

func runChild() {}
