package inbox

const workerEnv = "TIDEMARK_TEST_INBOX_WORKER"

func playWorker(string) error { return errInjected }
